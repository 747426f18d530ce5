//! A session of tool calls that some other program decides on, such as an agent of another maker.

use std::sync::Arc;

use tokio_util::sync::CancellationToken;

use super::call_outcome::{CallCapture, open_turn};
use super::{CallOutcome, Host, HostError};
use crate::agent::events::Observer;
use crate::conversation::ToolCall;
use crate::sandbox::Job;
use crate::tools::{
    Approver, CallScheduler, Dispatcher, SchedulerClient, SessionApprovals, SessionState,
};

/// A session of tool calls without a model of this host.
///
/// It has what a [`Session`](super::Session) has for its calls: an audit log of its own, approvals,
/// tool state, background commands, and the versions of the files that were read. Its calls may
/// arrive at any time, in parallel. The [`CallScheduler`] orders them together with those of other
/// sessions.
///
/// ```
/// use cofferdam::Host;
/// use cofferdam::agent::events::{AgentEvent, Observer};
/// use cofferdam::conversation::{CallId, ToolCall};
/// use cofferdam::tools::CallScheduler;
/// use tokio_util::sync::CancellationToken;
///
/// struct IgnoreEvents;
///
/// impl Observer for IgnoreEvents {
///     fn observe(&self, _: &AgentEvent<'_>) {}
/// }
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # tokio::runtime::Runtime::new()?.block_on(async {
/// # let workspace = tempfile::tempdir()?;
/// std::fs::write(workspace.path().join("a.txt"), "one\n")?;
/// let host = Host::builder(workspace.path()).build()?;
/// let scheduler = CallScheduler::new(host.prepared().settings().max_parallel);
/// let session = host.tool_session(&scheduler, None)?;
/// let call = ToolCall {
///     id: CallId::new("call_1"),
///     name: "read_file".to_owned(),
///     arguments: r#"{"path": "a.txt"}"#.to_owned(),
/// };
/// let outcome = session.call(call, &IgnoreEvents, &CancellationToken::new()).await?;
/// assert!(outcome.text().contains("one"));
/// session.end_jobs().await;
/// # Ok(())
/// # })
/// # }
/// ```
pub struct ToolSession {
    dispatcher: Dispatcher,
    queue: SchedulerClient,
    tool_state: Arc<SessionState>,
}

impl Host {
    /// Begins a session of tool calls, in the mode of the host. Without an approver, everything
    /// that needs approval is denied.
    ///
    /// # Errors
    ///
    /// Returns an error if an audit log is required and cannot be written.
    pub fn tool_session(
        &self,
        scheduler: &CallScheduler,
        approver: Option<Arc<dyn Approver>>,
    ) -> Result<ToolSession, HostError> {
        self.tool_session_of(None, scheduler, approver)
    }

    /// Begins a session of tool calls for an authenticated client, whose name is in the audit log.
    ///
    /// # Errors
    ///
    /// Returns an error if an audit log is required and cannot be written.
    pub fn client_tool_session(
        &self,
        client: &str,
        scheduler: &CallScheduler,
        approver: Option<Arc<dyn Approver>>,
    ) -> Result<ToolSession, HostError> {
        self.tool_session_of(Some(client.to_owned()), scheduler, approver)
    }

    fn tool_session_of(
        &self,
        client: Option<String>,
        scheduler: &CallScheduler,
        approver: Option<Arc<dyn Approver>>,
    ) -> Result<ToolSession, HostError> {
        let prepared = self.prepared();
        let approvals: SessionApprovals = prepared.new_approvals(approver);
        let notify = prepared.notice_handler();
        if let Some(audit) =
            self.begin_client_audit(client, None, None, approvals.mode(), &notify)?
        {
            approvals.set_audit_sink(audit);
        }
        let tool_state = Arc::new(SessionState::default().with_jobs());
        let dispatcher = self
            .dispatcher(Arc::new(approvals), None)
            .without_repetition_notices()
            .with_session_state(Arc::clone(&tool_state));
        Ok(ToolSession { dispatcher, queue: scheduler.add_client(), tool_state })
    }
}

impl ToolSession {
    /// Runs a call when its turn comes, until `cancel` is cancelled. The ID of the call must be
    /// unique in the session.
    ///
    /// A failed, denied, rejected or cancelled call is a result too; its status says so. If the
    /// future is dropped, the call is cancelled.
    ///
    /// # Errors
    ///
    /// None at present; a call that cannot be built is a bug of this program.
    pub async fn call(
        &self,
        call: ToolCall,
        observer: &dyn Observer,
        cancel: &CancellationToken,
    ) -> Result<CallOutcome, HostError> {
        let mut turn = open_turn(call)?;
        let capture = CallCapture::new(observer);
        // A call runs on a thread of its own, which must not outlive this future.
        let stop = cancel.child_token();
        let _stop_on_drop = stop.clone().drop_guard();
        self.dispatcher.run_scheduled(&mut turn, &self.queue, &capture, &stop).await;
        capture.close(turn)
    }

    /// Stops all background commands, waits until their changes are committed or discarded, and
    /// returns those that were running. No background command starts afterwards.
    pub async fn end_jobs(&self) -> Vec<Arc<Job>> {
        match self.tool_state.jobs() {
            Some(jobs) => jobs.close().await,
            None => Vec::new(),
        }
    }
}
