//! The sandbox of commands on Linux.
//!
//! There are two sandbox levels, both with Landlock and a system call filter. The level `full` adds
//! namespaces, which the supervisor creates itself, or bubblewrap where only that is allowed.

mod bubblewrap;
mod descendants;
mod landlock_rules;
mod mount_plan;
mod mount_watch;
mod namespaces;
mod pause;
mod seccomp;
mod syscalls;
mod view_support;

use std::fs;
use std::os::fd::{AsFd as _, AsRawFd as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Resource, pidfd_open, setsid};

use super::linux_process::{SELF_EXE, set_limit};
use crate::error::StepProblem;
use crate::protocol::NamespaceMaker;
use crate::{
    CommandPaths, ConfineError, ConfineStep, ConfinementSpec, PrerequisiteError, SandboxSpec,
    SandboxStart, SupervisorLink,
};
use cofferdam_policy::{CommandLimits, SandboxLevel};
use mount_plan::MountPlan;

pub(crate) use bubblewrap::find as find_bubblewrap;
pub(crate) use descendants::{
    adopt_orphans, count_descendants, end_processes_of, kill_descendants, terminate_descendants,
};
pub(crate) use mount_watch::MountWatch;
pub(crate) use namespaces::{
    DetachedOverlay, DirectMount, NamespaceStart, PreparedSandbox, WorkspaceOverlay,
    run_with_own_mounts,
};
pub(crate) use pause::PausedProcesses;
pub(crate) use view_support::check_private_view;

/// Resolves the result of [`current_program`](super::current_program) to a path in the file system.
///
/// # Errors
/// The program file was replaced or removed since the start.
fn resolve_program(program: &Path) -> Result<PathBuf, ConfineError> {
    if program != Path::new(SELF_EXE) {
        return Ok(program.to_owned());
    }
    let path = fs::read_link(SELF_EXE).map_err(ConfineError::at(ConfineStep::FindProgram))?;
    let identity =
        |path: &Path| fs::metadata(path).map(|metadata| (metadata.dev(), metadata.ino())).ok();
    match identity(&path) {
        Some(there) if Some(there) == identity(program) => Ok(path),
        Some(_) | None => {
            Err(ConfineError::new(ConfineStep::FindProgram, StepProblem::ProgramReplaced(path)))
        }
    }
}

/// Does nothing: only the self-test shows whether this system allows namespaces.
pub(crate) fn check_namespaces() -> Result<(), PrerequisiteError> {
    Ok(())
}

/// Checks that the kernel supports [`SandboxLevel::Kernel`].
pub(crate) fn check_kernel_support() -> Result<(), PrerequisiteError> {
    landlock_rules::supported_abi().map(drop).ok_or(PrerequisiteError::Landlock)
}

/// Lists the access that stays open at a level because this kernel is too old.
pub(crate) fn known_gaps(level: SandboxLevel) -> Vec<&'static str> {
    match level {
        SandboxLevel::Kernel if landlock_rules::supported_abi() != Some(landlock::ABI::V6) => {
            vec!["sending signals to other processes of yours (prevented by Linux 6.12 and newer)"]
        }
        // Without the network, the command has a network namespace of its own with no such sockets.
        SandboxLevel::Full if landlock_rules::supported_abi() != Some(landlock::ABI::V6) => {
            vec![
                "with network access, connecting to abstract sockets of other programs (prevented \
                    by Linux 6.12 and newer)",
            ]
        }
        SandboxLevel::Kernel | SandboxLevel::Full | SandboxLevel::None => Vec::new(),
    }
}

/// Plans the sandbox of a command, and returns the paths visible in it.
pub(crate) fn plan_sandbox(
    surroundings: &SandboxSpec<'_>,
    prepared: Option<PreparedSandbox>,
) -> Result<(SandboxStart, CommandPaths), ConfineError> {
    match (surroundings.level, surroundings.namespaces) {
        (SandboxLevel::Full, Some(NamespaceMaker::Supervisor)) => {
            let plan = MountPlan::new(surroundings)?;
            let paths = plan.paths.clone();
            let start = NamespaceStart {
                plan,
                prepared,
                directory: surroundings.directory.to_owned(),
                network: surroundings.network,
            };
            Ok((SandboxStart::InNamespaces(start), paths))
        }
        (SandboxLevel::Full, Some(NamespaceMaker::Bubblewrap(program))) => {
            let (command, paths) = bubblewrap::sandbox_command(program, surroundings)?;
            Ok((SandboxStart::Program(command), paths))
        }
        (SandboxLevel::Kernel, _) => {
            let mut places = surroundings.paths.clone();
            places.read.push("/proc".into());
            places.write.push(surroundings.temporary.to_owned());
            places.workspace_list(surroundings).push(surroundings.workspace.to_owned());
            Ok((SandboxStart::InDirectory(surroundings.directory.to_owned()), places))
        }
        (SandboxLevel::Full, None) | (SandboxLevel::None, _) => {
            Err(ConfineError::new(ConfineStep::PlanSandbox, StepProblem::NoSandboxAtLevel))
        }
    }
}

/// Returns how many generations of a command's processes belong to the sandbox itself.
pub(crate) fn sandbox_process_depth(namespaces: Option<&NamespaceMaker>) -> usize {
    match namespaces {
        Some(NamespaceMaker::Supervisor) => 1,
        // bubblewrap, and its first process in the namespace.
        Some(NamespaceMaker::Bubblewrap(_)) => 2,
        None => 0,
    }
}

/// Applies all restrictions to this single-threaded process and its descendants.
pub(crate) fn confine_this_process(
    confinement: &ConfinementSpec,
    link: &SupervisorLink,
) -> Result<(), ConfineError> {
    close_inherited_files(Some(link))
        .map_err(ConfineError::at(ConfineStep::CloseInheritedFiles))?;
    // A new session has no terminal to which the command could send input. The call fails for a
    // session leader, which has a session of its own already.
    let _ = setsid();
    let _ = rustix::process::setpriority_process(None, 0);
    limit_command(&confinement.limits).map_err(ConfineError::at(ConfineStep::SetLimits))?;
    drop_privileges()?;
    // This comes after dropping capabilities, which could clear the signal. If the supervisor is
    // gone by now, it never receives the readiness message.
    rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::KILL))
        .map_err(ConfineError::at(ConfineStep::FollowSupervisor))?;
    landlock_rules::apply(&confinement.paths, confinement.sockets)?;
    seccomp::apply(confinement.sockets).map_err(ConfineError::at(ConfineStep::ApplySeccomp))
}

/// Gives up all capabilities of this process, and the way to get new ones.
fn drop_privileges() -> Result<(), ConfineError> {
    let none = rustix::thread::CapabilitySet::empty();
    let none =
        rustix::thread::CapabilitySets { effective: none, permitted: none, inheritable: none };
    rustix::thread::set_no_new_privs(true)
        .and_then(|()| rustix::thread::set_capabilities(None, none))
        .map_err(ConfineError::at(ConfineStep::DropPrivileges))
}

/// Closes all file descriptors that the parent process left open, except standard streams and the
/// link.
pub(crate) fn close_inherited_files(link: Option<&SupervisorLink>) -> std::io::Result<()> {
    let keep = link.map(|link| link.as_fd().as_raw_fd().cast_unsigned());
    // A listing of `/proc/self/fd` would take about twenty system calls.
    match keep {
        Some(keep) if keep > 2 => {
            if keep > 3 {
                close_range(3, keep - 1)?;
            }
            close_range(keep.saturating_add(1), u32::MAX)
        }
        Some(_) | None => close_range(3, u32::MAX),
    }
}

/// Closes all file descriptors from `first` to `last`.
fn close_range(first: u32, last: u32) -> std::io::Result<()> {
    #[expect(unsafe_code, reason = "no package has a safe function for this system call")]
    // SAFETY: the call gets no pointer. The callers have just started, and use none of the
    // descriptors that their parents left open.
    let result = unsafe { libc::syscall(libc::SYS_close_range, first, last, 0) };
    if result == 0 { Ok(()) } else { Err(std::io::Error::last_os_error()) }
}

fn limit_command(limits: &CommandLimits) -> std::io::Result<()> {
    // The limit counts all processes of the user, so the number of existing processes is added.
    let there = fs::read_to_string("/proc/loadavg")
        .ok()
        .and_then(|text| {
            text.split_ascii_whitespace().nth(3)?.split('/').nth(1)?.parse::<u64>().ok()
        })
        .unwrap_or_default();
    set_limit(Resource::Nproc, limits.processes.saturating_add(there))?;
    set_limit(Resource::Nofile, limits.descriptors)?;
    set_limit(Resource::Fsize, limits.file_size)?;
    set_limit(Resource::Core, 0)?;
    limits.memory.map_or(Ok(()), |memory| set_limit(Resource::Data, memory))
}

/// Waits until the child ends, the other end of the link closes, or the time is over.
pub(crate) fn wait_for_child_or_link(
    child: Pid,
    link: &SupervisorLink,
    at_most: Duration,
) -> std::io::Result<()> {
    let ended = pidfd_open(child, PidfdFlags::empty())?;
    let timeout = Timespec { tv_sec: 0, tv_nsec: i64::from(at_most.subsec_nanos()) };
    let mut both =
        [PollFd::new(&ended, PollFlags::IN), PollFd::from_borrowed_fd(link.as_fd(), PollFlags::IN)];
    match poll(&mut both, Some(&timeout)) {
        Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
        Err(error) => Err(error.into()),
    }
}
