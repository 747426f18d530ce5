//! How a request ended.

use serde::Serialize;

/// The one list of endings. After each of them the transcript is valid and can be continued.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum RequestOutcome {
    /// The model gave its answer.
    Answered {
        /// The answer's text.
        text: String,
    },
    /// The cap on tool turns was reached; the model was asked for a last answer.
    Limit {
        /// That answer's text, which may be empty.
        text: String,
        /// The cap.
        turns: u32,
    },
    /// The model said nothing, twice in a row.
    Empty,
    /// The user said no and took over.
    Rejected,
    /// The user stopped it.
    Aborted,
    /// The request's own time limit passed.
    TimedOut {
        /// The limit in seconds.
        seconds: u64,
    },
    /// The provider did not answer, or not in its own format.
    ProviderError {
        /// For the person at the terminal.
        message: String,
    },
    /// The conversation does not fit into the model's context window.
    Overflow {
        /// For the person at the terminal.
        message: String,
    },
    /// A fault of this program.
    InternalError {
        /// For a bug report.
        message: String,
    },
}

impl RequestOutcome {
    /// The word for it in JSON and in messages.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Answered { .. } => "answered",
            Self::Limit { .. } => "limit",
            Self::Empty => "empty",
            Self::Rejected => "rejected",
            Self::Aborted => "aborted",
            Self::TimedOut { .. } => "timed-out",
            Self::ProviderError { .. } => "provider-error",
            Self::Overflow { .. } => "overflow",
            Self::InternalError { .. } => "internal-error",
        }
    }

    /// The final text, for the outcomes that have one.
    pub fn text(&self) -> Option<&str> {
        match self {
            Self::Answered { text } | Self::Limit { text, .. } => Some(text),
            Self::Empty
            | Self::Rejected
            | Self::Aborted
            | Self::TimedOut { .. }
            | Self::ProviderError { .. }
            | Self::Overflow { .. }
            | Self::InternalError { .. } => None,
        }
    }
}
