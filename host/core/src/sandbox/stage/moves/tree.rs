//! Walks through a directory tree of any owner.

use std::ffi::CString;
use std::io;
use std::os::fd::OwnedFd;

use rustix::fs::{AtFlags, Dir, Mode, OFlags, openat, statat};
use rustix::io::Errno;

use super::entry::EntryStatus;

/// The depth of a tree that is walked. Deeper ones count as unreadable.
const MAX_DEPTH: usize = 500;

/// An entry below a walked directory.
pub(super) struct TreeEntry<'a> {
    /// The path below the directory, readable.
    pub(super) path: &'a str,
    pub(super) status: &'a EntryStatus,
}

/// Visits every entry below a directory, without following links. Directories that this user cannot
/// list are visited, but not their entries.
///
/// # Errors
/// A directory cannot be read, is too deep, or `visit` returns an error.
pub(super) fn visit_tree(
    top: OwnedFd,
    mut visit: impl FnMut(&TreeEntry<'_>) -> io::Result<()>,
) -> io::Result<()> {
    let names = list(&top)?;
    let mut levels = vec![TreeLevel { directory: top, names, path: String::new() }];
    while let Some(level) = levels.last_mut() {
        let Some(name) = level.names.pop() else {
            levels.pop();
            continue;
        };
        let found = match statat(&level.directory, &*name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(found) => EntryStatus::from_stat(&found),
            Err(Errno::NOENT) => continue,
            Err(error) => return Err(error.into()),
        };
        let separator = if level.path.is_empty() { "" } else { "/" };
        let path = format!("{}{separator}{}", level.path, name.to_string_lossy());
        visit(&TreeEntry { path: &path, status: &found })?;
        if !found.is_directory() {
            continue;
        }
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let directory = match openat(&level.directory, &*name, flags, Mode::empty()) {
            Ok(directory) => directory,
            Err(Errno::ACCESS) => continue,
            Err(error) => return Err(error.into()),
        };
        if levels.len() == MAX_DEPTH {
            return Err(io::Error::other("the directory tree is too deep"));
        }
        let names = list(&directory)?;
        levels.push(TreeLevel { directory, names, path });
    }
    Ok(())
}

struct TreeLevel {
    directory: OwnedFd,
    /// The names that were not visited yet.
    names: Vec<CString>,
    path: String,
}

fn list(directory: &OwnedFd) -> io::Result<Vec<CString>> {
    let mut names = Vec::new();
    for entry in Dir::read_from(directory)? {
        let entry = entry?;
        if !matches!(entry.file_name().to_bytes(), b"." | b"..") {
            names.push(entry.file_name().to_owned());
        }
    }
    Ok(names)
}
