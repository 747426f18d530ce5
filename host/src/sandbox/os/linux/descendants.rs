//! All that a command has started, wherever it has gone: this process adopts what loses its parent.

use std::collections::BTreeMap;
use std::fs;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, WaitOptions, getpid, kill_process, set_child_subreaper, wait};

/// Makes this process the parent of descendants whose own parent ends.
pub(in crate::sandbox) fn adopt_orphans() -> std::io::Result<()> {
    Ok(set_child_subreaper(Some(getpid()))?)
}

/// How many there are.
pub(in crate::sandbox) fn count_descendants() -> usize {
    descendants(0).len()
}

/// Asks all to end that are more than `depth` generations away.
pub(in crate::sandbox) fn ask_descendants_to_end(depth: usize) {
    for pid in descendants(depth) {
        let _ = kill_process(pid, Signal::TERM);
    }
}

/// Kills all, and comes back when none is left.
pub(in crate::sandbox) fn end_descendants() -> Result<(), String> {
    // They may go on starting others while they are killed, but the dead start none: each round leaves fewer.
    let deadline = Instant::now() + Duration::from_secs(30);
    loop {
        let all = descendants(0);
        // First still, then dead: what is stopped starts nothing while its neighbours are killed.
        for signal in [Signal::STOP, Signal::KILL] {
            for pid in &all {
                let _ = kill_process(*pid, signal);
            }
        }
        loop {
            match wait(WaitOptions::NOHANG) {
                Ok(Some(_)) => {}
                Ok(None) => break,
                // Nobody is left who could have children.
                Err(rustix::io::Errno::CHILD) => return Ok(()),
                Err(error) => return Err(error.to_string()),
            }
        }
        if Instant::now() > deadline {
            return Err(format!("{} processes of the command cannot be killed", all.len()));
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// All processes that descend from this one, those further away than `depth` generations.
fn descendants(depth: usize) -> Vec<Pid> {
    let mut children: BTreeMap<i32, Vec<i32>> = BTreeMap::new();
    for entry in fs::read_dir("/proc").into_iter().flatten().flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else { continue };
        if let Some(parent) = parent_of(pid) {
            children.entry(parent).or_default().push(pid);
        }
    }
    let mut generation = vec![getpid().as_raw_nonzero().get()];
    let mut found = Vec::new();
    let mut distance = 0;
    while !generation.is_empty() {
        generation = generation.iter().flat_map(|pid| children.remove(pid).unwrap_or_default()).collect();
        distance += 1;
        if distance > depth {
            found.extend(generation.iter().filter_map(|pid| Pid::from_raw(*pid)));
        }
    }
    found
}

fn parent_of(pid: i32) -> Option<i32> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name stands in parentheses and can hold anything, parentheses too.
    let mut rest = stat.get(stat.rfind(')')? + 1..)?.split_ascii_whitespace();
    rest.nth(1)?.parse().ok()
}
