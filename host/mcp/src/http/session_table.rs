//! All sessions of a server, by their IDs.

use std::collections::HashMap;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures_util::future::join_all;
use futures_util::{Stream, StreamExt as _, stream};
use http::StatusCode;
use http::request::Parts;
use rmcp::model::{ErrorData, GetExtensions as _, JsonRpcMessage, ProtocolVersion};
use rmcp::service::{RoleServer, RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::streamable_http_server::session::{
    ServerSseMessage, SessionId, SessionManager,
};
use tokio::task::JoinSet;

use super::auth::ClientPrincipal;
use super::endpoint::RequestScope;
use super::options::HttpLimits;
use super::response::{HttpRefusal, SERVER_ERROR};
use super::session::{HttpSession, SessionEvents, SessionTransport};
use super::streams::StreamRefusal;
use crate::foreign_answer::is_foreign_answer;

/// How long a service may take to answer the first request of a session.
const INITIALIZE_TIMEOUT: Duration = Duration::from_secs(30);
/// The header with the version of the protocol.
const VERSION_HEADER: &str = "mcp-protocol-version";

/// The sessions of a server.
pub(crate) struct SessionTable {
    sessions: Mutex<HashMap<SessionId, Arc<HttpSession>>>,
    limits: HttpLimits,
    /// The sessions that are ending.
    ending: Mutex<JoinSet<()>>,
}

impl SessionTable {
    pub(crate) fn new(limits: HttpLimits) -> Self {
        Self { sessions: Mutex::default(), limits, ending: Mutex::default() }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<SessionId, Arc<HttpSession>>> {
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn lock_ending(&self) -> MutexGuard<'_, JoinSet<()>> {
        self.ending.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns whether a session exists for this principal. To others it does not exist.
    pub(crate) fn belongs_to(&self, id: &str, principal: &ClientPrincipal) -> bool {
        self.lock().get(id).is_some_and(|session| session.principal == *principal)
    }

    fn find(&self, id: &SessionId) -> io::Result<Arc<HttpSession>> {
        let session = self.lock().get(id).cloned();
        session.inspect(|session| session.touch()).ok_or_else(|| {
            RequestScope::refuse(session_not_found());
            io::ErrorKind::NotFound.into()
        })
    }

    fn begin_end(&self, session: Arc<HttpSession>) {
        let mut ending = self.lock_ending();
        while ending.try_join_next().is_some() {}
        ending.spawn(async move { session.end().await });
    }

    /// Ends the sessions whose clients are gone.
    pub(crate) fn sweep(&self) {
        let mut over = Vec::new();
        self.lock().retain(|_, session| {
            let is_over = session.sweep(&self.limits);
            if is_over {
                over.push(Arc::clone(session));
            }
            !is_over
        });
        over.into_iter().for_each(|session| self.begin_end(session));
    }

    /// Ends all sessions, and waits until everything that they started is over.
    pub(crate) async fn end_all(&self) {
        let all: Vec<_> = self.lock().drain().map(|(_, session)| session).collect();
        join_all(all.iter().map(|session| session.end())).await;
        let mut ending = std::mem::take(&mut *self.lock_ending());
        while ending.join_next().await.is_some() {}
    }

    /// Turns the refusal of a stream into an event, or into a response.
    fn refuse_stream(
        &self,
        refusal: StreamRefusal,
        message: &RxJsonRpcMessage<RoleServer>,
    ) -> io::Result<ServerSseMessage> {
        let JsonRpcMessage::Request(request) = message else {
            return Err(io::ErrorKind::InvalidInput.into());
        };
        let answer = match refusal {
            StreamRefusal::DuplicateId => {
                let problem = "the ID is that of a request without an answer";
                // An answer with the ID would count as the answer of the other request.
                TxJsonRpcMessage::<RoleServer>::error(
                    ErrorData::invalid_request(problem, None),
                    None,
                )
            }
            StreamRefusal::TooManyRequests => {
                let limit = self.limits.open_requests;
                let problem = format!("{limit} requests have no answer yet; try again later");
                let error = ErrorData::new(SERVER_ERROR, problem, None);
                TxJsonRpcMessage::<RoleServer>::error(error, Some(request.id.clone()))
            }
            StreamRefusal::AlreadyOpen | StreamRefusal::Unknown => {
                RequestScope::refuse(session_not_found());
                return Err(io::ErrorKind::NotFound.into());
            }
        };
        Ok(ServerSseMessage::from_message(answer))
    }
}

/// Returns the refusal of a request of a session that does not exist.
pub(crate) fn session_not_found() -> HttpRefusal {
    HttpRefusal::new(StatusCode::NOT_FOUND, "the session does not exist, or it has ended")
}

/// Returns a new ID that nobody can guess.
fn new_session_id() -> io::Result<SessionId> {
    let mut bytes = [0; 32];
    getrandom::fill(&mut bytes).map_err(|error| io::Error::other(error.to_string()))?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>().into())
}

/// Returns whether the client knows events without content.
fn is_resumable(message: &RxJsonRpcMessage<RoleServer>) -> bool {
    let JsonRpcMessage::Request(request) = message else { return false };
    let parts = request.request.extensions().get::<Parts>();
    let version = parts.and_then(|parts| parts.headers.get(VERSION_HEADER)?.to_str().ok());
    version.is_some_and(|version| version >= ProtocolVersion::V_2025_11_25.as_str())
}

impl SessionManager for SessionTable {
    type Error = io::Error;
    type Transport = SessionTransport;

    async fn create_session(&self) -> io::Result<(SessionId, SessionTransport)> {
        let Some((principal, state)) = RequestScope::take_session_state() else {
            return Err(io::Error::other("the request has no client"));
        };
        let id = new_session_id()?;
        let (session, transport) = HttpSession::new(principal, state, &self.limits);
        let mut sessions = self.lock();
        if sessions.len() >= self.limits.sessions {
            drop(sessions);
            let problem = "the server has too many sessions; end one with DELETE, or try later";
            RequestScope::refuse(
                HttpRefusal::new(StatusCode::SERVICE_UNAVAILABLE, problem)
                    .with_header(http::header::RETRY_AFTER, "60"),
            );
            return Err(io::ErrorKind::QuotaExceeded.into());
        }
        sessions.insert(Arc::clone(&id), session);
        Ok((id, transport))
    }

    async fn initialize_session(
        &self,
        id: &SessionId,
        message: RxJsonRpcMessage<RoleServer>,
    ) -> io::Result<TxJsonRpcMessage<RoleServer>> {
        let session = self.find(id)?;
        // The first event has to be the answer.
        let mut events = open_events(&session, &message, false)
            .map_err(|_| io::Error::other("the session cannot begin"))?;
        session.send(message).await?;
        let answer = tokio::time::timeout(INITIALIZE_TIMEOUT, events.next()).await;
        let answer = answer.ok().flatten().and_then(|event| event.message);
        answer.map(Arc::unwrap_or_clone).ok_or_else(|| io::Error::other("no answer"))
    }

    async fn has_session(&self, id: &SessionId) -> io::Result<bool> {
        Ok(self.lock().contains_key(id))
    }

    async fn close_session(&self, id: &SessionId) -> io::Result<()> {
        let session = self.lock().remove(id);
        if let Some(session) = session {
            self.begin_end(session);
        }
        Ok(())
    }

    async fn create_stream(
        &self,
        id: &SessionId,
        message: RxJsonRpcMessage<RoleServer>,
    ) -> io::Result<impl Stream<Item = ServerSseMessage> + Send + Sync + 'static> {
        let session = self.find(id)?;
        match open_events(&session, &message, is_resumable(&message)) {
            Ok(events) => {
                pass_on(&session, message).await?;
                Ok(events.left_stream())
            }
            Err(refusal) => {
                let refused = self.refuse_stream(refusal, &message)?;
                Ok(stream::iter([refused]).right_stream())
            }
        }
    }

    async fn accept_message(
        &self,
        id: &SessionId,
        message: RxJsonRpcMessage<RoleServer>,
    ) -> io::Result<()> {
        let session = self.find(id)?;
        if is_foreign_answer(&message) {
            return Ok(());
        }
        pass_on(&session, message).await
    }

    async fn create_standalone_stream(
        &self,
        id: &SessionId,
    ) -> io::Result<impl Stream<Item = ServerSseMessage> + Send + Sync + 'static> {
        let session = self.find(id)?;
        let opened = session.streams().open_own();
        match opened {
            Ok(reader) => Ok(session.events(reader)),
            Err(StreamRefusal::AlreadyOpen) => {
                let problem = "another connection reads the stream of this session";
                RequestScope::refuse(HttpRefusal::new(StatusCode::CONFLICT, problem));
                Err(io::ErrorKind::AlreadyExists.into())
            }
            Err(_) => {
                RequestScope::refuse(session_not_found());
                Err(io::ErrorKind::NotFound.into())
            }
        }
    }

    async fn resume(
        &self,
        id: &SessionId,
        last_event_id: String,
    ) -> io::Result<impl Stream<Item = ServerSseMessage> + Send + Sync + 'static> {
        let session = self.find(id)?;
        let resumed = session.streams().resume(&last_event_id);
        match resumed {
            Ok(reader) => Ok(session.events(reader)),
            Err(_) => Err(io::Error::other("the stream has ended")),
        }
    }
}

/// Passes a message on to the service of a session.
async fn pass_on(session: &HttpSession, message: RxJsonRpcMessage<RoleServer>) -> io::Result<()> {
    let sent = session.send(message).await;
    sent.inspect_err(|_| RequestScope::refuse(session_not_found()))
}

/// Opens the stream of a request.
fn open_events(
    session: &Arc<HttpSession>,
    message: &RxJsonRpcMessage<RoleServer>,
    is_resumable: bool,
) -> Result<SessionEvents, StreamRefusal> {
    let JsonRpcMessage::Request(request) = message else { return Err(StreamRefusal::Unknown) };
    let reader = session.streams().open(request, is_resumable)?;
    Ok(session.events(reader))
}
