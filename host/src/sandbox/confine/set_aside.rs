//! Where things go that have no business in the workspace: a folder of the program's own for each
//! command, in which nothing has the name that made it run.

use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use cap_std::fs::Dir;

use super::remove::remove_tree;

/// Of what is copied out of the workspace to another file system at once, in bytes, entries and
/// levels, and how long that may take.
const MAX_COPIED_BYTES: u64 = 64 << 20;
const MAX_COPIED_ENTRIES: usize = 10_000;
const MAX_DEPTH: usize = 100;
const COPY_TIMEOUT: Duration = Duration::from_secs(5);
/// What the path of something begins with that could not be moved out.
const WORKSPACE_PREFIX: &str = "WORKSPACE";

/// The folder, made when it is first needed.
#[derive(Debug)]
pub(super) struct QuarantineDir<'a> {
    parent: &'a Path,
    directory: Option<(PathBuf, Dir)>,
    count: usize,
    /// Something stayed in the workspace, under a name that means nothing.
    left_in_workspace: bool,
}

impl<'a> QuarantineDir<'a> {
    pub(super) fn new(parent: &'a Path) -> Self {
        Self { parent, directory: None, count: 0, left_in_workspace: false }
    }

    /// The folder, and a name that nothing in it has: what lies beside each other there was not
    /// together before.
    pub(super) fn reserve_name(&mut self, name: &OsStr) -> io::Result<(&Path, &Dir, PathBuf)> {
        if self.directory.is_none() {
            std::fs::create_dir_all(self.parent)?;
            let folder =
                tempfile::Builder::new().prefix("set-aside-").tempdir_in(self.parent)?.keep();
            let opened = Dir::open_ambient_dir(&folder, cap_std::ambient_authority())?;
            self.directory = Some((folder, opened));
        }
        self.count += 1;
        let shortened = if name.len() > 200 { OsStr::new("x") } else { name };
        let mut own = std::ffi::OsString::from(format!("{}-", self.count));
        own.push(shortened);
        self.directory
            .as_ref()
            .map(|(path, folder)| (path.as_path(), folder, PathBuf::from(own)))
            .ok_or_else(|| io::ErrorKind::NotFound.into())
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
        let (folder, outside, name) = self.reserve_name(path.file_name().unwrap_or_default())?;
        match workspace.rename(path, outside, &name) {
            Err(error) if error.kind() == io::ErrorKind::CrossesDevices => {
                let to = copy_out(workspace, path, outside, folder, &name)?;
                self.left_in_workspace |= to.starts_with(WORKSPACE_PREFIX);
                Ok(to)
            }
            moved => moved.map(|()| folder.join(name)),
        }
    }

    /// The same for what is neither to be copied nor removed: on another file system it gets a name
    /// at the top of the workspace that means nothing, and can be looked through there.
    pub(super) fn move_out_whole(&mut self, workspace: &Dir, path: &Path) -> io::Result<PathBuf> {
        let (folder, outside, name) = self.reserve_name(path.file_name().unwrap_or_default())?;
        match workspace.rename(path, outside, &name) {
            Err(error) if error.kind() == io::ErrorKind::CrossesDevices => {
                let neutral = PathBuf::from(neutral_name(folder, &name));
                workspace.rename(path, workspace, &neutral)?;
                self.left_in_workspace = true;
                Ok(Path::new(WORKSPACE_PREFIX).join(neutral))
            }
            moved => moved.map(|()| folder.join(name)),
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
        let (folder, outside, name) = self.reserve_name(path.file_name().unwrap_or_default())?;
        match workspace.rename(path, outside, &name) {
            Err(error) if error.kind() == io::ErrorKind::CrossesDevices => {
                remove_at(workspace, path, goes_on).map(|()| None)
            }
            moved => moved.map(|()| Some(folder.join(name))),
        }
    }
}

/// To another file system. First of all it gets a name that means nothing to anybody; should it not
/// be copied, for its size or its permissions, it stays under that.
fn copy_out(
    workspace: &Dir,
    path: &Path,
    outside: &Dir,
    folder: &Path,
    name: &Path,
) -> io::Result<PathBuf> {
    let neutral = path.with_file_name(neutral_name(folder, name));
    workspace.rename(path, workspace, &neutral)?;
    let mut budget = QuarantineBudget {
        bytes: MAX_COPIED_BYTES,
        entries: MAX_COPIED_ENTRIES,
        deadline: Instant::now() + COPY_TIMEOUT,
    };
    let outer = neutral.parent().filter(|outer| !outer.as_os_str().is_empty());
    let copied = match outer {
        Some(outer) => workspace.open_dir(outer),
        None => workspace.try_clone(),
    }
    .and_then(|from| {
        copy_tree(
            &from,
            Path::new(neutral.file_name().unwrap_or_default()),
            outside,
            name,
            MAX_DEPTH,
            &mut budget,
        )
    });
    let until = Instant::now() + COPY_TIMEOUT;
    if copied.is_ok() && remove_at(workspace, &neutral, &mut || Instant::now() < until).is_ok() {
        return Ok(folder.join(name));
    }
    // Of what is whole in the workspace no part is needed here.
    let _ = remove_tree(outside, name, &mut || Instant::now() < until);
    Ok(Path::new(WORKSPACE_PREFIX).join(neutral))
}

/// A name that means nothing to anybody.
fn neutral_name(folder: &Path, name: &Path) -> String {
    let stem = folder.file_name().unwrap_or_default().to_string_lossy();
    let number = name.to_string_lossy().split('-').next().unwrap_or_default().to_owned();
    format!("{stem}-{number}")
}

fn remove_at(workspace: &Dir, path: &Path, goes_on: &mut dyn FnMut() -> bool) -> io::Result<()> {
    let name = path.file_name().ok_or(io::ErrorKind::InvalidInput)?;
    match path.parent().filter(|outer| !outer.as_os_str().is_empty()) {
        Some(outer) => remove_tree(&workspace.open_dir(outer)?, name, goes_on),
        None => remove_tree(workspace, name, goes_on),
    }
}

struct QuarantineBudget {
    bytes: u64,
    entries: usize,
    deadline: Instant,
}

/// Between file systems. Links stay links; what is neither file, folder nor link is not kept.
fn copy_tree(
    from: &Dir,
    path: &Path,
    to: &Dir,
    name: &Path,
    levels: usize,
    budget: &mut QuarantineBudget,
) -> io::Result<()> {
    let too_much = || io::Error::from(io::ErrorKind::FileTooLarge);
    budget.entries = budget.entries.checked_sub(1).ok_or_else(too_much)?;
    if Instant::now() > budget.deadline {
        return Err(io::ErrorKind::TimedOut.into());
    }
    let metadata = from.symlink_metadata(path)?;
    let kind = metadata.file_type();
    if kind.is_symlink() {
        to.symlink_contents(from.read_link_contents(path)?, name)
    } else if kind.is_dir() {
        let levels = levels.checked_sub(1).ok_or_else(too_much)?;
        to.create_dir(name)?;
        let (inner, outer) = (from.open_dir(path)?, to.open_dir(name)?);
        for entry in inner.entries()? {
            let entry = PathBuf::from(entry?.file_name());
            copy_tree(&inner, &entry, &outer, &entry, levels, budget)?;
        }
        Ok(())
    } else if kind.is_file() {
        budget.bytes = budget.bytes.checked_sub(metadata.len()).ok_or_else(too_much)?;
        from.copy(path, to, name).map(drop)
    } else {
        Ok(())
    }
}
