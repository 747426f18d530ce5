//! One entry of a directory, and the renames that move it.

use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;

use cap_std::fs::Dir;
use rustix::fs::{
    AtFlags, FileType, Mode, OFlags, RenameFlags, Stat, openat, renameat_with, statat,
};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};

use crate::sandbox::rooted_fs;

/// The permission of the owner to write, which moving a directory to another one needs.
const OWNER_WRITE: u32 = 0o200;
/// The permission bits, with the set-ID bits and the sticky bit.
pub(super) const MODE_BITS: u32 = 0o7777;

/// The identity of an entry, which it keeps when it is renamed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::sandbox::stage) struct EntryIdentity {
    pub(super) device: u64,
    pub(super) inode: u64,
    /// When the entry was created, in seconds and nanoseconds since 1970, because a new entry can
    /// get the inode of a removed one. `None` if the file system does not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) created: Option<(i64, u32)>,
    /// The kind of the entry, as in `st_mode`.
    pub(super) kind: u32,
    /// The time of the last write, in seconds and nanoseconds since 1970, so that a file with newer
    /// work is another one. `None` for a directory, whose time changes with its entries.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) written: Option<(i64, i64)>,
}

/// The status of an entry at some moment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::sandbox::stage) struct EntryStatus {
    pub(super) identity: EntryIdentity,
    pub(super) mode: u32,
    pub(super) size: u64,
    /// The time of the last status change, in seconds and nanoseconds since 1970.
    pub(super) ctime: (i64, i64),
}

impl EntryStatus {
    pub(super) fn from_stat(found: &Stat) -> Self {
        #[allow(
            clippy::useless_conversion,
            clippy::unnecessary_cast,
            reason = "types differ by OS"
        )]
        let identity = EntryIdentity {
            device: found.st_dev as u64,
            inode: found.st_ino.into(),
            created: None,
            kind: u32::from(found.st_mode) & !MODE_BITS,
            written: (FileType::from_raw_mode(found.st_mode) != FileType::Directory)
                .then(|| (found.st_mtime.into(), found.st_mtime_nsec as i64)),
        };
        #[allow(clippy::useless_conversion, reason = "the types differ by operating system")]
        Self {
            identity,
            mode: u32::from(found.st_mode) & MODE_BITS,
            size: u64::try_from(found.st_size).unwrap_or(0),
            ctime: (found.st_ctime.into(), i64::try_from(found.st_ctime_nsec).unwrap_or(0)),
        }
    }

    pub(super) fn file_type(&self) -> FileType {
        #[allow(
            clippy::useless_conversion,
            clippy::unnecessary_fallible_conversions,
            reason = "the mode has 16 bits on some operating systems"
        )]
        FileType::from_raw_mode(self.identity.kind.try_into().unwrap_or(0))
    }

    pub(super) fn is_directory(&self) -> bool {
        self.file_type() == FileType::Directory
    }

    /// Returns whether the entry has permissions of its own that a command can set.
    pub(super) fn has_mode(&self) -> bool {
        matches!(self.file_type(), FileType::Directory | FileType::RegularFile)
    }

    /// Returns whether this is a directory that its owner cannot write.
    pub(super) fn is_closed_directory(&self) -> bool {
        self.is_directory() && self.mode & OWNER_WRITE == 0
    }
}

/// The place of an entry: a directory and a name in it.
pub(super) struct EntryLocation {
    parent: Dir,
    name: String,
}

impl EntryLocation {
    /// Opens the directory above a path of the workspace, without following links.
    pub(super) fn open(root: &Dir, path: &str) -> io::Result<Self> {
        let (parent, name) = rooted_fs::split(path);
        Ok(Self { parent: rooted_fs::open_dir(root, parent)?, name: name.to_owned() })
    }

    pub(super) fn in_directory(directory: &Dir, name: String) -> io::Result<Self> {
        Ok(Self { parent: directory.try_clone()?, name })
    }

    /// Returns the status of the entry, or `None` if there is none.
    pub(super) fn status(&self) -> io::Result<Option<EntryStatus>> {
        match statat(&self.parent, &*self.name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(found) => {
                let mut status = EntryStatus::from_stat(&found);
                status.identity.created = rooted_fs::created(&self.parent, &self.name);
                Ok(Some(status))
            }
            Err(Errno::NOENT) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Moves the entry to another place, at which there must be none.
    pub(super) fn move_to(&self, target: &Self) -> io::Result<()> {
        self.rename(target, RenameFlags::NOREPLACE)
    }

    /// Exchanges the entries at two places.
    pub(super) fn exchange(&self, other: &Self) -> io::Result<()> {
        self.rename(other, RenameFlags::EXCHANGE)
    }

    /// Every file system with private views supports the flags.
    fn rename(&self, target: &Self, flags: RenameFlags) -> io::Result<()> {
        let (mine, theirs) = (self.make_movable()?, target.make_movable()?);
        let renamed =
            renameat_with(&self.parent, &*self.name, &target.parent, &*target.name, flags);
        let (mine_at, theirs_at) = if renamed.is_ok() { (target, self) } else { (self, target) };
        if let Some(mode) = mine {
            mine_at.set_mode(mode)?;
        }
        if let Some(mode) = theirs {
            theirs_at.set_mode(mode)?;
        }
        Ok(renamed?)
    }

    /// Lets the user move a directory to another one, which needs the permission to write it.
    /// Returns the permissions to set afterwards.
    fn make_movable(&self) -> io::Result<Option<u32>> {
        let Some(status) = self.status()? else { return Ok(None) };
        if !status.is_closed_directory() || rustix::process::geteuid().is_root() {
            return Ok(None);
        }
        self.set_mode(status.mode | OWNER_WRITE)?;
        Ok(Some(status.mode))
    }

    /// Sets the permissions of a file or a directory.
    pub(super) fn set_mode(&self, mode: u32) -> io::Result<()> {
        rooted_fs::set_mode(&self.parent, &self.name, mode)
    }

    /// Opens the entry if it is a directory that this user can list.
    pub(super) fn list(&self) -> io::Result<OwnedFd> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        Ok(openat(&self.parent, &*self.name, flags, Mode::empty())?)
    }

    /// Opens the entry if it is a regular file.
    pub(super) fn read(&self) -> io::Result<File> {
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        Ok(File::from(openat(&self.parent, &*self.name, flags, Mode::empty())?))
    }

    /// Returns the target of a symbolic link.
    pub(super) fn read_link(&self) -> io::Result<Vec<u8>> {
        Ok(rustix::fs::readlinkat(&self.parent, &*self.name, Vec::new())?.into_bytes())
    }
}
