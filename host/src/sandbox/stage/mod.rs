//! Writing aside: what a call changes is kept out of the workspace until somebody has seen it and
//! said yes.
//!
//! ```text
//! the guest writes ─▶ Stage ─ when the call is over ─▶ Staged, with its Changes ─ a permit for just these ─▶ commit
//!                                                             └ a no, or an error: dropped, and nothing was changed
//! ```
//!
//! A [`Overlay`] needs nothing from a guest. A file is copied aside when it is opened for writing;
//! everything else is a note that a place holds something else now, or nothing. [`Staged::commit`]
//! makes all changes or none: it refuses if the workspace is not what the call has seen, and keeps
//! what was there until it is through, so that not even a crash leaves half of it. What was there
//! stays in the [`UndoHistory`] for a while, to be had back.

mod commit;
mod compare;
mod describe;
mod file_state;
mod history;
mod record;
mod restore;
mod rights;
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
use rights::FileRights;
use stage_dir::StageDirectory;
pub(super) use staged::StageError;
pub use staged::{AppliedChange, Staged};

/// Paths that one call may change: more than a person can look through.
const MAX_PATHS: usize = 1000;
/// Paths that one call may look at before it changes some: what each held is remembered.
const MAX_OBSERVED: usize = 20_000;
/// Of one file. Larger ones are not text that somebody edits.
pub(super) const MAX_FILE_SIZE: u64 = 64 << 20;
/// Bytes that one call may write aside, all together.
const MAX_STAGED_BYTES: u64 = 256 << 20;

/// What one call has written so far.
pub(super) struct Overlay {
    /// Made when something is written.
    directory: Option<StageDirectory>,
    /// What is changed, by place.
    changes: BTreeMap<String, StagedState>,
    /// What was there when this call first met it.
    originals: BTreeMap<String, FileState>,
    budget: WriteBudget,
    next_id: u64,
}

/// What a place holds now.
#[derive(Debug)]
pub(super) enum StagedState {
    /// Nothing.
    Removed,
    /// A new and empty directory; what else is in it stands aside too. Its inode is that of a
    /// directory of the stage.
    Directory {
        data: PathBuf,
        /// Those of the directory that was moved here; `None` for a new one.
        rights: Option<FileRights>,
    },
    File(StagedFile),
    Link(String),
}

/// A file that was written aside.
#[derive(Debug)]
pub(super) struct StagedFile {
    pub(super) data: PathBuf,
    /// Where the file came from that was moved here.
    moved_from: Option<String>,
    /// Those that go with it; `None` for a new file.
    rights: Option<FileRights>,
}

/// Why something is not written aside.
#[derive(Debug)]
pub(super) enum StageRefusal {
    /// The file is larger than one may be.
    TooLarge,
    /// It is not what it was taken for.
    WrongKind,
    /// The call has done as much as it may.
    Quota(Denial),
    Io(io::Error),
}

impl From<io::Error> for StageRefusal {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

/// Bytes that may still be written.
#[derive(Clone, Debug)]
pub(super) struct WriteBudget(Arc<AtomicU64>);

impl WriteBudget {
    /// Whether so many bytes can be taken.
    fn check(&self, bytes: u64) -> io::Result<()> {
        if bytes <= self.0.load(Ordering::Relaxed) {
            Ok(())
        } else {
            Err(rustix::io::Errno::NOSPC.into())
        }
    }

    /// Takes so many bytes, if there are as many.
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
    let reason = format!(
        "a call may change {MAX_PATHS} files and directories, and this one has changed as many."
    );
    StageRefusal::Quota(Denial::new(DenialCode::TooMuch, reason, "Do it in several calls."))
}

impl Default for Overlay {
    fn default() -> Self {
        let budget = WriteBudget(Arc::new(AtomicU64::new(MAX_STAGED_BYTES)));
        Self {
            directory: None,
            changes: BTreeMap::new(),
            originals: BTreeMap::new(),
            budget,
            next_id: 0,
        }
    }
}

impl Overlay {
    pub(super) fn is_empty(&self) -> bool {
        self.changes.is_empty()
    }

    pub(super) fn budget(&self) -> WriteBudget {
        self.budget.clone()
    }

    /// What was changed at this very place.
    pub(super) fn get(&self, place: &str) -> Option<&StagedState> {
        self.changes.get(place)
    }

    /// Whether something above this place is not what it was, so that nothing of the workspace
    /// shows here.
    pub(super) fn is_shadowed(&self, place: &str) -> bool {
        let mut above = place;
        while !above.is_empty() {
            above = rooted_fs::split(above).0;
            if self.changes.contains_key(above) {
                return true;
            }
        }
        false
    }

    /// What was changed right in a directory, by name.
    pub(super) fn children<'a>(
        &'a self,
        place: &'a str,
    ) -> impl Iterator<Item = (&'a str, &'a StagedState)> {
        self.descendants(place).filter_map(move |(at, aside)| {
            let name = at.get(if place.is_empty() { 0 } else { place.len() + 1 }..)?;
            (!name.contains('/')).then_some((name, aside))
        })
    }

    fn descendants<'a>(
        &'a self,
        place: &str,
    ) -> impl Iterator<Item = (&'a String, &'a StagedState)> {
        let from = if place.is_empty() { String::new() } else { format!("{place}/") };
        let prefix = from.clone();
        self.changes
            .range(from..)
            .take_while(move |(at, _)| at.starts_with(&prefix))
            .filter(|(at, _)| !at.is_empty())
    }

    /// The links that were made or moved, with where they lead.
    pub(super) fn links(&self) -> impl Iterator<Item = (&str, &str)> {
        self.changes.iter().filter_map(|(place, aside)| match aside {
            StagedState::Link(target) => Some((place.as_str(), target.as_str())),
            StagedState::Removed | StagedState::Directory { .. } | StagedState::File(_) => None,
        })
    }

    /// The metadata of something written aside.
    pub(super) fn metadata(&self, data: &Path) -> io::Result<Metadata> {
        Metadata::from_file(&File::open(data)?)
    }

    /// Remembers what is at a place of the workspace before it is read or changed, the first time.
    pub(super) fn record_original(&mut self, root: &Dir, place: &str) -> Result<(), StageRefusal> {
        if !self.originals.contains_key(place) {
            if self.originals.len() == MAX_OBSERVED {
                let reason = format!(
                    "a call that changes files may look at {MAX_OBSERVED} of them, and this one \
                        has looked at as many."
                );
                return Err(StageRefusal::Quota(Denial::new(
                    DenialCode::TooMuch,
                    reason,
                    "Do it in several calls.",
                )));
            }
            self.originals.insert(place.to_owned(), FileState::read(root, place)?);
        }
        Ok(())
    }

    /// A new file.
    pub(super) fn create(&mut self, root: &Dir, place: &str) -> Result<(), StageRefusal> {
        self.check_path_limit(place)?;
        self.record_original(root, place)?;
        let data = self.new_data_path()?;
        File::create_new(&data)?;
        self.insert(place, StagedState::File(StagedFile { data, moved_from: None, rights: None }));
        Ok(())
    }

    /// Copies a file of the workspace aside, or only its name if its content is not wanted.
    pub(super) fn copy(
        &mut self,
        root: &Dir,
        place: &str,
        with_content: bool,
    ) -> Result<(), StageRefusal> {
        self.check_path_limit(place)?;
        self.record_original(root, place)?;
        let (data, rights) = self.copy_data(root, place, with_content)?;
        self.insert(
            place,
            StagedState::File(StagedFile { data, moved_from: None, rights: Some(rights) }),
        );
        Ok(())
    }

    fn copy_data(
        &mut self,
        root: &Dir,
        place: &str,
        with_content: bool,
    ) -> Result<(PathBuf, FileRights), StageRefusal> {
        let (file, metadata) = rooted_fs::open(root, place)?;
        let size = if with_content { metadata.len() } else { 0 };
        if size > MAX_FILE_SIZE {
            return Err(StageRefusal::TooLarge);
        }
        self.budget.consume(size)?;
        let data = self.new_data_path()?;
        // A file that grows meanwhile is not copied further.
        let copied =
            File::create_new(&data).and_then(|mut copy| io::copy(&mut file.take(size), &mut copy));
        if let Err(error) = copied {
            drop(std::fs::remove_file(&data));
            return Err(error.into());
        }
        Ok((data, FileStamp::from_metadata(&metadata).rights))
    }

    pub(super) fn create_directory(&mut self, root: &Dir, place: &str) -> Result<(), StageRefusal> {
        self.create_directory_with_rights(root, place, None)
    }

    fn create_directory_with_rights(
        &mut self,
        root: &Dir,
        place: &str,
        rights: Option<FileRights>,
    ) -> Result<(), StageRefusal> {
        self.check_path_limit(place)?;
        self.record_original(root, place)?;
        let data = self.new_data_path()?;
        std::fs::create_dir(&data)?;
        self.insert(place, StagedState::Directory { data, rights });
        Ok(())
    }

    /// Makes a directory like another one, for what is in that.
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
        place: &str,
        target: String,
    ) -> Result<(), StageRefusal> {
        self.check_path_limit(place)?;
        self.record_original(root, place)?;
        self.insert(place, StagedState::Link(target));
        Ok(())
    }

    /// Takes away whatever is at a place; a directory has to be empty.
    pub(super) fn remove(&mut self, root: &Dir, place: &str) -> Result<(), StageRefusal> {
        self.check_path_limit(place)?;
        self.record_original(root, place)?;
        self.discard(place);
        self.mark_removed(place);
        Ok(())
    }

    /// Whether all of these can be moved, so that none of them is moved without the others.
    pub(super) fn check_move_limits<'a>(
        &mut self,
        root: &Dir,
        moves: impl Iterator<Item = (&'a str, &'a str, FileKind)>,
    ) -> Result<(), StageRefusal> {
        let (mut bytes, mut places) = (0u64, self.changes.len());
        for (old, new, kind) in moves {
            self.record_original(root, old)?;
            self.record_original(root, new)?;
            places +=
                [old, new].into_iter().filter(|place| !self.changes.contains_key(*place)).count();
            if kind == FileKind::File && !self.changes.contains_key(old) {
                let (_, metadata) = rooted_fs::open(root, old)?;
                if metadata.len() > MAX_FILE_SIZE {
                    return Err(StageRefusal::TooLarge);
                }
                bytes = bytes.saturating_add(metadata.len());
            }
        }
        if places > MAX_PATHS {
            return Err(too_many_paths());
        }
        Ok(self.budget.check(bytes)?)
    }

    /// Moves a file or a link. What was at the new place is replaced.
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

    /// Only what was there can be gone.
    fn mark_removed(&mut self, place: &str) {
        if self.originals.get(place).is_some_and(|was| *was != FileState::Absent) {
            self.changes.insert(place.to_owned(), StagedState::Removed);
        }
    }

    fn insert(&mut self, place: &str, aside: StagedState) {
        self.discard(place);
        self.changes.insert(place.to_owned(), aside);
    }

    /// Forgets what stands aside at a place, and its data.
    fn discard(&mut self, place: &str) {
        match self.changes.remove(place) {
            // Whoever has it open keeps it; a stage that cannot be tidied up is removed as a whole
            // at the end.
            Some(StagedState::File(file)) => drop(std::fs::remove_file(file.data)),
            Some(StagedState::Directory { data, .. }) => drop(std::fs::remove_dir(data)),
            Some(StagedState::Link(_) | StagedState::Removed) | None => {}
        }
    }

    fn check_path_limit(&self, place: &str) -> Result<(), StageRefusal> {
        if self.changes.len() < MAX_PATHS || self.changes.contains_key(place) {
            return Ok(());
        }
        Err(too_many_paths())
    }

    fn new_data_path(&mut self) -> io::Result<PathBuf> {
        let folder = match &mut self.directory {
            Some(folder) => folder,
            none => none.insert(StageDirectory::new()?),
        };
        self.next_id += 1;
        Ok(folder.path().join(self.next_id.to_string()))
    }
}
