//! Directories of a workspace that their owner cannot list, enter or write.
//!
//! A command can close directories to hide files from the search, or to prevent their restoration.
//! Before a command, closed directories are opened during the search. After it, directories that
//! the command closed stay open, and the others get their permissions back at the end. Outer
//! directories come first, because nothing can be found below a closed one.

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

use super::{
    FileIdentity, KeepWalking, LayerScope, MAX_ENTRIES, ProtectedSnapshot, ProtectionError,
};

/// The permissions that an owner needs to search and change a directory.
const OWNER_ACCESS: u32 = 0o700;
/// The maximum number of directories named in a notice.
const MAX_SHOWN: usize = 3;
/// The maximum length of a path in a notice, in characters.
const MAX_SHOWN_PATH_LEN: usize = 100;
/// The maximum number of visited entries in new directories. Beyond it, some are moved away and the
/// next round searches again.
const MAX_NEW_ENTRIES: usize = 2 * MAX_ENTRIES;
/// The maximum number of visited entries before a command. It exceeds the limit of the search,
/// which skips some entries.
const MAX_VISITED_ENTRIES: usize = 2 * MAX_ENTRIES;
/// The maximum length of an opened path, in bytes. The search goes no deeper either.
const MAX_PATH_LEN: usize = 3500;
/// The numbers of entries and directories between two cancellation checks.
const CHECK_INTERVAL: usize = 4096;
const DIRECTORY_CHECK_INTERVAL: usize = 64;

/// The directories that were closed before a command, with their permissions, by inode.
#[derive(Clone, Debug, Default)]
pub(super) struct ClosedDirectories(HashMap<u64, (FileIdentity, u32)>);

impl ClosedDirectories {
    pub(super) fn insert(&mut self, identity: FileIdentity, mode: u32) {
        self.0.insert(identity.inode, (identity, mode));
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (FileIdentity, u32)> {
        self.0.values().copied()
    }

    /// Returns the permissions of a directory if it was closed.
    fn mode_of(&self, identity: FileIdentity) -> Option<u32> {
        self.0.get(&identity.inode).filter(|(known, _)| *known == identity).map(|(_, mode)| *mode)
    }
}

/// The directories of a workspace that were opened for a search.
#[derive(Debug, Default)]
pub(crate) struct OpenedDirectories {
    /// The directories that get these permissions back at the end.
    temporary: BTreeMap<PathBuf, (FileIdentity, u32)>,
    /// Some of the directories that stay open, and the number of all of them.
    reopened: Vec<PathBuf>,
    reopened_count: usize,
    /// The first directory that could not be opened, with the error.
    problem: Option<(PathBuf, io::Error)>,
    /// Whether time or entries ran out before all directories were visited.
    is_truncated: bool,
}

impl OpenedDirectories {
    /// Opens all closed directories of a workspace before a command. [`Self::close`] reverts it.
    pub(super) fn open_before(
        root: &Path,
        goes_on: KeepWalking<'_>,
    ) -> Result<Self, ProtectionError> {
        AccessWalk::new(root, None, None)
            .run(&mut |entries| entries <= MAX_VISITED_ENTRIES && goes_on())
    }

    /// Reopens directories that a command closed, and opens those that were closed before it.
    ///
    /// Stops at the deadline and then sets `is_truncated`. With a scope, only directories that the
    /// command can have changed are visited.
    pub(crate) fn open_after(
        root: &Path,
        before: &ProtectedSnapshot,
        scope: Option<&LayerScope>,
        until: Instant,
    ) -> Result<Self, ProtectionError> {
        AccessWalk::new(root, Some(before), scope).run(&mut |_| Instant::now() < until)
    }

    /// Returns the directories that were closed before a command, for the search after it.
    pub(super) fn into_closed(self) -> ClosedDirectories {
        let mut closed = ClosedDirectories::default();
        self.temporary.values().for_each(|(identity, mode)| closed.insert(*identity, *mode));
        closed
    }

    pub(crate) fn is_truncated(&self) -> bool {
        self.is_truncated
    }

    /// Returns the permissions that a directory gets at the end, or `None` if it was not opened
    /// temporarily.
    pub(super) fn final_mode(&self, path: &Path) -> Option<u32> {
        self.temporary.get(path).map(|(_, mode)| *mode)
    }

    /// Opens directories that were closed again since.
    pub(crate) fn reopen(&self, root: &Path) {
        for (path, (identity, _)) in &self.temporary {
            set_if_same(&root.join(path), *identity, |mode| mode | OWNER_ACCESS);
        }
    }

    /// Restores the permissions of directories, except protected ones, whose own restoration
    /// follows.
    pub(crate) fn close(&self, root: &Path, before: &ProtectedSnapshot) {
        // Inner directories come first, because they cannot be reached once an outer one is closed.
        for (path, (identity, mode)) in
            self.temporary.iter().rev().filter(|(path, _)| !before.entries.contains_key(*path))
        {
            set_if_same(&root.join(path), *identity, |_| *mode);
        }
    }

    /// Returns notices about the directories that the command closed.
    pub(crate) fn notices(&self) -> Vec<String> {
        let mut notices = Vec::new();
        if self.reopened_count > 0 {
            let shown: Vec<String> = self.reopened.iter().map(|path| display_path(path)).collect();
            let more = match self.reopened_count - shown.len() {
                0 => String::new(),
                more => format!(" and {more} more"),
            };
            notices.push(format!(
                "the command removed your access to directories, which is not allowed: {}{more}; \
                    your access was restored",
                shown.join(", ")
            ));
        }
        if let Some((path, error)) = &self.problem {
            notices.push(format!(
                "you cannot read, change or enter the directory {}, and its permissions COULD NOT \
                    be restored: {error}",
                display_path(path)
            ));
        }
        notices
    }
}

/// A walk through all directories of a workspace, from the outside in.
struct AccessWalk<'a> {
    root: &'a Path,
    before: Option<&'a ProtectedSnapshot>,
    /// What the command can have changed; `None` if that is unknown.
    scope: Option<&'a LayerScope>,
    user: u32,
    /// Directories from before the command come first, so that a crowd of new ones cannot keep them
    /// closed.
    pending: VecDeque<PathBuf>,
    pending_new: VecDeque<PathBuf>,
    directories: usize,
    entries: usize,
    new_entries: usize,
    opened: OpenedDirectories,
}

impl<'a> AccessWalk<'a> {
    fn new(
        root: &'a Path,
        before: Option<&'a ProtectedSnapshot>,
        scope: Option<&'a LayerScope>,
    ) -> Self {
        Self {
            root,
            before,
            scope,
            user: rustix::process::geteuid().as_raw(),
            pending: VecDeque::from([PathBuf::new()]),
            pending_new: VecDeque::new(),
            directories: 0,
            entries: 0,
            new_entries: 0,
            opened: OpenedDirectories::default(),
        }
    }

    fn run(
        mut self,
        goes_on: &mut dyn FnMut(usize) -> bool,
    ) -> Result<OpenedDirectories, ProtectionError> {
        self.make_accessible(rustix::fs::CWD, self.root.as_os_str(), Path::new(""));
        let workspace = Dir::open_ambient_dir(self.root, cap_std::ambient_authority())
            .map_err(ProtectionError::OpenWorkspace);
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
            // The search reports directories that cannot be opened or are gone.
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
        // The existing descriptor may not be readable.
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
        if self.scope.is_some_and(|scope| !scope.contains(&path)) {
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

    /// Opens a closed directory of this user. Returns the inode of the directory, or `None` if the
    /// entry is not a directory.
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
            // If the entry was replaced meanwhile, a process of this user did that, so the change
            // is harmless.
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
        let mode_before = |before: &ProtectedSnapshot| {
            let had = before.closed.mode_of(identity);
            // Before a private view exists, closed directories are not searched for.
            had.or_else(|| {
                let had = self.scope?.mode_before(path, identity.inode)?;
                (had & OWNER_ACCESS != OWNER_ACCESS).then_some(had)
            })
        };
        match self.before.map(mode_before) {
            None => {
                self.opened.temporary.insert(path.to_owned(), (identity, mode));
            }
            // The owner keeps all permissions from before the command.
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

/// Opens a closed directory by a descriptor, and returns its identity and previous mode.
#[cfg(target_os = "linux")]
fn open_closed(
    parent: BorrowedFd<'_>,
    name: &OsStr,
    _whole: &Path,
) -> io::Result<(FileIdentity, u32)> {
    use std::os::fd::AsRawFd as _;

    let how = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let directory = rustix::fs::openat(parent, name, how, Mode::empty())?;
    // The permissions of an `O_PATH` descriptor can be changed through its path only.
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
    // The first change in an overlay makes a copy, which has a creation time of its own.
    Ok((FileIdentity::from_metadata(&fs::metadata(path)?), mode))
}

/// Changes the permissions of a directory if it is still the same one.
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
    cofferdam_policy::terminal_escape::escape_line(&path.display().to_string(), MAX_SHOWN_PATH_LEN)
}
