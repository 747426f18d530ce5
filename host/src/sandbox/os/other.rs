//! Other systems. The compiling process: time of the processor is enforced by the kernel. Commands:
//! there is no sandbox, so that they are refused unless the user asked for none.

use std::path::PathBuf;
use std::process::{Child, Command};
use std::time::Duration;

use rustix::process::{Resource, Rlimit, setrlimit};

use super::super::confine::{Confinement, Link, Places, Surroundings};
use crate::policy::SandboxLevel;

const NO_SANDBOX: &str = "there is no sandbox for this operating system yet";

pub(in crate::sandbox) fn limit_compiler(time: Duration, _memory: u64) -> std::io::Result<()> {
    let seconds = Some(time.as_secs());
    setrlimit(Resource::Cpu, Rlimit { current: seconds, maximum: seconds })?;
    Ok(())
}

pub(in crate::sandbox) fn protect_process_memory() {}

/// By its path: this system has no other name for it, so whoever can write there can replace it.
pub(in crate::sandbox) fn current_program() -> std::io::Result<PathBuf> {
    std::env::current_exe()
}

pub(in crate::sandbox) fn find_bubblewrap() -> Result<PathBuf, String> {
    Err(NO_SANDBOX.to_owned())
}

pub(in crate::sandbox) fn missing_kernel_support() -> Option<String> {
    Some(NO_SANDBOX.to_owned())
}

pub(in crate::sandbox) fn known_gaps(_: SandboxLevel) -> Vec<&'static str> {
    Vec::new()
}

pub(in crate::sandbox) fn sandbox_process_depth(_: SandboxLevel) -> usize {
    0
}

pub(in crate::sandbox) fn sandbox_command(
    _: &Surroundings<'_>,
) -> Result<(Command, Places), String> {
    Err(NO_SANDBOX.to_owned())
}

pub(in crate::sandbox) fn confine_this_process(_: &Confinement, _: &Link) -> Result<(), String> {
    Err(NO_SANDBOX.to_owned())
}

pub(in crate::sandbox) fn close_inherited_files(_: Option<&Link>) -> std::io::Result<()> {
    Ok(())
}

pub(in crate::sandbox) fn adopt_orphans() -> std::io::Result<()> {
    Ok(())
}

pub(in crate::sandbox) fn count_descendants() -> usize {
    0
}

pub(in crate::sandbox) fn terminate_descendants(_: usize) {}

/// Whose they were, this system does not tell.
pub(in crate::sandbox) fn end_processes_of(_: &std::path::Path) -> Result<(), String> {
    Ok(())
}

pub(in crate::sandbox) fn kill_descendants() -> Result<(), String> {
    Ok(())
}

pub(in crate::sandbox) fn wait_for_child_or_link(
    _: &Child,
    _: &Link,
    at_most: Duration,
) -> std::io::Result<()> {
    std::thread::sleep(at_most);
    Ok(())
}
