//! The handling of paths that git settings name during a walk, and of links in place of directories
//! with protected paths.

use std::fs;
use std::path::Path;

use super::{DirectoryEntries, ProtectionWalk, WalkDirectory};
use crate::git;
use crate::snapshot::ProtectionError;
use cofferdam_policy::PathProtection;

impl ProtectionWalk<'_> {
    /// Protects the paths that git settings name, if this directory is a repository or a worktree.
    pub(super) fn look_for_named(
        &mut self,
        folder: &WalkDirectory,
        entries: &DirectoryEntries,
        is_repository: bool,
        is_git: bool,
    ) -> Result<(), ProtectionError> {
        let has = |known: &str| {
            entries.iter().any(|(name, ..)| git::is_same_name(&name.to_string_lossy(), known))
        };
        let is_dot_git = folder
            .path
            .file_name()
            .is_some_and(|name| git::is_same_name(&name.to_string_lossy(), ".git"));
        let is_top = has(".git");
        let has_settings =
            is_git && ["config", "config.worktree", "commondir"].into_iter().any(has);
        if !is_top && (!is_repository && !has_settings || is_dot_git) {
            return Ok(());
        }
        self.snapshot.tops.insert(folder.inode);
        self.snapshot.top_paths.insert(folder.path.clone());
        if self.before.is_some() {
            self.look_below_new_top(folder, is_top);
            return Ok(());
        }
        let dot_git = if is_top { folder.path.join(".git") } else { folder.path.clone() };
        let named = self.snapshot.git.of_repository(&folder.path, &dot_git)?;
        named.iter().for_each(|path| self.add_target(path, PathProtection::ReadOnly));
        Ok(())
    }

    /// Records paths that settings of the user name in a repository that a command created or
    /// moved.
    fn look_below_new_top(&mut self, folder: &WalkDirectory, is_top: bool) {
        let Some(before) = self.before else { return };
        let is_known = before.tops.contains(&folder.inode) && self.is_where_it_was(folder);
        if is_known {
            return;
        }
        for path in before.git.of_user_in(&folder.path) {
            let first = path.strip_prefix(&folder.path).ok().and_then(|rest| rest.iter().next());
            let was_there = first
                .is_some_and(|first| before.inventory.contains_name(folder.inode, first))
                && !before.tops.contains(&folder.inode);
            if was_there && is_top && fs::symlink_metadata(self.root.join(&path)).is_ok() {
                // The user's own file would become code that git runs, so the repository is removed
                // instead.
                let _ = self.record_entry(
                    &folder.path.join(".git"),
                    PathProtection::ReadOnly,
                    false,
                    false,
                    false,
                );
                continue;
            }
            self.take_new(folder, &path);
        }
    }

    /// Returns whether a repository or worktree has the same path as before the command.
    fn is_where_it_was(&self, folder: &WalkDirectory) -> bool {
        self.before.is_some_and(|before| before.top_paths.contains(&folder.path))
    }

    fn take_new(&mut self, around: &WalkDirectory, path: &Path) {
        let Ok(metadata) = fs::symlink_metadata(self.root.join(path)) else { return };
        if self.record_entry(path, PathProtection::ReadOnly, false, false, false).is_ok()
            && metadata.is_dir()
        {
            let inherited = Some(PathProtection::ReadOnly);
            let inode = std::os::unix::fs::MetadataExt::ino(&metadata);
            self.enqueue(
                WalkDirectory {
                    path: path.to_owned(),
                    inode,
                    inherited,
                    may_match: true,
                    ..around.clone()
                },
                false,
            );
        }
    }
}
