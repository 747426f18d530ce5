//! The answer to a call.

use serde::{Deserialize, Serialize};

/// What the model is told about a call. Every call has exactly one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolResult {
    /// How the call ended.
    pub status: ResultStatus,
    /// What the model sees, in order; never without visible content once it is on the wire.
    pub content: Vec<ResultContent>,
}

/// How a call ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ResultStatus {
    /// It did what was asked.
    Ok,
    /// It ran, or was refused, and says why it did not do what was asked.
    Error,
    /// The user said no.
    Rejected,
    /// It never started.
    NotRun,
    /// It started, and whether it had an effect is unknown.
    Interrupted,
}

impl ResultStatus {
    /// Whether the provider is told that this is an error.
    pub fn is_error(self) -> bool {
        self != Self::Ok
    }
}

/// A piece of a result.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ResultContent {
    /// Text, JSON among it.
    Text(String),
    /// A picture.
    Image {
        /// Such as `image/png`.
        media_type: String,
        /// The bytes in base64.
        base64: String,
    },
}

impl ToolResult {
    /// A result that did what was asked.
    pub fn ok(text: impl Into<String>) -> Self {
        Self::new(ResultStatus::Ok, text)
    }

    /// An error that the model can act on.
    pub fn error(text: impl Into<String>) -> Self {
        Self::new(ResultStatus::Error, text)
    }

    /// A result of one text.
    pub fn new(status: ResultStatus, text: impl Into<String>) -> Self {
        Self { status, content: vec![ResultContent::Text(text.into())] }
    }

    /// For a call that never started.
    pub fn not_run(reason: &str) -> Self {
        Self::new(
            ResultStatus::NotRun,
            format!("This call was not run: {reason}. It had no effect."),
        )
    }

    /// For a call that started and did not get to report.
    pub fn interrupted() -> Self {
        Self::new(
            ResultStatus::Interrupted,
            "This call was interrupted; its outcome is unknown. Check what it may have changed \
                before you repeat it.",
        )
    }

    /// All text of the result, in order, each piece on lines of its own.
    pub fn text(&self) -> String {
        let mut all = String::new();
        for piece in &self.content {
            if let ResultContent::Text(text) = piece {
                if !all.is_empty() && !all.ends_with('\n') {
                    all.push('\n');
                }
                all.push_str(text);
            }
        }
        all
    }
}
