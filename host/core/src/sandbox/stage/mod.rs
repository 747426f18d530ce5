//! Staging: the changes of a call are kept out of the workspace until they are approved.
//!
//! ```text
//! guest writes ─▶ Overlay ─▶ (call ends) ─▶ Staged with its ChangeSet ─▶ permit ─▶ commit
//!                                                    └▶ denial or error: dropped
//! ```
//!
//! An [`Overlay`] needs no cooperation by the guest. A file is copied when it is opened for
//! writing; every other change is an entry that says what a path holds now. [`Staged::commit`]
//! makes all changes or none. It refuses if the workspace has changed since the call looked at it.
//! It backs up the old contents until it is finished, so that not even a crash leaves a partial
//! change. The old contents stay in the [`UndoHistory`] for a while, for undo.

mod commit;
mod compare;
mod describe;
mod file_state;
mod history;
mod history_diff;
mod history_record;
mod moves;
mod planted_repository;
mod record;
mod repository_parts;
mod restore;
mod rights;
mod shown;
mod stage_dir;
mod staged;

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use cap_std::fs::{Dir, Metadata};

use super::rooted_fs::{self, FileKind};
use crate::policy::{Denial, DenialCode};

pub use commit::CommitError;
use file_state::{FileStamp, FileState};
pub use history::{HistoryError, UndoHistory, UndoHistoryEntry, UndoOutcome};
pub use history_diff::{DiffScope, HistoryDiff};
pub(super) use moves::{CommitUndo, MoveAction, MovePlan, PlannedMove, commit_moves};
pub use repository_parts::may_be_repository_part;
use rights::FileRights;
pub(super) use shown::{ShownChange, describe_shown};
use stage_dir::StageDirectory;
pub(super) use staged::StageError;
pub use staged::{AppliedChange, Staged};

/// The number of paths that one call may change. More than a person can review.
const MAX_PATHS: usize = 1000;
/// The number of paths that one call with changes may look at. The state of each is remembered.
const MAX_OBSERVED: usize = 20_000;
/// The largest file, in bytes. Larger ones are not text that anyone edits.
pub(super) const MAX_FILE_SIZE: u64 = 64 << 20;
/// The bytes that one call may stage, all together.
const MAX_STAGED_BYTES: u64 = 256 << 20;

/// The staged changes of one call.
pub(super) struct Overlay {
    /// The directory for temporary files of the host.
    temp_dir: PathBuf,
    /// The directory of the staged contents, created in `temp_dir` when the first one is written.
    directory: Option<StageDirectory>,
    /// The changed paths and their new states.
    changes: BTreeMap<String, StagedState>,
    /// The original state of each path that this call has looked at.
    originals: BTreeMap<String, FileState>,
    budget: WriteBudget,
    next_id: u64,
}

/// The new state of a changed path.
#[derive(Debug)]
pub(super) enum StagedState {
    /// The path was removed.
    Removed,
    /// A new directory; its entries are staged too. The inode shown to the guest is that of `data`,
    /// an empty directory of the stage.
    Directory {
        data: PathBuf,
        /// The permissions of the directory that was moved here; `None` for a new one.
        rights: Option<FileRights>,
    },
    File(StagedFile),
    Link(String),
}

/// A staged file.
#[derive(Debug)]
pub(super) struct StagedFile {
    pub(super) data: PathBuf,
    /// The path that the file was moved from.
    moved_from: Option<String>,
    /// The permissions of the file; `None` for a new one.
    rights: Option<FileRights>,
}

/// Why a change cannot be staged.
#[derive(Debug)]
pub(super) enum StageRefusal {
    /// The file is too large.
    TooLarge,
    /// The path does not have the expected kind.
    WrongKind,
    /// The call has reached a limit.
    Quota(Denial),
    Io(io::Error),
}

impl From<io::Error> for StageRefusal {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

/// The number of bytes that may still be written, shared by all streams of a call.
#[derive(Clone, Debug)]
pub(super) struct WriteBudget(Arc<AtomicU64>);

impl WriteBudget {
    /// Checks whether this many bytes are left.
    fn check(&self, bytes: u64) -> io::Result<()> {
        if bytes <= self.0.load(Ordering::Relaxed) {
            Ok(())
        } else {
            Err(rustix::io::Errno::NOSPC.into())
        }
    }

    /// Takes this many bytes, if as many are left.
    pub(super) fn consume(&self, bytes: u64) -> io::Result<()> {
        let taken = self
            .0
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(bytes));
        taken
            .map(drop)
            .map_err(|_| io::Error::from_raw_os_error(rustix::io::Errno::NOSPC.raw_os_error()))
    }
}

fn too_many_paths() -> StageRefusal {
    let reason = format!("one call can change at most {MAX_PATHS} files and directories.");
    StageRefusal::Quota(Denial::new(DenialCode::TooMuch, reason, "Use several calls."))
}

impl Overlay {
    /// Creates an overlay without changes, whose contents are staged below `temp_dir`.
    pub(super) fn new(temp_dir: &Path) -> Self {
        let budget = WriteBudget(Arc::new(AtomicU64::new(MAX_STAGED_BYTES)));
        Self {
            temp_dir: temp_dir.to_owned(),
            directory: None,
            changes: BTreeMap::new(),
            originals: BTreeMap::new(),
            budget,
            next_id: 0,
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.changes.is_empty()
    }

    pub(super) fn budget(&self) -> WriteBudget {
        self.budget.clone()
    }

    /// Returns the staged change of exactly this path.
    pub(super) fn get(&self, path: &str) -> Option<&StagedState> {
        self.changes.get(path)
    }

    /// Returns whether a parent of this path has a staged change, so that nothing of the workspace
    /// is visible here.
    pub(super) fn is_shadowed(&self, path: &str) -> bool {
        let mut above = path;
        while !above.is_empty() {
            above = rooted_fs::split(above).0;
            if self.changes.contains_key(above) {
                return true;
            }
        }
        false
    }

    /// Returns the staged changes of the direct entries of a directory, by name.
    pub(super) fn children<'a>(
        &'a self,
        path: &'a str,
    ) -> impl Iterator<Item = (&'a str, &'a StagedState)> {
        self.descendants(path).filter_map(move |(at, state)| {
            let name = at.get(if path.is_empty() { 0 } else { path.len() + 1 }..)?;
            (!name.contains('/')).then_some((name, state))
        })
    }

    fn descendants<'a>(
        &'a self,
        path: &str,
    ) -> impl Iterator<Item = (&'a String, &'a StagedState)> {
        let from = if path.is_empty() { String::new() } else { format!("{path}/") };
        let prefix = from.clone();
        self.changes
            .range(from..)
            .take_while(move |(at, _)| at.starts_with(&prefix))
            .filter(|(at, _)| !at.is_empty())
    }

    /// Returns the staged links with their targets.
    pub(super) fn links(&self) -> impl Iterator<Item = (&str, &str)> {
        self.changes.iter().filter_map(|(path, state)| match state {
            StagedState::Link(target) => Some((path.as_str(), target.as_str())),
            StagedState::Removed | StagedState::Directory { .. } | StagedState::File(_) => None,
        })
    }

    /// Returns the metadata of staged data.
    pub(super) fn metadata(&self, data: &Path) -> io::Result<Metadata> {
        Metadata::from_file(&File::open(data)?)
    }

    /// Remembers the original state of a path before it is first read or changed.
    pub(super) fn record_original(&mut self, root: &Dir, path: &str) -> Result<(), StageRefusal> {
        if !self.originals.contains_key(path) {
            if self.originals.len() == MAX_OBSERVED {
                let reason = format!(
                    "a call that changes files can read at most {MAX_OBSERVED} files and \
                        directories."
                );
                return Err(StageRefusal::Quota(Denial::new(
                    DenialCode::TooMuch,
                    reason,
                    "Use several calls.",
                )));
            }
            self.originals.insert(path.to_owned(), FileState::read(root, path)?);
        }
        Ok(())
    }

    /// Stages a new, empty file.
    pub(super) fn create(&mut self, root: &Dir, path: &str) -> Result<(), StageRefusal> {
        self.check_path_limit(path)?;
        self.record_original(root, path)?;
        let data = self.new_data_path()?;
        File::create_new(&data)?;
        self.insert(path, StagedState::File(StagedFile { data, moved_from: None, rights: None }));
        Ok(())
    }

    /// Stages a copy of a workspace file, empty unless `with_content` is set.
    pub(super) fn copy(
        &mut self,
        root: &Dir,
        path: &str,
        with_content: bool,
    ) -> Result<(), StageRefusal> {
        self.check_path_limit(path)?;
        self.record_original(root, path)?;
        let (data, rights) = self.copy_data(root, path, with_content)?;
        self.insert(
            path,
            StagedState::File(StagedFile { data, moved_from: None, rights: Some(rights) }),
        );
        Ok(())
    }

    fn copy_data(
        &mut self,
        root: &Dir,
        path: &str,
        with_content: bool,
    ) -> Result<(PathBuf, FileRights), StageRefusal> {
        let (file, metadata) = rooted_fs::open(root, path)?;
        let size = if with_content { metadata.len() } else { 0 };
        if size > MAX_FILE_SIZE {
            return Err(StageRefusal::TooLarge);
        }
        self.budget.consume(size)?;
        let data = self.new_data_path()?;
        // If the file grows meanwhile, the new bytes are not copied.
        let copied =
            File::create_new(&data).and_then(|mut copy| io::copy(&mut file.take(size), &mut copy));
        if let Err(error) = copied {
            let _ = std::fs::remove_file(&data);
            return Err(error.into());
        }
        Ok((data, FileStamp::from_metadata(&metadata).rights))
    }

    pub(super) fn create_directory(&mut self, root: &Dir, path: &str) -> Result<(), StageRefusal> {
        self.create_directory_with_rights(root, path, None)
    }

    fn create_directory_with_rights(
        &mut self,
        root: &Dir,
        path: &str,
        rights: Option<FileRights>,
    ) -> Result<(), StageRefusal> {
        self.check_path_limit(path)?;
        self.record_original(root, path)?;
        let data = self.new_data_path()?;
        std::fs::create_dir(&data)?;
        self.insert(path, StagedState::Directory { data, rights });
        Ok(())
    }

    /// Stages a directory with the permissions of another one, for the entries that move there.
    pub(super) fn move_directory(
        &mut self,
        root: &Dir,
        old: &str,
        new: &str,
    ) -> Result<(), StageRefusal> {
        self.record_original(root, old)?;
        let rights = match (self.changes.get(old), self.originals.get(old)) {
            (Some(StagedState::Directory { rights, .. }), _) => *rights,
            (None, Some(FileState::Directory(stamp))) => Some(stamp.rights),
            (Some(_) | None, _) => None,
        };
        self.create_directory_with_rights(root, new, rights)
    }

    pub(super) fn link(
        &mut self,
        root: &Dir,
        path: &str,
        target: String,
    ) -> Result<(), StageRefusal> {
        self.check_path_limit(path)?;
        self.record_original(root, path)?;
        self.insert(path, StagedState::Link(target));
        Ok(())
    }

    /// Stages the removal of a path. A directory must be empty.
    pub(super) fn remove(&mut self, root: &Dir, path: &str) -> Result<(), StageRefusal> {
        self.check_path_limit(path)?;
        self.record_original(root, path)?;
        self.discard(path);
        self.mark_removed(path);
        Ok(())
    }

    /// Checks that all of these moves fit into the limits, so that either all of them are staged or
    /// none.
    pub(super) fn check_move_limits<'a>(
        &mut self,
        root: &Dir,
        moves: impl Iterator<Item = (&'a str, &'a str, FileKind)>,
    ) -> Result<(), StageRefusal> {
        let (mut bytes, mut paths) = (0u64, self.changes.len());
        for (old, new, kind) in moves {
            self.record_original(root, old)?;
            self.record_original(root, new)?;
            paths +=
                [old, new].into_iter().filter(|path| !self.changes.contains_key(*path)).count();
            if kind == FileKind::File && !self.changes.contains_key(old) {
                let (_, metadata) = rooted_fs::open(root, old)?;
                if metadata.len() > MAX_FILE_SIZE {
                    return Err(StageRefusal::TooLarge);
                }
                bytes = bytes.saturating_add(metadata.len());
            }
        }
        if paths > MAX_PATHS {
            return Err(too_many_paths());
        }
        Ok(self.budget.check(bytes)?)
    }

    /// Stages the move of a file or a link. Replaces the new path.
    pub(super) fn rename(&mut self, root: &Dir, old: &str, new: &str) -> Result<(), StageRefusal> {
        self.check_path_limit(new)?;
        self.record_original(root, old)?;
        self.record_original(root, new)?;
        let moved = match self.changes.remove(old) {
            Some(StagedState::File(file)) => StagedState::File(file),
            Some(StagedState::Link(target)) => StagedState::Link(target),
            Some(other @ (StagedState::Directory { .. } | StagedState::Removed)) => {
                self.changes.insert(old.to_owned(), other);
                return Err(StageRefusal::WrongKind);
            }
            None => match self.originals.get(old) {
                Some(FileState::Link(target)) => StagedState::Link(target.clone()),
                _ => {
                    let (data, rights) = self.copy_data(root, old, true)?;
                    StagedState::File(StagedFile {
                        data,
                        moved_from: Some(old.to_owned()),
                        rights: Some(rights),
                    })
                }
            },
        };
        self.mark_removed(old);
        self.insert(new, moved);
        Ok(())
    }

    /// Marks a path as removed, if it existed originally.
    fn mark_removed(&mut self, path: &str) {
        if self.originals.get(path).is_some_and(|was| *was != FileState::Absent) {
            self.changes.insert(path.to_owned(), StagedState::Removed);
        }
    }

    fn insert(&mut self, path: &str, state: StagedState) {
        self.discard(path);
        self.changes.insert(path.to_owned(), state);
    }

    /// Removes the staged change of a path together with its data.
    fn discard(&mut self, path: &str) {
        match self.changes.remove(path) {
            // Open handles keep their data. If removing it fails, it is removed with the whole
            // directory at the end.
            Some(StagedState::File(file)) => {
                let _ = std::fs::remove_file(file.data);
            }
            Some(StagedState::Directory { data, .. }) => {
                let _ = std::fs::remove_dir(data);
            }
            Some(StagedState::Link(_) | StagedState::Removed) | None => {}
        }
    }

    fn check_path_limit(&self, path: &str) -> Result<(), StageRefusal> {
        if self.changes.len() < MAX_PATHS || self.changes.contains_key(path) {
            return Ok(());
        }
        Err(too_many_paths())
    }

    fn new_data_path(&mut self) -> io::Result<PathBuf> {
        let directory = match &mut self.directory {
            Some(directory) => directory,
            none => none.insert(StageDirectory::new(&self.temp_dir)?),
        };
        self.next_id += 1;
        Ok(directory.path().join(self.next_id.to_string()))
    }
}
