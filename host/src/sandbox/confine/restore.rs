//! Putting protected paths back as they were. All processes of the command are gone by then; what they left may still be a
//! trap, such as a link in place of a folder, so everything happens below the open workspace and nothing through links
//! that lead out.

use std::collections::HashSet;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use cap_std::fs::{Dir, PermissionsExt as _};

use super::aside::SetAside;
use super::fresh::is_of_new_repository;
use super::watch::{Entry, Kept, ProtectionCost, Snapshot};
use crate::policy::Protected;

/// So many remarks are made one by one.
const MOST_REMARKS: usize = 10;
/// Of a path in a remark, in characters.
const LONGEST_PATH: usize = 200;
/// Removing what is too much on another file system takes no longer than this.
const LONGEST_REMOVAL: Duration = Duration::from_secs(30);

/// New secrets and repositories are harmless, but each is something to look after: when there is so much of it, further
/// ones are taken away, so that no command can make it too much for the next.
const MANY_MOUNTS: usize = 1000;
const MUCH_TEXT: usize = 512 << 10;
const MUCH: u64 = 32 << 20;

/// Which of the changes are looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    /// What stands where something was protected, before anything is searched for.
    Known,
    /// Everything.
    All,
}

/// Puts back what the snapshots differ in, and takes away what is new; tells what was done.
pub(super) struct Restoration<'a> {
    workspace: Dir,
    root: &'a Path,
    before: &'a Snapshot,
    aside: SetAside<'a>,
    /// Taken away.
    gone: HashSet<PathBuf>,
    /// The outermost of these that was met last: what is in it comes right after it.
    last_gone: PathBuf,
    /// Removed for good by the command.
    lost: Vec<PathBuf>,
    /// Put back, and named; what is in them is not.
    whole: Vec<PathBuf>,
    remarks: Vec<String>,
    more_remarks: usize,
}

impl<'a> Restoration<'a> {
    pub(super) fn begin(root: &'a Path, before: &'a Snapshot, set_aside: &'a Path) -> io::Result<Self> {
        let workspace = Dir::open_ambient_dir(root, cap_std::ambient_authority())?;
        Ok(Self {
            workspace,
            root,
            before,
            aside: SetAside::in_folder(set_aside),
            gone: HashSet::new(),
            last_gone: PathBuf::new(),
            lost: Vec::new(),
            whole: Vec::new(),
            remarks: Vec::new(),
            more_remarks: 0,
        })
    }

    pub(super) fn remarks(mut self) -> Vec<String> {
        if self.more_remarks > 0 {
            self.remarks.push(format!("and {} more", self.more_remarks));
        }
        self.remarks
    }

    /// Moves folders back that hold protected paths and were moved away.
    pub(super) fn move_back(&mut self, after: &Snapshot) {
        self.start_anew();
        let mut moved: Vec<_> = after.moved.iter().collect();
        // Outer folders first: they take along what is in them.
        moved.sort_by_key(|(was, _)| was.components().count());
        let mut back: Vec<&Path> = Vec::new();
        for (was, is) in moved {
            // A copy under another inode is none, and one that is still there is in two places: a mount.
            let in_place = after.entries.get(was).zip(self.before.entries.get(was)).is_some_and(|(now, had)| now.is_the_same(had));
            // The folder around it was renamed, and it with that.
            let has_no_place = was.parent().is_some_and(|parent| !parent.as_os_str().is_empty() && !self.is_folder(parent));
            if has_no_place || back.iter().any(|back| was.starts_with(back)) {
                continue;
            }
            if in_place || self.is_gone(is) {
                continue;
            }
            if after.entries.contains_key(was) {
                self.take_away(was, "was replaced");
            }
            let moved = self.open_parents(&[was, is]).and_then(|()| self.workspace.rename(is, &self.workspace, was));
            back.extend(moved.is_ok().then_some(was.as_path()));
            self.remark(|| match moved {
                Ok(()) => format!("{} was moved to {}, and is back where it was", shown(was), shown(is)),
                Err(error) => format!("{} was moved to {}, and COULD NOT be moved back: {error}", shown(was), shown(is)),
            });
        }
    }

    pub(super) fn restore(&mut self, after: &Snapshot, phase: Phase) {
        self.start_anew();
        let is_too_much = phase == Phase::All && {
            let ProtectionCost { mounts, text, bytes } = after.cost(self.root);
            mounts > MANY_MOUNTS || text > MUCH_TEXT || bytes > MUCH
        };
        for crowd in &after.growth.crowds {
            let inherited = self.before.entries.get(&crowd.folder).filter(|entry| entry.how != Protected::Pinned && !entry.own);
            if inherited.is_some() && crowd.is_overrun() && !self.is_gone(&crowd.folder) {
                self.take_away(&crowd.folder, "was filled with too many files");
            }
        }
        for (path, entry) in &after.entries {
            // Outer paths come first, and take what is in them along.
            if entry.own || path.starts_with(&self.last_gone) && !self.last_gone.as_os_str().is_empty() || self.is_gone(path) {
                continue;
            }
            match self.before.entries.get(path) {
                Some(had) if entry.is_as(had) => {}
                // A folder keeps what is in it; its mode is put back below.
                Some(had) if had.kind == entry.kind && entry.kind.is_dir() => {}
                Some(had) if entry.has_new_name(had) => self.take_away(path, "got another hard link"),
                Some(_) => self.take_away(path, "was changed"),
                // Its folder was renamed, and it is what it was.
                None if self.before.of_the_same(entry).is_some_and(|had| had.how == entry.how && entry.is_as(had)) => {}
                // What is written through another name later is written here.
                None if entry.has_other_names() => self.take_away(path, "was made with another name for it"),
                // git makes no links in its own directory, and writes through those that are there.
                None if entry.kind.is_symlink() && !is_harmless(entry) => self.take_away(path, "was made"),
                None if is_harmless(entry) && !is_too_much => {}
                None if !is_too_much && is_of_new_repository(&self.workspace, path) => {}
                None if is_harmless(entry) => self.take_away(path, "was made beside too many of its kind"),
                None => self.take_away(path, "was made"),
            }
        }
        for (path, entry) in &self.before.entries {
            let now = after.entries.get(path);
            let same = now.is_some_and(|now| now.is_as(entry));
            let is_gone = self.is_gone(path);
            let has_moved = after.of_the_same(entry).is_some_and(|now| now.is_as(entry)) && now.is_none();
            if entry.own || same && !is_gone || has_moved || self.lost.iter().any(|lost| path.starts_with(lost)) {
                continue;
            }
            if phase == Phase::Known && now.is_none() && !is_gone {
                // It may be elsewhere, and what is not there runs nowhere.
                if entry.kind.is_dir() {
                    self.lost.push(path.clone());
                }
                continue;
            }
            // A repository without what it stored is none, and what stood in it runs nowhere.
            if entry.how == Protected::Pinned && entry.kind.is_dir() && !is_gone && now.is_none() {
                self.lost.push(path.clone());
                self.remark(|| format!("{} was removed, with the hooks and settings in it", shown(path)));
            } else {
                self.put_back(path, entry);
            }
        }
        if phase == Phase::All {
            for path in after.closed.iter().filter(|path| !self.before.closed.contains(path)) {
                self.remark(|| {
                    format!(
                        "{} cannot be looked into, and may hold files that other programs run; look at it before you use it",
                        shown(path)
                    )
                });
            }
        }
        self.close_again();
    }

    /// Each look at the workspace is of its own.
    fn start_anew(&mut self) {
        self.gone.clear();
        self.last_gone.clear();
        self.lost.clear();
        self.whole.clear();
    }

    pub(super) fn remark(&mut self, text: impl FnOnce() -> String) {
        if self.remarks.len() < MOST_REMARKS { self.remarks.push(text()) } else { self.more_remarks += 1 }
    }

    pub(super) fn is_gone(&self, path: &Path) -> bool {
        !self.gone.is_empty() && path.ancestors().any(|above| self.gone.contains(above))
    }

    fn is_folder(&self, path: &Path) -> bool {
        self.workspace.symlink_metadata(path).is_ok_and(|metadata| metadata.is_dir())
    }

    /// Moves it out of the workspace, to where it can be looked at and nothing runs it.
    fn take_away(&mut self, path: &Path, what_happened: &str) {
        self.gone.insert(path.to_owned());
        path.clone_into(&mut self.last_gone);
        // A folder moves to another parent only if it could be written itself.
        let ready = self.open_parents(&[path]).and_then(|()| self.open_up(path));
        let moved = ready.and_then(|()| self.aside.move_out(&self.workspace, path));
        self.remark(|| {
            let is = format!("{} {what_happened}, which is not allowed", shown(path));
            match moved {
                Ok(to) => format!("{is}; it is now {}", shown(&to)),
                Err(error) => format!("{is}, and COULD NOT be taken away: {error}"),
            }
        });
    }

    /// Takes a new folder away with all that is in it, as it was not looked through.
    pub(super) fn take_away_unsearched(&mut self, path: &Path, why: &str) {
        let until = Instant::now() + LONGEST_REMOVAL;
        let ready = self.open_parents(&[path]).and_then(|()| self.open_up(path));
        let moved = ready.and_then(|()| self.aside.move_out_or_remove(&self.workspace, path, &mut || Instant::now() < until));
        self.remark(|| {
            let is = format!("{} {why}", shown(path));
            match moved {
                Ok(Some(to)) => format!("{is}; it is now {}", shown(&to)),
                Ok(None) => format!("{is}; it was removed"),
                Err(error) => format!("{is}, and COULD NOT be taken away: {error}"),
            }
        });
    }

    /// Takes folders away that a command moved together so deep that what is in them cannot be looked through. They were there
    /// before, so that nothing of them is removed.
    pub(super) fn take_away_too_deep(&mut self, after: &Snapshot) {
        for path in &after.too_deep {
            if self.is_gone(path) {
                continue;
            }
            self.gone.insert(path.clone());
            let ready = self.open_parents(&[path]).and_then(|()| self.open_up(path));
            let moved = ready.and_then(|()| self.aside.move_out_whole(&self.workspace, path));
            self.remark(|| {
                let is = format!("{} was moved to where it is too deep to be looked through", shown(path));
                match moved {
                    Ok(to) => format!("{is}; it is now {}", shown(&to)),
                    Err(error) => format!("{is}, and COULD NOT be taken away: {error}"),
                }
            });
        }
    }

    /// Whether something that was to be taken away stayed in the workspace since this was asked last.
    pub(super) fn leaves_something(&mut self) -> bool {
        self.aside.leaves_something()
    }

    /// The workspace, and where things go that are taken out of it.
    pub(super) fn parts(&mut self) -> (&Dir, &mut SetAside<'a>) {
        (&self.workspace, &mut self.aside)
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
        if result.is_ok() && self.whole.iter().any(|whole| path.starts_with(whole)) {
            return;
        }
        self.whole.push(path.to_owned());
        self.remark(|| match result {
            Ok(()) => format!("{} was changed or removed, and is as it was before the command", shown(path)),
            Err(error) => format!("{} was changed or removed, and COULD NOT be put back: {error}", shown(path)),
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
    fn close_again(&self) {
        for (path, entry) in self.before.entries.iter().rev().filter(|(_, entry)| entry.kind.is_dir() && !entry.own) {
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
        let before = Snapshot::default();
        let mut work = Restoration::begin(workspace.path(), &before, aside.path()).expect("it opens");
        work.take_away(Path::new(".idea"), "was made");
        std::fs::File::create(path(".mcp.json")).and_then(|file| file.set_len(65 << 20)).expect("it is made");
        std::fs::set_permissions(path(".mcp.json"), std::fs::Permissions::from_mode(0o000)).expect("it is set");
        work.take_away(Path::new(".mcp.json"), "was made");
        let told = work.remarks();
        assert!(!path(".idea").exists() && !path(".mcp.json").exists(), "{told:?}");
        assert!(told[0].contains(&format!("it is now {}", aside.path().display())), "{told:?}");
        assert!(told[1].contains("it is now WORKSPACE/set-aside-"), "{told:?}");
        let left: Vec<_> = std::fs::read_dir(workspace.path()).expect("it is listed").flatten().map(|entry| entry.file_name()).collect();
        assert!(left.len() == 1 && left[0].to_string_lossy().starts_with("set-aside-"), "{left:?}");
    }
}
