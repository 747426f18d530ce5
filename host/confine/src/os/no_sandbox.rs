//! In place of the sandbox of commands, if the operating system has none that is supported, or if
//! the feature `commands` is disabled.

use std::path::PathBuf;
use std::process::ExitStatus;
use std::time::Duration;

use rustix::process::Pid;

pub(crate) use super::without_namespaces::{
    DetachedOverlay, DirectMount, MountWatch, NamespaceStart, PausedProcesses, PreparedSandbox,
    WorkspaceOverlay, check_private_view, run_with_own_mounts,
};
use crate::error::RemainingProcesses;
use crate::protocol::NamespaceMaker;
use crate::{
    CommandPaths, ConfineError, ConfineStep, ConfinementSpec, PrerequisiteError, SandboxSpec,
    SandboxStart, SupervisorLink,
};
use cofferdam_policy::SandboxLevel;

/// Returns the reason why there is no sandbox.
fn missing() -> PrerequisiteError {
    if super::RUNS_COMMANDS {
        PrerequisiteError::OperatingSystem
    } else {
        PrerequisiteError::NotBuilt
    }
}

pub(crate) fn find_bubblewrap() -> Result<PathBuf, PrerequisiteError> {
    Err(missing())
}

pub(crate) fn check_namespaces() -> Result<(), PrerequisiteError> {
    Err(missing())
}

pub(crate) fn check_kernel_support() -> Result<(), PrerequisiteError> {
    Err(missing())
}

pub(crate) fn known_gaps(_: SandboxLevel) -> Vec<&'static str> {
    Vec::new()
}

pub(crate) fn sandbox_process_depth(_: Option<&NamespaceMaker>) -> usize {
    0
}

pub(crate) fn plan_sandbox(
    _: &SandboxSpec<'_>,
    _: Option<PreparedSandbox>,
) -> Result<(SandboxStart, CommandPaths), ConfineError> {
    Err(ConfineError::new(ConfineStep::PlanSandbox, missing()))
}

pub(crate) fn confine_this_process(
    _: &ConfinementSpec,
    _: &SupervisorLink,
) -> Result<(), ConfineError> {
    Err(ConfineError::new(ConfineStep::PlanSandbox, missing()))
}

pub(crate) fn close_inherited_files(_: Option<&SupervisorLink>) -> std::io::Result<()> {
    Ok(())
}

pub(crate) fn adopt_orphans() -> std::io::Result<()> {
    Ok(())
}

pub(crate) fn count_descendants() -> usize {
    0
}

pub(crate) fn terminate_descendants(_: usize) {}

/// Does nothing, because these systems do not reveal the environment of other processes.
pub(crate) fn end_processes_of(_: &std::path::Path) -> Result<(), RemainingProcesses> {
    Ok(())
}

pub(crate) fn kill_descendants() -> Result<(), RemainingProcesses> {
    Ok(())
}

pub(crate) fn wait_for_child_or_link(
    _: Pid,
    _: &SupervisorLink,
    at_most: Duration,
) -> std::io::Result<()> {
    std::thread::sleep(at_most);
    Ok(())
}

/// A child process that runs a function of this program, which this system does not need.
#[derive(Debug)]
pub(crate) enum ForkedProcess {}

impl ForkedProcess {
    pub(crate) fn start(_: impl FnOnce() -> i32) -> std::io::Result<Self> {
        Err(std::io::ErrorKind::Unsupported.into())
    }

    pub(crate) fn pid(&self) -> Pid {
        match *self {}
    }

    pub(crate) fn try_wait(&mut self) -> std::io::Result<Option<ExitStatus>> {
        match *self {}
    }

    pub(crate) fn wait(&mut self) -> std::io::Result<ExitStatus> {
        match *self {}
    }
}
