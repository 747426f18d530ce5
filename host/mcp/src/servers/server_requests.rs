//! What a server asks of its client: progress, notices, roots, and requests that are denied.
#![expect(deprecated, reason = "servers of all versions in use are served")]

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use cofferdam::sandbox::ProgressSink;
use rmcp::ClientHandler;
use rmcp::ErrorData;
use rmcp::model::{
    ClientCapabilities, ClientConfig, CreateMessageRequestParams, CreateMessageResult,
    ElicitRequestParams, ElicitResult, ElicitationAction, ErrorCode, Implementation,
    ListRootsResult, ProgressNotificationParam, ProgressToken, ProtocolVersion, Root,
};
use rmcp::service::{NotificationContext, RequestContext, RoleClient};

use super::shown;

/// The shortest interval between two lines of progress of a call.
const MIN_PROGRESS_INTERVAL: Duration = Duration::from_millis(100);

/// The handler of what a server sends. Clones share everything.
#[derive(Clone)]
pub(super) struct ServerRequests {
    shared: Arc<SharedRequests>,
}

struct SharedRequests {
    /// The name of the server, for notices.
    server: String,
    /// The address of the workspace, if the server may see it.
    root: Option<String>,
    calls: Mutex<RunningCalls>,
    /// Whether the server said that its tools changed.
    has_changed: AtomicBool,
}

#[derive(Default)]
struct RunningCalls {
    by_token: HashMap<ProgressToken, CallSinks>,
}

/// The receivers of what concerns one call.
struct CallSinks {
    progress: ProgressSink,
    notices: ProgressSink,
    last_progress: Option<Instant>,
    /// The denied methods that the user was told about.
    told: Vec<&'static str>,
}

/// Removes the receivers of a call when it is over.
pub(super) struct SinkRegistration {
    shared: Arc<SharedRequests>,
    token: ProgressToken,
}

impl Drop for SinkRegistration {
    fn drop(&mut self) {
        self.shared.lock().by_token.remove(&self.token);
    }
}

impl SharedRequests {
    fn lock(&self) -> MutexGuard<'_, RunningCalls> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ServerRequests {
    pub(super) fn new(server: String, root: Option<String>) -> Self {
        let shared = SharedRequests {
            server,
            root,
            calls: Mutex::default(),
            has_changed: AtomicBool::new(false),
        };
        Self { shared: Arc::new(shared) }
    }

    /// Sends the progress of a call, and notices during it, to these receivers.
    pub(super) fn register(
        &self,
        token: ProgressToken,
        progress: ProgressSink,
        notices: ProgressSink,
    ) -> SinkRegistration {
        let sinks = CallSinks { progress, notices, last_progress: None, told: Vec::new() };
        self.shared.lock().by_token.insert(token.clone(), sinks);
        SinkRegistration { shared: Arc::clone(&self.shared), token }
    }

    /// Returns the name of the server.
    pub(super) fn server_name(&self) -> &str {
        &self.shared.server
    }

    /// Notes that the tools of the server may have changed.
    pub(super) fn mark_changed(&self) {
        self.shared.has_changed.store(true, Ordering::Release);
    }

    /// Returns whether the server said since the last time that its tools changed.
    pub(super) fn take_changed(&self) -> bool {
        self.shared.has_changed.swap(false, Ordering::AcqRel)
    }

    /// Returns the roots that the server may see: the workspace, or none.
    pub(super) fn roots(&self) -> ListRootsResult {
        let root = self.shared.root.as_ref().map(|root| Root::new(root.clone()));
        ListRootsResult::new(root.into_iter().collect())
    }

    /// Tells the user that a request of the server was denied, once for each call.
    pub(super) fn tell_denied(&self, method: &'static str, text: &str) {
        let server = &self.shared.server;
        let mut calls = self.shared.lock();
        let Some(sinks) = calls.by_token.values_mut().next() else { return };
        if sinks.told.contains(&method) {
            return;
        }
        sinks.told.push(method);
        let text = match text.is_empty() {
            true => String::new(),
            false => format!(": {}", shown(text)),
        };
        (sinks.notices)(&format!(
            "the MCP server `{server}` asked for `{method}`, which was denied{text}"
        ));
    }
}

/// Returns the text that a request would show, as far as it has one.
pub(super) fn elicitation_text(request: &ElicitRequestParams) -> &str {
    match request {
        ElicitRequestParams::FormElicitationParams { message, .. }
        | ElicitRequestParams::UrlElicitationParams { message, .. } => message,
        _ => "",
    }
}

impl ClientHandler for ServerRequests {
    fn get_info(&self) -> ClientConfig {
        let mut capabilities = ClientCapabilities::default();
        if self.shared.root.is_some() {
            capabilities.roots = Some(Default::default());
        }
        let name = Implementation::new("cofferdam", env!("CARGO_PKG_VERSION"));
        ClientConfig::new(capabilities, name).with_protocol_version(ProtocolVersion::V_2025_11_25)
    }

    async fn create_message(
        &self,
        _params: CreateMessageRequestParams,
        _context: RequestContext<RoleClient>,
    ) -> Result<CreateMessageResult, ErrorData> {
        self.tell_denied("sampling/createMessage", "");
        Err(ErrorData::new(ErrorCode(-1), "the user does not allow sampling for this server", None))
    }

    async fn create_elicitation(
        &self,
        request: ElicitRequestParams,
        _context: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        self.tell_denied("elicitation/create", elicitation_text(&request));
        Ok(ElicitResult::new(ElicitationAction::Decline))
    }

    async fn list_roots(
        &self,
        _context: RequestContext<RoleClient>,
    ) -> Result<ListRootsResult, ErrorData> {
        Ok(self.roots())
    }

    async fn on_progress(
        &self,
        params: ProgressNotificationParam,
        _context: NotificationContext<RoleClient>,
    ) {
        let mut calls = self.shared.lock();
        let Some(sinks) = calls.by_token.get_mut(&params.progress_token) else { return };
        let now = Instant::now();
        let is_due = sinks.last_progress.is_none_or(|last| now - last >= MIN_PROGRESS_INTERVAL);
        if !is_due {
            return;
        }
        sinks.last_progress = Some(now);
        let line = match (params.message, params.total) {
            (Some(message), _) => message,
            (None, Some(total)) => format!("{} of {total}", params.progress),
            (None, None) => params.progress.to_string(),
        };
        (sinks.progress)(&shown(&line));
    }

    async fn on_tool_list_changed(&self, _context: NotificationContext<RoleClient>) {
        self.shared.has_changed.store(true, Ordering::Release);
    }
}
