//! The entries that a command added to the workspace: their number and their directories.
//!
//! A crowd of new files must not hide a protected path, nor make the workspace too large for the
//! next command.

use std::collections::{HashMap, HashSet};
use std::ffi::OsStr;
use std::hash::{BuildHasher as _, RandomState};
use std::path::{Path, PathBuf};

/// The names and directories from before a command, stored as hashes and inodes.
#[derive(Debug, Default)]
pub(crate) struct EntryInventory {
    names: HashSet<u64>,
    /// The hash of the parent and the name for each directory inode.
    directories: HashMap<u64, u64>,
    /// The hashes of symbolic links with their targets.
    links: HashSet<u64>,
    hasher: RandomState,
    is_unknown: bool,
}

impl EntryInventory {
    /// Returns an inventory that treats every entry as one from before the command.
    pub(super) fn unknown() -> Self {
        Self { is_unknown: true, ..Self::default() }
    }

    /// Adds a name in the directory with this inode.
    pub(super) fn add_name(&mut self, folder: u64, name: &OsStr) {
        if self.is_unknown {
            return;
        }
        self.names.insert(self.hasher.hash_one((folder, name)));
    }

    /// Adds a symbolic link in the directory with this inode.
    pub(super) fn add_link(&mut self, folder: u64, name: &OsStr, target: &Path) {
        if self.is_unknown {
            return;
        }
        self.links.insert(self.hasher.hash_one((folder, name, target)));
    }

    /// Returns whether this link, with this target, was in the directory with this inode.
    pub(super) fn contains_link(&self, folder: u64, name: &OsStr, target: &Path) -> bool {
        self.is_unknown || self.links.contains(&self.hasher.hash_one((folder, name, target)))
    }

    /// Adds a directory with this name in the directory with the inode `outer`.
    pub(super) fn add_directory(&mut self, inode: u64, outer: u64, name: &OsStr) {
        if self.is_unknown {
            return;
        }
        self.directories.insert(inode, self.hasher.hash_one((outer, name)));
    }

    /// Returns whether this name was in the directory with this inode.
    pub(crate) fn contains_name(&self, folder: u64, name: &OsStr) -> bool {
        self.is_unknown || self.names.contains(&self.hasher.hash_one((folder, name)))
    }

    pub(super) fn contains_directory(&self, inode: u64) -> bool {
        self.is_unknown || self.directories.contains_key(&inode)
    }

    /// Returns whether a known directory now has another name or another parent.
    pub(super) fn has_moved(&self, inode: u64, outer: u64, name: &OsStr) -> bool {
        self.directories.get(&inode).is_some_and(|was| *was != self.hasher.hash_one((outer, name)))
    }
}

/// A new directory whose parent existed before the command.
#[derive(Debug)]
pub(crate) struct NewDirectory {
    pub(crate) path: PathBuf,
    /// The number of entries at any depth that were counted, including itself.
    pub(crate) entries: usize,
    /// The number of directories in it that were not searched yet.
    pub(super) pending: usize,
    /// Whether a part of it is too deep or too full to be searched.
    pub(super) is_incomplete: bool,
}

impl NewDirectory {
    /// Returns whether the directory was searched completely.
    pub(crate) fn was_searched(&self) -> bool {
        self.pending == 0 && !self.is_incomplete
    }
}

/// A directory from before the command that has new names in it.
#[derive(Debug)]
pub(crate) struct CrowdedDirectory {
    pub(crate) directory: PathBuf,
    pub(crate) inode: u64,
    pub(crate) new_names: usize,
    /// Whether there are more entries than could be listed in time.
    pub(crate) is_truncated: bool,
}

/// The maximum number of new names in a protected directory. Beyond it, the directory is moved away
/// as a whole and created again.
pub(super) const MAX_NEW_NAMES: usize = 1000;

impl CrowdedDirectory {
    /// Returns whether there are too many new names for a protected directory.
    pub(crate) fn exceeds_limit(&self) -> bool {
        self.new_names > MAX_NEW_NAMES
    }
}

/// The growth of a workspace through one command.
#[derive(Debug, Default)]
pub(crate) struct WorkspaceGrowth {
    /// The number of entries in the workspace.
    pub(crate) total: usize,
    pub(crate) new_directories: Vec<NewDirectory>,
    pub(crate) crowds: Vec<CrowdedDirectory>,
    /// Whether directories from before the command were not searched completely.
    pub(crate) is_truncated: bool,
}

impl WorkspaceGrowth {
    /// Returns whether entries have to be removed: the search was incomplete, or the workspace
    /// exceeds `most` entries.
    pub(crate) fn exceeds_limit(&self, most: usize) -> bool {
        self.total > most
            || self.is_truncated
            || self.new_directories.iter().any(|folder| !folder.was_searched())
    }
}
