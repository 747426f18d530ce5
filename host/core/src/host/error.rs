//! The errors of a host.

use std::path::PathBuf;

use crate::audit::AuditError;
use crate::policy::{ApprovalMode, SourceLocation};
use crate::sandbox::{CacheError, SandboxError, WorkspaceError};

/// An error that keeps a host, a call or a request from starting.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum HostError {
    /// The workspace cannot be opened.
    #[error(transparent)]
    Workspace(#[from] WorkspaceError),
    /// The workspace is, or lies in, a directory of this program.
    #[error(
        "cannot use {} as the workspace: cofferdam stores its own files in {}, which tools must \
            not change\nhint: choose a project directory with `-C DIR`",
        workspace.display(), own.display()
    )]
    OwnDirectory {
        /// The workspace.
        workspace: PathBuf,
        /// The directory of this program.
        own: PathBuf,
    },
    /// The workspace contains files that other programs run or obey.
    #[error(
        "cannot use {} as the workspace: other programs run or use the files in {}, so tools must \
            not change them\nhint: choose a project directory with `-C DIR`",
        workspace.display(), protected.display()
    )]
    ProtectedDirectory {
        /// The workspace.
        workspace: PathBuf,
        /// The directory with these files.
        protected: PathBuf,
    },
    /// The WebAssembly engine cannot be created.
    #[error(transparent)]
    Sandbox(#[from] SandboxError),
    /// Other users could have written to the cache of compiled components.
    #[error(transparent)]
    Cache(#[from] CacheError),
    /// The policy does not allow the approval mode.
    #[error("{location}: mode `{mode}` is not allowed by this policy")]
    ModeDenied {
        /// The rule of the policy.
        location: SourceLocation,
        /// The mode.
        mode: ApprovalMode,
    },
    /// The policy does not allow the model or its address. The text names the rule and has a hint.
    #[error("{0}")]
    ModelDenied(String),
    /// A plugin that the builder names cannot be used.
    #[error("cannot load plugin {origin}: {reason}")]
    Plugin {
        /// The path of the plugin.
        origin: String,
        /// The reason, in one sentence.
        reason: String,
    },
    /// The path of this program is unknown.
    #[error("cannot find the program file for helper processes: {0}")]
    CurrentProgram(std::io::Error),
    /// A required audit log cannot be written.
    #[error(
        "cannot write the audit log, and `audit.required` is on: {0}\nhint: repair the log \
            directory, or set `audit.required = false`"
    )]
    Audit(#[from] AuditError),
    /// The audit log is required, and there is no directory for it.
    #[error(
        "cannot write the audit log, and `audit.required` is on: there is no state \
            directory\nhint: set a state directory, or set `audit.required = false`"
    )]
    NoAuditDirectory,
    /// The policy requires a record of each request, and there is none.
    #[error(
        "{location}: the policy requires a saved session for every request, and this one cannot be \
            saved: {problem}\nhint: free some disk space, or start a new session"
    )]
    SessionRequired {
        /// The rule of the policy.
        location: SourceLocation,
        /// The reason why there is no record.
        problem: String,
    },
    /// There is no call in the turn. This is a bug of this program.
    #[error("there is no tool call to run")]
    NoCall,
}
