//! The WebAssembly sandbox in which tools run: the only module that depends on Wasmtime.
//!
//! A [`LoadedPlugin`] is a component that was read, compiled (or found in the cache) and asked for
//! its tools. [`LoadedPlugin::call`] runs one call: a fresh store and instance with the permissions
//! of that one tool, dropped after any outcome. Nothing outlives a call.
//!
//! A guest can use these imports:
//!
//! - `wasi:filesystem`: one preopen `/`. Reads see the workspace; writes are staged (see `files`
//!   and `stage`). Without the permission there is no preopen.
//! - `wasi:cli`: captured output, 64 KiB per call. No arguments, environment or input.
//! - `wasi:sockets`: every operation is refused.
//! - `wasi:http`: requests to permitted hosts. The [`Gate`] decides on each.
//! - `workspace`: walks below the workspace.
//! - `commands`: command lines. The [`Gate`] decides on each, and each runs in the sandbox of the
//!   operating system ([`CommandSandbox`]).
//! - `jobs`: background commands, which end with the session ([`JobTable`]).
//! - `plans`: plans, each shown through the [`PlanApprovalGate`].
//! - `agents`: at most four tasks per call, run by a [`DelegateTask`].
//! - `state`: the tool's own [`ToolState`] of this session.
//! - `progress`: always available.
//!
//! From `wasi:http` to `state`, a tool without the permission gets a denial.

mod agents;
mod cache;
mod cache_key;
mod call;
mod call_state;
mod capture;
mod clock;
mod command_changes;
mod commands;
mod compile;
mod contract;
mod declaration;
mod egress;
mod engine;
mod failure;
mod file_version;
mod files;
mod gate;
mod http;
mod jobs;
mod limits;
mod listed_files;
mod load;
mod media_type;
mod output;
mod plans;
mod progress;
mod rooted_fs;
mod schema;
mod server_http;
mod server_process;
mod stage;
#[cfg(test)]
pub(crate) mod test_environment;
mod tool_state;
mod unsuitable;
mod walk;
mod workspace;

pub use self::http::{CredentialError, HostCredential, HttpContact, HttpContacts, special_address};
pub use crate::policy::ComponentDigest;
pub use cache::{ArtifactCache, CacheError};
pub use cache_key::{CacheKey, CacheKeyError};
pub use call::{CallReport, PluginCall};
pub use cofferdam_confine::CommandEnding;
pub use cofferdam_confine::view::LayerEntryKind;
pub use cofferdam_confine::{
    CommandSandbox, HostEnvironment, MeasuredLevel, ServerPermissions, outer_repository,
};
pub(crate) use cofferdam_confine::{current_program, exec_confined_command, supervise_command};
pub use command_changes::{CommandChange, CommandChangeAction};
pub use commands::RanCommand;
pub use compile::CompilerKind;
pub(crate) use compile::{MAX_COMPONENT_SIZE, compile_from_stdin};
pub(crate) use declaration::ToolTexts;
pub use declaration::{ComponentImports, DeclaredTool, HostInterface, PluginDeclaration};
pub use egress::CommandConnection;
pub use engine::{InstanceAllocation, SandboxError, SandboxOptions, WasmSandbox};
pub use failure::CallFailure;
pub use file_version::FileVersion;
pub use files::TouchedPaths;
pub use gate::{
    CommandChangeJudge, ConnectionDecision, ConnectionJudge, DelegateTask, DelegationOutcome,
    DenialRecorder, Gate, GateRuling, ModeSource, PlanApprovalGate, ProgressSink,
};
pub use jobs::{Job, JobId, JobRecorder, JobStage, JobStatus, JobTable, NewOutput};
pub use limits::CallLimits;
pub use listed_files::{ListedChange, ListedFile, ListedFiles};
pub use load::{ComponentBytes, LoadError, LoadedPlugin};
pub use output::{CallOutput, OutputPiece, SourceContent, SourceOutput, UserOutputView};
pub(crate) use schema::{SchemaCost, check as check_schema};
pub(crate) use server_http::HostPermitSource;
pub use server_http::{
    HttpReach, OriginBody, OriginClient, OriginError, OriginRequest, OriginResponse, ReachError,
};
pub use server_process::{ServerAccess, ServerPipes, ServerProcess, ServerSpec, ServerStartError};
pub(crate) use server_process::{ServerAccessParts, ServerConnectionJudge, ServerPermitSource};
pub use stage::{
    AppliedChange, CommitError, DiffScope, HistoryDiff, HistoryError, Staged, UndoHistory,
    UndoHistoryEntry, UndoOutcome, may_be_repository_part,
};
pub use tool_state::{StateChange, ToolState, ToolStateStore};
pub use walk::ReadableFile;
pub use workspace::{Workspace, WorkspaceError};
