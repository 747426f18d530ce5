//! Walks through the workspace. Their threads read ahead, so that the host reads while the guest
//! searches. Short channels between them limit the memory.

mod listing;
mod options;
mod read_ahead;
mod rules;
mod tree;

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, UNIX_EPOCH};

use tokio::sync::mpsc;

use super::files::{FileRefusalLog, TouchedPaths};
use super::rooted_fs::FileKind;
use super::workspace::Workspace;
use crate::policy::Denial;
pub use listing::ReadableFile;
use options::{WalkPlan, WalkStop};
use tree::{PathLookups, TreeWalk};

/// The number of open walks, 16 by the WIT contract.
const MAX_WALKS: usize = 16;
/// The number of entries per batch, 4096 by the WIT contract.
const MAX_ENTRIES: usize = 4096;
/// The number of reported problems, 100 lines by the WIT contract.
const MAX_PROBLEMS: usize = 100;

/// The options of a walk; see the WIT contract.
#[derive(Clone, Debug)]
pub(super) struct WalkOptions {
    pub(super) root: String,
    pub(super) globs: Vec<String>,
    pub(super) hidden: bool,
    pub(super) respect_ignore: bool,
    pub(super) max_depth: Option<u32>,
    pub(super) required: Vec<Vec<u8>>,
    pub(super) required_ignore_case: bool,
}

impl WalkOptions {
    /// Everything below a directory that is neither hidden nor ignored.
    pub(super) fn everything_below(root: &str) -> Self {
        Self {
            root: root.to_owned(),
            globs: Vec::new(),
            hidden: false,
            respect_ignore: true,
            max_depth: None,
            required: Vec::new(),
            required_ignore_case: false,
        }
    }
}

/// An entry that a walk visits.
pub(super) struct WalkEntry {
    pub(super) path: String,
    pub(super) kind: WalkEntryKind,
    /// The size of a file in bytes; 0 for any other entry.
    pub(super) size: u64,
    /// The time of the last change since 1970, if it is known.
    pub(super) modified: Option<Duration>,
}

pub(super) enum WalkEntryKind {
    File,
    Directory,
    Symlink,
    Other,
}

/// Whole files and pieces of large files.
#[derive(Default)]
pub(super) struct FileBatch {
    pub(super) pieces: Vec<BatchPiece>,
    pub(super) data: Vec<u8>,
}

/// A file in a batch, or a piece of one.
pub(super) struct BatchPiece {
    pub(super) path: String,
    /// The number of bytes of the batch that belong to this piece.
    pub(super) length: u32,
    /// Whether the next batch begins with the next piece of this file.
    pub(super) more: bool,
}

/// Why a walk cannot begin or continue.
#[derive(Debug)]
pub(super) enum WalkError {
    NotFound(String),
    InvalidGlob(String),
    InvalidOption(String),
    Denied(Denial),
    Failed(String),
}

/// The number of open walks of a call.
#[derive(Clone, Default)]
pub(super) struct OpenWalkCount(Arc<()>);

/// A walk of a guest. It ends when it is dropped, with the handle or with the call.
#[allow(unreachable_pub, reason = "the generated bindings export the type of the resource")]
pub struct TreeWalkHandle {
    stage: WalkStage,
    problems: WalkProblems,
    stop: WalkStop,
    /// Counts this walk as open.
    _open: OpenWalkCount,
}

impl Drop for TreeWalkHandle {
    fn drop(&mut self) {
        // The threads of the walk end at their next step.
        self.stop.stop();
    }
}

/// The stage of a walk. The first request of the guest decides whether it returns entries or files.
enum WalkStage {
    Planned(Box<WalkPlan>),
    Entries(mpsc::Receiver<Vec<WalkEntry>>, Vec<WalkEntry>),
    Files(read_ahead::ReadAhead),
    Finished,
}

/// The problems of a walk, shared with its threads.
#[derive(Clone, Default)]
struct WalkProblems {
    lines: Arc<Mutex<Vec<String>>>,
    /// The refusals of the whole call.
    refusals: FileRefusalLog,
}

impl WalkProblems {
    fn add(&self, problem: impl FnOnce() -> String) {
        let mut lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        if lines.len() < MAX_PROBLEMS {
            lines.push(problem());
        }
    }

    fn add_denial(&self, denial: &Denial) {
        self.add(|| denial.to_string());
        self.refusals.add(denial);
    }

    /// Returns the problems in an order that does not depend on the speed of the threads.
    fn sorted_lines(&self) -> Vec<String> {
        let mut lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner).clone();
        lines.sort_unstable();
        lines
    }
}

impl OpenWalkCount {
    fn get(&self) -> usize {
        Arc::strong_count(&self.0) - 1
    }
}

impl TreeWalkHandle {
    /// Begins a walk.
    pub(super) fn open(
        workspace: &Arc<Workspace>,
        options: WalkOptions,
        open: &OpenWalkCount,
        (touched, refusals): (&mut TouchedPaths, FileRefusalLog),
    ) -> Result<Self, WalkError> {
        if open.get() >= MAX_WALKS {
            return Err(WalkError::InvalidOption(format!(
                "the limit of {MAX_WALKS} open walks is reached; drop one"
            )));
        }
        let plan = WalkPlan::new(workspace, options)?;
        touched.record_walked(&plan.root);
        let stop = plan.stop.clone();
        Ok(Self {
            stage: WalkStage::Planned(Box::new(plan)),
            problems: WalkProblems { refusals, ..WalkProblems::default() },
            stop,
            _open: open.clone(),
        })
    }

    pub(super) fn problems(&self) -> Vec<String> {
        self.problems.sorted_lines()
    }

    /// Returns the next entries. An empty list is the end, however often the guest asks.
    pub(super) async fn next_entries(&mut self, limit: u32) -> Result<Vec<WalkEntry>, WalkError> {
        let limit = usize::try_from(limit).unwrap_or(MAX_ENTRIES).clamp(1, MAX_ENTRIES);
        if let Some(plan) = self.take_plan() {
            let (sender, receiver) = mpsc::channel(2);
            let problems = self.problems.clone();
            spawn_thread("walk-entries", move || list_entries(&plan, &problems, &sender))?;
            self.stage = WalkStage::Entries(receiver, Vec::new());
        }
        match &mut self.stage {
            WalkStage::Entries(receiver, rest) => {
                if rest.is_empty() {
                    *rest = receiver.recv().await.unwrap_or_default();
                }
                let after = rest.split_off(limit.min(rest.len()));
                Ok(std::mem::replace(rest, after))
            }
            WalkStage::Files(_) => {
                Err(WalkError::Failed("this walk returns files, not entries".into()))
            }
            WalkStage::Planned(_) | WalkStage::Finished => Ok(Vec::new()),
        }
    }

    /// Returns the next files. A batch without pieces is the end, however often the guest asks.
    pub(super) async fn next_files(&mut self, max_bytes: u32) -> Result<FileBatch, WalkError> {
        if let Some(plan) = self.take_plan() {
            let ahead = read_ahead::ReadAhead::start(*plan, max_bytes, self.problems.clone())?;
            self.stage = WalkStage::Files(ahead);
        }
        match &mut self.stage {
            WalkStage::Files(ahead) => Ok(ahead.next().await.unwrap_or_default()),
            WalkStage::Entries(..) => {
                Err(WalkError::Failed("this walk returns entries, not files".into()))
            }
            WalkStage::Planned(_) | WalkStage::Finished => Ok(FileBatch::default()),
        }
    }

    /// Takes the plan of a walk that has not begun.
    fn take_plan(&mut self) -> Option<Box<WalkPlan>> {
        if !matches!(self.stage, WalkStage::Planned(_)) {
            return None;
        }
        match std::mem::replace(&mut self.stage, WalkStage::Finished) {
            WalkStage::Planned(plan) => Some(plan),
            WalkStage::Entries(..) | WalkStage::Files(_) | WalkStage::Finished => None,
        }
    }
}

fn spawn_thread(name: &str, work: impl FnOnce() + Send + 'static) -> Result<(), WalkError> {
    std::thread::Builder::new()
        .name(name.to_owned())
        .spawn(work)
        .map(drop)
        .map_err(|error| WalkError::Failed(format!("cannot start a thread for the walk: {error}")))
}

fn list_entries(plan: &WalkPlan, problems: &WalkProblems, sender: &mpsc::Sender<Vec<WalkEntry>>) {
    let mut batch = Vec::new();
    let mut lookups = PathLookups::default();
    for found in TreeWalk::new(plan, problems) {
        let metadata = lookups.metadata(plan.workspace.dir(), &found.path).ok();
        let size = metadata.as_ref().filter(|m| m.is_file()).map_or(0, cap_std::fs::Metadata::len);
        let modified = metadata
            .and_then(|m| m.modified().ok())
            .and_then(|time| time.into_std().duration_since(UNIX_EPOCH).ok());
        let kind = match found.kind {
            FileKind::File => WalkEntryKind::File,
            FileKind::Directory => WalkEntryKind::Directory,
            FileKind::Link => WalkEntryKind::Symlink,
            FileKind::Special => WalkEntryKind::Other,
        };
        batch.push(WalkEntry { path: found.path, kind, size, modified });
        if batch.len() >= MAX_ENTRIES / 4
            && sender.blocking_send(std::mem::take(&mut batch)).is_err()
        {
            return;
        }
    }
    if !batch.is_empty() {
        // If the receiver is gone, nobody needs the batch.
        let _ = sender.blocking_send(batch);
    }
}
