//! The `submit` tool, with which a model reports that the task is done.
//!
//! The tool does not end the request: only an answer does.

use crate::conversation::{AssistantTurn, ResultStatus};

const TOOL_NAME: &str = "submit";

/// Returns the summary in the last successful `submit` call of a turn, trimmed.
///
/// If the model then says nothing, the summary is the answer.
pub(super) fn submitted_summary(turn: &AssistantTurn) -> Option<String> {
    let submitted = turn
        .calls()
        .filter(|answered| {
            answered.call.name == TOOL_NAME && answered.result.status == ResultStatus::Ok
        })
        .last()?;
    let arguments: serde_json::Value = serde_json::from_str(&submitted.call.arguments).ok()?;
    let summary = arguments.get("summary")?.as_str()?.trim();
    (!summary.is_empty()).then(|| summary.to_owned())
}
