//! The first messages of a connection: the version of the protocol, and the tools.

use cofferdam::sandbox::ServerProcess;
use rmcp::model::ProtocolVersion;
use rmcp::service::{
    ClientLifecycleMode, RoleClient, RunningService, serve_client_with_lifecycle_and_ct,
};
use rmcp::transport::Transport;
use tokio_util::sync::CancellationToken;

use super::message_guard::ConnectionFault;
use super::server_requests::ServerRequests;
use super::shown;

/// A way to begin a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SessionStart {
    /// Asks for the newest version, and initializes a session of an older one if the server does
    /// not know that request.
    AnyVersion,
    /// Initializes a session. For servers that end at a request that they do not know.
    Initialize,
}

impl SessionStart {
    fn lifecycle(self) -> ClientLifecycleMode {
        match self {
            Self::AnyVersion => ClientLifecycleMode::Auto {
                preferred_versions: vec![ProtocolVersion::V_2026_07_28],
                legacy_version: Some(ProtocolVersion::V_2025_11_25),
            },
            Self::Initialize => ClientLifecycleMode::Initialize,
        }
    }
}

/// Begins a session with a started server.
///
/// # Errors
///
/// The server does not speak the protocol. The error is a sentence about the server.
pub(super) async fn begin_session<T>(
    start: SessionStart,
    requests: ServerRequests,
    transport: T,
) -> Result<RunningService<RoleClient, ServerRequests>, String>
where
    T: Transport<RoleClient> + 'static,
{
    let begun = serve_client_with_lifecycle_and_ct(
        requests,
        transport,
        start.lifecycle(),
        CancellationToken::new(),
    );
    begun.await.map_err(|error| shown(&error.to_string()))
}

/// Describes why a server cannot be used: the limit that it exceeded, its end, or the problem.
pub(super) async fn describe_failure(
    problem: &str,
    process: Option<&ServerProcess>,
    fault: &ConnectionFault,
) -> String {
    if let Some(reason) = fault.reason() {
        return reason;
    }
    let Some(process) = process else { return problem.to_owned() };
    // The end of the process and of its output are two events.
    match tokio::time::timeout(super::connection::END_TIMEOUT, process.wait_for_end()).await {
        Ok(reason) => reason,
        Err(_) => problem.to_owned(),
    }
}
