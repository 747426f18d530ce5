//! The quarantine directory for entries that are moved out of a workspace, one for each command.
//!
//! Its contents are archived, so that no program reads them as code or configuration, even through
//! a link that a later command creates. Entries too large for an archive are stored in a directory
//! with an unguessable name that only the user can list.

use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use cap_std::fs::Dir;

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
/// The first component of a path that stands for an entry left in the workspace.
const WORKSPACE_PREFIX: &str = "WORKSPACE";

/// A quarantine directory that is created at the first use.
#[derive(Debug)]
pub(super) struct QuarantineDir<'a> {
    parent: &'a Path,
    directory: Option<(PathBuf, Dir)>,
    count: usize,
    /// The remaining budget for archiving entries on the same file system.
    budget: Option<ArchiveBudget>,
    has_archives: bool,
    /// Whether an entry stayed in the workspace under a neutral name.
    left_in_workspace: bool,
}

impl<'a> QuarantineDir<'a> {
    pub(super) fn new(parent: &'a Path) -> Self {
        Self {
            parent,
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

    /// Removes an empty directory that was created with a name of [`Self::reserve_name`].
    pub(super) fn remove_reserved(&self, name: &Path) {
        if let Some((_, folder)) = &self.directory {
            let _ = folder.remove_dir(name);
        }
    }

    /// Moves an entry out of the workspace and returns its new path. Its parent directories must be
    /// writable.
    pub(super) fn move_out(&mut self, workspace: &Dir, path: &Path) -> io::Result<PathBuf> {
        let (outside, name) = self.reserve_name()?;
        match workspace.rename(path, outside, &name) {
            Err(error) if error.kind() == io::ErrorKind::CrossesDevices => {
                let to = self.copy_out(workspace, path)?;
                self.left_in_workspace |= to.starts_with(WORKSPACE_PREFIX);
                Ok(to)
            }
            moved => moved.and_then(|()| self.close(path, &name)),
        }
    }

    /// Moves an entry like [`Self::move_out`], but never copies or removes it.
    ///
    /// On another file system it gets a neutral name at the top of the workspace, where it can be
    /// searched.
    pub(super) fn move_out_whole(&mut self, workspace: &Dir, path: &Path) -> io::Result<PathBuf> {
        let (outside, name) = self.reserve_name()?;
        match workspace.rename(path, outside, &name) {
            Err(error) if error.kind() == io::ErrorKind::CrossesDevices => {
                let neutral = PathBuf::from(self.neutral_name());
                workspace.rename(path, workspace, &neutral)?;
                self.left_in_workspace = true;
                Ok(Path::new(WORKSPACE_PREFIX).join(neutral))
            }
            moved => moved.and_then(|()| self.record_location(&name)),
        }
    }

    /// Moves an entry that is too large to be copied. On another file system it is removed, and the
    /// result is `None`.
    pub(super) fn move_out_or_remove(
        &mut self,
        workspace: &Dir,
        path: &Path,
        goes_on: &mut dyn FnMut() -> bool,
    ) -> io::Result<Option<PathBuf>> {
        let (outside, name) = self.reserve_name()?;
        match workspace.rename(path, outside, &name) {
            Err(error) if error.kind() == io::ErrorKind::CrossesDevices => {
                remove_at(workspace, path, goes_on).map(|()| None)
            }
            moved => moved.and_then(|()| self.record_location(&name)).map(Some),
        }
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

    /// Archives an entry on another file system. It gets a neutral name first, and keeps it if it
    /// cannot be archived because of its size or permissions.
    fn copy_out(&mut self, workspace: &Dir, path: &Path) -> io::Result<PathBuf> {
        let neutral = path.with_file_name(self.neutral_name());
        workspace.rename(path, workspace, &neutral)?;
        let outer = neutral.parent().filter(|outer| !outer.as_os_str().is_empty());
        let name = Path::new(neutral.file_name().unwrap_or_default());
        let archived = match outer {
            Some(outer) => workspace.open_dir(outer),
            None => workspace.try_clone(),
        }
        .and_then(|from| self.archive(Some(&from), name, path, &mut new_budget()));
        let until = Instant::now() + ARCHIVE_TIMEOUT;
        match archived {
            Ok(to) if remove_at(workspace, &neutral, &mut || Instant::now() < until).is_ok() => {
                Ok(to)
            }
            Ok(_) | Err(_) => Ok(Path::new(WORKSPACE_PREFIX).join(neutral)),
        }
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

fn remove_at(workspace: &Dir, path: &Path, goes_on: &mut dyn FnMut() -> bool) -> io::Result<()> {
    let name = path.file_name().ok_or(io::ErrorKind::InvalidInput)?;
    match path.parent().filter(|outer| !outer.as_os_str().is_empty()) {
        Some(outer) => remove_tree(&workspace.open_dir(outer)?, name, goes_on),
        None => remove_tree(workspace, name, goes_on),
    }
}
