//! Asking the user, one question at a time, and remembering what the answer covers.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use futures_util::future::BoxFuture;
use tokio_util::sync::CancellationToken;

use crate::agent::ActiveTime;
use crate::conversation::Call;
use crate::policy::{Code, Decision, Denial, Effect, Judge, Mode, PendingApproval, Permit, Policy, Question, ScopeApproval};
use crate::sandbox::{Gate, ListedFiles, PlanGate, Ruling};
use crate::tools::ledger::{Change, Decided, Ended, Ground, Ledger, Ruled, Subject, Unrecorded};

/// Denials of one call that get a record each: a guest can ask for what it does not get as fast as it runs.
const DENIALS_ON_RECORD: usize = 16;

/// Somebody who can be asked: a dialog at a terminal.
pub trait Approver: Send + Sync {
    /// Shows a question and waits for the answer, as long as it takes. The future may be dropped when the request is
    /// cancelled; the dialog then disappears.
    fn ask<'a>(&'a self, question: &'a Question) -> BoxFuture<'a, Answer>;
}

/// What a user can answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
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
pub struct Approvals {
    judge: Mutex<Judge>,
    approver: Option<Arc<dyn Approver>>,
    /// Held while a dialog is open, so that there is one at a time.
    dialog: tokio::sync::Mutex<()>,
    rejections_in_a_row: AtomicU32,
    time: ActiveTime,
    ledger: OnceLock<Arc<dyn Ledger>>,
}

/// What became of the effects of one call.
#[derive(Debug, Default)]
pub(in crate::tools) struct Verdicts {
    /// What was permitted, in order.
    pub(in crate::tools) permitted: Vec<Effect>,
    /// The user's no, if there was one.
    pub(in crate::tools) rejected: Option<Rejection>,
    /// How long dialogs were open, or waited for.
    pub(in crate::tools) waited: Duration,
    /// The records of what was decided.
    pub(in crate::tools) records: Vec<u64>,
    /// How often something was denied.
    pub(in crate::tools) denials: usize,
    /// What was denied last.
    pub(in crate::tools) last_denial: Option<Denial>,
}

impl Verdicts {
    /// Denials that have no record of their own.
    pub(in crate::tools) fn more_denials(&self) -> u64 {
        self.denials.saturating_sub(DENIALS_ON_RECORD) as u64
    }
}

/// What may happen, once it is on record.
struct Approved<'a> {
    permit: Permit,
    /// What the very decision rests on that made the permit.
    ground: Ground,
    /// What is remembered of the answer.
    scope: Option<ScopeApproval>,
    /// Nobody else is asked before what the user has approved for the session is remembered.
    dialog: Option<tokio::sync::MutexGuard<'a, ()>>,
}

/// What the judge says of an effect.
enum Judged<'a> {
    /// It is decided.
    Now(Result<Approved<'a>, Denial>),
    /// Somebody has to be asked.
    Ask(PendingApproval),
}

/// The user said no.
#[derive(Clone, Debug)]
pub(in crate::tools) struct Rejection {
    pub(in crate::tools) guidance: Option<String>,
    /// It was a plan that the user did not accept.
    pub(in crate::tools) of_a_plan: bool,
}

impl Approvals {
    /// Approvals in a mode, with somebody to ask or without.
    pub fn new(mode: Mode, approver: Option<Arc<dyn Approver>>) -> Self {
        let judge = Mutex::new(Judge::new(mode, approver.is_some()));
        let (dialog, time) = (tokio::sync::Mutex::new(()), ActiveTime::default());
        Self { judge, approver, dialog, rejections_in_a_row: AtomicU32::new(0), time, ledger: OnceLock::new() }
    }

    /// Stands still while a dialog is open.
    pub(in crate::tools) fn time(&self) -> &ActiveTime {
        &self.time
    }

    /// With rules, which hold from now on.
    #[must_use]
    pub fn under(mut self, policy: Arc<Policy>) -> Self {
        let judge = self.judge.get_mut().unwrap_or_else(PoisonError::into_inner);
        *judge = Judge::new(judge.mode(), self.approver.is_some()).under(policy);
        self
    }

    /// From now on told to a ledger; the first one stays.
    pub fn record_by(&self, ledger: Arc<dyn Ledger>) {
        drop(self.ledger.set(ledger));
    }

    /// With somebody who keeps account of what calls do.
    #[must_use]
    pub fn recorded_by(self, ledger: Arc<dyn Ledger>) -> Self {
        self.record_by(ledger);
        self
    }

    /// Whether a call may start: not if it has to be on record, and nothing can be put there.
    pub(in crate::tools) fn ready(&self) -> Result<(), Denial> {
        self.ledger.get().map_or(Ok(()), |ledger| ledger.ready()).map_err(Denial::from)
    }

    /// Puts the end of a call on record.
    pub(in crate::tools) fn ended(&self, subject: &Subject, ended: &Ended) {
        if let Some(ledger) = self.ledger.get() {
            ledger.ended(subject, ended);
        }
    }

    /// Puts a call on record that does not run.
    pub(in crate::tools) fn refused(&self, call: &Call, problem: &str) {
        if let Some(ledger) = self.ledger.get() {
            ledger.refused(call, problem);
        }
    }

    /// The mode in force.
    pub fn mode(&self) -> Mode {
        lock(&self.judge).mode()
    }

    /// Knows where the links of the workspace lead now, so that a change of what a listed link leads to needs the same approval.
    pub(in crate::tools) fn learn_links(&self, listed: &ListedFiles) {
        lock(&self.judge).learn_aliases(listed.aliases(), !listed.is_cut());
    }

    /// From now on another mode is in force, for calls that are under way too.
    pub fn set_mode(&self, mode: Mode) {
        // On record is what comes into force, which may be stricter than what is wanted.
        let mode = lock(&self.judge).mode_for(mode);
        if let Some(ledger) = self.ledger.get() {
            // Should this be lost where it may not be, then nothing is done on the strength of it either.
            drop(ledger.changed(&Change::Mode(mode)));
        }
        lock(&self.judge).set_mode(mode);
    }

    /// A new request begins: what was rejected in the one before it does not count against it.
    pub fn request_begins(&self) {
        self.rejections_in_a_row.store(0, Ordering::Relaxed);
    }

    /// How often the user said no since they last said yes.
    pub(in crate::tools) fn rejections_in_a_row(&self) -> u32 {
        self.rejections_in_a_row.load(Ordering::Relaxed)
    }

    /// Decides on the effects of a call while it runs. One that is being stopped begins nothing more.
    pub(in crate::tools) fn gate(
        self: &Arc<Self>,
        subject: &Arc<Subject>,
        verdicts: &Arc<Mutex<Verdicts>>,
        cancel: &CancellationToken,
    ) -> Gate {
        let (approvals, subject, verdicts, cancel) = (Arc::clone(self), Arc::clone(subject), Arc::clone(verdicts), cancel.clone());
        Arc::new(move |effect| {
            let (approvals, subject) = (Arc::clone(&approvals), Arc::clone(&subject));
            let (verdicts, cancel) = (Arc::clone(&verdicts), cancel.clone());
            Box::pin(async move {
                match cancel.is_cancelled() {
                    true => Ruling::Denied(Denial::fixed(Code::Cancelled, "the user stopped the request.")),
                    false => approvals.rule(&subject, effect, &cancel, &verdicts).await,
                }
            })
        })
    }

    /// Shows a plan of a call while it runs, and ends plan mode if the user accepts it.
    pub(in crate::tools) fn plan_gate(
        self: &Arc<Self>,
        subject: &Arc<Subject>,
        verdicts: &Arc<Mutex<Verdicts>>,
        cancel: &CancellationToken,
    ) -> PlanGate {
        let (approvals, gate) = (Arc::clone(self), self.gate(subject, verdicts, cancel));
        Arc::new(move |text| {
            // The judge puts in the mode that follows; a guest has no say in it.
            let (approvals, asked) = (Arc::clone(&approvals), gate(Effect::Plan { text, then: Mode::default() }));
            Box::pin(async move {
                match asked.await {
                    Ruling::Permitted(permit) => Ok(lock(&approvals.judge).end_plan_mode(permit)),
                    Ruling::Denied(denial) => Err(denial),
                }
            })
        })
    }

    /// Decides on an effect, asking if need be, and writes down what was decided: before it can happen.
    pub(in crate::tools) async fn rule(
        &self,
        subject: &Subject,
        effect: Effect,
        cancel: &CancellationToken,
        verdicts: &Mutex<Verdicts>,
    ) -> Ruling {
        // A guest that takes no for no answer does not get to ask again.
        if lock(verdicts).rejected.is_some() {
            return Ruling::Denied(Denial::fixed(Code::RejectedByUser, "the user has rejected this call."));
        }
        let asked = Instant::now();
        let decision = self.decide(subject, effect.clone(), cancel, verdicts).await;
        let waited = asked.elapsed();
        let (effect, ruled) = match &decision {
            Ok(approved) => (approved.permit.effect().clone(), Ruled::Allowed(approved.ground.clone())),
            Err(denial) => (effect, Ruled::Denied(denial.clone())),
        };
        let recorded = self.record(subject, &Decided { effect, ruled, waited }, verdicts);
        let mut verdicts = lock(verdicts);
        verdicts.waited += waited;
        let decision = decision.and_then(|approved| recorded.map(|()| approved).map_err(Denial::from));
        verdicts.last_denial = decision.as_ref().err().cloned().or(verdicts.last_denial.take());
        match decision {
            Ok(Approved { permit, ground: _, scope, dialog: _until_it_is_remembered }) => {
                // What nobody could put on record is not remembered either.
                if let Some(scope) = scope {
                    lock(&self.judge).remember(scope);
                }
                verdicts.permitted.push(permit.effect().clone());
                Ruling::Permitted(permit)
            }
            Err(denial) => Ruling::Denied(denial),
        }
    }

    fn record(&self, subject: &Subject, decided: &Decided, verdicts: &Mutex<Verdicts>) -> Result<(), Unrecorded> {
        if let Ruled::Denied(_) = decided.ruled {
            let mut verdicts = lock(verdicts);
            verdicts.denials += 1;
            if verdicts.denials > DENIALS_ON_RECORD {
                return Ok(());
            }
        }
        let Some(ledger) = self.ledger.get() else { return Ok(()) };
        let number = ledger.decided(subject, decided)?;
        lock(verdicts).records.extend(number);
        Ok(())
    }

    async fn decide(
        &self,
        subject: &Subject,
        effect: Effect,
        cancel: &CancellationToken,
        verdicts: &Mutex<Verdicts>,
    ) -> Result<Approved<'_>, Denial> {
        match self.judged(subject, effect.clone()) {
            Judged::Now(decided) => return decided,
            Judged::Ask(_) => {}
        }
        let one_at_a_time = self.dialog.lock().await;
        // The dialog before may have approved a scope that covers this one, and the mode may be another one. Whichever decision
        // counts brings its own reason along.
        let pending = match self.judged(subject, effect) {
            Judged::Now(decided) => return decided,
            Judged::Ask(pending) => pending,
        };
        let Some(approver) = &self.approver else {
            return Err(Denial::fixed(Code::NobodyToAsk, "there is nobody to ask."));
        };
        let of_a_plan = matches!(pending.question().effect, Effect::Plan { .. });
        let _waits_for_the_user = self.time.pause();
        let answer = tokio::select! {
            // First: a dialog that ends with the request has no answer to give.
            biased;
            () = cancel.cancelled() => return Err(Denial::fixed(Code::Cancelled, "the user stopped the request.")),
            answer = approver.ask(pending.question()) => answer,
        };
        match answer {
            Answer::Yes => {
                self.rejections_in_a_row.store(0, Ordering::Relaxed);
                let permit = lock(&self.judge).approve(pending)?;
                Ok(Approved { permit, ground: Ground::User, scope: None, dialog: Some(one_at_a_time) })
            }
            Answer::YesForScope => {
                self.rejections_in_a_row.store(0, Ordering::Relaxed);
                let (permit, scope) = lock(&self.judge).approve_scope(pending)?;
                let ground = Ground::UserForScope(scope.as_ref().map(|approval| approval.scope().clone()));
                Ok(Approved { permit, ground, scope, dialog: Some(one_at_a_time) })
            }
            Answer::No { guidance } => {
                self.rejections_in_a_row.fetch_add(1, Ordering::Relaxed);
                let guidance = guidance.filter(|words| !words.trim().is_empty());
                let reason = match &guidance {
                    Some(words) => format!("the user said no, and: {words}"),
                    None => "the user said no.".to_owned(),
                };
                lock(verdicts).rejected = Some(Rejection { guidance, of_a_plan });
                Err(Denial::fixed(Code::RejectedByUser, reason))
            }
        }
    }

    /// Decides on an effect as things are now, under one lock.
    fn judged(&self, subject: &Subject, effect: Effect) -> Judged<'_> {
        match lock(&self.judge).decide(subject.tool_id(), &subject.arguments, effect) {
            Decision::Allow(permit, basis) => {
                Judged::Now(Ok(Approved { permit, ground: Ground::Standing(basis), scope: None, dialog: None }))
            }
            Decision::Deny(denial) => Judged::Now(Err(denial)),
            Decision::Ask(pending) => Judged::Ask(pending),
        }
    }
}

/// For the tool and its user alike: nothing of a rejected call may be taken as done.
pub(in crate::tools) fn rejected_text(tool: &str, rejection: &Rejection, before: &[Effect]) -> String {
    use std::fmt::Write as _;
    let mut text = match &rejection.guidance {
        _ if rejection.of_a_plan => {
            format!(
                "The user did not accept the plan of this call of {tool}. Plan mode goes on: change nothing, and do not assume that it succeeded."
            )
        }
        Some(_) => format!("The user rejected this call of {tool}. It was not carried out; do not assume that it succeeded."),
        None => format!("This call of {tool} was cancelled by the user. It was not carried out; do not assume that it succeeded."),
    };
    if !before.is_empty() {
        text.push_str(" Before that, the same call had already done this:");
        for effect in before {
            let _ = match effect {
                Effect::Command { line, .. } => write!(text, "\n- ran `{line}`"),
                Effect::Write { changes, .. } => changes.iter().try_for_each(|change| write!(text, "\n- {change}")),
                Effect::Fetch { method, url, .. } => write!(text, "\n- sent a {method} request to {url}"),
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
