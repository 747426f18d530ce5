//! Processes of this program on Linux.
//!
//! - Compiler process: the kernel enforces limits on processor time and address space.
//! - Memory and environment of this process: closed to other processes of the same user, except for
//!   root.

use std::path::PathBuf;
use std::time::Duration;

use rustix::net::RecvFlags;
use rustix::process::{
    DumpableBehavior, Resource, Rlimit, getrlimit, set_dumpable_behavior, setrlimit,
};

/// The link to the program of the current process, which stays valid if the file is replaced.
pub(super) const SELF_EXE: &str = "/proc/self/exe";

/// Limits the processor time and the address space (bytes) of this process permanently.
pub(crate) fn limit_compiler(time: Duration, memory: u64) -> std::io::Result<()> {
    set_limit(Resource::Cpu, time.as_secs())?;
    set_limit(Resource::As, memory)?;
    Ok(())
}

/// Returns a path to this same program. The file at the original path may have been replaced since
/// the start.
pub(crate) fn current_program() -> std::io::Result<PathBuf> {
    Ok(PathBuf::from(SELF_EXE))
}

/// Closes `/proc/PID/environ` and `/proc/PID/mem` of this process to the commands that it starts,
/// because they contain keys.
pub(crate) fn protect_process_memory() {
    // This fails only for values that the kernel does not know.
    let _ = set_dumpable_behavior(DumpableBehavior::NotDumpable);
}

pub(super) fn set_limit(resource: Resource, value: u64) -> std::io::Result<()> {
    // A lower existing limit stays in force.
    let most = getrlimit(resource).maximum.map_or(value, |most| most.min(value));
    Ok(setrlimit(resource, Rlimit { current: Some(most), maximum: Some(most) })?)
}

/// The flags for receiving descriptors, which commands must not inherit. Supervisors close all
/// descriptors that they inherit in any case.
pub(crate) const RECEIVE_FLAGS: RecvFlags = RecvFlags::CMSG_CLOEXEC;
