//! The way out of the enclosure: everything that a guest would do to the outside world is put to
//! whoever decides.

use std::sync::Arc;

use futures_util::future::BoxFuture;

use crate::policy::{ApprovalMode, Denial, Effect, Permit};

/// Decides on an effect of the running call, asking the user if need be. It may take as long as a
/// person takes.
pub type Gate = Arc<dyn Fn(Effect) -> BoxFuture<'static, GateRuling> + Send + Sync>;

/// What was decided.
#[derive(Debug)]
pub enum GateRuling {
    /// Do it: acting uses the permit up.
    Permitted(Permit),
    /// Do not; the guest is told why.
    Denied(Denial),
}

/// Shows a plan of the running call to the user. With their yes plan mode ends, and the mode that
/// is in force comes back.
pub type PlanApprovalGate =
    Arc<dyn Fn(String) -> BoxFuture<'static, Result<ApprovalMode, Denial>> + Send + Sync>;

/// Takes a line of progress, already shortened.
pub type ProgressSink = Arc<dyn Fn(&str) + Send + Sync>;

/// Has a sub-agent work on a task of the running call. It takes as long as it takes, and ends
/// within a second of the call's being cancelled.
pub type DelegateTask = Arc<dyn Fn(String) -> BoxFuture<'static, DelegationOutcome> + Send + Sync>;

/// What became of a task.
#[derive(Debug)]
pub enum DelegationOutcome {
    /// The sub-agent answered.
    Answered {
        /// Its last words.
        text: String,
        /// Whether it came to its end, and not to its limit on turns.
        complete: bool,
        /// How many turns it took.
        turns: u32,
    },
    /// It ended without an answer.
    Failed {
        /// A stable word.
        kind: &'static str,
        /// For the guest and for people.
        message: String,
    },
    /// There is no sub-agent for this call.
    Denied(Denial),
}
