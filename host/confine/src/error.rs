//! The errors of the steps in which a command runs in a sandbox.
//!
//! A failed step ends the command before it starts, or kills it. The error travels from the process
//! that failed to the host, which gets the same step and the reason as text.

use std::error::Error;
use std::fmt;
use std::io;
use std::path::PathBuf;
use std::process::ExitStatus;

use serde::{Deserialize, Serialize};

use cofferdam_policy::terminal_escape::escape_line;

/// The maximum length of a path in an error, in characters.
const MAX_SHOWN_PATH_LEN: usize = 200;

/// A step in which a command runs in a sandbox.
///
/// Its text continues a sentence that begins with `cannot`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub enum ConfineStep {
    /// Close the files that the parent process left open.
    CloseInheritedFiles,
    /// Become the parent of processes whose own parent ends.
    AdoptProcesses,
    /// Find the file of this program.
    FindProgram,
    /// Start the supervisor.
    StartSupervisor,
    /// Replace the standard streams of this process.
    ReplaceStreams,
    /// Read the request, and check that it is the approved one.
    ReadRequest,
    /// Wait until no other command runs in the workspace.
    WaitForTurn,
    /// Create the private directories of the command.
    CreatePrivateDirs,
    /// Find the protected paths of the workspace.
    FindProtectedPaths,
    /// Copy settings without their secrets.
    CopySettings,
    /// Mount the private view of the workspace.
    MountView,
    /// Open the socket at which the proxy receives connections.
    OpenProxy,
    /// Record the protected paths, for the case that all processes are killed.
    RecordProtectedPaths,
    /// Describe the sandbox to the program that creates it.
    PlanSandbox,
    /// Create the namespaces of the command.
    EnterNamespaces,
    /// Mount the file system that the command sees.
    MountRoot,
    /// Start the process that becomes the command.
    StartSandbox,
    /// Set the resource limits of the command.
    SetLimits,
    /// Give up privileges.
    DropPrivileges,
    /// Arrange that the command ends with its supervisor.
    FollowSupervisor,
    /// Apply the Landlock rules.
    ApplyLandlock,
    /// Apply the filter of system calls.
    ApplySeccomp,
    /// Report that all restrictions are active.
    ReportReadiness,
    /// Execute the command.
    Execute,
    /// Wait for the end of the command.
    WaitForCommand,
    /// Kill the remaining processes of the command.
    KillProcesses,
    /// Check the changes of the command for protected paths.
    CheckChanges,
    /// Collect the changes of the command.
    CollectChanges,
}

impl fmt::Display for ConfineStep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::CloseInheritedFiles => "close inherited files",
            Self::AdoptProcesses => "adopt orphaned processes",
            Self::FindProgram => "find the file of this program",
            Self::StartSupervisor => "start the supervisor",
            Self::ReplaceStreams => "replace the standard streams",
            Self::ReadRequest => "accept the request",
            Self::WaitForTurn => "wait for other commands in this workspace",
            Self::CreatePrivateDirs => "create the private directories of the command",
            Self::FindProtectedPaths => "find the protected paths of the workspace",
            Self::CopySettings => "copy configuration files without their secrets",
            Self::MountView => "mount the private view of the workspace",
            Self::OpenProxy => "open the socket of the proxy",
            Self::RecordProtectedPaths => "record the protected paths before running the command",
            Self::PlanSandbox => "plan the sandbox",
            Self::EnterNamespaces => "create the namespaces of the command",
            Self::MountRoot => "mount the file system of the command",
            Self::StartSandbox => "start the sandbox",
            Self::SetLimits => "set the resource limits of the command",
            Self::DropPrivileges => "give up privileges",
            Self::FollowSupervisor => "connect the command to its supervisor",
            Self::ApplyLandlock => "apply the Landlock rules",
            Self::ApplySeccomp => "apply the system call filter",
            Self::ReportReadiness => "report that the sandbox is ready",
            Self::Execute => "execute the command",
            Self::WaitForCommand => "wait for the command",
            Self::KillProcesses => "kill the remaining processes of the command",
            Self::CheckChanges => "check the changes of the command for protected paths",
            Self::CollectChanges => "collect the changes of the command",
        })
    }
}

/// An error in one step of running a command in a sandbox.
///
/// If the step comes before the start of the command, the command did not run.
#[derive(Debug, thiserror::Error)]
#[error("cannot {step}: {source}")]
#[non_exhaustive]
pub struct ConfineError {
    /// The step that failed.
    pub step: ConfineStep,
    source: Box<dyn Error + Send + Sync>,
}

impl ConfineError {
    pub(crate) fn new(step: ConfineStep, source: impl Error + Send + Sync + 'static) -> Self {
        Self { step, source: Box::new(source) }
    }

    /// Returns a function that wraps the error of a step, for `map_err`.
    pub(crate) fn at<E: Error + Send + Sync + 'static>(
        step: ConfineStep,
    ) -> impl FnOnce(E) -> Self {
        move |source| Self::new(step, source)
    }

    /// Returns the form for messages between processes.
    pub(crate) fn encode(&self) -> EncodedConfineError {
        EncodedConfineError { step: self.step, reason: self.source.to_string() }
    }
}

/// A [`ConfineError`] in a message between processes.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct EncodedConfineError {
    step: ConfineStep,
    /// The text of the source.
    reason: String,
}

impl EncodedConfineError {
    pub(crate) fn decode(self) -> ConfineError {
        ConfineError::new(self.step, ReportedReason(self.reason))
    }
}

/// The source of a [`ConfineError`] of another process.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
struct ReportedReason(String);

/// A reason other than a failed system call why a step fails.
#[derive(Debug, thiserror::Error)]
#[allow(dead_code, reason = "each operating system has reasons of its own")]
pub(crate) enum StepProblem {
    #[error("the command line is not the approved one")]
    LineNotApproved,
    #[error(
        "the workspace contains Cofferdam's own files, and this sandbox cannot hide them from \
            commands\nhint: choose a subdirectory as the workspace (`-C DIRECTORY`), or allow \
            user namespaces"
    )]
    ProgramFilesInWorkspace,
    #[error("the workspace is the whole file system\nhint: choose a project directory")]
    WholeFileSystem,
    #[error(
        "the protected files of the workspace need {mounts} mounts, and the limit is {limit}; \
            {count} of the files are in {}\nhint: move them elsewhere, exempt them (`shown` under \
            `[protected]` in a policy), or choose a smaller workspace (`-C DIRECTORY`)",
        escape_line(&.directory.display().to_string(), MAX_SHOWN_PATH_LEN)
    )]
    TooManyMounts {
        mounts: usize,
        limit: usize,
        /// The directory with the most protected files.
        directory: PathBuf,
        /// The number of protected files in that directory.
        count: usize,
    },
    #[error("{}: {source}", escape_line(&.path.display().to_string(), MAX_SHOWN_PATH_LEN))]
    Mount { path: PathBuf, source: io::Error },
    #[error("the level `none` has no sandbox")]
    NoSandboxAtLevel,
    #[error("a path of the workspace has characters that a Seatbelt profile cannot contain")]
    PathNotInProfile,
    #[error("the running program `{}` was replaced or removed\nhint: restart \
        Cofferdam", .0.display())]
    ProgramReplaced(PathBuf),
    #[error("{}: {source}", .program.display())]
    Spawn { program: PathBuf, source: io::Error },
    #[error("the process that creates the sandbox ended with {0}")]
    EndedEarly(ExitStatus),
    #[error("the kernel does not enforce all rules")]
    NotFullyEnforced,
}

/// The reason why processes of a command remain.
#[derive(Debug, thiserror::Error)]
#[allow(dead_code, reason = "some operating systems cannot find the processes")]
pub(crate) enum RemainingProcesses {
    #[error("cannot wait for the processes of the command: {0}")]
    Wait(#[source] io::Error),
    #[error("cannot kill {0} processes of the command")]
    Alive(usize),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_keeps_its_step_and_its_text_in_a_message() {
        let error = ConfineError::new(ConfineStep::SetLimits, io::Error::other("no"));
        assert_eq!(error.to_string(), "cannot set the resource limits of the command: no");
        let message = serde_json::to_string(&error.encode()).expect("it is encoded");
        let encoded: EncodedConfineError = serde_json::from_str(&message).expect("it is decoded");
        let decoded = encoded.decode();
        assert_eq!((decoded.step, decoded.to_string()), (error.step, error.to_string()));
        assert_eq!(decoded.source().map(ToString::to_string).as_deref(), Some("no"));
    }
}
