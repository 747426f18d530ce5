//! Commits the changes of a command by renames: all of them, or none.
//!
//! 1. The workspace must be as the command has seen it: no entry that the command replaced or
//!    removed has changed since the command got its view, or since its checkpoint that committed
//!    the entry ([`conflict`]).
//! 2. The new entries move from the layer of the command to the *slots* of a record in the history,
//!    which names each move and is on disk before anything else happens ([`record`]).
//! 3. Each new entry is renamed from its slot to its path, and the old entry to the slot, in one
//!    system call ([`entry`]).
//! 4. After an error or a crash, the entries at the paths and in the slots show which moves were
//!    made. They are made backwards ([`undo`]). Undo does the same later.
//!
//! The contents of the files are not synced, as a command that writes the workspace directly does
//! not sync them, either.

mod conflict;
mod entry;
mod merged_repository;
mod record;
mod tree;
mod undo;

use std::path::PathBuf;

use cap_std::fs::Dir;

use super::UndoHistory;
use super::commit::CommitError;
use super::record::ChangeState;
use crate::sandbox::workspace::Workspace;
use cofferdam_confine::remove_directory;
use cofferdam_confine::view::SeenEntry;
use entry::EntryLocation;
use record::RecordedMove;
pub(super) use record::{FORMAT_VERSION, MoveRecord};

/// The largest old contents of one command that can be undone, in bytes.
const MAX_UNDO_BYTES: u64 = 1 << 30;

/// The changes of a command, ready to be made by renames.
#[derive(Debug)]
pub(in crate::sandbox) struct MovePlan {
    /// The moves, sorted by path. None is below another one, except below a
    /// [`MoveAction::SetMode`].
    pub(in crate::sandbox) moves: Vec<PlannedMove>,
    /// When the command got its view, as a change time of the file system: seconds and nanoseconds
    /// since 1970. An entry whose status changed later was changed by somebody else, unless a
    /// checkpoint of the command has committed it.
    pub(in crate::sandbox) since: (i64, i64),
}

/// A change of one path.
#[derive(Debug)]
pub(in crate::sandbox) struct PlannedMove {
    /// The path in the workspace.
    pub(in crate::sandbox) path: String,
    pub(in crate::sandbox) action: MoveAction,
    /// The entry that the command has seen at the path.
    pub(in crate::sandbox) seen: SeenEntry,
}

/// What a move does.
#[derive(Debug)]
pub(in crate::sandbox) enum MoveAction {
    /// Moves a new entry to a path that does not exist.
    Create { from: PathBuf },
    /// Exchanges the entry at a path for a new one.
    Replace { from: PathBuf },
    /// Moves the entry at a path away.
    Remove,
    /// Sets the permissions of a file or a directory.
    SetMode { mode: u32 },
}

/// The outcome of a commit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::sandbox) enum CommitUndo {
    /// The history can undo the commit.
    Possible,
    /// The old contents were too large to be kept: this many bytes.
    TooLarge(u64),
}

/// Commits the changes and leaves a record with the old entries in the history.
///
/// # Errors
/// The workspace has changed since the command began, or the system reports an error.
pub(in crate::sandbox) fn commit_moves(
    workspace: &Workspace,
    plan: MovePlan,
    tool: &str,
    history: &UndoHistory,
) -> Result<CommitUndo, CommitError> {
    let root = workspace.dir();
    let (locked, interrupted) = history.lock_for_change(root)?;
    if !interrupted.is_empty() {
        return Err(CommitError::Interrupted(interrupted.join("; ")));
    }
    let kept_bytes = conflict::check_plan(root, &plan)?;
    merged_repository::check_merged_repositories(root, &plan)?;
    let (folder, time) = locked.next_record()?;
    let begun = MoveRecord::begin(folder.clone(), (tool, time), root, plan, kept_bytes);
    let mut record = begun.inspect_err(|_| {
        // A record without its file is removed at the next start if this fails.
        let _ = remove_directory(&folder);
    })?;
    let made = apply(root, &record).and_then(|()| {
        // Set as late as possible: only a complete change can be undone.
        let finished = record.finish(root);
        let (path, tried) = (String::from("the record of this change"), record.tried);
        finished.map_err(|source| FailedMove { path, source, tried })
    });
    let Err(FailedMove { path, source, tried }) = made else {
        if record.manifest.kept_bytes > MAX_UNDO_BYTES {
            let bytes = record.manifest.kept_bytes;
            // Without the record, the next undo would undo an earlier change unasked.
            let _ = record.discard_old();
            locked.trim();
            return Ok(CommitUndo::TooLarge(bytes));
        }
        locked.trim();
        return Ok(CommitUndo::Possible);
    };
    record.tried = tried;
    let undo_error = match record.roll_back(root, false) {
        Ok(report) if report.failed.is_empty() => {
            return Err(match source.kind() {
                std::io::ErrorKind::AlreadyExists | std::io::ErrorKind::NotFound => {
                    CommitError::Changed(path)
                }
                _ => CommitError::Io { path, source },
            });
        }
        Ok(report) => std::io::Error::other(report.describe_failures()),
        Err(error) => error,
    };
    // A pending record would be rolled back again at the next start. The user is told about it
    // either way.
    let _ = record.set_state(ChangeState::Abandoned);
    let backup = record.directory().display().to_string();
    Err(CommitError::Partial { path, source, undo_error, backup })
}

/// Why not all moves of a record were made.
struct FailedMove {
    path: String,
    source: std::io::Error,
    /// The number of moves that may have been made. What somebody else has put at the other paths
    /// meanwhile is none of this commit.
    tried: usize,
}

/// Makes all moves of a record.
fn apply(root: &Dir, record: &MoveRecord) -> Result<(), FailedMove> {
    let all = record.manifest.moves.len();
    let failed = |path: &str| {
        let path = path.to_owned();
        move |source| FailedMove { path, source, tried: all }
    };
    let slots = record.open_slots().map_err(failed("the record"))?;
    let moves = &record.manifest.moves;
    for (number, planned) in moves.iter().enumerate().filter(|(_, planned)| !planned.is_mode()) {
        let path = EntryLocation::open(root, &planned.path).map_err(failed(&planned.path))?;
        let found = path.status().map_err(failed(&planned.path))?;
        // Checked before, too; this makes the time between the check and the change short.
        if found.map(|status| status.identity) != planned.old {
            let source = std::io::ErrorKind::AlreadyExists.into();
            return Err(FailedMove { path: planned.path.clone(), source, tried: number });
        }
        apply_one(&path, &slots, number, planned).map_err(failed(&planned.path))?;
        #[cfg(test)]
        tests::interrupt_here();
    }
    // Set last, from the leaves up, because the new permissions may forbid writing.
    for planned in moves.iter().rev() {
        if let Some((_, after)) = planned.modes() {
            let set = EntryLocation::open(root, &planned.path)
                .and_then(|location| location.set_mode(after));
            set.map_err(failed(&planned.path))?;
            #[cfg(test)]
            tests::interrupt_here();
        }
    }
    Ok(())
}

fn apply_one(
    path: &EntryLocation,
    slots: &Dir,
    number: usize,
    planned: &RecordedMove,
) -> std::io::Result<()> {
    let slot = EntryLocation::in_directory(slots, number.to_string())?;
    match (&planned.old, &planned.new) {
        (None, Some(_)) => slot.move_to(path),
        (Some(_), None) => path.move_to(&slot),
        (Some(_), Some(_)) => path.exchange(&slot),
        (None, None) => Ok(()),
    }
}

#[cfg(test)]
mod tests;
