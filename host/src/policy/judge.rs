//! The one function that decides.

use std::sync::Arc;

use super::{Because, Code, Denial, Effect, Finding, Mode, Policy, Question, Scope, Verdict};

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

/// Decides on effects, by the policy, the mode and what the user approved in this session. The approvals live here, in
/// memory, and nowhere else.
#[derive(Debug)]
pub struct Judge {
    mode: Mode,
    /// What was in force before plan mode, and is again once a plan is accepted.
    before_plan: Mode,
    policy: Arc<Policy>,
    someone_to_ask: bool,
    approved: Vec<Scope>,
}

impl Judge {
    /// A judge that has approved nothing yet and knows no rules. Without someone to ask, what would be asked is denied.
    pub fn new(mode: Mode, someone_to_ask: bool) -> Self {
        Self { mode, before_plan: Mode::default(), policy: Arc::default(), someone_to_ask, approved: Vec::new() }
    }

    /// The same, with rules.
    #[must_use]
    pub fn under(self, policy: Arc<Policy>) -> Self {
        let mut judge = Self { policy, ..self };
        judge.set_mode(judge.mode);
        judge
    }

    /// The mode in force.
    pub fn mode(&self) -> Mode {
        self.mode
    }

    /// From now on another mode is in force, or the nearest stricter one that the policy leaves. What was approved stays
    /// approved, as far as the mode asks at all.
    pub fn set_mode(&mut self, mode: Mode) {
        if self.mode != Mode::Plan {
            self.before_plan = self.mode;
        }
        self.mode = self.policy.nearest(mode).unwrap_or(Mode::Plan);
    }

    /// Decides on one effect of one call.
    pub fn decide(&self, tool: &str, arguments: &str, effect: Effect) -> Decision {
        if let Effect::Plan { text, then: _ } = effect {
            return self.decide_plan(tool, arguments, text);
        }
        let finding = self.policy.find_effect(self.mode, tool, &effect);
        match finding.verdict {
            Verdict::Allow => Decision::Allow(Permit { effect }),
            Verdict::Ask if finding.may_be_remembered() && self.remembers(tool, &effect) => Decision::Allow(Permit { effect }),
            Verdict::Ask if self.someone_to_ask => {
                let scope = effect.scope(tool).filter(|_| finding.may_be_remembered());
                Decision::Ask(Question { tool: tool.to_owned(), arguments: arguments.to_owned(), effect, scope })
            }
            Verdict::Ask => Decision::Deny(nobody_to_ask(tool, &finding)),
            Verdict::Deny => Decision::Deny(denied(tool, &effect, &finding)),
        }
    }

    /// What rules and mode say of an effect, whatever was approved.
    pub fn find(&self, tool: &str, effect: &Effect) -> Finding {
        self.policy.find_effect(self.mode, tool, effect)
    }

    /// The user's yes to a question.
    pub fn approve(&self, question: Question) -> Permit {
        Permit { effect: question.effect }
    }

    /// The user's yes to all that falls under a scope, for this session.
    pub fn remember(&mut self, scope: Scope) {
        self.approved.push(scope);
    }

    /// Does what is the judge's own to do about a permit: an accepted plan ends plan mode.
    pub fn carry_out(&mut self, permit: &Permit) {
        match permit.effect {
            Effect::Plan { then, .. } => self.set_mode(then),
            Effect::Command { .. } | Effect::Write { .. } | Effect::Fetch { .. } | Effect::Confirmed => {}
        }
    }

    /// A plan is accepted in plan mode, by whoever can be asked, whatever came before it; elsewhere there is nothing to accept.
    fn decide_plan(&self, tool: &str, arguments: &str, text: String) -> Decision {
        let then = self.policy.nearest(self.before_plan).unwrap_or(Mode::Plan);
        let denial = if self.mode != Mode::Plan {
            Denial::new(
                Code::Mode,
                format!("the session is in mode `{}` and not in plan mode, so there is no plan to accept.", self.mode),
                "Go on with the work itself.",
            )
        } else if then == Mode::Plan {
            Denial::new(
                Code::Mode,
                "the policy leaves no mode but plan mode, so there is nothing that a plan could lead to.",
                "Give the plan as your answer.",
            )
        } else if !self.someone_to_ask {
            Denial::new(
                Code::NobodyToAsk,
                "a plan is accepted by the user, and there is no terminal to ask at.",
                "Give the plan as your answer; the user can read it there and start again in another mode.",
            )
        } else {
            let (tool, arguments) = (tool.to_owned(), arguments.to_owned());
            return Decision::Ask(Question { tool, arguments, effect: Effect::Plan { text, then }, scope: None });
        };
        Decision::Deny(denial)
    }

    fn remembers(&self, tool: &str, effect: &Effect) -> bool {
        self.approved.iter().any(|scope| scope.covers(tool, effect))
    }
}

fn nobody_to_ask(tool: &str, finding: &Finding) -> Denial {
    match &finding.because {
        Because::Mode(_) | Because::Reading => Denial::new(
            Code::NobodyToAsk,
            format!("{tool} needs an approval for this, and there is no terminal to ask at."),
            finding.what_would_change_it(),
        ),
        Because::Rule(_) | Because::Perhaps(_) | Because::NotListed(..) | Because::Listed(_) => {
            Denial::found(Code::NobodyToAsk, &format!("{tool} needs an approval for this, and there is no terminal to ask at"), finding)
        }
    }
}

fn denied(tool: &str, effect: &Effect, finding: &Finding) -> Denial {
    match &finding.because {
        Because::Mode(mode) => {
            Denial::new(Code::Mode, format!("in mode `{mode}` nothing is changed and no command runs."), finding.what_would_change_it())
        }
        Because::Rule(_) | Because::Perhaps(_) | Because::NotListed(..) | Because::Listed(_) | Because::Reading => {
            let what: Vec<String> = effect.acts().iter().map(ToString::to_string).collect();
            Denial::found(Code::Policy, &format!("{tool} may not {}", what.join(", ")), finding)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Act, Change, Changes, Content, Layer, Level, WorkspacePath};
    use super::*;

    fn command(line: &str) -> Effect {
        Effect::Command { line: line.into(), directory: WorkspacePath::parse("", None).unwrap() }
    }

    fn write(path: &str) -> Effect {
        let after = Content { size: 1, digest: "0".into() };
        let change = Change { path: WorkspacePath::parse(path, None).unwrap(), act: Act::Create { after }, diff: None };
        Effect::Write { changes: Changes::new(vec![change]), confirm: false }
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
        judge.remember(question.scope.clone().expect("it has one"));
        assert_eq!(judge.approve(question).effect(), &command("git status"));
        assert_eq!(word(&judge.decide("bash", "{}", command("git status --short"))), "allow");
        assert_eq!(word(&judge.decide("bash", "{}", command("git status; curl x"))), "ask");
        assert_eq!(word(&judge.decide("write_file", "{}", write("git status"))), "ask");
    }

    #[test]
    fn r039_a_scope_for_writes_is_the_paths_that_really_change() {
        let mut judge = Judge::new(Mode::Ask, true);
        let Decision::Ask(question) = judge.decide("write_file", "{}", write("src/a")) else { panic!("not asked") };
        assert_eq!(question.scope.as_ref().map(ToString::to_string).as_deref(), Some("write_file writing src/a"));
        judge.remember(question.scope.expect("it has one"));
        assert_eq!(word(&judge.decide("write_file", "{}", write("src/a"))), "allow");
        assert_eq!(word(&judge.decide("write_file", "{}", write("src/ab"))), "ask");
        assert_eq!(word(&judge.decide("other", "{}", write("src/a"))), "ask");
        let path = WorkspacePath::parse("src/a", None).unwrap();
        let delete = Changes::new(vec![Change { path, act: Act::Delete { before: 1 }, diff: None }]);
        let Decision::Ask(question) = judge.decide("write_file", "{}", Effect::Write { changes: delete, confirm: false }) else {
            panic!("not asked")
        };
        assert_eq!(question.scope, None, "a deletion is asked each time");
    }

    #[test]
    fn r042_approving_once_approves_once() {
        let judge = Judge::new(Mode::Ask, true);
        let Decision::Ask(question) = judge.decide("bash", "{}", command("git status")) else { panic!("not asked") };
        let permit = judge.approve(question);
        assert_eq!(permit.effect(), &command("git status"));
        assert_eq!(word(&judge.decide("bash", "{}", command("git status"))), "ask");
    }

    fn under(text: &str, mode: Mode, someone: bool) -> Judge {
        let mut policy = Policy::default();
        policy.add(Layer::parse(Level::User, "p.toml", text).unwrap());
        Judge::new(mode, someone).under(Arc::new(policy))
    }

    #[test]
    fn r036_a_denial_names_rule_file_and_line_and_what_would_change_it() {
        let judge = under("[commands]\ndeny = [\"git push *\"]", Mode::Auto, true);
        let Decision::Deny(denial) = judge.decide("bash", "{}", command("git push -f")) else { panic!("not denied") };
        insta::assert_snapshot!(denial, @"denied (policy): bash may not run `git push -f`: the rule deny `git push *` of [commands] at p.toml:2:9 covers it. The user can change that rule in p.toml; no other rule overrides it.");
        assert_eq!(denial.place.map(|place| (place.file, place.line)), Some(("p.toml".into(), 2)));
        let judge = under("[commands]\nask = [\"git push *\"]", Mode::Auto, false);
        let Decision::Deny(denial) = judge.decide("bash", "{}", command("git push -f")) else { panic!("not denied") };
        insta::assert_snapshot!(denial, @"denied (nobody-to-ask): bash needs an approval for this, and there is no terminal to ask at: the rule ask `git push *` of [commands] at p.toml:2:8 covers it. The user can change that rule in p.toml; no other rule overrides it.");
    }

    #[test]
    fn r039_what_a_rule_wants_asked_is_asked_each_time() {
        let mut judge = under("[commands]\nask = [\"git push *\"]", Mode::Auto, true);
        judge.approved.extend(command("git push").scope("bash"));
        let Decision::Ask(question) = judge.decide("bash", "{}", command("git push")) else { panic!("not asked") };
        assert_eq!(question.scope, None);
    }

    #[test]
    fn r037_a_rule_allows_without_asking() {
        let judge = under("[commands]\nallow = [\"git status *\"]\n[write]\nallow = [\"src/**\"]", Mode::Ask, false);
        assert_eq!(word(&judge.decide("bash", "{}", command("git status -s"))), "allow");
        assert_eq!(word(&judge.decide("bash", "{}", command("git status; x"))), "deny");
        assert_eq!(word(&judge.decide("write_file", "{}", write("src/a"))), "allow");
        assert_eq!(word(&judge.decide("write_file", "{}", write("docs/a"))), "deny");
        let (Effect::Write { changes: one, .. }, Effect::Write { changes: other, .. }) = (write("src/a"), write("docs/a")) else {
            panic!()
        };
        let changes = Changes::new(one.iter().chain(&other).cloned().collect());
        let both = Effect::Write { changes, confirm: false };
        assert_eq!(word(&judge.decide("write_file", "{}", both)), "deny");
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
    fn a_mode_that_the_policy_forbids_does_not_come_into_force() {
        let mut judge = under("modes = [\"plan\", \"ask\"]", Mode::Auto, true);
        assert_eq!(judge.mode(), Mode::Ask);
        judge.set_mode(Mode::AutoEdit);
        assert_eq!(judge.mode(), Mode::Ask);
        judge.set_mode(Mode::Plan);
        assert_eq!(judge.mode(), Mode::Plan);
    }

    fn plan(then: Mode) -> Effect {
        Effect::Plan { text: "1. Mend it.".into(), then }
    }

    #[test]
    fn r126_an_accepted_plan_brings_back_the_mode_before_and_no_other() {
        for (before, after) in [(None, Mode::Ask), (Some(Mode::AutoEdit), Mode::AutoEdit), (Some(Mode::Auto), Mode::Auto)] {
            let mut judge = Judge::new(before.unwrap_or(Mode::Plan), true);
            judge.set_mode(Mode::Plan);
            judge.set_mode(Mode::Plan);
            // What the proposer says of it counts for nothing.
            let Decision::Ask(question) = judge.decide("present_plan", "{}", plan(Mode::Auto)) else { panic!("not asked") };
            assert_eq!((&question.effect, &question.scope), (&plan(after), &None));
            assert_eq!(judge.mode(), Mode::Plan, "asking changes nothing");
            let permit = judge.approve(question);
            judge.carry_out(&permit);
            assert_eq!((permit.effect(), judge.mode()), (&plan(after), after));
        }
    }

    #[test]
    fn r126_a_plan_outside_of_plan_mode_is_denied() {
        for mode in [Mode::Ask, Mode::AutoEdit, Mode::Auto] {
            let Decision::Deny(denial) = Judge::new(mode, true).decide("present_plan", "{}", plan(mode)) else { panic!("{mode}") };
            assert!(denial.to_string().contains("not in plan mode"), "{denial}");
        }
    }

    #[test]
    fn r126_a_plan_that_nobody_can_accept_is_to_be_the_answer() {
        let Decision::Deny(denial) = Judge::new(Mode::Plan, false).decide("present_plan", "{}", plan(Mode::Ask)) else { panic!() };
        assert_eq!(denial.code, Code::NobodyToAsk);
        assert!(denial.to_string().contains("as your answer"), "{denial}");
    }

    #[test]
    fn r126_a_plan_leads_no_further_than_the_policy_goes() {
        for (modes, then) in [("\"plan\", \"ask\"", Some(Mode::Ask)), ("\"plan\"", None)] {
            let mut judge = Judge::new(Mode::Auto, true);
            judge.set_mode(Mode::Plan);
            let mut policy = Policy::default();
            policy.add(Layer::parse(Level::User, "p.toml", &format!("modes = [{modes}]")).unwrap());
            let asked = match judge.under(Arc::new(policy)).decide("present_plan", "{}", plan(Mode::Auto)) {
                Decision::Ask(Question { effect: Effect::Plan { then, .. }, .. }) => Some(then),
                Decision::Ask(_) | Decision::Allow(_) | Decision::Deny(_) => None,
            };
            assert_eq!(asked, then, "{modes}");
        }
    }

    #[test]
    fn r126_an_approval_does_not_reach_into_plan_mode() {
        let mut judge = Judge::new(Mode::Plan, true);
        judge.approved.extend(command("git status").scope("bash"));
        assert_eq!(word(&judge.decide("bash", "{}", command("git status"))), "deny");
    }
}
