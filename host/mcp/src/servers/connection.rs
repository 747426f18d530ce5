//! A connection to a running server.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use cofferdam::plugins::AcceptedServerTool;
use cofferdam::policy::FileGrant;
use cofferdam::sandbox::{ServerAccess, ServerProcess};
use cofferdam::tools::SourceCall;
use rmcp::ServiceError;
use rmcp::model::{
    CallToolRequest, CallToolRequestParams, CallToolResult, CancelledNotificationParam,
    ClientRequest, ElicitResult, ElicitationAction, InputRequest, InputRequiredResult, JsonObject,
    ProtocolVersion, RequestId, ServerResult,
};
use rmcp::service::{PeerRequestOptions, RoleClient, RunningService};
use serde_json::Value;

use super::endpoint::ServerTarget;
use super::handshake::{SessionStart, describe_failure};
use super::message_guard::ConnectionFault;
use super::peer::ServerPeer;
use super::server_requests::{ServerRequests, elicitation_text};
use super::{ServerTimeouts, listing, shown};
use crate::resources::uri_of;

/// How long the end of a process is waited for, once its connection has ended.
pub(super) const END_TIMEOUT: Duration = Duration::from_millis(500);
/// How long the end of a session over HTTP may take.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(3);
/// How long the notification of a cancellation may take.
const NOTIFY_TIMEOUT: Duration = Duration::from_millis(200);
/// How often a server may ask for input in one call.
const MAX_INPUT_ROUNDS: usize = 4;

/// A connection to a running server. Dropping it ends the server, or the session with it.
pub(super) struct ServerConnection {
    service: RunningService<RoleClient, ServerRequests>,
    requests: ServerRequests,
    peer: ServerPeer,
    fault: ConnectionFault,
    tools: Mutex<Vec<AcceptedServerTool>>,
    /// Writes of calls one after another, so that each change belongs to one call.
    pub(super) turn: tokio::sync::Mutex<()>,
}

/// Why a call has no result.
#[derive(Debug)]
pub(super) enum CallProblem {
    /// The server answered with an error.
    Refused(String),
    /// The connection is unusable. The text is the end of a sentence about the server.
    Ended(String),
    /// The call was cancelled, or its time was over.
    Cancelled,
}

/// Why there is no connection.
#[derive(Debug)]
pub(super) enum ConnectProblem {
    /// The sandbox, the policy or the address does not allow it. Another attempt does not help.
    Denied(String),
    /// The server failed. The text is the end of a sentence about the server.
    Failed(String),
    /// The server ended before the session began. It may know only older versions.
    EndedEarly(String),
}

impl ServerConnection {
    /// Starts a server, begins a session, and lists its tools.
    pub(super) async fn open(
        name: &str,
        endpoint: &ServerTarget,
        access: &ServerAccess,
        timeouts: ServerTimeouts,
    ) -> Result<Self, ConnectProblem> {
        let first =
            Self::open_with(SessionStart::AnyVersion, name, endpoint, access, timeouts).await;
        match first {
            // Some servers end at a request that they do not know.
            Err(ConnectProblem::EndedEarly(_)) => {
                let start = SessionStart::Initialize;
                let second = Self::open_with(start, name, endpoint, access, timeouts).await;
                second.map_err(|problem| match problem {
                    ConnectProblem::EndedEarly(reason) => ConnectProblem::Failed(reason),
                    other => other,
                })
            }
            first => first,
        }
    }

    async fn open_with(
        start: SessionStart,
        name: &str,
        endpoint: &ServerTarget,
        access: &ServerAccess,
        timeouts: ServerTimeouts,
    ) -> Result<Self, ConnectProblem> {
        let root = match endpoint.files() {
            FileGrant::None => None,
            FileGrant::Read | FileGrant::ReadWrite => Some(uri_of(access.workspace_root(), "")),
        };
        let root = root.map(|uri| uri.trim_end_matches('/').to_owned());
        let requests = ServerRequests::new(name.to_owned(), root);
        let fault = ConnectionFault::default();
        let session = (start, requests.clone());
        let (peer, beginning) = ServerPeer::start(endpoint, access, session, &fault).await?;
        let too_slow =
            |what: &str, limit: Duration| format!("it {what} within {} seconds", limit.as_secs());
        let service = match tokio::time::timeout(timeouts.start, beginning).await {
            Ok(Ok(service)) => service,
            Ok(Err(problem)) => {
                let reason = describe_failure(&problem, peer.process(), &fault).await;
                return Err(match peer.has_ended() {
                    true => ConnectProblem::EndedEarly(reason),
                    false => ConnectProblem::Failed(reason),
                });
            }
            Err(_) => {
                let problem = too_slow("does not begin a session", timeouts.start);
                return Err(ConnectProblem::Failed(problem));
            }
        };
        let version = service.peer_info().map(|info| info.protocol_version.clone());
        if let Some(unknown) =
            version.filter(|version| !ProtocolVersion::KNOWN_VERSIONS.contains(version))
        {
            let unknown = shown(unknown.as_str());
            let problem = format!("it speaks the unknown version `{unknown}` of the protocol");
            return Err(ConnectProblem::Failed(problem));
        }
        let listed = match tokio::time::timeout(timeouts.list, listing::list_tools(&service)).await
        {
            Ok(listed) => listed,
            Err(_) => Err(too_slow("does not list its tools", timeouts.list)),
        };
        match listed {
            Ok(tools) => Ok(Self {
                service,
                requests,
                peer,
                fault,
                tools: Mutex::new(tools),
                turn: tokio::sync::Mutex::default(),
            }),
            Err(problem) => {
                // The reason of an unusable list is not that the host then ends the server.
                let problem = match fault.reason() {
                    Some(reason) => reason,
                    None if peer.has_ended() => peer.wait_for_end().await,
                    None => problem,
                };
                Err(ConnectProblem::Failed(problem))
            }
        }
    }

    /// Returns the process of the server, if it runs on this machine.
    pub(super) fn process(&self) -> Option<&ServerProcess> {
        self.peer.process()
    }

    /// Ends the process of the server, or the session with it.
    pub(super) fn request_stop(&self) {
        match &self.peer {
            ServerPeer::Process(process) => process.request_stop(),
            ServerPeer::Http => self.service.cancellation_token().cancel(),
        }
    }

    /// Ends the server, and waits until it has ended.
    pub(super) async fn stop(self) {
        self.request_stop();
        match &self.peer {
            ServerPeer::Process(process) => {
                let _ = process.wait_for_end().await;
            }
            ServerPeer::Http => {
                let _ = tokio::time::timeout(CLOSE_TIMEOUT, self.service.waiting()).await;
            }
        }
    }

    /// Returns whether the connection can be used.
    pub(super) fn is_open(&self) -> bool {
        !self.peer.has_ended() && self.fault.reason().is_none() && !self.service.is_closed()
    }

    /// Returns the tools as the server lists them now. They are listed again if the server said
    /// that they changed.
    pub(super) async fn current_tools(
        &self,
        timeout: Duration,
    ) -> Result<Vec<AcceptedServerTool>, CallProblem> {
        if self.requests.take_changed() {
            let listed = tokio::time::timeout(timeout, listing::list_tools(&self.service)).await;
            let tools = match listed {
                Ok(Ok(tools)) => tools,
                Ok(Err(problem)) => {
                    let problem = describe_failure(&problem, self.peer.process(), &self.fault);
                    return Err(CallProblem::Ended(problem.await));
                }
                Err(_) => {
                    let problem = "it does not list its changed tools in time";
                    return Err(CallProblem::Ended(problem.to_owned()));
                }
            };
            *self.tools.lock().unwrap_or_else(PoisonError::into_inner) = tools;
        }
        Ok(self.tools.lock().unwrap_or_else(PoisonError::into_inner).clone())
    }

    /// Returns the name and the version of the server, and the version of the protocol.
    pub(super) fn describe_peer(&self) -> (String, String) {
        let Some(info) = self.service.peer_info() else {
            return ("unknown".to_owned(), "unknown".to_owned());
        };
        let name = match &info.server_info {
            Some(server) => format!("{} {}", shown(&server.name), shown(&server.version)),
            None => "unknown".to_owned(),
        };
        (name, shown(info.protocol_version.as_str()))
    }

    /// Calls a tool.
    pub(super) async fn call(
        &self,
        tool: &str,
        arguments: JsonObject,
        call: &SourceCall,
    ) -> Result<CallToolResult, CallProblem> {
        let mut params = CallToolRequestParams::new(tool.to_owned()).with_arguments(arguments);
        for _ in 0..MAX_INPUT_ROUNDS {
            let request = CallToolRequest::new(params.clone());
            match self.request(ClientRequest::CallToolRequest(request), call).await? {
                ServerResult::CallToolResult(result) => return Ok(result),
                ServerResult::EmptyResult(_) => return Ok(CallToolResult::default()),
                ServerResult::InputRequiredResult(required) => {
                    params.input_responses = Some(self.answer_inputs(&required)?);
                    params.request_state = required.request_state;
                }
                _ => {
                    let problem = "its answer is not the result of a call";
                    return Err(CallProblem::Refused(problem.to_owned()));
                }
            }
        }
        Err(CallProblem::Refused("it asks for input again and again".to_owned()))
    }

    /// Sends a request of a call, and waits for the answer, the end of the connection or the end of
    /// the call.
    async fn request(
        &self,
        request: ClientRequest,
        call: &SourceCall,
    ) -> Result<ServerResult, CallProblem> {
        let sent = self.service.send_request_with_option(request, PeerRequestOptions::no_options());
        let handle = match sent.await {
            Ok(handle) => handle,
            Err(error) => return Err(self.describe_end(&error).await),
        };
        let id = handle.id.clone();
        let _registration = self.requests.register(
            handle.progress_token.clone(),
            call.progress.clone(),
            call.notices.clone(),
        );
        let faulty = async {
            self.fault.wait().await;
            "it sent something invalid"
        };
        tokio::select! {
            biased;
            response = handle.await_response() => match response {
                Ok(response) => Ok(response),
                Err(ServiceError::McpError(error)) => {
                    Err(CallProblem::Refused(format!("{} (code {})", error.message, error.code.0)))
                }
                Err(error) => Err(self.describe_end(&error).await),
            },
            () = call.cancellation.cancelled() => {
                self.notify_cancelled(id).await;
                Err(CallProblem::Cancelled)
            }
            problem = faulty => {
                let problem = describe_failure(problem, self.peer.process(), &self.fault).await;
                Err(CallProblem::Ended(problem))
            }
            reason = self.peer.wait_for_end() => Err(CallProblem::Ended(reason)),
        }
    }

    async fn notify_cancelled(&self, id: RequestId) {
        let reason = "the call was cancelled".to_owned();
        let params = CancelledNotificationParam::new(Some(id), Some(reason));
        // The server may not read any more.
        let _ = tokio::time::timeout(NOTIFY_TIMEOUT, self.service.notify_cancelled(params)).await;
    }

    async fn describe_end(&self, error: &ServiceError) -> CallProblem {
        let problem = shown(&error.to_string());
        CallProblem::Ended(describe_failure(&problem, self.peer.process(), &self.fault).await)
    }

    /// Answers what a server asks for in the middle of a call, in versions without sessions.
    fn answer_inputs(
        &self,
        required: &InputRequiredResult,
    ) -> Result<BTreeMap<String, Value>, CallProblem> {
        let json = |value: serde_json::Result<Value>| {
            value.map_err(|error| CallProblem::Refused(error.to_string()))
        };
        let mut answers = BTreeMap::new();
        for (key, request) in required.input_requests.iter().flatten() {
            let answer = match request {
                InputRequest::ListRoots(_) => json(serde_json::to_value(self.requests.roots()))?,
                InputRequest::Elicitation(request) => {
                    self.requests
                        .tell_denied("elicitation/create", elicitation_text(&request.params));
                    let declined = ElicitResult::new(ElicitationAction::Decline);
                    json(serde_json::to_value(declined))?
                }
                InputRequest::CreateMessage(_) => {
                    self.requests.tell_denied("sampling/createMessage", "");
                    let problem = "it asked for `sampling/createMessage`, which was denied";
                    return Err(CallProblem::Refused(problem.to_owned()));
                }
                _ => {
                    let problem = "it asked for an unknown kind of input";
                    return Err(CallProblem::Refused(problem.to_owned()));
                }
            };
            answers.insert(key.clone(), answer);
        }
        Ok(answers)
    }
}
