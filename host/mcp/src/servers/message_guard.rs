//! Limits on what a server sends, whatever carries its messages.
//!
//! They are checked before the SDK sees a message: its number of values, the number of requests
//! without an answer, and how much a server sends without being asked. A server that exceeds a
//! limit loses its connection, and [`ConnectionFault`] has the reason. Texts that are not messages
//! are ignored up to a number, because careless servers send some.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rmcp::model::{JsonRpcMessage, RequestId};
use rmcp::service::{RoleClient, RxJsonRpcMessage, TxJsonRpcMessage};
use tokio_util::sync::CancellationToken;

/// The longest message, in bytes. Larger results do not fit into a call either.
pub(super) const MAX_MESSAGE_LEN: usize = 16 << 20;
/// The number of values of a message. A parsed value takes far more memory than its text.
pub(super) const MAX_VALUES: usize = 200_000;
/// The number of requests of the server without an answer.
pub(super) const MAX_OPEN_REQUESTS: usize = 32;
/// The number of texts that are not messages.
pub(super) const MAX_GARBAGE: usize = 200;
/// The number of messages between two requests of the client.
pub(super) const MAX_UNASKED_MESSAGES: usize = 20_000;
/// The bytes between two requests of the client.
const MAX_UNASKED_BYTES: usize = 64 << 20;

/// Why a connection ended, if a limit was exceeded. Clones share the reason.
#[derive(Clone, Debug, Default)]
pub(super) struct ConnectionFault(Arc<FaultState>);

#[derive(Debug, Default)]
struct FaultState {
    reason: Mutex<Option<String>>,
    happened: CancellationToken,
}

impl ConnectionFault {
    /// Ends the connection for a reason, unless there is one already.
    pub(super) fn report(&self, reason: String) {
        let mut first = self.0.reason.lock().unwrap_or_else(PoisonError::into_inner);
        first.get_or_insert(reason);
        drop(first);
        self.0.happened.cancel();
    }

    /// Returns the reason, as the end of a sentence about the server.
    pub(super) fn reason(&self) -> Option<String> {
        self.0.reason.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Waits until a limit is exceeded.
    pub(super) async fn wait(&self) {
        self.0.happened.cancelled().await;
    }
}

/// The limits of one connection. Clones share the counts.
#[derive(Clone, Debug, Default)]
pub(super) struct MessageGuard(Arc<Mutex<MessageCounts>>);

#[derive(Debug, Default)]
struct MessageCounts {
    /// The IDs of the requests of the server without an answer.
    open: HashSet<RequestId>,
    /// What the server has sent since the last request of the client.
    unasked_messages: usize,
    unasked_bytes: usize,
    garbage: usize,
}

impl MessageGuard {
    fn lock(&self) -> MutexGuard<'_, MessageCounts> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts a message that the client begins to send. Returns the request of the server that it
    /// answers.
    pub(super) fn begin_send(&self, message: &TxJsonRpcMessage<RoleClient>) -> Option<RequestId> {
        match message {
            JsonRpcMessage::Request(_) => {
                let mut counts = self.lock();
                (counts.unasked_messages, counts.unasked_bytes) = (0, 0);
                None
            }
            JsonRpcMessage::Response(response) => Some(response.id.clone()),
            JsonRpcMessage::Error(error) => error.id.clone(),
            JsonRpcMessage::Notification(_) => None,
        }
    }

    /// Notes that a request of the server has its answer.
    pub(super) fn end_request(&self, id: &RequestId) {
        self.lock().open.remove(id);
    }

    /// Counts what the server sent.
    ///
    /// # Errors
    ///
    /// The server sent too much without being asked.
    pub(super) fn count_input(&self, messages: usize, bytes: usize) -> Result<(), String> {
        let mut counts = self.lock();
        counts.unasked_messages += messages;
        counts.unasked_bytes += bytes;
        let is_flood = counts.unasked_messages > MAX_UNASKED_MESSAGES
            || counts.unasked_bytes > MAX_UNASKED_BYTES;
        match is_flood {
            true => Err(format!(
                "it sent more than {MAX_UNASKED_MESSAGES} messages or {} MiB without being asked",
                MAX_UNASKED_BYTES >> 20
            )),
            false => Ok(()),
        }
    }

    /// Parses a text of the server. Returns its message if the SDK may see it.
    ///
    /// # Errors
    ///
    /// The server exceeds a limit.
    pub(super) fn admit(
        &self,
        text: &[u8],
    ) -> Result<Option<RxJsonRpcMessage<RoleClient>>, String> {
        if count_values(text) > MAX_VALUES {
            return Err(format!("it sent a message with more than {MAX_VALUES} JSON values"));
        }
        let Ok(message) = serde_json::from_slice::<RxJsonRpcMessage<RoleClient>>(text) else {
            let mut counts = self.lock();
            counts.garbage += 1;
            return match counts.garbage > MAX_GARBAGE {
                true => Err(format!(
                    "it sent more than {MAX_GARBAGE} lines that are not messages of MCP"
                )),
                false => Ok(None),
            };
        };
        if let JsonRpcMessage::Request(request) = &message {
            let mut counts = self.lock();
            if counts.open.len() >= MAX_OPEN_REQUESTS {
                return Err(format!(
                    "it sent more than {MAX_OPEN_REQUESTS} requests without reading the answers"
                ));
            }
            // The answer of the first one counts for both.
            if !counts.open.insert(request.id.clone()) {
                return Ok(None);
            }
        }
        Ok(Some(message))
    }
}

/// Returns about how many values and keys a JSON text has. It does not have to be valid.
fn count_values(text: &[u8]) -> usize {
    let (mut values, mut in_string, mut escaped) = (1, false, false);
    for byte in text {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if in_string => escaped = true,
            b'"' => in_string = !in_string,
            b',' | b':' | b'[' | b'{' if !in_string => values += 1,
            _ => {}
        }
    }
    values
}
