//! The HTTP client of one connection, as the SDK uses it.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use cofferdam::model::ApiKey;
use cofferdam::policy::HttpUrl;
use cofferdam::sandbox::{HttpReach, OriginClient, OriginRequest, OriginResponse};
use futures_util::stream::BoxStream;
use http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use http::{Method, StatusCode};
use rmcp::model::{ClientNotification, ClientRequest, JsonRpcMessage};
use rmcp::service::{RoleClient, TxJsonRpcMessage};
use rmcp::transport::streamable_http_client::{
    SseError, StreamableHttpClient, StreamableHttpError, StreamableHttpPostResponse,
};
use sse_stream::Sse;
use tokio::sync::Semaphore;

use super::authorization::{RequestAuthorization, bearer};
use super::endpoint::HttpServerTarget;
use super::events::{StreamPurpose, event_stream};
use super::{MAX_REQUESTS, response};
use crate::servers::message_guard::{ConnectionFault, MessageGuard};
use crate::servers::server_requests::ServerRequests;

/// The time until the headers of a response.
const HEAD_TIMEOUT: Duration = Duration::from_secs(30);
/// The same for a call, which has a limit of its own: no call may take longer than an hour.
const CALL_HEAD_TIMEOUT: Duration = Duration::from_secs(3700);
/// How long the end of a session may take.
const DELETE_TIMEOUT: Duration = Duration::from_secs(2);
/// The number of streams that are opened between two requests.
const MAX_STREAMS: u32 = 8;
/// The pause before a stream is opened again. It doubles.
const FIRST_STREAM_PAUSE: Duration = Duration::from_millis(250);

const SESSION_ID: HeaderName = HeaderName::from_static("mcp-session-id");
const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");

/// A problem of a server, as the end of a sentence about it.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{0}")]
pub(in crate::servers) struct HttpProblem(pub(super) String);

pub(super) type HttpResult<T> = Result<T, StreamableHttpError<HttpProblem>>;

/// The HTTP client of one connection. Clones share everything.
#[derive(Clone)]
pub(in crate::servers) struct HttpServerClient(Arc<HttpConnectionState>);

/// Everything that the requests of a connection share.
pub(super) struct HttpConnectionState {
    origin: OriginClient,
    url: HttpUrl,
    headers: HeaderMap,
    secrets: Vec<ApiKey>,
    authorization: RequestAuthorization,
    pub(super) guard: MessageGuard,
    pub(super) fault: ConnectionFault,
    pub(super) requests: ServerRequests,
    slots: Arc<Semaphore>,
    /// The streams that were opened since the last request.
    streams: AtomicU32,
}

/// What a message means for its response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MessageKind {
    /// The question for the versions of the protocol, which older servers reject.
    Discover,
    /// A call of a tool.
    Call,
    /// Another request.
    Request,
    /// A notification or an answer: nothing of the response matters.
    OneWay,
    /// The notification without which there is no session.
    Initialized,
}

impl MessageKind {
    pub(super) fn of(message: &TxJsonRpcMessage<RoleClient>) -> Self {
        match message {
            JsonRpcMessage::Request(request) => match &request.request {
                ClientRequest::DiscoverRequest(_) => Self::Discover,
                ClientRequest::CallToolRequest(_) => Self::Call,
                _ => Self::Request,
            },
            JsonRpcMessage::Notification(notification) => match &notification.notification {
                ClientNotification::InitializedNotification(_) => Self::Initialized,
                _ => Self::OneWay,
            },
            JsonRpcMessage::Response(_) | JsonRpcMessage::Error(_) => Self::OneWay,
        }
    }

    /// Returns whether the message has an answer.
    pub(super) fn is_request(self) -> bool {
        matches!(self, Self::Discover | Self::Call | Self::Request)
    }
}

impl HttpConnectionState {
    /// Ends the connection for a reason.
    pub(super) fn fail(&self, reason: String) -> StreamableHttpError<HttpProblem> {
        // A part of the reason may be from the server.
        let reason = self.redact(reason);
        self.fault.report(reason.clone());
        StreamableHttpError::Client(HttpProblem(reason))
    }

    /// Takes the secrets of the connection out of a text.
    pub(super) fn redact(&self, text: String) -> String {
        let text = self.secrets.iter().fold(text, |text, secret| secret.redact(&text));
        self.authorization.redact(text)
    }

    fn request(
        &self,
        method: Method,
        custom: HashMap<HeaderName, HeaderValue>,
        session_id: Option<&str>,
    ) -> OriginRequest {
        let mut request = OriginRequest::new(method, self.url.clone());
        // The caller limits the time of a body.
        request.idle_timeout = None;
        request.head_timeout = HEAD_TIMEOUT;
        request.headers.extend(custom);
        if let Some(id) = session_id.and_then(|id| HeaderValue::from_str(id).ok()) {
            request.headers.insert(SESSION_ID, id);
        }
        request
            .headers
            .extend(self.headers.iter().map(|(name, value)| (name.clone(), value.clone())));
        request
    }
}

impl HttpServerClient {
    /// Creates the client of a connection.
    pub(in crate::servers) fn new(
        (origin, reach): (OriginClient, HttpReach),
        endpoint: &HttpServerTarget,
        (requests, fault): (ServerRequests, ConnectionFault),
    ) -> Self {
        Self(Arc::new(HttpConnectionState {
            origin,
            authorization: RequestAuthorization::new(endpoint.tokens.clone(), reach),
            url: endpoint.url.clone(),
            headers: endpoint.headers.clone(),
            secrets: endpoint.secrets.clone(),
            guard: MessageGuard::default(),
            fault,
            requests,
            slots: Arc::new(Semaphore::new(MAX_REQUESTS)),
            streams: AtomicU32::new(0),
        }))
    }

    pub(in crate::servers) fn url(&self) -> &HttpUrl {
        &self.0.url
    }

    /// Sends a request with the token of the login. If the server rejects the token, it is
    /// refreshed once.
    async fn send_authorized(&self, request: OriginRequest) -> Result<OriginResponse, String> {
        let token = self.0.authorization.current().await?;
        let response = self.send_with(request.clone(), token.as_ref()).await?;
        let rejected = token.filter(|_| response.status == StatusCode::UNAUTHORIZED);
        let Some(rejected) = rejected else { return Ok(response) };
        match self.0.authorization.replace(&rejected).await? {
            Some(token) => self.send_with(request, Some(&token)).await,
            None => Ok(response),
        }
    }

    async fn send_with(
        &self,
        mut request: OriginRequest,
        token: Option<&ApiKey>,
    ) -> Result<OriginResponse, String> {
        if let Some(value) = token.and_then(bearer) {
            request.headers.insert(AUTHORIZATION, value);
        }
        self.0.origin.send(request).await.map_err(|error| error.to_string())
    }

    async fn post(
        &self,
        message: TxJsonRpcMessage<RoleClient>,
        session_id: Option<Arc<str>>,
        custom: HashMap<HeaderName, HeaderValue>,
    ) -> HttpResult<StreamableHttpPostResponse> {
        let state = &self.0;
        let kind = MessageKind::of(&message);
        let answered = state.guard.begin_send(&message);
        let slot = match kind.is_request() {
            true => {
                state.streams.store(0, Ordering::Relaxed);
                // The limit of the call or of the listing ends the wait.
                Arc::clone(&state.slots).acquire_owned().await.ok()
            }
            false => None,
        };
        let mut request = state.request(Method::POST, custom, session_id.as_deref());
        request.headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        let accept = HeaderValue::from_static("application/json, text/event-stream");
        request.headers.insert(ACCEPT, accept);
        request.body = serde_json::to_vec(&message)?.into();
        if kind == MessageKind::Call {
            request.head_timeout = CALL_HEAD_TIMEOUT;
        }
        let response = match self.send_authorized(request).await {
            Ok(response) => response,
            Err(problem) if kind == MessageKind::OneWay => {
                return Err(StreamableHttpError::Client(HttpProblem(problem)));
            }
            Err(problem) => return Err(state.fail(problem)),
        };
        if let Some(id) = answered {
            state.guard.end_request(&id);
        }
        response::read(response, (&message, kind), session_id.is_some(), state, slot).await
    }
}

impl StreamableHttpClient for HttpServerClient {
    type Error = HttpProblem;

    async fn post_message(
        &self,
        _uri: Arc<str>,
        message: TxJsonRpcMessage<RoleClient>,
        session_id: Option<Arc<str>>,
        _auth_header: Option<String>,
        custom_headers: HashMap<HeaderName, HeaderValue>,
    ) -> HttpResult<StreamableHttpPostResponse> {
        self.post(message, session_id, custom_headers).await
    }

    async fn delete_session(
        &self,
        _uri: Arc<str>,
        session_id: Arc<str>,
        _auth_header: Option<String>,
        custom_headers: HashMap<HeaderName, HeaderValue>,
    ) -> HttpResult<()> {
        let mut request = self.0.request(Method::DELETE, custom_headers, Some(&session_id));
        request.head_timeout = DELETE_TIMEOUT;
        // Whether the server ends the session is its own business.
        let _ = self.send_authorized(request).await;
        Ok(())
    }

    async fn get_stream(
        &self,
        _uri: Arc<str>,
        session_id: Option<Arc<str>>,
        last_event_id: Option<String>,
        _auth_header: Option<String>,
        custom_headers: HashMap<HeaderName, HeaderValue>,
    ) -> HttpResult<BoxStream<'static, Result<Sse, SseError>>> {
        let state = &self.0;
        let before = state.streams.fetch_add(1, Ordering::Relaxed);
        if before >= MAX_STREAMS {
            // The SDK opens the stream no more.
            return Err(StreamableHttpError::ServerDoesNotSupportSse);
        }
        if before > 0 {
            tokio::time::sleep(FIRST_STREAM_PAUSE.saturating_mul(1 << before)).await;
        }
        let mut request = state.request(Method::GET, custom_headers, session_id.as_deref());
        request.headers.insert(ACCEPT, HeaderValue::from_static("text/event-stream"));
        if let Some(id) = last_event_id.and_then(|id| HeaderValue::from_str(&id).ok()) {
            request.headers.insert(LAST_EVENT_ID, id);
        }
        let sent = self.send_authorized(request).await;
        let response = sent.map_err(|problem| StreamableHttpError::Client(HttpProblem(problem)))?;
        let is_stream = response::media_type(&response.headers) == response::EVENT_STREAM;
        if response.status != StatusCode::OK || !is_stream {
            return Err(StreamableHttpError::ServerDoesNotSupportSse);
        }
        Ok(event_stream(response.body, Arc::clone(state), StreamPurpose::Session))
    }
}
