//! The one function that decides.

mod permit;

use std::sync::Arc;

use permit::AuthorizerId;
pub use permit::{PendingApproval, Permit, ScopeApproval};

use super::{
    Action, ActionEvaluation, ApprovalMode, ApprovalQuestion, Denial, DenialCode, Effect, Policy,
    ReasonedVerdict, Scope, ToolId, Verdict, VerdictReason, WorkspacePath,
};

/// What becomes of an effect.
#[derive(Debug)]
pub enum Authorization {
    /// It may happen, and why.
    Allow(Permit, AllowBasis),
    /// Somebody has to say so first.
    Ask(PendingApproval),
    /// It will not happen.
    Deny(Denial),
}

/// What a decision to allow rests on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AllowBasis {
    /// Rules and mode allow it.
    Rules(ReasonedVerdict),
    /// Rules and mode ask, and the user approved a scope that covers it earlier in this session.
    EarlierApproval {
        /// What the user approved.
        scope: Scope,
        /// What would have it asked.
        verdict: ReasonedVerdict,
    },
}

/// A decision without the right that comes with it, and how it came about.
#[derive(Debug)]
pub struct DecisionExplanation<'a> {
    /// What is decided.
    pub outcome: DecisionOutcome,
    /// What was found about each act of the effect; nothing about a plan, which no rule is about.
    pub evaluations: Vec<ActionEvaluation<'a>>,
}

/// What is decided about an effect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DecisionOutcome {
    /// It may happen.
    Allow(AllowBasis),
    /// Somebody has to approve it.
    Ask {
        /// What "don't ask again" would cover; `None` where it is not offered.
        scope: Option<Scope>,
    },
    /// It will not happen.
    Deny(Denial),
}

/// Decides on effects, by the policy, the mode and what the user approved in this session. The
/// approvals live here, in memory, and nowhere else.
#[derive(Debug)]
pub struct Authorizer {
    id: AuthorizerId,
    mode: ApprovalMode,
    /// What was in force before plan mode, and is again once a plan is accepted.
    mode_before_plan: ApprovalMode,
    policy: Arc<Policy>,
    has_approver: bool,
    approved_scopes: Vec<Scope>,
}

impl DecisionExplanation<'_> {
    /// The act that decided: the first of the strictest.
    pub fn decisive(&self) -> Option<&ActionEvaluation<'_>> {
        // Of equals, one that may not be remembered.
        let strictness = |evaluation: &ActionEvaluation<'_>| {
            (evaluation.finding.verdict, !evaluation.finding.is_rememberable())
        };
        self.evaluations.iter().reduce(|a, b| if strictness(b) > strictness(a) { b } else { a })
    }
}

impl DecisionOutcome {
    /// In a word.
    pub fn verdict(&self) -> Verdict {
        match self {
            Self::Allow(_) => Verdict::Allow,
            Self::Ask { .. } => Verdict::Ask,
            Self::Deny(_) => Verdict::Deny,
        }
    }
}

impl Authorizer {
    /// A judge that has approved nothing yet and knows no rules. Without someone to ask, what would
    /// be asked is denied.
    pub fn new(mode: ApprovalMode, has_approver: bool) -> Self {
        let id = AuthorizerId::new();
        Self {
            id,
            mode,
            mode_before_plan: ApprovalMode::default(),
            policy: Arc::default(),
            has_approver,
            approved_scopes: Vec::new(),
        }
    }

    /// The same, with rules.
    #[must_use]
    pub fn with_policy(self, policy: Arc<Policy>) -> Self {
        let mut judge = Self { policy, ..self };
        judge.set_mode(judge.mode);
        judge
    }

    /// Knows where the links of the workspace lead now; see [`Policy::learn_aliases`].
    pub fn learn_aliases<'a>(
        &mut self,
        aliases: impl Iterator<Item = (&'a WorkspacePath, &'a WorkspacePath)>,
        is_complete: bool,
    ) {
        Arc::make_mut(&mut self.policy).learn_aliases(aliases, is_complete);
    }

    /// The mode in force.
    pub fn mode(&self) -> ApprovalMode {
        self.mode
    }

    /// The mode that comes into force where this one is wanted: itself, or the nearest stricter one
    /// that the policy allows.
    pub fn effective_mode(&self, wanted: ApprovalMode) -> ApprovalMode {
        self.policy.nearest_mode(wanted).unwrap_or(ApprovalMode::Plan)
    }

    /// From now on another mode is in force, or the nearest stricter one that the policy leaves.
    /// What was approved stays approved, as far as the mode asks at all.
    pub fn set_mode(&mut self, mode: ApprovalMode) {
        if self.mode != ApprovalMode::Plan {
            self.mode_before_plan = self.mode;
        }
        self.mode = self.effective_mode(mode);
    }

    /// Decides on one effect of one call.
    pub fn authorize<'t>(
        &self,
        tool: impl Into<ToolId<'t>>,
        arguments: &str,
        effect: Effect,
    ) -> Authorization {
        let tool = tool.into();
        let effect = match effect {
            // Whoever proposes a plan has no say in what follows.
            Effect::Plan { text, then: _ } => Effect::Plan { text, then: self.mode_after_plan() },
            Effect::Command { .. }
            | Effect::Write { .. }
            | Effect::Fetch { .. }
            | Effect::Confirmed => effect,
        };
        let outcome = self.explain(tool, &effect).outcome;
        match outcome {
            DecisionOutcome::Allow(basis) => Authorization::Allow(Permit { effect }, basis),
            DecisionOutcome::Deny(denial) => Authorization::Deny(denial),
            DecisionOutcome::Ask { scope } => {
                let question = ApprovalQuestion {
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

    /// What [`decide`](Self::authorize) decides about an effect, with every check that it made.
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

    /// Makes a permit of the user's yes, this once. What was asked by another judge is denied, and
    /// so is what this one would deny by now, since the mode is another one.
    pub fn approve(&self, pending: PendingApproval) -> Result<Permit, Denial> {
        let PendingApproval { question, tool_digest, authorizer: judge } = pending;
        if judge != self.id {
            return Err(Denial::without_remedy(
                DenialCode::NobodyToAsk,
                "the user was asked in another session, whose answer does not count here.",
            ));
        }
        if let Effect::Plan { then, .. } = question.effect
            && self.mode == ApprovalMode::Plan
            && then != self.mode_after_plan()
        {
            return Err(Denial::without_remedy(
                DenialCode::Mode,
                "the mode was changed while the plan was shown, so that it leads to another mode \
                    by now.",
            ));
        }
        match self.explain(ToolId::new(&question.tool, &tool_digest), &question.effect).outcome {
            DecisionOutcome::Allow(_) | DecisionOutcome::Ask { .. } => {
                Ok(Permit { effect: question.effect })
            }
            DecisionOutcome::Deny(denial) => Err(denial),
        }
    }

    /// The same for the user's yes to the whole scope of the question, if it has one.
    pub fn approve_scope(
        &self,
        pending: PendingApproval,
    ) -> Result<(Permit, Option<ScopeApproval>), Denial> {
        let approval = pending.question.scope.clone().map(|scope| ScopeApproval { scope });
        self.approve(pending).map(|permit| (permit, approval))
    }

    /// Does not ask again, in this session, for what falls under a scope.
    pub fn remember(&mut self, approval: ScopeApproval) {
        self.approved_scopes.push(approval.scope);
    }

    /// Ends plan mode, as the user's yes to a plan permits. Returns the mode in force, which a
    /// permit for anything else leaves as it is.
    pub fn end_plan_mode(&mut self, permit: Permit) -> ApprovalMode {
        match permit.into_effect() {
            Effect::Plan { then, .. } => self.set_mode(then),
            Effect::Command { .. }
            | Effect::Write { .. }
            | Effect::Fetch { .. }
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

    /// A denial that advises what the policy allows.
    fn with_remedy(
        &self,
        denial: Denial,
        tool: ToolId<'_>,
        act: &Action<'_>,
        finding: &ReasonedVerdict,
    ) -> Denial {
        Denial { remedy: Some(self.policy.remedy(tool, self.mode, act, finding)), ..denial }
    }

    /// The mode that an accepted plan leads to.
    fn mode_after_plan(&self) -> ApprovalMode {
        self.effective_mode(self.mode_before_plan)
    }

    /// A plan is accepted in plan mode, by whoever can be asked, whatever came before it; elsewhere
    /// there is nothing to accept.
    fn plan_outcome(&self) -> DecisionOutcome {
        let denial = if self.mode != ApprovalMode::Plan {
            Denial::new(
                DenialCode::Mode,
                format!(
                    "the session is in mode `{}` and not in plan mode, so there is no plan to \
                        accept.",
                    self.mode
                ),
                "Go on with the work itself.",
            )
        } else if self.mode_after_plan() == ApprovalMode::Plan {
            Denial::new(
                DenialCode::Mode,
                "the policy leaves no mode but plan mode, so there is nothing that a plan could \
                    lead to.",
                "Give the plan as your answer.",
            )
        } else if !self.has_approver {
            Denial::new(
                DenialCode::NobodyToAsk,
                "a plan is accepted by the user, and there is no terminal to ask at.",
                "Give the plan as your answer; the user can read it there and start again in \
                    another mode.",
            )
        } else {
            return DecisionOutcome::Ask { scope: None };
        };
        DecisionOutcome::Deny(denial)
    }
}

fn no_approver_denial(tool: &str, act: &Action<'_>, finding: &ReasonedVerdict) -> Denial {
    let what = format!("{tool} needs an approval to {act}, and there is no terminal to ask at");
    match &finding.reason {
        VerdictReason::Mode(_) | VerdictReason::Reading => {
            Denial::new(DenialCode::NobodyToAsk, what + ".", finding.remedy(act))
        }
        VerdictReason::Rule(_)
        | VerdictReason::Perhaps(_)
        | VerdictReason::NotListed(..)
        | VerdictReason::Listed(_) => {
            Denial::from_verdict(DenialCode::NobodyToAsk, &what, act, finding)
        }
    }
}

fn denial_for(tool: &str, effect: &Effect, act: &Action<'_>, finding: &ReasonedVerdict) -> Denial {
    match &finding.reason {
        VerdictReason::Mode(mode) => Denial::new(
            DenialCode::Mode,
            format!("in mode `{mode}` nothing is changed and no command runs."),
            finding.remedy(act),
        ),
        VerdictReason::Rule(_)
        | VerdictReason::Perhaps(_)
        | VerdictReason::NotListed(..)
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
mod tests;
