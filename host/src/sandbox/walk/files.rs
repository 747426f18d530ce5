//! Reading the files of a walk into batches, ahead of the guest.
//!
//! One thread walks and cuts the list of files into runs; a few threads read the runs. Each run has a channel of its own,
//! and the channels are handed on in the order of the walk, so that the guest sees the files in order however fast the
//! readers are.

use std::fs::File;
use std::io::Read as _;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::mpsc;

use super::options::Plan;
use super::{Problems, spawn};
use crate::sandbox::below;
use crate::sandbox::bindings::cofferdam::plugin::workspace::{Batch, FilePiece, WorkspaceError};

/// The contract's range for a batch.
const SMALLEST: usize = 64 << 10;
const LARGEST: usize = 2 << 20;
/// So many empty or tiny files fill a batch too: the guest gets a record for each.
const MOST_PIECES: usize = 8192;

/// Threads that read; with the one that walks and the guest's own they keep four processors busy.
const MOST_READERS: usize = 4;
/// Files in a run. The first runs are short, so that the guest soon has something to do.
const SHORTEST_RUN: usize = 4;
const LONGEST_RUN: usize = 64;
/// Runs that are being read or wait for the guest, with two batches each at the most.
const RUNS_AHEAD: usize = 8;

/// Batches on their way to the guest.
pub(super) struct Ahead {
    runs: mpsc::Receiver<mpsc::Receiver<Batch>>,
    current: Option<mpsc::Receiver<Batch>>,
}

/// Files that follow each other in the walk, and where their batches go.
struct Run {
    paths: Vec<String>,
    batches: mpsc::Sender<Batch>,
}

impl Ahead {
    /// Starts reading. It ends at the end of the walk, or when this is dropped.
    pub(super) fn start(plan: Plan, max_bytes: u32, problems: Problems) -> Result<Self, WorkspaceError> {
        let goal = usize::try_from(max_bytes).unwrap_or(LARGEST).clamp(SMALLEST, LARGEST);
        let plan = Arc::new(plan);
        let (run_sender, run_receiver) = std::sync::mpsc::sync_channel::<Run>(RUNS_AHEAD);
        let run_receiver = Arc::new(Mutex::new(run_receiver));
        let readers = std::thread::available_parallelism().map_or(1, std::num::NonZeroUsize::get).min(MOST_READERS);
        for _ in 0..readers {
            let (plan, problems, runs) = (Arc::clone(&plan), problems.clone(), Arc::clone(&run_receiver));
            spawn("walk-read", move || {
                let next = || runs.lock().unwrap_or_else(PoisonError::into_inner).recv();
                while let Ok(run) = next() {
                    Reader::new(&plan, goal, &problems, &run.batches).read(&run.paths);
                }
            })?;
        }
        let (ordered_sender, runs) = mpsc::channel(RUNS_AHEAD);
        spawn("walk-list", move || list(&plan, &problems, &run_sender, &ordered_sender))?;
        Ok(Self { runs, current: None })
    }

    /// The next batch with anything in it.
    pub(super) async fn next(&mut self) -> Option<Batch> {
        loop {
            if let Some(current) = &mut self.current
                && let Some(batch) = current.recv().await
            {
                return Some(batch);
            }
            self.current = Some(self.runs.recv().await?);
        }
    }
}

/// Walks and cuts.
fn list(plan: &Plan, problems: &Problems, readers: &std::sync::mpsc::SyncSender<Run>, ordered: &mpsc::Sender<mpsc::Receiver<Batch>>) {
    let mut length = SHORTEST_RUN;
    let mut files =
        plan.walk(problems).filter(|found| found.entry.file_type().is_some_and(|kind| kind.is_file())).map(|found| found.path).peekable();
    while files.peek().is_some() {
        let paths = files.by_ref().take(length).collect();
        length = (length * 2).min(LONGEST_RUN);
        let (batches, receiver) = mpsc::channel(2);
        // In this order: a run is known to the guest before anybody can wait for the guest to take its batches.
        if ordered.blocking_send(receiver).is_err() || readers.send(Run { paths, batches }).is_err() {
            return;
        }
    }
}

/// Reads one run.
struct Reader<'a> {
    plan: &'a Plan,
    sender: &'a mpsc::Sender<Batch>,
    problems: &'a Problems,
    batch: Batch,
    /// How large a batch gets.
    goal: usize,
}

enum Listening {
    Yes,
    No,
}

impl<'a> Reader<'a> {
    fn new(plan: &'a Plan, goal: usize, problems: &'a Problems, sender: &'a mpsc::Sender<Batch>) -> Self {
        Self { plan, sender, problems, batch: Batch { pieces: Vec::new(), data: Vec::new() }, goal }
    }

    /// Until the end of the run, or until nobody listens.
    fn read(mut self, paths: &[String]) {
        for path in paths {
            match self.add(path) {
                Ok(Listening::Yes) => {}
                Ok(Listening::No) => return,
                Err(error) => self.problems.add(|| format!("{path}: {error}")),
            }
        }
        self.send();
    }

    fn add(&mut self, path: &str) -> std::io::Result<Listening> {
        if let Err(denial) = self.plan.workspace.guard().reading(path) {
            self.problems.add(|| denial.to_string());
            return Ok(Listening::Yes);
        }
        let (mut file, metadata) = below::open_listed(self.plan.workspace.dir(), path)?;
        let length = usize::try_from(metadata.len()).unwrap_or(usize::MAX);
        if self.batch.data.len().saturating_add(length) > self.goal && !self.batch.pieces.is_empty() && matches!(self.send(), Listening::No)
        {
            return Ok(Listening::No);
        }
        let start = self.batch.data.len();
        self.batch.data.reserve(length.min(self.goal) + 1);
        let read = self.fill(&mut file, start)?;
        if read < self.goal {
            if self.is_wanted(start) {
                self.piece(path, read, false);
            } else {
                self.batch.data.truncate(start);
            }
            let full = self.batch.data.len() >= self.goal || self.batch.pieces.len() >= MOST_PIECES;
            return Ok(if full { self.send() } else { Listening::Yes });
        }
        self.stream(file, path, read)
    }

    /// The rest of a file that is larger than a batch, a batch at a time.
    fn stream(&mut self, mut file: File, path: &str, mut read: usize) -> std::io::Result<Listening> {
        loop {
            let more = read >= self.goal;
            self.piece(path, read, more);
            if matches!(self.send(), Listening::No) {
                return Ok(Listening::No);
            }
            if !more {
                return Ok(Listening::Yes);
            }
            // An error in the middle ends the file here; the guest has to be told that no more comes.
            read = match self.fill(&mut file, 0) {
                Ok(read) => read,
                Err(error) => {
                    self.batch.data.clear();
                    self.piece(path, 0, false);
                    return match self.send() {
                        Listening::Yes => Err(error),
                        Listening::No => Ok(Listening::No),
                    };
                }
            };
        }
    }

    fn fill(&mut self, file: &mut File, start: usize) -> std::io::Result<usize> {
        let result = file.take(self.goal as u64).read_to_end(&mut self.batch.data);
        if result.is_err() {
            self.batch.data.truncate(start);
        }
        result
    }

    fn is_wanted(&self, start: usize) -> bool {
        let content = &self.batch.data[start..];
        let utf16 = content.starts_with(&[0xff, 0xfe]) || content.starts_with(&[0xfe, 0xff]);
        utf16 || self.plan.required.as_ref().is_none_or(|required| required.is_match(content))
    }

    fn piece(&mut self, path: &str, length: usize, more: bool) {
        // A piece is never longer than a batch, which is far below 4 GiB.
        let length = u32::try_from(length).unwrap_or(u32::MAX);
        self.batch.pieces.push(FilePiece { path: path.to_owned(), length, more });
    }

    fn send(&mut self) -> Listening {
        if self.batch.pieces.is_empty() {
            return Listening::Yes;
        }
        let batch = std::mem::replace(&mut self.batch, Batch { pieces: Vec::new(), data: Vec::new() });
        if self.sender.blocking_send(batch).is_ok() { Listening::Yes } else { Listening::No }
    }
}
