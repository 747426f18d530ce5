//! Walks through the workspace. Their threads read ahead, so that the host reads while the guest
//! searches. Short channels between them limit the memory.

mod options;
mod read_ahead;
mod rules;
mod tree;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::UNIX_EPOCH;

use tokio::sync::mpsc;

use super::bindings::cofferdam::plugin::workspace::{
    Batch, Entry, EntryKind, WalkOptions, WorkspaceError,
};
use super::files::{FileRefusalLog, TouchedPaths};
use super::rooted_fs::FileKind;
use super::workspace::Workspace;
use crate::policy::Denial;
use options::{WalkPlan, WalkStop};
use tree::{PathLookups, TreeWalk};

/// The number of open walks, 16 by the WIT contract.
const MAX_WALKS: usize = 16;
/// The number of entries per batch, 4096 by the WIT contract.
const MAX_ENTRIES: usize = 4096;
/// The number of reported problems, 100 lines by the WIT contract.
const MAX_PROBLEMS: usize = 100;

/// The walks of one call.
#[derive(Default)]
pub(super) struct CallWalks {
    walks: BTreeMap<u32, OpenTreeWalk>,
    next_id: u32,
}

struct OpenTreeWalk {
    stage: WalkStage,
    problems: WalkProblems,
    stop: WalkStop,
}

impl Drop for OpenTreeWalk {
    fn drop(&mut self) {
        self.stop.stop();
    }
}

/// The stage of a walk. The first request of the guest decides whether it returns entries or files.
enum WalkStage {
    Planned(Box<WalkPlan>),
    Entries(mpsc::Receiver<Vec<Entry>>, Vec<Entry>),
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

impl CallWalks {
    pub(super) fn open(
        &mut self,
        workspace: &Arc<Workspace>,
        options: WalkOptions,
        (touched, refusals): (&mut TouchedPaths, FileRefusalLog),
    ) -> Result<u32, WorkspaceError> {
        if self.walks.len() >= MAX_WALKS {
            return Err(WorkspaceError::InvalidWalk(format!(
                "the limit of {MAX_WALKS} open walks is reached; close one"
            )));
        }
        let plan = WalkPlan::new(workspace, options)?;
        touched.record_walked(&plan.root);
        let number = self.next_id;
        self.next_id = self.next_id.wrapping_add(1);
        let stop = plan.stop.clone();
        self.walks.insert(
            number,
            OpenTreeWalk {
                stage: WalkStage::Planned(Box::new(plan)),
                problems: WalkProblems { refusals, ..WalkProblems::default() },
                stop,
            },
        );
        Ok(number)
    }

    pub(super) fn close(&mut self, walk: u32) {
        // The threads of the walk end at their next step.
        self.walks.remove(&walk);
    }

    pub(super) fn problems(&mut self, walk: u32) -> Result<Vec<String>, WorkspaceError> {
        Ok(self.find(walk)?.problems.sorted_lines())
    }

    pub(super) async fn next_entries(
        &mut self,
        walk: u32,
        limit: u32,
    ) -> Result<Vec<Entry>, WorkspaceError> {
        let limit = usize::try_from(limit).unwrap_or(MAX_ENTRIES).clamp(1, MAX_ENTRIES);
        let walk = self.find(walk)?;
        if let WalkStage::Planned(_) = walk.stage {
            let WalkStage::Planned(plan) = std::mem::replace(&mut walk.stage, WalkStage::Finished)
            else {
                return Ok(Vec::new());
            };
            let (sender, receiver) = mpsc::channel(2);
            let problems = walk.problems.clone();
            spawn_thread("walk-entries", move || list_entries(&plan, &problems, &sender))?;
            walk.stage = WalkStage::Entries(receiver, Vec::new());
        }
        match &mut walk.stage {
            WalkStage::Entries(receiver, rest) => {
                if rest.is_empty() {
                    *rest = receiver.recv().await.unwrap_or_default();
                }
                let after = rest.split_off(limit.min(rest.len()));
                Ok(std::mem::replace(rest, after))
            }
            WalkStage::Files(_) => {
                Err(WorkspaceError::InvalidWalk("this walk returns files, not entries".into()))
            }
            WalkStage::Planned(_) | WalkStage::Finished => Ok(Vec::new()),
        }
    }

    pub(super) async fn next_files(
        &mut self,
        walk: u32,
        max_bytes: u32,
    ) -> Result<Batch, WorkspaceError> {
        let walk = self.find(walk)?;
        if let WalkStage::Planned(_) = walk.stage {
            let WalkStage::Planned(plan) = std::mem::replace(&mut walk.stage, WalkStage::Finished)
            else {
                return Ok(empty_batch());
            };
            walk.stage = WalkStage::Files(read_ahead::ReadAhead::start(
                *plan,
                max_bytes,
                walk.problems.clone(),
            )?);
        }
        match &mut walk.stage {
            WalkStage::Files(ahead) => Ok(ahead.next().await.unwrap_or_else(empty_batch)),
            WalkStage::Entries(..) => {
                Err(WorkspaceError::InvalidWalk("this walk returns entries, not files".into()))
            }
            WalkStage::Planned(_) | WalkStage::Finished => Ok(empty_batch()),
        }
    }

    fn find(&mut self, walk: u32) -> Result<&mut OpenTreeWalk, WorkspaceError> {
        self.walks.get_mut(&walk).ok_or_else(|| {
            WorkspaceError::InvalidWalk(format!(
                "no open walk has the number \
                {walk}"
            ))
        })
    }
}

fn empty_batch() -> Batch {
    Batch { pieces: Vec::new(), data: Vec::new() }
}

fn spawn_thread(name: &str, work: impl FnOnce() + Send + 'static) -> Result<(), WorkspaceError> {
    std::thread::Builder::new().name(name.to_owned()).spawn(work).map(drop).map_err(|error| {
        WorkspaceError::Failed(format!(
            "cannot start a thread for the walk: \
            {error}"
        ))
    })
}

fn list_entries(plan: &WalkPlan, problems: &WalkProblems, sender: &mpsc::Sender<Vec<Entry>>) {
    let mut batch = Vec::new();
    let mut lookups = PathLookups::default();
    for found in TreeWalk::new(plan, problems) {
        let metadata = lookups.metadata(plan.workspace.dir(), &found.path).ok();
        let size = metadata.as_ref().filter(|m| m.is_file()).map_or(0, cap_std::fs::Metadata::len);
        let modified = metadata
            .and_then(|m| m.modified().ok())
            .and_then(|time| time.into_std().duration_since(UNIX_EPOCH).ok());
        let kind = match found.kind {
            FileKind::File => EntryKind::File,
            FileKind::Directory => EntryKind::Directory,
            FileKind::Link => EntryKind::Symlink,
            FileKind::Special => EntryKind::Other,
        };
        #[expect(clippy::cast_precision_loss, reason = "exact up to 8 PiB")]
        batch.push(Entry {
            path: found.path,
            kind,
            size: size as f64,
            modified: modified.map_or(0.0, |d| d.as_secs_f64()),
        });
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
