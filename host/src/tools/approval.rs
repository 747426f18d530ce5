//! Asking the user, one question at a time, and remembering what the answer covers.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use futures_util::future::BoxFuture;
use tokio_util::sync::CancellationToken;

use crate::policy::{Code, Decision, Denial, Effect, Judge, Mode, Permit, Question};
use crate::sandbox::Ruling;

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
}

/// What became of the effects of one call.
#[derive(Debug, Default)]
pub(super) struct Verdicts {
    /// What was permitted, in order.
    pub(super) permitted: Vec<Effect>,
    /// The user's no, if there was one.
    pub(super) rejected: Option<Rejection>,
    /// How long dialogs were open, or waited for.
    pub(super) waited: Duration,
}

/// The user said no.
#[derive(Clone, Debug)]
pub(super) struct Rejection {
    pub(super) guidance: Option<String>,
    /// It was a plan that the user did not accept.
    pub(super) of_a_plan: bool,
}

impl Approvals {
    /// Approvals in a mode, with somebody to ask or without.
    pub fn new(mode: Mode, approver: Option<Arc<dyn Approver>>) -> Self {
        let judge = Judge::new(mode, approver.is_some());
        Self { judge: Mutex::new(judge), approver, dialog: tokio::sync::Mutex::new(()), rejections_in_a_row: AtomicU32::new(0) }
    }

    /// How often the user said no since they last said yes.
    pub(super) fn rejections_in_a_row(&self) -> u32 {
        self.rejections_in_a_row.load(Ordering::Relaxed)
    }

    /// Decides on an effect, asking if need be, and writes down what was decided.
    pub(super) async fn rule(
        &self,
        tool: &str,
        arguments: &str,
        effect: Effect,
        cancel: &CancellationToken,
        verdicts: &Mutex<Verdicts>,
    ) -> Ruling {
        // A guest that takes no for no answer does not get to ask again.
        if lock(verdicts).rejected.is_some() {
            return Ruling::Denied(Denial::fixed(Code::RejectedByUser, "the user has rejected this call."));
        }
        let asked = Instant::now();
        let ruling = self.decide(tool, arguments, effect, cancel, verdicts).await;
        lock(verdicts).waited += asked.elapsed();
        if let Ruling::Permitted(permit) = &ruling {
            lock(verdicts).permitted.push(permit.effect().clone());
        }
        ruling
    }

    async fn decide(&self, tool: &str, arguments: &str, effect: Effect, cancel: &CancellationToken, verdicts: &Mutex<Verdicts>) -> Ruling {
        match lock(&self.judge).decide(tool, arguments, effect.clone()) {
            Decision::Allow(permit) => return Ruling::Permitted(permit),
            Decision::Deny(denial) => return Ruling::Denied(denial),
            Decision::Ask(_) => {}
        }
        let _one_at_a_time = self.dialog.lock().await;
        // The dialog before may have approved a scope that covers this one.
        let question = match lock(&self.judge).decide(tool, arguments, effect) {
            Decision::Allow(permit) => return Ruling::Permitted(permit),
            Decision::Deny(denial) => return Ruling::Denied(denial),
            Decision::Ask(question) => question,
        };
        let Some(approver) = &self.approver else {
            return Ruling::Denied(Denial::fixed(Code::NobodyToAsk, "there is nobody to ask."));
        };
        let of_a_plan = matches!(question.effect, Effect::Plan { .. });
        let answer = tokio::select! {
            answer = approver.ask(&question) => answer,
            () = cancel.cancelled() => return Ruling::Denied(Denial::fixed(Code::Cancelled, "the user stopped the request.")),
        };
        match answer {
            Answer::Yes => Ruling::Permitted(self.approved(|judge| judge.approve(question))),
            Answer::YesForScope => Ruling::Permitted(self.approved(|judge| judge.approve_scope(question))),
            Answer::No { guidance } => {
                self.rejections_in_a_row.fetch_add(1, Ordering::Relaxed);
                let guidance = guidance.filter(|words| !words.trim().is_empty());
                let reason = match &guidance {
                    Some(words) => format!("the user said no, and: {words}"),
                    None => "the user said no.".to_owned(),
                };
                lock(verdicts).rejected = Some(Rejection { guidance, of_a_plan });
                Ruling::Denied(Denial::fixed(Code::RejectedByUser, reason))
            }
        }
    }

    fn approved(&self, approve: impl FnOnce(&mut Judge) -> Permit) -> Permit {
        self.rejections_in_a_row.store(0, Ordering::Relaxed);
        approve(&mut lock(&self.judge))
    }
}

/// For the tool and its user alike: nothing of a rejected call may be taken as done.
pub(super) fn rejected_text(tool: &str, rejection: &Rejection, before: &[Effect]) -> String {
    use std::fmt::Write as _;
    let mut text = match &rejection.guidance {
        _ if rejection.of_a_plan => {
            format!("The user did not accept the plan of this call of {tool}. Plan mode goes on: change nothing, and do not assume that it succeeded.")
        }
        Some(_) => format!("The user rejected this call of {tool}. It was not carried out; do not assume that it succeeded."),
        None => format!("This call of {tool} was cancelled by the user. It was not carried out; do not assume that it succeeded."),
    };
    if !before.is_empty() {
        text.push_str(" Before that, the same call had already done this:");
        for effect in before {
            let _ = match effect {
                Effect::Command { line, .. } => write!(text, "\n- ran `{line}`"),
                Effect::Write { .. } | Effect::Confirmed => write!(text, "\n- was allowed to start"),
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

pub(super) fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
