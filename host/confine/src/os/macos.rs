//! The sandbox of commands on macOS.
//!
//! - There is one level, `kernel`, with a Seatbelt profile through `sandbox-exec`. The profile
//!   contains the protected paths.
//! - Processes that leave the command's group are found by their parents and killed as far as that
//!   chain can be followed. macOS has no way to adopt orphans.

use std::os::fd::AsFd as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, Resource, Signal, getpid, kill_process_group, setsid};

use super::other_process::set_limit;
use super::seatbelt::SeatbeltProfile;
pub(crate) use super::without_namespaces::{
    DetachedOverlay, DirectMount, MountWatch, NamespaceStart, PausedProcesses, PreparedSandbox,
    WorkspaceOverlay, check_private_view, run_with_own_mounts,
};
use crate::error::{RemainingProcesses, StepProblem};
use crate::protocol::NamespaceMaker;
use crate::{
    CommandPaths, ConfineError, ConfineStep, ConfinementSpec, PrerequisiteError, SandboxSpec,
    SandboxStart, SupervisorLink,
};
use cofferdam_policy::SandboxLevel;

const SANDBOX_EXEC: &str = "/usr/bin/sandbox-exec";

pub(crate) fn find_bubblewrap() -> Result<PathBuf, PrerequisiteError> {
    Err(PrerequisiteError::Namespaces)
}

pub(crate) fn check_namespaces() -> Result<(), PrerequisiteError> {
    Err(PrerequisiteError::Namespaces)
}

pub(crate) fn check_kernel_support() -> Result<(), PrerequisiteError> {
    if Path::new(SANDBOX_EXEC).exists() {
        Ok(())
    } else {
        Err(PrerequisiteError::SandboxExec(SANDBOX_EXEC.into()))
    }
}

pub(crate) fn known_gaps(level: SandboxLevel) -> Vec<&'static str> {
    match level {
        SandboxLevel::Kernel => vec!["processes that a command leaves behind on purpose"],
        SandboxLevel::Full | SandboxLevel::None => Vec::new(),
    }
}

pub(crate) fn sandbox_process_depth(_: Option<&NamespaceMaker>) -> usize {
    0
}

pub(crate) fn plan_sandbox(
    around: &SandboxSpec<'_>,
    _: Option<PreparedSandbox>,
) -> Result<(SandboxStart, CommandPaths), ConfineError> {
    let mut read = around.paths.read.clone();
    read.extend(
        [
            "/System",
            "/Library",
            "/private/etc",
            "/private/var/select",
            "/Applications/Xcode.app",
            "/opt/homebrew",
        ]
        .map(PathBuf::from),
    );
    let protected: Vec<_> =
        around.protected.iter().map(|(path, how, _)| (path.clone(), *how)).collect();
    let profile = SeatbeltProfile {
        workspace: around.workspace,
        writes_workspace: around.writes_workspace,
        temporary: around.temporary,
        program: around.program,
        read: &read,
        write: &around.paths.write,
        network: around.network == NetworkAccess::Host,
        protected: &protected,
        rules: around.rules,
    };
    let text = profile.text().ok_or_else(|| {
        ConfineError::new(ConfineStep::PlanSandbox, StepProblem::PathNotInProfile)
    })?;
    let mut command = Command::new(SANDBOX_EXEC);
    command.arg("-p").arg(text).arg(around.program).current_dir(around.directory);
    Ok((SandboxStart::Program(command), around.paths.clone()))
}

/// Applies limits and a new session. The Seatbelt profile is active already.
pub(crate) fn confine_this_process(
    confinement: &ConfinementSpec,
    _: &SupervisorLink,
) -> Result<(), ConfineError> {
    let _ = setsid();
    let limits = &confinement.limits;
    let all = [
        (Resource::Nofile, limits.descriptors),
        (Resource::Fsize, limits.file_size),
        (Resource::Core, 0),
    ];
    for (resource, value) in all {
        set_limit(resource, value).map_err(ConfineError::at(ConfineStep::SetLimits))?;
    }
    Ok(())
}

/// Does nothing. This program opens its own files close-on-exec, and macOS has no safe call to
/// close all inherited descriptors.
pub(crate) fn close_inherited_files(_: Option<&SupervisorLink>) -> std::io::Result<()> {
    Ok(())
}

pub(crate) fn adopt_orphans() -> std::io::Result<()> {
    Ok(())
}

pub(crate) fn count_descendants() -> usize {
    descendants().len()
}

pub(crate) fn terminate_descendants(_: usize) {
    for pid in descendants() {
        let _ = rustix::process::kill_process(pid, Signal::TERM);
    }
}

/// Does nothing, because macOS does not reveal the environment of other processes.
pub(crate) fn end_processes_of(_: &std::path::Path) -> Result<(), RemainingProcesses> {
    Ok(())
}

pub(crate) fn kill_descendants() -> Result<(), RemainingProcesses> {
    let mut remaining = 0;
    for _ in 0..1000 {
        let all = descendants();
        remaining = all.len();
        if all.is_empty() {
            return Ok(());
        }
        for pid in all {
            let _ = kill_process_group(pid, Signal::KILL);
            let _ = rustix::process::kill_process(pid, Signal::KILL);
            let _ = rustix::process::waitpid(Some(pid), rustix::process::WaitOptions::NOHANG);
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    Err(RemainingProcesses::Alive(remaining))
}

/// Returns the descendants of this process, from the parents that `ps` reports.
fn descendants() -> Vec<Pid> {
    let Ok(ps) =
        Command::new("/bin/ps").args(["-axo", "pid=,ppid="]).stdout(Stdio::piped()).spawn()
    else {
        return Vec::new();
    };
    let itself = i32::try_from(ps.id()).ok();
    let Ok(output) = ps.wait_with_output() else { return Vec::new() };
    let text = String::from_utf8_lossy(&output.stdout);
    let pairs: Vec<(i32, i32)> = text
        .lines()
        .filter_map(|line| {
            let mut words = line.split_whitespace().map(str::parse);
            Some((words.next()?.ok()?, words.next()?.ok()?))
        })
        .filter(|(pid, _)| Some(*pid) != itself)
        .collect();
    let mut generation = vec![getpid().as_raw_nonzero().get()];
    let mut found = Vec::new();
    while !generation.is_empty() {
        generation = pairs
            .iter()
            .filter(|(_, parent)| generation.contains(parent))
            .map(|(pid, _)| *pid)
            .collect();
        found.extend(generation.iter().filter_map(|pid| Pid::from_raw(*pid)));
    }
    found
}

/// Waits until the child ends, the link closes, or the time is over. Polls often, because macOS has
/// no descriptor for the end of a child.
pub(crate) fn wait_for_child_or_link(
    _: Pid,
    link: &SupervisorLink,
    at_most: Duration,
) -> std::io::Result<()> {
    let nanos = at_most.min(Duration::from_millis(5)).subsec_nanos();
    let timeout = Timespec { tv_sec: 0, tv_nsec: i64::from(nanos) };
    match poll(&mut [PollFd::from_borrowed_fd(link.as_fd(), PollFlags::IN)], Some(&timeout)) {
        Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
        Err(error) => Err(error.into()),
    }
}
