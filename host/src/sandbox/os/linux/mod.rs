//! Linux. The compiling process: time of the processor and address space are both enforced by the
//! kernel. This process's memory and environment: closed to other processes of the same user,
//! unless that user is root. Commands: two levels, both with Landlock and a filter of system calls,
//! the fuller one in namespaces of its own that bubblewrap makes.

mod bubblewrap;
mod descendants;
mod landlock_rules;
mod seccomp;
mod syscalls;

use std::fs;
use std::os::fd::{AsFd as _, AsRawFd as _};
use std::os::unix::fs::MetadataExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{
    DumpableBehavior, Pid, PidfdFlags, Resource, Rlimit, getrlimit, pidfd_open,
    set_dumpable_behavior, setrlimit, setsid,
};

use super::super::confine::{CommandPaths, ConfinementSpec, SandboxSpec, SupervisorLink};
use crate::policy::{CommandLimits, SandboxLevel};

pub(in crate::sandbox) use bubblewrap::find as find_bubblewrap;
pub(in crate::sandbox) use descendants::{
    adopt_orphans, count_descendants, end_processes_of, kill_descendants, terminate_descendants,
};

/// To the kernel the program of whoever asks, whatever has become of its path.
const SELF_EXE: &str = "/proc/self/exe";

/// Bounds this process for good.
pub(in crate::sandbox) fn limit_compiler(time: Duration, memory: u64) -> std::io::Result<()> {
    set_limit(Resource::Cpu, time.as_secs())?;
    set_limit(Resource::As, memory)?;
    Ok(())
}

/// This very program, which nobody can replace: what stands at its path may be another one by the
/// time it is started anew.
pub(in crate::sandbox) fn current_program() -> std::io::Result<PathBuf> {
    Ok(PathBuf::from(SELF_EXE))
}

/// The path that this program, given as [`current_program`] gives it, still has, for those that
/// need one.
fn resolve_program(program: &Path) -> Result<PathBuf, String> {
    if program != Path::new(SELF_EXE) {
        return Ok(program.to_owned());
    }
    let path =
        fs::read_link(SELF_EXE).map_err(|error| format!("cannot find this program: {error}"))?;
    let identity =
        |path: &Path| fs::metadata(path).map(|metadata| (metadata.dev(), metadata.ino())).ok();
    match identity(&path) {
        Some(there) if Some(there) == identity(program) => Ok(path),
        Some(_) | None => Err(format!(
            "{} was replaced or removed since it was started; start it anew",
            path.display()
        )),
    }
}

/// Closes `/proc/PID/environ` and `/proc/PID/mem` of this process, where keys are, to the commands
/// that it starts.
pub(in crate::sandbox) fn protect_process_memory() {
    // It can only fail for a value that the kernel does not know.
    let _ = set_dumpable_behavior(DumpableBehavior::NotDumpable);
}

/// What this kernel lacks for [`SandboxLevel::Kernel`], in words for the user.
pub(in crate::sandbox) fn missing_kernel_support() -> Option<String> {
    landlock_rules::supported_abi().is_none().then(|| {
        "it needs Linux 6.7 or newer with Landlock switched on (`lsm=…,landlock`)".to_owned()
    })
}

/// What is open at a level on this machine although it should not be.
pub(in crate::sandbox) fn known_gaps(level: SandboxLevel) -> Vec<&'static str> {
    match level {
        SandboxLevel::Kernel if landlock_rules::supported_abi() != Some(landlock::ABI::V6) => {
            vec!["signals to other processes of yours (Linux 6.12 closes them)"]
        }
        // In a network of its own there are none.
        SandboxLevel::Full if landlock_rules::supported_abi() != Some(landlock::ABI::V6) => {
            vec![
                "with the network, sockets of other programs that have an abstract name (Linux \
                    6.12 closes them)",
            ]
        }
        SandboxLevel::Kernel | SandboxLevel::Full | SandboxLevel::None => Vec::new(),
    }
}

/// What starts [`confine_this_process`] for a command, and what it sees when it does.
pub(in crate::sandbox) fn sandbox_command(
    surroundings: &SandboxSpec<'_>,
) -> Result<(Command, CommandPaths), String> {
    match surroundings.level {
        SandboxLevel::Full => bubblewrap::sandbox_command(surroundings),
        SandboxLevel::Kernel => {
            let mut command = Command::new(surroundings.program);
            command.arg0("cofferdam").current_dir(surroundings.directory);
            let mut places = surroundings.paths.clone();
            places.read.push("/proc".into());
            places
                .write
                .extend([surroundings.workspace.to_owned(), surroundings.temporary.to_owned()]);
            Ok((command, places))
        }
        SandboxLevel::None => {
            Err("there is nothing to enclose a command in at this level".to_owned())
        }
    }
}

/// How many generations of a command's processes are the sandbox's own.
pub(in crate::sandbox) fn sandbox_process_depth(level: SandboxLevel) -> usize {
    match level {
        // bubblewrap, and its process that is the first of the namespace.
        SandboxLevel::Full => 2,
        SandboxLevel::Kernel | SandboxLevel::None => 0,
    }
}

/// Everything that holds for this process, which is alone in its thread, and for all that comes of
/// it.
pub(in crate::sandbox) fn confine_this_process(
    confinement: &ConfinementSpec,
    link: &SupervisorLink,
) -> Result<(), String> {
    close_inherited_files(Some(link))
        .map_err(|error| format!("cannot close inherited files: {error}"))?;
    // Without a terminal there is none to type at. It fails for who leads a session already, which
    // is as good.
    let _ = setsid();
    let _ = rustix::process::setpriority_process(None, 0);
    limit_command(&confinement.limits).map_err(|error| format!("cannot set limits: {error}"))?;
    let none = rustix::thread::CapabilitySet::empty();
    let none =
        rustix::thread::CapabilitySets { effective: none, permitted: none, inheritable: none };
    rustix::thread::set_no_new_privs(true)
        .map_err(|error| format!("cannot give up new privileges: {error}"))?;
    rustix::thread::set_capabilities(None, none)
        .map_err(|error| format!("cannot give up capabilities: {error}"))?;
    // Only after capabilities are given up, which could clear it. If the supervisor is gone by now,
    // it does not hear that all is ready.
    rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::KILL))
        .map_err(|error| format!("cannot be ended with its supervisor: {error}"))?;
    landlock_rules::apply(&confinement.paths, confinement.sockets)?;
    seccomp::apply(confinement.sockets)
        .map_err(|error| format!("the filter of system calls: {error}"))
}

/// What whoever started this program left open is nothing for a command. The link closes itself.
pub(in crate::sandbox) fn close_inherited_files(
    link: Option<&SupervisorLink>,
) -> std::io::Result<()> {
    let keep = link.map(|link| link.as_fd().as_raw_fd());
    let numbers: Vec<i32> = fs::read_dir("/proc/self/fd")?
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .collect();
    for number in numbers.into_iter().filter(|number| *number > 2 && Some(*number) != keep) {
        // The one that listed them is closed already.
        let _ = nix::unistd::close(number);
    }
    Ok(())
}

fn limit_command(limits: &CommandLimits) -> std::io::Result<()> {
    // The limit is on all processes of the user, so those that are there come on top.
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

fn set_limit(resource: Resource, value: u64) -> std::io::Result<()> {
    // A limit that is lower already stays.
    let most = getrlimit(resource).maximum.map_or(value, |most| most.min(value));
    Ok(setrlimit(resource, Rlimit { current: Some(most), maximum: Some(most) })?)
}

/// Waits until the child ends, or the other end of the link does, or it was long enough.
pub(in crate::sandbox) fn wait_for_child_or_link(
    child: &Child,
    link: &SupervisorLink,
    at_most: Duration,
) -> std::io::Result<()> {
    let ended = pidfd_open(Pid::from_child(child), PidfdFlags::empty())?;
    let timeout = Timespec { tv_sec: 0, tv_nsec: i64::from(at_most.subsec_nanos()) };
    let mut both =
        [PollFd::new(&ended, PollFlags::IN), PollFd::from_borrowed_fd(link.as_fd(), PollFlags::IN)];
    match poll(&mut both, Some(&timeout)) {
        Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
        Err(error) => Err(error.into()),
    }
}
