//! The decision about one action, as a sequence of checks.
//!
//! Deciding and explaining use the same list of checks in the same order. The first check with an
//! answer decides.

use serde::Serialize;

use super::resolved::{ListedRule, RuleMatches, mode_verdict};
use super::{
    Action, ActionKind, ApprovalMode, ChangeKind, Effect, PatternMatch, Policy, ReasonedVerdict,
    ToolId, TrustLevel, Verdict, VerdictReason,
};

/// One check of a decision, in the order of evaluation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum DecisionCheck {
    /// Finds a `deny` rule that covers the action.
    DenyRules,
    /// Finds a level of the policy that excludes the host of a connection.
    HostBounds,
    /// Denies every command and write in plan mode.
    PlanMode,
    /// Finds the path in the built-in lists whose changes always need approval.
    ListedPaths,
    /// Finds an `ask` rule that covers the action.
    AskRules,
    /// Finds a `deny` or `ask` rule that might cover the action.
    PossibleRules,
    /// Finds an `allow` list of the system that does not contain the action.
    SystemList,
    /// Finds an `allow` list of an untrusted project that does not contain the action.
    ProjectList,
    /// Finds an `allow` list of the user that does not contain the action.
    UserList,
    /// Finds an `allow` rule that covers the action.
    AllowRules,
    /// Decides by the mode; this check always has an answer.
    Mode,
}

/// A completed check, with its answer if it had one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct DecisionStep {
    /// The check that was made.
    pub check: DecisionCheck,
    /// The answer. Only the last step of a decision has one.
    pub finding: Option<ReasonedVerdict>,
}

/// The verdict about one action, with the checks that led to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ActionEvaluation<'a> {
    /// The action that was evaluated.
    pub action: Action<'a>,
    /// The verdict and its reason.
    pub finding: ReasonedVerdict,
    /// The completed checks. The last one decided.
    pub steps: Vec<DecisionStep>,
}

impl DecisionCheck {
    /// All checks before [`DecisionCheck::Mode`], which always has an answer.
    const BEFORE_MODE: [Self; 10] = [
        Self::DenyRules,
        Self::HostBounds,
        Self::PlanMode,
        Self::ListedPaths,
        Self::AskRules,
        Self::PossibleRules,
        Self::SystemList,
        Self::ProjectList,
        Self::UserList,
        Self::AllowRules,
    ];

    /// Describes the subject of this check.
    pub fn describe(self) -> &'static str {
        match self {
            Self::DenyRules => "`deny` rules",
            Self::HostBounds => "hosts that a level excludes",
            Self::PlanMode => "plan mode",
            Self::ListedPaths => "the built-in lists of instructions and of files that run code",
            Self::AskRules => "`ask` rules",
            Self::PossibleRules => "`deny` and `ask` rules that might apply",
            Self::SystemList => "`allow` list of the system",
            Self::ProjectList => "`allow` list of the untrusted project",
            Self::UserList => "`allow` list of the user",
            Self::AllowRules => "`allow` rules",
            Self::Mode => "the mode",
        }
    }
}

impl Policy {
    /// Evaluates one action of a tool.
    pub fn evaluate<'a>(
        &self,
        mode: ApprovalMode,
        tool: ToolId<'_>,
        act: Action<'a>,
    ) -> ActionEvaluation<'a> {
        let mut steps = Vec::with_capacity(DecisionCheck::BEFORE_MODE.len() + 1);
        let matches = self.match_rules(tool, &act);
        for check in DecisionCheck::BEFORE_MODE {
            if check == DecisionCheck::HostBounds && act.kind() != ActionKind::Connect {
                continue;
            }
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

    /// Evaluates all actions of an effect. A link counts as one more action if it replaces a
    /// directory of a listed path, because the list would not cover changes through the link.
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

    /// Returns the verdict about one action of a tool.
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
        let is_connection = act.kind() == ActionKind::Connect;
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
            DecisionCheck::HostBounds => is_connection.then(|| matches.host_bounds()).flatten(),
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
                | Action::Input(_)
                | Action::Read(_)
                | Action::Fetch { .. }
                | Action::Connect(_)
                | Action::Use => None,
            },
            DecisionCheck::AskRules => matches.strict(Verdict::Ask, PatternMatch::Yes),
            DecisionCheck::PossibleRules => {
                let denied = matches.strict(Verdict::Deny, PatternMatch::Maybe);
                denied.or_else(|| matches.strict(Verdict::Ask, PatternMatch::Maybe))
            }
            DecisionCheck::SystemList if is_connection => matches.unlisted_host(TrustLevel::System),
            DecisionCheck::ProjectList if is_connection => {
                matches.unlisted_host(TrustLevel::Stranger)
            }
            DecisionCheck::UserList if is_connection => matches.unlisted_host(TrustLevel::User),
            DecisionCheck::AllowRules if is_connection => matches
                .allowed_host(TrustLevel::User)
                .or_else(|| matches.allowed_host(TrustLevel::System)),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_check_has_a_description_of_its_own() {
        let mut all = DecisionCheck::BEFORE_MODE.map(DecisionCheck::describe).to_vec();
        all.push(DecisionCheck::Mode.describe());
        assert!(all.contains(&"`deny` rules") && all.contains(&"the mode"));
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), 11);
    }
}
