//! The enclosure in which tools run: the only room that knows wasmtime.
//!
//! A [`LoadedPlugin`] is a component that was read, measured, compiled (or found compiled in the
//! cache) and asked what tools it has. [`LoadedPlugin::call`] runs one call: a fresh store and
//! instance with the grants of that one tool, dropped after any outcome. Nothing outlives a call.
//!
//! What a guest can reach:
//!
//! | import | with | without |
//! |---|---|---|
//! | `wasi:filesystem` | one preopen `/`: what is read is there, what is written is written aside (see `files` and `stage`) | no preopen |
//! | `wasi:cli` | captured output, 64 KiB a call; no arguments, environment or input | the same |
//! | `wasi:sockets` | – | every operation refused |
//! | `wasi:http` | requests to granted hosts, each decided through the [`Gate`] | refused with a denial |
//! | `workspace` | walks below the workspace | refused with a denial |
//! | `commands` | each line decided through the [`Gate`], run in the sandbox of the operating system ([`CommandSandbox`]) | refused with a denial |
//! | `plans` | each plan shown through the [`PlanApprovalGate`] | refused with a denial |
//! | `agents` | tasks handed to a [`DelegateTask`], at most four | refused with a denial |
//! | `state` | the tool's own [`ToolState`] of this session | refused with a denial |
//! | `progress` | always | – |

mod agents;
mod bindings;
mod cache;
mod cache_key;
mod call;
mod call_state;
mod capture;
mod clock;
mod commands;
mod compile;
mod confine;
mod declaration;
mod digest;
mod engine;
mod exit_code;
mod failure;
mod file_version;
mod files;
mod gate;
mod git;
mod http;
mod limits;
mod links;
mod listed_files;
mod load;
mod os;
mod output;
mod plans;
mod process;
mod progress;
mod rooted_fs;
mod schema;
mod stage;
mod tool_state;
mod unsuitable;
mod walk;
mod workspace;

pub use self::http::{CredentialError, HostCredential, HttpContact, HttpContacts, special_address};
pub use cache::{ArtifactCache, CacheError};
pub use cache_key::{CacheKey, CacheKeyError};
pub use call::{CallReport, PluginCall};
pub use commands::RanCommand;
pub use compile::{CompilerKind, MAX_COMPONENT_SIZE, compile_from_stdin};
pub use confine::{
    CommandSandbox, MeasuredLevel, exec_confined_command, guard_supervisor, outer_repository,
    supervise_command,
};
pub use declaration::{ComponentImports, DeclaredTool, HostInterface, PluginDeclaration};
pub use digest::ComponentDigest;
pub use engine::{InstanceAllocation, SandboxError, SandboxOptions, WasmSandbox};
pub use failure::CallFailure;
pub use file_version::FileVersion;
pub use files::TouchedPaths;
pub use gate::{DelegateTask, DelegationOutcome, Gate, GateRuling, PlanApprovalGate, ProgressSink};
pub use limits::CallLimits;
pub use listed_files::{ListedChange, ListedFile, ListedFiles};
pub use load::{ComponentBytes, LoadError, LoadedPlugin};
pub use output::{CallOutput, OutputPiece, UserOutputView};
pub use process::CommandEnding;
pub(crate) use schema::{SchemaCost, check as check_schema};
pub use stage::{
    AppliedChange, CommitError, HistoryError, Staged, UndoHistory, UndoHistoryEntry, UndoOutcome,
};
pub use tool_state::{StateChange, ToolState, ToolStateStore};
pub use workspace::{Workspace, WorkspaceError};

/// What starts this program anew, as it is now, whatever becomes of its path meanwhile.
pub fn current_program() -> std::io::Result<std::path::PathBuf> {
    os::current_program()
}
