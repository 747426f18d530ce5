//! What the checkpoints of a command have committed.
//!
//! After a checkpoint, the layer still contains the committed entries. The workspace contains their
//! copies, which these paths identify: a copy that somebody else has changed, replaced or removed
//! since is another entry. So a later checkpoint, or the end of the command, can tell the work of
//! others from its own.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{CString, OsStr};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, FileType, Stat, statat};
use rustix::io::Errno;

use super::clean::{names_in, open_below};
use super::{LayerAction, LayerChange, SeenEntry};

/// The maximum number of remembered paths.
const MAX_REMEMBERED: usize = if cfg!(test) { 2000 } else { 500_000 };

/// The status of an entry by which it is recognized.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct EntryStamp {
    inode: u64,
    /// The kind and the permissions.
    mode: u32,
    owner: (u32, u32),
    size: i64,
    /// The time of the last write, in seconds and nanoseconds since 1970.
    written: (i64, i64),
    /// The time of the last status change, in seconds and nanoseconds since 1970.
    changed: (i64, i64),
    /// Whether the entry has several names.
    is_linked: bool,
}

/// An entry that was copied out of a layer.
#[derive(Clone, Debug)]
pub(super) struct CopiedEntry {
    /// The path in the workspace.
    pub(super) path: PathBuf,
    pub(super) copy: EntryStamp,
    /// The entry in the layer.
    pub(super) source: EntryStamp,
}

/// A committed entry.
#[derive(Clone, Copy, Debug)]
struct CommittedCopy {
    /// The entry in the workspace.
    lower: EntryStamp,
    /// The entry in the layer at the time of the checkpoint.
    source: EntryStamp,
}

/// A change of a checkpoint that the host may commit.
#[derive(Debug)]
struct UnsettledChange {
    path: PathBuf,
    kind: UnsettledKind,
}

#[derive(Debug)]
enum UnsettledKind {
    /// A new entry, with its copies: the entry itself and those below it.
    New(Vec<CopiedEntry>),
    /// The entry is removed.
    Removed,
    /// This entry of the workspace gets other permissions.
    Mode { before: EntryStamp, source: EntryStamp },
}

/// The paths that the checkpoints of a command have committed.
#[derive(Debug, Default)]
pub(crate) struct CommittedPaths {
    /// When the command got its view, by the clock of the file system. An entry of the workspace
    /// whose status changed later was changed by somebody else, or by a checkpoint.
    started: (i64, i64),
    entries: BTreeMap<PathBuf, CommittedCopy>,
    /// The directories in which checkpoints have created or removed entries.
    touched: BTreeSet<PathBuf>,
    /// The changes of the last checkpoint, until the host has decided on them.
    unsettled: Vec<UnsettledChange>,
}

impl EntryStamp {
    pub(super) fn of(found: &Stat) -> Self {
        #[allow(
            clippy::useless_conversion,
            clippy::unnecessary_cast,
            reason = "the types differ by operating system"
        )]
        Self {
            inode: found.st_ino.into(),
            mode: u32::from(found.st_mode),
            owner: (found.st_uid, found.st_gid),
            size: found.st_size,
            written: (found.st_mtime.into(), found.st_mtime_nsec as i64),
            changed: (found.st_ctime.into(), found.st_ctime_nsec as i64),
            is_linked: found.st_nlink > 1,
        }
    }

    /// Returns the number of the entry.
    pub(super) fn inode(&self) -> u64 {
        self.inode
    }

    /// Returns the time of the last status change, in seconds and nanoseconds since 1970.
    pub(super) fn changed(&self) -> (i64, i64) {
        self.changed
    }

    fn is_directory(&self) -> bool {
        #[allow(clippy::useless_conversion, reason = "the types differ by operating system")]
        let kind = FileType::from_raw_mode(self.mode.into());
        kind == FileType::Directory
    }

    /// Returns whether this is the same entry in another place, where it got another change time.
    /// The size and the times of a directory change with its entries.
    fn is_moved(&self, from: &Self) -> bool {
        let identity = |stamp: &Self| (stamp.inode, stamp.mode, stamp.owner);
        let content = |stamp: &Self| (stamp.size, stamp.written);
        identity(self) == identity(from) && (self.is_directory() || content(self) == content(from))
    }

    /// Returns whether this is the same entry in the same place, without any change.
    fn is_unchanged(&self, before: &Self) -> bool {
        self.is_moved(before) && (self.is_directory() || self.changed == before.changed)
    }

    /// Returns whether this is the same entry of the workspace in the same place, without a change
    /// by others. The commit of another name of a file changes its status, too.
    fn is_own(&self, before: &Self) -> bool {
        self.is_unchanged(before) || before.is_linked && self.is_moved(before)
    }
}

impl CommittedPaths {
    /// Remembers when the command got its view.
    pub(crate) fn set_start(&mut self, started: (i64, i64)) {
        self.started = started;
    }

    /// Returns when the command got its view.
    pub(super) fn started(&self) -> (i64, i64) {
        self.started
    }

    /// Returns the numbers of the entries of the layer whose copies were committed.
    pub(super) fn source_numbers(&self) -> BTreeSet<u64> {
        self.entries.values().map(|entry| entry.source.inode).collect()
    }

    /// Returns whether a checkpoint has committed an entry at a path.
    pub(super) fn contains(&self, path: &Path) -> bool {
        self.entries.contains_key(path)
    }

    /// Returns whether this entry of the workspace is the one that a checkpoint has committed.
    pub(super) fn is_own(&self, path: &Path, found: &Stat) -> bool {
        let known = self.entries.get(path);
        known.is_some_and(|known| EntryStamp::of(found).is_own(&known.lower))
    }

    /// Returns whether an entry of the layer is the one that a checkpoint has copied, without a new
    /// name. Its content may differ.
    pub(super) fn is_same_source(&self, path: &Path, found: &Stat) -> bool {
        let known = self.entries.get(path);
        known.is_some_and(|known| EntryStamp::of(found).is_unchanged(&known.source))
    }

    /// Returns what the command has seen at a path of the workspace, at which is this entry now.
    ///
    /// # Errors
    /// A directory of the workspace cannot be read.
    pub(super) fn find_seen(
        &self,
        parent: &OwnedFd,
        path: &Path,
        found: Option<&Stat>,
    ) -> io::Result<SeenEntry> {
        if !self.is_involved(path) {
            return Ok(SeenEntry::AtStart);
        }
        let Some(found) = found else {
            // Somebody else has removed what a checkpoint had committed.
            let is_lost = self.contains(path);
            return Ok(if is_lost { SeenEntry::Lost } else { SeenEntry::AtStart });
        };
        let top = EntryStamp::of(found);
        if !self.knows(path, &top) {
            return Ok(SeenEntry::Lost);
        }
        let mut newest = top.changed;
        let mut pending = Vec::new();
        if top.is_directory() {
            let name = Path::new(path.file_name().unwrap_or_default());
            pending.push((open_below(parent, name)?, path.to_owned()));
        }
        while let Some((directory, path)) = pending.pop() {
            for name in names_in(&directory)? {
                let found = statat(&directory, &*name, AtFlags::SYMLINK_NOFOLLOW)?;
                let stamp = EntryStamp::of(&found);
                let name = OsStr::from_bytes(name.to_bytes());
                let inner = path.join(name);
                if !self.knows(&inner, &stamp) {
                    return Ok(SeenEntry::Lost);
                }
                newest = newest.max(stamp.changed);
                if stamp.is_directory() {
                    pending.push((open_below(&directory, Path::new(name))?, inner));
                }
            }
        }
        Ok(SeenEntry::AtCheckpoint(newest))
    }

    /// Returns whether an entry of the workspace is as the command has seen it.
    fn knows(&self, path: &Path, found: &EntryStamp) -> bool {
        if let Some(known) = self.entries.get(path) {
            return found.is_own(&known.lower);
        }
        found.changed <= self.started || (found.is_directory() && self.touched.contains(path))
    }

    /// Returns whether a checkpoint has changed something at or below a path.
    fn is_involved(&self, path: &Path) -> bool {
        let first = self.entries.range(path.to_owned()..).next().map(|(known, _)| known);
        let touched = self.touched.range(path.to_owned()..).next();
        [first, touched].into_iter().flatten().any(|known| known.starts_with(path))
    }

    /// Remembers the changes of a checkpoint until the host has decided on them. `modes` are the
    /// entries of the workspace and of the layer that get other permissions.
    ///
    /// # Errors
    /// There are too many paths.
    pub(super) fn expect(
        &mut self,
        changes: &[LayerChange],
        copied: Vec<CopiedEntry>,
        modes: &BTreeMap<PathBuf, (EntryStamp, EntryStamp)>,
    ) -> io::Result<()> {
        if self.entries.len() + copied.len() > MAX_REMEMBERED {
            return Err(io::Error::other(format!(
                "the checkpoints of the command have more than {MAX_REMEMBERED} files and \
                    directories"
            )));
        }
        let mut by_path: BTreeMap<PathBuf, CopiedEntry> =
            copied.into_iter().map(|entry| (entry.path.clone(), entry)).collect();
        self.unsettled.clear();
        for change in changes {
            let path = PathBuf::from(&change.path);
            let kind = match &change.action {
                LayerAction::Create(_) | LayerAction::Replace { .. } => {
                    let mut inner = by_path.split_off(&path);
                    let next = inner.keys().find(|inner| !inner.starts_with(&path)).cloned();
                    if let Some(next) = next {
                        by_path.append(&mut inner.split_off(&next));
                    }
                    UnsettledKind::New(inner.into_values().collect())
                }
                LayerAction::Remove { .. } => UnsettledKind::Removed,
                LayerAction::SetMode { .. } => match modes.get(&path) {
                    Some((before, source)) => {
                        UnsettledKind::Mode { before: *before, source: *source }
                    }
                    None => continue,
                },
            };
            self.unsettled.push(UnsettledChange { path, kind });
        }
        Ok(())
    }

    /// Returns whether the host has not decided yet on the changes of the last checkpoint.
    pub(crate) fn is_unsettled(&self) -> bool {
        !self.unsettled.is_empty()
    }

    /// Finds out which changes of the last checkpoint the host has committed.
    pub(crate) fn settle(&mut self, lower: &OwnedFd) {
        for UnsettledChange { path, kind } in std::mem::take(&mut self.unsettled) {
            let Ok(found) = stat_below(lower, &path) else { continue };
            match kind {
                UnsettledKind::Removed if found.is_none() => {
                    self.forget(&path);
                    self.touch_parent(&path);
                }
                UnsettledKind::New(copied) => {
                    let top = copied.iter().find(|entry| entry.path == path);
                    let is_committed =
                        top.zip(found).is_some_and(|(top, found)| found.is_moved(&top.copy));
                    if is_committed {
                        self.forget(&path);
                        self.touch_parent(&path);
                        self.remember(lower, copied);
                    }
                }
                UnsettledKind::Mode { before, source } => {
                    let Some(found) = found.filter(|found| found.inode == before.inode) else {
                        continue;
                    };
                    let is_committed = found.mode == source.mode
                        && EntryStamp { mode: before.mode, ..found }.is_moved(&before);
                    if is_committed && found.is_directory() && !self.contains(&path) {
                        self.touched.insert(path);
                    } else if is_committed {
                        self.entries.insert(path, CommittedCopy { lower: found, source });
                    }
                }
                UnsettledKind::Removed => {}
            }
        }
    }

    /// Remembers those of these entries that are in the workspace: the host leaves out some.
    fn remember(&mut self, lower: &OwnedFd, copied: Vec<CopiedEntry>) {
        for CopiedEntry { path, copy, source } in copied {
            if let Ok(Some(found)) = stat_below(lower, &path)
                && found.is_moved(&copy)
            {
                self.entries.insert(path, CommittedCopy { lower: found, source });
            }
        }
    }

    fn touch_parent(&mut self, path: &Path) {
        if let Some(parent) = path.parent().filter(|parent| !self.contains(parent)) {
            self.touched.insert(parent.to_owned());
        }
    }

    /// Forgets a path with everything below it.
    fn forget(&mut self, path: &Path) {
        let is_below = |known: &&PathBuf| known.starts_with(path);
        let entries = self.entries.range(path.to_owned()..).map(|(known, _)| known);
        let entries: Vec<PathBuf> = entries.take_while(is_below).cloned().collect();
        let touched = self.touched.range(path.to_owned()..);
        let touched: Vec<PathBuf> = touched.take_while(is_below).cloned().collect();
        for known in entries {
            self.entries.remove(&known);
        }
        for known in touched {
            self.touched.remove(&known);
        }
    }
}

/// Returns the status of an entry below a directory, without following links; `None` if there is
/// none.
fn stat_below(top: impl AsFd, path: &Path) -> io::Result<Option<EntryStamp>> {
    let parent = path.parent().unwrap_or(Path::new(""));
    let name = CString::new(path.file_name().unwrap_or_default().as_bytes())?;
    let is_missing = |error: &io::Error| error.kind() == io::ErrorKind::NotFound;
    let parent = match open_below(top, parent) {
        Ok(parent) => parent,
        Err(error) if is_missing(&error) => return Ok(None),
        Err(error) => return Err(error),
    };
    match statat(&parent, &*name, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(found) => Ok(Some(EntryStamp::of(&found))),
        Err(Errno::NOENT) => Ok(None),
        Err(error) => Err(error.into()),
    }
}
