//! Reads the files of a walk into batches, ahead of the guest.
//!
//! One thread walks and cuts the list of files into runs; a few threads read the runs. Each run has
//! its own channel, and the channels are passed on in the order of the walk. So the guest gets the
//! files in order, however fast the readers are.

use std::fs::File;
use std::io::Read as _;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::mpsc;

use super::options::WalkPlan;
use super::tree::TreeWalk;
use super::{BatchPiece, FileBatch, WalkError, WalkProblems, spawn_thread};
use crate::sandbox::files::{FileRefusal, without_secrets};
use crate::sandbox::rooted_fs::{self, FileKind};

/// The range of batch sizes of the WIT contract, in bytes.
const MIN_BATCH_SIZE: usize = 64 << 10;
const MAX_BATCH_SIZE: usize = 2 << 20;
/// The number of files that fill a batch, even if they are empty. The guest gets a record for each.
const MAX_PIECES: usize = 8192;

/// The number of reading threads. Together with the walking thread and the guest's own they keep
/// four processors busy.
const MAX_READERS: usize = 4;
/// The number of files in a run. The first runs are short, so that the guest gets data soon.
const MIN_RUN_LEN: usize = 4;
const MAX_RUN_LEN: usize = 64;
/// The number of runs that are being read or wait for the guest, with at most two batches each.
const MAX_RUNS_AHEAD: usize = 8;

/// The batches of a walk on their way to the guest.
pub(super) struct ReadAhead {
    runs: mpsc::Receiver<mpsc::Receiver<FileBatch>>,
    current: Option<mpsc::Receiver<FileBatch>>,
}

/// Consecutive files of a walk, with the channel for their batches.
struct FileRun {
    paths: Vec<String>,
    batches: mpsc::Sender<FileBatch>,
}

impl ReadAhead {
    /// Starts reading. Reading ends with the walk, or when this value is dropped.
    pub(super) fn start(
        plan: WalkPlan,
        max_bytes: u32,
        problems: WalkProblems,
    ) -> Result<Self, WalkError> {
        let batch_size = usize::try_from(max_bytes)
            .unwrap_or(MAX_BATCH_SIZE)
            .clamp(MIN_BATCH_SIZE, MAX_BATCH_SIZE);
        let plan = Arc::new(plan);
        let (run_sender, run_receiver) = std::sync::mpsc::sync_channel::<FileRun>(MAX_RUNS_AHEAD);
        let run_receiver = Arc::new(Mutex::new(run_receiver));
        let readers = std::thread::available_parallelism()
            .map_or(1, std::num::NonZeroUsize::get)
            .min(MAX_READERS);
        for _ in 0..readers {
            let (plan, problems, runs) =
                (Arc::clone(&plan), problems.clone(), Arc::clone(&run_receiver));
            spawn_thread("walk-read", move || {
                let next = || runs.lock().unwrap_or_else(PoisonError::into_inner).recv();
                while let Ok(run) = next() {
                    FileRunReader::new(&plan, batch_size, &problems, &run.batches).read(&run.paths);
                }
            })?;
        }
        let (ordered_sender, runs) = mpsc::channel(MAX_RUNS_AHEAD);
        spawn_thread("walk-list", move || {
            list_files(&plan, &problems, &run_sender, &ordered_sender)
        })?;
        Ok(Self { runs, current: None })
    }

    /// Returns the next batch that is not empty, or `None` at the end.
    pub(super) async fn next(&mut self) -> Option<FileBatch> {
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

/// Walks the tree and cuts it into runs.
fn list_files(
    plan: &WalkPlan,
    problems: &WalkProblems,
    readers: &std::sync::mpsc::SyncSender<FileRun>,
    ordered: &mpsc::Sender<mpsc::Receiver<FileBatch>>,
) {
    let mut length = MIN_RUN_LEN;
    let mut files = TreeWalk::new(plan, problems)
        .filter(|found| found.kind == FileKind::File)
        .map(|found| found.path)
        .peekable();
    while files.peek().is_some() {
        let paths = files.by_ref().take(length).collect();
        length = (length * 2).min(MAX_RUN_LEN);
        let (batches, receiver) = mpsc::channel(2);
        // The order matters: the guest must know a run before a reader can wait for the guest to
        // take its batches.
        if ordered.blocking_send(receiver).is_err()
            || readers.send(FileRun { paths, batches }).is_err()
        {
            return;
        }
    }
}

/// The reader of one run.
struct FileRunReader<'a> {
    plan: &'a WalkPlan,
    sender: &'a mpsc::Sender<FileBatch>,
    problems: &'a WalkProblems,
    batch: FileBatch,
    /// The size at which a batch is sent, in bytes.
    batch_size: usize,
}

enum ReceiverState {
    Open,
    Closed,
}

impl<'a> FileRunReader<'a> {
    fn new(
        plan: &'a WalkPlan,
        batch_size: usize,
        problems: &'a WalkProblems,
        sender: &'a mpsc::Sender<FileBatch>,
    ) -> Self {
        Self { plan, sender, problems, batch: FileBatch::default(), batch_size }
    }

    /// Reads files until the end of the run, or until the walk is stopped.
    fn read(mut self, paths: &[String]) {
        for path in paths {
            if self.plan.stop.is_stopped() {
                return;
            }
            match self.add_file(path) {
                Ok(ReceiverState::Open) => {}
                Ok(ReceiverState::Closed) => return,
                Err(error) => self.problems.add(|| format!("{path}: {error}")),
            }
        }
        self.send();
    }

    fn add_file(&mut self, path: &str) -> std::io::Result<ReceiverState> {
        if let Err(denial) = self.plan.workspace.guard().check_read(path) {
            self.problems.add_denial(&denial);
            return Ok(ReceiverState::Open);
        }
        let root = self.plan.workspace.dir();
        let (file, metadata) = rooted_fs::open_listed(root, path)?;
        let (mut file, length) = match without_secrets(&self.plan.workspace, path, file) {
            Ok((file, None)) => (file, metadata.len()),
            Ok((copy, Some(note))) => {
                self.problems.add_denial(&note);
                let length = copy.metadata()?.len();
                (copy, length)
            }
            Err(FileRefusal::Denied(_, denial)) => {
                self.problems.add_denial(&denial);
                return Ok(ReceiverState::Open);
            }
            Err(FileRefusal::Io(error)) => return Err(error),
            Err(FileRefusal::Code(_)) => return Ok(ReceiverState::Open),
        };
        let length = usize::try_from(length).unwrap_or(usize::MAX);
        if self.batch.data.len().saturating_add(length) > self.batch_size
            && !self.batch.pieces.is_empty()
            && matches!(self.send(), ReceiverState::Closed)
        {
            return Ok(ReceiverState::Closed);
        }
        let start = self.batch.data.len();
        self.batch.data.reserve(length.min(self.batch_size) + 1);
        let read = self.read_chunk(&mut file, start)?;
        if read < self.batch_size {
            if self.matches_required(start) {
                self.push_piece(path, read, false);
            } else {
                self.batch.data.truncate(start);
            }
            let full =
                self.batch.data.len() >= self.batch_size || self.batch.pieces.len() >= MAX_PIECES;
            return Ok(if full { self.send() } else { ReceiverState::Open });
        }
        self.stream_rest(file, path, read)
    }

    /// Sends the rest of a file that is larger than a batch, one batch at a time.
    fn stream_rest(
        &mut self,
        mut file: File,
        path: &str,
        mut read: usize,
    ) -> std::io::Result<ReceiverState> {
        loop {
            let more = read >= self.batch_size;
            self.push_piece(path, read, more);
            if matches!(self.send(), ReceiverState::Closed) {
                return Ok(ReceiverState::Closed);
            }
            if !more {
                return Ok(ReceiverState::Open);
            }
            // An error in the middle ends the file here. The empty piece tells the guest that no
            // more follows.
            read = match self.read_chunk(&mut file, 0) {
                Ok(read) => read,
                Err(error) => {
                    self.batch.data.clear();
                    self.push_piece(path, 0, false);
                    return match self.send() {
                        ReceiverState::Open => Err(error),
                        ReceiverState::Closed => Ok(ReceiverState::Closed),
                    };
                }
            };
        }
    }

    fn read_chunk(&mut self, file: &mut File, start: usize) -> std::io::Result<usize> {
        let result = file.take(self.batch_size as u64).read_to_end(&mut self.batch.data);
        if result.is_err() {
            self.batch.data.truncate(start);
        }
        result
    }

    fn matches_required(&self, start: usize) -> bool {
        let content = &self.batch.data[start..];
        let utf16 = content.starts_with(&[0xff, 0xfe]) || content.starts_with(&[0xfe, 0xff]);
        utf16 || self.plan.required.as_ref().is_none_or(|required| required.is_match(content))
    }

    fn push_piece(&mut self, path: &str, length: usize, more: bool) {
        // A piece is never longer than a batch, which is far below 4 GiB.
        let length = u32::try_from(length).unwrap_or(u32::MAX);
        self.batch.pieces.push(BatchPiece { path: path.to_owned(), length, more });
    }

    fn send(&mut self) -> ReceiverState {
        if self.batch.pieces.is_empty() {
            return ReceiverState::Open;
        }
        let batch = std::mem::take(&mut self.batch);
        if self.sender.blocking_send(batch).is_ok() {
            ReceiverState::Open
        } else {
            ReceiverState::Closed
        }
    }
}
