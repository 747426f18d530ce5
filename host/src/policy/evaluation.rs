//! The decision about one act, as the checks that lead to it.
//!
//! There is one list of checks, in one order. Deciding and explaining both walk it to the first check that has an answer.

use serde::Serialize;

use super::resolved::{Listed, RuleMatches, by_mode};
use super::{Act, Because, Deed, Effect, Finding, Kind, Match, Mode, Policy, ToolId, Verdict, Voice};

/// One check of a decision, in the order in which they are made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Check {
    /// A rule that denies covers the act.
    DenyRules,
    /// Plan mode denies every change.
    PlanMode,
    /// The built-in lists have every change of the path approved.
    ListedPaths,
    /// A rule that asks covers it.
    AskRules,
    /// A rule that denies or asks might cover it.
    PossibleRules,
    /// The system has a list `allow`, and the act is not on it.
    SystemList,
    /// A project that nobody trusts has one.
    ProjectList,
    /// The user has one.
    UserList,
    /// A rule that allows covers it.
    AllowRules,
    /// The mode decides what is left.
    Mode,
}

/// A check that was made, and its answer if it had one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Step {
    /// Which check.
    pub check: Check,
    /// What it found. Only the last step of a decision has found something.
    pub finding: Option<Finding>,
}

/// What was found about one act, and how.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Evaluation<'a> {
    /// The act.
    pub act: Deed<'a>,
    /// The answer.
    pub finding: Finding,
    /// The checks that were made, the last of which decided.
    pub steps: Vec<Step>,
}

impl Check {
    /// All of them but the last, which always has an answer.
    const BEFORE_MODE: [Self; 9] = [
        Self::DenyRules,
        Self::PlanMode,
        Self::ListedPaths,
        Self::AskRules,
        Self::PossibleRules,
        Self::SystemList,
        Self::ProjectList,
        Self::UserList,
        Self::AllowRules,
    ];

    /// What it looks for, in words.
    pub fn in_words(self) -> &'static str {
        match self {
            Self::DenyRules => "rules that deny",
            Self::PlanMode => "plan mode",
            Self::ListedPaths => "the built-in lists of instructions and of files that run code",
            Self::AskRules => "rules that ask",
            Self::PossibleRules => "rules that might deny or ask",
            Self::SystemList => "the list `allow` of the system",
            Self::ProjectList => "the list `allow` of an untrusted project",
            Self::UserList => "the list `allow` of the user",
            Self::AllowRules => "rules that allow",
            Self::Mode => "the mode",
        }
    }
}

impl Policy {
    /// Evaluates one act of a tool.
    pub fn evaluate<'a>(&self, mode: Mode, tool: ToolId<'_>, act: Deed<'a>) -> Evaluation<'a> {
        let mut steps = Vec::with_capacity(Check::BEFORE_MODE.len() + 1);
        let matches = self.match_rules(tool, &act);
        for check in Check::BEFORE_MODE {
            let finding = self.check(check, mode, &act, &matches);
            steps.push(Step { check, finding: finding.clone() });
            if let Some(finding) = finding {
                return Evaluation { act, finding, steps };
            }
        }
        let finding = by_mode(mode, &act);
        steps.push(Step { check: Check::Mode, finding: Some(finding.clone()) });
        Evaluation { act, finding, steps }
    }

    /// Evaluates all acts of an effect. A link is one more act where its place is a directory of a listed path: what is
    /// changed behind it is not seen.
    pub(super) fn evaluate_effect<'a>(&self, mode: Mode, tool: ToolId<'_>, effect: &'a Effect) -> Vec<Evaluation<'a>> {
        let mut evaluations: Vec<_> = effect.acts().into_iter().map(|act| self.evaluate(mode, tool, act)).collect();
        if let Effect::Write { changes, .. } = effect {
            let links = changes.iter().filter(|change| matches!(change.act, Act::Link { .. }));
            evaluations.extend(links.filter_map(|change| {
                let finding = Finding { verdict: Verdict::Ask, because: Because::Listed(self.asked().find_link(&change.path)?) };
                let steps = vec![Step { check: Check::ListedPaths, finding: Some(finding.clone()) }];
                Some(Evaluation { act: Deed::Write(Some(&change.path)), finding, steps })
            }));
        }
        evaluations
    }

    /// The answer for one act of a tool.
    pub fn find(&self, mode: Mode, tool: ToolId<'_>, act: &Deed<'_>) -> Finding {
        self.evaluate(mode, tool, act.clone()).finding
    }

    fn check(&self, check: Check, mode: Mode, act: &Deed<'_>, matches: &RuleMatches<'_>) -> Option<Finding> {
        let not_listed = |voice| match matches.listed(voice, act.kind()) {
            Listed::No(because) => Some(Finding { verdict: Verdict::Ask, because }),
            Listed::Yes(_) | Listed::NoList => None,
        };
        let allowed_by = |voice| match matches.listed(voice, act.kind()) {
            Listed::Yes(because) => Some(Finding { verdict: Verdict::Allow, because }),
            Listed::No(_) | Listed::NoList => None,
        };
        match check {
            Check::DenyRules => matches.strict(Verdict::Deny, Match::Yes),
            Check::PlanMode => {
                let changes = matches!(act.kind(), Kind::Commands | Kind::Write);
                (mode == Mode::Plan && changes).then_some(Finding { verdict: Verdict::Deny, because: Because::Mode(mode) })
            }
            Check::ListedPaths => match act {
                Deed::Write(Some(path)) => {
                    self.asked().find(path).map(|listed| Finding { verdict: Verdict::Ask, because: Because::Listed(listed) })
                }
                Deed::Write(None) | Deed::Command(_) | Deed::Read(_) | Deed::Fetch { .. } | Deed::Use => None,
            },
            Check::AskRules => matches.strict(Verdict::Ask, Match::Yes),
            Check::PossibleRules => {
                let denied = matches.strict(Verdict::Deny, Match::Perhaps);
                denied.or_else(|| matches.strict(Verdict::Ask, Match::Perhaps))
            }
            Check::SystemList => not_listed(Voice::System),
            Check::ProjectList => not_listed(Voice::Stranger),
            Check::UserList => not_listed(Voice::User),
            Check::AllowRules => allowed_by(Voice::User).or_else(|| allowed_by(Voice::System)),
            Check::Mode => Some(by_mode(mode, act)),
        }
    }
}
