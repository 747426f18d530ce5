//! The quarantine directory for entries that are moved out of a workspace, one for each command.
//!
//! Its contents are archived, so that no program reads them as code or configuration, even through
//! a link that a later command creates. Entries too large for an archive are stored in a directory
//! with an unguessable name that only the user can list.
//!
//! In a private view, a mount is between the workspace and the quarantine directory. What is too
//! large for an archive is moved when the view is unmounted.

use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use cap_std::fs::{Dir, Permissions, PermissionsExt as _};

use super::archive::{ArchiveBudget, write_archive};
use super::remove::remove_tree;

/// The maximum size of an archive of one entry on another file system, in bytes. For entries on the
/// same file system it is the maximum for all of them.
const MAX_ARCHIVED_BYTES: u64 = 64 << 20;
/// The maximum number of entries in such an archive.
const MAX_ARCHIVED_ENTRIES: usize = 10_000;
/// The maximum time for archiving one entry on another file system, or all entries on the same one.
const ARCHIVE_TIMEOUT: Duration = Duration::from_secs(5);
/// The number of random bytes in an unguessable directory name.
const SECRET_LEN: usize = 16;
/// The maximum time for giving neutral names to all entries of a directory.
const RENAME_TIMEOUT: Duration = Duration::from_secs(30);
/// The maximum depth of a directory whose entries get neutral names.
const MAX_RENAMED_DEPTH: usize = 100;

/// What becomes of an entry that can be neither moved to the quarantine directory nor archived,
/// because a mount is in the way or it is on another file system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum UnmovedEntries {
    /// It gets a neutral name in the workspace, with everything in it.
    Rename,
    /// It gets a neutral name in a private view, and is moved when the view is unmounted. Until
    /// then, nothing of the view is in the workspace.
    Hold,
}

/// The place of an entry that is no longer at its path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum QuarantinedEntry {
    /// This file is its archive, or contains its location.
    Outside(PathBuf),
    /// It has this path in the workspace.
    Renamed(PathBuf),
}

/// An entry that is moved to the quarantine directory when the private view is unmounted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct HeldEntry {
    /// The neutral path in the workspace.
    pub(super) from: PathBuf,
    /// The path in the quarantine directory.
    pub(super) to: PathBuf,
}

/// A quarantine directory that is created at the first use.
#[derive(Debug)]
pub(super) struct QuarantineDir<'a> {
    parent: &'a Path,
    unmoved: UnmovedEntries,
    held: Vec<HeldEntry>,
    directory: Option<(PathBuf, Dir)>,
    count: usize,
    /// The remaining budget for archiving entries on the same file system.
    budget: Option<ArchiveBudget>,
    has_archives: bool,
    /// Whether an entry stayed in the workspace under a neutral name.
    left_in_workspace: bool,
}

impl<'a> QuarantineDir<'a> {
    pub(super) fn new(parent: &'a Path, unmoved: UnmovedEntries) -> Self {
        Self {
            parent,
            unmoved,
            held: Vec::new(),
            directory: None,
            count: 0,
            budget: None,
            has_archives: false,
            left_in_workspace: false,
        }
    }

    /// Returns the directory and an unguessable name for a new entry in it.
    pub(super) fn reserve_name(&mut self) -> io::Result<(&Dir, PathBuf)> {
        if self.directory.is_none() {
            crate::own_file::create_dir_io(self.parent)?;
            let folder =
                tempfile::Builder::new().prefix("set-aside-").tempdir_in(self.parent)?.keep();
            let opened = Dir::open_ambient_dir(&folder, cap_std::ambient_authority())?;
            self.directory = Some((folder, opened));
        }
        self.count += 1;
        let mut secret = [0; SECRET_LEN];
        getrandom::fill(&mut secret).map_err(|error| io::Error::other(error.to_string()))?;
        let name = secret.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
        self.directory
            .as_ref()
            .map(|(_, folder)| (folder, PathBuf::from(name)))
            .ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    /// Writes a file with the location of an entry named by [`Self::reserve_name`], and returns the
    /// path of that file.
    ///
    /// Messages contain only the path of the file, because a command that knows the name itself can
    /// create a link to it.
    pub(super) fn record_location(&self, name: &Path) -> io::Result<PathBuf> {
        let (path, folder) = self.directory.as_ref().ok_or(io::ErrorKind::NotFound)?;
        let file = format!("{}.txt", self.count);
        let text = format!(
            "This entry is too large for an archive. It was moved to the path below.\nPrograms \
             that you run in it, such as git, may run code from it.\n{}\n",
            path.join(name).display()
        );
        folder.write(&file, text)?;
        Ok(path.join(file))
    }

    /// Returns instructions for restoring archives, if there are any.
    pub(super) fn hint(&self) -> Option<String> {
        self.has_archives.then(|| {
            "to list the contents of an archive, the user can run `base64 -d FILE | tar -tvf -`; \
                `base64 -d FILE | tar -xf - -C DIRECTORY` extracts them"
                .to_owned()
        })
    }

    /// Returns whether an unsearched entry stayed in the workspace since the last call.
    pub(super) fn take_left_in_workspace(&mut self) -> bool {
        std::mem::take(&mut self.left_in_workspace)
    }

    /// Returns the entries that will have to be moved when the private view is unmounted.
    pub(super) fn held(&self) -> &[HeldEntry] {
        &self.held
    }

    /// Takes the entries that have to be moved when the private view is unmounted.
    pub(super) fn take_held(&mut self) -> Vec<HeldEntry> {
        std::mem::take(&mut self.held)
    }

    /// Removes an empty directory that was created with a name of [`Self::reserve_name`].
    pub(super) fn remove_reserved(&self, name: &Path) {
        if let Some((_, folder)) = &self.directory {
            let _ = folder.remove_dir(name);
        }
    }

    /// Moves an entry out of the workspace and returns its new place. Its parent directories must
    /// be writable.
    pub(super) fn move_out(
        &mut self,
        workspace: &Dir,
        path: &Path,
    ) -> io::Result<QuarantinedEntry> {
        let (outside, name) = self.reserve_name()?;
        match workspace.rename(path, outside, &name) {
            Err(error) if error.kind() == io::ErrorKind::CrossesDevices => {
                self.copy_out(workspace, path, &name)
            }
            moved => moved.and_then(|()| self.close(path, &name)).map(QuarantinedEntry::Outside),
        }
    }

    /// Moves an entry like [`Self::move_out`], but never copies or removes it.
    ///
    /// On another file system it gets a neutral name at the top of the workspace, where it can be
    /// searched.
    pub(super) fn move_out_whole(
        &mut self,
        workspace: &Dir,
        path: &Path,
    ) -> io::Result<QuarantinedEntry> {
        let (outside, name) = self.reserve_name()?;
        match workspace.rename(path, outside, &name) {
            Err(error) if error.kind() == io::ErrorKind::CrossesDevices => {
                let neutral = PathBuf::from(self.neutral_name());
                workspace.rename(path, workspace, &neutral)?;
                if self.unmoved == UnmovedEntries::Hold {
                    return self.hold(neutral, &name);
                }
                self.left_in_workspace = true;
                Ok(QuarantinedEntry::Renamed(neutral))
            }
            moved => {
                moved.and_then(|()| self.record_location(&name)).map(QuarantinedEntry::Outside)
            }
        }
    }

    /// Moves an entry that is too large to be copied. On another file system it is removed, and the
    /// result is `None`.
    pub(super) fn move_out_or_remove(
        &mut self,
        workspace: &Dir,
        path: &Path,
        goes_on: &mut dyn FnMut() -> bool,
    ) -> io::Result<Option<QuarantinedEntry>> {
        let (outside, name) = self.reserve_name()?;
        match workspace.rename(path, outside, &name) {
            Err(error) if error.kind() == io::ErrorKind::CrossesDevices => {
                if self.unmoved == UnmovedEntries::Hold {
                    let neutral = path.with_file_name(self.neutral_name());
                    workspace.rename(path, workspace, &neutral)?;
                    return self.hold(neutral, &name).map(Some);
                }
                remove_at(workspace, path, goes_on).map(|()| None)
            }
            moved => moved
                .and_then(|()| self.record_location(&name))
                .map(|file| Some(QuarantinedEntry::Outside(file))),
        }
    }

    /// Remembers an entry of a private view, which has a neutral path now.
    fn hold(&mut self, neutral: PathBuf, name: &Path) -> io::Result<QuarantinedEntry> {
        let (directory, _) = self.directory.as_ref().ok_or(io::ErrorKind::NotFound)?;
        let to = directory.join(name);
        let file = self.record_location(name)?;
        self.held.push(HeldEntry { from: neutral, to });
        Ok(QuarantinedEntry::Outside(file))
    }

    /// Archives the moved entry `name`, and returns the path of the archive or of the file with its
    /// location.
    fn close(&mut self, was: &Path, name: &Path) -> io::Result<PathBuf> {
        let mut budget = self.budget.take().unwrap_or_else(new_budget);
        let archived = self.archive(None, name, was, &mut budget);
        self.budget = Some(budget);
        let Ok(archive) = archived else { return self.record_location(name) };
        if let Some((_, outside)) = &self.directory {
            let until = Instant::now() + ARCHIVE_TIMEOUT;
            // A remaining part has an unguessable name.
            let _ = remove_tree(outside, name, &mut || Instant::now() < until);
        }
        Ok(archive)
    }

    /// Archives the entry with this name in `from`, or in the quarantine directory if that is
    /// `None`.
    fn archive(
        &mut self,
        from: Option<&Dir>,
        name: &Path,
        was: &Path,
        budget: &mut ArchiveBudget,
    ) -> io::Result<PathBuf> {
        let (path, outside) = self.directory.as_ref().ok_or(io::ErrorKind::NotFound)?;
        let file = PathBuf::from(format!("{}.tar.base64", self.count));
        let to = (outside, file.as_path());
        if let Err(error) = write_archive(from.unwrap_or(outside), name, was, to, budget) {
            let _ = outside.remove_file(&file);
            return Err(error);
        }
        self.has_archives = true;
        Ok(path.join(file))
    }

    /// Archives an entry behind a mount or on another file system. It gets a neutral name first,
    /// and keeps it if it cannot be archived because of its size or permissions.
    fn copy_out(
        &mut self,
        workspace: &Dir,
        path: &Path,
        name: &Path,
    ) -> io::Result<QuarantinedEntry> {
        let neutral = path.with_file_name(self.neutral_name());
        workspace.rename(path, workspace, &neutral)?;
        let (outer, own) = split_path(&neutral);
        let archived = match outer {
            Some(outer) => workspace.open_dir(outer),
            None => workspace.try_clone(),
        }
        .and_then(|from| self.archive(Some(&from), own, path, &mut new_budget()));
        let until = Instant::now() + ARCHIVE_TIMEOUT;
        match archived {
            Ok(to) if remove_at(workspace, &neutral, &mut || Instant::now() < until).is_ok() => {
                return Ok(QuarantinedEntry::Outside(to));
            }
            Ok(_) | Err(_) if self.unmoved == UnmovedEntries::Hold => {
                return self.hold(neutral, name);
            }
            Ok(_) | Err(_) => {}
        }
        // A directory with the names of a repository would be one under any name.
        self.left_in_workspace = true;
        rename_entries(workspace, &neutral, &self.neutral_name())?;
        Ok(QuarantinedEntry::Renamed(neutral))
    }

    /// Returns a name that no program treats specially.
    fn neutral_name(&self) -> String {
        let stem = self.directory.as_ref().and_then(|(path, _)| path.file_name());
        format!("{}-{}", stem.unwrap_or_default().to_string_lossy(), self.count)
    }
}

fn new_budget() -> ArchiveBudget {
    ArchiveBudget {
        bytes: MAX_ARCHIVED_BYTES,
        entries: MAX_ARCHIVED_ENTRIES,
        deadline: Instant::now() + ARCHIVE_TIMEOUT,
    }
}

/// Moves entries of a private view to the quarantine directory, after the view was unmounted.
///
/// `upper` is the directory that received the changes, and `workspace` has the directories that the
/// command wrote directly.
///
/// # Errors
/// An entry cannot be moved.
pub(super) fn move_held_entries(
    held: &[HeldEntry],
    upper: &Path,
    workspace: &Path,
) -> io::Result<()> {
    let open = |path: &Path| Dir::open_ambient_dir(path, cap_std::ambient_authority());
    if held.is_empty() {
        return Ok(());
    }
    let places = [open(upper)?, open(workspace)?];
    for HeldEntry { from, to } in held {
        let (Some(outside), name) = split_path(to) else { continue };
        let outside = open(outside)?;
        for place in &places {
            match place.rename(from, &outside, name) {
                // An outer entry was moved later, with this one in it.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                moved => moved?,
            }
        }
    }
    Ok(())
}

/// Gives all entries below a directory neutral names. An entry that is no directory stays.
fn rename_entries(workspace: &Dir, path: &Path, stem: &str) -> io::Result<()> {
    if !workspace.symlink_metadata(path)?.is_dir() {
        return Ok(());
    }
    let mut renamer = EntryRenamer { stem, count: 0, deadline: Instant::now() + RENAME_TIMEOUT };
    renamer.rename_below(&workspace.open_dir(path)?, MAX_RENAMED_DEPTH)
}

/// Gives entries the names `STEM-0`, `STEM-1` and so on.
struct EntryRenamer<'a> {
    stem: &'a str,
    count: u64,
    deadline: Instant,
}

impl EntryRenamer<'_> {
    /// Renames all entries below a directory. What is more than `levels` deep is removed.
    fn rename_below(&mut self, directory: &Dir, levels: usize) -> io::Result<()> {
        let mut inner = Vec::new();
        for entry in directory.entries()?.collect::<io::Result<Vec<_>>>()? {
            if Instant::now() > self.deadline {
                return Err(io::ErrorKind::TimedOut.into());
            }
            let name = PathBuf::from(format!("{}-{}", self.stem, self.count));
            self.count += 1;
            directory.rename(entry.file_name(), directory, &name)?;
            let metadata = directory.symlink_metadata(&name)?;
            if metadata.is_dir() {
                let mode = metadata.permissions().mode() | 0o700;
                directory.set_permissions(&name, Permissions::from_mode(mode))?;
                inner.push(name);
            }
        }
        for name in inner {
            let until = self.deadline;
            match levels.checked_sub(1) {
                Some(levels) => self.rename_below(&directory.open_dir(&name)?, levels)?,
                None => remove_tree(directory, &*name, &mut || Instant::now() < until)?,
            }
        }
        Ok(())
    }
}

/// Splits a path into its parent, if it has one, and its last component.
fn split_path(path: &Path) -> (Option<&Path>, &Path) {
    let outer = path.parent().filter(|outer| !outer.as_os_str().is_empty());
    (outer, Path::new(path.file_name().unwrap_or_default()))
}

fn remove_at(workspace: &Dir, path: &Path, goes_on: &mut dyn FnMut() -> bool) -> io::Result<()> {
    let (outer, name) = split_path(path);
    match outer {
        Some(outer) => remove_tree(&workspace.open_dir(outer)?, name, goes_on),
        None => remove_tree(workspace, name, goes_on),
    }
}
