//! Collects the changes from the layer of a command that has ended.
//!
//! The supervisor does this with its privileges in the user namespace, because a command can leave
//! directories that its user cannot enter.

use std::ffi::{CStr, CString, OsStr};
use std::fs::File;
use std::io::{self, Read as _};
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, Stat, openat, renameat, statat};
use rustix::io::Errno;

use super::clean::{
    EntrySize, attributes, clean_entry, is_opaque, is_whiteout, names_in, open_below,
};
use super::{CollectedChanges, LayerAction, LayerChange, LayerEntry, LayerEntryKind, LayerPaths};
use cofferdam_policy::terminal_escape::escape_line;

/// The maximum number of changed paths of one command. A new directory counts as one.
const MAX_CHANGES: usize = if cfg!(test) { 200 } else { 100_000 };
/// The number of discarded paths that are named.
const MAX_NAMED_PATHS: usize = 40;
/// The maximum length of a path in a notice, in characters.
const MAX_SHOWN_PATH_LEN: usize = 200;
/// The permission bits, with the set-ID bits and the sticky bit.
const MODE_BITS: u32 = 0o7777;

/// Moves the new entries of a layer to its directory of entries, and returns all changes, sorted by
/// path.
///
/// Nothing may use the layer meanwhile, so the overlay must be unmounted.
///
/// # Errors
/// The layer cannot be read completely, or has more than 100,000 changes.
pub(crate) fn collect_changes(
    paths: &LayerPaths,
    workspace: &Path,
) -> io::Result<CollectedChanges> {
    let mut collector = ChangeCollector {
        upper: open_directory(&paths.upper)?,
        lower: open_directory(workspace)?,
        entries: open_directory(&paths.entries)?,
        found: CollectedChanges::default(),
        pending: vec![PathBuf::new()],
        next_number: 0,
        visited: 0,
        unnamed: 0,
    };
    while let Some(directory) = collector.pending.pop() {
        collector.visit(&directory)?;
    }
    let mut found = collector.found;
    if collector.unnamed > 0 {
        let more = collector.unnamed;
        found.notices.push(format!("{more} more changes of such names were discarded"));
    }
    found.changes.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(found)
}

struct ChangeCollector {
    upper: OwnedFd,
    lower: OwnedFd,
    entries: OwnedFd,
    found: CollectedChanges,
    /// Directories that exist in both layers and were not visited yet.
    pending: Vec<PathBuf>,
    next_number: usize,
    /// The number of changes so far, also of those that cannot be committed.
    visited: usize,
    /// The discarded changes without a notice of their own.
    unnamed: usize,
}

/// One name in a directory that exists in both layers.
struct LayerName<'a> {
    upper: &'a OwnedFd,
    lower: &'a OwnedFd,
    name: &'a CStr,
    path: PathBuf,
}

impl ChangeCollector {
    fn visit(&mut self, directory: &Path) -> io::Result<()> {
        let upper = open_below(&self.upper, directory)?;
        let lower = open_below(&self.lower, directory)?;
        for name in names_in(&upper)? {
            let path = directory.join(OsStr::from_bytes(name.to_bytes()));
            let place = LayerName { upper: &upper, lower: &lower, name: &name, path };
            let Some(action) = self.find_action(&place)? else { continue };
            self.visited += 1;
            if self.visited > MAX_CHANGES {
                let problem = format!("the command changed more than {MAX_CHANGES} paths");
                return Err(io::Error::other(problem));
            }
            match place.path.into_os_string().into_string() {
                Ok(path) => self.found.changes.push(LayerChange { path, action }),
                Err(path) if self.found.notices.len() < MAX_NAMED_PATHS => {
                    self.found.notices.push(format!(
                        "the change of `{}` was discarded, because its name is not UTF-8",
                        escape_line(&path.to_string_lossy(), MAX_SHOWN_PATH_LEN)
                    ));
                }
                Err(_) => self.unnamed += 1,
            }
        }
        Ok(())
    }

    fn find_action(&mut self, place: &LayerName<'_>) -> io::Result<Option<LayerAction>> {
        let LayerName { upper, lower, name, path } = place;
        let after = statat(upper, *name, AtFlags::SYMLINK_NOFOLLOW)?;
        let before = match statat(lower, *name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(before) => Some(before),
            Err(Errno::NOENT) => None,
            Err(error) => return Err(error.into()),
        };
        if is_whiteout(&after) {
            return Ok(before.map(|before| LayerAction::Remove { before: kind_of(&before) }));
        }
        if let Some(before) = &before {
            let is_directory =
                |found: &Stat| FileType::from_raw_mode(found.st_mode) == FileType::Directory;
            if is_directory(before) && is_directory(&after) && !is_opaque(upper.as_fd(), name)? {
                self.pending.push(path.clone());
                let (before, after) = (before.st_mode & MODE_BITS, after.st_mode & MODE_BITS);
                let kind = LayerEntryKind::Directory;
                let set = LayerAction::SetMode { kind, before, after };
                return Ok((before != after).then_some(set));
            }
        }
        let Some(before) = before else {
            return Ok(Some(LayerAction::Create(self.take_entry(place, &after)?)));
        };
        let modes = (before.st_mode & MODE_BITS, after.st_mode & MODE_BITS);
        let has_same_content = place.has_same_content(&before, &after)?;
        // A file is copied to the layer when a program opens it for writing. A file with several
        // names in the layer may have got one of them from the command.
        if has_same_content && after.st_nlink == 1 && has_same_stamp(&before, &after) {
            let kind = LayerEntryKind::File;
            let set = LayerAction::SetMode { kind, before: modes.0, after: modes.1 };
            return Ok((modes.0 != modes.1).then_some(set));
        }
        let after = self.take_entry(place, &after)?;
        let is_same = has_same_content && modes.0 == modes.1;
        Ok(Some(LayerAction::Replace { before: kind_of(&before), after, is_same }))
    }

    /// Moves a new entry out of the layer.
    fn take_entry(&mut self, place: &LayerName<'_>, found: &Stat) -> io::Result<LayerEntry> {
        let number = self.next_number;
        self.next_number += 1;
        let name = CString::new(number.to_string())?;
        renameat(place.upper, place.name, &self.entries, &*name)?;
        let EntrySize { bytes, entries } = clean_entry(self.entries.as_fd(), &name)?;
        let mode = found.st_mode & MODE_BITS;
        Ok(LayerEntry { number, kind: kind_of(found), mode, size: bytes, entries })
    }
}

impl LayerName<'_> {
    /// Returns whether both entries are files with the same content and attributes.
    fn has_same_content(&self, before: &Stat, after: &Stat) -> io::Result<bool> {
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
fn has_same_stamp(before: &Stat, after: &Stat) -> bool {
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

fn kind_of(found: &Stat) -> LayerEntryKind {
    match FileType::from_raw_mode(found.st_mode) {
        FileType::RegularFile => LayerEntryKind::File,
        FileType::Directory => LayerEntryKind::Directory,
        FileType::Symlink => LayerEntryKind::Link,
        _ => LayerEntryKind::Special,
    }
}

fn open_directory(path: &Path) -> io::Result<OwnedFd> {
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
        fill(&paths.upper.join("new"));
        let found = collect_changes(&paths, workspace.path()).expect("collected");
        let [change] = found.changes.as_slice() else { panic!("{found:?}") };
        assert_eq!(change.action.entry().map(|entry| entry.entries), Some(MAX_CHANGES as u64 + 1));
        fill(&others.upper);
        let problem = collect_changes(&others, workspace.path()).expect_err("too many");
        assert!(problem.to_string().contains("changed more than"), "{problem}");
    }
}
