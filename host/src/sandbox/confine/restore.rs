//! Putting protected paths back as they were. All processes of the command are gone by then; what they left may still be a
//! trap, such as a link in place of a folder, so everything happens below the open workspace and nothing through links
//! that lead out.

use std::io;
use std::path::{Path, PathBuf};

use cap_std::fs::{Dir, PermissionsExt as _};

use super::fresh::is_of_new_repository;
use super::watch::{Entry, Kept, Snapshot};
use crate::policy::Protected;

/// So many remarks are made one by one.
const MOST_REMARKS: usize = 10;
/// Of a path in a remark, in characters.
const LONGEST_PATH: usize = 200;
/// Of what is copied out of the workspace to another file system at once.
const MOST_COPIED: u64 = 64 << 20;

/// New secrets are harmless, but each is something to look after: when there are so many protected paths, or bytes of them,
/// further ones are taken away, so that no command can make it too much for the next.
const MANY: usize = 500;
const MUCH: u64 = 32 << 20;

/// Moves folders back that hold protected paths and were moved away; tells what was done.
pub(super) fn move_back(root: &Path, before: &Snapshot, after: &Snapshot, set_aside: &Path) -> Vec<String> {
    let mut work = match Work::open(root, set_aside) {
        Ok(work) => work,
        Err(error) => return vec![format!("protected paths could not be looked after: {error}")],
    };
    let mut moved: Vec<_> = after.moved.iter().collect();
    // Outer folders first: they take along what is in them.
    moved.sort_by_key(|(was, _)| was.components().count());
    let mut back: Vec<&Path> = Vec::new();
    for (was, is) in moved {
        // A copy under another inode is none, and one that is still there is in two places: a mount.
        let in_place = after.entries.get(was).zip(before.entries.get(was)).is_some_and(|(now, had)| now.is_the_same(had));
        // The folder around it was renamed, and it with that.
        let has_no_place = was.parent().is_some_and(|parent| !parent.as_os_str().is_empty() && !work.is_folder(parent));
        if has_no_place || back.iter().any(|back| was.starts_with(back)) {
            continue;
        }
        if in_place || work.gone.iter().any(|gone| is.starts_with(gone)) {
            continue;
        }
        if after.entries.contains_key(was) {
            work.take_away(was, "was replaced");
        }
        let moved = work.open_parents(&[was, is]).and_then(|()| work.workspace.rename(is, &work.workspace, was));
        back.extend(moved.is_ok().then_some(was.as_path()));
        work.remarks.push(match moved {
            Ok(()) => format!("{} was moved to {}, and is back where it was", shown(was), shown(is)),
            Err(error) => format!("{} was moved to {}, and COULD NOT be moved back: {error}", shown(was), shown(is)),
        });
    }
    work.told()
}

/// Puts back what is in `before`, and takes away what is new; tells what was done.
pub(super) fn restore(root: &Path, before: &Snapshot, after: &Snapshot, set_aside: &Path) -> Vec<String> {
    let mut work = match Work::open(root, set_aside) {
        Ok(work) => work,
        Err(error) => return vec![format!("protected paths could not be looked after: {error}")],
    };
    let (many, much) = after.extent();
    let is_too_much = many > MANY || much > MUCH;
    for (path, entry) in &after.entries {
        // Outer paths come first, and take what is in them along.
        if entry.own || work.gone.iter().any(|gone| path.starts_with(gone)) {
            continue;
        }
        match before.entries.get(path) {
            Some(had) if entry.is_as(had) => {}
            // A folder keeps what is in it; its mode is put back below.
            Some(had) if had.kind == entry.kind && entry.kind.is_dir() => {}
            Some(_) => work.take_away(path, "was changed"),
            // Its folder was renamed, and it is what it was.
            None if before.of_the_same(entry).is_some_and(|had| had.how == entry.how && entry.is_as(had)) => {}
            // What is written through another name later is written here.
            None if entry.has_other_names => work.take_away(path, "was made with another name for it"),
            None if is_harmless(entry) && !(is_too_much && entry.how == Protected::Hidden) => {}
            None if is_of_new_repository(&work.workspace, path) => {}
            None if is_harmless(entry) => work.take_away(path, "was made beside too many of its kind"),
            None => work.take_away(path, "was made"),
        }
    }
    for (path, entry) in &before.entries {
        let same = after.entries.get(path).is_some_and(|now| now.is_as(entry));
        let is_gone = work.gone.iter().any(|gone| path.starts_with(gone));
        let has_moved = after.of_the_same(entry).is_some_and(|now| now.is_as(entry)) && !after.entries.contains_key(path);
        if entry.own || same && !is_gone || has_moved || work.lost.iter().any(|lost| path.starts_with(lost)) {
            continue;
        }
        // A repository without what it stored is none, and what stood in it runs nowhere.
        if entry.how == Protected::Pinned && entry.kind.is_dir() && !is_gone && !after.entries.contains_key(path) {
            work.lost.push(path.clone());
            work.remarks.push(format!("{} was removed, with the hooks and settings in it", shown(path)));
        } else {
            work.put_back(path, entry);
        }
    }
    work.remarks.extend(after.closed.iter().filter(|path| !before.closed.contains(path)).map(|path| {
        format!("{} cannot be looked into, and may hold files that other programs run; look at it before you use it", shown(path))
    }));
    work.close_again(before);
    if after.cut {
        work.remarks.push("the workspace has too many files now to look after protected paths in its deepest folders".to_owned());
    }
    work.told()
}

/// A new secret holds only what the command knew. A new repository may be; what it would run is protected by itself.
fn is_harmless(entry: &Entry) -> bool {
    match entry.how {
        Protected::Hidden => !entry.runs,
        Protected::Pinned => true,
        Protected::ReadOnly => false,
    }
}

/// A path, for people and for the model: a command may have given it any name.
fn shown(path: &Path) -> String {
    crate::shown::line(&path.display().to_string(), LONGEST_PATH)
}

struct Work<'a> {
    workspace: Dir,
    set_aside: &'a Path,
    gone: Vec<PathBuf>,
    /// Removed for good.
    lost: Vec<PathBuf>,
    /// Put back, and named; what is in them is not.
    whole: Vec<PathBuf>,
    remarks: Vec<String>,
}

impl<'a> Work<'a> {
    fn open(root: &Path, set_aside: &'a Path) -> io::Result<Self> {
        let workspace = Dir::open_ambient_dir(root, cap_std::ambient_authority())?;
        Ok(Self { workspace, set_aside, gone: Vec::new(), lost: Vec::new(), whole: Vec::new(), remarks: Vec::new() })
    }

    fn is_folder(&self, path: &Path) -> bool {
        self.workspace.symlink_metadata(path).is_ok_and(|metadata| metadata.is_dir())
    }

    fn told(mut self) -> Vec<String> {
        let more = self.remarks.len().saturating_sub(MOST_REMARKS);
        self.remarks.truncate(MOST_REMARKS);
        if more > 0 {
            self.remarks.push(format!("and {more} more"));
        }
        self.remarks
    }

    /// Moves it out of the workspace, to where it can be looked at and nothing runs it.
    fn take_away(&mut self, path: &Path, what_happened: &str) {
        self.gone.push(path.to_owned());
        let is = format!("{} {what_happened}, which is not allowed", shown(path));
        self.remarks.push(match self.move_out(path) {
            Ok(to) => format!("{is}; it is now {}", shown(&to)),
            Err(error) => format!("{is}, and COULD NOT be taken away: {error}"),
        });
    }

    fn move_out(&self, path: &Path) -> io::Result<PathBuf> {
        std::fs::create_dir_all(self.set_aside)?;
        let name = path.file_name().unwrap_or_default();
        let folder = tempfile::Builder::new().prefix("set-aside-").tempdir_in(self.set_aside)?.keep();
        let outside = Dir::open_ambient_dir(&folder, cap_std::ambient_authority())?;
        self.open_parents(&[path])?;
        // A folder moves to another parent only if it could be written itself.
        self.open_up(path)?;
        match self.workspace.rename(path, &outside, name) {
            Err(error) if error.kind() == io::ErrorKind::CrossesDevices => self.copy_out(path, &outside, &folder),
            moved => moved.map(|()| folder.join(name)),
        }
    }

    /// To another file system. First of all it gets a name that means nothing to anybody; should it not be copied, for its
    /// size or its permissions, it stays under that.
    fn copy_out(&self, path: &Path, outside: &Dir, folder: &Path) -> io::Result<PathBuf> {
        let stem = folder.file_name().unwrap_or_default();
        let neutral = path.with_file_name(stem);
        self.workspace.rename(path, &self.workspace, &neutral)?;
        let name = path.file_name().unwrap_or_default();
        let mut room = MOST_COPIED;
        let copied = copy(&self.workspace, &neutral, outside, Path::new(name), &mut room).and_then(|()| remove(&self.workspace, &neutral));
        Ok(if copied.is_ok() { folder.join(name) } else { Path::new("WORKSPACE").join(neutral) })
    }

    /// What the command may have closed to its own user is opened, to be changed.
    fn open_parents(&self, paths: &[&Path]) -> io::Result<()> {
        for path in paths {
            let mut above: Vec<&Path> = path.ancestors().skip(1).filter(|above| !above.as_os_str().is_empty()).collect();
            above.reverse();
            above.into_iter().try_for_each(|above| self.open_up(above))?;
        }
        Ok(())
    }

    fn open_up(&self, path: &Path) -> io::Result<()> {
        let Ok(metadata) = self.workspace.symlink_metadata(path) else { return Ok(()) };
        let mode = metadata.permissions().mode();
        if !metadata.is_dir() || mode & 0o700 == 0o700 {
            return Ok(());
        }
        self.set_mode(path, mode & 0o7777 | 0o700)
    }

    fn put_back(&mut self, path: &Path, entry: &Entry) {
        let result = match &entry.kept {
            Kept::File(content) => self.write(path, content, entry.mode),
            Kept::Link(target) => self.parents(path).and_then(|()| self.workspace.symlink_contents(target, path)),
            Kept::Nothing if entry.kind.is_dir() => self.parents(&path.join("x")).and_then(|()| self.set_mode(path, entry.mode)),
            Kept::Nothing => Err(io::Error::other("there is no copy of it")),
        };
        let shown = shown(path);
        if result.is_ok() && self.whole.iter().any(|whole| path.starts_with(whole)) {
            return;
        }
        self.whole.push(path.to_owned());
        self.remarks.push(match result {
            Ok(()) => format!("{shown} was changed or removed, and is as it was before the command"),
            Err(error) => format!("{shown} was changed or removed, and COULD NOT be put back: {error}"),
        });
    }

    fn write(&self, path: &Path, content: &[u8], mode: u32) -> io::Result<()> {
        self.parents(path)?;
        // Gone already, unless only its content differs.
        let _ = self.workspace.remove_file(path);
        self.workspace.write(path, content)?;
        self.set_mode(path, mode)
    }

    fn parents(&self, path: &Path) -> io::Result<()> {
        match path.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => {
                self.open_parents(&[parent])?;
                self.workspace.create_dir_all(parent)?;
                self.open_up(parent)
            }
            Some(_) | None => Ok(()),
        }
    }

    /// Folders were opened to get at what is in them.
    fn close_again(&self, before: &Snapshot) {
        for (path, entry) in before.entries.iter().rev().filter(|(_, entry)| entry.kind.is_dir() && !entry.own) {
            let mode = self.workspace.symlink_metadata(path).ok().filter(|now| now.is_dir()).map(|now| now.permissions().mode() & 0o7777);
            if mode.is_some_and(|mode| mode != entry.mode) {
                // It was said already that it is as it was, if it is not.
                let _ = self.set_mode(path, entry.mode);
            }
        }
    }

    fn set_mode(&self, path: &Path, mode: u32) -> io::Result<()> {
        self.workspace.set_permissions(path, cap_std::fs::Permissions::from_mode(mode))
    }
}

/// Between file systems, so many bytes. Links stay links; what is neither file, folder nor link is not kept.
fn copy(from: &Dir, path: &Path, to: &Dir, name: &Path, room: &mut u64) -> io::Result<()> {
    let metadata = from.symlink_metadata(path)?;
    let kind = metadata.file_type();
    if kind.is_symlink() {
        to.symlink_contents(from.read_link_contents(path)?, name)
    } else if kind.is_dir() {
        to.create_dir(name)?;
        for entry in from.read_dir(path)? {
            let entry = entry?.file_name();
            copy(from, &path.join(&entry), to, &name.join(&entry), room)?;
        }
        Ok(())
    } else if kind.is_file() {
        *room = room.checked_sub(metadata.len()).ok_or(io::ErrorKind::FileTooLarge)?;
        from.copy(path, to, name).map(drop)
    } else {
        Ok(())
    }
}

fn remove(from: &Dir, path: &Path) -> io::Result<()> {
    if from.symlink_metadata(path)?.is_dir() { from.remove_dir_all(path) } else { from.remove_file(path) }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn what_cannot_be_copied_to_another_file_system_stays_under_a_name_that_means_nothing() {
        let workspace = tempfile::tempdir_in("/dev/shm").expect("a folder in memory");
        let aside = tempfile::tempdir().expect("a folder");
        let path = |name: &str| workspace.path().join(name);
        std::fs::create_dir(path(".idea")).expect("it is made");
        std::fs::write(path(".idea/small"), "text").expect("it is written");
        let mut work = Work::open(workspace.path(), aside.path()).expect("it opens");
        work.take_away(Path::new(".idea"), "was made");
        std::fs::File::create(path(".mcp.json")).and_then(|file| file.set_len(MOST_COPIED + 1)).expect("it is made");
        std::fs::set_permissions(path(".mcp.json"), std::fs::Permissions::from_mode(0o000)).expect("it is set");
        work.take_away(Path::new(".mcp.json"), "was made");
        let told = work.told();
        assert!(!path(".idea").exists() && !path(".mcp.json").exists(), "{told:?}");
        assert!(told[0].contains(&format!("it is now {}", aside.path().display())), "{told:?}");
        assert!(told[1].contains("it is now WORKSPACE/set-aside-"), "{told:?}");
        let left: Vec<_> = std::fs::read_dir(workspace.path()).expect("it is listed").flatten().map(|entry| entry.file_name()).collect();
        assert!(left.len() == 1 && left[0].to_string_lossy().starts_with("set-aside-"), "{left:?}");
    }
}
