//! A stream of server-sent events within limits.

use std::future::ready;
use std::sync::Arc;

use bytes::Bytes;
use cofferdam::sandbox::OriginBody;
use futures_util::StreamExt as _;
use futures_util::stream::{BoxStream, unfold};
use rmcp::model::RequestId;
use rmcp::service::{RoleClient, RxJsonRpcMessage};
use rmcp::transport::streamable_http_client::SseError;
use sse_stream::{Sse, SseStream};
use tokio::sync::OwnedSemaphorePermit;

use super::client::{HttpConnectionState, HttpProblem};
use super::response::{is_same_id, response_id};
use crate::servers::message_guard::MAX_MESSAGE_LEN;

/// The pauses before a stream is opened again that a server can ask for, in milliseconds.
const MIN_RETRY: u64 = 1_000;
const MAX_RETRY: u64 = 30_000;
/// The longest ID of an event, in bytes. It is sent back in a header.
const MAX_EVENT_ID_LEN: usize = 1024;

/// The size of the current event.
#[derive(Debug, Default)]
struct EventSize {
    event: usize,
    line: usize,
    was_return: bool,
}

impl EventSize {
    /// Counts bytes. Returns whether the event is small enough.
    fn count(&mut self, bytes: &[u8]) -> bool {
        for byte in bytes {
            let follows_return = std::mem::replace(&mut self.was_return, *byte == b'\r');
            match byte {
                b'\n' if follows_return => continue,
                b'\n' | b'\r' if self.line == 0 => self.event = 0,
                b'\n' | b'\r' => self.line = 0,
                _ => self.line += 1,
            }
            self.event += 1;
            if self.event > MAX_MESSAGE_LEN {
                return false;
            }
        }
        true
    }
}

/// What a stream of events is for.
pub(super) enum StreamPurpose {
    /// For everything that concerns the session.
    Session,
    /// For the response to this request. The slot is held until the stream ends.
    Response { request: RequestId, _slot: Option<OwnedSemaphorePermit> },
}

impl StreamPurpose {
    /// Whether a message belongs on the stream.
    fn allows(&self, message: &RxJsonRpcMessage<RoleClient>) -> bool {
        match (self, response_id(message)) {
            (Self::Session, _) | (Self::Response { .. }, None) => true,
            (Self::Response { request, .. }, Some(id)) => {
                id.is_some_and(|id| is_same_id(id, request))
            }
        }
    }
}

/// Returns the events of a body.
pub(super) fn event_stream(
    body: OriginBody,
    state: Arc<HttpConnectionState>,
    purpose: StreamPurpose,
) -> BoxStream<'static, Result<Sse, SseError>> {
    let reading = Arc::clone(&state);
    let pieces = unfold(Some((body, EventSize::default())), move |reader| {
        let state = Arc::clone(&reading);
        async move {
            let (mut body, mut size) = reader?;
            match read_piece(&mut body, &mut size, &state).await {
                Ok(Some(piece)) => Some((Ok(piece), Some((body, size)))),
                Ok(None) => None,
                Err(problem) => Some((Err(problem), None)),
            }
        }
    });
    let events = SseStream::from_bytes_stream(pieces);
    let checked = events.filter_map(move |event| {
        ready(Some(event.and_then(|event| check_event(event, &state, &purpose))))
    });
    checked.boxed()
}

async fn read_piece(
    body: &mut OriginBody,
    size: &mut EventSize,
    state: &HttpConnectionState,
) -> Result<Option<Bytes>, HttpProblem> {
    // A broken stream may be opened again, so it ends nothing.
    let piece = body.chunk().await.map_err(|error| HttpProblem(error.to_string()))?;
    let Some(piece) = piece else { return Ok(None) };
    let end = |reason: String| {
        state.fault.report(reason.clone());
        HttpProblem(reason)
    };
    state.guard.count_input(0, piece.len()).map_err(end)?;
    if !size.count(&piece) {
        return Err(end(format!("it sent an event of more than {MAX_MESSAGE_LEN} bytes")));
    }
    Ok(Some(piece))
}

/// Checks an event. One that is not a message has no data afterwards.
fn check_event(
    mut event: Sse,
    state: &HttpConnectionState,
    purpose: &StreamPurpose,
) -> Result<Sse, SseError> {
    event.retry = event.retry.map(|pause| pause.clamp(MIN_RETRY, MAX_RETRY));
    let is_id = |id: &String| {
        id.len() <= MAX_EVENT_ID_LEN
            && id.bytes().all(|byte| byte == b' ' || byte.is_ascii_graphic())
    };
    event.id = event.id.filter(is_id);
    let is_message = matches!(event.event.as_deref(), None | Some("" | "message"));
    let data = event.data.take().filter(|data| is_message && !data.trim().is_empty());
    let Some(data) = data else { return Ok(event) };
    let admitted = state.guard.count_input(1, 0).and_then(|()| state.guard.admit(data.as_bytes()));
    match admitted {
        // The SDK ends the stream of a request with the first response on it.
        Ok(Some(message)) if !purpose.allows(&message) => {}
        Ok(Some(_)) => event.data = Some(state.redact(data)),
        Ok(None) => {}
        Err(reason) => {
            state.fault.report(reason.clone());
            return Err(SseError::Body(Box::new(HttpProblem(reason))));
        }
    }
    Ok(event)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_an_event_without_end_is_too_large() {
        let mut size = EventSize::default();
        let line = format!("data: {}\n", "x".repeat(100_000));
        for end in ["\n", "\r\n", "\r"] {
            let event = format!("{}{end}{end}", "data: x".repeat(10_000));
            assert!((0..1000).all(|_| size.count(event.as_bytes())), "{end:?}");
            assert_eq!(size.line, 0, "{end:?}");
        }
        assert!(size.count(b"\n\n"));
        let lines = (0..1000).take_while(|_| size.count(line.as_bytes())).count();
        assert_eq!(lines, MAX_MESSAGE_LEN / line.len());
    }
}
