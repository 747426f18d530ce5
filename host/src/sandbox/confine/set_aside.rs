//! Where things go that have no business in the workspace: a directory of the program's own for each
//! command. What is in it is archived, so that no program obeys it there, also if a later command
//! makes a link to it. What is too large for that lies in a directory whose name nobody can guess
//! and that only the user can list.

use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use cap_std::fs::Dir;

use super::archive::{ArchiveBudget, write_archive};
use super::remove::remove_tree;

/// Of what is archived of one thing on another file system, and of all things on this one: bytes and
/// entries.
const MAX_ARCHIVED_BYTES: u64 = 64 << 20;
const MAX_ARCHIVED_ENTRIES: usize = 10_000;
/// How long archiving one thing on another file system may take, and all things on this one.
const ARCHIVE_TIMEOUT: Duration = Duration::from_secs(5);
/// Bytes of chance in the name of a directory that nobody can guess.
const SECRET_LEN: usize = 16;
/// What the path of something begins with that could not be moved out.
const WORKSPACE_PREFIX: &str = "WORKSPACE";

/// The folder, made when it is first needed.
#[derive(Debug)]
pub(super) struct QuarantineDir<'a> {
    parent: &'a Path,
    directory: Option<(PathBuf, Dir)>,
    count: usize,
    /// What may still be archived of what is on the same file system.
    budget: Option<ArchiveBudget>,
    has_archives: bool,
    /// Something stayed in the workspace, under a name that means nothing.
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

    /// The directory, and a name in it that nobody can guess.
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

    /// Writes down where something is that got a name by [`Self::reserve_name`]. Returns the path
    /// of the file that says it: whoever knows the name itself can make a link to it.
    pub(super) fn record_location(&self, name: &Path) -> io::Result<PathBuf> {
        let (path, folder) = self.directory.as_ref().ok_or(io::ErrorKind::NotFound)?;
        let file = format!("{}.txt", self.count);
        let text = format!(
            "What was set aside is too large for an archive. It is the file or directory below.\n\
             Programs that you start in it, such as git, may run what is in it.\n{}\n",
            path.join(name).display()
        );
        folder.write(&file, text)?;
        Ok(path.join(file))
    }

    /// How to get back what was set aside, if there is something.
    pub(super) fn hint(&self) -> Option<String> {
        self.has_archives.then(|| {
            "to look at what was set aside, the user can run `base64 -d FILE | tar -tvf -`; `base64 \
                -d FILE | tar -xf - -C DIRECTORY` gets it back"
                .to_owned()
        })
    }

    /// Whether something stayed in the workspace since this was asked last: what is in it has not
    /// been looked at.
    pub(super) fn take_left_in_workspace(&mut self) -> bool {
        std::mem::take(&mut self.left_in_workspace)
    }

    /// Removes an empty folder that [`Self::reserve_name`] gave the name for.
    pub(super) fn remove_reserved(&self, name: &Path) {
        if let Some((_, folder)) = &self.directory {
            let _ = folder.remove_dir(name);
        }
    }

    /// Moves something out of the workspace; tells where it is. The folders around it can be
    /// written.
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

    /// The same for what is neither to be copied nor removed: on another file system it gets a name
    /// at the top of the workspace that means nothing, and can be looked through there.
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

    /// The same for what is too large to be copied: on another file system it is removed, which
    /// `None` tells.
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

    /// Archives what was moved out as `name`; where it is then.
    fn close(&mut self, was: &Path, name: &Path) -> io::Result<PathBuf> {
        let mut budget = self.budget.take().unwrap_or_else(new_budget);
        let archived = self.archive(None, name, was, &mut budget);
        self.budget = Some(budget);
        let Ok(archive) = archived else { return self.record_location(name) };
        if let Some((_, outside)) = &self.directory {
            let until = Instant::now() + ARCHIVE_TIMEOUT;
            // What stays has a name that nobody can guess.
            let _ = remove_tree(outside, name, &mut || Instant::now() < until);
        }
        Ok(archive)
    }

    /// Archives what has this name in a directory, or in this one.
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

    /// To another file system. First of all it gets a name that means nothing to anybody; should it
    /// not be archived, for its size or its permissions, it stays under that.
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

    /// A name that means nothing to anybody.
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
