//! Collects the changes from the layer of a command that has ended, or is paused.
//!
//! The supervisor does this with its privileges in the user namespace, because a command can leave
//! directories that its user cannot enter.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{CStr, CString, OsStr};
use std::fs::File;
use std::io::{self, Read as _};
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, Stat, openat, renameat, statat};
use rustix::io::Errno;

use super::clean::{
    EntrySize, attributes, clean_entry, is_opaque, is_whiteout, make_opaque, names_in, open_below,
};
use super::committed::{CommittedPaths, EntryStamp};
use super::copy::EntryCopier;
use super::removed::RemovedFiles;
use super::{
    CollectedChanges, LayerAction, LayerChange, LayerEntry, LayerEntryKind, LayerPaths,
    OverlayFacts, SeenEntry,
};
use cofferdam_policy::terminal_escape::escape_line;

/// The maximum number of changed paths of one command. A new directory counts as one.
const MAX_CHANGES: usize = if cfg!(test) { 200 } else { 100_000 };
/// The number of discarded paths that are named.
const MAX_NAMED_PATHS: usize = 40;
/// The maximum length of a path in a notice, in characters.
const MAX_SHOWN_PATH_LEN: usize = 200;
/// The permission bits, with the set-ID bits and the sticky bit.
pub(super) const MODE_BITS: u32 = 0o7777;

/// Moves the new entries of a layer to its directory of entries, and returns all changes that were
/// not committed yet, sorted by path. `lower` is the workspace.
///
/// Nothing may use the layer meanwhile, so the overlay must be unmounted.
///
/// # Errors
/// The layer cannot be read completely, or has more than 100,000 changes.
pub(crate) fn collect_changes(
    paths: &LayerPaths,
    (lower, overlay): (OwnedFd, OverlayFacts),
    committed: &CommittedPaths,
) -> io::Result<CollectedChanges> {
    let entries = open_directory(&paths.entries)?;
    let below = (lower, overlay);
    let collector = ChangeCollector::open(paths, below, entries, committed, None)?;
    collector.collect().map(|collected| collected.found)
}

/// Copies the new entries of a layer to another directory of entries, and returns all changes that
/// were not committed yet, sorted by path. `committed` expects the decision about them.
///
/// The overlay stays mounted, but nothing may change it meanwhile.
///
/// # Errors
/// The layer cannot be read completely, or reaches a limit of checkpoints.
pub(crate) fn copy_changes(
    paths: &LayerPaths,
    below: (OwnedFd, OverlayFacts),
    entries: &Path,
    committed: &mut CommittedPaths,
    mut copier: EntryCopier<'_>,
) -> io::Result<CollectedChanges> {
    let entries = open_directory(entries)?;
    let copying = Some(&mut copier);
    let collector = ChangeCollector::open(paths, below, entries, committed, copying)?;
    let Collected { found, modes } = collector.collect()?;
    committed.expect(&found.changes, copier.copied, &modes)?;
    Ok(found)
}

struct ChangeCollector<'a, 'c> {
    upper: OwnedFd,
    lower: OwnedFd,
    entries: OwnedFd,
    /// What the checkpoints of the command have committed.
    committed: &'a CommittedPaths,
    /// Copies new entries; `None` to move them.
    copier: Option<&'a mut EntryCopier<'c>>,
    collected: Collected,
    /// Directories that exist in both layers and were not visited yet.
    pending: Vec<(PathBuf, DirectoryView)>,
    next_number: usize,
    /// The numbers of the files with several names that were moved.
    moved_links: BTreeSet<u64>,
    /// Files with several names that are as a checkpoint has committed them.
    known_links: Vec<KnownLink>,
    removed: RemovedFiles,
    /// The number of changes so far, also of those that cannot be committed.
    visited: usize,
    /// The discarded changes without a notice of their own.
    unnamed: usize,
}

/// A committed name of a file with several names.
struct KnownLink {
    directory: PathBuf,
    name: CString,
    inode: u64,
}

/// The changes that a collector has found.
#[derive(Default)]
struct Collected {
    found: CollectedChanges,
    /// The entries of the workspace and of the layer that differ only in their permissions.
    modes: BTreeMap<PathBuf, (EntryStamp, EntryStamp)>,
}

/// How a directory of the layer relates to the directory below it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DirectoryView {
    /// The directory below shows through.
    Merged,
    /// The directory of the layer is complete: a checkpoint has committed it.
    Complete,
}

/// One name in a directory that exists in both layers.
pub(super) struct LayerName<'a> {
    pub(super) upper: &'a OwnedFd,
    pub(super) lower: &'a OwnedFd,
    pub(super) name: &'a CStr,
    pub(super) path: PathBuf,
    pub(super) view: DirectoryView,
}

impl<'a, 'c> ChangeCollector<'a, 'c> {
    fn open(
        paths: &LayerPaths,
        (lower, overlay): (OwnedFd, OverlayFacts),
        entries: OwnedFd,
        committed: &'a CommittedPaths,
        copier: Option<&'a mut EntryCopier<'c>>,
    ) -> io::Result<Self> {
        Ok(Self {
            upper: open_directory(&paths.upper)?,
            lower,
            entries,
            committed,
            copier,
            collected: Collected::default(),
            pending: vec![(PathBuf::new(), DirectoryView::Merged)],
            next_number: 0,
            moved_links: BTreeSet::new(),
            known_links: Vec::new(),
            removed: RemovedFiles::new(overlay),
            visited: 0,
            unnamed: 0,
        })
    }

    fn collect(mut self) -> io::Result<Collected> {
        while let Some((directory, view)) = self.pending.pop() {
            self.visit(&directory, view)?;
        }
        // If another name of a file is new, for example in a directory with another name, all of
        // them become names of one new file.
        for KnownLink { directory, name, inode } in std::mem::take(&mut self.known_links) {
            let is_taken = match &self.copier {
                Some(copier) => copier.linked.contains_key(&inode),
                None => self.moved_links.contains(&inode),
            };
            if is_taken {
                self.replace_link(&directory, &name)?;
            }
        }
        let mut collected = self.collected;
        self.removed.mark(&self.lower, self.committed, &mut collected.found);
        if self.unnamed > 0 {
            let more = self.unnamed;
            let verb = if self.copier.is_some() { "not committed" } else { "discarded" };
            let notice = format!("{more} more changes of such names were {verb}");
            collected.found.notices.push(notice);
        }
        collected.found.changes.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(collected)
    }

    fn visit(&mut self, directory: &Path, view: DirectoryView) -> io::Result<()> {
        let upper = open_below(&self.upper, directory)?;
        let lower = open_below(&self.lower, directory)?;
        let mut names = names_in(&upper)?;
        if view == DirectoryView::Complete {
            let known: BTreeSet<CString> = names.iter().cloned().collect();
            names.extend(names_in(&lower)?.into_iter().filter(|name| !known.contains(name)));
        }
        for name in names {
            let path = directory.join(OsStr::from_bytes(name.to_bytes()));
            let place = LayerName { upper: &upper, lower: &lower, name: &name, path, view };
            let Some(change) = self.find_change(&place)? else { continue };
            self.add_change(place.path, change)?;
        }
        Ok(())
    }

    fn add_change(&mut self, path: PathBuf, change: FoundChange) -> io::Result<()> {
        self.visited += 1;
        if self.visited > MAX_CHANGES {
            let problem = format!("the command changed more than {MAX_CHANGES} paths");
            return Err(io::Error::other(problem));
        }
        let FoundChange { action, seen } = change;
        let found = &mut self.collected.found;
        match path.into_os_string().into_string() {
            Ok(path) => found.changes.push(LayerChange { path, action, seen }),
            Err(path) if found.notices.len() < MAX_NAMED_PATHS => {
                let verb = if self.copier.is_some() { "not committed" } else { "discarded" };
                found.notices.push(format!(
                    "the change of `{}` was {verb}, because its name is not UTF-8",
                    escape_line(&path.to_string_lossy(), MAX_SHOWN_PATH_LEN)
                ));
            }
            Err(_) => self.unnamed += 1,
        }
        Ok(())
    }

    /// Replaces a name of a file by a name of the same file in the layer.
    fn replace_link(&mut self, directory: &Path, name: &CStr) -> io::Result<()> {
        let (upper, lower) =
            (open_below(&self.upper, directory)?, open_below(&self.lower, directory)?);
        let path = directory.join(OsStr::from_bytes(name.to_bytes()));
        let before = statat(&lower, name, AtFlags::SYMLINK_NOFOLLOW)?;
        let after = statat(&upper, name, AtFlags::SYMLINK_NOFOLLOW)?;
        let seen = self.committed.find_seen(&lower, &path, Some(&before))?;
        let view = DirectoryView::Merged;
        let place = LayerName { upper: &upper, lower: &lower, name, path, view };
        let entry = self.take_entry(&place, &after)?;
        let action = LayerAction::Replace { before: kind_of(&before), after: entry, is_same: true };
        self.add_change(place.path, FoundChange { action, seen })
    }

    fn find_change(&mut self, place: &LayerName<'_>) -> io::Result<Option<FoundChange>> {
        if let Some(copier) = &mut self.copier {
            copier.check_time()?;
        }
        let LayerName { upper, lower, name, path, view } = place;
        let before = find_status(lower, name)?;
        if let Some(before) = &before {
            self.removed.hide(before);
        }
        let after = match find_status(upper, name)? {
            Some(after) if !is_whiteout(&after) => after,
            Some(_) | None => {
                // What a command has never seen in a directory of its own belongs to somebody else.
                let is_foreign = *view == DirectoryView::Complete && !self.committed.contains(path);
                let Some(before) = before.filter(|_| !is_foreign) else { return Ok(None) };
                let seen = self.committed.find_seen(lower, path, Some(&before))?;
                let action = LayerAction::Remove { before: kind_of(&before) };
                return Ok(Some(FoundChange { action, seen }));
            }
        };
        if *view == DirectoryView::Merged
            && before.as_ref().map(kind_of) != Some(LayerEntryKind::Directory)
            && self.removed.is_lost_directory(upper.as_fd(), name, path, &after)?
        {
            // The directory of the workspace is gone, so what the command changed in it has no
            // place.
            let (kind, mode) = (LayerEntryKind::Directory, modes_of(&after));
            let action = LayerAction::SetMode { kind, before: mode, after: mode };
            return Ok(Some(FoundChange { action, seen: SeenEntry::Lost }));
        }
        let Some(before) = before else { return self.find_new_entry(place, &after).map(Some) };
        if let Some(inner) = self.find_common_directory(place, &before, &after)? {
            self.pending.push((path.clone(), inner));
            return self.find_mode_change(place, &before, &after);
        }
        if self.is_same_special_entry(place, &before, &after) {
            return Ok(None);
        }
        let has_same_content = place.has_same_content(&before, &after)?;
        // A file is copied to the layer when a program opens it for writing.
        if has_same_content && has_same_stamp(&before, &after) {
            if after.st_nlink == 1 {
                return self.find_mode_change(place, &before, &after);
            }
            // A file with several names in the layer may have got one of them from the command.
            if self.is_committed(path, &before, &after) {
                let directory = path.parent().unwrap_or(Path::new("")).to_owned();
                let (name, inode) = ((*name).to_owned(), after.st_ino);
                self.known_links.push(KnownLink { directory, name, inode });
                return Ok(None);
            }
        }
        let seen = self.committed.find_seen(lower, path, Some(&before))?;
        let entry = self.take_entry(place, &after)?;
        let is_same = has_same_content && modes_of(&before) == modes_of(&after);
        let action = LayerAction::Replace { before: kind_of(&before), after: entry, is_same };
        Ok(Some(FoundChange { action, seen }))
    }

    fn find_new_entry(&mut self, place: &LayerName<'_>, after: &Stat) -> io::Result<FoundChange> {
        let LayerName { upper, lower, name, path, view } = place;
        let seen = self.committed.find_seen(lower, path, None)?;
        // A directory that a checkpoint has committed is the command's own.
        if *view == DirectoryView::Merged {
            let (layers, since) = ((upper.as_fd(), *lower), self.committed.started());
            let suspect = self.removed.find_suspect(layers, name, path, after, since)?;
            self.removed.suspect(suspect);
        }
        Ok(FoundChange { action: LayerAction::Create(self.take_entry(place, after)?), seen })
    }

    /// Returns how two directories relate if the entries in them are compared one by one.
    fn find_common_directory(
        &self,
        place: &LayerName<'_>,
        before: &Stat,
        after: &Stat,
    ) -> io::Result<Option<DirectoryView>> {
        if [before, after].map(kind_of) != [LayerEntryKind::Directory; 2] {
            return Ok(None);
        }
        let is_merged =
            place.view == DirectoryView::Merged && !is_opaque(place.upper.as_fd(), place.name)?;
        if is_merged {
            return Ok(Some(DirectoryView::Merged));
        }
        let is_own = self.committed.is_own(&place.path, before);
        Ok(is_own.then_some(DirectoryView::Complete))
    }

    /// Returns whether both entries are the same link or special file, which a checkpoint has
    /// committed.
    fn is_same_special_entry(&self, place: &LayerName<'_>, before: &Stat, after: &Stat) -> bool {
        let kinds = [before, after].map(kind_of);
        kinds[0] == kinds[1]
            && !matches!(kinds[0], LayerEntryKind::File | LayerEntryKind::Directory)
            && self.is_committed(&place.path, before, after)
    }

    /// Returns whether the entry of the workspace is the copy that a checkpoint has committed, and
    /// that of the layer is the one that was copied. The content of a file may differ.
    fn is_committed(&self, path: &Path, before: &Stat, after: &Stat) -> bool {
        self.committed.is_own(path, before) && self.committed.is_same_source(path, after)
    }

    fn find_mode_change(
        &mut self,
        place: &LayerName<'_>,
        before: &Stat,
        after: &Stat,
    ) -> io::Result<Option<FoundChange>> {
        let (old, new) = (modes_of(before), modes_of(after));
        if old == new {
            return Ok(None);
        }
        let seen = match kind_of(before) {
            // Its entries are other changes.
            LayerEntryKind::Directory => SeenEntry::AtStart,
            _ => self.committed.find_seen(place.lower, &place.path, Some(before))?,
        };
        let stamps = (EntryStamp::of(before), EntryStamp::of(after));
        self.collected.modes.insert(place.path.clone(), stamps);
        let action = LayerAction::SetMode { kind: kind_of(before), before: old, after: new };
        Ok(Some(FoundChange { action, seen }))
    }

    /// Moves or copies a new entry out of the layer.
    fn take_entry(&mut self, place: &LayerName<'_>, found: &Stat) -> io::Result<LayerEntry> {
        let number = self.next_number;
        self.next_number += 1;
        let name = CString::new(number.to_string())?;
        let EntrySize { bytes, entries } = match &mut self.copier {
            None => {
                renameat(place.upper, place.name, &self.entries, &*name)?;
                clean_entry(self.entries.as_fd(), &name, &mut self.moved_links)?
            }
            Some(copier) => {
                let source = (place.upper.as_fd(), place.name);
                // Otherwise the overlay would show the committed directory through this one.
                if kind_of(found) == LayerEntryKind::Directory {
                    make_opaque(source.0, source.1)?;
                }
                copier.copy_entry(source, found, (self.entries.as_fd(), &name), &place.path)?
            }
        };
        Ok(LayerEntry { number, kind: kind_of(found), mode: modes_of(found), size: bytes, entries })
    }
}

/// A change of one name.
struct FoundChange {
    action: LayerAction,
    seen: SeenEntry,
}

/// Returns the status of an entry, or `None` if there is none.
pub(super) fn find_status(directory: &OwnedFd, name: &CStr) -> io::Result<Option<Stat>> {
    match statat(directory, name, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(found) => Ok(Some(found)),
        Err(Errno::NOENT) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Returns the permissions of an entry.
pub(super) fn modes_of(found: &Stat) -> u32 {
    found.st_mode & MODE_BITS
}

impl LayerName<'_> {
    /// Returns whether both entries are files with the same content and attributes.
    pub(super) fn has_same_content(&self, before: &Stat, after: &Stat) -> io::Result<bool> {
        let are_files =
            [before, after].map(kind_of).iter().all(|kind| *kind == LayerEntryKind::File);
        if !are_files || before.st_size != after.st_size {
            return Ok(false);
        }
        if attributes(self.lower.as_fd(), self.name)? != attributes(self.upper.as_fd(), self.name)?
        {
            return Ok(false);
        }
        // A command can set the time of a file that it has changed.
        let open = |directory: &OwnedFd| {
            let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
            openat(directory, self.name, flags, Mode::empty()).map(File::from)
        };
        have_same_bytes(open(self.lower)?, open(self.upper)?)
    }
}

/// Returns whether the owner, the group and the time of the last write are the same.
pub(super) fn has_same_stamp(before: &Stat, after: &Stat) -> bool {
    let stamp = |found: &Stat| (found.st_uid, found.st_gid, found.st_mtime, found.st_mtime_nsec);
    stamp(before) == stamp(after)
}

fn have_same_bytes(mut one: File, mut other: File) -> io::Result<bool> {
    let (mut left, mut right) = (vec![0; 64 << 10], vec![0; 64 << 10]);
    loop {
        let count = one.read(&mut left)?;
        if count == 0 {
            return Ok(other.read(&mut right[..1])? == 0);
        }
        match other.read_exact(&mut right[..count]) {
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(false),
            read => read?,
        }
        if left[..count] != right[..count] {
            return Ok(false);
        }
    }
}

pub(super) fn kind_of(found: &Stat) -> LayerEntryKind {
    match FileType::from_raw_mode(found.st_mode) {
        FileType::RegularFile => LayerEntryKind::File,
        FileType::Directory => LayerEntryKind::Directory,
        FileType::Symlink => LayerEntryKind::Link,
        _ => LayerEntryKind::Special,
    }
}

pub(crate) fn open_directory(path: &Path) -> io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    Ok(openat(CWD, path, flags, Mode::empty())?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_layer_with_too_many_changes_is_an_error_and_a_new_directory_is_one_change() {
        let [layer, other, workspace] = [(); 3].map(|()| tempfile::tempdir().expect("a directory"));
        let [paths, others] = [&layer, &other].map(|layer| LayerPaths::of(layer.path()));
        for path in [&paths.upper, &paths.entries, &others.upper, &others.entries] {
            std::fs::create_dir(path).expect("created");
        }
        let fill = |directory: &Path| {
            std::fs::create_dir_all(directory).expect("created");
            for number in 0..=MAX_CHANGES {
                std::fs::write(directory.join(format!("f{number}")), "").expect("written");
            }
        };
        let collect = |paths: &LayerPaths| {
            let lower = open_directory(workspace.path()).expect("it is opened");
            let below = (lower, OverlayFacts::default());
            collect_changes(paths, below, &CommittedPaths::default())
        };
        fill(&paths.upper.join("new"));
        let found = collect(&paths).expect("collected");
        let [change] = found.changes.as_slice() else { panic!("{found:?}") };
        assert_eq!(change.action.entry().map(|entry| entry.entries), Some(MAX_CHANGES as u64 + 1));
        fill(&others.upper);
        let problem = collect(&others).expect_err("too many");
        assert!(problem.to_string().contains("changed more than"), "{problem}");
    }
}
