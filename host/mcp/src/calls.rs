//! The calls of one client: each runs and reports its events.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use cofferdam::agent::events::{AgentEvent, Observer};
use cofferdam::conversation::{CallId, ToolCall};
use cofferdam::host::{CallOutcome, HostError, ToolSession};
use cofferdam::terminal_escape::escape_name;
use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::approver::{ClientApprover, OpenQuestion};
use crate::client_kind::ClientKind;
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
pub(crate) struct RunningCall {
    events: mpsc::Receiver<CallEvent>,
    run: CallRun,
    /// The outcome, until all events before it have been taken.
    outcome: Option<Result<CallOutcome, String>>,
    cancel: CancellationToken,
}

/// Who runs a call.
enum CallRun {
    /// Whoever waits for its next step. This saves a task and its switches, for most calls.
    Inline(BoxFuture<'static, Result<CallOutcome, String>>),
    /// A task of its own.
    Alone(JoinHandle<Result<CallOutcome, String>>),
    /// Nobody: it has ended.
    Ended,
}

impl CallRun {
    /// Waits for the outcome. Can be dropped and called again, until it has returned.
    async fn outcome(&mut self) -> Result<CallOutcome, String> {
        let outcome = match self {
            Self::Inline(run) => run.await,
            Self::Alone(task) => {
                task.await.unwrap_or_else(|error| Err(format!("the call failed: {error}")))
            }
            Self::Ended => std::future::pending().await,
        };
        *self = Self::Ended;
        outcome
    }
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
        let run = async move {
            let _registration = session.approver.register(&id, sender.clone(), can_ask);
            let call = ToolCall { id: CallId::new(&id), name, arguments };
            let outcome = session.session.call(call, &EventSender(sender), &stop).await;
            outcome.map_err(|error| error.to_string())
        };
        // A client gets an answer whatever happens.
        let run = AssertUnwindSafe(run).catch_unwind().map(|outcome| {
            outcome.unwrap_or_else(|_| Err("the call failed: internal error".to_owned()))
        });
        RunningCall { events, run: CallRun::Inline(run.boxed()), outcome: None, cancel }
    }

    /// Stops all background commands, and waits until their changes are committed or discarded.
    pub(crate) async fn end_jobs(&self) {
        self.session.end_jobs().await;
    }
}

impl RunningCall {
    /// Waits for the next step. Can be dropped and called again.
    pub(crate) async fn next_step(&mut self) -> CallStep {
        if self.outcome.is_none() {
            tokio::select! {
                biased;
                Some(event) = self.events.recv() => {
                    // Whoever takes an event may wait for the client. The call goes on meanwhile,
                    // and so do its times.
                    self.run_alone();
                    return CallStep::Event(event);
                }
                outcome = self.run.outcome() => self.outcome = Some(outcome),
            }
        }
        match (self.events.try_recv(), self.outcome.take()) {
            (Ok(event), outcome) => {
                self.outcome = outcome;
                CallStep::Event(event)
            }
            (Err(_), Some(outcome)) => CallStep::Finished(outcome),
            (Err(_), None) => CallStep::Finished(Err("the call has ended".to_owned())),
        }
    }

    /// Lets the call run on while nobody waits for its next step.
    fn run_alone(&mut self) {
        self.run = match std::mem::replace(&mut self.run, CallRun::Ended) {
            CallRun::Inline(run) => CallRun::Alone(tokio::spawn(run)),
            other => other,
        };
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
