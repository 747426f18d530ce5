//! Asking the user, one question at a time, and remembering what the answer covers.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use futures_util::future::BoxFuture;
use tokio_util::sync::CancellationToken;

use crate::agent::ActiveTime;
use crate::conversation::ToolCall;
use crate::policy::{
    ApprovalMode, ApprovalQuestion, Authorization, Authorizer, Denial, DenialCode, Effect,
    PendingApproval, Permit, Policy, ScopeApproval,
};
use crate::sandbox::{Gate, GateRuling, ListedFiles, PlanApprovalGate};
use crate::tools::audit_sink::{
    AuditSink, AuthorityChange, CallIdentity, DecisionBasis, DecisionRecord, FinishedCallRecord,
    RecordFailure, RecordedOutcome,
};

/// Denials of one call that get a record each: a guest can ask for what it does not get as fast as
/// it runs.
const MAX_RECORDED_DENIALS: usize = 16;

/// Somebody who can be asked: a dialog at a terminal.
pub trait Approver: Send + Sync {
    /// Shows a question and waits for the answer, as long as it takes. The future may be dropped
    /// when the request is cancelled; the dialog then disappears.
    fn ask_pages<'a>(&'a self, question: &'a ApprovalQuestion) -> BoxFuture<'a, ApprovalAnswer>;
}

/// What a user can answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ApprovalAnswer {
    /// This once.
    Yes,
    /// This, and for the rest of the session all that falls under the question's scope.
    YesForScope,
    /// No. With guidance the model goes on from there; without, the request ends.
    No {
        /// In the user's own words, over as many lines as they like.
        guidance: Option<String>,
    },
}

/// All approvals of a session.
pub struct SessionApprovals {
    authorizer: Mutex<Authorizer>,
    approver: Option<Arc<dyn Approver>>,
    /// Held while a dialog is open, so that there is one at a time.
    dialog_lock: tokio::sync::Mutex<()>,
    consecutive_rejections: AtomicU32,
    active_time: ActiveTime,
    audit_sink: OnceLock<Arc<dyn AuditSink>>,
}

/// What became of the effects of one call.
#[derive(Debug, Default)]
pub(in crate::tools) struct CallDecisions {
    /// What was permitted, in order.
    pub(in crate::tools) permitted: Vec<Effect>,
    /// The user's no, if there was one.
    pub(in crate::tools) rejection: Option<UserRejection>,
    /// How long dialogs were open, or waited for.
    pub(in crate::tools) waited: Duration,
    /// The records of what was decided.
    pub(in crate::tools) record_numbers: Vec<u64>,
    /// How often something was denied.
    pub(in crate::tools) denial_count: usize,
    /// What was denied last.
    pub(in crate::tools) last_denial: Option<Denial>,
}

impl CallDecisions {
    /// Denials that have no record of their own.
    pub(in crate::tools) fn unrecorded_denials(&self) -> u64 {
        self.denial_count.saturating_sub(MAX_RECORDED_DENIALS) as u64
    }
}

/// What may happen, once it is on record.
struct ApprovedEffects<'a> {
    permit: Permit,
    /// What the very decision rests on that made the permit.
    basis: DecisionBasis,
    /// What is remembered of the answer.
    scope_approval: Option<ScopeApproval>,
    /// Nobody else is asked before what the user has approved for the session is remembered.
    dialog_guard: Option<tokio::sync::MutexGuard<'a, ()>>,
}

/// What the judge says of an effect.
enum JudgedEffect<'a> {
    /// It is decided.
    Decided(Result<ApprovedEffects<'a>, Denial>),
    /// Somebody has to be asked.
    NeedsApproval(PendingApproval),
}

/// The user said no.
#[derive(Clone, Debug)]
pub(in crate::tools) struct UserRejection {
    pub(in crate::tools) guidance: Option<String>,
    /// It was a plan that the user did not accept.
    pub(in crate::tools) is_plan: bool,
}

impl SessionApprovals {
    /// Approvals in a mode, with somebody to ask or without.
    pub fn new(mode: ApprovalMode, approver: Option<Arc<dyn Approver>>) -> Self {
        let authorizer = Mutex::new(Authorizer::new(mode, approver.is_some()));
        let (dialog_lock, active_time) = (tokio::sync::Mutex::new(()), ActiveTime::default());
        Self {
            authorizer,
            approver,
            dialog_lock,
            consecutive_rejections: AtomicU32::new(0),
            active_time,
            audit_sink: OnceLock::new(),
        }
    }

    /// Stands still while a dialog is open.
    pub(in crate::tools) fn active_time(&self) -> &ActiveTime {
        &self.active_time
    }

    /// With rules, which hold from now on.
    #[must_use]
    pub fn with_policy(mut self, policy: Arc<Policy>) -> Self {
        let judge = self.authorizer.get_mut().unwrap_or_else(PoisonError::into_inner);
        *judge = Authorizer::new(judge.mode(), self.approver.is_some()).with_policy(policy);
        self
    }

    /// From now on told to a ledger; the first one stays.
    pub fn set_audit_sink(&self, ledger: Arc<dyn AuditSink>) {
        drop(self.audit_sink.set(ledger));
    }

    /// With somebody who keeps account of what calls do.
    #[must_use]
    pub fn with_audit_sink(self, ledger: Arc<dyn AuditSink>) -> Self {
        self.set_audit_sink(ledger);
        self
    }

    /// Whether a call may start: not if it has to be on record, and nothing can be put there.
    pub(in crate::tools) fn check_ready(&self) -> Result<(), Denial> {
        self.audit_sink.get().map_or(Ok(()), |ledger| ledger.check_ready()).map_err(Denial::from)
    }

    /// Puts the end of a call on record.
    pub(in crate::tools) fn record_end(&self, subject: &CallIdentity, ended: &FinishedCallRecord) {
        if let Some(ledger) = self.audit_sink.get() {
            ledger.record_end(subject, ended);
        }
    }

    /// Puts a call on record that does not run.
    pub(in crate::tools) fn record_refusal(&self, call: &ToolCall, problem: &str) {
        if let Some(ledger) = self.audit_sink.get() {
            ledger.record_refusal(call, problem);
        }
    }

    /// The mode in force.
    pub fn mode(&self) -> ApprovalMode {
        lock(&self.authorizer).mode()
    }

    /// Knows where the links of the workspace lead now, so that a change of what a listed link
    /// leads to needs the same approval.
    pub(in crate::tools) fn learn_links(&self, listed: &ListedFiles) {
        lock(&self.authorizer).learn_aliases(listed.aliases(), !listed.is_truncated());
    }

    /// From now on another mode is in force, for calls that are under way too.
    pub fn set_mode(&self, mode: ApprovalMode) {
        // On record is what comes into force, which may be stricter than what is wanted.
        let mode = lock(&self.authorizer).effective_mode(mode);
        if let Some(ledger) = self.audit_sink.get() {
            // Should this be lost where it may not be, then nothing is done on the strength of it
            // either.
            drop(ledger.record_change(&AuthorityChange::ModeChanged(mode)));
        }
        lock(&self.authorizer).set_mode(mode);
    }

    /// A new request begins: what was rejected in the one before it does not count against it
    ///
    pub fn begin_request(&self) {
        self.consecutive_rejections.store(0, Ordering::Relaxed);
    }

    /// How often the user said no since they last said yes.
    pub(in crate::tools) fn consecutive_rejections(&self) -> u32 {
        self.consecutive_rejections.load(Ordering::Relaxed)
    }

    /// Decides on the effects of a call while it runs. One that is being stopped begins nothing
    /// more.
    pub(in crate::tools) fn gate(
        self: &Arc<Self>,
        subject: &Arc<CallIdentity>,
        verdicts: &Arc<Mutex<CallDecisions>>,
        cancel: &CancellationToken,
    ) -> Gate {
        let (approvals, subject, verdicts, cancel) =
            (Arc::clone(self), Arc::clone(subject), Arc::clone(verdicts), cancel.clone());
        Arc::new(move |effect| {
            let (approvals, subject) = (Arc::clone(&approvals), Arc::clone(&subject));
            let (verdicts, cancel) = (Arc::clone(&verdicts), cancel.clone());
            Box::pin(async move {
                match cancel.is_cancelled() {
                    true => GateRuling::Denied(Denial::without_remedy(
                        DenialCode::Cancelled,
                        "the user stopped the request.",
                    )),
                    false => approvals.authorize(&subject, effect, &cancel, &verdicts).await,
                }
            })
        })
    }

    /// Shows a plan of a call while it runs, and ends plan mode if the user accepts it.
    pub(in crate::tools) fn plan_gate(
        self: &Arc<Self>,
        subject: &Arc<CallIdentity>,
        verdicts: &Arc<Mutex<CallDecisions>>,
        cancel: &CancellationToken,
    ) -> PlanApprovalGate {
        let (approvals, gate) = (Arc::clone(self), self.gate(subject, verdicts, cancel));
        Arc::new(move |text| {
            // The judge puts in the mode that follows; a guest has no say in it.
            let (approvals, asked) = (
                Arc::clone(&approvals),
                gate(Effect::Plan { text, then: ApprovalMode::default() }),
            );
            Box::pin(async move {
                match asked.await {
                    GateRuling::Permitted(permit) => {
                        Ok(lock(&approvals.authorizer).end_plan_mode(permit))
                    }
                    GateRuling::Denied(denial) => Err(denial),
                }
            })
        })
    }

    /// Decides on an effect, asking if need be, and writes down what was decided: before it can
    /// happen.
    pub(in crate::tools) async fn authorize(
        &self,
        subject: &CallIdentity,
        effect: Effect,
        cancel: &CancellationToken,
        verdicts: &Mutex<CallDecisions>,
    ) -> GateRuling {
        // A guest that takes no for no answer does not get to ask again.
        if lock(verdicts).rejection.is_some() {
            return GateRuling::Denied(Denial::without_remedy(
                DenialCode::RejectedByUser,
                "the user has rejected this call.",
            ));
        }
        let asked = Instant::now();
        let decision = self.decide(subject, effect.clone(), cancel, verdicts).await;
        let waited = asked.elapsed();
        let (effect, ruled) = match &decision {
            Ok(approved) => {
                (approved.permit.effect().clone(), RecordedOutcome::Allowed(approved.basis.clone()))
            }
            Err(denial) => (effect, RecordedOutcome::Denied(denial.clone())),
        };
        let recorded = self.record_decision(
            subject,
            &DecisionRecord { effect, outcome: ruled, waited },
            verdicts,
        );
        let mut verdicts = lock(verdicts);
        verdicts.waited += waited;
        let decision =
            decision.and_then(|approved| recorded.map(|()| approved).map_err(Denial::from));
        verdicts.last_denial = decision.as_ref().err().cloned().or(verdicts.last_denial.take());
        match decision {
            Ok(ApprovedEffects {
                permit,
                basis: _,
                scope_approval: scope,
                dialog_guard: _until_it_is_remembered,
            }) => {
                // What nobody could put on record is not remembered either.
                if let Some(scope) = scope {
                    lock(&self.authorizer).remember(scope);
                }
                verdicts.permitted.push(permit.effect().clone());
                GateRuling::Permitted(permit)
            }
            Err(denial) => GateRuling::Denied(denial),
        }
    }

    fn record_decision(
        &self,
        subject: &CallIdentity,
        decided: &DecisionRecord,
        verdicts: &Mutex<CallDecisions>,
    ) -> Result<(), RecordFailure> {
        if let RecordedOutcome::Denied(_) = decided.outcome {
            let mut verdicts = lock(verdicts);
            verdicts.denial_count += 1;
            if verdicts.denial_count > MAX_RECORDED_DENIALS {
                return Ok(());
            }
        }
        let Some(ledger) = self.audit_sink.get() else { return Ok(()) };
        let number = ledger.record_decision(subject, decided)?;
        lock(verdicts).record_numbers.extend(number);
        Ok(())
    }

    async fn decide(
        &self,
        subject: &CallIdentity,
        effect: Effect,
        cancel: &CancellationToken,
        verdicts: &Mutex<CallDecisions>,
    ) -> Result<ApprovedEffects<'_>, Denial> {
        match self.evaluate(subject, effect.clone()) {
            JudgedEffect::Decided(decided) => return decided,
            JudgedEffect::NeedsApproval(_) => {}
        }
        let one_at_a_time = self.dialog_lock.lock().await;
        // The dialog before may have approved a scope that covers this one, and the mode may be
        // another one. Whichever decision counts brings its own reason along.
        let pending = match self.evaluate(subject, effect) {
            JudgedEffect::Decided(decided) => return decided,
            JudgedEffect::NeedsApproval(pending) => pending,
        };
        let Some(approver) = &self.approver else {
            return Err(Denial::without_remedy(DenialCode::NobodyToAsk, "there is nobody to ask."));
        };
        let of_a_plan = matches!(pending.question().effect, Effect::Plan { .. });
        let _waits_for_the_user = self.active_time.pause();
        let answer = tokio::select! {
            // First: a dialog that ends with the request has no answer to give.
            biased;
            () = cancel.cancelled() => return Err(Denial::without_remedy(DenialCode::Cancelled, "the user stopped the request.")),
            answer = approver.ask_pages(pending.question()) => answer,
        };
        match answer {
            ApprovalAnswer::Yes => {
                self.consecutive_rejections.store(0, Ordering::Relaxed);
                let permit = lock(&self.authorizer).approve(pending)?;
                Ok(ApprovedEffects {
                    permit,
                    basis: DecisionBasis::UserOnce,
                    scope_approval: None,
                    dialog_guard: Some(one_at_a_time),
                })
            }
            ApprovalAnswer::YesForScope => {
                self.consecutive_rejections.store(0, Ordering::Relaxed);
                let (permit, scope) = lock(&self.authorizer).approve_scope(pending)?;
                let ground = DecisionBasis::UserForScope(
                    scope.as_ref().map(|approval| approval.scope().clone()),
                );
                Ok(ApprovedEffects {
                    permit,
                    basis: ground,
                    scope_approval: scope,
                    dialog_guard: Some(one_at_a_time),
                })
            }
            ApprovalAnswer::No { guidance } => {
                self.consecutive_rejections.fetch_add(1, Ordering::Relaxed);
                let guidance = guidance.filter(|words| !words.trim().is_empty());
                let reason = match &guidance {
                    Some(words) => format!("the user said no, and: {words}"),
                    None => "the user said no.".to_owned(),
                };
                lock(verdicts).rejection = Some(UserRejection { guidance, is_plan: of_a_plan });
                Err(Denial::without_remedy(DenialCode::RejectedByUser, reason))
            }
        }
    }

    /// Decides on an effect as things are now, under one lock.
    fn evaluate(&self, subject: &CallIdentity, effect: Effect) -> JudgedEffect<'_> {
        match lock(&self.authorizer).authorize(subject.tool_id(), &subject.arguments, effect) {
            Authorization::Allow(permit, basis) => JudgedEffect::Decided(Ok(ApprovedEffects {
                permit,
                basis: DecisionBasis::Policy(basis),
                scope_approval: None,
                dialog_guard: None,
            })),
            Authorization::Deny(denial) => JudgedEffect::Decided(Err(denial)),
            Authorization::Ask(pending) => JudgedEffect::NeedsApproval(pending),
        }
    }
}

/// For the tool and its user alike: nothing of a rejected call may be taken as done.
pub(in crate::tools) fn rejection_text(
    tool: &str,
    rejection: &UserRejection,
    before: &[Effect],
) -> String {
    use std::fmt::Write as _;
    let mut text = match &rejection.guidance {
        _ if rejection.is_plan => {
            format!(
                "The user did not accept the plan of this call of {tool}. Plan mode goes on: \
                    change nothing, and do not assume that it succeeded."
            )
        }
        Some(_) => format!(
            "The user rejected this call of {tool}. It was not carried out; do not assume that it \
                succeeded."
        ),
        None => format!(
            "This call of {tool} was cancelled by the user. It was not carried out; do not assume \
                that it succeeded."
        ),
    };
    if !before.is_empty() {
        text.push_str(" Before that, the same call had already done this:");
        for effect in before {
            let _ = match effect {
                Effect::Command { line, .. } => write!(text, "\n- ran `{line}`"),
                Effect::Write { changes, .. } => {
                    changes.iter().try_for_each(|change| write!(text, "\n- {change}"))
                }
                Effect::Fetch { method, url, .. } => {
                    write!(text, "\n- sent a {method} request to {url}")
                }
                Effect::Confirmed => write!(text, "\n- was allowed to start"),
                Effect::Plan { .. } => write!(text, "\n- had a plan accepted"),
            };
        }
        text.push('\n');
    }
    if let Some(guidance) = &rejection.guidance {
        let _ = write!(text, " The user's words:\n\n{guidance}");
    }
    text
}

pub(in crate::tools) fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests;
