//! Pauses all processes of a command, and continues them later.
//!
//! A process is stopped only when its parent has stopped, so that a shell with job control notices
//! nothing, and no process group loses the shell that controls it. They continue in reverse order.
//! A process can arrange that the kernel continues it, for example with a timer; the numbers of
//! context switches show whether that happened.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::time::{Duration, Instant};

use rustix::process::{
    Pid, PidfdFlags, Signal, getpid, kill_process_group, pidfd_open, pidfd_send_signal,
};

/// The time in which all processes of a command must stop.
const PAUSE_TIMEOUT: Duration = Duration::from_secs(5);
/// The time after which groups of processes are stopped as a whole, so that their members cannot
/// start others faster than they are stopped.
const ESCALATION_TIME: Duration = Duration::from_secs(1);
/// The time between two looks at the processes.
const LOOK_INTERVAL: Duration = Duration::from_millis(2);

/// The processes of a command, all of which are stopped. They continue when the value is dropped.
pub(crate) struct PausedProcesses {
    /// The number of generations that belong to the sandbox itself, and run on.
    depth: usize,
    /// The processes that the command itself had stopped.
    stopped_before: BTreeSet<ProcessIdentity>,
    /// The processes that were stopped, or may stop soon.
    stopped: BTreeSet<ProcessIdentity>,
    /// The context switches of all threads, when all processes had stopped.
    switches: ThreadSwitches,
}

/// The number of a process, and its start time in clock ticks, because numbers are reused.
type ProcessIdentity = (i32, u64);

/// The numbers of context switches of threads.
type ThreadSwitches = BTreeMap<i32, u64>;

/// A process, as the kernel shows it.
#[derive(Clone, Copy)]
struct ListedProcess {
    identity: ProcessIdentity,
    parent: i32,
    group: i32,
}

/// The state of all threads of a process.
enum ProcessState {
    Ended,
    Stopped(ThreadSwitches),
    /// A thread runs, or is in the kernel, which the letter shows.
    Running(char),
}

impl PausedProcesses {
    /// Stops all descendants of this process more than `depth` generations away.
    ///
    /// # Errors
    /// `is_cancelled` returned `true`, or some process does not stop in time. All others have
    /// continued then.
    pub(crate) fn pause(depth: usize, is_cancelled: &mut dyn FnMut() -> bool) -> io::Result<Self> {
        let begun = Instant::now();
        let generations = list_generations(depth);
        let is_stopped =
            |process: &&ListedProcess| matches!(process.state(), ProcessState::Stopped(_));
        let stopped_before = generations.iter().flatten().filter(is_stopped);
        let mut paused = Self {
            depth,
            stopped_before: stopped_before.map(|process| process.identity).collect(),
            stopped: BTreeSet::new(),
            switches: ThreadSwitches::new(),
        };
        let mut last = None;
        loop {
            if is_cancelled() {
                return Err(io::Error::other("it was cancelled"));
            }
            match paused.stop_more(begun.elapsed() > ESCALATION_TIME) {
                Ok(switches) => {
                    // A thread counts as stopped a moment before its last switch.
                    if last.as_ref() == Some(&switches) {
                        paused.switches = switches;
                        return Ok(paused);
                    }
                    last = Some(switches);
                }
                Err(problem) => {
                    last = None;
                    if begun.elapsed() > PAUSE_TIMEOUT {
                        return Err(io::Error::other(problem));
                    }
                }
            }
            std::thread::sleep(LOOK_INTERVAL);
        }
    }

    /// Returns whether a process of the command has run since all of them had stopped.
    pub(crate) fn have_run(&self) -> bool {
        let mut left = list_generations(self.depth).into_iter().flatten();
        left.any(|process| match process.state() {
            ProcessState::Ended => false,
            ProcessState::Running(_) => true,
            ProcessState::Stopped(switches) => {
                switches.iter().any(|(thread, count)| self.switches.get(thread) != Some(count))
            }
        })
    }

    /// Asks the processes to stop whose parents have stopped. Returns the context switches if all
    /// have stopped, and otherwise the problem.
    fn stop_more(&mut self, with_groups: bool) -> Result<ThreadSwitches, String> {
        let mut all = ThreadSwitches::new();
        let mut problem = None;
        let mut running: BTreeSet<i32> = BTreeSet::new();
        for process in list_generations(self.depth).into_iter().flatten() {
            match process.state() {
                ProcessState::Ended => {}
                ProcessState::Stopped(switches) => all.extend(switches),
                ProcessState::Running(letter) => {
                    running.insert(process.identity.0);
                    let number = process.identity.0;
                    problem = Some(match letter {
                        'D' => format!("process {number} of the command waits for the system"),
                        _ => "the processes of the command do not stop".to_owned(),
                    });
                    // It comes to an end without this if its parent waits in the kernel for it.
                    if running.contains(&process.parent) && !with_groups {
                        continue;
                    }
                    self.stopped.insert(process.identity);
                    process.send(Signal::STOP);
                    if with_groups && let Some(group) = Pid::from_raw(process.group) {
                        let _ = kill_process_group(group, Signal::STOP);
                    }
                }
            }
        }
        problem.map_or(Ok(all), Err)
    }

    /// Lets the processes continue that this value has stopped, children first. `is_asked` returns
    /// whether a process was asked to stop.
    fn resume(&self, is_asked: impl Fn(&ListedProcess) -> bool) {
        for process in list_generations(self.depth).iter().rev().flatten() {
            let is_stopped = || matches!(process.state(), ProcessState::Stopped(_));
            let is_own = !self.stopped_before.contains(&process.identity);
            if is_asked(process) || is_own && is_stopped() {
                process.send(Signal::CONT);
            }
        }
    }
}

impl Drop for PausedProcesses {
    fn drop(&mut self) {
        // One that was asked may stop only later.
        self.resume(|process| self.stopped.contains(&process.identity));
        // A process whose start was not complete before.
        self.resume(|_| false);
    }
}

impl ListedProcess {
    fn read(number: i32) -> Option<Self> {
        let stat = fs::read_to_string(format!("/proc/{number}/stat")).ok()?;
        // The process name is in parentheses and may itself contain parentheses.
        let fields: Vec<&str> =
            stat.get(stat.rfind(')')? + 1..)?.split_ascii_whitespace().collect();
        // The fields 4, 5 and 22 of proc_pid_stat(5); the first one here is the third.
        let parent = fields.get(1)?.parse().ok()?;
        let group = fields.get(2)?.parse().ok()?;
        let started = fields.get(19)?.parse().ok()?;
        Some(Self { identity: (number, started), parent, group })
    }

    fn state(&self) -> ProcessState {
        let mut switches = ThreadSwitches::new();
        let number = self.identity.0;
        let threads = fs::read_dir(format!("/proc/{number}/task")).into_iter().flatten().flatten();
        for thread in threads {
            let Ok(status) = fs::read_to_string(thread.path().join("status")) else { continue };
            let field = |name: &str| {
                status.lines().find_map(|line| line.strip_prefix(name)).map(str::trim_start)
            };
            let letter = field("State:").and_then(|state| state.chars().next()).unwrap_or('X');
            match letter {
                'X' | 'Z' => continue,
                'T' | 't' => {}
                letter => return ProcessState::Running(letter),
            }
            let count = |name| field(name).and_then(|count| count.parse::<u64>().ok());
            let voluntary = count("voluntary_ctxt_switches:").unwrap_or(0);
            let others = count("nonvoluntary_ctxt_switches:").unwrap_or(0);
            let number = thread.file_name().to_str().and_then(|name| name.parse().ok());
            switches.insert(number.unwrap_or(0), voluntary.wrapping_add(others));
        }
        match switches.is_empty() {
            true => ProcessState::Ended,
            false => ProcessState::Stopped(switches),
        }
    }

    /// Sends a signal to this process, and to no other one that got its number meanwhile.
    fn send(&self, signal: Signal) {
        let Some(pid) = Pid::from_raw(self.identity.0) else { return };
        let Ok(opened) = pidfd_open(pid, PidfdFlags::empty()) else { return };
        let is_same = Self::read(self.identity.0).map(|now| now.identity) == Some(self.identity);
        if is_same {
            let _ = pidfd_send_signal(&opened, signal);
        }
    }
}

/// Returns the descendants of this process more than `depth` generations away, nearest first.
fn list_generations(depth: usize) -> Vec<Vec<ListedProcess>> {
    let numbers = fs::read_dir("/proc").into_iter().flatten().flatten();
    let numbers = numbers.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let mut children: BTreeMap<i32, Vec<ListedProcess>> = BTreeMap::new();
    for process in numbers.filter_map(ListedProcess::read) {
        children.entry(process.parent).or_default().push(process);
    }
    let mut parents = vec![getpid().as_raw_nonzero().get()];
    let mut generations = Vec::new();
    for distance in 0.. {
        let generation: Vec<ListedProcess> =
            parents.iter().flat_map(|pid| children.remove(pid).unwrap_or_default()).collect();
        if generation.is_empty() {
            break;
        }
        parents = generation.iter().map(|process| process.identity.0).collect();
        if distance >= depth {
            generations.push(generation);
        }
    }
    generations
}
