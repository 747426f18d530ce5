//! The requests of all connections: checks first, then the protocol.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, StatusCode, header};
use http_body_util::Full;
use hyper::body::Incoming;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};

use super::access::AccessRules;
use super::auth::{ClientAuthentication, ClientPrincipal, ResourceServer};
use super::body::{BodyBudget, ReceivedBody};
use super::client_states::StatelessClients;
use super::options::{ENDPOINT_PATH, HttpLimits};
use super::response::{HttpRefusal, HttpReply, error_reply, json_reply};
use super::session_table::{SessionTable, session_not_found};
use crate::client_kind::ClientKind;
use crate::handler::{ClientHandler, ClientState};
use crate::invalid_message::explain_invalid;
use crate::server::ToolServer;

const SESSION_HEADER: &str = "mcp-session-id";

/// Headers that a request may have once. Two readers could choose differently among several.
const SINGLE_HEADERS: [HeaderName; 7] = [
    header::AUTHORIZATION,
    header::CONTENT_LENGTH,
    header::CONTENT_TYPE,
    header::TRANSFER_ENCODING,
    HeaderName::from_static(SESSION_HEADER),
    HeaderName::from_static("mcp-protocol-version"),
    HeaderName::from_static("last-event-id"),
];

tokio::task_local! {
    static SCOPE: Arc<RequestScope>;
}

/// What the parts of the server know about the current request.
pub(crate) struct RequestScope {
    principal: ClientPrincipal,
    /// The client of the session that the request may begin.
    state: Mutex<Option<Arc<ClientState>>>,
    /// The response in place of the one of the SDK.
    refusal: Mutex<Option<HttpRefusal>>,
}

impl RequestScope {
    /// Refuses the current request.
    pub(crate) fn refuse(refusal: HttpRefusal) {
        let _ = SCOPE.try_with(|scope| {
            *scope.refusal.lock().unwrap_or_else(PoisonError::into_inner) = Some(refusal);
        });
    }

    /// Takes the client of the session that the current request begins.
    pub(crate) fn take_session_state() -> Option<(ClientPrincipal, Arc<ClientState>)> {
        let take = |scope: &Arc<Self>| {
            let state = scope.state.lock().unwrap_or_else(PoisonError::into_inner).take();
            state.map(|state| (scope.principal.clone(), state))
        };
        SCOPE.try_with(take).ok().flatten()
    }
}

/// The server as a function from requests to responses.
pub(crate) struct HttpEndpoint {
    access: AccessRules,
    authentication: ClientAuthentication,
    bodies: BodyBudget,
    pub(crate) sessions: Arc<SessionTable>,
    pub(crate) stateless: Arc<StatelessClients>,
    service: StreamableHttpService<ClientHandler, SessionTable>,
    url: String,
}

impl HttpEndpoint {
    pub(crate) fn new(
        server: ToolServer,
        address: SocketAddr,
        access: AccessRules,
        authentication: ClientAuthentication,
        limits: &HttpLimits,
    ) -> Self {
        let sessions = Arc::new(SessionTable::new(limits.clone()));
        let stateless =
            Arc::new(StatelessClients::new(server.clone(), limits.sessions, limits.idle_timeout));
        let mut config = StreamableHttpServerConfig::default()
            .disable_allowed_hosts()
            .with_sse_retry(None)
            .with_max_request_body_bytes(limits.body_len)
            .with_cancellation_token(server.shutdown().child_token());
        // `access` has checked the names already, more strictly.
        config.allowed_origins.clear();
        let clients = Arc::clone(&stateless);
        let new_handler = move || {
            let scope = SCOPE.try_with(Arc::clone);
            let scope = scope.map_err(|_| std::io::Error::other("there is no request"))?;
            let kind = ClientKind::Session(scope.principal.clone());
            let state = Arc::new(ClientState::new(server.clone(), kind));
            *scope.state.lock().unwrap_or_else(PoisonError::into_inner) = Some(Arc::clone(&state));
            Ok(ClientHandler::over_http(state, Arc::clone(&clients), scope.principal.clone()))
        };
        let service = StreamableHttpService::new(new_handler, Arc::clone(&sessions), config);
        let url = endpoint_url(address);
        let bodies = BodyBudget::new(limits);
        Self { access, authentication, bodies, sessions, stateless, service, url }
    }

    /// Answers a request.
    pub(crate) async fn answer(&self, request: Request<Incoming>) -> HttpReply {
        let is_chunked = request.headers().contains_key(header::TRANSFER_ENCODING);
        let answered = self.answer_checked(request).await;
        let mut reply = answered.unwrap_or_else(HttpRefusal::into_reply);
        let headers = reply.headers_mut();
        let nosniff = HeaderValue::from_static("nosniff");
        headers.insert(header::X_CONTENT_TYPE_OPTIONS, nosniff);
        headers.entry(header::CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
        if is_chunked {
            // What follows such a body could count as another request only for one of two readers.
            headers.insert(header::CONNECTION, HeaderValue::from_static("close"));
        }
        reply
    }

    async fn answer_checked(&self, request: Request<Incoming>) -> Result<HttpReply, HttpRefusal> {
        let (parts, body) = request.into_parts();
        let bad = |problem: String| HttpRefusal::new(StatusCode::BAD_REQUEST, problem);
        self.access.check(&parts.uri, &parts.headers)?;
        for name in &SINGLE_HEADERS {
            if parts.headers.get_all(name).iter().count() > 1 {
                return Err(bad(format!("the header `{name}` occurs more than once")));
            }
        }
        let encoding = parts.headers.get(header::TRANSFER_ENCODING);
        if encoding.is_some_and(|value| !value.as_bytes().eq_ignore_ascii_case(b"chunked")) {
            return Err(bad("the only transfer encoding is `chunked`".to_owned()));
        }
        if let ClientAuthentication::OAuth(server) = &self.authentication
            && ResourceServer::is_metadata_path(parts.uri.path())
            && parts.method == Method::GET
        {
            return Ok(json_reply(StatusCode::OK, server.metadata(&self.url)));
        }
        if parts.uri.path() != ENDPOINT_PATH || parts.uri.query().is_some() {
            let problem = format!("the path of this server is {ENDPOINT_PATH}, without a query");
            return Err(HttpRefusal::new(StatusCode::NOT_FOUND, problem));
        }
        if ![Method::POST, Method::GET, Method::DELETE].contains(&parts.method) {
            let problem = "the method is not supported";
            return Err(HttpRefusal::new(StatusCode::METHOD_NOT_ALLOWED, problem)
                .with_header(header::ALLOW, "GET, POST, DELETE"));
        }
        if !is_utf8_or_unnamed(&parts.headers) {
            let problem = "the only character set is UTF-8";
            return Err(HttpRefusal::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, problem));
        }
        let principal = self.authentication.authenticate(&parts.headers, &self.url)?;
        self.check_session(&parts.headers, &principal)?;
        let received = match parts.method {
            Method::POST => self.bodies.receive(&parts.headers, body).await?,
            _ if hyper::body::Body::is_end_stream(&body) => ReceivedBody::default(),
            _ => return Err(bad("a request with this method has no body".to_owned())),
        };
        let scope = Arc::new(RequestScope {
            principal,
            state: Mutex::default(),
            refusal: Mutex::default(),
        });
        let is_delete = parts.method == Method::DELETE;
        let request = Request::from_parts(parts, Full::new(received.bytes.clone()));
        let handled = self.service.handle(request);
        let mut reply = SCOPE.scope(Arc::clone(&scope), handled).await;
        if is_delete && reply.status() == StatusCode::ACCEPTED {
            // The end has begun, and clients expect it to be over.
            *reply.status_mut() = StatusCode::NO_CONTENT;
        }
        let refusal = scope.refusal.lock().unwrap_or_else(PoisonError::into_inner).take();
        match refusal {
            Some(refusal) if !reply.status().is_success() => Err(refusal),
            _ => Ok(explain_body(reply, &received.bytes)),
        }
    }

    /// Checks that a named session belongs to the principal.
    fn check_session(
        &self,
        headers: &HeaderMap,
        principal: &ClientPrincipal,
    ) -> Result<(), HttpRefusal> {
        let Some(id) = headers.get(SESSION_HEADER) else { return Ok(()) };
        let is_own = id.to_str().is_ok_and(|id| self.sessions.belongs_to(id, principal));
        if is_own { Ok(()) } else { Err(session_not_found()) }
    }
}

/// Returns whether the media type of a body has no parameter `charset` other than UTF-8. Bodies are
/// read as UTF-8, so another reader could find other words in one that names something else.
fn is_utf8_or_unnamed(headers: &HeaderMap) -> bool {
    let Some(value) = headers.get(header::CONTENT_TYPE) else { return true };
    let Ok(value) = value.to_str() else { return false };
    value.split(';').skip(1).all(|parameter| {
        let (name, value) = parameter.split_once('=').unwrap_or((parameter, ""));
        !name.trim().eq_ignore_ascii_case("charset")
            || ["utf-8", "\"utf-8\""].iter().any(|known| value.trim().eq_ignore_ascii_case(known))
    })
}

/// Returns the URL of a server that listens on an address.
pub(crate) fn endpoint_url(address: SocketAddr) -> String {
    format!("http://{address}{ENDPOINT_PATH}")
}

/// Replaces the response of the SDK to a body that is no message by an error of JSON-RPC.
fn explain_body(reply: HttpReply, body: &Bytes) -> HttpReply {
    if reply.status() == StatusCode::UNSUPPORTED_MEDIA_TYPE
        && let Some((id, error)) = explain_invalid(body)
    {
        return error_reply(StatusCode::BAD_REQUEST, id, error);
    }
    reply
}
