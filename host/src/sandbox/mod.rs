//! The enclosure in which tools run: the only room that knows wasmtime.
//!
//! A [`Plugin`] is a component that was read, measured, compiled (or found compiled in the cache) and asked what
//! tools it has. [`Plugin::call`] runs one call: a fresh store and instance with the grants of that one tool, dropped
//! after any outcome. Nothing outlives a call.
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
//! | `commands` | each line decided through the [`Gate`], run in the sandbox of the operating system ([`Commands`]) | refused with a denial |
//! | `plans` | each plan shown through the [`PlanGate`] | refused with a denial |
//! | `agents` | tasks handed to a [`Delegation`], at most four | refused with a denial |
//! | `state` | the tool's own [`Notebook`] of this session | refused with a denial |
//! | `progress` | always | – |

mod agents;
mod below;
mod bindings;
mod cache;
mod cache_key;
mod call;
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
mod files;
mod gate;
mod git;
mod http;
mod limits;
mod links;
mod listed_files;
mod load;
mod notebook;
mod os;
mod output;
mod plans;
mod process;
mod progress;
mod schema;
mod stage;
mod state;
mod unsuitable;
mod version;
mod walk;
mod workspace;

pub use self::http::{BadCredential, Contact, Contacts, Credential, special_address};
pub use cache::{Cache, CacheProblem};
pub use cache_key::{CacheKey, CacheKeyError};
pub use call::{Call, CallReport};
pub use commands::RanCommand;
pub use compile::{Compiler, LARGEST_COMPONENT, compile_from_stdin};
pub use confine::{Commands, Measured, guard_supervisor, outer_repository, supervise_command, turn_into_command};
pub use declaration::{Declaration, DeclaredTool, Imports, Lent};
pub use digest::Digest;
pub use engine::{Allocation, Sandbox, SandboxError, SandboxOptions};
pub use failure::Failure;
pub use files::Touched;
pub use gate::{Delegated, Delegation, Gate, PlanGate, ProgressSink, Ruling};
pub use limits::Limits;
pub use listed_files::{ListedChange, ListedFile, ListedFiles};
pub use load::{ComponentBytes, LoadError, Plugin};
pub use notebook::{Note, Notebook, Notebooks};
pub use output::{Output, Piece, Shown};
pub use process::Ending as CommandEnding;
pub(crate) use schema::{SchemaCost, check as check_schema};
pub use stage::{CommitError, Entry, History, HistoryError, Made, Staged, Undone};
pub use version::Version;
pub use workspace::{Workspace, WorkspaceError};

/// What starts this program anew, as it is now, whatever becomes of its path meanwhile.
pub fn this_program() -> std::io::Result<std::path::PathBuf> {
    os::this_program()
}
