//! The walk through a workspace, from the outside in.

mod list;
mod named;
mod new_links;
mod record;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ffi::OsString;
use std::fs::{self, FileType};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use record::is_canonical;

use super::{
    EntryInventory, FileIdentity, KeepWalking, LayerScope, OpenedDirectories, ProtectedSnapshot,
    ProtectionError,
};
use crate::git::{self, GitNamedPaths};
use crate::links::LinkFollower;
use cofferdam_policy::terminal_escape::escape_line;
use cofferdam_policy::{PathProtection, ProtectedPathNames, ProtectedPaths};

/// The maximum number of entries in a workspace.
pub(crate) const MAX_ENTRIES: usize = if cfg!(test) { 20_000 } else { 1_000_000 };
/// The maximum number of entries in new directories that are searched after a command. Beyond it,
/// some are moved away anyway.
const MAX_NEW_ENTRIES: usize = 2 * MAX_ENTRIES;
/// The maximum number of additional protected paths after a command.
const MAX_NEW_PROTECTED: usize = if cfg!(test) { 2_000 } else { 100_000 };
/// The maximum length of a searched directory path, in bytes. With another name and in another
/// root, it stays within the kernel's limit.
const MAX_PATH_LEN: usize = 3500;
/// The length of a path in an error, in characters.
const MAX_SHOWN_PATH_LEN: usize = 200;
/// Directories of installed packages, which are created and removed as a whole.
///
/// Their contents are published, so they hold no secrets of the user, and nobody opens them in an
/// editor. Repositories in them are protected all the same.
const PACKAGE_DIRECTORIES: &[&str] = &["node_modules", "site-packages", ".venv", "venv"];

/// A directory in the queue of the walk.
#[derive(Clone, Debug, Default)]
pub(super) struct WalkDirectory {
    path: PathBuf,
    inode: u64,
    inherited: Option<PathProtection>,
    /// The path as if the innermost repository around it were `.git` in the workspace. `None`
    /// outside of repositories.
    git_path: Option<PathBuf>,
    /// The same path for the next outer repository. Both repositories decide what is protected in
    /// the directory of a worktree.
    outer_git_path: Option<PathBuf>,
    /// Whether this is inside the data of a repository.
    in_git_data: bool,
    in_packages: bool,
    /// Whether a name on the path may match a protected path.
    may_match: bool,
    is_program_directory: bool,
    /// The index of the new directory that contains this one.
    new_directory: Option<usize>,
    /// The innermost moved directory that contains this one, or this one itself.
    moved: Option<PathBuf>,
}

/// The selected entries of a directory: name, type and inode.
type DirectoryEntries = Vec<(OsString, FileType, u64)>;

pub(super) struct ProtectionWalk<'a> {
    root: &'a Path,
    protected: &'a ProtectedPaths,
    names: ProtectedPathNames,
    keep_content: bool,
    before: Option<&'a ProtectedSnapshot>,
    /// The previous paths of pinned directories, by inode.
    pinned: BTreeMap<u64, (&'a Path, FileIdentity)>,
    keep_walking: KeepWalking<'a>,
    deadline: Option<Instant>,
    is_cancelled: bool,
    new_entries: usize,
    kept_bytes: u64,
    /// Queues of directories. Known directories come before new ones, so that a crowd of new files
    /// cannot delay their check.
    pending: VecDeque<WalkDirectory>,
    pending_new: VecDeque<WalkDirectory>,
    /// A directory of the user whose path is too long to be searched.
    too_long: Option<PathBuf>,
    /// The link targets found so far.
    led_to: BTreeSet<(PathBuf, PathProtection)>,
    /// The directories that were opened for this walk.
    opened: Option<&'a OpenedDirectories>,
    /// Whether directories that this user cannot list are opened.
    may_open: bool,
    /// What the command can have changed; `None` if that is unknown.
    scope: Option<&'a LayerScope>,
    snapshot: ProtectedSnapshot,
    /// The cached resolution of links.
    follower: LinkFollower,
    /// The directories of packages that links make part of the project, and the number of entries
    /// in them.
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
            too_long: None,
            led_to: BTreeSet::new(),
            opened: None,
            may_open: true,
            scope: None,
            snapshot: ProtectedSnapshot {
                started_at: Some(SystemTime::now()),
                ..ProtectedSnapshot::default()
            },
            follower: LinkFollower::default(),
            linked: BTreeSet::new(),
            linked_entries: 0,
        }
    }

    /// Sets the settings that name files for git to run, for a walk before a command.
    pub(super) fn with_settings(mut self, git: GitNamedPaths) -> Self {
        self.snapshot.git = git;
        self
    }

    /// Sets the directories that are open during this walk and get other permissions afterwards.
    pub(super) fn with_opened(self, opened: &'a OpenedDirectories) -> Self {
        Self { opened: Some(opened), ..self }
    }

    /// Sets whether directories that this user cannot list may be opened.
    pub(super) fn with_opening(self, may_open: bool) -> Self {
        Self { may_open, ..self }
    }

    /// Leaves out the names, for a walk before a command that no walk follows.
    pub(super) fn without_inventory(mut self) -> Self {
        self.snapshot.inventory = EntryInventory::unknown();
        self
    }

    /// Limits a walk after a command to the directories that the command can have changed. All
    /// other entries count as they were.
    pub(super) fn with_scope(mut self, scope: Option<&'a LayerScope>) -> Self {
        self.scope = scope;
        if let (Some(scope), Some(before)) =
            (scope.filter(|scope| !scope.covers_all()), self.before)
        {
            self.pending.retain(|folder| !scope.is_unchanged(&folder.path));
            self.snapshot.growth.total = before.growth.total;
        }
        self
    }

    /// Walks through the whole workspace. After a command, `until` is the deadline.
    pub(super) fn run(
        mut self,
        until: Option<Instant>,
    ) -> Result<ProtectedSnapshot, ProtectionError> {
        self.deadline = until;
        let inode = self
            .scope
            .and_then(LayerScope::top_inode)
            .unwrap_or_else(|| fs::symlink_metadata(self.root).map_or(0, |found| found.ino()));
        self.pending.push_back(WalkDirectory { inode, ..WalkDirectory::default() });
        // The links that lead to these directories may be outside the scope.
        if let (Some(_), Some(before)) = (self.scope, self.before) {
            before.linked_packages.iter().for_each(|path| self.look_at_packages(path.clone()));
        }
        let walked = self.visit_pending();
        self.finish(walked)
    }

    /// Visits only the paths that were protected before the command.
    pub(super) fn run_known(
        mut self,
        until: Instant,
    ) -> Result<ProtectedSnapshot, ProtectionError> {
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

    fn finish(
        mut self,
        walked: Result<(), ProtectionError>,
    ) -> Result<ProtectedSnapshot, ProtectionError> {
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

    fn visit_pending(&mut self) -> Result<(), ProtectionError> {
        let mut seen = BTreeSet::new();
        while let Some(folder) = self.pending.pop_front() {
            let is_known = folder.may_match || folder.git_path.is_some();
            // The walk never follows links, which a command may have put in the way.
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
                return Err(ProtectionError::Cancelled);
            }
            if let Some(path) = &self.too_long {
                let shown = escape_line(&path.display().to_string(), MAX_SHOWN_PATH_LEN);
                return Err(ProtectionError::PathTooLong(shown));
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

    /// Returns whether a command added too many protected paths to handle at once.
    fn has_too_many_entries(&self) -> bool {
        self.before.is_some_and(|before| {
            self.snapshot.entries.len() > before.entries.len() + MAX_NEW_PROTECTED
        })
    }

    /// Checks whether the walk was cancelled.
    fn check_cancelled(&mut self) -> bool {
        self.is_cancelled |= !(self.keep_walking)();
        self.is_cancelled
    }

    fn visit_directory(
        &mut self,
        mut folder: WalkDirectory,
        entries: DirectoryEntries,
    ) -> Result<(), ProtectionError> {
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
        // This is `.git` itself, or the repository of a submodule or worktree, but not a directory
        // that contains these.
        let is_git = folder.git_path.as_deref() == Some(Path::new(".git"))
            || folder.git_path.is_some() && names().any(|name| name == "HEAD");
        self.look_for_named(&folder, &entries, is_repository, is_git)?;
        for (name, kind, inode) in entries {
            self.record_if_moved(&folder.path.join(&name), kind, inode);
            self.visit_entry(&folder, &name, kind, inode, is_git)?;
        }
        Ok(())
    }

    /// Checks whether a directory became a repository only through new marker entries, and records
    /// these for removal.
    ///
    /// If the entries that git would run existed before, they are the user's source, and the new
    /// markers are removed instead.
    fn record_planted_parts(&mut self, folder: &WalkDirectory, entries: &DirectoryEntries) -> bool {
        let Some(begun) = self.before.and_then(|before| before.started_at) else { return false };
        let is_known =
            self.before.is_some_and(|before| before.repositories.contains(&folder.inode));
        // Renaming, writing and creating all update the ctime, which no process can set.
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
            // The entry is new and has no previous state, so it is moved away.
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
    ) -> Result<(), ProtectionError> {
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
        // If `.git` is a file or a link, it decides where hooks are.
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
            // Names in a store are hashes and branch names, and most cannot match.
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

    /// Returns whether to search a directory with this protection.
    fn should_descend(&self, path: &Path, inode: u64, how: Option<PathProtection>) -> bool {
        let was_there = self.before.is_none_or(|before| before.entries.contains_key(path));
        match how {
            // The contents were neither visible to the command nor writable.
            Some(PathProtection::Hidden) => self.keep_content || !was_there,
            // A new directory is moved away with its contents, except for that of a new repository
            // or of a renamed directory.
            Some(PathProtection::ReadOnly) => {
                was_there
                    || path.ends_with("hooks")
                    || self.before.is_some_and(|before| before.by_inode.contains_key(&inode))
            }
            Some(PathProtection::Pinned) | None => true,
        }
    }
}
