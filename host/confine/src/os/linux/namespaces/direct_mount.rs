//! Directories of the workspace that a private view shows as they are.
//!
//! Each is copied as a mount before the overlay covers it, and then mounted at its place in the
//! overlay. All opens stay below the workspace and follow no links, because a command can have left
//! one.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, Mode, OFlags, ResolveFlags, mkdirat, openat, openat2};
use rustix::io::Errno;

use super::mount::{PLAIN_FILES, attach, copy_of_open};

/// The permissions of a new directory, before those that the user's mask removes.
const NEW_DIRECTORY_MODE: Mode = Mode::from_raw_mode(0o777);

/// A copy of the mount of one directory, not attached yet.
pub(crate) struct DirectMount {
    path: PathBuf,
    mount: OwnedFd,
    created: Vec<PathBuf>,
}

impl DirectMount {
    /// Opens a directory of the workspace, and creates it if it does not exist.
    ///
    /// # Errors
    /// The path leads through a link, or is no directory.
    pub(crate) fn open(workspace: &Path, path: &Path) -> io::Result<Self> {
        let root = open_root(workspace)?;
        let mut created = Vec::new();
        let directory = match open_directory(&root, path) {
            Err(Errno::NOENT) => {
                create_missing(&root, path, &mut created)?;
                open_directory(&root, path)
            }
            opened => opened,
        };
        Ok(Self { path: path.to_owned(), mount: copy_of_open(directory?, PLAIN_FILES)?, created })
    }

    /// Mounts the directory at its place in the workspace, which an overlay covers by now.
    ///
    /// # Errors
    /// The place does not exist any more.
    pub(crate) fn attach(&self, workspace: &Path) -> io::Result<()> {
        attach(&self.mount, open_directory(&open_root(workspace)?, &self.path)?)
    }

    /// Returns the path, relative to the workspace.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the directories that were created for the mount, outer ones first.
    pub(crate) fn created(&self) -> &[PathBuf] {
        &self.created
    }
}

fn open_root(workspace: &Path) -> io::Result<OwnedFd> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    Ok(openat(CWD, workspace, flags, Mode::empty())?)
}

fn open_directory(root: impl AsFd, path: &Path) -> Result<OwnedFd, Errno> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_XDEV;
    openat2(root, path, flags, Mode::empty(), resolve)
}

fn create_missing(root: &OwnedFd, path: &Path, created: &mut Vec<PathBuf>) -> io::Result<()> {
    let mut above = root.try_clone()?;
    let mut reached = PathBuf::new();
    for name in path.iter() {
        reached.push(name);
        match mkdirat(&above, name, NEW_DIRECTORY_MODE) {
            Ok(()) => created.push(reached.clone()),
            Err(Errno::EXIST) => {}
            Err(error) => return Err(error.into()),
        }
        above = open_directory(&above, Path::new(name))?;
    }
    Ok(())
}
