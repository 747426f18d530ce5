//! The listing of directories during a walk, and the selection of the relevant entries.

use std::ffi::OsStr;
use std::fs::{self, Permissions, ReadDir};
use std::io;
use std::os::unix::fs::{DirEntryExt as _, FileTypeExt as _, PermissionsExt as _};
use std::path::Path;

use super::super::growth::{CrowdedDirectory, MAX_NEW_NAMES};
use super::{DirectoryEntries, MAX_ENTRIES, ProtectionWalk, WalkDirectory};
use crate::git;
use crate::settings::SettingsFormat;

/// The maximum number of selected entries of one directory in memory.
const MAX_LISTED: usize = MAX_ENTRIES / 4;
/// The maximum number of recorded sockets, which is more than a sandbox can mask.
const MAX_SOCKETS: usize = 10_000;
/// The maximum number of recorded package manager settings.
const MOST_PACKAGE_SETTINGS: usize = 1_000;
/// The number of entries between two checks of the deadline and of cancellation.
const CHECK_INTERVAL: usize = 4096;

impl ProtectionWalk<'_> {
    /// Lists the relevant entries of a directory, or returns `None` if it does not exist.
    ///
    /// A directory that this user cannot list is opened first, because programs that know the names
    /// in it can still open them.
    pub(super) fn list(&mut self, folder: &WalkDirectory) -> Option<DirectoryEntries> {
        let whole = self.root.join(&folder.path);
        let listed = match fs::read_dir(&whole) {
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied && self.may_open => {
                self.make_accessible(&folder.path).and_then(|()| fs::read_dir(&whole))
            }
            listed => listed,
        };
        match listed {
            Ok(entries) => Some(self.select_entries(folder, entries)),
            Err(error)
                if matches!(
                    error.kind(),
                    io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
                ) =>
            {
                None
            }
            Err(_) => {
                self.snapshot.unreadable.push(folder.path.clone());
                None
            }
        }
    }

    /// Counts the entries of a directory, and selects the relevant ones. There can be millions, and
    /// most are irrelevant.
    fn select_entries(&mut self, folder: &WalkDirectory, entries: ReadDir) -> DirectoryEntries {
        let mut picked = Vec::new();
        // A protected directory with too many new names is restored as a whole.
        let is_known = self.before.is_some_and(|before| {
            folder.inherited.is_some() && before.entries.contains_key(&folder.path)
        });
        let (mut count, mut new, mut is_cut) = (0_usize, 0, false);
        let is_first = self.before.is_none();
        let is_settings = |name: &OsStr| {
            is_first
                && !folder.in_packages
                && name
                    .to_str()
                    .is_some_and(|name| SettingsFormat::is_looked_for(&folder.path, name))
        };
        for entry in entries.flatten() {
            let (name, inode) = (entry.file_name(), entry.ino());
            let Ok(kind) = entry.file_type() else { continue };
            count += 1;
            match self.before {
                None => self.snapshot.inventory.add_name(folder.inode, &name),
                Some(before) => {
                    new += usize::from(
                        folder.new_directory.is_none()
                            && !before.inventory.contains_name(folder.inode, &name),
                    )
                }
            }
            if is_known && new > MAX_NEW_NAMES {
                picked.clear();
                break;
            }
            if kind.is_socket()
                && self.before.is_none()
                && self.snapshot.sockets.len() < MAX_SOCKETS
            {
                self.snapshot.sockets.push(folder.path.join(&name));
            }
            if is_settings(&name) && self.snapshot.package_settings.len() < MOST_PACKAGE_SETTINGS {
                self.snapshot.package_settings.push(folder.path.join(&name));
            }
            if kind.is_dir()
                || kind.is_symlink()
                || folder.may_match
                || folder.inherited.is_some()
                || self.is_relevant(&name, inode)
            {
                picked.push((name, kind, inode));
            }
            let is_over = if self.before.is_some() {
                picked.len() >= MAX_LISTED
            } else {
                count > MAX_ENTRIES
            };
            let is_asked = (self.snapshot.growth.total + count).is_multiple_of(CHECK_INTERVAL);
            if is_over || is_asked && (self.is_past_deadline() || self.check_cancelled()) {
                is_cut = true;
                break;
            }
        }
        // The number of known entries is that from before the command if not all are visited.
        let is_limited = self.scope.is_some_and(|scope| !scope.covers_all());
        let is_known = is_limited && folder.new_directory.is_none();
        self.snapshot.growth.total += if is_known { new } else { count };
        if let Some(inner) =
            folder.new_directory.and_then(|at| self.snapshot.growth.new_directories.get_mut(at))
        {
            inner.entries += count;
            self.new_entries += count;
            inner.is_incomplete |= is_cut;
        } else if self.before.is_some() && (new > 0 || is_cut) {
            self.snapshot.growth.crowds.push(CrowdedDirectory {
                directory: folder.path.clone(),
                inode: folder.inode,
                new_names: new,
                is_truncated: is_cut,
            });
            self.snapshot.growth.is_truncated |= is_cut;
        }
        picked
    }

    fn is_relevant(&self, name: &OsStr, inode: u64) -> bool {
        let name = name.to_string_lossy();
        self.names.may_match(&name)
            || git::REPOSITORY_MARKERS.iter().any(|part| git::is_same_name(&name, part))
            || self.pinned.contains_key(&inode)
    }

    fn make_accessible(&mut self, folder: &Path) -> io::Result<()> {
        let whole = self.root.join(folder);
        let mode = fs::symlink_metadata(&whole)?.permissions().mode() & 0o7777;
        fs::set_permissions(&whole, Permissions::from_mode(mode | 0o700))?;
        self.snapshot.original_modes.push((folder.to_owned(), mode));
        Ok(())
    }
}
