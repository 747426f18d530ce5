//! Splits the change of a directory into the changes of the entries in it, so that some of them can
//! be discarded.

use std::collections::BTreeSet;
use std::ffi::{CStr, CString, OsStr};
use std::io;
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, Mode, Stat, chmodat, fchmod, fstat, renameat, statat};

use super::clean::{EntrySize, names_in, open_below};
use super::collect::{
    DirectoryView, LayerName, find_status, has_same_stamp, kind_of, modes_of, open_directory,
};
use super::{CommandChanges, LayerAction, LayerChange, LayerEntry, LayerEntryKind, LayerPaths};

/// The maximum number of changes into which one is split.
const MAX_PARTS: usize = 100_000;
/// The maximum number of entries below new directories whose sizes are added up.
const MAX_MEASURED: usize = 1_000_000;
/// The permission of the owner to list, enter and change a directory.
const OWNER_ALL: u32 = 0o700;

/// An entry of the workspace that stays as it is although the command changed it, because something
/// below it has to stay or because no change can name it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct UnchangedEntry {
    /// The path in the workspace, readable.
    pub path: String,
    /// Why it stays.
    pub reason: &'static str,
}

/// A planned part of the change.
struct PlannedPart {
    path: String,
    action: PartAction,
}

struct TakenEntry {
    from: PathBuf,
    status: Stat,
    before: Option<Stat>,
    is_same: bool,
    size: EntrySize,
}

enum PartAction {
    /// Takes a new entry out of the new directory.
    Take(Box<TakenEntry>),
    /// A change without a new entry.
    Plain(LayerAction),
}

struct ChangeSplitter<'a> {
    workspace: OwnedFd,
    entries: OwnedFd,
    kept: &'a BTreeSet<String>,
    parts: Vec<PlannedPart>,
    unchanged: Vec<UnchangedEntry>,
    /// The new directories out of which entries are taken.
    opened: Vec<PathBuf>,
    left: usize,
}

impl CommandChanges {
    /// Replaces the change with this number by changes of the entries of its old and its new
    /// directory, except for the `kept` paths of the workspace: nothing changes at and below them.
    /// Returns further entries that stay as they are, or `None` if the change cannot be split: it
    /// does not remove a directory or replace it by another one, a directory cannot be read, or
    /// there are too many parts.
    ///
    /// # Errors
    /// An entry cannot be moved in the layer; then no change may be committed.
    pub fn split(
        &mut self,
        number: usize,
        workspace: &Path,
        kept: &BTreeSet<String>,
    ) -> io::Result<Option<Vec<UnchangedEntry>>> {
        let Some(change) = self.changes.get(number).filter(|change| change.can_be_split()) else {
            return Ok(None);
        };
        let entries = open_directory(&LayerPaths::of(self.layer.path()).entries)?;
        let mut splitter = ChangeSplitter {
            workspace: open_directory(workspace)?,
            entries,
            kept,
            parts: Vec::new(),
            unchanged: Vec::new(),
            opened: Vec::new(),
            left: MAX_MEASURED,
        };
        if splitter.plan(change).is_err() {
            return Ok(None);
        }
        let split = splitter.make(change)?;
        self.changes.remove(number);
        self.changes.extend(split);
        self.changes.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(Some(splitter.unchanged))
    }
}

impl LayerChange {
    fn can_be_split(&self) -> bool {
        let is_directory = |entry: &LayerEntry| entry.kind == LayerEntryKind::Directory;
        self.action.removes_directory() && self.action.entry().is_none_or(is_directory)
    }
}

impl ChangeSplitter<'_> {
    fn plan(&mut self, change: &LayerChange) -> io::Result<()> {
        let top = change.action.entry().map(|entry| PathBuf::from(entry.number.to_string()));
        if let Some(top) = &top {
            let after = fstat(open_below(&self.entries, top)?)?;
            let before = fstat(open_below(&self.workspace, Path::new(&change.path))?)?;
            self.plan_mode(&change.path, &before, &after);
        }
        let mut pending = vec![(PathBuf::from(&change.path), top)];
        while let Some((path, new)) = pending.pop() {
            self.plan_directory(&path, new, &mut pending)?;
        }
        Ok(())
    }

    fn plan_directory(
        &mut self,
        path: &Path,
        new: Option<PathBuf>,
        pending: &mut Vec<(PathBuf, Option<PathBuf>)>,
    ) -> io::Result<()> {
        let lower = open_below(&self.workspace, path)?;
        let upper = new.as_ref().map(|new| open_below(&self.entries, new)).transpose()?;
        let mut names: BTreeSet<CString> = names_in(&lower)?.into_iter().collect();
        if let Some(upper) = &upper {
            names.extend(names_in(upper)?);
        }
        self.opened.extend(new.clone());
        for name in names {
            if self.parts.len() >= MAX_PARTS {
                return Err(io::Error::other("it has too many entries"));
            }
            let os_name = OsStr::from_bytes(name.to_bytes());
            let inner = path.join(os_name);
            let shown = inner.to_string_lossy().into_owned();
            if self.kept.contains(&shown) {
                continue;
            }
            let Some(text) = inner.to_str().map(str::to_owned) else {
                self.unchanged
                    .push(UnchangedEntry { path: shown, reason: "its name is not UTF-8" });
                continue;
            };
            let before = find_status(&lower, &name)?;
            let after = match &upper {
                Some(upper) => find_status(upper, &name)?,
                None => None,
            };
            let from = new.as_ref().map(|new| new.join(os_name));
            let keeps_below = self.keeps_below(&text);
            let is_directory = |found: &Option<Stat>| {
                found.as_ref().map(kind_of) == Some(LayerEntryKind::Directory)
            };
            match (before, after) {
                (Some(_), None) if keeps_below => pending.push((inner, None)),
                (Some(before), Some(after)) if keeps_below && is_directory(&Some(after)) => {
                    self.plan_mode(&text, &before, &after);
                    pending.push((inner, from));
                }
                (Some(_), Some(_)) if keeps_below => self.unchanged.push(UnchangedEntry {
                    path: shown,
                    reason: "an entry in the directory at its place has to stay",
                }),
                (Some(before), None) => {
                    let action = LayerAction::Remove { before: kind_of(&before) };
                    self.parts.push(PlannedPart { path: text, action: PartAction::Plain(action) });
                }
                (before, Some(after)) => {
                    let (Some(from), Some(upper)) = (from, &upper) else { continue };
                    let layers = (upper, &lower);
                    self.plan_new(text, (from, &name), layers, (before, after))?;
                }
                (None, None) => {}
            }
        }
        Ok(())
    }

    fn plan_new(
        &mut self,
        path: String,
        (from, name): (PathBuf, &CStr),
        (upper, lower): (&OwnedFd, &OwnedFd),
        (before, after): (Option<Stat>, Stat),
    ) -> io::Result<()> {
        let mut is_same = false;
        if let Some(before) = &before {
            let view = DirectoryView::Complete;
            let place = LayerName { upper, lower, name, path: PathBuf::from(&path), view };
            is_same =
                place.has_same_content(before, &after)? && modes_of(before) == modes_of(&after);
            if is_same && has_same_stamp(before, &after) {
                return Ok(());
            }
        }
        let size = self.measure(&from, &after)?;
        let taken = TakenEntry { from, status: after, before, is_same, size };
        let action = PartAction::Take(Box::new(taken));
        self.parts.push(PlannedPart { path, action });
        Ok(())
    }

    fn plan_mode(&mut self, path: &str, before: &Stat, after: &Stat) {
        let (kind, before, after) = (kind_of(before), modes_of(before), modes_of(after));
        if before != after {
            let action = PartAction::Plain(LayerAction::SetMode { kind, before, after });
            self.parts.push(PlannedPart { path: path.to_owned(), action });
        }
    }

    /// Returns whether something below a path has to stay.
    fn keeps_below(&self, path: &str) -> bool {
        let prefix = format!("{path}/");
        let next = self.kept.range(prefix.clone()..).next();
        next.is_some_and(|kept| kept.starts_with(&prefix))
    }

    /// Returns the size of a new entry.
    fn measure(&mut self, from: &Path, found: &Stat) -> io::Result<EntrySize> {
        let bytes = |found: &Stat| match kind_of(found) {
            LayerEntryKind::File => u64::try_from(found.st_size).unwrap_or(0),
            _ => 0,
        };
        let mut size = EntrySize { bytes: bytes(found), entries: 0 };
        if kind_of(found) != LayerEntryKind::Directory {
            return Ok(size);
        }
        let mut pending = vec![from.to_owned()];
        while let Some(path) = pending.pop() {
            let directory = open_below(&self.entries, &path)?;
            for name in names_in(&directory)? {
                self.left = self
                    .left
                    .checked_sub(1)
                    .ok_or_else(|| io::Error::other("it has too many entries"))?;
                let found = statat(&directory, &*name, AtFlags::SYMLINK_NOFOLLOW)?;
                size.entries += 1;
                size.bytes = size.bytes.saturating_add(bytes(&found));
                if kind_of(&found) == LayerEntryKind::Directory {
                    pending.push(path.join(OsStr::from_bytes(name.to_bytes())));
                }
            }
        }
        Ok(size)
    }

    /// Moves the new entries out of their directories, and returns the changes.
    fn make(&mut self, change: &LayerChange) -> io::Result<Vec<LayerChange>> {
        for path in &self.opened {
            // Only the entries of this directory are committed.
            let directory = open_below(&self.entries, path)?;
            let mode = modes_of(&fstat(&directory)?);
            fchmod(&directory, mode_of(mode | OWNER_ALL))?;
        }
        let mut next = self.next_number()?;
        let mut split = Vec::with_capacity(self.parts.len());
        for PlannedPart { path, action } in std::mem::take(&mut self.parts) {
            let action = match action {
                PartAction::Plain(action) => action,
                PartAction::Take(taken) => {
                    let TakenEntry { from, status, before, is_same, size } = *taken;
                    let after = self.take(&from, &status, size, next)?;
                    next += 1;
                    match before {
                        None => LayerAction::Create(after),
                        Some(before) => {
                            LayerAction::Replace { before: kind_of(&before), after, is_same }
                        }
                    }
                }
            };
            split.push(LayerChange { path, action, seen: change.seen });
        }
        Ok(split)
    }

    fn take(
        &self,
        from: &Path,
        status: &Stat,
        size: EntrySize,
        number: usize,
    ) -> io::Result<LayerEntry> {
        let to = number.to_string();
        let (kind, mode) = (kind_of(status), modes_of(status));
        // Moving a directory needs the permission to write it.
        let is_closed = kind == LayerEntryKind::Directory && mode & OWNER_ALL != OWNER_ALL;
        if is_closed {
            chmodat(&self.entries, from, mode_of(mode | OWNER_ALL), AtFlags::empty())?;
        }
        renameat(&self.entries, from, &self.entries, &*to)?;
        if is_closed {
            chmodat(&self.entries, &*to, mode_of(mode), AtFlags::empty())?;
        }
        Ok(LayerEntry { number, kind, mode, size: size.bytes, entries: size.entries })
    }

    /// Returns a number that no entry has.
    fn next_number(&self) -> io::Result<usize> {
        let names = names_in(self.entries.as_fd())?;
        let numbers = names.iter().filter_map(|name| name.to_str().ok()?.parse::<usize>().ok());
        Ok(numbers.max().map_or(0, |last| last + 1))
    }
}

fn mode_of(mode: u32) -> Mode {
    #[allow(clippy::useless_conversion, reason = "the types differ by operating system")]
    Mode::from_raw_mode(mode.try_into().unwrap_or_default())
}
