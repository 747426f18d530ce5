//! The one function that decides.

use super::{Code, Denial, Effect, Mode, Question, Scope};

/// What becomes of an effect.
#[derive(Debug)]
pub enum Decision {
    /// It may happen.
    Allow(Permit),
    /// Somebody has to say so first.
    Ask(Question),
    /// It will not happen.
    Deny(Denial),
}

/// The right to do one thing once. Only this module makes one; what acts takes it by value and does what is in it.
#[derive(Debug)]
#[must_use = "a permit that is not used is an act that was approved and did not happen"]
pub struct Permit {
    effect: Effect,
}

impl Permit {
    /// What is permitted, and what therefore is done.
    pub fn effect(&self) -> &Effect {
        &self.effect
    }
}

/// Decides on effects, by the mode and by what the user approved in this session. The approvals live here, in memory,
/// and nowhere else.
#[derive(Debug)]
pub struct Judge {
    mode: Mode,
    someone_to_ask: bool,
    approved: Vec<Scope>,
}

impl Judge {
    /// A judge that has approved nothing yet. Without someone to ask, what would be asked is denied.
    pub fn new(mode: Mode, someone_to_ask: bool) -> Self {
        Self { mode, someone_to_ask, approved: Vec::new() }
    }

    /// The mode in force.
    pub fn mode(&self) -> Mode {
        self.mode
    }

    /// From now on another mode is in force. What was approved stays approved, as far as the mode asks at all.
    pub fn set_mode(&mut self, mode: Mode) {
        self.mode = mode;
    }

    /// Decides on one effect of one call.
    pub fn decide(&self, tool: &str, arguments: &str, effect: Effect) -> Decision {
        match self.verdict(tool, &effect) {
            Verdict::Allow => Decision::Allow(Permit { effect }),
            Verdict::Ask if self.someone_to_ask => {
                let scope = effect.scope(tool);
                Decision::Ask(Question { tool: tool.to_owned(), arguments: arguments.to_owned(), effect, scope })
            }
            Verdict::Ask => Decision::Deny(Denial::new(
                Code::NobodyToAsk,
                format!("{tool} needs an approval for this, and there is no terminal to ask at."),
                "The user can start again with `--mode auto`, or at a terminal.",
            )),
            Verdict::Deny => Decision::Deny(Denial::new(
                Code::Mode,
                format!("in mode `{}` nothing is changed and no command runs.", self.mode),
                "The user can choose another mode.",
            )),
        }
    }

    /// The user's yes to a question.
    pub fn approve(&self, question: Question) -> Permit {
        Permit { effect: question.effect }
    }

    /// The user's yes to a question and to all that falls under its scope, for this session.
    pub fn approve_scope(&mut self, question: Question) -> Permit {
        self.approved.extend(question.scope);
        Permit { effect: question.effect }
    }

    fn verdict(&self, tool: &str, effect: &Effect) -> Verdict {
        let mode = match (self.mode, effect) {
            (Mode::Plan, Effect::Command { .. } | Effect::Write { .. }) => Verdict::Deny,
            (Mode::Auto, Effect::Command { .. } | Effect::Write { .. } | Effect::Confirmed) => Verdict::Allow,
            (Mode::AutoEdit, Effect::Write { confirm: false, .. }) => Verdict::Allow,
            (Mode::Ask | Mode::AutoEdit, Effect::Command { .. })
            | (Mode::Ask, Effect::Write { .. })
            | (Mode::AutoEdit, Effect::Write { confirm: true, .. })
            | (Mode::Ask | Mode::AutoEdit | Mode::Plan, Effect::Confirmed) => Verdict::Ask,
        };
        let remembered = self.approved.iter().any(|scope| scope.covers(tool, effect));
        match mode {
            Verdict::Ask if remembered => Verdict::Allow,
            verdict => verdict,
        }
    }
}

enum Verdict {
    Allow,
    Ask,
    Deny,
}

#[cfg(test)]
mod tests {
    use super::super::WorkspacePath;
    use super::*;

    fn command(line: &str) -> Effect {
        Effect::Command { line: line.into(), directory: WorkspacePath::parse("", None).unwrap() }
    }

    fn write(path: &str) -> Effect {
        Effect::Write { paths: vec![WorkspacePath::parse(path, None).unwrap()], confirm: false }
    }

    fn word(decision: &Decision) -> &'static str {
        match decision {
            Decision::Allow(_) => "allow",
            Decision::Ask(_) => "ask",
            Decision::Deny(_) => "deny",
        }
    }

    #[test]
    fn r035_modes_decide_by_effect() {
        let table =
            [(Mode::Ask, "ask", "ask"), (Mode::Plan, "deny", "deny"), (Mode::AutoEdit, "ask", "allow"), (Mode::Auto, "allow", "allow")];
        for (mode, on_command, on_write) in table {
            let judge = Judge::new(mode, true);
            assert_eq!(word(&judge.decide("bash", "{}", command("ls"))), on_command, "{mode}: command");
            assert_eq!(word(&judge.decide("write_file", "{}", write("a"))), on_write, "{mode}: write");
        }
    }

    #[test]
    fn r041_what_would_be_asked_is_denied_where_nobody_can_be_asked() {
        let Decision::Deny(denial) = Judge::new(Mode::Ask, false).decide("bash", "{}", command("ls")) else { panic!("not denied") };
        assert_eq!(denial.code, Code::NobodyToAsk);
        assert!(denial.to_string().contains("--mode auto"));
        assert_eq!(word(&Judge::new(Mode::Auto, false).decide("bash", "{}", command("ls"))), "allow");
    }

    #[test]
    fn r039_an_approved_scope_is_not_asked_again_and_covers_nothing_else() {
        let mut judge = Judge::new(Mode::Ask, true);
        let Decision::Ask(question) = judge.decide("bash", "{}", command("git status")) else { panic!("not asked") };
        let permit = judge.approve_scope(question);
        assert_eq!(permit.effect(), &command("git status"));
        assert_eq!(word(&judge.decide("bash", "{}", command("git status --short"))), "allow");
        assert_eq!(word(&judge.decide("bash", "{}", command("git status; curl x"))), "ask");
        assert_eq!(word(&judge.decide("write_file", "{}", write("git status"))), "ask");
    }

    #[test]
    fn r042_approving_once_approves_once() {
        let judge = Judge::new(Mode::Ask, true);
        let Decision::Ask(question) = judge.decide("bash", "{}", command("git status")) else { panic!("not asked") };
        let permit = judge.approve(question);
        assert_eq!(permit.effect(), &command("git status"));
        assert_eq!(word(&judge.decide("bash", "{}", command("git status"))), "ask");
    }

    #[test]
    fn a_mode_that_is_chosen_later_decides_from_then_on() {
        let mut judge = Judge::new(Mode::Ask, true);
        let words = [Mode::Plan, Mode::AutoEdit, Mode::Auto, Mode::Ask].map(|mode| {
            judge.set_mode(mode);
            (word(&judge.decide("bash", "{}", command("ls"))), word(&judge.decide("write_file", "{}", write("a"))))
        });
        assert_eq!(words, [("deny", "deny"), ("ask", "allow"), ("allow", "allow"), ("ask", "ask")]);
    }

    #[test]
    fn r126_an_approval_does_not_reach_into_plan_mode() {
        let mut judge = Judge::new(Mode::Plan, true);
        judge.approved.extend(command("git status").scope("bash"));
        assert_eq!(word(&judge.decide("bash", "{}", command("git status"))), "deny");
    }
}
