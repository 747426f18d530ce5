//! The gate of the sandbox: everything that a guest would do to the outside world needs a decision.

use std::sync::Arc;

use futures_util::future::BoxFuture;

use crate::policy::{
    ApprovalMode, ChangeSet, CommandChangeVerdict, ConnectionVerdict, Denial, Effect, FileChange,
    HostAddress, Permit,
};

/// Decides on an effect of the running call and asks the user if needed. May take as long as a
/// person takes.
pub type Gate = Arc<dyn Fn(Effect) -> BoxFuture<'static, GateRuling> + Send + Sync>;

/// The decision on an effect.
///
/// This enum is closed: a tool acts only if it was permitted to.
#[derive(Debug)]
pub enum GateRuling {
    /// The effect is permitted. Performing it consumes the permit.
    Permitted(Permit),
    /// The effect is denied; the guest gets the reason.
    Denied(Denial),
}

/// Decides about one change that a command made in its private view of the workspace.
pub type CommandChangeJudge = Arc<dyn Fn(&FileChange) -> CommandChangeVerdict + Send + Sync>;

/// Records changes of a command that were denied, in the audit log.
pub type DenialRecorder = Arc<dyn Fn(ChangeSet, Denial) + Send + Sync>;

/// Returns the approval mode in force, which the user can change at any time.
pub type ModeSource = Arc<dyn Fn() -> ApprovalMode + Send + Sync>;

/// Decides about a host that a running command wants to connect to.
pub type ConnectionJudge = Arc<dyn Fn(&HostAddress) -> ConnectionDecision + Send + Sync>;

/// The decision about a host that a running command wants to connect to.
#[derive(Clone, Debug)]
pub struct ConnectionDecision {
    /// Whether the command may connect.
    pub verdict: ConnectionVerdict,
    /// Whether a rule contains this IP address itself, rather than every host.
    pub names_address: bool,
}

/// Shows a plan of the running call to the user. If the user accepts it, plan mode ends, and the
/// function returns the new mode.
pub type PlanApprovalGate =
    Arc<dyn Fn(String) -> BoxFuture<'static, Result<ApprovalMode, Denial>> + Send + Sync>;

/// Receives one line of progress, already truncated.
pub type ProgressSink = Arc<dyn Fn(&str) + Send + Sync>;

/// Runs a task of the running call in a sub-agent. Has no time limit, and ends within a second of
/// the cancellation of the call.
pub type DelegateTask = Arc<dyn Fn(String) -> BoxFuture<'static, DelegationOutcome> + Send + Sync>;

/// The outcome of a delegated task.
#[derive(Debug)]
pub enum DelegationOutcome {
    /// The sub-agent gave an answer.
    Answered {
        /// The last message of the sub-agent.
        text: String,
        /// Whether the sub-agent finished, rather than reached its limit of turns.
        complete: bool,
        /// The number of turns.
        turns: u32,
    },
    /// The sub-agent ended without an answer.
    Failed {
        /// The kind of failure, a stable word.
        kind: &'static str,
        /// The reason, for the guest and for the user.
        message: String,
    },
    /// No sub-agent is available for this call.
    Denied(Denial),
}
