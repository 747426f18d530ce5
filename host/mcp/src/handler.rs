//! The requests of one client.
#![expect(deprecated, reason = "clients of released versions still use roots and logging")]

mod pending;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use cofferdam::terminal_escape::escape_line;
use cofferdam::tools::ApprovalAnswer;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, ClientResult, CustomRequest, CustomResult,
    ElicitRequest, ErrorCode, Implementation, InitializeRequestParams, InitializeResult,
    ListResourceTemplatesResult, ListResourcesResult, ListToolsResult, LoggingLevel,
    LoggingMessageNotification, LoggingMessageNotificationParam, PaginatedRequestParams,
    ProgressNotificationParam, ProtocolVersion, ReadResourceRequestParams, ReadResourceResponse,
    ReadResourceResult, ServerCapabilities, ServerConfig, ServerNotification, ServerRequest,
    SetLevelRequestMethod, SetLevelRequestParams, Tool,
};
use rmcp::service::{OriginatingRequestId, PeerRequestOptions, RequestContext};
use rmcp::{ErrorData, RoleServer, ServerHandler};
use serde_json::{Value, json};
use tokio::sync::OnceCell;
use tokio_util::sync::CancellationToken;

use crate::approver::OpenQuestion;
use crate::call_result::{error_result, to_result};
use crate::calls::{CallEvent, CallStep, ClientSession, RunningCall};
use crate::client_kind::ClientKind;
use crate::http::{ClientPrincipal, StatelessClients};
use crate::page_cursor::page_of;
use crate::resources;
use crate::server::{OpenedHost, ToolServer};
use pending::PendingCalls;

/// The number of tools on one page of the list.
const TOOLS_PER_PAGE: usize = 100;
/// How long a client may take to list its roots.
const ROOTS_TIMEOUT: Duration = Duration::from_secs(10);
/// The characters of a line of progress or of a notice.
const MAX_LINE_LEN: usize = 500;

/// What the model should know about all tools.
const INSTRUCTIONS: &str = "Each tool runs in a sandbox with only the permissions that it needs, \
    under the policy of the user. If a call is denied, its result says why and what would allow \
    it; only the user can change that, so do not try to work around a denial. Changes of files \
    can be undone by the user with `cofferdam undo`.";

/// The state of one client.
pub(crate) struct ClientState {
    server: ToolServer,
    kind: ClientKind,
    /// Ends all calls of the client.
    cancel: CancellationToken,
    session: OnceCell<Result<Arc<ClientSession>, String>>,
    pending: PendingCalls,
    log_level: Mutex<LoggingLevel>,
    has_initialized: AtomicBool,
}

/// The handler of the requests of one client. Clones share everything.
#[derive(Clone)]
pub(crate) struct ClientHandler {
    state: Arc<ClientState>,
    /// Where the client of a request without a session is, if it is another one.
    stateless: Option<(Arc<StatelessClients>, ClientPrincipal)>,
}

type Context = RequestContext<RoleServer>;

impl ClientState {
    pub(crate) fn new(server: ToolServer, kind: ClientKind) -> Self {
        Self {
            cancel: server.shutdown().child_token(),
            server,
            kind,
            session: OnceCell::new(),
            pending: PendingCalls::default(),
            log_level: Mutex::new(LoggingLevel::Warning),
            has_initialized: AtomicBool::new(false),
        }
    }

    /// Ends everything that the client started: its calls, then background commands.
    pub(crate) async fn end(&self) {
        self.cancel.cancel();
        self.pending.clear();
        if let Some(Ok(session)) = self.session.get() {
            session.end_jobs().await;
        }
    }

    async fn open_host(&self, context: &Context) -> Result<&OpenedHost, String> {
        self.server.open_host(self.list_roots(context)).await
    }

    /// Returns the roots of the client, if they matter and it has any.
    async fn list_roots(&self, context: &Context) -> Vec<String> {
        let has_roots =
            context.client_capabilities().is_some_and(|declared| declared.roots.is_some());
        if !has_roots || is_stateless(context) || !self.server.asks_for_roots() {
            return Vec::new();
        }
        match tokio::time::timeout(ROOTS_TIMEOUT, context.peer.list_roots()).await {
            Ok(Ok(listed)) => listed.roots.into_iter().map(|root| root.uri).collect(),
            Ok(Err(_)) | Err(_) => Vec::new(),
        }
    }

    async fn session(&self, opened: &OpenedHost) -> Result<&Arc<ClientSession>, String> {
        let begin = async || {
            let (server, opened, kind) = (self.server.clone(), opened.clone(), self.kind.clone());
            let begun = tokio::task::spawn_blocking(move || {
                ClientSession::begin(&server, &opened, &kind).map_err(|error| error.to_string())
            });
            begun.await.map_err(|error| error.to_string())?.map(Arc::new)
        };
        self.session.get_or_init(begin).await.as_ref().map_err(Clone::clone)
    }

    fn log_level(&self, context: &Context) -> Option<LoggingLevel> {
        if is_stateless(context) {
            return context.meta.log_level();
        }
        Some(*self.log_level.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Runs a call until it ends, or until it needs an answer that only another request can bring.
    async fn drive(&self, call: PreparedCall, context: &Context) -> CallToolResponse {
        let PreparedCall { mut running, request } = call;
        let (mut is_cancelled, mut progress) = (false, 0_u32);
        loop {
            let step = tokio::select! {
                biased;
                () = context.ct.cancelled(), if !is_cancelled => {
                    is_cancelled = true;
                    running.cancel();
                    continue;
                }
                step = running.next_step() => step,
            };
            match step {
                CallStep::Finished(Ok(outcome)) => return to_result(outcome).into(),
                CallStep::Finished(Err(problem)) => return error_result(problem).into(),
                CallStep::Event(CallEvent::Progress(line)) => {
                    progress += 1;
                    send_progress(context, progress, &line).await;
                }
                CallStep::Event(CallEvent::Notice(text)) => self.send_notice(context, &text).await,
                CallStep::Event(CallEvent::Question(question)) if is_stateless(context) => {
                    let call = PreparedCall { running, request };
                    return match self.pending.keep(call, question) {
                        Ok(required) => required.into(),
                        Err(problem) => error_result(problem).into(),
                    };
                }
                CallStep::Event(CallEvent::Question(question)) => {
                    ask_client(question, context).await;
                }
            }
        }
    }

    async fn send_notice(&self, context: &Context, text: &str) {
        let is_wanted =
            self.log_level(context).is_some_and(|level| LoggingLevel::Warning as u8 >= level as u8);
        if is_wanted {
            let text = escape_line(text, MAX_LINE_LEN);
            let notice =
                LoggingMessageNotificationParam::new(LoggingLevel::Warning, Value::from(text))
                    .with_logger("cofferdam");
            let mut notice = LoggingMessageNotification::new(notice);
            // A transport with several streams sends it with the events of this request.
            notice.extensions.insert(OriginatingRequestId(context.id.clone()));
            let notice = ServerNotification::LoggingMessageNotification(notice);
            unless_cancelled(context, context.peer.send_notification(notice)).await;
        }
    }
}

/// A call that runs, with the request that started it.
pub(crate) struct PreparedCall {
    running: RunningCall,
    /// The name of the tool and its arguments.
    request: (String, String),
}

/// Returns whether a request belongs to a version without sessions, in which a server never sends
/// requests.
fn is_stateless(context: &Context) -> bool {
    context.protocol_version().is_some_and(|version| version >= ProtocolVersion::NO_INITIALIZE)
}

/// Returns whether the client can show a form to the user.
fn can_ask(context: &Context) -> bool {
    let declared = context.client_capabilities().and_then(|declared| declared.elicitation);
    // Without modes, a client means forms.
    declared.is_some_and(|modes| modes.form.is_some() || modes.url.is_none())
}

/// Waits for a message to be sent, unless the request is cancelled.
async fn unless_cancelled<T>(context: &Context, sent: impl Future<Output = T>) {
    tokio::select! {
        biased;
        () = context.ct.cancelled() => {}
        _ = sent => {}
    }
}

async fn send_progress(context: &Context, number: u32, line: &str) {
    if let Some(token) = context.meta.get_progress_token() {
        let progress = ProgressNotificationParam::new(token, number.into())
            .with_message(escape_line(line, MAX_LINE_LEN));
        unless_cancelled(context, context.peer.notify_progress(progress)).await;
    }
}

/// Asks the user through the client, and passes the answer on. If the question is over earlier,
/// because it took too long or the call was cancelled, the client is told.
async fn ask_client(question: OpenQuestion, context: &Context) {
    if context.ct.is_cancelled() {
        return;
    }
    let OpenQuestion { worded, mut answer } = question;
    // Dropping `answer` denies the effect.
    let Ok(form) = worded.to_form() else { return };
    let request = ServerRequest::ElicitRequest(ElicitRequest::new(form));
    let options = PeerRequestOptions::no_options();
    let Ok(mut handle) = context.peer.send_cancellable_request(request, options).await else {
        return;
    };
    let reply = tokio::select! {
        biased;
        () = context.ct.cancelled() => None,
        () = answer.closed() => None,
        reply = &mut handle.rx => Some(reply),
    };
    let Some(reply) = reply else {
        let _ = handle.cancel(Some("the question is over".to_owned())).await;
        return;
    };
    let answered = match reply {
        Ok(Ok(ClientResult::ElicitResult(result))) => worded.read_answer(&result),
        Ok(Ok(_)) => {
            ApprovalAnswer::Unanswered { reason: "the MCP client sent an unknown answer".into() }
        }
        Ok(Err(error)) => {
            let error = escape_line(&error.to_string(), MAX_LINE_LEN);
            ApprovalAnswer::Unanswered { reason: format!("the MCP client could not ask: {error}") }
        }
        Err(_) => ApprovalAnswer::Unanswered { reason: "the MCP client is gone".into() },
    };
    let _ = answer.send(answered);
}

impl ClientHandler {
    /// Creates the handler of the only client of a connection.
    pub(crate) fn new(state: Arc<ClientState>) -> Self {
        Self { state, stateless: None }
    }

    /// Creates the handler of a session over HTTP, or of one request without a session.
    pub(crate) fn over_http(
        session: Arc<ClientState>,
        clients: Arc<StatelessClients>,
        principal: ClientPrincipal,
    ) -> Self {
        Self { state: session, stateless: Some((clients, principal)) }
    }

    /// Returns the client of a request.
    fn client(&self, context: &Context) -> Result<Arc<ClientState>, ErrorData> {
        match &self.stateless {
            Some((clients, principal)) if is_stateless(context) => {
                let client = clients.client_of(principal);
                client.ok_or_else(|| host_error("the server has too many clients".to_owned()))
            }
            Some(_) | None => Ok(Arc::clone(&self.state)),
        }
    }
}

/// Starts a call of an offered tool.
async fn start_call(
    client: &ClientState,
    opened: &OpenedHost,
    request: (String, String),
    can_ask: bool,
) -> Result<PreparedCall, String> {
    let session = client.session(opened).await?;
    let (name, arguments) = request.clone();
    let running = session.start(name, arguments, can_ask, &client.cancel);
    Ok(PreparedCall { running, request })
}

impl ServerHandler for ClientHandler {
    fn get_info(&self) -> ServerConfig {
        let capabilities =
            ServerCapabilities::builder().enable_logging().enable_resources().enable_tools();
        let program = Implementation::new("cofferdam", env!("CARGO_PKG_VERSION"))
            .with_title("Cofferdam")
            .with_description("Tools in a sandbox, under the policy of the user");
        ServerConfig::new(capabilities.build())
            .with_server_info(program)
            .with_instructions(INSTRUCTIONS)
    }

    async fn initialize(
        &self,
        request: InitializeRequestParams,
        context: Context,
    ) -> Result<InitializeResult, ErrorData> {
        // A second one could claim other capabilities for calls that already run.
        if self.state.has_initialized.swap(true, Ordering::SeqCst) {
            return Err(ErrorData::invalid_request("the session is already initialized", None));
        }
        context.peer.set_peer_info(request.clone());
        self.negotiate_initialize(&request)
    }

    async fn set_level(
        &self,
        request: SetLevelRequestParams,
        context: Context,
    ) -> Result<(), ErrorData> {
        if is_stateless(&context) {
            return Err(ErrorData::method_not_found::<SetLevelRequestMethod>());
        }
        *self.state.log_level.lock().unwrap_or_else(PoisonError::into_inner) = request.level;
        Ok(())
    }

    async fn list_tools(
        &self,
        request: Option<PaginatedRequestParams>,
        context: Context,
    ) -> Result<ListToolsResult, ErrorData> {
        let client = self.client(&context)?;
        let opened = client.open_host(&context).await.map_err(host_error)?;
        let cursor = request.and_then(|request| request.cursor);
        let (tools, next_cursor) =
            page_of("tools", &opened.tools, cursor.as_deref(), TOOLS_PER_PAGE)?;
        Ok(ListToolsResult { next_cursor, ..ListToolsResult::with_all_items(tools) })
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: Context,
    ) -> Result<CallToolResponse, ErrorData> {
        let client = self.client(&context)?;
        let opened = match client.open_host(&context).await {
            Ok(opened) => opened,
            Err(problem) => return Ok(error_result(problem).into()),
        };
        let arguments = Value::Object(request.arguments.unwrap_or_default()).to_string();
        let identity = (request.name.into_owned(), arguments);
        if let Some(handle) = request.request_state {
            let answers = request.input_responses.unwrap_or_default();
            return match client.pending.resume(&handle, &identity, &answers)? {
                Ok(call) => Ok(client.drive(call, &context).await),
                Err(required) => Ok(required.into()),
            };
        }
        let is_offered = opened.tools.iter().any(|tool| tool.name == identity.0);
        if !is_offered {
            let name = escape_line(&identity.0, 64);
            return Err(ErrorData::invalid_params(format!("unknown tool: {name}"), None));
        }
        match start_call(&client, opened, identity, can_ask(&context)).await {
            Ok(call) => Ok(client.drive(call, &context).await),
            Err(problem) => Ok(error_result(problem).into()),
        }
    }

    async fn list_resources(
        &self,
        request: Option<PaginatedRequestParams>,
        context: Context,
    ) -> Result<ListResourcesResult, ErrorData> {
        let client = self.client(&context)?;
        let host = client.open_host(&context).await.map_err(host_error)?.host.clone();
        let cursor = request.and_then(|request| request.cursor);
        let listed =
            tokio::task::spawn_blocking(move || resources::list_page(&host, cursor.as_deref()));
        let (files, next_cursor) =
            listed.await.map_err(|error| host_error(error.to_string()))??;
        Ok(ListResourcesResult { next_cursor, ..ListResourcesResult::with_all_items(files) })
    }

    async fn list_resource_templates(
        &self,
        _: Option<PaginatedRequestParams>,
        context: Context,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        let client = self.client(&context)?;
        let host = &client.open_host(&context).await.map_err(host_error)?.host;
        let templates =
            if resources::can_read(host) { vec![resources::template(host)] } else { Vec::new() };
        Ok(ListResourceTemplatesResult::with_all_items(templates))
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        context: Context,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let uri = request.uri;
        let client = self.client(&context)?;
        let opened = client.open_host(&context).await.map_err(host_error)?;
        if !resources::can_read(&opened.host) {
            let reason = format!("the policy denies the tool `{}`", resources::READ_TOOL);
            return Err(resources::not_found(&uri, &reason));
        }
        let path = resources::workspace_path(&opened.host, &uri)?;
        let arguments = json!({"path": path, "limit": 1}).to_string();
        // A question would need a call that the user can see.
        let identity = (resources::READ_TOOL.to_owned(), arguments);
        let call = start_call(&client, opened, identity, false);
        let mut running = call.await.map_err(host_error)?.running;
        let outcome = loop {
            let step = tokio::select! {
                biased;
                () = context.ct.cancelled() => {
                    return Err(resources::not_found(&uri, "the request was cancelled"));
                }
                step = running.next_step() => step,
            };
            if let CallStep::Finished(outcome) = step {
                break outcome.map_err(host_error)?;
            }
        };
        let host = opened.host.clone();
        let read = tokio::task::spawn_blocking(move || {
            resources::read_contents(&host, &uri, &path, &outcome)
        });
        let contents = read.await.map_err(|error| host_error(error.to_string()))??;
        Ok(ReadResourceResult::new(vec![contents]).into())
    }

    fn get_tool(&self, name: &str) -> Option<Tool> {
        self.state.server.find_tool(name)
    }

    async fn on_custom_request(
        &self,
        request: CustomRequest,
        context: Context,
    ) -> Result<CustomResult, ErrorData> {
        // The SDK passes a known method with other parameters as an unknown one.
        if is_known_method(&request.method, &context) {
            return Err(ErrorData::invalid_params(
                format!("the parameters of `{}` are not valid", request.method),
                None,
            ));
        }
        let method = escape_line(&request.method, 64);
        Err(ErrorData::new(ErrorCode::METHOD_NOT_FOUND, format!("unknown method: {method}"), None))
    }
}

fn is_known_method(method: &str, context: &Context) -> bool {
    // Versions without sessions do not have these.
    if matches!(method, "initialize" | "logging/setLevel") {
        return !is_stateless(context);
    }
    matches!(
        method,
        "server/discover"
            | "tools/call"
            | "tools/list"
            | "resources/list"
            | "resources/read"
            | "resources/templates/list"
    )
}

fn host_error(problem: String) -> ErrorData {
    ErrorData::internal_error(problem, None)
}
