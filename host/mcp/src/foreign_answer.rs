//! Answers to questions that the server did not ask.

use rmcp::model::{JsonRpcMessage, RequestId};
use rmcp::service::{RoleServer, RxJsonRpcMessage};

/// Returns whether a message answers a request with an ID of another type than the server uses.
///
/// All IDs of the server are numbers. The SDK accepts the text of a number for the number, which
/// JSON-RPC does not.
pub(crate) fn is_foreign_answer(message: &RxJsonRpcMessage<RoleServer>) -> bool {
    match message {
        JsonRpcMessage::Response(response) => matches!(response.id, RequestId::String(_)),
        JsonRpcMessage::Error(error) => !matches!(error.id, Some(RequestId::Number(_))),
        JsonRpcMessage::Request(_) | JsonRpcMessage::Notification(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_numbers_answer_numbers() {
        for (id, is_foreign) in [(json!(0), false), (json!("0"), true), (json!("x"), true)] {
            for outcome in [("result", json!({})), ("error", json!({"code": 1, "message": "x"}))] {
                let message = json!({"jsonrpc": "2.0", "id": id, outcome.0: outcome.1});
                let message = serde_json::from_value(message).expect("a message");
                assert_eq!(is_foreign_answer(&message), is_foreign, "{id} {outcome:?}");
            }
        }
    }
}
