//! One session: the messages between its client and its service.

use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::Instant;

use futures_util::Stream;
use rmcp::model::{
    CancelledNotification, CancelledNotificationParam, ClientNotification, JsonRpcMessage,
    RequestId,
};
use rmcp::service::{RoleServer, RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use rmcp::transport::streamable_http_server::session::ServerSseMessage;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::auth::ClientPrincipal;
use super::options::HttpLimits;
use super::streams::{SessionStreams, StreamReader};
use crate::handler::ClientState;

/// The messages of a client that wait for its service.
const MAX_WAITING_MESSAGES: usize = 64;

/// A session of one client.
pub(crate) struct HttpSession {
    pub(crate) principal: ClientPrincipal,
    state: Arc<ClientState>,
    inbound: mpsc::Sender<RxJsonRpcMessage<RoleServer>>,
    streams: Mutex<SessionStreams>,
    last_active: Mutex<Instant>,
    closed: CancellationToken,
}

/// The side of a session that its service uses.
pub(crate) struct SessionTransport {
    session: Arc<HttpSession>,
    inbound: mpsc::Receiver<RxJsonRpcMessage<RoleServer>>,
}

/// The events of a stream for one connection. Dropping it means that the connection is gone.
pub(crate) struct SessionEvents {
    session: Arc<HttpSession>,
    reader: StreamReader,
}

impl HttpSession {
    pub(crate) fn new(
        principal: ClientPrincipal,
        state: Arc<ClientState>,
        limits: &HttpLimits,
    ) -> (Arc<Self>, SessionTransport) {
        let (sender, inbound) = mpsc::channel(MAX_WAITING_MESSAGES);
        let session = Arc::new(Self {
            principal,
            state,
            inbound: sender,
            streams: Mutex::new(SessionStreams::new(limits.open_requests)),
            last_active: Mutex::new(Instant::now()),
            closed: CancellationToken::new(),
        });
        let transport = SessionTransport { session: Arc::clone(&session), inbound };
        (session, transport)
    }

    pub(crate) fn streams(&self) -> MutexGuard<'_, SessionStreams> {
        self.streams.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes that the client did something.
    pub(crate) fn touch(&self) {
        *self.last_active.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
    }

    /// Passes a message of the client on. Waits while the service has many waiting.
    ///
    /// # Errors
    ///
    /// Returns an error if the session has ended.
    pub(crate) async fn send(&self, message: RxJsonRpcMessage<RoleServer>) -> io::Result<()> {
        if let JsonRpcMessage::Notification(notification) = &message
            && let ClientNotification::CancelledNotification(cancelled) = &notification.notification
            && let Some(id) = &cancelled.params.request_id
        {
            self.streams().cancel_request(id);
        }
        tokio::select! {
            biased;
            () = self.closed.cancelled() => Err(io::ErrorKind::BrokenPipe.into()),
            sent = self.inbound.send(message) => sent.map_err(|_| io::ErrorKind::BrokenPipe.into()),
        }
    }

    /// Returns the events of a reader.
    pub(crate) fn events(self: &Arc<Self>, reader: StreamReader) -> SessionEvents {
        SessionEvents { session: Arc::clone(self), reader }
    }

    /// Cancels the calls whose streams nobody has resumed, and returns whether the session is over.
    pub(crate) fn sweep(&self, limits: &HttpLimits) -> bool {
        let now = Instant::now();
        let mut streams = self.streams();
        for request in streams.take_abandoned(now, limits.resume_timeout) {
            streams.cancel_request(&request);
            self.cancel_call(request);
        }
        if streams.is_busy() {
            drop(streams);
            self.touch();
            return false;
        }
        let timeout =
            if streams.had_own_reader { limits.gone_timeout } else { limits.idle_timeout };
        let last = *self.last_active.lock().unwrap_or_else(PoisonError::into_inner);
        now.saturating_duration_since(last) >= timeout.min(limits.idle_timeout)
    }

    fn cancel_call(&self, request: RequestId) {
        let reason = Some("the connection of the client was lost".to_owned());
        let params = CancelledNotificationParam::new(Some(request), reason);
        let notification =
            ClientNotification::CancelledNotification(CancelledNotification::new(params));
        // If the service has so many messages waiting, the session ends.
        if self.inbound.try_send(JsonRpcMessage::notification(notification)).is_err() {
            self.closed.cancel();
        }
    }

    /// Ends the session: its streams, its calls, and then its background commands.
    pub(crate) async fn end(&self) {
        self.closed.cancel();
        self.streams().close();
        self.state.end().await;
    }
}

impl Transport<RoleServer> for SessionTransport {
    type Error = io::Error;

    fn send(
        &mut self,
        message: TxJsonRpcMessage<RoleServer>,
    ) -> impl Future<Output = io::Result<()>> + Send + 'static {
        self.session.streams().deliver(message);
        std::future::ready(Ok(()))
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleServer>> {
        tokio::select! {
            biased;
            () = self.session.closed.cancelled() => None,
            message = self.inbound.recv() => message,
        }
    }

    async fn close(&mut self) -> io::Result<()> {
        self.session.closed.cancel();
        self.session.streams().close();
        Ok(())
    }
}

impl SessionEvents {
    /// Waits for the next event.
    pub(crate) async fn next(&mut self) -> Option<ServerSseMessage> {
        std::future::poll_fn(|context| Pin::new(&mut *self).poll_next(context)).await
    }
}

impl Stream for SessionEvents {
    type Item = ServerSseMessage;

    fn poll_next(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<ServerSseMessage>> {
        let Self { session, reader } = &mut *self;
        session.streams().poll_next(reader, context.waker())
    }
}

impl Drop for SessionEvents {
    fn drop(&mut self) {
        self.session.streams().lose(&self.reader);
        self.session.touch();
    }
}
