//! Removal of excess files that a command created: entries that could not all be searched, or that
//! make the workspace too large for the next command.

use std::cmp::Reverse;
use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::time::Instant;

use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, openat, renameat, statat, unlinkat};
use rustix::io::Errno;

use super::remove::remove_tree;
use super::restore::SnapshotRestore;
use super::snapshot::{CrowdedDirectory, EntryInventory, MAX_ENTRIES, WorkspaceGrowth};

/// The maximum number of passes over a directory whose names change meanwhile.
const MAX_PASSES: usize = 100;

impl SnapshotRestore<'_> {
    /// Moves away new directories that were not searched, then the largest new directories and
    /// crowds, until the workspace is below its limit.
    ///
    /// After `until`, no more names are removed from crowds.
    pub(super) fn reduce_growth(
        &mut self,
        growth: &WorkspaceGrowth,
        before: &EntryInventory,
        until: Instant,
    ) {
        let mut total = growth.total;
        let mut searched = Vec::new();
        for folder in &growth.new_directories {
            if folder.was_searched() {
                searched.push(folder);
            } else if !self.is_removed(&folder.path) {
                self.set_aside_unsearched(
                    &folder.path,
                    "was created with more entries than can be searched",
                );
                total = total.saturating_sub(folder.entries);
            }
        }
        searched.sort_by_key(|folder| Reverse(folder.entries));
        let mut crowds: Vec<_> =
            growth.crowds.iter().filter(|crowd| !self.is_removed(&crowd.directory)).collect();
        crowds.sort_by_key(|crowd| (!crowd.is_truncated, Reverse(crowd.new_names)));
        let mut searched = searched.into_iter().filter(|folder| folder.entries > 1).peekable();
        let mut crowds = crowds.into_iter().peekable();
        loop {
            let of_folder = searched.peek().map_or(0, |folder| folder.entries);
            match crowds.peek() {
                Some(crowd)
                    if crowd.is_truncated || total > MAX_ENTRIES && crowd.new_names > of_folder =>
                {
                    total = total.saturating_sub(self.set_aside_names(crowd, before, until));
                    crowds.next();
                }
                _ if total > MAX_ENTRIES && of_folder > 0 => {
                    let Some(folder) =
                        searched.next().filter(|folder| !self.is_removed(&folder.path))
                    else {
                        continue;
                    };
                    self.set_aside_unsearched(
                        &folder.path,
                        "was created with more entries than the workspace limit",
                    );
                    total = total.saturating_sub(folder.entries);
                }
                Some(_) | None => break,
            }
        }
    }

    /// Removes the new names from a directory, and returns their number.
    fn set_aside_names(
        &mut self,
        crowd: &CrowdedDirectory,
        before: &EntryInventory,
        until: Instant,
    ) -> usize {
        let taken = self.move_names(crowd, before, until);
        let escape = |path: &Path| {
            cofferdam_policy::terminal_escape::escape_line(&path.display().to_string(), 200)
        };
        let folder = match crowd.directory.as_os_str().is_empty() {
            true => ".".to_owned(),
            false => escape(&crowd.directory),
        };
        let count = taken.as_ref().map_or(0, |(count, _)| *count);
        let number = if count > 0 { format!("{count} ") } else { String::new() };
        let what = format!(
            "the command created {number}entries in {folder}, more than the workspace limit"
        );
        let end = |(_, to): (usize, Option<std::path::PathBuf>)| match to {
            Some(to) => format!(
                "they were moved to the directory recorded in {}, and extra hard links were \
                    removed",
                escape(&to)
            ),
            None => "they were removed".to_owned(),
        };
        self.add_result(what, "moved away", taken.map(end));
        count
    }

    fn move_names(
        &mut self,
        crowd: &CrowdedDirectory,
        before: &EntryInventory,
        until: Instant,
    ) -> io::Result<(usize, Option<std::path::PathBuf>)> {
        let (workspace, aside) = self.workspace_and_set_aside();
        let folder = if crowd.directory.as_os_str().is_empty() {
            workspace.try_clone()?
        } else {
            workspace.open_dir(&crowd.directory)?
        };
        let (outside, name) = aside.reserve_name()?;
        outside.create_dir(&name)?;
        let outside = outside.open_dir(&name)?;
        let (mut count, mut removes) = (0_usize, false);
        for _ in 0..MAX_PASSES {
            let there = count;
            for entry in Dir::new(openat(
                &folder,
                ".",
                OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC,
                Mode::empty(),
            )?)? {
                let entry = entry?;
                let own = entry.file_name();
                if matches!(own.to_bytes(), b"." | b"..")
                    || before.contains_name(crowd.inode, OsStr::from_bytes(own.to_bytes()))
                {
                    continue;
                }
                if Instant::now() > until {
                    return Err(io::ErrorKind::TimedOut.into());
                }
                // A file with other hard links is not lost, and unlinking is faster than moving.
                let metadata = statat(&folder, own, AtFlags::SYMLINK_NOFOLLOW)?;
                if FileType::from_raw_mode(metadata.st_mode) == FileType::RegularFile
                    && metadata.st_nlink > 1
                {
                    unlinkat(&folder, own, AtFlags::empty())?;
                    count += 1;
                    continue;
                }
                match if removes {
                    Err(Errno::XDEV)
                } else {
                    renameat(&folder, own, &outside, format!("{count}"))
                } {
                    Err(Errno::XDEV) => {
                        removes = true;
                        remove_tree(&folder, own, &mut || Instant::now() < until)?;
                    }
                    Err(Errno::NOENT) => continue,
                    moved => moved?,
                }
                count += 1;
            }
            if count == there {
                break;
            }
        }
        if removes {
            drop(outside);
            let (_, aside) = self.workspace_and_set_aside();
            aside.remove_reserved(&name);
            return Ok((count, None));
        }
        let (_, aside) = self.workspace_and_set_aside();
        Ok((count, Some(aside.record_location(&name)?)))
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::super::restore::RestorePhase;
    use super::super::set_aside::UnmovedEntries;
    use super::super::snapshot::{OpenedDirectories, ProtectedSnapshot};
    use super::*;
    use crate::git::GitNamedPaths;
    use cofferdam_policy::ProtectedPaths;

    /// Restores a workspace like the supervisor, in one round, and returns the names left in it.
    fn look_after(
        root: &Path,
        aside: &Path,
        change: impl FnOnce(&dyn Fn(&str)),
    ) -> (Vec<String>, Vec<String>) {
        let write = |path: &str| {
            let path = root.join(path);
            std::fs::create_dir_all(path.parent().expect("a parent")).expect("it is made");
            std::fs::write(path, "").expect("it is written");
        };
        write("mine/file");
        let (before, protected) = ProtectedSnapshot::capture_before(
            root,
            &ProtectedPaths::default(),
            GitNamedPaths::default(),
            true,
            &mut || true,
        )
        .expect("it is looked at");
        change(&write);
        let until = Instant::now() + Duration::from_secs(60);
        let opened = OpenedDirectories::default();
        let capture_after = || {
            let seen = (&opened, None);
            ProtectedSnapshot::capture_after(root, &protected, true, &before, seen, until)
        };
        let after = capture_after().expect("it is looked at");
        assert!(after.growth.exceeds_limit(MAX_ENTRIES));
        let mut restoration =
            SnapshotRestore::new(root, &before, aside, UnmovedEntries::Rename).expect("it begins");
        restoration.restore(&after, RestorePhase::All);
        restoration.reduce_growth(&after.growth, &before.inventory, until);
        let again = capture_after().expect("it is looked at");
        assert!(!again.growth.exceeds_limit(MAX_ENTRIES), "{:?}", again.growth);
        let mut names: Vec<_> = std::fs::read_dir(root)
            .expect("it is listed")
            .flatten()
            .map(|entry| entry.file_name().to_string_lossy().into_owned())
            .collect();
        names.sort();
        (restoration.into_notices(), names)
    }

    #[test]
    fn a_crowd_beside_what_was_there_goes_and_nothing_else() {
        for outside in [std::env::temp_dir(), "/dev/shm".into()] {
            let (root, aside) = (
                tempfile::tempdir().expect("a folder"),
                tempfile::tempdir_in(outside).expect("a folder"),
            );
            let root = root.path().canonicalize().expect("it is there");
            let (remarks, names) = look_after(&root, aside.path(), |write| {
                write("small/file");
                (0..=MAX_ENTRIES).for_each(|n| write(&format!("mine/{n}")));
                write("mine/new/.vscode/tasks.json");
            });
            assert_eq!(names, ["mine", "small"], "{remarks:?}");
            let left: Vec<_> = std::fs::read_dir(root.join("mine"))
                .expect("it is listed")
                .flatten()
                .map(|entry| entry.file_name())
                .collect();
            assert_eq!(left, ["file"], "{remarks:?}");
        }
    }

    #[test]
    fn the_largest_new_folder_goes_first() {
        let (root, aside) =
            (tempfile::tempdir().expect("a folder"), tempfile::tempdir().expect("a folder"));
        let root = root.path().canonicalize().expect("it is there");
        let (remarks, names) = look_after(&root, aside.path(), |write| {
            (0..100).for_each(|n| write(&format!("small/{n}")));
            (0..=MAX_ENTRIES).for_each(|n| write(&format!("large/a/b/{n}")));
        });
        assert_eq!(names, ["mine", "small"], "{remarks:?}");
        assert!(
            remarks.iter().any(|remark| remark.starts_with("large was created with more entries")),
            "{remarks:?}"
        );
    }

    #[test]
    fn what_is_too_deep_to_be_looked_into_goes() {
        let (root, aside) =
            (tempfile::tempdir().expect("a folder"), tempfile::tempdir().expect("a folder"));
        let root = root.path().canonicalize().expect("it is there");
        let (remarks, names) = look_after(&root, aside.path(), |write| {
            write("small/file");
            write(&format!("deep/{}/file", "d/".repeat(1900)));
        });
        assert_eq!(names, ["mine", "small"], "{remarks:?}");
    }
}
