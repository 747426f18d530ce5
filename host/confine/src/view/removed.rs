//! Finds entries that a command has changed while somebody else removed them from the workspace.
//!
//! overlayfs marks each copy of an entry of the workspace, so a marked entry without an entry below
//! was either moved there by the command, or somebody else has removed the entry below. A directory
//! of the workspace cannot be moved. A moved file is still in the workspace under its old name,
//! which the layer hides, and the overlay shows its number. overlayfs does not mark copies of files
//! with several names, links and special files, nor a new file that replaced one of the workspace:
//! these cannot be told from new ones.

use std::collections::BTreeSet;
use std::ffi::{CStr, OsStr};
use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, Stat, fstat, lgetxattr, statat};
use rustix::io::Errno;

use super::clean::{names_in, open_below, path_of};
use super::collect::kind_of;
use super::committed::EntryStamp;
use super::{CollectedChanges, CommittedPaths, LayerEntryKind, SeenEntry};

/// The mark of a copy of an entry of the workspace; see the kernel's documentation of overlayfs.
const ORIGIN_ATTRIBUTE: &CStr = c"user.overlay.origin";
/// The number of entries of removed directories that are searched for moved files.
const MAX_SEARCHED: usize = 200_000;

/// What is known about the overlay of a layer.
#[derive(Default)]
pub(crate) struct OverlayFacts {
    /// The overlay, which nothing changes meanwhile; `None` if there is none any more.
    pub(crate) shown: Option<OwnedFd>,
    /// The directories that were created in the workspace for the command, relative to it. They may
    /// be removed by now.
    pub(crate) created: Vec<PathBuf>,
}

/// The new files of a layer that somebody else may have removed from the workspace.
pub(super) struct RemovedFiles {
    overlay: OverlayFacts,
    suspects: Vec<SuspectedFile>,
    /// The numbers of the files of the workspace that the layer hides.
    hidden: BTreeSet<u64>,
}

/// A copy of a file of the workspace, at a path without a file in the workspace.
#[derive(Debug)]
pub(super) struct SuspectedFile {
    path: PathBuf,
    /// The number of the copy.
    copy: u64,
    /// The number that the overlay shows, which is that of the file in the workspace as long as it
    /// exists and the kernel remembers it.
    shown: Option<u64>,
}

impl RemovedFiles {
    pub(super) fn new(overlay: OverlayFacts) -> Self {
        Self { overlay, suspects: Vec::new(), hidden: BTreeSet::new() }
    }

    /// Remembers a file of the workspace that the layer hides.
    pub(super) fn hide(&mut self, before: &Stat) {
        if kind_of(before) != LayerEntryKind::Directory {
            self.hidden.insert(EntryStamp::of(before).inode());
        }
    }

    /// Returns whether this entry of the layer is the copy of a directory that is not in the
    /// workspace any more.
    pub(super) fn is_lost_directory(
        &self,
        upper: BorrowedFd<'_>,
        name: &CStr,
        path: &Path,
        after: &Stat,
    ) -> io::Result<bool> {
        Ok(kind_of(after) == LayerEntryKind::Directory
            && has_origin(upper, name)?
            && !self.overlay.created.iter().any(|created| created == path))
    }

    /// Returns a suspicion about a new file, before it is moved out of the layer. `lower` is the
    /// directory of the workspace, which nobody has changed after `since` if no file was removed.
    pub(super) fn find_suspect(
        &self,
        (upper, lower): (BorrowedFd<'_>, &OwnedFd),
        name: &CStr,
        path: &Path,
        after: &Stat,
        since: (i64, i64),
    ) -> io::Result<Option<SuspectedFile>> {
        if kind_of(after) != LayerEntryKind::File
            || EntryStamp::of(&fstat(lower)?).changed() <= since
            || !has_origin(upper, name)?
        {
            return Ok(None);
        }
        let parent = path.parent().unwrap_or(Path::new(""));
        let shown = self.overlay.shown.as_ref().and_then(|overlay| {
            let parent = open_below(overlay, parent).ok()?;
            let shown = statat(&parent, name, AtFlags::SYMLINK_NOFOLLOW).ok()?;
            Some(EntryStamp::of(&shown).inode())
        });
        let copy = EntryStamp::of(after).inode();
        Ok(Some(SuspectedFile { path: path.to_owned(), copy, shown }))
    }

    pub(super) fn suspect(&mut self, file: Option<SuspectedFile>) {
        self.suspects.extend(file);
    }

    /// Marks the changes of files that somebody else has removed.
    pub(super) fn mark(
        self,
        lower: &OwnedFd,
        committed: &CommittedPaths,
        found: &mut CollectedChanges,
    ) {
        let Self { mut suspects, mut hidden, .. } = self;
        if suspects.is_empty() {
            return;
        }
        let moved = committed.source_numbers();
        suspects.retain(|file| !moved.contains(&file.copy) && !file.is_shown_in(&hidden));
        if !suspects.is_empty() {
            add_removed(lower, found, &mut hidden);
        }
        let lost: BTreeSet<PathBuf> = suspects
            .into_iter()
            .filter(|file| !file.is_shown_in(&hidden))
            .map(|file| file.path)
            .collect();
        for change in &mut found.changes {
            if lost.contains(Path::new(&change.path)) {
                change.seen = SeenEntry::Lost;
            }
        }
    }
}

impl SuspectedFile {
    fn is_shown_in(&self, numbers: &BTreeSet<u64>) -> bool {
        // Without its file in the workspace, the overlay shows the number of the copy.
        self.shown.is_some_and(|shown| shown != self.copy && numbers.contains(&shown))
    }
}

/// Adds the numbers of the files in the directories of the workspace that the command removed.
fn add_removed(lower: &OwnedFd, found: &CollectedChanges, numbers: &mut BTreeSet<u64>) {
    let removed = found.changes.iter().filter(|change| change.action.removes_directory());
    let mut pending: Vec<PathBuf> = removed.map(|change| PathBuf::from(&change.path)).collect();
    let mut left = MAX_SEARCHED;
    while let Some(path) = pending.pop() {
        // A file that is not found counts as removed.
        let Ok(directory) = open_below(lower, &path) else { continue };
        for name in names_in(&directory).unwrap_or_default() {
            if left == 0 {
                return;
            }
            left -= 1;
            let Ok(status) = statat(&directory, &*name, AtFlags::SYMLINK_NOFOLLOW) else {
                continue;
            };
            if kind_of(&status) == LayerEntryKind::Directory {
                pending.push(path.join(OsStr::from_bytes(name.to_bytes())));
            } else {
                numbers.insert(EntryStamp::of(&status).inode());
            }
        }
    }
}

/// Returns whether an entry of a layer is a copy of an entry of the workspace.
fn has_origin(parent: BorrowedFd<'_>, name: &CStr) -> io::Result<bool> {
    let mut none: [u8; 0] = [];
    match lgetxattr(path_of(parent, name), ORIGIN_ATTRIBUTE, &mut none) {
        Ok(_) | Err(Errno::RANGE) => Ok(true),
        Err(Errno::NODATA | Errno::NOTSUP) => Ok(false),
        Err(error) => Err(error.into()),
    }
}
