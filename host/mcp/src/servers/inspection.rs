//! A look at what a server offers, before the user accepts it.

use cofferdam::plugins::AcceptedServerTool;
use cofferdam::sandbox::ServerAccess;

use super::connection::{CallProblem, ConnectProblem, ServerConnection};
use super::endpoint::ServerTarget;
use super::{ServerTimeouts, shown};

/// What a server offers.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ServerInspection {
    /// The name and the version that the server gives itself, escaped.
    pub server: String,
    /// The version of the protocol.
    pub protocol: String,
    /// The tools, exactly as the server lists them.
    pub tools: Vec<AcceptedServerTool>,
}

/// Starts a server in its sandbox or connects to it, lists its tools, and ends it. Changes that it
/// makes to the workspace are discarded.
///
/// # Errors
///
/// The server does not start, does not speak the protocol or exceeds a limit.
pub async fn inspect_server(
    name: &str,
    endpoint: &ServerTarget,
    access: &ServerAccess,
    timeouts: ServerTimeouts,
) -> Result<ServerInspection, String> {
    let connection = ServerConnection::open(name, endpoint, access, timeouts).await;
    let connection = connection.map_err(|problem| match problem {
        ConnectProblem::Denied(denied) => denied,
        ConnectProblem::Failed(problem) | ConnectProblem::EndedEarly(problem) => {
            format!("cannot use the server `{name}`: {problem}")
        }
    })?;
    let tools = connection.current_tools(timeouts.list).await.map_err(|problem| match problem {
        CallProblem::Refused(reason) | CallProblem::Ended(reason) => {
            format!("cannot use the server `{name}`: {}", shown(&reason))
        }
        CallProblem::Cancelled => format!("the inspection of `{name}` was cancelled"),
    })?;
    let (server, protocol) = connection.describe_peer();
    connection.stop().await;
    Ok(ServerInspection { server, protocol, tools })
}
