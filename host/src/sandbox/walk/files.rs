//! Reading the files of a walk into batches, ahead of the guest.

use std::io::Read as _;

use cap_std::fs::{File, OpenOptions, OpenOptionsExt as _};
use tokio::sync::mpsc;

use super::Problems;
use super::options::{Found, Plan};
use crate::sandbox::bindings::cofferdam::plugin::workspace::{Batch, FilePiece};

/// The contract's range for a batch.
const SMALLEST: usize = 64 << 10;
const LARGEST: usize = 2 << 20;
/// So many empty or tiny files fill a batch too: the guest gets a record for each.
const MOST_PIECES: usize = 8192;

/// Sends the files of a walk, until its end or until nobody listens.
pub(super) fn read(plan: &Plan, max_bytes: u32, problems: &Problems, sender: &mpsc::Sender<Batch>) {
    let goal = usize::try_from(max_bytes).unwrap_or(LARGEST).clamp(SMALLEST, LARGEST);
    let mut reader = Reader { plan, sender, batch: Batch { pieces: Vec::new(), data: Vec::new() }, goal, size: SMALLEST };
    for found in plan.walk(problems) {
        if !found.entry.file_type().is_some_and(|kind| kind.is_file()) {
            continue;
        }
        match reader.add(&found) {
            Ok(Listening::Yes) => {}
            Ok(Listening::No) => return,
            Err(error) => problems.add(|| format!("{}: {error}", found.path)),
        }
    }
    reader.send();
}

struct Reader<'a> {
    plan: &'a Plan,
    sender: &'a mpsc::Sender<Batch>,
    batch: Batch,
    /// How large batches get.
    goal: usize,
    /// How large the next one is: they start small, so that the guest has something to do while the rest is read.
    size: usize,
}

enum Listening {
    Yes,
    No,
}

impl Reader<'_> {
    fn add(&mut self, found: &Found) -> std::io::Result<Listening> {
        let Some(mut file) = self.open(&found.path)? else { return Ok(Listening::Yes) };
        let length = usize::try_from(file.metadata()?.len()).unwrap_or(usize::MAX);
        if self.batch.data.len().saturating_add(length) > self.size && !self.batch.pieces.is_empty() && matches!(self.send(), Listening::No)
        {
            return Ok(Listening::No);
        }
        let start = self.batch.data.len();
        self.batch.data.reserve(length.min(self.goal) + 1);
        let read = self.fill(&mut file, start)?;
        if read < self.goal {
            if self.is_wanted(start) {
                self.piece(&found.path, read, false);
            } else {
                self.batch.data.truncate(start);
            }
            let full = self.batch.data.len() >= self.size || self.batch.pieces.len() >= MOST_PIECES;
            return Ok(if full { self.send() } else { Listening::Yes });
        }
        self.stream(file, &found.path, read)
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

    /// Opens a file below the workspace; `None` if it is something else by now. Without waiting, since opening a FIFO
    /// that nobody writes to would wait for ever.
    fn open(&self, path: &str) -> std::io::Result<Option<File>> {
        let mut options = OpenOptions::new();
        options.read(true).custom_flags(i32::try_from(rustix::fs::OFlags::NONBLOCK.bits()).unwrap_or_default());
        let file = self.plan.workspace.dir().open_with(path, &options)?;
        Ok(file.metadata()?.is_file().then_some(file))
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
        self.size = (self.size * 2).min(self.goal);
        let next = Batch { pieces: Vec::new(), data: Vec::with_capacity(self.size) };
        let batch = std::mem::replace(&mut self.batch, next);
        if self.sender.blocking_send(batch).is_ok() { Listening::Yes } else { Listening::No }
    }
}
