//! Going through a workspace, from the outside in.

mod named;
mod new_links;
mod record;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ffi::{OsStr, OsString};
use std::fs::{self, FileType, Permissions, ReadDir};
use std::io;
use std::os::unix::fs::{
    DirEntryExt as _, FileTypeExt as _, MetadataExt as _, PermissionsExt as _,
};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use record::is_canonical;

use super::super::settings::SettingsFormat;
use super::growth::{CrowdedDirectory, MAX_NEW_NAMES};
use super::{FileIdentity, KeepWalking, OpenedDirectories, ProtectedSnapshot};
use crate::policy::{PathProtection, ProtectedPathNames, ProtectedPaths};
use crate::sandbox::git::{self, GitNamedPaths};
use crate::sandbox::links::LinkFollower;

/// Entries of a workspace.
pub(in crate::sandbox::confine) const MAX_ENTRIES: usize =
    if cfg!(test) { 20_000 } else { 1_000_000 };
/// Entries of new folders that are looked at after a command: with more of them some have to go, so
/// that looking further is in vain.
const MAX_NEW_ENTRIES: usize = 2 * MAX_ENTRIES;
/// Entries of one folder that are kept in memory to be looked at.
const MAX_LISTED: usize = MAX_ENTRIES / 4;
/// Protected paths that are found after a command, beside those that were there before.
const MAX_NEW_PROTECTED: usize = if cfg!(test) { 2_000 } else { 100_000 };
/// Sockets that are remembered: more than a sandbox can mask.
const MAX_SOCKETS: usize = 10_000;
/// Settings of cargo that are remembered.
const MOST_PACKAGE_SETTINGS: usize = 1_000;
/// Whether somebody still waits, and whether there is time left, is asked so often.
const CHECK_INTERVAL: usize = 4096;
/// The longest path of a folder that is looked into, in bytes: with a name below it, and in another
/// root, it is still a path to the kernel.
const MAX_PATH_LEN: usize = 3500;
/// Folders of packages, which are installed and removed as a whole and hold what their authors
/// published: what is in them is nobody's secret, and nobody opens them in an editor. Repositories
/// in them are looked after all the same.
const PACKAGE_DIRECTORIES: &[&str] = &["node_modules", "site-packages", ".venv", "venv"];

/// A folder that is to be looked through.
#[derive(Clone, Debug, Default)]
pub(super) struct WalkDirectory {
    path: PathBuf,
    inode: u64,
    inherited: Option<PathProtection>,
    /// In a repository, or in what is to git a repository: the path as if that were named `.git`.
    git_path: Option<PathBuf>,
    /// The same for the repository around that one: of a worktree's folder both say what is
    /// protected.
    outer_git_path: Option<PathBuf>,
    /// In what a repository stores.
    in_git_data: bool,
    in_packages: bool,
    /// A name on the way here is one that protected paths have.
    may_match: bool,
    is_program_directory: bool,
    /// The new folder that this is in.
    new_directory: Option<usize>,
    /// The innermost folder around this that was there before and was moved, or this itself.
    moved: Option<PathBuf>,
}

/// What of a folder is to be looked at.
type DirectoryEntries = Vec<(OsString, FileType, u64)>;

pub(super) struct ProtectionWalk<'a> {
    root: &'a Path,
    protected: &'a ProtectedPaths,
    names: ProtectedPathNames,
    keep_content: bool,
    before: Option<&'a ProtectedSnapshot>,
    /// Where pinned folders were, by the numbers of their inodes.
    pinned: BTreeMap<u64, (&'a Path, FileIdentity)>,
    keep_walking: KeepWalking<'a>,
    deadline: Option<Instant>,
    is_cancelled: bool,
    new_entries: usize,
    kept_bytes: u64,
    /// What was protected before is looked at first, and then what else was there: no crowd of new
    /// files keeps the eye from it.
    pending: VecDeque<WalkDirectory>,
    pending_new: VecDeque<WalkDirectory>,
    /// What was found to be led to.
    led_to: BTreeSet<(PathBuf, PathProtection)>,
    /// Directories that were opened for this look.
    opened: Option<&'a OpenedDirectories>,
    snapshot: ProtectedSnapshot,
    /// Where links lead.
    follower: LinkFollower,
    /// Directories of packages that links make projects of, and entries of these.
    linked: BTreeSet<PathBuf>,
    linked_entries: usize,
}

impl<'a> ProtectionWalk<'a> {
    pub(super) fn new(
        root: &'a Path,
        protected: &'a ProtectedPaths,
        keep_content: bool,
        before: Option<&'a ProtectedSnapshot>,
        keep_walking: KeepWalking<'a>,
    ) -> Self {
        let is_looked_into = |folder: &&WalkDirectory| {
            keep_content || folder.inherited != Some(PathProtection::Hidden)
        };
        let known = before
            .into_iter()
            .flat_map(|before| &before.directories)
            .filter(is_looked_into)
            .cloned();
        let entries = before.into_iter().flat_map(|before| &before.entries);
        let pinned = entries.filter(|(_, entry)| entry.protection == PathProtection::Pinned);
        let pinned =
            pinned.map(|(path, entry)| (entry.identity.inode, (path.as_path(), entry.identity)));
        Self {
            root,
            protected,
            names: protected.names(),
            keep_content,
            before,
            pinned: pinned.collect(),
            keep_walking,
            deadline: None,
            is_cancelled: false,
            new_entries: 0,
            kept_bytes: 0,
            pending: known.collect(),
            pending_new: VecDeque::new(),
            led_to: BTreeSet::new(),
            opened: None,
            snapshot: ProtectedSnapshot {
                started_at: Some(SystemTime::now()),
                ..ProtectedSnapshot::default()
            },
            follower: LinkFollower::default(),
            linked: BTreeSet::new(),
            linked_entries: 0,
        }
    }

    /// With the settings that name what git runs, for a look before a command.
    pub(super) fn with_settings(mut self, git: GitNamedPaths) -> Self {
        self.snapshot.git = git;
        self
    }

    /// With directories that are open for this look, and have other permissions after it.
    pub(super) fn with_opened(self, opened: &'a OpenedDirectories) -> Self {
        Self { opened: Some(opened), ..self }
    }

    /// Looks through the workspace, after a command until then.
    pub(super) fn run(mut self, until: Option<Instant>) -> Result<ProtectedSnapshot, String> {
        self.deadline = until;
        let inode = fs::symlink_metadata(self.root).map_or(0, |metadata| metadata.ino());
        self.pending.push_back(WalkDirectory { inode, ..WalkDirectory::default() });
        let walked = self.visit_pending();
        self.finish(walked)
    }

    /// Looks at what was protected before, and at nothing else.
    pub(super) fn run_known(mut self, until: Instant) -> Result<ProtectedSnapshot, String> {
        self.deadline = Some(until);
        let known = std::mem::take(&mut self.pending);
        let looked = known.into_iter().try_for_each(|folder| {
            let listed =
                is_canonical(self.root, &folder.path).then(|| self.list(&folder)).flatten();
            listed.map_or(Ok(()), |entries| self.visit_directory(folder, entries))
        });
        self.record_unvisited();
        self.finish(looked)
    }

    fn finish(mut self, walked: Result<(), String>) -> Result<ProtectedSnapshot, String> {
        for folder in &self.pending_new {
            if let Some(new) =
                folder.new_directory.and_then(|at| self.snapshot.growth.new_directories.get_mut(at))
            {
                new.pending += 1;
            }
        }
        match walked {
            Ok(()) => Ok(self.snapshot),
            Err(problem) => {
                self.snapshot.restore_modes(self.root, &ProtectedSnapshot::default());
                Err(problem)
            }
        }
    }

    fn visit_pending(&mut self) -> Result<(), String> {
        let mut seen = BTreeSet::new();
        while let Some(folder) = self.pending.pop_front() {
            let is_known = folder.may_match || folder.git_path.is_some();
            // Not through links, which the command may have put in the way.
            if is_known
                && (!seen.insert(folder.path.clone()) || !is_canonical(self.root, &folder.path))
            {
                continue;
            }
            if let Some(entries) = self.list(&folder) {
                self.visit_directory(folder, entries)?;
            }
            if self.before.is_none() && self.snapshot.growth.total > MAX_ENTRIES {
                self.snapshot.growth.is_truncated = true;
                break;
            }
            if self.is_cancelled {
                return Err("nobody waits for it any more".to_owned());
            }
            if self.is_past_deadline() || self.has_too_many_entries() {
                self.snapshot.growth.is_truncated |= !self.pending.is_empty();
                break;
            }
        }
        self.record_unvisited();
        while !self.is_past_deadline()
            && !self.has_too_many_entries()
            && self.new_entries <= MAX_NEW_ENTRIES
            && let Some(folder) = self.pending_new.pop_front()
        {
            let is_known = folder.may_match || folder.git_path.is_some();
            if is_known && !is_canonical(self.root, &folder.path) {
                continue;
            }
            if let Some(entries) = self.list(&folder) {
                self.visit_directory(folder, entries)?;
            }
        }
        Ok(())
    }

    fn is_past_deadline(&self) -> bool {
        self.deadline.is_some_and(|until| Instant::now() > until)
    }

    /// Whether there are more protected paths after a command than are looked after at once.
    fn has_too_many_entries(&self) -> bool {
        self.before.is_some_and(|before| {
            self.snapshot.entries.len() > before.entries.len() + MAX_NEW_PROTECTED
        })
    }

    /// Whether nobody waits any more.
    fn check_cancelled(&mut self) -> bool {
        self.is_cancelled |= !(self.keep_walking)();
        self.is_cancelled
    }

    /// What of a folder is to be looked at; `None` if it is not there. One that this user may not
    /// list is opened for it: programs that know the names in it still open them.
    fn list(&mut self, folder: &WalkDirectory) -> Option<DirectoryEntries> {
        let whole = self.root.join(&folder.path);
        let listed = match fs::read_dir(&whole) {
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                self.make_accessible(&folder.path).and_then(|()| fs::read_dir(&whole))
            }
            listed => listed,
        };
        match listed {
            Ok(entries) => Some(self.select_entries(folder, entries)),
            Err(error)
                if matches!(
                    error.kind(),
                    io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
                ) =>
            {
                None
            }
            Err(_) => {
                self.snapshot.unreadable.push(folder.path.clone());
                None
            }
        }
    }

    /// Counts what is in a folder, and picks what may matter: most files do not, and there can be
    /// millions.
    fn select_entries(&mut self, folder: &WalkDirectory, entries: ReadDir) -> DirectoryEntries {
        let mut picked = Vec::new();
        // One that was protected before is put back as a whole if there is too much new in it.
        let is_known = self.before.is_some_and(|before| {
            folder.inherited.is_some() && before.entries.contains_key(&folder.path)
        });
        let (mut count, mut new, mut is_cut) = (0_usize, 0, false);
        let is_first = self.before.is_none();
        let is_settings = |name: &OsStr| {
            is_first
                && !folder.in_packages
                && name
                    .to_str()
                    .is_some_and(|name| SettingsFormat::is_looked_for(&folder.path, name))
        };
        for entry in entries.flatten() {
            let (name, inode) = (entry.file_name(), entry.ino());
            let Ok(kind) = entry.file_type() else { continue };
            count += 1;
            match self.before {
                None => self.snapshot.inventory.add_name(folder.inode, &name),
                Some(before) => {
                    new += usize::from(
                        folder.new_directory.is_none()
                            && !before.inventory.contains_name(folder.inode, &name),
                    )
                }
            }
            if is_known && new > MAX_NEW_NAMES {
                picked.clear();
                break;
            }
            if kind.is_socket()
                && self.before.is_none()
                && self.snapshot.sockets.len() < MAX_SOCKETS
            {
                self.snapshot.sockets.push(folder.path.join(&name));
            }
            if is_settings(&name) && self.snapshot.package_settings.len() < MOST_PACKAGE_SETTINGS {
                self.snapshot.package_settings.push(folder.path.join(&name));
            }
            if kind.is_dir()
                || kind.is_symlink()
                || folder.may_match
                || folder.inherited.is_some()
                || self.is_relevant(&name, inode)
            {
                picked.push((name, kind, inode));
            }
            let is_over = if self.before.is_some() {
                picked.len() >= MAX_LISTED
            } else {
                count > MAX_ENTRIES
            };
            let is_asked = (self.snapshot.growth.total + count).is_multiple_of(CHECK_INTERVAL);
            if is_over || is_asked && (self.is_past_deadline() || self.check_cancelled()) {
                is_cut = true;
                break;
            }
        }
        self.snapshot.growth.total += count;
        if let Some(inner) =
            folder.new_directory.and_then(|at| self.snapshot.growth.new_directories.get_mut(at))
        {
            inner.entries += count;
            self.new_entries += count;
            inner.is_incomplete |= is_cut;
        } else if self.before.is_some() && (new > 0 || is_cut) {
            self.snapshot.growth.crowds.push(CrowdedDirectory {
                directory: folder.path.clone(),
                inode: folder.inode,
                new_names: new,
                is_truncated: is_cut,
            });
            self.snapshot.growth.is_truncated |= is_cut;
        }
        picked
    }

    fn is_relevant(&self, name: &OsStr, inode: u64) -> bool {
        let name = name.to_string_lossy();
        self.names.may_match(&name)
            || git::REPOSITORY_MARKERS.iter().any(|part| git::is_same_name(&name, part))
            || self.pinned.contains_key(&inode)
    }

    fn make_accessible(&mut self, folder: &Path) -> io::Result<()> {
        let whole = self.root.join(folder);
        let mode = fs::symlink_metadata(&whole)?.permissions().mode() & 0o7777;
        fs::set_permissions(&whole, Permissions::from_mode(mode | 0o700))?;
        self.snapshot.original_modes.push((folder.to_owned(), mode));
        Ok(())
    }

    fn visit_directory(
        &mut self,
        mut folder: WalkDirectory,
        entries: DirectoryEntries,
    ) -> Result<(), String> {
        let names = || entries.iter().filter_map(|(name, ..)| name.to_str());
        let is_repository = git::is_repository(
            entries.iter().filter_map(|(name, kind, _)| Some((name.to_str()?, kind.is_dir()))),
        );
        if is_repository
            && folder.git_path.as_deref() != Some(Path::new(".git"))
            && !self.record_planted_parts(&folder, &entries)
        {
            folder.outer_git_path = folder.git_path.replace(".git".into());
            self.snapshot.repositories.insert(folder.inode);
            self.record_repository(&folder);
        }
        // `.git` itself, a submodule's or a worktree's, and not the folders that hold these.
        let is_git = folder.git_path.as_deref() == Some(Path::new(".git"))
            || folder.git_path.is_some() && names().any(|name| name == "HEAD");
        self.look_for_named(&folder, &entries, is_repository, is_git)?;
        for (name, kind, inode) in entries {
            self.record_if_moved(&folder.path.join(&name), kind, inode);
            self.visit_entry(&folder, &name, kind, inode, is_git)?;
        }
        Ok(())
    }

    /// Whether a folder that was there before came to look like a repository while what git would
    /// run in it was there all the time: then that is somebody's source, and it is the new parts
    /// that go.
    fn record_planted_parts(&mut self, folder: &WalkDirectory, entries: &DirectoryEntries) -> bool {
        let Some(begun) = self.before.and_then(|before| before.started_at) else { return false };
        let is_known =
            self.before.is_some_and(|before| before.repositories.contains(&folder.inode));
        // Renamed, written or made: each changes this time, and nobody can set it.
        let is_touched = |name: &OsString| {
            let metadata = fs::symlink_metadata(self.root.join(&folder.path).join(name));
            metadata.is_ok_and(|metadata| {
                u64::try_from(metadata.ctime())
                    .is_ok_and(|at| UNIX_EPOCH + Duration::from_secs(at + 1) >= begun)
            })
        };
        let named = |names: &'static [&'static str]| {
            entries.iter().map(|(name, ..)| name).filter(move |name| {
                names.iter().any(|known| git::is_same_name(&name.to_string_lossy(), known))
            })
        };
        let parts: Vec<OsString> =
            named(git::REPOSITORY_MARKERS).filter(|name| is_touched(name)).cloned().collect();
        if is_known
            || parts.is_empty()
            || !named(git::CONTROL_ENTRIES).any(|name| !is_touched(name))
        {
            return false;
        }
        for name in parts {
            // It is new, so that it cannot be put back, and is taken away.
            let _ = self.record_entry(
                &folder.path.join(name),
                PathProtection::ReadOnly,
                false,
                false,
                false,
            );
        }
        true
    }

    fn visit_entry(
        &mut self,
        folder: &WalkDirectory,
        file_name: &OsString,
        kind: FileType,
        inode: u64,
        is_git: bool,
    ) -> Result<(), String> {
        let name = file_name.to_string_lossy();
        let path = folder.path.join(file_name);
        let is_dot_git = git::is_same_name(&name, ".git");
        let inner = |around: &Option<PathBuf>| around.as_ref().map(|outer| outer.join(file_name));
        let (as_git, as_outer_git) = if is_dot_git {
            (Some(".git".into()), inner(&folder.git_path))
        } else {
            (inner(&folder.git_path), inner(&folder.outer_git_path))
        };
        let as_git_paths = || [&as_git, &as_outer_git].into_iter().flatten();
        let telling = folder.may_match || self.names.may_match(&name);
        let rule = if telling { self.find_rule(folder, &path, as_git_paths()) } else { None };
        // As a file or as a link, `.git` says where hooks are.
        let itself = rule.map(|(how, _)| {
            if how == PathProtection::Pinned && !kind.is_dir() {
                PathProtection::ReadOnly
            } else {
                how
            }
        });
        let own = folder.is_program_directory || rule.is_some_and(|(_, own)| own);
        let how = itself.max(folder.inherited);
        self.snapshot.contains_program_files |= own;
        if kind.is_symlink() {
            self.check_link(folder, &path, file_name);
        }
        if let Some(how) = how {
            let inherited = folder.inherited == Some(how);
            let runs = how == PathProtection::Hidden
                && as_git_paths().chain([&path]).any(|path| self.is_read_only(path));
            self.record_entry(&path, how, inherited, runs, own)?;
            self.follow_link(&path, kind, how);
        } else if kind.is_symlink() {
            self.link(folder, &path, as_git_paths().chain([&path]))?;
        }
        if kind.is_dir() && self.should_descend(&path, inode, how) && !own {
            let inherited = how.filter(|how| *how != PathProtection::Pinned);
            let in_packages = folder.in_packages || PACKAGE_DIRECTORIES.contains(&name.as_ref());
            let is_store = is_git
                && itself.is_none()
                && git::DATA_DIRECTORIES.iter().any(|store| git::is_same_name(&name, store));
            // The names in a store are numbers and those of branches, and most are not asked about.
            let telling = if is_store { self.names.may_match(&name) } else { telling };
            let in_store = folder.in_git_data && !is_dot_git || is_store;
            let new_in = self.new_folder(folder, &path, inode);
            let moved = self.moved_folder(folder, &path, inode);
            let inner = WalkDirectory {
                path,
                inode,
                inherited,
                git_path: as_git,
                outer_git_path: as_outer_git,
                in_git_data: in_store,
                in_packages,
                may_match: telling,
                is_program_directory: own,
                new_directory: new_in,
                moved,
            };
            self.enqueue(inner, how.is_some());
        }
        Ok(())
    }

    /// Whether there is something to look for in a folder that is protected so.
    fn should_descend(&self, path: &Path, inode: u64, how: Option<PathProtection>) -> bool {
        let was_there = self.before.is_none_or(|before| before.entries.contains_key(path));
        match how {
            // Nobody saw what is in it, nor could change it.
            Some(PathProtection::Hidden) => self.keep_content || !was_there,
            // A new one is taken away with all that is in it, but for that of a new repository, or
            // of a folder that was renamed.
            Some(PathProtection::ReadOnly) => {
                was_there
                    || path.ends_with("hooks")
                    || self.before.is_some_and(|before| before.by_inode.contains_key(&inode))
            }
            Some(PathProtection::Pinned) | None => true,
        }
    }
}
