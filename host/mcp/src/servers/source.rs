//! A server as a source of tools for a host.

use std::sync::Arc;
use std::time::{Duration, Instant};

use cofferdam::config::ServerSettings;
use cofferdam::plugins::{AcceptedServer, AcceptedServerTool};
use cofferdam::policy::FileGrant;
use cofferdam::sandbox::{CallFailure, SourceContent, SourceOutput};
use cofferdam::tools::{SourceCall, SourceDescription, ToolSource};
use futures_util::future::BoxFuture;
use tokio::sync::Mutex;

use super::call_output::to_output;
use super::connection::{CallProblem, ConnectProblem, ServerConnection};
use super::endpoint::ServerTarget;
use super::restart::{RestartDecision, RestartPolicy};
use super::{ServerTimeouts, shown};

/// The longest error of a server that the model sees, in bytes.
const MAX_ERROR_LEN: usize = 16 << 10;
/// The time before the end of a call at which it counts as one that ran out of time.
const TIME_TOLERANCE: Duration = Duration::from_millis(200);
/// How long the changes of a call are waited for.
const COMMIT_TIMEOUT: Duration = Duration::from_secs(60);

/// An MCP server whose tools the user accepted. It starts with the first call.
pub struct McpServer {
    description: SourceDescription,
    accepted: AcceptedServer,
    endpoint: ServerTarget,
    timeouts: ServerTimeouts,
    state: Mutex<ServerState>,
}

#[derive(Default)]
struct ServerState {
    connection: Option<Arc<ServerConnection>>,
    restarts: RestartPolicy,
}

impl McpServer {
    /// Creates a server that is reached in this way. Nothing starts yet.
    ///
    /// # Errors
    ///
    /// The user has not accepted these settings. The error says what is new.
    pub fn new(
        settings: &ServerSettings,
        accepted: &AcceptedServer,
        endpoint: ServerTarget,
        timeouts: ServerTimeouts,
    ) -> Result<Self, String> {
        let name = &settings.name;
        let unaccepted = accepted.unaccepted_settings(settings);
        if !unaccepted.is_empty() {
            return Err(format!(
                "its configuration changed since you accepted it: {}; see `cofferdam mcp add \
                    {name}`",
                unaccepted.join("; ")
            ));
        }
        let description = accepted.to_source(settings)?;
        let (accepted, state) = (accepted.clone(), Mutex::default());
        Ok(Self { description, accepted, endpoint, timeouts, state })
    }

    /// Returns the running server, or starts it.
    async fn connect(&self, call: &SourceCall) -> Result<Arc<ServerConnection>, CallFailure> {
        let mut state = self.state.lock().await;
        if let Some(open) = state.connection.as_ref().filter(|connection| connection.is_open()) {
            return Ok(Arc::clone(open));
        }
        state.connection = None;
        match state.restarts.decide(Instant::now()) {
            RestartDecision::Refused(reason) => return Err(self.failure(&reason)),
            RestartDecision::After(pause) => tokio::time::sleep(pause).await,
        }
        let (name, timeouts) = (&self.description.name, self.timeouts);
        match ServerConnection::open(name, &self.endpoint, &call.server, timeouts).await {
            Ok(connection) => {
                let connection = Arc::new(connection);
                state.connection = Some(Arc::clone(&connection));
                Ok(connection)
            }
            Err(ConnectProblem::Denied(denied)) => Err(CallFailure::ToolFailed(denied)),
            Err(ConnectProblem::Failed(reason) | ConnectProblem::EndedEarly(reason)) => {
                state.restarts.record_failure(Instant::now(), &reason);
                Err(self.failure(&reason))
            }
        }
    }

    /// Ends a connection that cannot be used any more.
    async fn disconnect(&self, connection: &Arc<ServerConnection>, failure: Option<&str>) {
        connection.request_stop();
        let mut state = self.state.lock().await;
        if state.connection.as_ref().is_some_and(|current| Arc::ptr_eq(current, connection)) {
            state.connection = None;
            if let Some(reason) = failure {
                state.restarts.record_failure(Instant::now(), reason);
            }
        }
    }

    fn failure(&self, reason: &str) -> CallFailure {
        let reason = cofferdam::terminal_escape::escape_text(reason);
        CallFailure::ToolFailed(format!(
            "the MCP server `{}` failed: {reason}",
            self.description.name
        ))
    }

    /// Checks that a tool is the one that the user accepted.
    fn check_definition(&self, tool: &str, live: &[AcceptedServerTool]) -> Result<(), CallFailure> {
        let (name, accepted) = (&self.description.name, self.accepted.find_tool(tool));
        let now = live.iter().find(|listed| listed.name == tool);
        let problem = match (accepted, now) {
            (Some(accepted), Some(now)) if accepted == now => return Ok(()),
            (Some(accepted), Some(now)) => {
                format!("changed its {}", accepted.changed_parts(now).join(" and its "))
            }
            (Some(_) | None, _) => "does not offer it any more".to_owned(),
        };
        Err(CallFailure::Denied {
            code: "policy".to_owned(),
            reason: format!(
                "the MCP server {problem} since the user accepted the tool `{name}/{tool}`."
            ),
            remedy: format!(
                " The user can see the changes with `cofferdam mcp inspect {name}`, and accept \
                    them with `cofferdam mcp add {name}`."
            ),
        })
    }

    async fn answer(&self, call: &SourceCall) -> Result<SourceOutput, CallFailure> {
        let started = Instant::now();
        let connecting = self.connect(call);
        let connection = tokio::select! {
            connection = connecting => connection?,
            () = call.cancellation.cancelled() => return Err(CallFailure::Cancelled),
        };
        // Each change of a server that can write belongs to one call.
        let writes = self.endpoint.files() == FileGrant::ReadWrite;
        let _turn = match writes {
            true => tokio::select! {
                turn = connection.turn.lock() => Some(turn),
                () = call.cancellation.cancelled() => return Err(CallFailure::Cancelled),
            },
            false => None,
        };
        let result = self.call_checked(&connection, call).await;
        let result = match result {
            Err(CallProblem::Cancelled) => {
                let is_late = started.elapsed() + TIME_TOLERANCE >= call.limits.time;
                // What a server that can write does after its call would count as another call's.
                if writes || is_late {
                    let reason = is_late.then_some("it did not answer in time");
                    self.disconnect(&connection, reason).await;
                }
                return Err(CallFailure::Cancelled);
            }
            Err(CallProblem::Ended(reason)) => {
                let notices = self.commit(&connection, call).await;
                self.disconnect(&connection, Some(&reason)).await;
                let notices = notices.unwrap_or_else(|reason| vec![reason]);
                return Err(with_notices(self.failure(&reason), &notices));
            }
            Err(CallProblem::Refused(reason)) => Err(CallFailure::ToolFailed(shorten(&reason))),
            Ok(Ok(output)) => Ok(output),
            Ok(Err(failure)) => Err(failure),
        };
        self.state.lock().await.restarts.record_success();
        // A failed call may have changed something, too.
        let notices = match self.commit(&connection, call).await {
            Ok(notices) => notices,
            Err(reason) => {
                let reason = format!(
                    "the call ended, and nothing that the server changed was committed: {reason}"
                );
                return Err(CallFailure::NotChanged(match result {
                    Ok(_) => reason,
                    Err(failure) => format!("{failure}\n{reason}"),
                }));
            }
        };
        match result {
            Ok(mut output) => {
                output.content.extend(notices.iter().map(|notice| host_note(notice)));
                Ok(output)
            }
            Err(failure) => Err(with_notices(failure, &notices)),
        }
    }

    /// Calls a tool if it is the accepted one, before and after the call.
    async fn call_checked(
        &self,
        connection: &Arc<ServerConnection>,
        call: &SourceCall,
    ) -> Result<Result<SourceOutput, CallFailure>, CallProblem> {
        let live = connection.current_tools(self.timeouts.list).await?;
        if let Err(failure) = self.check_definition(&call.tool, &live) {
            return Ok(Err(failure));
        }
        let arguments = call.arguments.as_object().cloned().unwrap_or_default();
        let result = connection.call(&call.tool, arguments, call).await?;
        let live = connection.current_tools(self.timeouts.list).await?;
        if let Err(failure) = self.check_definition(&call.tool, &live) {
            return Ok(Err(failure));
        }
        let has_schema =
            self.accepted.find_tool(&call.tool).is_some_and(|tool| tool.output_schema.is_some());
        Ok(to_output(result, has_schema)
            .map_err(|problem| CallFailure::ToolFailed(shorten(&problem))))
    }

    async fn commit(
        &self,
        connection: &ServerConnection,
        call: &SourceCall,
    ) -> Result<Vec<String>, String> {
        let Some(process) = connection.process() else { return Ok(Vec::new()) };
        let committing = call.server.commit_changes(process);
        match tokio::time::timeout(COMMIT_TIMEOUT, committing).await {
            Ok(outcome) => outcome,
            Err(_) => Err("the changes could not be collected in time".to_owned()),
        }
    }
}

impl ToolSource for McpServer {
    fn description(&self) -> &SourceDescription {
        &self.description
    }

    fn call<'a>(&'a self, call: SourceCall) -> BoxFuture<'a, Result<SourceOutput, CallFailure>> {
        Box::pin(async move { self.answer(&call).await })
    }
}

fn host_note(notice: &str) -> SourceContent {
    SourceContent::Text(format!("[host: {notice}]"))
}

/// Adds what the host did to the error of a call.
fn with_notices(failure: CallFailure, notices: &[String]) -> CallFailure {
    if notices.is_empty() {
        return failure;
    }
    let notes: String = notices.iter().map(|notice| format!("\n[host: {notice}]")).collect();
    CallFailure::ToolFailed(format!("{failure}{notes}"))
}

/// Escapes and shortens an error of a server.
fn shorten(text: &str) -> String {
    let mut text = cofferdam::terminal_escape::escape_text(text);
    if text.len() > MAX_ERROR_LEN {
        text.truncate(text.floor_char_boundary(MAX_ERROR_LEN));
        text.push_str("\n[…]");
    }
    match text.trim().is_empty() {
        true => format!("the tool failed: {}", shown("")),
        false => text,
    }
}
