//! Other systems. The compiling process: time of the processor is enforced by the kernel. Commands: there is no sandbox, so
//! that they are refused unless the user asked for none.

use std::path::PathBuf;
use std::process::{Child, Command};
use std::time::Duration;

use rustix::process::{Resource, Rlimit, setrlimit};

use super::super::confine::{Confinement, Link, Places, Surroundings};
use crate::policy::SandboxLevel;

const NONE: &str = "there is no sandbox for this operating system yet";

pub(in crate::sandbox) fn limit_compiler(time: Duration, _memory: u64) -> std::io::Result<()> {
    let seconds = Some(time.as_secs());
    setrlimit(Resource::Cpu, Rlimit { current: seconds, maximum: seconds })?;
    Ok(())
}

pub(in crate::sandbox) fn hide_from_own_user() {}

/// By its path: this system has no other name for it, so whoever can write there can replace it.
pub(in crate::sandbox) fn this_program() -> std::io::Result<PathBuf> {
    std::env::current_exe()
}

pub(in crate::sandbox) fn find_bubblewrap() -> Result<PathBuf, String> {
    Err(NONE.to_owned())
}

pub(in crate::sandbox) fn lacks_for_kernel() -> Option<String> {
    Some(NONE.to_owned())
}

pub(in crate::sandbox) fn open_here(_: SandboxLevel) -> Vec<&'static str> {
    Vec::new()
}

pub(in crate::sandbox) fn own_generations(_: SandboxLevel) -> usize {
    0
}

pub(in crate::sandbox) fn enclose(_: &Surroundings<'_>) -> Result<(Command, Places), String> {
    Err(NONE.to_owned())
}

pub(in crate::sandbox) fn confine_this_process(_: &Confinement, _: &Link) -> Result<(), String> {
    Err(NONE.to_owned())
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

pub(in crate::sandbox) fn ask_descendants_to_end(_: usize) {}

/// Whose they were, this system does not tell.
pub(in crate::sandbox) fn end_processes_of(_: &std::path::Path) -> Result<(), String> {
    Ok(())
}

pub(in crate::sandbox) fn end_descendants() -> Result<(), String> {
    Ok(())
}

pub(in crate::sandbox) fn wait_for_either(_: &Child, _: &Link, at_most: Duration) -> std::io::Result<()> {
    std::thread::sleep(at_most);
    Ok(())
}
