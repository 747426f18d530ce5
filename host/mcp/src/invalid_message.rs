//! The errors of input that is no message of MCP.

use rmcp::model::{ErrorData, RequestId};
use rmcp::service::{RoleServer, RxJsonRpcMessage};
use serde_json::Value;

/// Returns the error for bytes that are no message, with the ID of the request if there is one.
/// Returns `None` if the bytes are a message.
pub(crate) fn explain_invalid(bytes: &[u8]) -> Option<(Option<RequestId>, ErrorData)> {
    let error = serde_json::from_slice::<RxJsonRpcMessage<RoleServer>>(bytes).err()?;
    Some(explain_error(bytes, &error))
}

/// Returns the error for bytes that could not be parsed as a message.
pub(crate) fn explain_error(
    bytes: &[u8],
    error: &serde_json::Error,
) -> (Option<RequestId>, ErrorData) {
    let value = serde_json::from_slice::<Value>(bytes).ok();
    if value.is_none() || error.is_syntax() || error.is_eof() {
        let problem = "the message is not valid JSON, or nested too deeply";
        return (None, ErrorData::parse_error(problem, None));
    }
    if value.as_ref().is_some_and(Value::is_array) {
        let problem = "batches are not supported; send each message by itself";
        return (None, ErrorData::invalid_request(problem, None));
    }
    let id = value
        .as_ref()
        .filter(|value| value.get("method").is_some())
        .and_then(|value| value.get("id"))
        .and_then(|id| serde_json::from_value::<RequestId>(id.clone()).ok());
    (id, ErrorData::invalid_request("this is not a message of MCP", None))
}
