//! The calls of one client: each runs in a task of its own and reports its events.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use cofferdam::agent::events::{AgentEvent, Observer};
use cofferdam::conversation::{CallId, ToolCall};
use cofferdam::host::{CallOutcome, HostError, ToolSession};
use cofferdam::terminal_escape::escape_name;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::approver::{ClientApprover, OpenQuestion};
use crate::handler::ClientKind;
use crate::server::{OpenedHost, ToolServer};

/// The number of events that wait for a client. Progress beyond it is dropped: old progress is
/// worthless.
const MAX_WAITING_EVENTS: usize = 16;
/// The characters of the name of a client in the audit log.
const MAX_CLIENT_LEN: usize = 300;

/// An event of a running call, for its client.
#[derive(Debug)]
pub(crate) enum CallEvent {
    /// A line of progress.
    Progress(String),
    /// A notice of the host.
    Notice(String),
    /// A question to the user.
    Question(OpenQuestion),
}

/// The next step of a running call.
#[derive(Debug)]
pub(crate) enum CallStep {
    Event(CallEvent),
    Finished(Result<CallOutcome, String>),
}

/// The session of one client.
pub(crate) struct ClientSession {
    session: ToolSession,
    approver: Arc<ClientApprover>,
    next_call: AtomicU64,
}

/// A call that runs. Dropping it cancels the call.
#[derive(Debug)]
pub(crate) struct RunningCall {
    events: mpsc::Receiver<CallEvent>,
    task: JoinHandle<Result<CallOutcome, HostError>>,
    cancel: CancellationToken,
}

/// Sends the events of a call to its client.
struct EventSender(mpsc::Sender<CallEvent>);

impl Observer for EventSender {
    fn observe(&self, event: &AgentEvent<'_>) {
        let event = match event {
            AgentEvent::CallProgress { message, .. } => CallEvent::Progress((*message).to_owned()),
            AgentEvent::Notice(text) => CallEvent::Notice((*text).to_owned()),
            _ => return,
        };
        let _ = self.0.try_send(event);
    }
}

impl ClientSession {
    /// Begins the session of a client.
    ///
    /// # Errors
    ///
    /// Returns an error if an audit log is required and cannot be written.
    pub(crate) fn begin(
        server: &ToolServer,
        opened: &OpenedHost,
        kind: &ClientKind,
    ) -> Result<Self, HostError> {
        let commands = Arc::clone(opened.host.prepared().commands());
        let timeout = server.options().approval_timeout;
        let approver = Arc::new(ClientApprover::new(commands, timeout, kind.offers_scopes()));
        let asker = Some(Arc::clone(&approver) as Arc<_>);
        let session = match kind.principal() {
            Some(principal) => {
                let client = escape_name(&principal.to_string(), MAX_CLIENT_LEN);
                opened.host.client_tool_session(&client, &opened.scheduler, asker)?
            }
            None => opened.host.tool_session(&opened.scheduler, asker)?,
        };
        Ok(Self { session, approver, next_call: AtomicU64::new(1) })
    }

    /// Starts a call. It ends when `shutdown` is cancelled.
    pub(crate) fn start(
        self: &Arc<Self>,
        name: String,
        arguments: String,
        can_ask: bool,
        shutdown: &CancellationToken,
    ) -> RunningCall {
        let id = format!("call_{}", self.next_call.fetch_add(1, Ordering::Relaxed));
        let (sender, events) = mpsc::channel(MAX_WAITING_EVENTS);
        let cancel = shutdown.child_token();
        let (session, stop) = (Arc::clone(self), cancel.clone());
        let task = tokio::spawn(async move {
            let _registration = session.approver.register(&id, sender.clone(), can_ask);
            let call = ToolCall { id: CallId::new(&id), name, arguments };
            session.session.call(call, &EventSender(sender), &stop).await
        });
        RunningCall { events, task, cancel }
    }

    /// Stops all background commands, and waits until their changes are committed or discarded.
    pub(crate) async fn end_jobs(&self) {
        self.session.end_jobs().await;
    }
}

impl RunningCall {
    /// Waits for the next step. Can be dropped and called again.
    pub(crate) async fn next_step(&mut self) -> CallStep {
        if let Some(event) = self.events.recv().await {
            return CallStep::Event(event);
        }
        // The task has dropped its senders, so it is about to end.
        CallStep::Finished(match (&mut self.task).await {
            Ok(outcome) => outcome.map_err(|error| error.to_string()),
            Err(error) => Err(format!("the call failed: {error}")),
        })
    }

    /// Cancels the call, which then ends soon with a result.
    pub(crate) fn cancel(&self) {
        self.cancel.cancel();
    }
}

impl Drop for RunningCall {
    fn drop(&mut self) {
        self.cancel.cancel();
    }
}
