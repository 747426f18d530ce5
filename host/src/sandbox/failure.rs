//! Why a call did not do what was asked: by the tool's own word, by running into a wall, or by a
//! fault of the host.

use wasmtime::Trap;
use wasmtime::component::ResourceTableError;

use super::bindings::exports::cofferdam::plugin::tools as wit;
use super::call_state::CallState;
use super::clock::CallStopReason;
use super::limits::{CallLimits, ExceededCap};

/// A call that failed. Each text is written for the model and fits the user as well.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CallFailure {
    /// The tool found the input to make no sense.
    #[error("invalid input{at}: {message}", at = if pointer.is_empty() { String::new() } else { format!(" at {pointer}") })]
    InvalidInput {
        /// A JSON pointer, or empty.
        pointer: String,
        /// What is wrong.
        message: String,
    },
    /// What the call is about does not exist.
    #[error("not found: {0}")]
    NotFound(String),
    /// The tool passed on a refusal.
    #[error("denied ({code}): {reason}{remedy}")]
    Denied {
        /// As the host said it.
        code: String,
        /// As the host said it.
        reason: String,
        /// As the host said it, with a space in front; or empty.
        remedy: String,
    },
    /// Something that the tool waited for took too long.
    #[error("timed out: {0}")]
    ToolTimedOut(String),
    /// The tool says that it failed.
    #[error("{0}")]
    ToolFailed(String),
    /// It ran into a cap.
    #[error("the tool was stopped: {0}")]
    LimitExceeded(String),
    /// It crashed.
    #[error("the tool crashed: {0}")]
    Trapped(String),
    /// The answer was not acceptable.
    #[error("{0}")]
    InvalidResult(String),
    /// The tool did its work, and what it wrote was not taken over.
    #[error("{0}")]
    NotChanged(String),
    /// The tool did its work, and some of what it wrote was taken over, or may have been.
    #[error("{0}")]
    PartlyChanged(String),
    /// The request was cancelled.
    #[error("cancelled")]
    Cancelled,
    /// The machine did not have what the call needs, which may be different in a moment.
    #[error("the host could not start the tool: {0}")]
    Unavailable(String),
    /// A fault of this program.
    #[error("the host failed: {0}")]
    Host(String),
}

impl From<wit::ToolError> for CallFailure {
    fn from(error: wit::ToolError) -> Self {
        match error {
            wit::ToolError::InvalidInput(problem) => {
                Self::InvalidInput { pointer: problem.pointer, message: problem.message }
            }
            wit::ToolError::NotFound(what) => Self::NotFound(what),
            wit::ToolError::Denied(denial) => Self::Denied {
                code: denial.code,
                reason: denial.reason,
                remedy: denial.remedy.map(|remedy| format!(" {remedy}")).unwrap_or_default(),
            },
            wit::ToolError::TimedOut(what) => Self::ToolTimedOut(what),
            wit::ToolError::Failed(what) => Self::ToolFailed(what),
        }
    }
}

impl CallFailure {
    /// The kind of the one failure after which something may have changed.
    pub const PARTLY_CHANGED: &str = "half-changed";

    /// The kind of failure in a word, for programs.
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
                "it ran longer than its {} seconds",
                limits.time.as_secs_f64()
            )),
        }
    }

    /// What an error of wasmtime means for a call: the cap that was run into, if one was, or else
    /// the trap in words with what the guest wrote last (a panic's message, in most languages).
    pub(super) fn from_wasmtime(
        error: &wasmtime::Error,
        state: &CallState,
        limits: &CallLimits,
    ) -> Self {
        if let Some(stop) = state.clock.stop_reason() {
            return Self::from_stop(stop, limits);
        }
        if error.is::<wasmtime::PoolConcurrencyLimitError>() {
            return Self::Unavailable("as many calls run as there is room for".into());
        }
        match state.meter.exceeded {
            Some(ExceededCap::Memory) => {
                return Self::LimitExceeded(format!(
                    "it needs more than its {} MiB of memory",
                    limits.memory >> 20
                ));
            }
            Some(ExceededCap::Table) => {
                return Self::LimitExceeded(format!(
                    "it needs a table of more than {} elements",
                    limits.table_elements
                ));
            }
            None => {}
        }
        if let Some(ResourceTableError::Full) = error.downcast_ref::<ResourceTableError>() {
            return Self::LimitExceeded(format!(
                "it holds more than {} handles to files, streams and the like",
                limits.handles
            ));
        }
        // wasmtime keeps the type of this error to itself; a test of the enclosure notices when the
        // words change.
        if error.root_cause().to_string().contains("fuel allocated for hostcalls") {
            return Self::LimitExceeded(format!(
                "it handed over more than {} MiB at once",
                limits.crossing >> 20
            ));
        }
        let what = match error.downcast_ref::<Trap>() {
            Some(Trap::StackOverflow) => "its stack overflowed".to_owned(),
            Some(Trap::UnreachableCodeReached) => {
                "it gave up (unreachable code reached)".to_owned()
            }
            Some(trap) => trap.to_string(),
            None => error.root_cause().to_string(),
        };
        let last_words = last_lines(&state.stderr.text());
        if last_words.is_empty() {
            Self::Trapped(what)
        } else {
            Self::Trapped(format!("{what}\n{last_words}"))
        }
    }
}

/// The last lines of a log, few enough for a message.
fn last_lines(log: &str) -> String {
    let lines: Vec<&str> = log.lines().filter(|line| !line.trim().is_empty()).collect();
    let text = lines[lines.len().saturating_sub(5)..].join("\n");
    let skip = text.chars().count().saturating_sub(1000);
    text.chars().skip(skip).collect()
}
