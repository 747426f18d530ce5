//! What one call may do with the process of its server.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::{mpsc, oneshot, watch};
use tokio_util::sync::CancellationToken;

use super::task::ServerTask;
use super::{ServerCommit, ServerPipes, ServerProcess, ServerSpec, SharedProcess};
use crate::policy::{
    ApprovalMode, ComponentDigest, ConnectionVerdict, Denial, DenialCode, FileGrant, HostAddress,
    HttpUrl, NetworkRules, Permit, ProtectedPaths, SandboxLevel, WorkspaceAccess,
};
use crate::sandbox::command_changes::{CommandChangeContext, SettledCommand};
use crate::sandbox::commands::{RanCommand, describe_refused_connections};
use crate::sandbox::egress::{CommandConnection, ConnectionRules, EgressProxy};
use crate::sandbox::gate::{
    CommandChangeJudge, ConnectionDecision, ConnectionJudge, DenialRecorder, ModeSource,
};
use crate::sandbox::jobs::{JobRecorder, deny_all, deny_changes};
use crate::sandbox::server_http::{HostPermitSource, HttpReach, OriginClient};
use crate::sandbox::stage::UndoHistory;
use crate::sandbox::workspace::Workspace;
use cofferdam_confine::CommandSandbox;
use cofferdam_confine::process::{
    CommandFailure, CommandTimeLimit, CommandWorkspace, ProxyFactory, start_server,
};

/// Permits the command of a server with this access to files.
pub(crate) type ServerPermitSource =
    Arc<dyn Fn(&str, FileGrant) -> Result<Permit, Denial> + Send + Sync>;

/// Decides about a host that a server with these rules wants to connect to.
pub(crate) type ServerConnectionJudge =
    Arc<dyn Fn(&HostAddress, &NetworkRules) -> ConnectionVerdict + Send + Sync>;

/// The number of requests for a commit that wait. Others wait before they are sent.
const MAX_WAITING_COMMITS: usize = 4;

/// What one call may do with the process of its server. Only the host creates it.
#[derive(Clone)]
pub struct ServerAccess {
    parts: Arc<ServerAccessParts>,
}

/// What the host gives to a [`ServerAccess`].
pub(crate) struct ServerAccessParts {
    pub(crate) tool: String,
    pub(crate) workspace: Arc<Workspace>,
    pub(crate) commands: Arc<CommandSandbox>,
    pub(crate) permit: ServerPermitSource,
    pub(crate) connections: ServerConnectionJudge,
    /// Decides whether the policy denies a host to HTTP servers.
    pub(crate) http_hosts: HostPermitSource,
    pub(crate) change_judge: CommandChangeJudge,
    pub(crate) denial_recorder: DenialRecorder,
    pub(crate) mode: ModeSource,
    pub(crate) history: Option<Arc<UndoHistory>>,
    /// Records changes that were committed after the call ended.
    pub(crate) late_recorder: JobRecorder,
    /// What the call did, for the audit log.
    pub(crate) records: Mutex<Vec<RanCommand>>,
}

/// Why a server did not start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServerStartError {
    /// The policy or the mode denies it.
    #[error("{0}")]
    Denied(Denial),
    /// This machine cannot hold the server to its permissions.
    #[error(
        "the server did not start, because this machine cannot hold it to its permissions: \
            {0}\nhint: `cofferdam doctor` shows which sandbox commands get, and what is missing"
    )]
    NoSandbox(String),
    /// The process could not be started.
    #[error("cannot start the server: {0}")]
    Start(String),
}

impl ServerAccess {
    pub(crate) fn new(parts: ServerAccessParts) -> Self {
        Self { parts: Arc::new(parts) }
    }

    /// Returns the root directory of the workspace, for a server that may read it.
    pub fn workspace_root(&self) -> &std::path::Path {
        self.parts.workspace.root()
    }

    /// Starts a server in the sandbox of commands, at the level `full`.
    ///
    /// # Errors
    ///
    /// A rule denies the command, the machine does not support the sandbox, or the process cannot
    /// be started.
    pub async fn start(
        &self,
        spec: &ServerSpec,
    ) -> Result<(ServerProcess, ServerPipes), ServerStartError> {
        let parts = &self.parts;
        let line = spec.line();
        if line.contains('\0') {
            return Err(ServerStartError::Start("the command contains a NUL byte".to_owned()));
        }
        let permit = (parts.permit)(&line, spec.files).map_err(ServerStartError::Denied)?;
        let writes = *permit.workspace_access() == WorkspaceAccess::ReadWrite;
        let commands = parts.commands.for_server(&spec.permissions);
        check_level(&commands)?;
        let empty = match spec.files {
            FileGrant::None => Some(create_empty_workspace(&commands)?),
            FileGrant::Read | FileGrant::ReadWrite => None,
        };
        let nothing = ProtectedPaths::default();
        let place = match &empty {
            Some(empty) => CommandWorkspace {
                root: empty.path(),
                protected: &nothing,
                direct: &[],
                writes_directly: false,
            },
            None => CommandWorkspace {
                root: parts.workspace.root(),
                protected: parts.workspace.guard().paths(),
                direct: &[],
                writes_directly: false,
            },
        };
        let proxy = self.new_proxy(spec, &line);
        let starter = proxy.as_ref().map(|proxy| || proxy.starter());
        let starter = starter.as_ref().map(|starter| starter as ProxyFactory<'_>);
        let started = start_server(permit, place, &commands, starter).await;
        let (command, output, input) = started.map_err(|failure| match failure {
            CommandFailure::NoBackground(reason) => ServerStartError::NoSandbox(reason.to_string()),
            other => ServerStartError::Start(other.to_string()),
        })?;
        let shared = Arc::new(SharedProcess {
            errors: Mutex::default(),
            end: watch::Sender::new(None),
            proxy,
            recorded_connections: Mutex::default(),
            _empty: empty,
        });
        let stop = CancellationToken::new();
        let (requests, waiting) = mpsc::channel(MAX_WAITING_COMMITS);
        let task = ServerTask { shared: Arc::clone(&shared), stop: stop.clone() };
        // The sandbox and its measured level live as long as the process.
        tokio::spawn(async move {
            let _commands = commands;
            task.run(command, waiting).await;
        });
        let line_sha256 = ComponentDigest::compute(line.as_bytes());
        self.record(&line_sha256, vec!["the server started".to_owned()], (None, Vec::new()));
        let process = ServerProcess { requests, stop, shared, line_sha256, writes };
        Ok((process, ServerPipes { input: input.into_pipe(), output }))
    }

    /// Returns the origins that the host may connect to for a server over HTTP. `addresses` are the
    /// IP addresses that are not public and that the user permitted.
    pub fn http_reach(
        &self,
        server: &HttpUrl,
        addresses: NetworkRules,
        allow_plain_http: bool,
    ) -> HttpReach {
        let permit = Arc::clone(&self.parts.http_hosts);
        HttpReach::new(permit, server, addresses, allow_plain_http)
    }

    /// Records that the call connected to a server over HTTP.
    pub fn record_http_server(&self, server: &HttpUrl, client: &OriginClient) {
        let addresses: Vec<String> = client.addresses().iter().map(ToString::to_string).collect();
        let remark = format!("connected to {} ({})", server.origin(), addresses.join(", "));
        let line_sha256 = ComponentDigest::compute(server.to_string().as_bytes());
        let mut record =
            settled_record(&line_sha256, vec![remark], SettledCommand::default(), Vec::new());
        // Nothing runs on this machine.
        record.level = SandboxLevel::None;
        self.parts.records.lock().unwrap_or_else(PoisonError::into_inner).push(record);
    }

    /// Checks whether the mode in force allows calls of a server that can change files.
    ///
    /// # Errors
    ///
    /// The denial, in mode `plan`.
    pub fn check_mode(&self, files: FileGrant) -> Result<(), Denial> {
        match ((self.parts.mode)(), files) {
            (ApprovalMode::Plan, FileGrant::ReadWrite) => Err(Denial::new(
                DenialCode::Mode,
                "mode `plan` denies changes, and the server of this tool can change files.",
                "The user can choose another mode.",
            )),
            (
                ApprovalMode::Plan
                | ApprovalMode::Ask
                | ApprovalMode::AutoEdit
                | ApprovalMode::Auto,
                _,
            ) => Ok(()),
        }
    }

    /// Decides on what a server has changed since the last time, and commits the accepted changes.
    /// Returns notices about changes that were not committed, and about refused connections. Nobody
    /// is asked: changes that need an approval of their own are not committed.
    ///
    /// # Errors
    ///
    /// The reason why nothing was committed.
    pub async fn commit_changes(&self, process: &ServerProcess) -> Result<Vec<String>, String> {
        let connections = process.shared.take_connections();
        let settled = match process.writes {
            true => self.request_commit(process).await,
            false => Ok(SettledCommand::default()),
        };
        let refused = describe_refused_connections(&connections);
        let (notices, settled) = match settled {
            Ok(settled) => (Ok([settled.notices.clone(), refused].concat()), Some(settled)),
            Err(reason) => (Err(reason), None),
        };
        let remarks = match &notices {
            Ok(notices) => notices.clone(),
            Err(reason) => vec![format!("nothing was committed: {reason}")],
        };
        let has_changes = settled.as_ref().is_some_and(|settled| !settled.committed.is_empty());
        if has_changes || !remarks.is_empty() || !connections.is_empty() {
            self.record(&process.line_sha256, remarks, (settled, connections));
        }
        notices
    }

    async fn request_commit(&self, process: &ServerProcess) -> Result<SettledCommand, String> {
        let has_ended = || "the server has ended, and its changes were discarded".to_owned();
        let (reply, settled) = oneshot::channel();
        let request = ServerCommit {
            context: self.change_context(),
            reply,
            late_recorder: Arc::clone(&self.parts.late_recorder),
            line_sha256: process.line_sha256.clone(),
        };
        process.requests.send(request).await.map_err(|_| has_ended())?;
        settled.await.map_err(|_| has_ended())?
    }

    fn change_context(&self) -> CommandChangeContext {
        let parts = &self.parts;
        CommandChangeContext {
            workspace: Arc::clone(&parts.workspace),
            gate: deny_changes(&parts.denial_recorder),
            judge: Arc::clone(&parts.change_judge),
            denials: Arc::clone(&parts.denial_recorder),
            mode: Arc::clone(&parts.mode),
            // Nobody is asked.
            review_changes: false,
            history: parts.history.clone(),
            tool: parts.tool.clone(),
        }
    }

    fn new_proxy(&self, spec: &ServerSpec, line: &str) -> Option<EgressProxy> {
        let rules = spec.permissions.network.clone();
        if rules.is_empty() {
            return None;
        }
        let judge = Arc::clone(&self.parts.connections);
        let judge: ConnectionJudge = Arc::new(move |host| ConnectionDecision {
            verdict: judge(host, &rules),
            names_address: rules.allows_address(host),
        });
        Some(EgressProxy::new(ConnectionRules {
            judge,
            gate: deny_all(),
            line: line.to_owned(),
            limit: CommandTimeLimit::new(Duration::MAX),
        }))
    }

    fn record(
        &self,
        line_sha256: &ComponentDigest,
        remarks: Vec<String>,
        (settled, connections): (Option<SettledCommand>, Vec<CommandConnection>),
    ) {
        let settled = settled.unwrap_or_default();
        let record = settled_record(line_sha256, remarks, settled, connections);
        self.parts.records.lock().unwrap_or_else(PoisonError::into_inner).push(record);
    }

    /// Takes the records of what the call did.
    pub(crate) fn take_records(&self) -> Vec<RanCommand> {
        std::mem::take(&mut *self.parts.records.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl std::fmt::Debug for ServerAccess {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ServerAccess").field("tool", &self.parts.tool).finish_non_exhaustive()
    }
}

/// Returns the record of what the host did about the changes and connections of a server.
pub(super) fn settled_record(
    line_sha256: &ComponentDigest,
    remarks: Vec<String>,
    settled: SettledCommand,
    connections: Vec<CommandConnection>,
) -> RanCommand {
    RanCommand {
        line_sha256: line_sha256.clone(),
        level: SandboxLevel::Full,
        ending: None,
        remarks,
        changes: settled.committed,
        more_changes: settled.more_committed,
        connections,
        changed_files: settled.listed,
    }
}

/// Checks whether commands have the level that servers need.
fn check_level(commands: &CommandSandbox) -> Result<(), ServerStartError> {
    let measured = commands.measured();
    if measured.level == SandboxLevel::Full {
        return Ok(());
    }
    let why: Vec<String> = measured
        .unavailable
        .iter()
        .filter(|(level, _)| *level == SandboxLevel::Full)
        .map(|(_, problem)| problem.to_string())
        .collect();
    Err(ServerStartError::NoSandbox(format!(
        "servers need the sandbox level `full`, and this machine has `{}`: {}",
        measured.level,
        why.join("; ")
    )))
}

/// Creates an empty directory, which stands for the workspace of a server without access to files.
fn create_empty_workspace(
    commands: &CommandSandbox,
) -> Result<tempfile::TempDir, ServerStartError> {
    let failed = |error: std::io::Error| ServerStartError::Start(error.to_string());
    let parent = commands.temp_dir().canonicalize().map_err(failed)?;
    tempfile::Builder::new().prefix("cofferdam-server-").tempdir_in(parent).map_err(failed)
}
