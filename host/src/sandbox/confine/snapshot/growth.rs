//! What a command added to the workspace: how many entries, and in which folders. A crowd of new
//! files is no way to hide a protected path among them, nor to make the workspace too large for the
//! next command.

use std::collections::{HashMap, HashSet};
use std::ffi::OsStr;
use std::hash::{BuildHasher as _, RandomState};
use std::path::{Path, PathBuf};

/// The names and folders that were there before a command, by their hashes and the numbers of their
/// inodes.
#[derive(Debug, Default)]
pub(in crate::sandbox::confine) struct EntryInventory {
    names: HashSet<u64>,
    /// Each with the hash of its name.
    directories: HashMap<u64, u64>,
    /// Symbolic links with their targets.
    links: HashSet<u64>,
    hasher: RandomState,
    is_unknown: bool,
}

impl EntryInventory {
    /// One of which nothing is known: whatever is there may have been there before.
    pub(super) fn unknown() -> Self {
        Self { is_unknown: true, ..Self::default() }
    }

    /// Adds a name that is in the folder with this inode.
    pub(super) fn add_name(&mut self, folder: u64, name: &OsStr) {
        self.names.insert(self.hasher.hash_one((folder, name)));
    }

    /// Adds a symbolic link that is in the folder with this inode.
    pub(super) fn add_link(&mut self, folder: u64, name: &OsStr, target: &Path) {
        self.links.insert(self.hasher.hash_one((folder, name, target)));
    }

    /// Whether there was this link, with this target, in the folder with this inode.
    pub(super) fn contains_link(&self, folder: u64, name: &OsStr, target: &Path) -> bool {
        self.is_unknown || self.links.contains(&self.hasher.hash_one((folder, name, target)))
    }

    /// Adds a folder, which has this name in the folder with the inode `outer`.
    pub(super) fn add_directory(&mut self, inode: u64, outer: u64, name: &OsStr) {
        self.directories.insert(inode, self.hasher.hash_one((outer, name)));
    }

    /// Whether there was this name in the folder with this inode.
    pub(in crate::sandbox::confine) fn contains_name(&self, folder: u64, name: &OsStr) -> bool {
        self.is_unknown || self.names.contains(&self.hasher.hash_one((folder, name)))
    }

    pub(super) fn contains_directory(&self, inode: u64) -> bool {
        self.is_unknown || self.directories.contains_key(&inode)
    }

    /// Whether a folder that was there before has another name now, or is in another folder.
    pub(super) fn has_moved(&self, inode: u64, outer: u64, name: &OsStr) -> bool {
        self.directories.get(&inode).is_some_and(|was| *was != self.hasher.hash_one((outer, name)))
    }
}

/// A new folder in one that was there before.
#[derive(Debug)]
pub(in crate::sandbox::confine) struct NewDirectory {
    pub(in crate::sandbox::confine) path: PathBuf,
    /// The entries in it, at any depth, as far as they were counted.
    pub(in crate::sandbox::confine) entries: usize,
    /// Folders in it that are still to be looked through.
    pub(super) pending: usize,
    /// It holds something that is not looked through: it is too deep, or too full.
    pub(super) is_incomplete: bool,
}

impl NewDirectory {
    /// Whether all of it was looked through.
    pub(in crate::sandbox::confine) fn was_searched(&self) -> bool {
        self.pending == 0 && !self.is_incomplete
    }
}

/// A folder that was there before and has new names in it.
#[derive(Debug)]
pub(in crate::sandbox::confine) struct CrowdedDirectory {
    pub(in crate::sandbox::confine) directory: PathBuf,
    pub(in crate::sandbox::confine) inode: u64,
    pub(in crate::sandbox::confine) new_names: usize,
    /// There are more than could be listed in time.
    pub(in crate::sandbox::confine) is_truncated: bool,
}

/// New names in a protected folder; with more of them it is taken away as a whole, and made anew.
pub(super) const MAX_NEW_NAMES: usize = 1000;

impl CrowdedDirectory {
    /// Whether it is too much for a folder that is protected.
    pub(in crate::sandbox::confine) fn exceeds_limit(&self) -> bool {
        self.new_names > MAX_NEW_NAMES
    }
}

/// All of it.
#[derive(Debug, Default)]
pub(in crate::sandbox::confine) struct WorkspaceGrowth {
    /// Entries of the workspace.
    pub(in crate::sandbox::confine) total: usize,
    pub(in crate::sandbox::confine) new_directories: Vec<NewDirectory>,
    pub(in crate::sandbox::confine) crowds: Vec<CrowdedDirectory>,
    /// Folders that were there before were not all looked through.
    pub(in crate::sandbox::confine) is_truncated: bool,
}

impl WorkspaceGrowth {
    /// Whether something has to go so that all was looked through, and can be by the next command.
    pub(in crate::sandbox::confine) fn exceeds_limit(&self, most: usize) -> bool {
        self.total > most
            || self.is_truncated
            || self.new_directories.iter().any(|folder| !folder.was_searched())
    }
}
