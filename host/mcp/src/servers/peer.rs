//! The other end of a connection: a process on this machine, or a server over HTTP.

use cofferdam::sandbox::{OriginClient, ReachError, ServerAccess, ServerProcess, ServerStartError};
use rmcp::service::{RoleClient, RunningService};

use super::client_transport::ClientTransport;
use super::connection::ConnectProblem;
use super::endpoint::ServerTarget;
use super::handshake::{SessionStart, begin_session};
use super::http::{HttpServerClient, HttpServerTarget, transport};
use super::message_guard::ConnectionFault;
use super::server_requests::ServerRequests;

/// The other end of a connection.
pub(super) enum ServerPeer {
    /// A process in the sandbox. Dropping it ends the server.
    Process(ServerProcess),
    /// A server over HTTP, of which nothing runs here.
    Http,
}

/// A session that begins.
pub(super) type BeginningSession = futures_util::future::BoxFuture<
    'static,
    Result<RunningService<RoleClient, ServerRequests>, String>,
>;

impl ServerPeer {
    /// Starts a server or connects to it. The session begins when the future is awaited.
    pub(super) async fn start(
        endpoint: &ServerTarget,
        access: &ServerAccess,
        (start, requests): (SessionStart, ServerRequests),
        fault: &ConnectionFault,
    ) -> Result<(Self, BeginningSession), ConnectProblem> {
        match endpoint {
            ServerTarget::Program(spec) => {
                let started = access.start(spec).await;
                let (process, pipes) = started.map_err(|error| match error {
                    ServerStartError::Start(problem) => ConnectProblem::Failed(problem),
                    denied => ConnectProblem::Denied(denied.to_string()),
                })?;
                let transport = ClientTransport::new(pipes.output, pipes.input, fault.clone());
                let beginning = begin_session(start, requests, transport);
                Ok((Self::Process(process), Box::pin(beginning)))
            }
            ServerTarget::Http(http) => {
                let origin = connect(http, access).await?;
                let reach = http.reach(access);
                let shared = (requests.clone(), fault.clone());
                let client = HttpServerClient::new((origin, reach), http, shared);
                let beginning = begin_session(start, requests, transport(client));
                Ok((Self::Http, Box::pin(beginning)))
            }
        }
    }

    /// Returns the process, if there is one.
    pub(super) fn process(&self) -> Option<&ServerProcess> {
        match self {
            Self::Process(process) => Some(process),
            Self::Http => None,
        }
    }

    /// Returns whether the process has ended.
    pub(super) fn has_ended(&self) -> bool {
        self.process().is_some_and(ServerProcess::has_ended)
    }

    /// Waits until the process has ended, and returns the reason as the end of a sentence. Without
    /// a process, this never ends.
    pub(super) async fn wait_for_end(&self) -> String {
        match self {
            Self::Process(process) => process.wait_for_end().await,
            Self::Http => std::future::pending().await,
        }
    }
}

/// Resolves the name of a server and checks its addresses.
async fn connect(
    endpoint: &HttpServerTarget,
    access: &ServerAccess,
) -> Result<OriginClient, ConnectProblem> {
    let connected = endpoint.reach(access).connect(endpoint.url.origin()).await;
    let origin = connected.map_err(|error| match error {
        ReachError::Unreachable(problem) => ConnectProblem::Failed(problem),
        denied => ConnectProblem::Denied(format!("the server cannot be used: {denied}")),
    })?;
    access.record_http_server(&endpoint.url, &origin);
    Ok(origin)
}
