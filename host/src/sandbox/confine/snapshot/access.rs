//! Directories of a workspace that their owner cannot list, enter and write. A command closes
//! directories so that no look finds what it put there, or so that nothing of it can be undone.
//!
//! Before a command, closed directories are opened for the time of the look. After it, directories
//! that the command closed stay open, and the others get their permissions back when everything is
//! looked after. Outer directories come first, since nothing is found below a closed one.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::ffi::{CStr, OsStr};
use std::fs::{self, Permissions};
use std::io;
use std::os::fd::{AsFd as _, BorrowedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::time::Instant;

use cap_std::fs::Dir;
use rustix::fs::{AtFlags, FileType, Mode, OFlags};

use super::{FileIdentity, KeepWalking, MAX_ENTRIES, ProtectedSnapshot};

/// What the owner of a directory needs to look at it and to change it.
const OWNER_ACCESS: u32 = 0o700;
/// Directories that are named in a notice.
const MAX_SHOWN: usize = 3;
/// Of a path in a notice, in characters.
const MAX_SHOWN_PATH_LEN: usize = 100;
/// Entries of new directories that are visited: with more of them some have to go, and the next
/// round looks again.
const MAX_NEW_ENTRIES: usize = 2 * MAX_ENTRIES;
/// Entries that are visited before a command: more than the look takes, which skips some.
const MAX_VISITED_ENTRIES: usize = 2 * MAX_ENTRIES;
/// The longest path that is opened, in bytes; the look goes no deeper.
const MAX_PATH_LEN: usize = 3500;
/// Whether the walk goes on is asked once for so many entries, and once for so many directories.
const CHECK_INTERVAL: usize = 4096;
const DIRECTORY_CHECK_INTERVAL: usize = 64;

/// The directories that were closed before a command, with their permissions, by the numbers of
/// their inodes.
#[derive(Clone, Debug, Default)]
pub(super) struct ClosedDirectories(HashMap<u64, (FileIdentity, u32)>);

impl ClosedDirectories {
    pub(super) fn insert(&mut self, identity: FileIdentity, mode: u32) {
        self.0.insert(identity.inode, (identity, mode));
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (FileIdentity, u32)> {
        self.0.values().copied()
    }

    /// The permissions of a directory, if it was closed.
    fn mode_of(&self, identity: FileIdentity) -> Option<u32> {
        self.0.get(&identity.inode).filter(|(known, _)| *known == identity).map(|(_, mode)| *mode)
    }
}

/// The directories of a workspace that were opened for a look.
#[derive(Debug, Default)]
pub(in crate::sandbox::confine) struct OpenedDirectories {
    /// Those that get these permissions when everything is looked after.
    temporary: BTreeMap<PathBuf, (FileIdentity, u32)>,
    /// Some of those that stay open, and the number of all of them.
    reopened: Vec<PathBuf>,
    reopened_count: usize,
    /// The first directory that could not be opened, and why.
    problem: Option<(PathBuf, io::Error)>,
    /// Time or entries ran out before all directories were visited.
    is_truncated: bool,
}

impl OpenedDirectories {
    /// Opens all closed directories of a workspace before a command. [`Self::close`] undoes it.
    pub(super) fn open_before(root: &Path, goes_on: KeepWalking<'_>) -> Result<Self, String> {
        AccessWalk::new(root, None).run(&mut |entries| entries <= MAX_VISITED_ENTRIES && goes_on())
    }

    /// Gives the owner the permissions back that a command took away, and opens the directories
    /// that were closed before it. Ends at the deadline, with `is_truncated`.
    pub(in crate::sandbox::confine) fn open_after(
        root: &Path,
        before: &ProtectedSnapshot,
        until: Instant,
    ) -> Result<Self, String> {
        AccessWalk::new(root, Some(before)).run(&mut |_| Instant::now() < until)
    }

    /// The directories that were opened before a command, for the look after it.
    pub(super) fn into_closed(self) -> ClosedDirectories {
        let mut closed = ClosedDirectories::default();
        self.temporary.values().for_each(|(identity, mode)| closed.insert(*identity, *mode));
        closed
    }

    pub(in crate::sandbox::confine) fn is_truncated(&self) -> bool {
        self.is_truncated
    }

    /// The permissions that a directory has when everything is looked after; `None` if it was not
    /// opened for the time of the look.
    pub(super) fn final_mode(&self, path: &Path) -> Option<u32> {
        self.temporary.get(path).map(|(_, mode)| *mode)
    }

    /// Opens the directories again that something closed since.
    pub(in crate::sandbox::confine) fn reopen(&self, root: &Path) {
        for (path, (identity, _)) in &self.temporary {
            set_if_same(&root.join(path), *identity, |mode| mode | OWNER_ACCESS);
        }
    }

    /// Gives directories their permissions, but for those that are protected: they get the ones
    /// that they had.
    pub(in crate::sandbox::confine) fn close(&self, root: &Path, before: &ProtectedSnapshot) {
        // What is inside comes after what is around it.
        for (path, (identity, mode)) in
            self.temporary.iter().rev().filter(|(path, _)| !before.entries.contains_key(*path))
        {
            set_if_same(&root.join(path), *identity, |_| *mode);
        }
    }

    /// Reports what the command closed.
    pub(in crate::sandbox::confine) fn notices(&self) -> Vec<String> {
        let mut notices = Vec::new();
        if self.reopened_count > 0 {
            let shown: Vec<String> = self.reopened.iter().map(|path| display_path(path)).collect();
            let more = match self.reopened_count - shown.len() {
                0 => String::new(),
                more => format!(" and {more} more"),
            };
            notices.push(format!(
                "the command left directories that you could not read, change or enter, which is \
                    not allowed: {}{more}; you can do so again",
                shown.join(", ")
            ));
        }
        if let Some((path, error)) = &self.problem {
            notices.push(format!(
                "{} is a directory that you cannot read, change or enter, and the permissions \
                    COULD NOT be given back: {error}",
                display_path(path)
            ));
        }
        notices
    }
}

/// Going through all directories of a workspace, from the outside in.
struct AccessWalk<'a> {
    root: &'a Path,
    before: Option<&'a ProtectedSnapshot>,
    user: u32,
    /// Directories that were there before come first: no crowd of new ones keeps them closed.
    pending: VecDeque<PathBuf>,
    pending_new: VecDeque<PathBuf>,
    directories: usize,
    entries: usize,
    new_entries: usize,
    opened: OpenedDirectories,
}

impl<'a> AccessWalk<'a> {
    fn new(root: &'a Path, before: Option<&'a ProtectedSnapshot>) -> Self {
        Self {
            root,
            before,
            user: rustix::process::geteuid().as_raw(),
            pending: VecDeque::from([PathBuf::new()]),
            pending_new: VecDeque::new(),
            directories: 0,
            entries: 0,
            new_entries: 0,
            opened: OpenedDirectories::default(),
        }
    }

    fn run(mut self, goes_on: &mut dyn FnMut(usize) -> bool) -> Result<OpenedDirectories, String> {
        self.make_accessible(rustix::fs::CWD, self.root.as_os_str(), Path::new(""));
        let workspace = Dir::open_ambient_dir(self.root, cap_std::ambient_authority())
            .map_err(|error| format!("the workspace cannot be opened: {error}"));
        let workspace = match workspace {
            Ok(workspace) => workspace,
            Err(problem) => {
                self.opened.close(self.root, &ProtectedSnapshot::default());
                return Err(problem);
            }
        };
        while let Some((path, is_new)) = self.next_directory() {
            self.directories += 1;
            let is_asked = self.directories.is_multiple_of(DIRECTORY_CHECK_INTERVAL);
            if is_asked && !goes_on(self.entries) || self.new_entries > MAX_NEW_ENTRIES {
                self.opened.is_truncated = true;
                break;
            }
            // One that cannot be opened, or is gone, is reported by the look.
            if let Ok(directory) = open_below(&workspace, &path) {
                self.visit_directory(&directory, &path, is_new, goes_on);
            }
        }
        Ok(self.opened)
    }

    fn next_directory(&mut self) -> Option<(PathBuf, bool)> {
        let known = self.pending.pop_front().map(|path| (path, false));
        known.or_else(|| self.pending_new.pop_front().map(|path| (path, true)))
    }

    fn visit_directory(
        &mut self,
        directory: &Dir,
        path: &Path,
        is_new: bool,
        goes_on: &mut dyn FnMut(usize) -> bool,
    ) {
        let parent = directory.as_fd();
        // The other descriptor may be one that cannot be read.
        let how = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let listed = rustix::fs::openat(parent, c".", how, Mode::empty());
        let Ok(entries) = listed.and_then(rustix::fs::Dir::new) else { return };
        for entry in entries.flatten() {
            let name = entry.file_name();
            if matches!(name.to_bytes(), b"." | b"..") {
                continue;
            }
            self.entries += 1;
            self.new_entries += usize::from(is_new);
            if self.entries.is_multiple_of(CHECK_INTERVAL) && !goes_on(self.entries) {
                self.opened.is_truncated = true;
                return;
            }
            if matches!(entry.file_type(), FileType::Directory | FileType::Unknown) {
                self.visit_entry(parent, name, path);
            }
        }
    }

    fn visit_entry(&mut self, parent: BorrowedFd<'_>, name: &CStr, outer: &Path) {
        let path = outer.join(OsStr::from_bytes(name.to_bytes()));
        if self.root.as_os_str().len() + path.as_os_str().len() > MAX_PATH_LEN {
            return;
        }
        let name = OsStr::from_bytes(name.to_bytes());
        let Some(inode) = self.make_accessible(parent, name, &path) else { return };
        if self.before.is_some_and(|before| !before.inventory.contains_directory(inode)) {
            self.pending_new.push_back(path);
        } else {
            self.pending.push_back(path);
        }
    }

    /// Opens what has this name, if it is a closed directory of this user. Returns the number of
    /// the directory's inode, and `None` if it is no directory.
    fn make_accessible(
        &mut self,
        parent: BorrowedFd<'_>,
        name: &OsStr,
        path: &Path,
    ) -> Option<u64> {
        let found = rustix::fs::statat(parent, name, AtFlags::SYMLINK_NOFOLLOW).ok()?;
        if FileType::from_raw_mode(found.st_mode) != FileType::Directory {
            return None;
        }
        let is_closed = !Mode::from_raw_mode(found.st_mode).contains(Mode::RWXU);
        if is_closed && found.st_uid == self.user {
            // Whatever is there by now: only this user's programs could have put it there.
            let opened = open_closed(parent, name, &self.root.join(path));
            match opened {
                Ok((identity, mode)) => self.record(path, identity, mode),
                Err(error) => {
                    self.opened.problem.get_or_insert_with(|| (path.to_owned(), error));
                }
            }
        }
        Some(found.st_ino)
    }

    fn record(&mut self, path: &Path, identity: FileIdentity, mode: u32) {
        match self.before.map(|before| before.closed.mode_of(identity)) {
            None => {
                self.opened.temporary.insert(path.to_owned(), (identity, mode));
            }
            // What the owner could do before the command stays possible.
            Some(Some(had)) => {
                let mode = mode | had & OWNER_ACCESS;
                self.opened.temporary.insert(path.to_owned(), (identity, mode));
            }
            Some(None) => {
                self.opened.reopened_count += 1;
                if self.opened.reopened.len() < MAX_SHOWN {
                    self.opened.reopened.push(path.to_owned());
                }
            }
        }
    }
}

fn open_below(workspace: &Dir, path: &Path) -> io::Result<Dir> {
    if path.as_os_str().is_empty() { workspace.try_clone() } else { workspace.open_dir(path) }
}

/// Opens a closed directory by a descriptor, and returns what it was.
#[cfg(target_os = "linux")]
fn open_closed(
    parent: BorrowedFd<'_>,
    name: &OsStr,
    _whole: &Path,
) -> io::Result<(FileIdentity, u32)> {
    use std::os::fd::AsRawFd as _;

    let how = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let directory = rustix::fs::openat(parent, name, how, Mode::empty())?;
    // A descriptor of this kind can be changed by its path only.
    let itself = PathBuf::from(format!("/proc/self/fd/{}", directory.as_raw_fd()));
    open_at_path(&itself, &fs::metadata(&itself)?)
}

#[cfg(not(target_os = "linux"))]
fn open_closed(
    _parent: BorrowedFd<'_>,
    _name: &OsStr,
    whole: &Path,
) -> io::Result<(FileIdentity, u32)> {
    open_at_path(whole, &fs::symlink_metadata(whole)?)
}

fn open_at_path(path: &Path, metadata: &fs::Metadata) -> io::Result<(FileIdentity, u32)> {
    if !metadata.is_dir() {
        return Err(io::ErrorKind::NotADirectory.into());
    }
    let mode = metadata.mode() & 0o7777;
    fs::set_permissions(path, Permissions::from_mode(mode | OWNER_ACCESS))?;
    Ok((FileIdentity::from_metadata(metadata), mode))
}

/// Changes the permissions of a directory that is still where it was found.
fn set_if_same(path: &Path, identity: FileIdentity, change: impl FnOnce(u32) -> u32) {
    let Ok(metadata) = fs::symlink_metadata(path) else { return };
    let mode = metadata.mode() & 0o7777;
    let changed = change(mode);
    if metadata.is_dir() && FileIdentity::from_metadata(&metadata) == identity && changed != mode {
        let _ = fs::set_permissions(path, Permissions::from_mode(changed));
    }
}

fn display_path(path: &Path) -> String {
    if path.as_os_str().is_empty() {
        return "the workspace itself".to_owned();
    }
    crate::terminal_escape::escape_line(&path.display().to_string(), MAX_SHOWN_PATH_LEN)
}
