//! The directories that a command writes directly although it has a private view.
//!
//! Nothing that the command writes there waits for its end. Protected paths in them are restored as
//! without a private view: commands take turns, and a record on disk tells what to restore after a
//! crash. A directory that contains a protected path before the command stays a part of the private
//! view.

use std::collections::VecDeque;
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use crate::os::{DirectMount, WorkspaceOverlay};
use cofferdam_policy::terminal_escape::escape_name;

/// The number of entries that are looked at to find out whether a directory has changed.
const MAX_LOOKED_AT: usize = 2000;
/// The maximum length of a path in a notice, in characters.
const MAX_SHOWN_PATH_LEN: usize = 200;

/// The directories that are about to be mounted in the view of a command.
pub(crate) struct DirectMounts(Vec<DirectMount>);

/// The directories that are mounted in the view of a command.
pub(crate) struct DirectView {
    /// The mounted directories, relative to the workspace.
    mounted: Vec<PathBuf>,
    /// The directories that were created for it, relative to the workspace.
    created: Vec<PathBuf>,
    /// The time of the mount, by the clock of the file system.
    since: (i64, i64),
}

impl DirectMounts {
    /// Opens the directories before the workspace is covered. Those that cannot be opened get a
    /// notice, and are a part of the private view.
    pub(crate) fn open(workspace: &Path, paths: &[PathBuf], notices: &mut Vec<String>) -> Self {
        let mut mounts = Vec::new();
        for path in paths {
            // One that lies in another one is mounted with it.
            if paths.iter().any(|outer| outer != path && path.starts_with(outer)) {
                continue;
            }
            match DirectMount::open(workspace, path) {
                Ok(mount) => mounts.push(mount),
                Err(error) => notices.push(describe_skipped(path, &error.to_string())),
            }
        }
        Self(mounts)
    }

    /// Mounts the directories in the overlay.
    pub(crate) fn attach(
        self,
        workspace: &Path,
        since: (i64, i64),
        notices: &mut Vec<String>,
    ) -> DirectView {
        let mut view = DirectView { mounted: Vec::new(), created: Vec::new(), since };
        for mount in self.0 {
            view.created.extend(mount.created().iter().cloned());
            match mount.attach(workspace) {
                Ok(()) => view.mounted.push(mount.path().to_owned()),
                Err(error) => notices.push(describe_skipped(mount.path(), &error.to_string())),
            }
        }
        view
    }

    /// Removes the directories that were created, because there will be no view.
    pub(crate) fn discard(self, workspace: &Path) {
        let created = self.0.iter().flat_map(DirectMount::created);
        remove_empty(workspace, created);
    }
}

impl DirectView {
    /// Unmounts the directories that contain one of these protected paths, or are in one. Returns
    /// whether there are any.
    ///
    /// # Errors
    /// A directory cannot be unmounted.
    pub(crate) fn unmount_protected<'a>(
        &mut self,
        overlay: &WorkspaceOverlay,
        protected: impl Iterator<Item = &'a PathBuf> + Clone,
        notices: &mut Vec<String>,
    ) -> io::Result<bool> {
        let count = self.mounted.len();
        for path in std::mem::take(&mut self.mounted) {
            let meets = |other: &&PathBuf| other.starts_with(&path) || path.starts_with(other);
            match protected.clone().find(meets) {
                None => self.mounted.push(path),
                Some(other) => {
                    overlay.unmount_direct(&path)?;
                    let reason = format!("{} is protected", shown(other));
                    notices.push(describe_skipped(&path, &reason));
                }
            }
        }
        Ok(self.mounted.len() < count)
    }

    /// Describes the directories that have changed since the mount, as far as a short look finds
    /// out.
    pub(crate) fn describe_changes(&self, workspace: &Path) -> Option<String> {
        let changed = self.mounted.iter().filter(|path| self.has_changed(&workspace.join(path)));
        let names: Vec<String> = changed.map(|path| shown(path)).collect();
        (!names.is_empty()).then(|| {
            format!(
                "the command wrote directly to {}: these changes cannot be undone",
                names.join(", ")
            )
        })
    }

    fn has_changed(&self, top: &Path) -> bool {
        let is_newer =
            |metadata: &fs::Metadata| (metadata.ctime(), metadata.ctime_nsec()) > self.since;
        let mut left = MAX_LOOKED_AT;
        let mut pending = VecDeque::from([top.to_owned()]);
        while let Some(directory) = pending.pop_front() {
            let Ok(metadata) = fs::symlink_metadata(&directory) else { continue };
            if is_newer(&metadata) {
                return true;
            }
            for entry in fs::read_dir(&directory).into_iter().flatten().flatten() {
                if left == 0 {
                    return false;
                }
                left -= 1;
                match entry.metadata() {
                    Ok(metadata) if is_newer(&metadata) => return true,
                    Ok(metadata) if metadata.is_dir() => pending.push_back(entry.path()),
                    Ok(_) | Err(_) => {}
                }
            }
        }
        false
    }

    /// Returns the mounted directories, relative to the workspace.
    pub(crate) fn mounted(&self) -> &[PathBuf] {
        &self.mounted
    }

    /// Returns the directories that were created for the view, relative to the workspace.
    pub(crate) fn created(&self) -> &[PathBuf] {
        &self.created
    }

    /// Removes the directories that were created for the view and are still empty. The overlay must
    /// be unmounted.
    pub(crate) fn remove_empty(&self, workspace: &Path) {
        remove_empty(workspace, self.created.iter());
    }
}

/// Removes empty directories, outer ones last.
fn remove_empty<'a>(workspace: &Path, created: impl Iterator<Item = &'a PathBuf>) {
    let created: Vec<&PathBuf> = created.collect();
    for path in created.into_iter().rev() {
        // It has entries by now, or somebody else has replaced it.
        let _ = fs::remove_dir(workspace.join(path));
    }
}

fn describe_skipped(path: &Path, reason: &str) -> String {
    format!(
        "the directory {} (`direct` under [commands]) was not written directly: {reason}",
        shown(path)
    )
}

fn shown(path: &Path) -> String {
    escape_name(&path.to_string_lossy(), MAX_SHOWN_PATH_LEN)
}
