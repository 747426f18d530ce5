//! Walks through the workspace. They read ahead on threads of their own, so that the host reads while the guest searches;
//! the channels between them are short, which bounds the memory.

mod files;
mod options;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::UNIX_EPOCH;

use tokio::sync::mpsc;

use super::bindings::cofferdam::plugin::workspace::{Batch, Entry, EntryKind, WalkOptions, WorkspaceError};
use super::files::Touched;
use super::workspace::Workspace;
use options::Plan;

/// The contract's 16 open walks.
const MOST_WALKS: usize = 16;
/// The contract's 4096 entries at once.
const MOST_ENTRIES: usize = 4096;
/// The contract's 100 lines.
const MOST_PROBLEMS: usize = 100;

/// The walks of one call.
#[derive(Default)]
pub(super) struct Walks {
    open: BTreeMap<u32, Walk>,
    next: u32,
}

struct Walk {
    stage: Stage,
    problems: Problems,
}

/// What the guest reads from a walk is settled by its first question.
enum Stage {
    Planned(Box<Plan>),
    Entries(mpsc::Receiver<Vec<Entry>>, Vec<Entry>),
    Files(files::Ahead),
    Over,
}

/// What could not be read, shared with the thread that reads.
#[derive(Clone, Default)]
struct Problems(Arc<Mutex<Vec<String>>>);

impl Problems {
    fn add(&self, problem: impl FnOnce() -> String) {
        let mut lines = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if lines.len() < MOST_PROBLEMS {
            lines.push(problem());
        }
    }

    /// In an order that does not depend on which thread was faster.
    fn lines(&self) -> Vec<String> {
        let mut lines = self.0.lock().unwrap_or_else(PoisonError::into_inner).clone();
        lines.sort_unstable();
        lines
    }
}

impl Walks {
    pub(super) fn open(&mut self, workspace: &Arc<Workspace>, options: WalkOptions, touched: &mut Touched) -> Result<u32, WorkspaceError> {
        if self.open.len() >= MOST_WALKS {
            return Err(WorkspaceError::InvalidWalk(format!("{MOST_WALKS} walks are open already; close one")));
        }
        let plan = Plan::new(workspace, options)?;
        touched.walked(&plan.place);
        let number = self.next;
        self.next = self.next.wrapping_add(1);
        self.open.insert(number, Walk { stage: Stage::Planned(Box::new(plan)), problems: Problems::default() });
        Ok(number)
    }

    pub(super) fn close(&mut self, walk: u32) {
        // Its thread ends at its next send.
        self.open.remove(&walk);
    }

    pub(super) fn problems(&mut self, walk: u32) -> Result<Vec<String>, WorkspaceError> {
        Ok(self.find(walk)?.problems.lines())
    }

    pub(super) async fn next_entries(&mut self, walk: u32, limit: u32) -> Result<Vec<Entry>, WorkspaceError> {
        let limit = usize::try_from(limit).unwrap_or(MOST_ENTRIES).clamp(1, MOST_ENTRIES);
        let walk = self.find(walk)?;
        if let Stage::Planned(_) = walk.stage {
            let Stage::Planned(plan) = std::mem::replace(&mut walk.stage, Stage::Over) else { return Ok(Vec::new()) };
            let (sender, receiver) = mpsc::channel(2);
            let problems = walk.problems.clone();
            spawn("walk-entries", move || list(&plan, &problems, &sender))?;
            walk.stage = Stage::Entries(receiver, Vec::new());
        }
        match &mut walk.stage {
            Stage::Entries(receiver, rest) => {
                if rest.is_empty() {
                    *rest = receiver.recv().await.unwrap_or_default();
                }
                let after = rest.split_off(limit.min(rest.len()));
                Ok(std::mem::replace(rest, after))
            }
            Stage::Files(_) => Err(WorkspaceError::InvalidWalk("this walk hands out files, not entries".into())),
            Stage::Planned(_) | Stage::Over => Ok(Vec::new()),
        }
    }

    pub(super) async fn next_files(&mut self, walk: u32, max_bytes: u32) -> Result<Batch, WorkspaceError> {
        let walk = self.find(walk)?;
        if let Stage::Planned(_) = walk.stage {
            let Stage::Planned(plan) = std::mem::replace(&mut walk.stage, Stage::Over) else { return Ok(empty_batch()) };
            walk.stage = Stage::Files(files::Ahead::start(*plan, max_bytes, walk.problems.clone())?);
        }
        match &mut walk.stage {
            Stage::Files(ahead) => Ok(ahead.next().await.unwrap_or_else(empty_batch)),
            Stage::Entries(..) => Err(WorkspaceError::InvalidWalk("this walk hands out entries, not files".into())),
            Stage::Planned(_) | Stage::Over => Ok(empty_batch()),
        }
    }

    fn find(&mut self, walk: u32) -> Result<&mut Walk, WorkspaceError> {
        self.open.get_mut(&walk).ok_or_else(|| WorkspaceError::InvalidWalk(format!("there is no open walk {walk}")))
    }
}

fn empty_batch() -> Batch {
    Batch { pieces: Vec::new(), data: Vec::new() }
}

fn spawn(name: &str, work: impl FnOnce() + Send + 'static) -> Result<(), WorkspaceError> {
    std::thread::Builder::new()
        .name(name.to_owned())
        .spawn(work)
        .map(drop)
        .map_err(|error| WorkspaceError::Failed(format!("no thread for the walk: {error}")))
}

fn list(plan: &Plan, problems: &Problems, sender: &mpsc::Sender<Vec<Entry>>) {
    let mut batch = Vec::new();
    for found in plan.walk(problems) {
        let metadata = found.entry.metadata().ok();
        let size = metadata.as_ref().filter(|m| m.is_file()).map_or(0, std::fs::Metadata::len);
        let modified = metadata.and_then(|m| m.modified().ok()).and_then(|time| time.duration_since(UNIX_EPOCH).ok());
        let kind = match found.entry.file_type() {
            Some(kind) if kind.is_file() => EntryKind::File,
            Some(kind) if kind.is_dir() => EntryKind::Directory,
            Some(kind) if kind.is_symlink() => EntryKind::Symlink,
            Some(_) | None => EntryKind::Other,
        };
        #[expect(clippy::cast_precision_loss, reason = "exact up to 8 PiB")]
        batch.push(Entry { path: found.path, kind, size: size as f64, modified: modified.map_or(0.0, |d| d.as_secs_f64()) });
        if batch.len() >= MOST_ENTRIES / 4 && sender.blocking_send(std::mem::take(&mut batch)).is_err() {
            return;
        }
    }
    if !batch.is_empty() {
        // Nobody listens any more: nothing to do about it.
        let _ = sender.blocking_send(batch);
    }
}
