//! What the processes around a command say to each other: the host to the supervisor, the
//! supervisor to the process that becomes the command, and back. Each message is one line of JSON
//! on a socket that is the other's standard input.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::probe::ProbeTargets;
use crate::policy::{CommandLimits, ProtectedPaths, SandboxLevel};
use crate::sandbox::digest::ComponentDigest;
use crate::sandbox::git::UserSettings;

/// From the host to the supervisor.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct SupervisorRequest {
    pub(super) job: CommandJob,
    /// Of the line that was approved; another one does not run.
    pub(super) digest: ComponentDigest,
    pub(super) level: SandboxLevel,
    /// This program.
    pub(super) program: PathBuf,
    pub(super) bubblewrap: Option<PathBuf>,
    pub(super) workspace: PathBuf,
    /// Where to run: the workspace or below it.
    pub(super) directory: PathBuf,
    pub(super) home: Option<PathBuf>,
    /// Where things go that have no business in the workspace.
    pub(super) set_aside: PathBuf,
    pub(super) network: bool,
    pub(super) paths: CommandPaths,
    /// What of these places the user opened by name.
    pub(super) opened_paths: Vec<PathBuf>,
    pub(super) limits: CommandLimits,
    pub(super) protected: ProtectedPaths,
    /// Settings of git that hold in every repository.
    pub(super) user_settings: UserSettings,
    /// Files and folders of this program itself.
    pub(super) own: Vec<PathBuf>,
}

/// What runs.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(in crate::sandbox) enum CommandJob {
    /// `sh -c LINE`
    CommandLine(String),
    /// Attempts at what must not succeed.
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

/// What a command sees of the machine besides the workspace. Absolute paths that exist.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::sandbox) struct CommandPaths {
    pub(in crate::sandbox) read: Vec<PathBuf>,
    pub(in crate::sandbox) write: Vec<PathBuf>,
    /// Folders of which only the names are seen.
    pub(in crate::sandbox) list: Vec<PathBuf>,
}

/// From the supervisor to the process that confines itself and becomes the command.
#[derive(Debug, Serialize, Deserialize)]
pub(in crate::sandbox) struct ConfinementSpec {
    pub(in crate::sandbox) job: CommandJob,
    pub(in crate::sandbox) paths: CommandPaths,
    pub(in crate::sandbox) sockets: SocketAccess,
    pub(in crate::sandbox) limits: CommandLimits,
}

/// Which sockets a command can make.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::sandbox) enum SocketAccess {
    /// In a network of its own, where nobody else is: to itself.
    Own,
    /// The user let it use the network, and it is in a file system of its own.
    OwnAndNetwork,
    /// Pairs, which connect a process with its child. A socket with a path or a name could be that
    /// of a service that starts programs for whoever asks.
    Pairs,
    /// The user let it use the network.
    PairsAndNetwork,
}

/// What the process that becomes the command says before it does.
#[derive(Debug, Serialize, Deserialize)]
pub(in crate::sandbox) enum ChildReadiness {
    /// All restrictions hold; the next step is the command.
    Confined,
    /// They do not, so the command does not run.
    Failed(String),
}

/// From the supervisor to the host, when nothing is left of the command.
#[derive(Debug, Serialize, Deserialize)]
pub(in crate::sandbox) struct SupervisorReport {
    pub(in crate::sandbox) ending: CommandExitKind,
    pub(in crate::sandbox) digest: ComponentDigest,
    pub(in crate::sandbox) level: SandboxLevel,
    /// Changes to protected paths that were undone, or could not be.
    pub(in crate::sandbox) notices: Vec<String>,
}

/// How a command ended.
#[derive(Debug, Serialize, Deserialize)]
pub(in crate::sandbox) enum CommandExitKind {
    /// With this code, which is 128 plus the signal if a signal ended it.
    Exited(i32),
    /// It had too many processes.
    TooManyProcesses,
    /// The host went away or asked for it.
    Stopped,
    /// The sandbox could not be made.
    NotRun(String),
}
