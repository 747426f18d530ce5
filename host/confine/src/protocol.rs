//! The messages between the processes around a command.
//!
//! The host sends to the supervisor, the supervisor sends to the process that becomes the command,
//! and both get replies. Each message is one line of JSON on a socket that is the receiver's
//! standard input.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::error::EncodedConfineError;
use super::probe::ProbeTargets;
use super::supervisor::SandboxSpec;
use crate::git::UserSettings;
use crate::snapshot::SavedPath;
use crate::view::CollectedChanges;
use cofferdam_policy::ComponentDigest;
use cofferdam_policy::{CommandLimits, ProtectedPaths, SandboxLevel};

/// A message of the host to a supervisor that has no command yet.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum SupervisorOrder {
    /// Prepare for a command that may come. Only the first message can say so.
    Prepare(SupervisorPreparation),
    /// Run this command.
    Run(Box<SupervisorRequest>),
}

/// What a supervisor can prepare before there is a command.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum SupervisorPreparation {
    /// A sandbox at the level `full`.
    Sandbox(SandboxPreparation),
    /// The guard of a command that can leave something in the workspace.
    Guard(GuardPreparation),
}

/// The part of a sandbox at the level `full` that all commands of a host have in common.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct SandboxPreparation {
    pub(crate) home: Option<PathBuf>,
    pub(crate) paths: CommandPaths,
    /// Whether commands have the network of the host.
    pub(crate) has_host_network: bool,
}

/// What the guard of a supervisor has to know. It gets no request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct GuardPreparation {
    /// The directory with the record of the command.
    pub(crate) set_aside: PathBuf,
}

impl SupervisorPreparation {
    /// Returns the preparation for commands like this one, if there is any.
    pub(crate) fn for_request(request: &SupervisorRequest) -> Option<Self> {
        if let Some(guard) = GuardPreparation::for_request(request) {
            return Some(Self::Guard(guard));
        }
        SandboxPreparation::for_request(request).map(Self::Sandbox)
    }
}

impl SandboxPreparation {
    /// Returns the preparation for commands like this one, if there is any.
    pub(crate) fn for_request(request: &SupervisorRequest) -> Option<Self> {
        let has_namespaces = request.level == SandboxLevel::Full
            && request.namespaces == Some(NamespaceMaker::Supervisor);
        // A guard is not in a namespace.
        (has_namespaces && !request.needs_guard()).then(|| Self {
            home: request.home.clone(),
            paths: request.paths.clone(),
            has_host_network: request.network == NetworkAccess::Host,
        })
    }
}

impl GuardPreparation {
    /// Returns the preparation for a command like this one, if it needs a guard.
    pub(crate) fn for_request(request: &SupervisorRequest) -> Option<Self> {
        request.needs_guard().then(|| Self { set_aside: request.set_aside.clone() })
    }
}

/// The request of the host to the supervisor.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct SupervisorRequest {
    pub(super) job: CommandJob,
    /// The digest of the approved line. The supervisor refuses any other line.
    pub(super) digest: ComponentDigest,
    pub(super) level: SandboxLevel,
    /// The path of this program.
    pub(super) program: PathBuf,
    /// What creates the namespaces of the command, at the level `full`.
    pub(super) namespaces: Option<NamespaceMaker>,
    pub(super) workspace: PathBuf,
    /// The working directory: the workspace or a directory below it.
    pub(super) directory: PathBuf,
    /// The repository of the workspace, if it lies outside.
    pub(super) outer_repository: Option<PathBuf>,
    pub(super) home: Option<PathBuf>,
    /// The directory in which the private directories of the command are created.
    pub(super) temp_dir: SavedPath,
    /// The directory for entries that are moved out of the workspace.
    pub(super) set_aside: PathBuf,
    pub(super) network: NetworkAccess,
    pub(super) paths: CommandPaths,
    /// The paths that the user opened by name in the configuration.
    pub(super) opened_paths: Vec<PathBuf>,
    pub(super) limits: CommandLimits,
    pub(super) protected: ProtectedPaths,
    /// The git settings that apply in every repository.
    pub(super) user_settings: UserSettings,
    /// The files and directories of this program itself.
    pub(super) own: Vec<PathBuf>,
    pub(super) view: SupervisedView,
    pub(super) streams: CommandStreams,
    /// The directories below the workspace that a command with a layer writes directly, relative to
    /// it.
    pub(super) direct: Vec<PathBuf>,
}

impl SupervisorRequest {
    /// Returns whether something has to be restored in the workspace if the supervisor is killed.
    pub(super) fn needs_guard(&self) -> bool {
        match &self.view {
            SupervisedView::Direct => true,
            // Without a mount, a command could still change permissions.
            SupervisedView::ReadOnly => self.level != SandboxLevel::Full,
            // What the command writes directly is restored.
            SupervisedView::Layer(_) => !self.direct.is_empty(),
        }
    }
}

/// The standard streams of a command.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum CommandStreams {
    /// No input. The output goes to the streams of the supervisor.
    #[default]
    OutputOnly,
    /// Two descriptors come with the message: one for the input, and one for both outputs.
    Pipes,
    /// Three descriptors come with the message: for the input, the output and the errors.
    SeparatePipes,
    /// All three streams are the terminal whose descriptor comes with the message. It is the
    /// controlling terminal of the command.
    Terminal,
}

/// The port of the proxy in the network namespace of a command. Nothing else listens there.
pub(crate) const PROXY_PORT: u16 = 3128;

/// The network that a command can reach.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum NetworkAccess {
    /// Its own loopback interface at most.
    None,
    /// A proxy of the host, which listens in the network namespace of the command.
    Proxy,
    /// That of the host.
    Host,
}

/// How a command sees the workspace.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum SupervisedView {
    /// The command writes the workspace itself.
    Direct,
    /// The command cannot change the workspace.
    ReadOnly,
    /// This layer receives the changes of the command.
    Layer(PathBuf),
}

/// What creates the namespaces of a command.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum NamespaceMaker {
    /// The supervisor itself.
    Supervisor,
    /// The program bubblewrap, where a distribution allows namespaces to it alone.
    Bubblewrap(PathBuf),
}

/// The job that runs in the sandbox.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) enum CommandJob {
    /// A shell command line, run as `sh -c LINE`.
    CommandLine(String),
    /// Access attempts that must fail.
    SelfTest(ProbeTargets),
}

impl CommandJob {
    pub(super) fn digest(&self) -> ComponentDigest {
        match self {
            Self::CommandLine(line) => ComponentDigest::compute(line.as_bytes()),
            Self::SelfTest(_) => ComponentDigest::compute(b"self-test"),
        }
    }
}

/// The paths outside the workspace that a command can see. All are absolute and exist.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct CommandPaths {
    pub(crate) read: Vec<PathBuf>,
    pub(crate) write: Vec<PathBuf>,
    /// Directories of which only the names of entries are visible.
    pub(crate) list: Vec<PathBuf>,
}

impl CommandPaths {
    /// Returns the list to which the workspace of a command belongs.
    #[allow(dead_code, reason = "each operating system reads what its sandbox is made of")]
    pub(crate) fn workspace_list(&mut self, around: &SandboxSpec<'_>) -> &mut Vec<PathBuf> {
        if around.writes_workspace { &mut self.write } else { &mut self.read }
    }
}

/// The message of the supervisor to the process that confines itself and becomes the command.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct ConfinementSpec {
    pub(crate) job: CommandJob,
    pub(crate) paths: CommandPaths,
    pub(crate) sockets: SocketAccess,
    pub(crate) limits: CommandLimits,
    pub(crate) streams: CommandStreams,
}

/// The sockets that a command can create.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum SocketAccess {
    /// Sockets in a private network namespace and file system, which reach only the command's own
    /// processes.
    Own,
    /// Sockets with network access, in a private file system.
    OwnAndNetwork,
    /// Connected pairs only, such as those between a process and its child. A socket with a path or
    /// a name could belong to a service that starts programs on request.
    Pairs,
    /// Connected pairs, and sockets for the network that the user allowed.
    PairsAndNetwork,
}

/// A message of the host to the supervisor of a running command.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum HostMessage {
    /// Collect what the command has changed so far. The supervisor replies with a report.
    Checkpoint(CheckpointRequest),
    /// The host has committed or discarded what the last report contained. The supervisor collects
    /// nothing before.
    Settled,
}

/// A request for what a command has changed so far.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct CheckpointRequest {
    /// The layer that receives copies of the new entries.
    pub(crate) layer: PathBuf,
}

/// What a command has changed so far, since the last checkpoint.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct CheckpointReport {
    /// The changes, or why they could not be collected.
    pub(crate) changes: Result<CollectedChanges, String>,
    /// Changes to protected paths that were undone, or could not be undone.
    pub(crate) notices: Vec<String>,
}

/// A message of the supervisor to the host.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum SupervisorMessage {
    /// The socket at which the proxy receives connections comes with this message.
    Listening,
    /// The reply to a request for a checkpoint.
    Checkpoint(CheckpointReport),
    /// The reply to [`HostMessage::Settled`]: from now on, a change of a committed entry is one of
    /// somebody else.
    Settled,
    /// The command has ended. This is the last message.
    Ended(SupervisorReport),
}

/// The message of the process that becomes the command, sent just before it does.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum ChildReadiness {
    /// The socket for the proxy comes with this message. More messages follow.
    Listening,
    /// All restrictions are active. The next step is the command.
    Confined,
    /// Some restriction failed, so the command does not run.
    Failed(EncodedConfineError),
}

/// The report of the supervisor to the host, sent when no process of the command is left.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct SupervisorReport {
    pub(crate) ending: CommandExitKind,
    pub(crate) digest: ComponentDigest,
    pub(crate) level: SandboxLevel,
    /// Changes to protected paths that were undone, or could not be undone.
    pub(crate) notices: Vec<String>,
    /// The changes in the layer; `None` without a layer, or if the command did not run.
    pub(crate) changes: Option<CollectedChanges>,
}

/// The way in which a command ended, as seen by the supervisor.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum CommandExitKind {
    /// The command exited with this code, which is 128 plus the signal if a signal ended it.
    Exited(i32),
    /// The command had too many processes.
    TooManyProcesses,
    /// The host closed the link, or ended.
    Stopped,
    /// The sandbox could not be created.
    NotRun(EncodedConfineError),
}
