//! Approval of effects: asks the user, one dialog at a time, and remembers the approved scopes.

mod approver;
mod gates;
mod rule_file;

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use tokio_util::sync::CancellationToken;
use tracing::debug;

use crate::agent::ActiveTime;
use crate::conversation::ToolCall;
use crate::policy::{
    ApprovalMode, Authorization, Authorizer, Denial, DenialCode, Effect, PendingApproval, Permit,
    Policy, ScopeApproval,
};
use crate::sandbox::{GateRuling, ListedFiles};
use crate::tools::audit_sink::{
    AuditSink, AuthorityChange, CallIdentity, DecisionBasis, DecisionRecord, FinishedCallRecord,
    RecordFailure, RecordedOutcome,
};

pub use approver::{ApprovalAnswer, Approver};
pub use rule_file::UserRuleFile;

/// The number of denials of one call that get a record each. A guest can request denied effects as
/// fast as it runs.
const MAX_RECORDED_DENIALS: usize = 16;

/// The approval state of a session: mode, rules, approved scopes, and the audit sink.
pub struct SessionApprovals {
    authorizer: Mutex<Authorizer>,
    approver: Option<Arc<dyn Approver>>,
    /// Held while a dialog is open, so that only one is open at a time.
    dialog_lock: tokio::sync::Mutex<()>,
    consecutive_rejections: AtomicU32,
    active_time: ActiveTime,
    audit_sink: OnceLock<Arc<dyn AuditSink>>,
    /// The policy file to which "always" adds rules.
    rule_file: Option<UserRuleFile>,
}

/// The decisions on the effects of one call.
#[derive(Debug, Default)]
pub(in crate::tools) struct CallDecisions {
    /// The permitted effects, in order.
    pub(in crate::tools) permitted: Vec<Effect>,
    /// The rejection by the user, if there was one.
    pub(in crate::tools) rejection: Option<UserRejection>,
    /// The time that dialogs were open, or that the call waited for another dialog to close.
    pub(in crate::tools) waited: Duration,
    /// The numbers of the audit records of these decisions.
    pub(in crate::tools) record_numbers: Vec<u64>,
    /// The number of denied effects.
    pub(in crate::tools) denial_count: usize,
    /// The newest denial.
    pub(in crate::tools) last_denial: Option<Denial>,
}

impl CallDecisions {
    /// Returns the number of denials without a record of their own.
    pub(in crate::tools) fn unrecorded_denials(&self) -> u64 {
        self.denial_count.saturating_sub(MAX_RECORDED_DENIALS) as u64
    }
}

/// An approved effect that has not been recorded yet.
struct ApprovedEffects<'a> {
    permit: Permit,
    /// The basis of the same decision that produced the permit.
    basis: DecisionBasis,
    /// The scope to remember, if the user approved one.
    scope_approval: Option<ScopeApproval>,
    /// Keeps other dialogs closed until the scope that the user approved is remembered.
    dialog_guard: Option<tokio::sync::MutexGuard<'a, ()>>,
}

/// The result of evaluating an effect against the policy.
enum JudgedEffect<'a> {
    /// The policy decides without the user.
    Decided(Result<ApprovedEffects<'a>, Denial>),
    /// The user has to decide.
    NeedsApproval(PendingApproval),
}

/// A rejection by the user.
#[derive(Clone, Debug)]
pub(in crate::tools) struct UserRejection {
    pub(in crate::tools) guidance: Option<String>,
    /// Whether the user rejected a plan.
    pub(in crate::tools) is_plan: bool,
}

impl SessionApprovals {
    /// Creates the approval state for a mode. Without an approver, everything that needs approval
    /// is denied.
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
            rule_file: None,
        }
    }

    /// Returns the clock of the request, which pauses while a dialog is open.
    pub(in crate::tools) fn active_time(&self) -> &ActiveTime {
        &self.active_time
    }

    /// Replaces the policy and keeps the mode.
    #[must_use]
    pub fn with_policy(mut self, policy: Arc<Policy>) -> Self {
        let current = self.authorizer.get_mut().unwrap_or_else(PoisonError::into_inner);
        let replaced = Authorizer::new(current.mode(), self.approver.is_some()).with_policy(policy);
        *current = match &self.rule_file {
            Some(file) => replaced.with_rules_file(file.name()),
            None => replaced,
        };
        self
    }

    /// Sets the user's policy file, to which the answer "always" adds rules.
    #[must_use]
    pub fn with_rule_file(mut self, file: UserRuleFile) -> Self {
        let current = self.authorizer.get_mut().unwrap_or_else(PoisonError::into_inner);
        current.set_rules_file(file.name());
        self.rule_file = Some(file);
        self
    }

    /// Sets the audit sink. Has no effect if one is already set.
    pub fn set_audit_sink(&self, sink: Arc<dyn AuditSink>) {
        let _ = self.audit_sink.set(sink);
    }

    /// Sets the audit sink, as [`set_audit_sink`](Self::set_audit_sink) does.
    #[must_use]
    pub fn with_audit_sink(self, sink: Arc<dyn AuditSink>) -> Self {
        self.set_audit_sink(sink);
        self
    }

    /// Checks whether a call may start. Returns an error if the call needs an audit record and none
    /// can be written.
    pub(in crate::tools) fn check_ready(&self) -> Result<(), Denial> {
        self.audit_sink.get().map_or(Ok(()), |sink| sink.check_ready()).map_err(Denial::from)
    }

    /// Records the end of a call.
    pub(in crate::tools) fn record_end(&self, subject: &CallIdentity, ended: &FinishedCallRecord) {
        if let Some(sink) = self.audit_sink.get() {
            sink.record_end(subject, ended);
        }
    }

    /// Records a call that was refused before it ran.
    pub(in crate::tools) fn record_refusal(&self, call: &ToolCall, problem: &str) {
        if let Some(sink) = self.audit_sink.get() {
            sink.record_refusal(call, problem);
        }
    }

    /// Returns the current mode.
    pub fn mode(&self) -> ApprovalMode {
        lock(&self.authorizer).mode()
    }

    /// Learns the current targets of the symbolic links of the workspace. A change of a listed
    /// link's target then needs the same approval as a change of the link.
    pub(in crate::tools) fn learn_links(&self, listed: &ListedFiles) {
        lock(&self.authorizer).learn_aliases(listed.aliases(), !listed.is_truncated());
    }

    /// Changes the mode, also for calls that are already running.
    pub fn set_mode(&self, mode: ApprovalMode) {
        // The record has the mode that takes effect, which may be stricter than the requested one.
        let mode = lock(&self.authorizer).effective_mode(mode);
        if let Some(sink) = self.audit_sink.get() {
            // If a required record is lost here, the decisions that depend on it cannot be recorded
            // either.
            let _ = sink.record_change(&AuthorityChange::ModeChanged(mode));
        }
        lock(&self.authorizer).set_mode(mode);
    }

    /// Begins a new request. Rejections of the previous request no longer count.
    pub fn begin_request(&self) {
        self.consecutive_rejections.store(0, Ordering::Relaxed);
    }

    /// Returns the number of rejections since the last approval.
    pub(in crate::tools) fn consecutive_rejections(&self) -> u32 {
        self.consecutive_rejections.load(Ordering::Relaxed)
    }

    /// Decides on an effect, asks the user if needed, and records the decision before the effect
    /// can happen.
    pub(in crate::tools) async fn authorize(
        &self,
        subject: &CallIdentity,
        effect: Effect,
        cancel: &CancellationToken,
        verdicts: &Mutex<CallDecisions>,
    ) -> GateRuling {
        // After a rejection, the call must not open another dialog.
        if lock(verdicts).rejection.is_some() {
            return GateRuling::Denied(Denial::without_remedy(
                DenialCode::RejectedByUser,
                "the user already rejected this call.",
            ));
        }
        let started = Instant::now();
        let decision = self.decide(subject, effect.clone(), cancel, verdicts).await;
        let waited = started.elapsed();
        match &decision {
            Ok(ApprovedEffects { basis, .. }) => {
                debug!(effect = effect_name(&effect), basis = basis_name(basis), "effect allowed");
            }
            Err(denial) => {
                debug!(effect = effect_name(&effect), code = denial.code.name(), "effect denied");
            }
        }
        let (effect, outcome) = match &decision {
            Ok(approved) => {
                (approved.permit.effect().clone(), RecordedOutcome::Allowed(approved.basis.clone()))
            }
            Err(denial) => (effect, RecordedOutcome::Denied(denial.clone())),
        };
        let recorded =
            self.record_decision(subject, &DecisionRecord { effect, outcome, waited }, verdicts);
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
                dialog_guard: _dialog_guard,
            }) => {
                // A scope whose decision could not be recorded is not remembered.
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
        decision: &DecisionRecord,
        verdicts: &Mutex<CallDecisions>,
    ) -> Result<(), RecordFailure> {
        if let RecordedOutcome::Denied(_) = decision.outcome {
            let mut verdicts = lock(verdicts);
            verdicts.denial_count += 1;
            if verdicts.denial_count > MAX_RECORDED_DENIALS {
                return Ok(());
            }
        }
        let Some(sink) = self.audit_sink.get() else { return Ok(()) };
        let number = sink.record_decision(subject, decision)?;
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
            JudgedEffect::Decided(decision) => return decision,
            JudgedEffect::NeedsApproval(_) => {}
        }
        let dialog_guard = self.dialog_lock.lock().await;
        // The previous dialog may have approved a scope that covers this effect, or the mode may
        // have changed. The later decision counts, with its own basis.
        let pending = match self.evaluate(subject, effect) {
            JudgedEffect::Decided(decision) => return decision,
            JudgedEffect::NeedsApproval(pending) => pending,
        };
        let Some(approver) = &self.approver else {
            return Err(Denial::without_remedy(
                DenialCode::NobodyToAsk,
                "this needs approval, and there is no user to ask.",
            ));
        };
        let is_plan = matches!(pending.question().effect, Effect::Plan { .. });
        let _paused_clock = self.active_time.pause();
        let answer = tokio::select! {
            // Checked first: a cancelled request must not use the answer of its dialog.
            biased;
            () = cancel.cancelled() => {
                let reason = "the user cancelled the request.";
                return Err(Denial::without_remedy(DenialCode::Cancelled, reason));
            }
            answer = approver.ask_for_call(subject, pending.question()) => answer,
        };
        match answer {
            ApprovalAnswer::Yes => {
                self.consecutive_rejections.store(0, Ordering::Relaxed);
                let permit = lock(&self.authorizer).approve(pending)?;
                Ok(ApprovedEffects {
                    permit,
                    basis: DecisionBasis::UserOnce,
                    scope_approval: None,
                    dialog_guard: Some(dialog_guard),
                })
            }
            ApprovalAnswer::YesForScope => {
                self.consecutive_rejections.store(0, Ordering::Relaxed);
                let (permit, scope) = lock(&self.authorizer).approve_scope(pending)?;
                let basis = DecisionBasis::UserForScope(
                    scope.as_ref().map(|approval| approval.scope().clone()),
                );
                Ok(ApprovedEffects {
                    permit,
                    basis,
                    scope_approval: scope,
                    dialog_guard: Some(dialog_guard),
                })
            }
            ApprovalAnswer::YesAlways => {
                self.consecutive_rejections.store(0, Ordering::Relaxed);
                let (permit, scope, rule) = lock(&self.authorizer).approve_always(pending)?;
                if let (Some(rule), Some(file)) = (&rule, &self.rule_file) {
                    file.add(rule);
                }
                let of_scope = scope.as_ref().map(|approval| approval.scope().clone());
                let basis = match rule {
                    Some(_) => DecisionBasis::UserAlways(of_scope),
                    None => DecisionBasis::UserForScope(of_scope),
                };
                Ok(ApprovedEffects {
                    permit,
                    basis,
                    scope_approval: scope,
                    dialog_guard: Some(dialog_guard),
                })
            }
            ApprovalAnswer::Unanswered { reason } => {
                Err(lock(&self.authorizer).deny_unanswered(pending, &reason))
            }
            ApprovalAnswer::No { guidance } => {
                // The command goes on without the connection, and so does the call.
                if let Effect::Connect { host, .. } = &pending.question().effect {
                    let reason = format!("the user rejected the connection to {host}.");
                    return Err(Denial::without_remedy(DenialCode::RejectedByUser, reason));
                }
                self.consecutive_rejections.fetch_add(1, Ordering::Relaxed);
                let guidance = guidance.filter(|words| !words.trim().is_empty());
                let reason = match &guidance {
                    Some(words) => format!("the user rejected this and wrote: {words}"),
                    None => "the user rejected this.".to_owned(),
                };
                lock(verdicts).rejection = Some(UserRejection { guidance, is_plan });
                Err(Denial::without_remedy(DenialCode::RejectedByUser, reason))
            }
        }
    }

    /// Evaluates an effect against the current policy and mode, under one lock.
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

/// Returns the name of an effect in the log, without its content.
fn effect_name(effect: &Effect) -> &'static str {
    match effect {
        Effect::Command { .. } => "command",
        Effect::Input { .. } => "input",
        Effect::Write { .. } => "write",
        Effect::Fetch { .. } => "fetch",
        Effect::Connect { .. } => "connection",
        Effect::Confirmed => "call",
        Effect::Plan { .. } => "plan",
    }
}

/// Returns the name of the basis of a decision in the log.
fn basis_name(basis: &DecisionBasis) -> &'static str {
    match basis {
        DecisionBasis::Policy(_) => "policy",
        DecisionBasis::UserOnce => "user",
        DecisionBasis::UserForScope(_) => "user for the session",
        DecisionBasis::UserAlways(_) => "user for all sessions",
    }
}

/// Returns the text that tells the model about a rejection. It says that nothing of the rejected
/// call may be assumed to have happened.
pub(in crate::tools) fn rejection_text(
    tool: &str,
    rejection: &UserRejection,
    before: &[Effect],
) -> String {
    use std::fmt::Write as _;
    let mut text = match &rejection.guidance {
        _ if rejection.is_plan => {
            format!(
                "The user rejected the plan of this call of {tool}. Plan mode stays on: do not \
                    change anything, and do not assume that the call succeeded."
            )
        }
        Some(_) | None => format!(
            "The user rejected this call of {tool}. It was not carried out; do not assume that it \
                succeeded."
        ),
    };
    if !before.is_empty() {
        text.push_str(" Before the rejection, the same call already did the following:");
        for effect in before {
            let _ = match effect {
                Effect::Command { line, background: false, .. } => {
                    write!(text, "\n- ran `{line}`")
                }
                Effect::Command { line, background: true, .. } => {
                    write!(text, "\n- started `{line}` in the background")
                }
                Effect::Input { line, .. } => write!(text, "\n- sent input to `{line}`"),
                Effect::Write { changes, .. } => {
                    changes.iter().try_for_each(|change| write!(text, "\n- {change}"))
                }
                Effect::Fetch { method, url, .. } => {
                    write!(text, "\n- sent a {method} request to {url}")
                }
                Effect::Connect { host, .. } => write!(text, "\n- could connect to {host}"),
                Effect::Confirmed => write!(text, "\n- was allowed to start"),
                Effect::Plan { .. } => write!(text, "\n- had a plan accepted"),
            };
        }
        text.push('\n');
    }
    if let Some(guidance) = &rejection.guidance {
        let _ = write!(text, " The user wrote:\n\n{guidance}");
    }
    text
}

pub(in crate::tools) fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests;
