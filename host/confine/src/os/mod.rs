//! Support for each operating system: `*_process` for processes of this program, and one module for
//! the sandbox of commands. Each states what it enforces.

#[cfg(target_os = "linux")]
mod linux_process;
#[cfg(target_os = "linux")]
use linux_process as own_process;
#[cfg(not(target_os = "linux"))]
mod other_process;
#[cfg(not(target_os = "linux"))]
use other_process as own_process;

#[cfg(all(feature = "commands", any(target_os = "linux", target_os = "macos")))]
mod forked_process;
#[cfg(all(feature = "commands", any(target_os = "linux", target_os = "macos")))]
pub(crate) use forked_process::ForkedProcess;

#[cfg(all(feature = "commands", target_os = "linux"))]
mod linux;
#[cfg(all(feature = "commands", target_os = "linux"))]
use linux as command_sandbox;

// The profile is plain text, and tests check it on every system.
#[cfg(any(all(feature = "commands", target_os = "macos"), test))]
mod seatbelt;

#[cfg(not(all(feature = "commands", target_os = "linux")))]
mod without_namespaces;

#[cfg(all(feature = "commands", target_os = "macos"))]
mod macos;
#[cfg(all(feature = "commands", target_os = "macos"))]
use macos as command_sandbox;

#[cfg(not(all(feature = "commands", any(target_os = "linux", target_os = "macos"))))]
mod no_sandbox;
#[cfg(not(all(feature = "commands", any(target_os = "linux", target_os = "macos"))))]
use no_sandbox as command_sandbox;
#[cfg(not(all(feature = "commands", any(target_os = "linux", target_os = "macos"))))]
pub(crate) use no_sandbox::ForkedProcess;

pub(super) use command_sandbox::{
    DetachedOverlay, DirectMount, MountWatch, NamespaceStart, PausedProcesses, PreparedSandbox,
    WorkspaceOverlay, adopt_orphans, check_kernel_support, check_namespaces, check_private_view,
    close_inherited_files, confine_this_process, count_descendants, end_processes_of,
    find_bubblewrap, kill_descendants, known_gaps, plan_sandbox, run_with_own_mounts,
    sandbox_process_depth, terminate_descendants, wait_for_child_or_link,
};
pub(super) use own_process::{
    RECEIVE_FLAGS, current_program, limit_compiler, protect_process_memory,
};

/// Whether this program can run commands.
pub(super) const RUNS_COMMANDS: bool = cfg!(feature = "commands");
