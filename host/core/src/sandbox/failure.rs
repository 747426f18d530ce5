//! Why a call failed: the tool reported an error, it exceeded a limit, or the host failed.

use wasmtime::Trap;
use wasmtime::component::ResourceTableError;

use super::call_state::CallState;
use super::clock::CallStopReason;
use super::limits::{CallLimits, ExceededCap};

/// A call that failed. The texts are written for the model and also suit the user.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CallFailure {
    /// The tool rejected the input.
    #[error(
        "invalid input{at}: {message}",
        at = if pointer.is_empty() { String::new() } else { format!(" at {pointer}") }
    )]
    InvalidInput {
        /// The JSON pointer to the invalid part; may be empty.
        pointer: String,
        /// The problem with the input.
        message: String,
    },
    /// The tool did not find the object of the call.
    #[error("not found: {0}")]
    NotFound(String),
    /// The tool reported a denial by the host.
    #[error("denied ({code}): {reason}{remedy}")]
    Denied {
        /// The code of the host's denial.
        code: String,
        /// The reason of the host's denial.
        reason: String,
        /// The remedy of the host's denial with a leading space, or an empty string.
        remedy: String,
    },
    /// Something that the tool waited for took too long.
    #[error("timed out: {0}")]
    ToolTimedOut(String),
    /// The tool reported another failure.
    #[error("{0}")]
    ToolFailed(String),
    /// The call exceeded a limit.
    #[error("the tool was stopped: {0}")]
    LimitExceeded(String),
    /// The guest crashed.
    #[error("the tool crashed: {0}")]
    Trapped(String),
    /// The host refused the output of the tool.
    #[error("{0}")]
    InvalidResult(String),
    /// The tool succeeded, but its changes were not committed.
    #[error("{0}")]
    NotChanged(String),
    /// The tool succeeded, but its changes may have been committed only in part.
    #[error("{0}")]
    PartlyChanged(String),
    /// The request was cancelled.
    #[error("cancelled")]
    Cancelled,
    /// The machine lacked a resource for a moment; a retry may succeed.
    #[error("the host could not start the tool: {0}")]
    Unavailable(String),
    /// A fault of this program.
    #[error("the host failed: {0}")]
    Host(String),
}

impl CallFailure {
    /// The kind of the only failure after which files may have changed.
    pub const PARTLY_CHANGED: &str = "half-changed";

    /// Returns the kind of failure in one word, for programs.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::InvalidInput { .. } => "invalid-input",
            Self::NotFound(_) => "not-found",
            Self::Denied { .. } => "denied",
            Self::ToolTimedOut(_) => "timed-out",
            Self::ToolFailed(_) => "failed",
            Self::LimitExceeded(_) => "limit-exceeded",
            Self::Trapped(_) => "crashed",
            Self::InvalidResult(_) => "bad-answer",
            Self::NotChanged(_) => "not-changed",
            Self::PartlyChanged(_) => Self::PARTLY_CHANGED,
            Self::Cancelled => "cancelled",
            Self::Unavailable(_) => "unavailable",
            Self::Host(_) => "host-failure",
        }
    }

    pub(super) fn from_stop(stop: CallStopReason, limits: &CallLimits) -> Self {
        match stop {
            CallStopReason::Cancelled => Self::Cancelled,
            CallStopReason::Expired => Self::LimitExceeded(format!(
                "the call exceeded its time limit of {} seconds",
                limits.time.as_secs_f64()
            )),
        }
    }

    /// Converts a Wasmtime error. If a limit was exceeded, names the limit. Otherwise describes the
    /// trap, with the last output of the guest, which in most languages is the panic message.
    pub(super) fn from_wasmtime(
        error: &wasmtime::Error,
        state: &CallState,
        limits: &CallLimits,
    ) -> Self {
        if let Some(stop) = state.clock.stop_reason() {
            return Self::from_stop(stop, limits);
        }
        if error.is::<wasmtime::PoolConcurrencyLimitError>() {
            return Self::Unavailable("the limit of parallel calls is reached".into());
        }
        match state.meter.exceeded {
            Some(ExceededCap::Memory) => {
                return Self::LimitExceeded(format!(
                    "the call exceeded its memory limit of {} MiB",
                    limits.memory >> 20
                ));
            }
            Some(ExceededCap::Table) => {
                return Self::LimitExceeded(format!(
                    "the call exceeded the limit of {} table elements",
                    limits.table_elements
                ));
            }
            None => {}
        }
        if let Some(ResourceTableError::Full) = error.downcast_ref::<ResourceTableError>() {
            return Self::LimitExceeded(format!(
                "the call exceeded the limit of {} open handles (files, streams and others)",
                limits.handles
            ));
        }
        // Wasmtime does not export the type of this error. A test of the sandbox fails if the text
        // changes.
        if error.root_cause().to_string().contains("fuel allocated for hostcalls") {
            return Self::LimitExceeded(format!(
                "one transfer of the call exceeded {} MiB",
                limits.crossing >> 20
            ));
        }
        let what = match error.downcast_ref::<Trap>() {
            Some(Trap::StackOverflow) => "stack overflow".to_owned(),
            Some(Trap::UnreachableCodeReached) => {
                "it aborted (unreachable code reached)".to_owned()
            }
            Some(trap) => trap.to_string(),
            None => error.root_cause().to_string(),
        };
        let last_output = last_lines(&state.stderr.text());
        if last_output.is_empty() {
            Self::Trapped(what)
        } else {
            Self::Trapped(format!("{what}\n{last_output}"))
        }
    }
}

/// Returns the last lines of a log, short enough for a message.
fn last_lines(log: &str) -> String {
    let lines: Vec<&str> = log.lines().filter(|line| !line.trim().is_empty()).collect();
    let text = lines[lines.len().saturating_sub(5)..].join("\n");
    let skip = text.chars().count().saturating_sub(1000);
    text.chars().skip(skip).collect()
}
