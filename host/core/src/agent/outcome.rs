//! The outcome of a request.

use serde::Serialize;

/// The complete list of the ways in which a request can end.
///
/// After each of them the transcript is valid and can be continued.
///
/// This enum is closed: a program has to report each way in which a request ends.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum RequestOutcome {
    /// The model gave its answer.
    Answered {
        /// The text of the answer.
        text: String,
    },
    /// The turn limit was reached, and the model was asked for a last answer.
    Limit {
        /// The text of the last answer, which may be empty.
        text: String,
        /// The limit on turns with tool calls.
        turns: u32,
    },
    /// The model gave an empty response twice in a row.
    Empty,
    /// The user rejected a call and ended the request.
    Rejected,
    /// The user stopped the request.
    Aborted,
    /// The time limit of the request has passed.
    TimedOut {
        /// The time limit, in seconds.
        seconds: u64,
    },
    /// The provider did not respond, or its response was invalid.
    ProviderError {
        /// The failure, written for the user.
        message: String,
    },
    /// The conversation does not fit into the model's context window.
    Overflow {
        /// The failure with its figures, written for the user.
        message: String,
    },
    /// This program has a bug.
    InternalError {
        /// The details for a bug report.
        message: String,
    },
}

impl RequestOutcome {
    /// Returns the name of the outcome in JSON and in messages.
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

    /// Returns the final text, for the outcomes that have one.
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
