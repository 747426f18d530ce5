//! The result of a tool call.

use serde::{Deserialize, Serialize};

/// The result of a call as the model receives it.
///
/// Every call has exactly one result.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolResult {
    /// The way in which the call ended.
    pub status: ResultStatus,
    /// The content for the model, in order.
    ///
    /// The request to the provider never contains a result without visible content.
    pub content: Vec<ResultContent>,
}

/// The way in which a call ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ResultStatus {
    /// The call succeeded.
    Ok,
    /// The call failed or was refused, and the content gives the reason.
    Error,
    /// The user rejected the call.
    Rejected,
    /// The call never started.
    NotRun,
    /// The call started, and it is unknown whether it had an effect.
    Interrupted,
}

impl ResultStatus {
    /// Returns whether the result is sent to the provider as an error.
    pub fn is_error(self) -> bool {
        self != Self::Ok
    }
}

/// A piece of the content of a result.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ResultContent {
    /// Text of any format, including JSON.
    Text(String),
    /// An image of one of the supported types.
    Image {
        /// The media type, such as `image/png`.
        media_type: String,
        /// The bytes of the image, in base64.
        base64: String,
    },
}

impl ToolResult {
    /// Creates the result of a successful call.
    pub fn ok(text: impl Into<String>) -> Self {
        Self::new(ResultStatus::Ok, text)
    }

    /// Creates an error that the model can react to.
    pub fn error(text: impl Into<String>) -> Self {
        Self::new(ResultStatus::Error, text)
    }

    /// Creates a result with one text.
    pub fn new(status: ResultStatus, text: impl Into<String>) -> Self {
        Self { status, content: vec![ResultContent::Text(text.into())] }
    }

    /// Creates the result of a call that never started.
    pub fn not_run(reason: &str) -> Self {
        Self::new(
            ResultStatus::NotRun,
            format!("This call was not run: {reason}. It had no effect."),
        )
    }

    /// Creates the result of a call that started and whose outcome is unknown.
    pub fn interrupted() -> Self {
        Self::new(
            ResultStatus::Interrupted,
            "This call was interrupted; its outcome is unknown. Check for changes before you \
                repeat it.",
        )
    }

    /// Returns all text of the result in order, with each piece on a new line.
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
