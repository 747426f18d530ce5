//! Putting protected paths back as they were. All processes of the command are gone by then; what they left may still be a
//! trap, such as a link in place of a folder, so everything happens below the open workspace and nothing through links
//! that lead out.

use std::path::{Path, PathBuf};

use cap_std::fs::{Dir, PermissionsExt as _};

use super::fresh::is_of_git_init;
use super::watch::{Entry, Kept, Snapshot};
use crate::policy::Protected;

/// So many remarks are made one by one.
const MOST_REMARKS: usize = 10;

/// Puts back what is in `before`, and takes away what is new; tells what was done.
pub(super) fn restore(root: &Path, before: &Snapshot, after: &Snapshot, set_aside: &Path) -> Vec<String> {
    let mut work = match Work::open(root, set_aside) {
        Ok(work) => work,
        Err(error) => return vec![format!("protected paths could not be looked after: {error}")],
    };
    for (path, entry) in &after.entries {
        let had = before.entries.get(path);
        // Outer paths come first, and take what is in them along.
        if work.gone.iter().any(|gone| path.starts_with(gone)) {
            continue;
        }
        match had {
            Some(had) if had.kind == entry.kind && had.kept == entry.kept && had.mode == entry.mode => {}
            // A folder keeps what is in it; its mode is put back below.
            Some(had) if had.kind == entry.kind && entry.kind.is_dir() => {}
            Some(_) => work.take_away(path, "was changed"),
            None if is_harmless(entry) || is_of_git_init(&work.workspace, path) => {}
            None => work.take_away(path, "was made"),
        }
    }
    for (path, entry) in &before.entries {
        let same = after.entries.get(path).is_some_and(|now| now == entry);
        if !same || work.gone.iter().any(|gone| path.starts_with(gone)) {
            work.put_back(path, entry);
        }
    }
    if after.cut {
        work.remarks.push("the workspace has too many files to look after protected paths in its deepest folders".to_owned());
    }
    let more = work.remarks.len().saturating_sub(MOST_REMARKS);
    work.remarks.truncate(MOST_REMARKS);
    if more > 0 {
        work.remarks.push(format!("and {more} more"));
    }
    work.remarks
}

/// A new secret holds only what the command knew. A new repository may be; what it would run is protected by itself.
fn is_harmless(entry: &Entry) -> bool {
    match entry.how {
        Protected::Hidden => !entry.runs,
        Protected::Pinned => true,
        Protected::ReadOnly => false,
    }
}

struct Work<'a> {
    workspace: Dir,
    set_aside: &'a Path,
    gone: Vec<PathBuf>,
    /// Put back, and named; what is in them is not.
    whole: Vec<PathBuf>,
    remarks: Vec<String>,
}

impl<'a> Work<'a> {
    fn open(root: &Path, set_aside: &'a Path) -> std::io::Result<Self> {
        let workspace = Dir::open_ambient_dir(root, cap_std::ambient_authority())?;
        Ok(Self { workspace, set_aside, gone: Vec::new(), whole: Vec::new(), remarks: Vec::new() })
    }

    /// Moves it out of the workspace, to where it can be looked at and nothing runs it.
    fn take_away(&mut self, path: &Path, what_happened: &str) {
        self.gone.push(path.to_owned());
        let shown = path.display();
        match self.move_out(path) {
            Ok(to) => self.remarks.push(format!("{shown} {what_happened}, which is not allowed; it is now {}", to.display())),
            Err(error) => self.remarks.push(format!("{shown} {what_happened}, which is not allowed, and COULD NOT be taken away: {error}")),
        }
    }

    fn move_out(&self, path: &Path) -> std::io::Result<PathBuf> {
        std::fs::create_dir_all(self.set_aside)?;
        let name = path.file_name().unwrap_or_default();
        let folder = tempfile::Builder::new().prefix("set-aside-").tempdir_in(self.set_aside)?.keep();
        let outside = Dir::open_ambient_dir(&folder, cap_std::ambient_authority())?;
        match self.workspace.rename(path, &outside, name) {
            Err(error) if error.kind() == std::io::ErrorKind::CrossesDevices => {
                copy(&self.workspace, path, &outside, Path::new(name))?;
                remove(&self.workspace, path)?;
            }
            moved => moved?,
        }
        Ok(folder.join(name))
    }

    fn put_back(&mut self, path: &Path, entry: &Entry) {
        let result = match &entry.kept {
            Kept::File(content) => self.write(path, content, entry.mode),
            Kept::Link(target) => self.parents(path).and_then(|()| self.workspace.symlink_contents(target, path)),
            Kept::Nothing if entry.kind.is_dir() => {
                self.workspace.create_dir_all(path).and_then(|()| if entry.mode == 0 { Ok(()) } else { self.set_mode(path, entry.mode) })
            }
            Kept::Nothing => Err(std::io::Error::other("there is no copy of it")),
        };
        let shown = path.display();
        if result.is_ok() && self.whole.iter().any(|whole| path.starts_with(whole)) {
            return;
        }
        self.whole.push(path.to_owned());
        self.remarks.push(match result {
            Ok(()) => format!("{shown} was changed or removed, and is as it was before the command"),
            Err(error) => format!("{shown} was changed or removed, and COULD NOT be put back: {error}"),
        });
    }

    fn write(&self, path: &Path, content: &[u8], mode: u32) -> std::io::Result<()> {
        self.parents(path)?;
        // Gone already, unless only its content differs.
        let _ = self.workspace.remove_file(path);
        self.workspace.write(path, content)?;
        self.set_mode(path, mode)
    }

    fn parents(&self, path: &Path) -> std::io::Result<()> {
        match path.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => self.workspace.create_dir_all(parent),
            Some(_) | None => Ok(()),
        }
    }

    fn set_mode(&self, path: &Path, mode: u32) -> std::io::Result<()> {
        self.workspace.set_permissions(path, cap_std::fs::Permissions::from_mode(mode))
    }
}

/// Between file systems. Links stay links; what is neither file, folder nor link is not kept.
fn copy(from: &Dir, path: &Path, to: &Dir, name: &Path) -> std::io::Result<()> {
    let kind = from.symlink_metadata(path)?.file_type();
    if kind.is_symlink() {
        to.symlink_contents(from.read_link_contents(path)?, name)
    } else if kind.is_dir() {
        to.create_dir(name)?;
        for entry in from.read_dir(path)? {
            let entry = entry?.file_name();
            copy(from, &path.join(&entry), to, &name.join(&entry))?;
        }
        Ok(())
    } else if kind.is_file() {
        from.copy(path, to, name).map(drop)
    } else {
        Ok(())
    }
}

fn remove(from: &Dir, path: &Path) -> std::io::Result<()> {
    if from.symlink_metadata(path)?.is_dir() { from.remove_dir_all(path) } else { from.remove_file(path) }
}
