//! The entry point of the library: a host for tools and sessions, as one value.
//!
//! A [`Host`] has a workspace, a policy and the tools of its plugins. It runs single tool calls
//! without a model, and sessions in which a model calls the tools. Everything that depends on the
//! user arrives through [`HostBuilder`]: this crate reads no environment variable, no home
//! directory and no terminal.
//!
//! ```no_run
//! use cofferdam::host::{HelperProcesses, Host};
//! use serde_json::json;
//!
//! # async fn example() -> Result<(), cofferdam::host::HostError> {
//! // The first statement of `main`.
//! let helpers = HelperProcesses::init();
//! let host = Host::builder("path/to/project")
//!     .helper_processes(helpers)
//!     .plugin("count_lines.wasm")
//!     .build()?;
//! let result = host.call_tool("count_lines", &json!({"path": "README.md"})).await?;
//! assert_eq!(result.text(), "120");
//! # Ok(())
//! # }
//! ```

mod audit_options;
mod builder;
mod call_outcome;
mod error;
mod helper_processes;
mod policy_bounds;
mod prepared;
mod request;
mod sandbox_setup;
mod session;
mod session_record;
mod settings;
mod system_prompt;
mod tool_session;
mod workspace;

use std::sync::{Arc, Mutex, PoisonError};

use serde_json::Value;
use tokio_util::sync::CancellationToken;

use crate::agent::events::{AgentEvent, Observer};
use crate::agent::ports::{LanguageModel, ToolRunner as _};
use crate::conversation::{CallId, ToolCall};
use crate::policy::ComponentDigest;
use crate::sandbox::{ServerAccess, UndoHistory, Workspace};
use crate::tools::{
    Approver, Dispatcher, OutputFiles, SessionApprovals, SubAgentRunner, ToolCatalog,
};
use call_outcome::{CallCapture, open_turn};

pub use audit_options::AuditOptions;
pub use builder::{HostBuilder, NoticeHandler};
pub use call_outcome::CallOutcome;
pub use error::HostError;
pub use helper_processes::HelperProcesses;
pub use prepared::PreparedHost;
pub use request::PreparedRequest;
pub use sandbox_setup::create_sandbox;
pub use session::Session;
pub use session_record::SessionRecord;
pub use settings::RequestSettings;
pub use tool_session::ToolSession;

/// A workspace with its policy and its tools. Clones share everything.
///
/// ```
/// use cofferdam::Host;
/// use serde_json::json;
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # tokio::runtime::Runtime::new()?.block_on(async {
/// # let workspace = tempfile::tempdir()?;
/// std::fs::write(workspace.path().join("prices.txt"), "adult 450\nchild 225\n")?;
/// let host = Host::builder(workspace.path()).build()?;
/// let result = host.call_tool("read_file", &json!({"path": "prices.txt"})).await?;
/// assert!(result.text().contains("child 225"));
///
/// // There is no approver, so everything that needs approval is denied.
/// let change = json!({"path": "new.txt", "content": "adult 0\n"});
/// let result = host.call_tool("write_file", &change).await?;
/// assert!(result.text().contains("denied"));
/// assert!(!workspace.path().join("new.txt").exists());
/// # Ok(())
/// # })
/// # }
/// ```
#[derive(Clone)]
pub struct Host {
    shared: Arc<SharedHost>,
}

/// The parts of a host.
struct SharedHost {
    prepared: PreparedHost,
    workspace: Arc<Workspace>,
    history: Option<Arc<UndoHistory>>,
    /// The approvals of single tool calls. Each session has its own.
    approvals: Arc<SessionApprovals>,
    /// Whether the audit log of single tool calls was begun.
    has_begun_audit: Mutex<bool>,
}

/// An observer that ignores all events.
struct IgnoreEvents;

impl Observer for IgnoreEvents {
    fn observe(&self, _: &AgentEvent<'_>) {}

    fn is_live(&self) -> bool {
        false
    }
}

impl Host {
    /// Begins the description of a host for a directory, the workspace of its tools.
    pub fn builder(workspace: impl Into<std::path::PathBuf>) -> HostBuilder {
        HostBuilder::new(workspace.into())
    }

    /// Returns the same host with another approver for single tool calls. Scopes that the user
    /// approved before do not carry over.
    #[must_use]
    pub fn with_approver(&self, approver: Option<Arc<dyn Approver>>) -> Self {
        let SharedHost { prepared, workspace, history, .. } = self.shared.as_ref();
        Self::new(prepared.clone(), Arc::clone(workspace), history.clone(), approver)
    }

    fn new(
        prepared: PreparedHost,
        workspace: Arc<Workspace>,
        history: Option<Arc<UndoHistory>>,
        approver: Option<Arc<dyn Approver>>,
    ) -> Self {
        let approvals = Arc::new(prepared.new_approvals(approver));
        let has_begun_audit = Mutex::default();
        let shared = SharedHost { prepared, workspace, history, approvals, has_begun_audit };
        Self { shared: Arc::new(shared) }
    }

    /// Returns the tools, with the permissions that the policy leaves them.
    pub fn catalog(&self) -> &Arc<ToolCatalog> {
        self.shared.prepared.catalog()
    }

    /// Returns the workspace.
    pub fn workspace(&self) -> &Arc<Workspace> {
        &self.shared.workspace
    }

    /// Returns the backups of changed files, or `None` if the host has no state directory.
    pub fn undo_history(&self) -> Option<&Arc<UndoHistory>> {
        self.shared.history.as_ref()
    }

    /// Returns what was prepared before the workspace was opened.
    pub fn prepared(&self) -> &PreparedHost {
        &self.shared.prepared
    }

    /// Calls a tool with the same checks and the same sandbox as a call of a model. `arguments` is
    /// a JSON object.
    ///
    /// A failed, denied or rejected call is a result too; its status says so.
    ///
    /// # Errors
    ///
    /// Returns an error if an audit log is required and cannot be written.
    pub async fn call_tool(&self, name: &str, arguments: &Value) -> Result<CallOutcome, HostError> {
        let observer = self.shared.prepared.observer();
        self.call_tool_until(
            name,
            arguments.to_string(),
            observer.as_ref(),
            &CancellationToken::new(),
        )
        .await
    }

    /// Like [`call_tool`](Self::call_tool), with an observer and until `cancel` is cancelled.
    /// `arguments` is JSON text, which may be invalid: the result then says so.
    ///
    /// # Errors
    ///
    /// Returns an error if an audit log is required and cannot be written.
    pub async fn call_tool_until(
        &self,
        name: &str,
        arguments: String,
        observer: &dyn Observer,
        cancel: &CancellationToken,
    ) -> Result<CallOutcome, HostError> {
        self.ensure_call_audit()?;
        let dispatcher = self.dispatcher(Arc::clone(&self.shared.approvals), None);
        let call = ToolCall { id: CallId::new("call_1"), name: name.to_owned(), arguments };
        let mut turn = open_turn(call)?;
        let capture = CallCapture::new(observer);
        // A call whose future is dropped ends; it runs on a thread of its own.
        let stop = cancel.child_token();
        let _stop_on_drop = stop.clone().drop_guard();
        dispatcher.run(&mut turn, &capture, &stop).await;
        capture.close(turn)
    }

    /// Returns the access to the process of a source of tools for an inspection, without a call.
    /// Changes of the process are never committed.
    pub fn inspect_source(&self, name: &str, digest: &ComponentDigest) -> ServerAccess {
        let SharedHost { prepared, workspace, approvals, .. } = self.shared.as_ref();
        approvals.server_access_for_inspection((name, digest), workspace, prepared.commands())
    }

    /// Begins the audit log of single tool calls with the first call.
    fn ensure_call_audit(&self) -> Result<(), HostError> {
        let SharedHost { prepared, approvals, has_begun_audit, .. } = self.shared.as_ref();
        let mut has_begun = has_begun_audit.lock().unwrap_or_else(PoisonError::into_inner);
        if !*has_begun {
            let notify = prepared.notice_handler();
            if let Some(audit) = self.begin_audit(None, None, approvals.mode(), &notify)? {
                approvals.set_audit_sink(audit);
            }
            *has_begun = true;
        }
        Ok(())
    }

    /// Begins a session with a model: an empty conversation that is not recorded on disk.
    pub fn session(&self, model: impl Into<Arc<dyn LanguageModel>>) -> Session {
        Session::new(self.clone(), model.into())
    }

    /// Creates a dispatcher for calls under these approvals.
    fn dispatcher(
        &self,
        approvals: Arc<SessionApprovals>,
        outputs: Option<OutputFiles>,
    ) -> Dispatcher {
        let SharedHost { prepared, workspace, history, .. } = self.shared.as_ref();
        let dispatcher = Dispatcher::new(
            Arc::clone(prepared.sandbox()),
            Arc::clone(prepared.catalog()),
            Arc::clone(workspace),
            approvals,
            prepared.dispatcher_settings(outputs),
        );
        let Some(history) = history else { return dispatcher };
        // Rolls back changes that a crash interrupted.
        let recovered = history.recover(workspace).unwrap_or_else(|error| vec![error.to_string()]);
        recovered.iter().for_each(|line| prepared.warn(line));
        dispatcher.with_history(Arc::clone(history))
    }

    /// Creates a dispatcher for a sub-agent, with the read-only tools.
    fn sub_agent_dispatcher(
        &self,
        catalog: &Arc<ToolCatalog>,
        approvals: &Arc<SessionApprovals>,
        outputs: Option<OutputFiles>,
    ) -> Dispatcher {
        let SharedHost { prepared, workspace, .. } = self.shared.as_ref();
        Dispatcher::new(
            Arc::clone(prepared.sandbox()),
            Arc::clone(catalog),
            Arc::clone(workspace),
            Arc::clone(approvals),
            prepared.dispatcher_settings(outputs),
        )
        .with_sub_agents(SubAgentRunner::NotNested)
    }
}
