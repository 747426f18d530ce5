//! The result of a call, as clients see it.

use cofferdam::conversation::{ResultContent, ResultStatus};
use cofferdam::host::CallOutcome;
use rmcp::model::{CallToolResult, ContentBlock, MetaObject};
use serde_json::json;

/// The key of the exit code of the last command of a call.
const EXIT_CODE_KEY: &str = "cofferdam/exitCode";
/// The key of the denial of a call: its code, its reason, and what would allow it.
const DENIED_KEY: &str = "cofferdam/denied";

/// Converts the outcome of a call.
pub(crate) fn to_result(outcome: CallOutcome) -> CallToolResult {
    let content = outcome
        .result
        .content
        .into_iter()
        .map(|piece| match piece {
            ResultContent::Text(text) => ContentBlock::text(text),
            ResultContent::Image { media_type, base64 } => ContentBlock::image(base64, media_type),
        })
        .collect();
    let mut result = match outcome.result.status {
        ResultStatus::Ok => CallToolResult::success(content),
        _ => CallToolResult::error(content),
    };
    result.structured_content = outcome.structured;
    let mut meta = MetaObject::new();
    if let Some(code) = outcome.exit_code {
        meta.insert(EXIT_CODE_KEY.to_owned(), json!(code));
    }
    if let Some(denied) = outcome.denied {
        let denied = json!({"code": denied.code, "reason": denied.reason, "remedy": denied.remedy});
        meta.insert(DENIED_KEY.to_owned(), denied);
    }
    if !meta.is_empty() {
        result.meta = Some(meta);
    }
    result
}

/// Returns the result of a call that did not run.
pub(crate) fn error_result(problem: impl Into<String>) -> CallToolResult {
    CallToolResult::error(vec![ContentBlock::text(problem.into())])
}
