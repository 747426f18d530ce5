//! Snapshots of the protected paths of a workspace before and after a command.
//!
//! A sandbox cannot prevent all changes: some levels lack the means, and a path that does not exist
//! cannot be mounted. Such changes are reverted with the help of the snapshots.

mod access;
mod error;
mod growth;
mod kind;
mod saved;
mod scope;
mod walk;

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, Metadata, Permissions};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Instant, SystemTime};

use crate::git::GitNamedPaths;
use access::ClosedDirectories;
pub(super) use access::OpenedDirectories;
use cofferdam_policy::{PathProtection, ProtectedPaths, WorkspacePath};
pub(super) use error::ProtectionError;
pub(super) use growth::{CrowdedDirectory, EntryInventory, WorkspaceGrowth};
pub(crate) use kind::EntryKind;
pub(super) use saved::{SavedPath, SavedSnapshot};
pub(crate) use scope::LayerScope;
pub(super) use walk::MAX_ENTRIES;
use walk::{ProtectionWalk, WalkDirectory};

/// The maximum size of all stored file contents, in bytes.
const MAX_KEPT_BYTES: u64 = 64 << 20;
/// The maximum number of rounds for following links to links. Targets found in the last round are
/// protected only by their own names.
const MAX_ROUNDS: usize = 6;

/// The state of the protected paths of a workspace.
#[derive(Debug, Default)]
pub(super) struct ProtectedSnapshot {
    pub(super) entries: BTreeMap<PathBuf, SnapshotEntry>,
    /// The entries that a command added.
    pub(super) growth: WorkspaceGrowth,
    /// The entries from before a command.
    pub(super) inventory: EntryInventory,
    /// The directories that cannot be searched.
    pub(super) unreadable: Vec<PathBuf>,
    /// The directories that a command moved so deep that their contents cannot be searched.
    pub(super) too_deep: BTreeSet<PathBuf>,
    /// The pinned directories that were moved, as pairs of the old and the new path.
    pub(super) moved: Vec<(PathBuf, PathBuf)>,
    /// The sockets from before a command. Their listeners run outside the sandbox.
    pub(super) sockets: Vec<PathBuf>,
    /// The files with names of package manager settings.
    pub(super) package_settings: Vec<PathBuf>,
    /// Whether the workspace contains files of this program.
    pub(super) contains_program_files: bool,
    /// The directories that were closed to their owner before a command.
    closed: ClosedDirectories,
    /// The start time of the snapshot.
    started_at: Option<SystemTime>,
    /// The directories of packages that links lead to, which belong to the project.
    linked_packages: BTreeSet<PathBuf>,
    /// The original permissions of directories that were opened because this user could not list
    /// them.
    original_modes: Vec<(PathBuf, u32)>,
    /// The protected directories for the walk after a command.
    directories: Vec<WalkDirectory>,
    /// The inodes of directories with the shape of a repository.
    repositories: BTreeSet<u64>,
    /// The targets of protected links, which get the same protection.
    targets: Vec<(WorkspacePath, PathProtection)>,
    /// The links on the way to these targets.
    on_the_way: Vec<WorkspacePath>,
    /// The real directories above paths that settings name or that links lead to. The paths
    /// themselves need not exist.
    target_parents: BTreeSet<PathBuf>,
    /// The new links that must be removed, each with the reason.
    pub(super) rejected_links: BTreeMap<PathBuf, &'static str>,
    /// The paths outside the workspace that commands can write, without links.
    pub(super) written_outside: Vec<PathBuf>,
    /// The paths with this program's own files, without links.
    pub(super) program_places: Vec<PathBuf>,
    /// The paths that git settings name, before a command.
    git: GitNamedPaths,
    /// The inodes of directories that are repositories or worktrees.
    tops: BTreeSet<u64>,
    /// The paths of directories that are repositories or worktrees.
    top_paths: BTreeSet<PathBuf>,
    /// The paths of the entries by inode.
    by_inode: BTreeMap<u64, PathBuf>,
}

#[derive(Clone, Debug)]
pub(super) struct SnapshotEntry {
    pub(super) protection: PathProtection,
    /// Whether the protection comes from a directory above, not from the entry's own name.
    pub(super) inherited: bool,
    /// Whether a hidden entry contains code that a program runs automatically. A new one is not
    /// harmless.
    pub(super) runs_code: bool,
    /// Whether the file belongs to this program. Other processes of it may write the file at any
    /// time.
    pub(super) is_program_file: bool,
    pub(super) kind: EntryKind,
    pub(super) mode: u32,
    pub(super) size: u64,
    /// The number of hard links to a file.
    ///
    /// A file with several links can be written through each of them, even if one is mounted
    /// read-only.
    pub(super) names: u64,
    pub(super) content: KeptContent,
    identity: FileIdentity,
}

/// The identity of a file or directory, independent of its name. The inode alone is reused as soon
/// as it is free.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct FileIdentity {
    inode: u64,
    created: Option<SystemTime>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum KeptContent {
    File(Arc<[u8]>),
    Link(PathBuf),
    /// There is no content to store, or it is not needed.
    NotKept,
}

impl SnapshotEntry {
    /// Returns whether the entry still has its previous state.
    pub(super) fn is_unchanged_from(&self, had: &Self) -> bool {
        self.kind == had.kind
            && self.mode == had.mode
            && self.content == had.content
            && !self.has_new_name(had)
    }

    /// Returns whether the file has more than one hard link.
    pub(super) fn has_hard_links(&self) -> bool {
        self.names > 1
    }

    /// Returns whether the file got another hard link, through which it can be written later.
    pub(super) fn has_new_name(&self, had: &Self) -> bool {
        self.names > had.names && self.identity == had.identity
    }

    /// Returns whether this is the same file or directory, whatever its contents are.
    pub(super) fn is_same_file(&self, had: &Self) -> bool {
        self.identity == had.identity && self.kind == had.kind
    }
}

/// A callback that returns whether to continue. A walk before a command stops if nobody waits for
/// it any more.
pub(super) type KeepWalking<'a> = &'a mut dyn FnMut() -> bool;

impl ProtectedSnapshot {
    /// Captures the workspace before a command, and returns the snapshot with the extended list of
    /// protected paths.
    ///
    /// The list includes the targets of protected links and the paths that git settings name. With
    /// `keeping`, the snapshot stores file contents so that they can be restored.
    ///
    /// # Errors
    /// The workspace has too many entries or protected contents, git settings cannot be read, or
    /// `goes_on` returned false.
    pub(super) fn capture_before(
        root: &Path,
        protected: &ProtectedPaths,
        git: GitNamedPaths,
        keeping: bool,
        goes_on: KeepWalking<'_>,
    ) -> Result<(Self, ProtectedPaths), ProtectionError> {
        let opened = OpenedDirectories::open_before(root, goes_on)?;
        let walk = FirstWalk { keeping, ..FirstWalk::new(root, &opened) };
        let captured = Self::capture_opened(walk, protected, git, goes_on);
        opened.close(root, &Self::default());
        let (mut snapshot, protected) = captured?;
        snapshot.closed = opened.into_closed();
        Ok((snapshot, protected))
    }

    /// Captures the state before a command that cannot change the workspace. Directories that the
    /// user cannot enter stay closed, because the command cannot enter them either.
    ///
    /// # Errors
    /// The same as of [`capture_before`](Self::capture_before).
    pub(super) fn capture_read_only(
        root: &Path,
        protected: &ProtectedPaths,
        git: GitNamedPaths,
        goes_on: KeepWalking<'_>,
    ) -> Result<(Self, ProtectedPaths), ProtectionError> {
        let opened = OpenedDirectories::default();
        let walk = FirstWalk { has_search_after: false, ..FirstWalk::new(root, &opened) };
        Self::capture_opened(walk, protected, git, goes_on)
    }

    /// Captures the workspace below a private view, before the view exists. Nothing is changed.
    /// Returns `None` if the search needs directories that this user cannot list.
    ///
    /// # Errors
    /// The same as of [`capture_before`](Self::capture_before).
    pub(super) fn capture_unchanged(
        root: &Path,
        protected: &ProtectedPaths,
        git: GitNamedPaths,
        goes_on: KeepWalking<'_>,
    ) -> Result<Option<(Self, ProtectedPaths)>, ProtectionError> {
        let opened = OpenedDirectories::default();
        let walk = FirstWalk { may_open: false, ..FirstWalk::new(root, &opened) };
        let captured = Self::capture_opened(walk, protected, git, goes_on)?;
        Ok(Some(captured).filter(|(snapshot, _)| snapshot.unreadable.is_empty()))
    }

    fn capture_opened(
        walk: FirstWalk<'_>,
        protected: &ProtectedPaths,
        mut git: GitNamedPaths,
        goes_on: KeepWalking<'_>,
    ) -> Result<(Self, ProtectedPaths), ProtectionError> {
        let FirstWalk { root, keeping, opened, may_open, has_search_after } = walk;
        let mut protected = protected.clone();
        let mut above_named = BTreeSet::new();
        let mut named: Vec<_> = git
            .outside_paths()?
            .iter()
            .filter_map(|path| Some((as_place(path)?, PathProtection::ReadOnly)))
            .collect();
        let mut round = 0;
        loop {
            round += 1;
            let above =
                named.iter().flat_map(|(path, _)| Path::new(path.as_str()).ancestors().skip(1));
            let above = above
                .filter(|above| !above.as_os_str().is_empty() && !root.join(above).is_symlink());
            above_named.extend(above.map(Path::to_owned));
            for (path, how) in &named {
                protected = protected.with_path(path, *how);
            }
            git.begin_look();
            let mut walk = ProtectionWalk::new(root, &protected, keeping, None, goes_on)
                .with_settings(git)
                .with_opened(opened)
                .with_opening(may_open);
            if !has_search_after {
                walk = walk.without_inventory();
            }
            let mut snapshot = walk.run(None)?;
            git = std::mem::take(&mut snapshot.git);
            snapshot.restore_modes(root, &Self::default());
            if snapshot.growth.is_truncated {
                return Err(ProtectionError::TooManyEntries);
            }
            let links = snapshot.on_the_way.iter().map(|path| Path::new(path.as_str()));
            let above = links
                .flat_map(|path| path.ancestors().skip(1))
                .filter(|above| !above.as_os_str().is_empty());
            above_named
                .extend(above.filter(|above| !root.join(above).is_symlink()).map(Path::to_owned));
            if snapshot.targets.is_empty() && snapshot.on_the_way.is_empty() || round == MAX_ROUNDS
            {
                (snapshot.target_parents, snapshot.git) = (above_named, git);
                return Ok((snapshot, protected));
            }
            protected = snapshot.on_the_way.iter().fold(protected, ProtectedPaths::and_on_the_way);
            named = snapshot.targets;
        }
    }

    /// Captures the previously protected paths after a command, and new entries directly in them.
    /// These are restored first.
    pub(super) fn capture_known(
        root: &Path,
        protected: &ProtectedPaths,
        keeping: bool,
        before: &Self,
        (opened, scope): (&OpenedDirectories, Option<&LayerScope>),
        until: Instant,
    ) -> Result<Self, ProtectionError> {
        ProtectionWalk::new(root, protected, keeping, Some(before), &mut || true)
            .with_opened(opened)
            .with_scope(scope)
            .run_known(until)
    }

    /// Captures the whole workspace after a command, until the deadline.
    ///
    /// Opened directories stay open until [`Self::restore_modes`]. The growth lists the parts that
    /// were not searched. With a scope, only what the command can have changed is searched, and the
    /// number of entries does not shrink.
    pub(super) fn capture_after(
        root: &Path,
        protected: &ProtectedPaths,
        keeping: bool,
        before: &Self,
        (opened, scope): (&OpenedDirectories, Option<&LayerScope>),
        until: Instant,
    ) -> Result<Self, ProtectionError> {
        ProtectionWalk::new(root, protected, keeping, Some(before), &mut || true)
            .with_opened(opened)
            .with_scope(scope)
            .run(Some(until))
    }

    /// Restores the permissions of opened directories, except those known from before, whose own
    /// restoration follows.
    pub(super) fn restore_modes(&self, root: &Path, before: &Self) {
        for (path, mode) in
            self.original_modes.iter().rev().filter(|(path, _)| !before.entries.contains_key(path))
        {
            // The directory may be gone, or replaced by a link, which must not be followed.
            let whole = root.join(path);
            if fs::symlink_metadata(&whole).is_ok_and(|metadata| metadata.is_dir()) {
                let _ = fs::set_permissions(whole, Permissions::from_mode(*mode));
            }
        }
    }

    /// Returns the entry that was the same file or directory, under any path. A renamed directory
    /// takes its contents along.
    pub(super) fn find_same_file(&self, entry: &SnapshotEntry) -> Option<&SnapshotEntry> {
        entry.identity.created?;
        self.entries
            .get(self.by_inode.get(&entry.identity.inode)?)
            .filter(|had| entry.is_same_file(had) && !entry.has_hard_links())
    }

    /// Returns the entry that was the same file or directory as the one with this metadata.
    fn find_by_metadata(&self, metadata: &Metadata) -> Option<&SnapshotEntry> {
        let identity = FileIdentity::from_metadata(metadata);
        identity.created?;
        self.entries.get(self.by_inode.get(&identity.inode)?).filter(|had| had.identity == identity)
    }

    fn insert(&mut self, path: PathBuf, entry: SnapshotEntry) {
        self.by_inode.insert(entry.identity.inode, path.clone());
        self.entries.insert(path, entry);
    }

    /// Calculates the cost of protecting these entries from the next command.
    pub(super) fn cost(&self, root: &Path) -> ProtectionCost {
        let own = || self.entries.iter().filter(|(_, entry)| !entry.inherited);
        // Each entry takes one mount, and so does each directory that has to stay in place.
        let mut folders = BTreeSet::new();
        for (path, entry) in own() {
            let itself = usize::from(entry.protection != PathProtection::Pinned);
            let above = path.ancestors().skip(itself).filter(|path| !path.as_os_str().is_empty());
            folders.extend(above.take_while(|path| !folders.contains(path)).collect::<Vec<_>>());
        }
        let leaves: Vec<&Path> = own()
            .filter(|(_, entry)| entry.protection != PathProtection::Pinned)
            .map(|(path, _)| path.as_path())
            .collect();
        let text = folders
            .iter()
            .chain(&leaves)
            .map(|path| 2 * (root.as_os_str().len() + path.as_os_str().len()))
            .sum();
        let bytes = self.entries.values().map(|entry| entry.size).sum();
        ProtectionCost {
            mounts: folders.len() + leaves.len(),
            argument_bytes: text,
            file_bytes: bytes,
        }
    }
}

/// What a walk before a command does.
#[derive(Clone, Copy)]
struct FirstWalk<'a> {
    root: &'a Path,
    /// Whether to store file contents.
    keeping: bool,
    /// The directories that are open during the walk.
    opened: &'a OpenedDirectories,
    /// Whether directories that this user cannot list may be opened.
    may_open: bool,
    /// Whether another walk follows the command, which needs the names from before.
    has_search_after: bool,
}

impl<'a> FirstWalk<'a> {
    fn new(root: &'a Path, opened: &'a OpenedDirectories) -> Self {
        Self { root, keeping: false, opened, may_open: true, has_search_after: true }
    }
}

/// Converts a path for the list of protected paths.
fn as_place(path: &Path) -> Option<WorkspacePath> {
    let parts: Vec<_> = path.iter().map(|part| part.to_string_lossy()).collect();
    WorkspacePath::parse(&parts.join("/"), None).ok()
}

/// The cost of protecting the paths of a workspace from a command.
#[derive(Clone, Copy, Debug)]
pub(super) struct ProtectionCost {
    pub(super) mounts: usize,
    /// The size of the mount arguments, in bytes.
    pub(super) argument_bytes: usize,
    /// The total size of the files, in bytes.
    pub(super) file_bytes: u64,
}

/// The current state of one path.
struct FoundEntry {
    kind: EntryKind,
    mode: u32,
    size: u64,
    names: u64,
    identity: FileIdentity,
    content: KeptContent,
}

impl FoundEntry {
    /// Reads the state of a path, with its content if needed.
    ///
    /// After a command, content is stored only if it is unchanged, because new content is never
    /// restored.
    fn read(
        path: &Path,
        metadata: &Metadata,
        keeping: bool,
        before: Option<Option<&SnapshotEntry>>,
    ) -> Self {
        let kind = EntryKind::of(metadata);
        // The mode of a file that cannot be restored is ignored.
        let mode = if keeping || kind.is_dir() { metadata.mode() & 0o7777 } else { 0 };
        let size = if kind.is_file() { metadata.len() } else { 0 };
        let content = match before {
            _ if kind.is_symlink() => {
                fs::read_link(path).map_or(KeptContent::NotKept, KeptContent::Link)
            }
            _ if !kind.is_file() || !keeping => KeptContent::NotKept,
            // A command cannot change a file that this user cannot read, except by replacing it,
            // which changes the mode.
            None => fs::read(path)
                .map_or(KeptContent::NotKept, |content| KeptContent::File(content.into())),
            Some(had) => match had.map(|had| &had.content) {
                Some(KeptContent::File(content))
                    if content.len() as u64 == size
                        && fs::read(path).is_ok_and(|now| now[..] == content[..]) =>
                {
                    KeptContent::File(Arc::clone(content))
                }
                _ => KeptContent::NotKept,
            },
        };
        let names = if kind.is_file() { metadata.nlink() } else { 1 };
        Self { kind, mode, size, names, identity: FileIdentity::from_metadata(metadata), content }
    }

    fn into_entry(
        self,
        how: PathProtection,
        inherited: bool,
        runs: bool,
        own: bool,
    ) -> SnapshotEntry {
        let Self { kind, mode, size, names, identity, content: kept } = self;
        SnapshotEntry {
            protection: how,
            inherited,
            runs_code: runs,
            is_program_file: own,
            kind,
            mode,
            size,
            names,
            content: kept,
            identity,
        }
    }
}

impl FileIdentity {
    fn from_metadata(metadata: &Metadata) -> Self {
        Self { inode: metadata.ino(), created: metadata.created().ok() }
    }
}

#[cfg(test)]
mod access_tests;
#[cfg(test)]
mod tests;
