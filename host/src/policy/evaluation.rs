//! The decision about one act, as the checks that lead to it.
//!
//! There is one list of checks, in one order. Deciding and explaining both walk it to the first
//! check that has an answer.

use serde::Serialize;

use super::resolved::{ListedRule, RuleMatches, mode_verdict};
use super::{
    Action, ActionKind, ApprovalMode, ChangeKind, Effect, PatternMatch, Policy, ReasonedVerdict,
    ToolId, TrustLevel, Verdict, VerdictReason,
};

/// One check of a decision, in the order in which they are made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum DecisionCheck {
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
pub struct DecisionStep {
    /// Which check.
    pub check: DecisionCheck,
    /// What it found. Only the last step of a decision has found something.
    pub finding: Option<ReasonedVerdict>,
}

/// What was found about one act, and how.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ActionEvaluation<'a> {
    /// The act.
    pub action: Action<'a>,
    /// The answer.
    pub finding: ReasonedVerdict,
    /// The checks that were made, the last of which decided.
    pub steps: Vec<DecisionStep>,
}

impl DecisionCheck {
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
    pub fn describe(self) -> &'static str {
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
    pub fn evaluate<'a>(
        &self,
        mode: ApprovalMode,
        tool: ToolId<'_>,
        act: Action<'a>,
    ) -> ActionEvaluation<'a> {
        let mut steps = Vec::with_capacity(DecisionCheck::BEFORE_MODE.len() + 1);
        let matches = self.match_rules(tool, &act);
        for check in DecisionCheck::BEFORE_MODE {
            let finding = self.check(check, mode, &act, &matches);
            steps.push(DecisionStep { check, finding: finding.clone() });
            if let Some(finding) = finding {
                return ActionEvaluation { action: act, finding, steps };
            }
        }
        let finding = mode_verdict(mode, &act);
        steps.push(DecisionStep { check: DecisionCheck::Mode, finding: Some(finding.clone()) });
        ActionEvaluation { action: act, finding, steps }
    }

    /// Evaluates all acts of an effect. A link is one more act where its place is a directory of a
    /// listed path: what is changed behind it is not seen.
    pub(super) fn evaluate_effect<'a>(
        &self,
        mode: ApprovalMode,
        tool: ToolId<'_>,
        effect: &'a Effect,
    ) -> Vec<ActionEvaluation<'a>> {
        let mut evaluations: Vec<_> =
            effect.actions().into_iter().map(|act| self.evaluate(mode, tool, act)).collect();
        if let Effect::Write { changes, .. } = effect {
            let links =
                changes.iter().filter(|change| matches!(change.kind, ChangeKind::Link { .. }));
            evaluations.extend(links.filter_map(|change| {
                let finding = ReasonedVerdict {
                    verdict: Verdict::Ask,
                    reason: VerdictReason::Listed(self.approval_paths().find_link(&change.path)?),
                };
                let steps = vec![DecisionStep {
                    check: DecisionCheck::ListedPaths,
                    finding: Some(finding.clone()),
                }];
                Some(ActionEvaluation { action: Action::Write(Some(&change.path)), finding, steps })
            }));
        }
        evaluations
    }

    /// The answer for one act of a tool.
    pub fn verdict(
        &self,
        mode: ApprovalMode,
        tool: ToolId<'_>,
        act: &Action<'_>,
    ) -> ReasonedVerdict {
        self.evaluate(mode, tool, act.clone()).finding
    }

    fn check(
        &self,
        check: DecisionCheck,
        mode: ApprovalMode,
        act: &Action<'_>,
        matches: &RuleMatches<'_>,
    ) -> Option<ReasonedVerdict> {
        let not_listed = |voice| match matches.listed(voice, act.kind()) {
            ListedRule::No(because) => {
                Some(ReasonedVerdict { verdict: Verdict::Ask, reason: because })
            }
            ListedRule::Yes(_) | ListedRule::NoList => None,
        };
        let allowed_by = |voice| match matches.listed(voice, act.kind()) {
            ListedRule::Yes(because) => {
                Some(ReasonedVerdict { verdict: Verdict::Allow, reason: because })
            }
            ListedRule::No(_) | ListedRule::NoList => None,
        };
        match check {
            DecisionCheck::DenyRules => matches.strict(Verdict::Deny, PatternMatch::Yes),
            DecisionCheck::PlanMode => {
                let changes = matches!(act.kind(), ActionKind::Commands | ActionKind::Write);
                (mode == ApprovalMode::Plan && changes).then_some(ReasonedVerdict {
                    verdict: Verdict::Deny,
                    reason: VerdictReason::Mode(mode),
                })
            }
            DecisionCheck::ListedPaths => match act {
                Action::Write(Some(path)) => self.approval_paths().find(path).map(|listed| {
                    ReasonedVerdict { verdict: Verdict::Ask, reason: VerdictReason::Listed(listed) }
                }),
                Action::Write(None)
                | Action::Command(_)
                | Action::Read(_)
                | Action::Fetch { .. }
                | Action::Use => None,
            },
            DecisionCheck::AskRules => matches.strict(Verdict::Ask, PatternMatch::Yes),
            DecisionCheck::PossibleRules => {
                let denied = matches.strict(Verdict::Deny, PatternMatch::Maybe);
                denied.or_else(|| matches.strict(Verdict::Ask, PatternMatch::Maybe))
            }
            DecisionCheck::SystemList => not_listed(TrustLevel::System),
            DecisionCheck::ProjectList => not_listed(TrustLevel::Stranger),
            DecisionCheck::UserList => not_listed(TrustLevel::User),
            DecisionCheck::AllowRules => {
                allowed_by(TrustLevel::User).or_else(|| allowed_by(TrustLevel::System))
            }
            DecisionCheck::Mode => Some(mode_verdict(mode, act)),
        }
    }
}
