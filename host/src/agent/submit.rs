//! `submit`, the tool with which a model says that it is done. It ends nothing: only an answer does
//!

use crate::conversation::{AssistantTurn, ResultStatus};

const TOOL_NAME: &str = "submit";

/// The summary that the last submit of a turn carried, trimmed. If the model then says nothing, it
/// is the answer.
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
