//! Control of all descendants of this process, including orphans that it adopts.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::process::{
    Pid, Signal, WaitOptions, getpgrp, getpid, kill_process, kill_process_group,
    set_child_subreaper, setpriority_process, wait,
};

use crate::error::RemainingProcesses;
/// Makes this process the parent of descendants whose own parent ends.
pub(crate) fn adopt_orphans() -> std::io::Result<()> {
    // A higher priority, if allowed, helps against a command with many processes. The command
    // itself resets it.
    let _ = setpriority_process(None, -10);
    Ok(set_child_subreaper(Some(getpid()))?)
}

/// Returns the number of descendants.
pub(crate) fn count_descendants() -> usize {
    descendants(&read_processes(), 0).len()
}

/// Sends SIGTERM to all descendants more than `depth` generations away.
pub(crate) fn terminate_descendants(depth: usize) {
    for pid in descendants(&read_processes(), depth).into_iter().filter_map(Pid::from_raw) {
        let _ = kill_process(pid, Signal::TERM);
    }
}

/// Kills all descendants and returns when none is left.
pub(crate) fn kill_descendants() -> Result<(), RemainingProcesses> {
    let own = getpgrp();
    let deadline = Instant::now() + Duration::from_secs(30);
    loop {
        loop {
            match wait(WaitOptions::NOHANG) {
                Ok(Some(_)) => {}
                Ok(None) => break,
                // No children are left, so there are no descendants either: orphans become children
                // of this process. Usually that is so at once, because the first process of the
                // namespaces has taken all others with it.
                Err(rustix::io::Errno::CHILD) => return Ok(()),
                Err(error) => return Err(RemainingProcesses::Wait(error.into())),
            }
        }
        let all = read_processes();
        let pids = descendants(&all, 0);
        if Instant::now() > deadline {
            return Err(RemainingProcesses::Alive(pids.len()));
        }
        // Killing a group is atomic, so that its members cannot fork faster than they are killed.
        // The outermost process of a namespace takes the others with it.
        let groups: BTreeSet<i32> =
            pids.iter().filter_map(|pid| Some(all.get(pid)?.group)).collect();
        for group in groups.into_iter().filter_map(Pid::from_raw).filter(|group| *group != own) {
            let _ = kill_process_group(group, Signal::KILL);
        }
        for pid in pids.iter().filter_map(|pid| Pid::from_raw(*pid)) {
            let _ = kill_process(pid, Signal::KILL);
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Kills the processes of a command whose supervisor is gone.
///
/// Their environment names the command's own temporary directory, unless they removed the variable.
pub(crate) fn end_processes_of(temporary: &Path) -> Result<(), RemainingProcesses> {
    let mark = [b"TMPDIR=", temporary.as_os_str().as_bytes()].concat();
    let deadline = Instant::now() + Duration::from_secs(10);
    loop {
        let has_mark = |pid: &i32| {
            let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
            environment.split(|byte| *byte == 0).any(|variable| variable == mark)
        };
        let found: Vec<Pid> = numbers().filter(has_mark).filter_map(Pid::from_raw).collect();
        if found.is_empty() {
            return Ok(());
        }
        if Instant::now() > deadline {
            return Err(RemainingProcesses::Alive(found.len()));
        }
        for pid in found {
            let _ = kill_process(pid, Signal::KILL);
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn numbers() -> impl Iterator<Item = i32> {
    fs::read_dir("/proc")
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

/// The parent and the group of a process.
struct ProcessEntry {
    parent: i32,
    group: i32,
}

fn read_processes() -> BTreeMap<i32, ProcessEntry> {
    numbers().filter_map(|pid| Some((pid, read_process(pid)?))).collect()
}

/// Returns the descendants more than `depth` generations away, nearest first.
fn descendants(all: &BTreeMap<i32, ProcessEntry>, depth: usize) -> Vec<i32> {
    let mut children: BTreeMap<i32, Vec<i32>> = BTreeMap::new();
    for (pid, process) in all {
        children.entry(process.parent).or_default().push(*pid);
    }
    let mut generation = vec![getpid().as_raw_nonzero().get()];
    let mut found = Vec::new();
    let mut distance = 0;
    while !generation.is_empty() {
        generation =
            generation.iter().flat_map(|pid| children.remove(pid).unwrap_or_default()).collect();
        distance += 1;
        if distance > depth {
            found.extend(&generation);
        }
    }
    found
}

fn read_process(pid: i32) -> Option<ProcessEntry> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The process name is in parentheses and may itself contain parentheses.
    let mut rest =
        stat.get(stat.rfind(')')? + 1..)?.split_ascii_whitespace().skip(1).map(str::parse);
    Some(ProcessEntry { parent: rest.next()?.ok()?, group: rest.next()?.ok()? })
}
