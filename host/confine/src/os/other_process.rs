//! Processes of this program on systems other than Linux.
//!
//! The kernel enforces the limit on the processor time of a compiler process, but no limit on its
//! memory: on macOS, `RLIMIT_AS` is only advisory.

use std::path::PathBuf;
use std::time::Duration;

use rustix::net::RecvFlags;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

pub(crate) fn limit_compiler(time: Duration, _memory: u64) -> std::io::Result<()> {
    set_limit(Resource::Cpu, time.as_secs())
}

pub(crate) fn protect_process_memory() {}

/// Returns the path of this program. These systems offer no other reference, so a user who can
/// write there can replace it.
pub(crate) fn current_program() -> std::io::Result<PathBuf> {
    std::env::current_exe()
}

pub(super) fn set_limit(resource: Resource, value: u64) -> std::io::Result<()> {
    // A lower existing limit stays in force.
    let most = getrlimit(resource).maximum.map_or(value, |most| most.min(value));
    Ok(setrlimit(resource, Rlimit { current: Some(most), maximum: Some(most) })?)
}

/// The flags for receiving descriptors, which commands must not inherit. Supervisors close all
/// descriptors that they inherit in any case.
pub(crate) const RECEIVE_FLAGS: RecvFlags = RecvFlags::empty();
