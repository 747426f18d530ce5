//! The decision about each effect of a tool.

mod command_change;
mod connection;
mod permit;
mod server;

use std::sync::Arc;

pub use command_change::CommandChangeVerdict;
pub use connection::ConnectionVerdict;
use permit::AuthorizerId;
pub use permit::{PendingApproval, Permit, ScopeApproval};

use super::{
    Action, ActionEvaluation, ApprovalMode, ApprovalQuestion, Denial, DenialCode, Effect, Policy,
    ReasonedVerdict, Scope, ToolId, Verdict, VerdictReason, WorkspaceAccess, WorkspacePath,
};

/// The decision about an effect, with the right to cause it if it is allowed.
///
/// This enum is closed: code that matches it has to treat each answer.
#[derive(Debug)]
pub enum Authorization {
    /// The effect may happen, for this reason.
    Allow(Permit, AllowBasis),
    /// The effect needs approval first.
    Ask(PendingApproval),
    /// The effect is denied.
    Deny(Denial),
}

/// The basis of a decision to allow.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AllowBasis {
    /// The rules and the mode allow the effect.
    Rules(ReasonedVerdict),
    /// The effect needs approval, and an earlier approval in this session covers it.
    EarlierApproval {
        /// The scope that the user approved.
        scope: Scope,
        /// The verdict that requires approval.
        verdict: ReasonedVerdict,
    },
}

/// A decision without a permit, with the checks that led to it.
#[derive(Debug)]
#[non_exhaustive]
pub struct DecisionExplanation<'a> {
    /// The decision about the effect.
    pub outcome: DecisionOutcome,
    /// The evaluation of each action of the effect; empty for a plan, which no rule covers.
    pub evaluations: Vec<ActionEvaluation<'a>>,
}

/// The decision about an effect, without the right to cause it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DecisionOutcome {
    /// The effect may happen, for this reason.
    Allow(AllowBasis),
    /// The effect needs approval.
    Ask {
        /// The scope that "don't ask again" would cover; `None` if that is not offered.
        scope: Option<Scope>,
    },
    /// The effect is denied.
    Deny(Denial),
}

/// The authority that decides about effects by the policy, the mode and the approvals of this
/// session. The approvals exist only here, in memory (R-40).
///
/// ```
/// use cofferdam_policy::{
///     ApprovalMode, Authorization, Authorizer, Effect, ToolId, WorkspacePath,
/// };
///
/// let authorizer = Authorizer::new(ApprovalMode::Ask, true);
/// let directory = WorkspacePath::parse("", None)?;
/// let line = "make test".to_owned();
/// let effect = Effect::Command { line, directory, background: false };
/// match authorizer.authorize(ToolId::new("bash", ""), "{}", effect) {
///     Authorization::Allow(permit, _) => panic!("no rule allows {:?}", permit.effect()),
///     Authorization::Deny(denial) => panic!("{}", denial.reason),
///     Authorization::Ask(pending) => {
///         assert_eq!(pending.question().tool, "bash");
///         // The user approved it. The permit allows exactly this command, once.
///         let permit = authorizer.approve(pending).expect("nothing has changed since");
///         assert!(matches!(permit.into_effect(), Effect::Command { .. }));
///     }
/// }
/// # Ok::<(), cofferdam_policy::PathError>(())
/// ```
#[derive(Debug)]
pub struct Authorizer {
    id: AuthorizerId,
    mode: ApprovalMode,
    /// The mode before plan mode. It applies again after a plan is accepted.
    mode_before_plan: ApprovalMode,
    policy: Arc<Policy>,
    has_approver: bool,
    approved_scopes: Vec<Scope>,
    /// The user's policy file, to which "always" adds rules.
    rules_file: Option<String>,
}

impl DecisionExplanation<'_> {
    /// Returns the evaluation that decided: the first of the strictest ones.
    pub fn decisive(&self) -> Option<&ActionEvaluation<'_>> {
        // Among equal verdicts, one that cannot be remembered counts as stricter.
        let strictness = |evaluation: &ActionEvaluation<'_>| {
            (evaluation.finding.verdict, !evaluation.finding.is_rememberable())
        };
        self.evaluations.iter().reduce(|a, b| if strictness(b) > strictness(a) { b } else { a })
    }
}

impl DecisionOutcome {
    /// Returns the verdict of this decision.
    pub fn verdict(&self) -> Verdict {
        match self {
            Self::Allow(_) => Verdict::Allow,
            Self::Ask { .. } => Verdict::Ask,
            Self::Deny(_) => Verdict::Deny,
        }
    }
}

impl Authorizer {
    /// Creates an authorizer without approvals and rules. With `has_approver` false, everything
    /// that needs approval is denied.
    pub fn new(mode: ApprovalMode, has_approver: bool) -> Self {
        let id = AuthorizerId::new();
        Self {
            id,
            mode,
            mode_before_plan: ApprovalMode::default(),
            policy: Arc::default(),
            has_approver,
            approved_scopes: Vec::new(),
            rules_file: None,
        }
    }

    /// Replaces the policy, and adjusts the mode to it.
    #[must_use]
    pub fn with_policy(self, policy: Arc<Policy>) -> Self {
        let mut authorizer = Self { policy, ..self };
        authorizer.set_mode(authorizer.mode);
        authorizer
    }

    /// Updates the known targets of links in the workspace; see [`Policy::learn_aliases`].
    pub fn learn_aliases<'a>(
        &mut self,
        aliases: impl Iterator<Item = (&'a WorkspacePath, &'a WorkspacePath)>,
        is_complete: bool,
    ) {
        Arc::make_mut(&mut self.policy).learn_aliases(aliases, is_complete);
    }

    /// Returns the mode in force.
    pub fn mode(&self) -> ApprovalMode {
        self.mode
    }

    /// Returns the mode that applies if `wanted` is requested: the same mode, or the nearest
    /// stricter one that the policy allows.
    pub fn effective_mode(&self, wanted: ApprovalMode) -> ApprovalMode {
        self.policy.nearest_mode(wanted).unwrap_or(ApprovalMode::Plan)
    }

    /// Changes the mode to `mode`, or to the nearest stricter one that the policy allows. Approved
    /// scopes stay approved, as far as the new mode asks for approval at all.
    pub fn set_mode(&mut self, mode: ApprovalMode) {
        if self.mode != ApprovalMode::Plan {
            self.mode_before_plan = self.mode;
        }
        self.mode = self.effective_mode(mode);
    }

    /// Decides about one effect of one call.
    pub fn authorize<'t>(
        &self,
        tool: impl Into<ToolId<'t>>,
        arguments: &str,
        effect: Effect,
    ) -> Authorization {
        let tool = tool.into();
        let effect = match effect {
            // The tool that proposes a plan has no influence on the mode that follows.
            Effect::Plan { text, then: _ } => Effect::Plan { text, then: self.mode_after_plan() },
            Effect::Command { .. }
            | Effect::Input { .. }
            | Effect::Write { .. }
            | Effect::Fetch { .. }
            | Effect::Connect { .. }
            | Effect::Confirmed => effect,
        };
        let outcome = self.explain(tool, &effect).outcome;
        match outcome {
            DecisionOutcome::Allow(basis) => {
                Authorization::Allow(self.issue_permit(tool, effect), basis)
            }
            DecisionOutcome::Deny(denial) => Authorization::Deny(denial),
            DecisionOutcome::Ask { scope } => {
                let question = ApprovalQuestion {
                    lasting: self.lasting_rule(tool, &effect),
                    tool: tool.name.to_owned(),
                    arguments: arguments.to_owned(),
                    effect,
                    scope,
                };
                Authorization::Ask(PendingApproval {
                    question,
                    tool_digest: tool.digest.to_owned(),
                    authorizer: self.id.clone(),
                })
            }
        }
    }

    /// Returns the decision of [`authorize`](Self::authorize) about an effect, with every check.
    pub fn explain<'t, 'a>(
        &self,
        tool: impl Into<ToolId<'t>>,
        effect: &'a Effect,
    ) -> DecisionExplanation<'a> {
        let tool = tool.into();
        let evaluations = self.policy.evaluate_effect(self.mode, tool, effect);
        let mut explanation = DecisionExplanation { outcome: self.plan_outcome(), evaluations };
        if let Some(outcome) =
            explanation.decisive().map(|decisive| self.outcome(tool, effect, decisive))
        {
            explanation.outcome = outcome;
        }
        explanation
    }

    /// Turns the user's approval into a permit for this effect, once.
    ///
    /// # Errors
    ///
    /// Returns a denial in these cases:
    /// - another authorizer asked the question;
    /// - accepting the plan would now select another mode;
    /// - the effect is now denied, because the mode or the policy has changed.
    pub fn approve(&self, pending: PendingApproval) -> Result<Permit, Denial> {
        let PendingApproval { question, tool_digest, authorizer } = pending;
        if authorizer != self.id {
            return Err(Denial::without_remedy(
                DenialCode::NobodyToAsk,
                "the approval belongs to another session.",
            ));
        }
        if let Effect::Plan { then, .. } = question.effect
            && self.mode == ApprovalMode::Plan
            && then != self.mode_after_plan()
        {
            return Err(Denial::without_remedy(
                DenialCode::Mode,
                "the mode changed while the plan was shown, so accepting the plan would now \
                    select another mode.",
            ));
        }
        let tool = ToolId::new(&question.tool, &tool_digest);
        match self.explain(tool, &question.effect).outcome {
            DecisionOutcome::Allow(_) | DecisionOutcome::Ask { .. } => {
                Ok(self.issue_permit(tool, question.effect))
            }
            DecisionOutcome::Deny(denial) => Err(denial),
        }
    }

    /// Returns the denial of an effect whose question got no answer, with what would allow it.
    /// `reason` says why, as a clause.
    pub fn deny_unanswered(&self, pending: PendingApproval, reason: &str) -> Denial {
        let PendingApproval { question, tool_digest, .. } = pending;
        let tool = ToolId::new(&question.tool, &tool_digest);
        let explanation = self.explain(tool, &question.effect);
        let Some(ActionEvaluation { action, finding, .. }) = explanation.decisive() else {
            let reason = format!("{} needs approval, and {reason}.", question.tool);
            return Denial::without_remedy(DenialCode::NobodyToAsk, reason);
        };
        let what = format!("{} needs approval to {action}, and {reason}.", question.tool);
        let mut remedy = self.policy.remedy(tool, self.mode, action, finding);
        if let Some(rule) = self.policy.find_allowing_rule(tool, self.mode, &question.effect) {
            let file = self.rules_file.as_deref().unwrap_or("their policy file");
            remedy.push_str(&format!(" The rule for the policy file: {rule} in {file}."));
        }
        Denial::new(DenialCode::NobodyToAsk, what, remedy)
    }

    fn issue_permit(&self, tool: ToolId<'_>, effect: Effect) -> Permit {
        let workspace_access = match &effect {
            Effect::Command { line, .. } => self.policy.workspace_access(tool, line),
            Effect::Input { .. }
            | Effect::Write { .. }
            | Effect::Fetch { .. }
            | Effect::Connect { .. }
            | Effect::Confirmed
            | Effect::Plan { .. } => WorkspaceAccess::default(),
        };
        Permit { effect, workspace_access }
    }

    /// Turns the user's approval of the whole scope into a permit, and a [`ScopeApproval`] if the
    /// question has a scope.
    ///
    /// # Errors
    ///
    /// Returns a denial in the same cases as [`approve`](Self::approve).
    pub fn approve_scope(
        &self,
        pending: PendingApproval,
    ) -> Result<(Permit, Option<ScopeApproval>), Denial> {
        let approval = pending.question.scope.clone().map(|scope| ScopeApproval { scope });
        self.approve(pending).map(|permit| (permit, approval))
    }

    /// Remembers an approved scope, so that its effects need no further approval in this session.
    pub fn remember(&mut self, approval: ScopeApproval) {
        self.approved_scopes.push(approval.scope);
    }

    /// Ends plan mode with the permit of an accepted plan, and returns the mode in force. A permit
    /// for any other effect leaves the mode unchanged.
    pub fn end_plan_mode(&mut self, permit: Permit) -> ApprovalMode {
        match permit.into_effect() {
            Effect::Plan { then, .. } => self.set_mode(then),
            Effect::Command { .. }
            | Effect::Input { .. }
            | Effect::Write { .. }
            | Effect::Fetch { .. }
            | Effect::Connect { .. }
            | Effect::Confirmed => {}
        }
        self.mode
    }

    fn outcome(
        &self,
        tool: ToolId<'_>,
        effect: &Effect,
        decisive: &ActionEvaluation<'_>,
    ) -> DecisionOutcome {
        let ActionEvaluation { action: act, finding, steps: _ } = decisive;
        match finding.verdict {
            Verdict::Allow => DecisionOutcome::Allow(AllowBasis::Rules(finding.clone())),
            Verdict::Deny => {
                let denial = denial_for(tool.name, effect, act, finding);
                DecisionOutcome::Deny(self.with_remedy(denial, tool, act, finding))
            }
            Verdict::Ask => {
                let approved = self
                    .approved_scopes
                    .iter()
                    .find(|scope| finding.is_rememberable() && scope.covers(tool.name, effect));
                match approved {
                    Some(scope) => DecisionOutcome::Allow(AllowBasis::EarlierApproval {
                        scope: scope.clone(),
                        verdict: finding.clone(),
                    }),
                    None if self.has_approver => DecisionOutcome::Ask {
                        scope: effect.scope(tool.name).filter(|_| finding.is_rememberable()),
                    },
                    None => {
                        let denial = no_approver_denial(tool.name, act, finding);
                        DecisionOutcome::Deny(self.with_remedy(denial, tool, act, finding))
                    }
                }
            }
        }
    }

    /// Replaces the remedy of a denial with one that the policy permits.
    fn with_remedy(
        &self,
        denial: Denial,
        tool: ToolId<'_>,
        act: &Action<'_>,
        finding: &ReasonedVerdict,
    ) -> Denial {
        Denial { remedy: Some(self.policy.remedy(tool, self.mode, act, finding)), ..denial }
    }

    /// Returns the mode that applies after a plan is accepted.
    fn mode_after_plan(&self) -> ApprovalMode {
        self.effective_mode(self.mode_before_plan)
    }

    /// Returns the decision about a plan. In plan mode the user has to accept it; in any other mode
    /// the plan is denied.
    fn plan_outcome(&self) -> DecisionOutcome {
        let denial = if self.mode != ApprovalMode::Plan {
            Denial::new(
                DenialCode::Mode,
                format!(
                    "plans are only accepted in plan mode, and the session is in mode `{}`.",
                    self.mode
                ),
                "Do the work instead of presenting a plan.",
            )
        } else if self.mode_after_plan() == ApprovalMode::Plan {
            Denial::new(
                DenialCode::Mode,
                "the policy allows only plan mode, so an accepted plan cannot be carried out.",
                "Write the plan as your answer.",
            )
        } else if !self.has_approver {
            Denial::new(
                DenialCode::NobodyToAsk,
                "a plan needs approval, and there is no terminal to ask for it.",
                "Write the plan as your answer; the user can read it and restart in another mode.",
            )
        } else {
            return DecisionOutcome::Ask { scope: None };
        };
        DecisionOutcome::Deny(denial)
    }
}

fn no_approver_denial(tool: &str, act: &Action<'_>, finding: &ReasonedVerdict) -> Denial {
    let what = format!("{tool} needs approval to {act}, and there is no terminal to ask for it");
    match &finding.reason {
        VerdictReason::Mode(_) | VerdictReason::Reading => {
            Denial::new(DenialCode::NobodyToAsk, what + ".", finding.remedy(act))
        }
        VerdictReason::Rule(_)
        | VerdictReason::Perhaps(_)
        | VerdictReason::NotListed(..)
        | VerdictReason::UnlistedHost(..)
        | VerdictReason::NoNetwork(_)
        | VerdictReason::Listed(_) => {
            Denial::from_verdict(DenialCode::NobodyToAsk, &what, act, finding)
        }
    }
}

fn denial_for(tool: &str, effect: &Effect, act: &Action<'_>, finding: &ReasonedVerdict) -> Denial {
    match &finding.reason {
        VerdictReason::Mode(mode) => Denial::new(
            DenialCode::Mode,
            format!("mode `{mode}` denies changes and commands."),
            finding.remedy(act),
        ),
        VerdictReason::Rule(_)
        | VerdictReason::Perhaps(_)
        | VerdictReason::NotListed(..)
        | VerdictReason::UnlistedHost(..)
        | VerdictReason::NoNetwork(_)
        | VerdictReason::Listed(_)
        | VerdictReason::Reading => {
            let what: Vec<String> = effect.actions().iter().map(ToString::to_string).collect();
            Denial::from_verdict(
                DenialCode::Policy,
                &format!("{tool} may not {}", what.join(", ")),
                act,
                finding,
            )
        }
    }
}

#[cfg(test)]
mod remedy_tests;
#[cfg(test)]
mod tests;
