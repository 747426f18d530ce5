//! The response to a message.

use std::sync::Arc;
use std::time::Duration;

use cofferdam::sandbox::{OriginBody, OriginResponse};
use http::StatusCode;
use http::header::{CONTENT_TYPE, HeaderMap, LOCATION};
use rmcp::model::{ErrorData, JsonRpcMessage, RequestId};
use rmcp::service::{RoleClient, RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::streamable_http_client::{StreamableHttpError, StreamableHttpPostResponse};
use tokio::sync::OwnedSemaphorePermit;

use super::client::{HttpConnectionState, HttpProblem, HttpResult, MessageKind};
use super::events::{StreamPurpose, event_stream};
use crate::login::LoginChallenge;
use crate::servers::message_guard::MAX_MESSAGE_LEN;
use crate::servers::shown;

pub(super) const EVENT_STREAM: &str = "text/event-stream";
const JSON: &str = "application/json";
/// The time for a whole JSON response, once its headers are there.
const BODY_TIMEOUT: Duration = Duration::from_secs(60);
/// The bytes of an error that are read, and the time for them.
const MAX_ERROR_LEN: usize = 64 << 10;
const ERROR_TIMEOUT: Duration = Duration::from_secs(10);
/// The longest ID of a session, in bytes. It is sent with each request.
const MAX_SESSION_ID_LEN: usize = 512;

/// Returns the media type of a response in lower case, without parameters.
pub(super) fn media_type(headers: &HeaderMap) -> String {
    let value = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    value.split(';').next().unwrap_or_default().trim().to_ascii_lowercase()
}

/// Returns the ID of a response, which an error may lack; `None` for other messages.
pub(super) fn response_id(message: &RxJsonRpcMessage<RoleClient>) -> Option<Option<&RequestId>> {
    match message {
        JsonRpcMessage::Response(response) => Some(Some(&response.id)),
        JsonRpcMessage::Error(error) => Some(error.id.as_ref()),
        JsonRpcMessage::Request(_) | JsonRpcMessage::Notification(_) => None,
    }
}

/// Whether two IDs are the same. Some servers make a text of a number.
pub(super) fn is_same_id(one: &RequestId, other: &RequestId) -> bool {
    let text = |id: &RequestId| match id {
        RequestId::Number(number) => number.to_string(),
        RequestId::String(text) => text.to_string(),
    };
    text(one) == text(other)
}

/// Reads the response to a message.
pub(super) async fn read(
    mut response: OriginResponse,
    (message, kind): (&TxJsonRpcMessage<RoleClient>, MessageKind),
    has_session: bool,
    state: &Arc<HttpConnectionState>,
    slot: Option<OwnedSemaphorePermit>,
) -> HttpResult<StreamableHttpPostResponse> {
    let status = response.status;
    if status == StatusCode::NOT_FOUND && has_session {
        // A new session may be one of another server, with other tools.
        state.requests.mark_changed();
        return Err(StreamableHttpError::SessionExpired);
    }
    if !status.is_success() {
        return read_failure(response, (message, kind), state).await;
    }
    let JsonRpcMessage::Request(request) = message else {
        return Ok(StreamableHttpPostResponse::Accepted);
    };
    if matches!(status, StatusCode::ACCEPTED | StatusCode::NO_CONTENT) {
        return Ok(StreamableHttpPostResponse::Accepted);
    }
    let session_id = session_id(&response.headers).map_err(|problem| state.fail(problem))?;
    match media_type(&response.headers).as_str() {
        EVENT_STREAM => {
            let purpose = StreamPurpose::Response { request: request.id.clone(), _slot: slot };
            let events = event_stream(response.body, Arc::clone(state), purpose);
            Ok(StreamableHttpPostResponse::Sse(events, session_id))
        }
        JSON => {
            let message = read_message(&mut response.body, state).await;
            let message = message.map_err(|problem| state.fail(problem))?;
            let message = match message {
                // The server may not have understood the ID.
                JsonRpcMessage::Error(error) if error.id.is_none() => {
                    JsonRpcMessage::error(error.error, Some(request.id.clone()))
                }
                other => other,
            };
            let is_answer = response_id(&message).flatten();
            if !is_answer.is_some_and(|id| is_same_id(id, &request.id)) {
                return Err(state.fail("its response is for another request".to_owned()));
            }
            Ok(StreamableHttpPostResponse::Json(message, session_id))
        }
        "" => Err(state.fail("its response has no content type".to_owned())),
        other => Err(state.fail(format!(
            "its response is `{}`, neither JSON nor a stream of events",
            shown(other)
        ))),
    }
}

/// Reads a message of JSON.
async fn read_message(
    body: &mut OriginBody,
    state: &HttpConnectionState,
) -> Result<RxJsonRpcMessage<RoleClient>, String> {
    let reading = tokio::time::timeout(BODY_TIMEOUT, read_body(body, state));
    let bytes = reading.await.map_err(|_| {
        let limit = BODY_TIMEOUT.as_secs();
        format!("it does not send its whole response within {limit} seconds")
    })??;
    state.guard.count_input(1, 0)?;
    let text = state.redact(String::from_utf8_lossy(&bytes).into_owned());
    let message = state.guard.admit(text.as_bytes())?;
    message.ok_or_else(|| "its response is not a message of MCP".to_owned())
}

/// Reads a body. All bodies that are read at the same time count together.
async fn read_body(body: &mut OriginBody, state: &HttpConnectionState) -> Result<Vec<u8>, String> {
    let too_large = || Err(format!("it sent a response of more than {MAX_MESSAGE_LEN} bytes"));
    if body.announced_length().is_some_and(|length| length > MAX_MESSAGE_LEN as u64) {
        return too_large();
    }
    let mut bytes = Vec::new();
    while let Some(piece) = body.chunk().await.map_err(|error| error.to_string())? {
        state.guard.count_input(0, piece.len())?;
        if bytes.len() + piece.len() > MAX_MESSAGE_LEN {
            return too_large();
        }
        bytes.extend_from_slice(&piece);
    }
    Ok(bytes)
}

/// Reads the response to a message that failed.
async fn read_failure(
    mut response: OriginResponse,
    (message, kind): (&TxJsonRpcMessage<RoleClient>, MessageKind),
    state: &HttpConnectionState,
) -> HttpResult<StreamableHttpPostResponse> {
    let status = response.status;
    let problem = match status {
        StatusCode::UNAUTHORIZED => Some(format!(
            "it demands authentication (HTTP 401)\nhint: log in with `cofferdam mcp login {}`, or \
                configure a header with a token",
            state.requests.server_name()
        )),
        StatusCode::FORBIDDEN => {
            let scope = LoginChallenge::read(&response.headers).scope;
            Some(scope.map_or_else(
                || "it refuses access (HTTP 403)".to_owned(),
                |scope| format!("it demands the scope `{}` (HTTP 403)", shown(&scope)),
            ))
        }
        status if status.is_redirection() => Some(describe_redirect(status, &response.headers)),
        _ => None,
    };
    if let Some(problem) = problem {
        return Err(end(kind, problem, state));
    }
    let body = response.body.read_all(MAX_ERROR_LEN, ERROR_TIMEOUT).await.unwrap_or_default();
    let text = state.redact(String::from_utf8_lossy(&body).into_owned());
    if let JsonRpcMessage::Request(request) = message
        && status.is_client_error()
    {
        let error = match state.guard.admit(text.as_bytes()) {
            Ok(Some(JsonRpcMessage::Error(error))) => Some(error.error),
            Ok(_) if kind == MessageKind::Discover => {
                let text = format!("the server responds with HTTP {status}");
                Some(ErrorData::invalid_request(text, None))
            }
            Ok(_) => None,
            Err(reason) => return Err(state.fail(reason)),
        };
        if let Some(error) = error {
            // Errors of HTTP servers often have no ID.
            let answer = RxJsonRpcMessage::<RoleClient>::error(error, Some(request.id.clone()));
            return Ok(StreamableHttpPostResponse::Json(answer, None));
        }
    }
    let text = match text.trim() {
        "" => String::new(),
        text if text.starts_with('<') => " and a web page".to_owned(),
        text => format!(": {}", shown(text)),
    };
    Err(end(kind, format!("it responds with HTTP {}{text}", status.as_u16()), state))
}

/// Ends the connection, unless nothing depends on the message.
fn end(
    kind: MessageKind,
    problem: String,
    state: &HttpConnectionState,
) -> StreamableHttpError<HttpProblem> {
    match kind {
        MessageKind::OneWay => StreamableHttpError::Client(HttpProblem(problem)),
        MessageKind::Discover
        | MessageKind::Call
        | MessageKind::Request
        | MessageKind::Initialized => state.fail(problem),
    }
}

fn describe_redirect(status: StatusCode, headers: &HeaderMap) -> String {
    let target = headers.get(LOCATION).and_then(|value| value.to_str().ok()).unwrap_or_default();
    format!(
        "it redirects to `{}` (HTTP {}), and redirects are not followed\nhint: if you trust that \
            address, use it as the URL of the server",
        shown(target),
        status.as_u16()
    )
}

/// Returns the ID of the session, if the response has one.
fn session_id(headers: &HeaderMap) -> Result<Option<String>, String> {
    let mut values = headers.get_all("mcp-session-id").iter();
    let Some(value) = values.next() else { return Ok(None) };
    let bytes = value.as_bytes();
    let is_valid = (1..=MAX_SESSION_ID_LEN).contains(&bytes.len())
        && bytes.iter().all(u8::is_ascii_graphic)
        && values.next().is_none();
    match is_valid {
        true => Ok(Some(String::from_utf8_lossy(bytes).into_owned())),
        false => Err(format!(
            "its session ID is not 1 to {MAX_SESSION_ID_LEN} visible characters of ASCII"
        )),
    }
}
