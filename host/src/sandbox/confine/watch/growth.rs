//! What a command added to the workspace: how many entries, and in which folders. A crowd of new files is no way to hide a
//! protected path among them, nor to make the workspace too large for the next command.

use std::collections::{HashMap, HashSet};
use std::ffi::OsStr;
use std::hash::{BuildHasher as _, RandomState};
use std::path::PathBuf;

/// The names and folders that were there before a command, by their hashes and the numbers of their inodes.
#[derive(Debug, Default)]
pub(in crate::sandbox::confine) struct Inventory {
    names: HashSet<u64>,
    /// Each with the hash of its name.
    folders: HashMap<u64, u64>,
    hasher: RandomState,
    is_unknown: bool,
}

impl Inventory {
    /// One of which nothing is known: whatever is there may have been there before.
    pub(super) fn unknown() -> Self {
        Self { is_unknown: true, ..Self::default() }
    }

    /// Adds a name that is in the folder with this inode.
    pub(super) fn add(&mut self, folder: u64, name: &OsStr) {
        self.names.insert(self.hasher.hash_one((folder, name)));
    }

    /// Adds a folder, which has this name in the folder with the inode `outer`.
    pub(super) fn add_folder(&mut self, inode: u64, outer: u64, name: &OsStr) {
        self.folders.insert(inode, self.hasher.hash_one((outer, name)));
    }

    /// Whether there was this name in the folder with this inode.
    pub(in crate::sandbox::confine) fn has(&self, folder: u64, name: &OsStr) -> bool {
        self.is_unknown || self.names.contains(&self.hasher.hash_one((folder, name)))
    }

    pub(super) fn has_folder(&self, inode: u64) -> bool {
        self.is_unknown || self.folders.contains_key(&inode)
    }

    /// Whether a folder that was there before has another name now, or is in another folder.
    pub(super) fn has_moved(&self, inode: u64, outer: u64, name: &OsStr) -> bool {
        self.folders.get(&inode).is_some_and(|was| *was != self.hasher.hash_one((outer, name)))
    }
}

/// A new folder in one that was there before.
#[derive(Debug)]
pub(in crate::sandbox::confine) struct NewFolder {
    pub(in crate::sandbox::confine) path: PathBuf,
    /// The entries in it, at any depth, as far as they were counted.
    pub(in crate::sandbox::confine) entries: usize,
    /// Folders in it that are still to be looked through.
    pub(super) waiting: usize,
    /// It holds something that is not looked through: it is too deep, or too full.
    pub(super) too_much: bool,
}

impl NewFolder {
    /// Whether all of it was looked through.
    pub(in crate::sandbox::confine) fn was_searched(&self) -> bool {
        self.waiting == 0 && !self.too_much
    }
}

/// A folder that was there before and has new names in it.
#[derive(Debug)]
pub(in crate::sandbox::confine) struct Crowd {
    pub(in crate::sandbox::confine) folder: PathBuf,
    pub(in crate::sandbox::confine) inode: u64,
    pub(in crate::sandbox::confine) names: usize,
    /// There are more than could be listed in time.
    pub(in crate::sandbox::confine) is_cut: bool,
}

/// New names in a protected folder; with more of them it is taken away as a whole, and made anew.
pub(super) const MOST_IN_FOLDER: usize = 1000;

impl Crowd {
    /// Whether it is too much for a folder that is protected.
    pub(in crate::sandbox::confine) fn is_overrun(&self) -> bool {
        self.names > MOST_IN_FOLDER
    }
}

/// All of it.
#[derive(Debug, Default)]
pub(in crate::sandbox::confine) struct Growth {
    /// Entries of the workspace.
    pub(in crate::sandbox::confine) total: usize,
    pub(in crate::sandbox::confine) folders: Vec<NewFolder>,
    pub(in crate::sandbox::confine) crowds: Vec<Crowd>,
    /// Folders that were there before were not all looked through.
    pub(in crate::sandbox::confine) is_cut: bool,
}

impl Growth {
    /// Whether something has to go so that all was looked through, and can be by the next command.
    pub(in crate::sandbox::confine) fn is_too_much(&self, most: usize) -> bool {
        self.total > most || self.is_cut || self.folders.iter().any(|folder| !folder.was_searched())
    }
}
