//! The parts that all clients of a server share.

use std::sync::Arc;
use std::time::Duration;

use cofferdam::Host;
use cofferdam::tools::CallScheduler;
use rmcp::model::Tool;
use tokio::sync::OnceCell;
use tokio_util::sync::CancellationToken;

use crate::tool_list::list_tools;
use crate::workspace_choice::WorkspaceChoice;

/// The settings of a server.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ServerOptions {
    /// The time that a question to the user may stay open. Without an answer the effect is denied.
    pub approval_timeout: Duration,
    /// The time that running calls have to end after the client has closed its side, if it still
    /// reads.
    pub closing_time: Duration,
}

impl Default for ServerOptions {
    fn default() -> Self {
        Self { approval_timeout: Duration::from_secs(300), closing_time: Duration::from_secs(1) }
    }
}

/// A host that serves its tools. Clones share everything.
#[derive(Clone)]
pub struct ToolServer {
    shared: Arc<SharedServer>,
}

struct SharedServer {
    workspace: WorkspaceChoice,
    options: ServerOptions,
    /// The host and the order of its calls, once the workspace is known.
    opened: OnceCell<Result<OpenedHost, String>>,
    shutdown: CancellationToken,
}

/// A host with the order of the calls of all its clients.
#[derive(Clone)]
pub(crate) struct OpenedHost {
    pub(crate) host: Host,
    pub(crate) scheduler: CallScheduler,
    /// The tools that clients see.
    pub(crate) tools: Arc<[Tool]>,
}

impl OpenedHost {
    fn new(host: Host) -> Self {
        let scheduler = CallScheduler::new(host.prepared().settings().max_parallel);
        let tools = list_tools(host.catalog(), host.prepared().commands()).into();
        Self { host, scheduler, tools }
    }
}

impl ToolServer {
    /// Creates a server. When `shutdown` is cancelled, it cancels all calls and ends.
    pub fn new(
        workspace: WorkspaceChoice,
        options: ServerOptions,
        shutdown: CancellationToken,
    ) -> Self {
        let shared = SharedServer { workspace, options, opened: OnceCell::new(), shutdown };
        Self { shared: Arc::new(shared) }
    }

    /// Returns the settings.
    pub fn options(&self) -> &ServerOptions {
        &self.shared.options
    }

    /// Returns the token that ends the server.
    pub fn shutdown(&self) -> &CancellationToken {
        &self.shared.shutdown
    }

    /// Returns whether the workspace depends on the client.
    pub(crate) fn asks_for_roots(&self) -> bool {
        matches!(self.shared.workspace, WorkspaceChoice::OfClient(_))
            && !self.shared.opened.initialized()
    }

    /// Returns an offered tool, once the workspace is known.
    pub(crate) fn find_tool(&self, name: &str) -> Option<Tool> {
        let opened = self.shared.opened.get()?.as_ref().ok()?;
        opened.tools.iter().find(|tool| tool.name == name).cloned()
    }

    /// Returns the host. The first call opens it, with the roots of the client.
    pub(crate) async fn open_host(
        &self,
        roots: impl Future<Output = Vec<String>>,
    ) -> Result<&OpenedHost, String> {
        let open = async || match &self.shared.workspace {
            WorkspaceChoice::Fixed(host) => Ok(OpenedHost::new((**host).clone())),
            WorkspaceChoice::OfClient(opener) => {
                let (opener, roots) = (opener.clone(), roots.await);
                let opened = tokio::task::spawn_blocking(move || opener.open(&roots)).await;
                opened.map_err(|error| error.to_string())?.map(OpenedHost::new)
            }
        };
        self.shared.opened.get_or_init(open).await.as_ref().map_err(Clone::clone)
    }
}
