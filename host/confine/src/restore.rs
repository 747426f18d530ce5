//! Restoring protected paths to their state before a command.
//!
//! All processes of the command are gone by then. The files that it left may still be traps, such
//! as a link in place of a directory. Therefore all operations happen below the open workspace and
//! follow no links that lead out.

use std::collections::HashSet;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use cap_std::fs::{Dir, PermissionsExt as _};

use super::new_repository::is_new_repository_entry;
use super::set_aside::{HeldEntry, QuarantineDir, QuarantinedEntry, UnmovedEntries};
use super::snapshot::{KeptContent, ProtectedSnapshot, ProtectionCost, SnapshotEntry};
use cofferdam_policy::PathProtection;

/// The maximum number of individual notices.
const MAX_NOTICES: usize = 10;
/// The maximum length of a path in a notice, in characters.
const MAX_SHOWN_PATH_LEN: usize = 200;
/// The maximum time for removing excess entries if they cannot be moved to the same file system.
const REMOVAL_TIMEOUT: Duration = Duration::from_secs(30);

/// The maximum number of mounts for new secrets and repositories.
///
/// They are harmless, but each adds work for the next command. Beyond the limits, new ones are
/// moved away.
const MAX_HARMLESS_MOUNTS: usize = 1000;
const MAX_HARMLESS_ARGUMENT_BYTES: usize = 512 << 10;
const MAX_HARMLESS_FILE_BYTES: u64 = 32 << 20;

/// The changes that a restore pass covers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RestorePhase {
    /// Changes to paths that were protected before, ahead of any search.
    Known,
    /// All changes, including new entries.
    All,
}

/// A restorer that reverts the differences between two snapshots, moves away new protected entries
/// and collects notices.
pub(super) struct SnapshotRestore<'a> {
    workspace: Dir,
    root: &'a Path,
    before: &'a ProtectedSnapshot,
    set_aside: QuarantineDir<'a>,
    /// The paths that were moved away in this pass.
    removed: HashSet<PathBuf>,
    /// The outermost path that was moved away last. Its contents follow directly in the sorted
    /// order.
    last_removed: PathBuf,
    /// The directories that the command deleted.
    deleted: Vec<PathBuf>,
    /// The paths that were restored with a notice. Paths below them get no notice of their own.
    restored: Vec<PathBuf>,
    notices: Vec<String>,
    omitted_notices: usize,
    /// The first path that could not be restored or moved away.
    failure: Option<String>,
    /// Whether a file that was there before could not be restored.
    has_unrestored: bool,
}

impl<'a> SnapshotRestore<'a> {
    pub(super) fn new(
        root: &'a Path,
        before: &'a ProtectedSnapshot,
        set_aside: &'a Path,
        unmoved: UnmovedEntries,
    ) -> io::Result<Self> {
        let workspace = Dir::open_ambient_dir(root, cap_std::ambient_authority())?;
        Ok(Self {
            workspace,
            root,
            before,
            set_aside: QuarantineDir::new(set_aside, unmoved),
            removed: HashSet::new(),
            last_removed: PathBuf::new(),
            deleted: Vec::new(),
            restored: Vec::new(),
            notices: Vec::new(),
            omitted_notices: 0,
            failure: None,
            has_unrestored: false,
        })
    }

    /// Returns the description of the first path that could not be restored or moved away.
    pub(super) fn failure(&self) -> Option<&str> {
        self.failure.as_deref()
    }

    /// Returns whether a file that was there before could not be restored, for example because the
    /// disk is full.
    pub(super) fn has_unrestored(&self) -> bool {
        self.has_unrestored
    }

    /// Restores the files and links that do not exist.
    pub(super) fn restore_missing(&mut self) {
        let before = self.before;
        for (path, entry) in &before.entries {
            let is_kept = matches!(entry.content, KeptContent::File(_) | KeptContent::Link(_));
            if is_kept && self.workspace.symlink_metadata(path).is_err() {
                self.restore_entry(path, entry);
            }
        }
    }

    /// Returns the entries that will have to be moved when the private view is unmounted.
    pub(super) fn held(&self) -> &[HeldEntry] {
        self.set_aside.held()
    }

    /// Takes the entries that have to be moved when the private view is unmounted.
    pub(super) fn take_held(&mut self) -> Vec<HeldEntry> {
        self.set_aside.take_held()
    }

    pub(super) fn into_notices(mut self) -> Vec<String> {
        if self.omitted_notices > 0 {
            self.notices.push(format!("and {} more", self.omitted_notices));
        }
        self.notices.extend(self.set_aside.hint());
        self.notices
    }

    /// Moves back the directories that hold protected paths and were moved elsewhere.
    pub(super) fn move_back(&mut self, after: &ProtectedSnapshot) {
        self.reset();
        let mut moved: Vec<_> = after.moved.iter().collect();
        // Outer directories come first, because they bring their contents along.
        moved.sort_by_key(|(was, _)| was.components().count());
        let mut back: Vec<&Path> = Vec::new();
        for (was, is) in moved {
            // A copy has another inode and does not count. A directory that is still in place is
            // visible twice because of a mount.
            let in_place = after
                .entries
                .get(was)
                .zip(self.before.entries.get(was))
                .is_some_and(|(now, had)| now.is_same_file(had));
            // The parent directory was renamed, and this one moved with it.
            let has_no_place = was
                .parent()
                .is_some_and(|parent| !parent.as_os_str().is_empty() && !self.is_directory(parent));
            if has_no_place || back.iter().any(|back| was.starts_with(back)) {
                continue;
            }
            if in_place || self.is_removed(is) {
                continue;
            }
            if after.entries.contains_key(was) {
                self.set_aside(was, "was replaced");
            }
            let moved = self
                .make_parents_accessible(&[was, is])
                .and_then(|()| self.workspace.rename(is, &self.workspace, was));
            back.extend(moved.is_ok().then_some(was.as_path()));
            let what = format!("{} was moved to {}", escape_path(was), escape_path(is));
            self.add_result(what, "moved back", moved.map(|()| "it was moved back".to_owned()));
        }
    }

    pub(super) fn restore(&mut self, after: &ProtectedSnapshot, phase: RestorePhase) {
        self.reset();
        let is_too_much = phase == RestorePhase::All && {
            let ProtectionCost { mounts, argument_bytes: text, file_bytes: bytes } =
                after.cost(self.root);
            mounts > MAX_HARMLESS_MOUNTS
                || text > MAX_HARMLESS_ARGUMENT_BYTES
                || bytes > MAX_HARMLESS_FILE_BYTES
        };
        for crowd in &after.growth.crowds {
            let inherited = self.before.entries.get(&crowd.directory).filter(|entry| {
                entry.protection != PathProtection::Pinned && !entry.is_program_file
            });
            if inherited.is_some() && crowd.exceeds_limit() && !self.is_removed(&crowd.directory) {
                self.set_aside(&crowd.directory, "was filled with too many files");
            }
        }
        for (path, what_happened) in &after.rejected_links {
            if !self.is_removed(path) {
                self.set_aside(path, what_happened);
            }
        }
        for (path, entry) in &after.entries {
            // Outer paths come first and take their contents along.
            if entry.is_program_file
                || path.starts_with(&self.last_removed) && !self.last_removed.as_os_str().is_empty()
                || self.is_removed(path)
            {
                continue;
            }
            match self.before.entries.get(path) {
                Some(had) if entry.is_unchanged_from(had) => {}
                // The contents of a directory stay. Its mode is restored below.
                Some(had) if had.kind == entry.kind && entry.kind.is_dir() => {}
                Some(had) if entry.has_new_name(had) => {
                    self.set_aside(path, "got another hard link")
                }
                Some(_) => self.set_aside(path, "was changed"),
                // The parent directory was renamed, and this entry is unchanged.
                None if self.before.find_same_file(entry).is_some_and(|had| {
                    had.protection == entry.protection && entry.is_unchanged_from(had)
                }) => {}
                // A later write through the other name would change this file.
                None if entry.has_hard_links() => {
                    self.set_aside(path, "was created with another hard link")
                }
                // git creates no links in its own directory, but it writes through existing ones.
                None if entry.kind.is_symlink() && !is_harmless(entry) => {
                    self.set_aside(path, "was created")
                }
                None if is_harmless(entry) && !is_too_much => {}
                None if !is_too_much && is_new_repository_entry(&self.workspace, path) => {}
                None if is_harmless(entry) => {
                    self.set_aside(path, "was created in a directory with too many such files")
                }
                None => self.set_aside(path, "was created"),
            }
        }
        for (path, entry) in &self.before.entries {
            let now = after.entries.get(path);
            let same = now.is_some_and(|now| now.is_unchanged_from(entry));
            let is_gone = self.is_removed(path);
            let has_moved =
                after.find_same_file(entry).is_some_and(|now| now.is_unchanged_from(entry))
                    && now.is_none();
            if entry.is_program_file
                || same && !is_gone
                || has_moved
                || self.deleted.iter().any(|lost| path.starts_with(lost))
            {
                continue;
            }
            if phase == RestorePhase::Known && now.is_none() && !is_gone {
                // The directory may be elsewhere. Nothing runs from a path that does not exist.
                if entry.kind.is_dir() {
                    self.deleted.push(path.clone());
                }
                continue;
            }
            // A repository whose data was deleted is unusable, and nothing runs from it.
            if entry.protection == PathProtection::Pinned
                && entry.kind.is_dir()
                && !is_gone
                && now.is_none()
            {
                self.deleted.push(path.clone());
                self.add_notice(|| {
                    format!(
                        "{} was removed, with the hooks and configuration in it",
                        escape_path(path)
                    )
                });
            } else {
                self.restore_entry(path, entry);
            }
        }
        if phase == RestorePhase::All {
            for path in
                after.unreadable.iter().filter(|path| !self.before.unreadable.contains(path))
            {
                self.add_notice(|| {
                    format!(
                        "{} cannot be searched, and may contain files that other programs \
                            run; check it before you use it",
                        escape_path(path)
                    )
                });
            }
        }
        self.restore_directory_modes();
    }

    /// Clears the state of the previous pass.
    fn reset(&mut self) {
        self.removed.clear();
        self.last_removed.clear();
        self.deleted.clear();
        self.restored.clear();
    }

    pub(super) fn add_notice(&mut self, text: impl FnOnce() -> String) {
        if self.notices.len() < MAX_NOTICES {
            self.notices.push(text())
        } else {
            self.omitted_notices += 1
        }
    }

    /// Adds a notice: what happened, and the end of the sentence, or that something COULD NOT be
    /// done.
    pub(super) fn add_result(&mut self, what: String, action: &str, result: io::Result<String>) {
        match result {
            Ok(end) => self.add_notice(|| format!("{what}; {end}")),
            Err(error) => {
                let failure = format!("{what}, and COULD NOT be {action}: {error}");
                self.add_notice(|| failure.clone());
                self.failure.get_or_insert(failure);
            }
        }
    }

    pub(super) fn is_removed(&self, path: &Path) -> bool {
        !self.removed.is_empty() && path.ancestors().any(|above| self.removed.contains(above))
    }

    fn is_directory(&self, path: &Path) -> bool {
        self.workspace.symlink_metadata(path).is_ok_and(|metadata| metadata.is_dir())
    }

    /// Moves a path to the quarantine directory, where the user can inspect it and nothing runs it.
    fn set_aside(&mut self, path: &Path, what_happened: &str) {
        self.removed.insert(path.to_owned());
        path.clone_into(&mut self.last_removed);
        // Moving a directory to another parent requires write access to it.
        let ready = self.make_parents_accessible(&[path]).and_then(|()| self.make_accessible(path));
        let moved = ready.and_then(|()| self.set_aside.move_out(&self.workspace, path));
        let what = format!("{} {what_happened}, which is not allowed", escape_path(path));
        self.add_result(what, "moved away", moved.map(|to| describe_place(&to)));
    }

    /// Moves away a new directory with all its contents, because it was not searched.
    pub(super) fn set_aside_unsearched(&mut self, path: &Path, why: &str) {
        let until = Instant::now() + REMOVAL_TIMEOUT;
        let ready = self.make_parents_accessible(&[path]).and_then(|()| self.make_accessible(path));
        let moved = ready.and_then(|()| {
            self.set_aside.move_out_or_remove(&self.workspace, path, &mut || Instant::now() < until)
        });
        let place = |to: Option<QuarantinedEntry>| {
            to.map_or_else(|| "it was removed".to_owned(), |to| describe_place(&to))
        };
        self.add_result(format!("{} {why}", escape_path(path)), "moved away", moved.map(place));
    }

    /// Moves away directories that a command nested too deep to be searched. Nothing in them is
    /// deleted, because they existed before.
    pub(super) fn take_away_too_deep(&mut self, after: &ProtectedSnapshot) {
        for path in &after.too_deep {
            if self.is_removed(path) {
                continue;
            }
            self.removed.insert(path.clone());
            let ready =
                self.make_parents_accessible(&[path]).and_then(|()| self.make_accessible(path));
            let moved = ready.and_then(|()| self.set_aside.move_out_whole(&self.workspace, path));
            let what = format!("{} was moved too deep to be searched", escape_path(path));
            self.add_result(what, "moved away", moved.map(|to| describe_place(&to)));
        }
    }

    /// Returns whether an entry to be moved away stayed in the workspace since the last call.
    pub(super) fn take_left_in_workspace(&mut self) -> bool {
        self.set_aside.take_left_in_workspace()
    }

    /// Returns the open workspace and the quarantine directory.
    pub(super) fn workspace_and_set_aside(&mut self) -> (&Dir, &mut QuarantineDir<'a>) {
        (&self.workspace, &mut self.set_aside)
    }

    /// Opens parent directories that the command may have closed to its own user.
    fn make_parents_accessible(&self, paths: &[&Path]) -> io::Result<()> {
        for path in paths {
            let mut above: Vec<&Path> =
                path.ancestors().skip(1).filter(|above| !above.as_os_str().is_empty()).collect();
            above.reverse();
            above.into_iter().try_for_each(|above| self.make_accessible(above))?;
        }
        Ok(())
    }

    fn make_accessible(&self, path: &Path) -> io::Result<()> {
        let Ok(metadata) = self.workspace.symlink_metadata(path) else { return Ok(()) };
        let mode = metadata.permissions().mode();
        if !metadata.is_dir() || mode & 0o700 == 0o700 {
            return Ok(());
        }
        self.set_mode(path, mode & 0o7777 | 0o700)
    }

    fn restore_entry(&mut self, path: &Path, entry: &SnapshotEntry) {
        let result = match &entry.content {
            KeptContent::File(content) => self.write(path, content, entry.mode),
            KeptContent::Link(target) => self
                .create_parents(path)
                .and_then(|()| self.workspace.symlink_contents(target, path)),
            KeptContent::NotKept if entry.kind.is_dir() => {
                self.create_parents(&path.join("x")).and_then(|()| self.set_mode(path, entry.mode))
            }
            KeptContent::NotKept => Err(io::Error::other("it has no backup")),
        };
        if result.is_ok() && self.restored.iter().any(|whole| path.starts_with(whole)) {
            return;
        }
        self.restored.push(path.to_owned());
        self.has_unrestored |= result.is_err() && !matches!(entry.content, KeptContent::NotKept);
        let end = "it was restored to its state before the command";
        let what = format!("{} was changed or removed", escape_path(path));
        self.add_result(what, "restored", result.map(|()| end.to_owned()));
    }

    fn write(&self, path: &Path, content: &[u8], mode: u32) -> io::Result<()> {
        self.create_parents(path)?;
        // The file is gone already, unless only its content differs.
        let _ = self.workspace.remove_file(path);
        let written = self.workspace.write(path, content);
        if written.is_err() {
            // A part of a file would count as the file the next time.
            let _ = self.workspace.remove_file(path);
        }
        written?;
        self.set_mode(path, mode)
    }

    fn create_parents(&self, path: &Path) -> io::Result<()> {
        match path.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => {
                self.make_parents_accessible(&[parent])?;
                self.workspace.create_dir_all(parent)?;
                self.make_accessible(parent)
            }
            Some(_) | None => Ok(()),
        }
    }

    /// Restores the modes of directories that were opened to reach their contents.
    fn restore_directory_modes(&self) {
        for (path, entry) in self
            .before
            .entries
            .iter()
            .rev()
            .filter(|(_, entry)| entry.kind.is_dir() && !entry.is_program_file)
        {
            let mode = self
                .workspace
                .symlink_metadata(path)
                .ok()
                .filter(|now| now.is_dir())
                .map(|now| now.permissions().mode() & 0o7777);
            if mode.is_some_and(|mode| mode != entry.mode) {
                // A failure needs no notice, because the change itself was reported already.
                let _ = self.set_mode(path, entry.mode);
            }
        }
    }

    fn set_mode(&self, path: &Path, mode: u32) -> io::Result<()> {
        self.workspace.set_permissions(path, cap_std::fs::Permissions::from_mode(mode))
    }
}

/// Returns whether a new entry is harmless.
///
/// A new secret contains only data that the command had. A new repository is allowed, because the
/// parts that git runs are protected themselves.
fn is_harmless(entry: &SnapshotEntry) -> bool {
    match entry.protection {
        PathProtection::Hidden => !entry.runs_code,
        PathProtection::Pinned => true,
        PathProtection::ReadOnly => false,
    }
}

/// Describes the new place of an entry, as the end of a sentence.
fn describe_place(place: &QuarantinedEntry) -> String {
    match place {
        QuarantinedEntry::Outside(path) => format!("it was moved to {}", escape_path(path)),
        QuarantinedEntry::Renamed(path) => {
            format!("it was renamed to {} in the workspace", escape_path(path))
        }
    }
}

/// Escapes a path for users and for the model, because a command can choose any name.
fn escape_path(path: &Path) -> String {
    cofferdam_policy::terminal_escape::escape_line(&path.display().to_string(), MAX_SHOWN_PATH_LEN)
}

#[cfg(target_os = "linux")]
#[cfg(test)]
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
        let before = ProtectedSnapshot::default();
        let mut work =
            SnapshotRestore::new(workspace.path(), &before, aside.path(), UnmovedEntries::Rename)
                .expect("it opens");
        work.set_aside(Path::new(".idea"), "was created");
        std::fs::File::create(path(".mcp.json"))
            .and_then(|file| file.set_len(65 << 20))
            .expect("it is made");
        std::fs::set_permissions(path(".mcp.json"), std::fs::Permissions::from_mode(0o000))
            .expect("it is set");
        work.set_aside(Path::new(".mcp.json"), "was created");
        let notices = work.into_notices();
        assert!(!path(".idea").exists() && !path(".mcp.json").exists(), "{notices:?}");
        assert!(
            notices[0].contains(&format!("it was moved to {}", aside.path().display())),
            "{notices:?}"
        );
        assert!(notices[1].contains("it was renamed to set-aside-"), "{notices:?}");
        // A repository would be one under any name.
        for name in ["lib.git/objects", "lib.git/refs", "lib.git/hooks/inner.git/refs"] {
            std::fs::create_dir_all(path(name)).expect("it is made");
        }
        for name in ["lib.git/HEAD", "lib.git/config", "lib.git/hooks/inner.git/HEAD"] {
            std::fs::write(path(name), "text").expect("it is written");
        }
        std::fs::File::create(path("lib.git/hooks/big"))
            .and_then(|file| file.set_len(65 << 20))
            .expect("it is made");
        let mut work =
            SnapshotRestore::new(workspace.path(), &before, aside.path(), UnmovedEntries::Rename)
                .expect("it opens");
        work.set_aside(Path::new("lib.git"), "was created");
        let notices = work.into_notices();
        assert!(notices[0].contains("it was renamed to set-aside-"), "{notices:?}");
        let mut pending = vec![workspace.path().to_owned()];
        let mut count = 0;
        while let Some(directory) = pending.pop() {
            for entry in std::fs::read_dir(directory).expect("it is listed").flatten() {
                let name = entry.file_name().to_string_lossy().into_owned();
                assert!(name.starts_with("set-aside-"), "{name}");
                count += 1;
                pending.extend(entry.path().is_dir().then(|| entry.path()));
            }
        }
        // The file of before, the repository, and everything in it.
        assert_eq!(count, 11);
    }

    #[test]
    fn what_is_too_large_for_an_archive_stays_under_another_name() {
        let workspace = tempfile::tempdir_in("/dev/shm").expect("a folder in memory");
        let aside = tempfile::tempdir().expect("a folder");
        let path = |name: &str| workspace.path().join(name);
        std::fs::File::create(path(".mcp.json"))
            .and_then(|file| file.set_len(65 << 20))
            .expect("it is made");
        let before = ProtectedSnapshot::default();
        let mut work =
            SnapshotRestore::new(workspace.path(), &before, aside.path(), UnmovedEntries::Rename)
                .expect("it opens");
        work.set_aside(Path::new(".mcp.json"), "was created");
        let left: Vec<_> = std::fs::read_dir(workspace.path())
            .expect("it is listed")
            .flatten()
            .map(|entry| entry.file_name())
            .collect();
        assert!(left.len() == 1 && left[0].to_string_lossy().starts_with("set-aside-"), "{left:?}");
    }
}
