//! Sandboxes of the operating system for approved commands.
//!
//! Up to five processes take part in one command:
//!
//! - The host is this program with many threads. It sends a `SupervisorRequest`, reads the output
//!   and receives the report.
//! - The guard is this program, restarted, with one thread. It exists if the command writes a part
//!   of the workspace directly, and waits for the supervisor. If the supervisor is killed, the
//!   guard kills the remaining processes of the command and restores protected paths.
//! - The supervisor is a child of the guard, or this program, restarted, with one thread. It
//!   creates the sandbox, kills all remaining processes of the command and restores protected
//!   paths. The host may start it before there is a command.
//! - The first process of the namespaces exists at the level `full` only. It is a child of the
//!   supervisor, or bubblewrap where only that may create namespaces. In the namespaces, nothing
//!   outside exists.
//! - The command is a child of the process before, and then `sh -c LINE`. It drops what it does not
//!   need, confines itself and executes the command.
//!
//! The [`SandboxLevel`](cofferdam_policy::SandboxLevel) of a machine is the level that passed a
//! self-test, not the level that the system claims to support.

mod archive;
mod checkpoint;
mod command_dirs;
mod command_environment;
mod confined_command;
mod error;
mod exit_code;
pub mod git;
mod guard;
mod host_environment;
mod isolation;
mod journal;
mod level;
mod level_text;
mod link;
pub mod links;
mod modes;
mod new_repository;
mod os;
pub mod own_file;
mod path_resolver;
pub mod private_dir;
mod probe;
pub mod process;
mod protection_rounds;
mod protocol;
mod queue;
mod reachable_places;
mod reduce;
mod remove;
mod restore;
mod sandbox_process;
mod self_test;
mod set_aside;
mod settings;
mod snapshot;
mod supervisor;
mod supervisor_start;
mod unavailable;
pub mod view;
mod visible_paths;
mod worktree;

pub use confined_command::exec_confined_command;
pub use error::{ConfineError, ConfineStep};
pub use host_environment::HostEnvironment;
pub(crate) use level::{CommandLocation, SandboxSetup, SpawnPlan};
pub use level::{CommandSandbox, MeasuredLevel, ServerPermissions, outer_repository};
pub(crate) use link::SupervisorLink;
pub use process::CommandEnding;
pub(crate) use protocol::{CommandExitKind, CommandJob, CommandPaths, ConfinementSpec};
pub(crate) use sandbox_process::SandboxStart;
pub use settings::{IncludedSettings, MAX_SETTINGS_SIZE, SettingsFormat, SettingsRoots};
pub(crate) use supervisor::SandboxSpec;
pub use supervisor_start::supervise_command;
pub use unavailable::{BubblewrapUnavailable, LevelUnavailable, PrerequisiteError, SelfTestError};

/// Protects the memory of this process from other processes of the same user.
pub fn protect_process_memory() {
    os::protect_process_memory();
}

/// Limits the processor time and the memory (bytes) of a process that compiles an untrusted
/// component.
///
/// # Errors
/// The kernel rejects a limit.
pub fn limit_compiler(time: std::time::Duration, memory: u64) -> std::io::Result<()> {
    os::limit_compiler(time, memory)
}

/// Removes a directory of this user with everything in it, also directories without permissions and
/// of any depth.
///
/// # Errors
/// An entry cannot be removed.
pub fn remove_directory(path: &std::path::Path) -> std::io::Result<()> {
    let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
        return Err(std::io::ErrorKind::InvalidInput.into());
    };
    remove::remove_tree(&std::fs::File::open(parent)?, name, &mut || true)
}

/// Returns a path that starts this same program again.
///
/// On Linux the path stays valid even if the program file is replaced or removed.
pub fn current_program() -> std::io::Result<std::path::PathBuf> {
    os::current_program()
}
