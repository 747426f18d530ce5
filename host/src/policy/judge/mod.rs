//! The one function that decides.

mod permit;

use std::sync::Arc;

use permit::Identity;
pub use permit::{PendingApproval, Permit, ScopeApproval};

use super::{Because, Code, Deed, Denial, Effect, Evaluation, Finding, Mode, Policy, Question, Scope, ToolId, Verdict, WorkspacePath};

/// What becomes of an effect.
#[derive(Debug)]
pub enum Decision {
    /// It may happen, and why.
    Allow(Permit, Basis),
    /// Somebody has to say so first.
    Ask(PendingApproval),
    /// It will not happen.
    Deny(Denial),
}

/// What a decision to allow rests on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Basis {
    /// Rules and mode allow it.
    Rules(Finding),
    /// Rules and mode ask, and the user approved a scope that covers it earlier in this session.
    EarlierApproval {
        /// What the user approved.
        scope: Scope,
        /// What would have it asked.
        asked: Finding,
    },
}

/// A decision without the right that comes with it, and how it came about.
#[derive(Debug)]
pub struct Explanation<'a> {
    /// What is decided.
    pub outcome: Outcome,
    /// What was found about each act of the effect; nothing about a plan, which no rule is about.
    pub evaluations: Vec<Evaluation<'a>>,
}

/// What is decided about an effect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It may happen.
    Allow(Basis),
    /// Somebody has to approve it.
    Ask {
        /// What "don't ask again" would cover; `None` where it is not offered.
        scope: Option<Scope>,
    },
    /// It will not happen.
    Deny(Denial),
}

/// Decides on effects, by the policy, the mode and what the user approved in this session. The approvals live here, in
/// memory, and nowhere else.
#[derive(Debug)]
pub struct Judge {
    identity: Identity,
    mode: Mode,
    /// What was in force before plan mode, and is again once a plan is accepted.
    before_plan: Mode,
    policy: Arc<Policy>,
    someone_to_ask: bool,
    approved: Vec<Scope>,
}

impl Explanation<'_> {
    /// The act that decided: the first of the strictest.
    pub fn decisive(&self) -> Option<&Evaluation<'_>> {
        // Of equals, one that may not be remembered.
        let strictness = |evaluation: &Evaluation<'_>| (evaluation.finding.verdict, !evaluation.finding.may_be_remembered());
        self.evaluations.iter().reduce(|a, b| if strictness(b) > strictness(a) { b } else { a })
    }
}

impl Outcome {
    /// In a word.
    pub fn verdict(&self) -> Verdict {
        match self {
            Self::Allow(_) => Verdict::Allow,
            Self::Ask { .. } => Verdict::Ask,
            Self::Deny(_) => Verdict::Deny,
        }
    }
}

impl Judge {
    /// A judge that has approved nothing yet and knows no rules. Without someone to ask, what would be asked is denied.
    pub fn new(mode: Mode, someone_to_ask: bool) -> Self {
        let identity = Identity::new();
        Self { identity, mode, before_plan: Mode::default(), policy: Arc::default(), someone_to_ask, approved: Vec::new() }
    }

    /// The same, with rules.
    #[must_use]
    pub fn under(self, policy: Arc<Policy>) -> Self {
        let mut judge = Self { policy, ..self };
        judge.set_mode(judge.mode);
        judge
    }

    /// Knows where the links of the workspace lead now; see [`Policy::learn_aliases`].
    pub fn learn_aliases<'a>(&mut self, aliases: impl Iterator<Item = (&'a WorkspacePath, &'a WorkspacePath)>, is_complete: bool) {
        Arc::make_mut(&mut self.policy).learn_aliases(aliases, is_complete);
    }

    /// The mode in force.
    pub fn mode(&self) -> Mode {
        self.mode
    }

    /// The mode that comes into force where this one is wanted: itself, or the nearest stricter one that the policy allows.
    pub fn mode_for(&self, wanted: Mode) -> Mode {
        self.policy.nearest(wanted).unwrap_or(Mode::Plan)
    }

    /// From now on another mode is in force, or the nearest stricter one that the policy leaves. What was approved stays
    /// approved, as far as the mode asks at all.
    pub fn set_mode(&mut self, mode: Mode) {
        if self.mode != Mode::Plan {
            self.before_plan = self.mode;
        }
        self.mode = self.mode_for(mode);
    }

    /// Decides on one effect of one call.
    pub fn decide<'t>(&self, tool: impl Into<ToolId<'t>>, arguments: &str, effect: Effect) -> Decision {
        let tool = tool.into();
        let effect = match effect {
            // Whoever proposes a plan has no say in what follows.
            Effect::Plan { text, then: _ } => Effect::Plan { text, then: self.mode_after_plan() },
            Effect::Command { .. } | Effect::Write { .. } | Effect::Fetch { .. } | Effect::Confirmed => effect,
        };
        let outcome = self.explain(tool, &effect).outcome;
        match outcome {
            Outcome::Allow(basis) => Decision::Allow(Permit { effect }, basis),
            Outcome::Deny(denial) => Decision::Deny(denial),
            Outcome::Ask { scope } => {
                let question = Question { tool: tool.name.to_owned(), arguments: arguments.to_owned(), effect, scope };
                Decision::Ask(PendingApproval { question, tool_digest: tool.digest.to_owned(), judge: self.identity.clone() })
            }
        }
    }

    /// What [`decide`](Self::decide) decides about an effect, with every check that it made.
    pub fn explain<'t, 'a>(&self, tool: impl Into<ToolId<'t>>, effect: &'a Effect) -> Explanation<'a> {
        let tool = tool.into();
        let evaluations = self.policy.evaluate_effect(self.mode, tool, effect);
        let mut explanation = Explanation { outcome: self.about_plan(), evaluations };
        if let Some(outcome) = explanation.decisive().map(|decisive| self.outcome(tool, effect, decisive)) {
            explanation.outcome = outcome;
        }
        explanation
    }

    /// Makes a permit of the user's yes, this once. What was asked by another judge is denied, and so is what this one would
    /// deny by now, since the mode is another one.
    pub fn approve(&self, pending: PendingApproval) -> Result<Permit, Denial> {
        let PendingApproval { question, tool_digest, judge } = pending;
        if judge != self.identity {
            return Err(Denial::fixed(Code::NobodyToAsk, "the user was asked in another session, whose answer does not count here."));
        }
        if let Effect::Plan { then, .. } = question.effect
            && self.mode == Mode::Plan
            && then != self.mode_after_plan()
        {
            return Err(Denial::fixed(
                Code::Mode,
                "the mode was changed while the plan was shown, so that it leads to another mode by now.",
            ));
        }
        match self.explain(ToolId::new(&question.tool, &tool_digest), &question.effect).outcome {
            Outcome::Allow(_) | Outcome::Ask { .. } => Ok(Permit { effect: question.effect }),
            Outcome::Deny(denial) => Err(denial),
        }
    }

    /// The same for the user's yes to the whole scope of the question, if it has one.
    pub fn approve_scope(&self, pending: PendingApproval) -> Result<(Permit, Option<ScopeApproval>), Denial> {
        let approval = pending.question.scope.clone().map(|scope| ScopeApproval { scope });
        self.approve(pending).map(|permit| (permit, approval))
    }

    /// Does not ask again, in this session, for what falls under a scope.
    pub fn remember(&mut self, approval: ScopeApproval) {
        self.approved.push(approval.scope);
    }

    /// Ends plan mode, as the user's yes to a plan permits. Returns the mode in force, which a permit for anything else leaves as it is.
    pub fn end_plan_mode(&mut self, permit: Permit) -> Mode {
        match permit.into_effect() {
            Effect::Plan { then, .. } => self.set_mode(then),
            Effect::Command { .. } | Effect::Write { .. } | Effect::Fetch { .. } | Effect::Confirmed => {}
        }
        self.mode
    }

    fn outcome(&self, tool: ToolId<'_>, effect: &Effect, decisive: &Evaluation<'_>) -> Outcome {
        let Evaluation { act, finding, steps: _ } = decisive;
        match finding.verdict {
            Verdict::Allow => Outcome::Allow(Basis::Rules(finding.clone())),
            Verdict::Deny => Outcome::Deny(denied(tool.name, effect, act, finding)),
            Verdict::Ask => {
                let approved = self.approved.iter().find(|scope| finding.may_be_remembered() && scope.covers(tool.name, effect));
                match approved {
                    Some(scope) => Outcome::Allow(Basis::EarlierApproval { scope: scope.clone(), asked: finding.clone() }),
                    None if self.someone_to_ask => Outcome::Ask { scope: effect.scope(tool.name).filter(|_| finding.may_be_remembered()) },
                    None => Outcome::Deny(nobody_to_ask(tool.name, act, finding)),
                }
            }
        }
    }

    /// The mode that an accepted plan leads to.
    fn mode_after_plan(&self) -> Mode {
        self.mode_for(self.before_plan)
    }

    /// A plan is accepted in plan mode, by whoever can be asked, whatever came before it; elsewhere there is nothing to accept.
    fn about_plan(&self) -> Outcome {
        let denial = if self.mode != Mode::Plan {
            Denial::new(
                Code::Mode,
                format!("the session is in mode `{}` and not in plan mode, so there is no plan to accept.", self.mode),
                "Go on with the work itself.",
            )
        } else if self.mode_after_plan() == Mode::Plan {
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
            return Outcome::Ask { scope: None };
        };
        Outcome::Deny(denial)
    }
}

fn nobody_to_ask(tool: &str, act: &Deed<'_>, finding: &Finding) -> Denial {
    let what = format!("{tool} needs an approval to {act}, and there is no terminal to ask at");
    match &finding.because {
        Because::Mode(_) | Because::Reading => Denial::new(Code::NobodyToAsk, what + ".", finding.what_would_change_it(act)),
        Because::Rule(_) | Because::Perhaps(_) | Because::NotListed(..) | Because::Listed(_) => {
            Denial::found(Code::NobodyToAsk, &what, act, finding)
        }
    }
}

fn denied(tool: &str, effect: &Effect, act: &Deed<'_>, finding: &Finding) -> Denial {
    match &finding.because {
        Because::Mode(mode) => {
            Denial::new(Code::Mode, format!("in mode `{mode}` nothing is changed and no command runs."), finding.what_would_change_it(act))
        }
        Because::Rule(_) | Because::Perhaps(_) | Because::NotListed(..) | Because::Listed(_) | Because::Reading => {
            let what: Vec<String> = effect.acts().iter().map(ToString::to_string).collect();
            Denial::found(Code::Policy, &format!("{tool} may not {}", what.join(", ")), act, finding)
        }
    }
}

#[cfg(test)]
mod tests;
