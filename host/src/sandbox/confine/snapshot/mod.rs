//! The protected paths of a workspace before and after a command. What a sandbox cannot keep from
//! being changed, since it has no means to, or since the name was not there to be guarded, is put
//! back as it was.

mod access;
mod growth;
mod kind;
mod saved;
mod walk;

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, Metadata, Permissions};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Instant, SystemTime};

use crate::policy::{PathProtection, ProtectedPaths, WorkspacePath};
use crate::sandbox::git::GitNamedPaths;
use access::ClosedDirectories;
pub(super) use access::OpenedDirectories;
pub(super) use growth::{CrowdedDirectory, EntryInventory, WorkspaceGrowth};
pub(in crate::sandbox) use kind::EntryKind;
pub(super) use saved::{SavedPath, SavedSnapshot};
pub(super) use walk::MAX_ENTRIES;
use walk::{ProtectionWalk, WalkDirectory};

/// Bytes that are kept to be put back.
const MAX_KEPT_BYTES: u64 = 64 << 20;
/// Links that lead to links that lead to links: what is protected by the last of them is so by its
/// own name, or not at all.
const MAX_ROUNDS: usize = 6;

/// What there is.
#[derive(Debug, Default)]
pub(super) struct ProtectedSnapshot {
    pub(super) entries: BTreeMap<PathBuf, SnapshotEntry>,
    /// What a command added.
    pub(super) growth: WorkspaceGrowth,
    /// What was there, before a command.
    pub(super) inventory: EntryInventory,
    /// Folders that cannot be looked into.
    pub(super) unreadable: Vec<PathBuf>,
    /// Folders that a command moved to where what is in them is too deep to be looked into.
    pub(super) too_deep: BTreeSet<PathBuf>,
    /// Folders that were pinned and are elsewhere: from where, and to where.
    pub(super) moved: Vec<(PathBuf, PathBuf)>,
    /// Sockets that were there before a command: whoever listens at them runs outside.
    pub(super) sockets: Vec<PathBuf>,
    /// Files in which cargo looks for its settings.
    pub(super) package_settings: Vec<PathBuf>,
    /// This program keeps files of its own in the workspace.
    pub(super) contains_program_files: bool,
    /// Directories that were closed to their owner before a command.
    closed: ClosedDirectories,
    /// When it was begun.
    started_at: Option<SystemTime>,
    /// What this user could not list was made so that it could, and had these permissions.
    original_modes: Vec<(PathBuf, u32)>,
    /// The folders among the entries.
    directories: Vec<WalkDirectory>,
    /// The inodes of folders that are repositories by their shape.
    repositories: BTreeSet<u64>,
    /// What the protected paths lead to, and is protected like them.
    targets: Vec<(WorkspacePath, PathProtection)>,
    /// The links on the way there.
    on_the_way: Vec<WorkspacePath>,
    /// What lies above the paths that settings name, and is no link: what is named need not be
    /// there yet.
    target_parents: BTreeSet<PathBuf>,
    /// New links that stay not, each with what it is.
    pub(super) rejected_links: BTreeMap<PathBuf, &'static str>,
    /// Where commands write outside of the workspace, without links.
    pub(super) written_outside: Vec<PathBuf>,
    /// Where this program keeps its own files, without links.
    pub(super) program_places: Vec<PathBuf>,
    /// What settings of git name, before a command.
    git: GitNamedPaths,
    /// The inodes of directories that are repositories or worktrees.
    tops: BTreeSet<u64>,
    /// The paths of the same.
    top_paths: BTreeSet<PathBuf>,
    /// The paths of the entries, by the numbers of their inodes.
    by_inode: BTreeMap<u64, PathBuf>,
}

#[derive(Clone, Debug)]
pub(super) struct SnapshotEntry {
    pub(super) protection: PathProtection,
    /// Since it lies in something that is protected, and not by its own name.
    pub(super) inherited: bool,
    /// Hidden, and a program runs it by itself: a new one is not harmless.
    pub(super) runs_code: bool,
    /// A file of this program's, which other processes of it may write at any time.
    pub(super) is_program_file: bool,
    pub(super) kind: EntryKind,
    pub(super) mode: u32,
    pub(super) size: u64,
    /// The number of hard links to a file. A file with several can be written through each of them,
    /// whatever is mounted here.
    pub(super) names: u64,
    pub(super) content: KeptContent,
    identity: FileIdentity,
}

/// Which file or folder it is, whatever its name: the number alone is given to another one as soon
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
    /// There is nothing to keep, or no need.
    NotKept,
}

impl SnapshotEntry {
    /// Whether it is still what it was.
    pub(super) fn is_unchanged_from(&self, had: &Self) -> bool {
        self.kind == had.kind
            && self.mode == had.mode
            && self.content == had.content
            && !self.has_new_name(had)
    }

    /// Whether the file has more than one hard link.
    pub(super) fn has_hard_links(&self) -> bool {
        self.names > 1
    }

    /// Whether the file got a further hard link, through which it can be written later.
    pub(super) fn has_new_name(&self, had: &Self) -> bool {
        self.names > had.names && self.identity == had.identity
    }

    /// Whether it is the very same file or folder, whatever is in it.
    pub(super) fn is_same_file(&self, had: &Self) -> bool {
        self.identity == had.identity && self.kind == had.kind
    }
}

/// Whether the walk is to go on: a command that nobody waits for any more need not begin.
pub(super) type KeepWalking<'a> = &'a mut dyn FnMut() -> bool;

impl ProtectedSnapshot {
    /// Looks through the workspace before a command; with `keeping`, so that everything can be put
    /// back. Gives the paths that are protected, with those that they lead to.
    pub(super) fn capture_before(
        root: &Path,
        protected: &ProtectedPaths,
        git: GitNamedPaths,
        keeping: bool,
        goes_on: KeepWalking<'_>,
    ) -> Result<(Self, ProtectedPaths), String> {
        let opened = OpenedDirectories::open_before(root, goes_on)?;
        let captured = Self::capture_opened(root, protected, git, keeping, goes_on, &opened);
        opened.close(root, &Self::default());
        let (mut snapshot, protected) = captured?;
        snapshot.closed = opened.into_closed();
        Ok((snapshot, protected))
    }

    fn capture_opened(
        root: &Path,
        protected: &ProtectedPaths,
        mut git: GitNamedPaths,
        keeping: bool,
        goes_on: KeepWalking<'_>,
        opened: &OpenedDirectories,
    ) -> Result<(Self, ProtectedPaths), String> {
        let mut protected = protected.clone();
        let mut above_named = BTreeSet::new();
        let mut named: Vec<_> = git
            .outside_paths()?
            .iter()
            .filter_map(|path| Some((as_place(path)?, PathProtection::ReadOnly)))
            .collect();
        for round in 1.. {
            let above =
                named.iter().flat_map(|(path, _)| Path::new(path.as_str()).ancestors().skip(1));
            let above = above
                .filter(|above| !above.as_os_str().is_empty() && !root.join(above).is_symlink());
            above_named.extend(above.map(Path::to_owned));
            for (path, how) in &named {
                protected = protected.with_path(path, *how);
            }
            git.begin_look();
            let mut snapshot = ProtectionWalk::new(root, &protected, keeping, None, goes_on)
                .with_settings(git)
                .with_opened(opened)
                .run(None)?;
            git = std::mem::take(&mut snapshot.git);
            snapshot.restore_modes(root, &Self::default());
            if snapshot.growth.is_truncated {
                return Err(format!(
                    "the workspace has more than {MAX_ENTRIES} files and folders, too many to \
                        look after protected paths among them. \
                     Choose a folder of it as the workspace (`-C FOLDER`)"
                ));
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
        Err("the workspace cannot be looked through".to_owned())
    }

    /// Looks after the command at what was protected before, and at what is new right in it: what
    /// has to be put back first.
    pub(super) fn capture_known(
        root: &Path,
        protected: &ProtectedPaths,
        keeping: bool,
        before: &Self,
        opened: &OpenedDirectories,
        until: Instant,
    ) -> Result<Self, String> {
        ProtectionWalk::new(root, protected, keeping, Some(before), &mut || true)
            .with_opened(opened)
            .run_known(until)
    }

    /// Looks through it after the command. Folders stay as open as they had to be made, until
    /// [`Self::restore_modes`]. What was not looked at until then, the growth tells.
    pub(super) fn capture_after(
        root: &Path,
        protected: &ProtectedPaths,
        keeping: bool,
        before: &Self,
        opened: &OpenedDirectories,
        until: Instant,
    ) -> Result<Self, String> {
        ProtectionWalk::new(root, protected, keeping, Some(before), &mut || true)
            .with_opened(opened)
            .run(Some(until))
    }

    /// Gives folders the permissions that they had, but for those that are known from before and
    /// have their own.
    pub(super) fn restore_modes(&self, root: &Path, before: &Self) {
        for (path, mode) in
            self.original_modes.iter().rev().filter(|(path, _)| !before.entries.contains_key(path))
        {
            // One that was taken away has none to be given; and through a link nothing is given.
            let whole = root.join(path);
            if fs::symlink_metadata(&whole).is_ok_and(|metadata| metadata.is_dir()) {
                let _ = fs::set_permissions(whole, Permissions::from_mode(*mode));
            }
        }
    }

    /// The entry that was this very file or folder, wherever it was then: a folder that was renamed
    /// takes along what is in it.
    pub(super) fn find_same_file(&self, entry: &SnapshotEntry) -> Option<&SnapshotEntry> {
        entry.identity.created?;
        self.entries
            .get(self.by_inode.get(&entry.identity.inode)?)
            .filter(|had| entry.is_same_file(had) && !entry.has_hard_links())
    }

    /// The same of what is at a path now.
    fn find_by_metadata(&self, metadata: &Metadata) -> Option<&SnapshotEntry> {
        let identity = FileIdentity::from_metadata(metadata);
        identity.created?;
        self.entries.get(self.by_inode.get(&identity.inode)?).filter(|had| had.identity == identity)
    }

    fn insert(&mut self, path: PathBuf, entry: SnapshotEntry) {
        self.by_inode.insert(entry.identity.inode, path.clone());
        self.entries.insert(path, entry);
    }

    /// What it takes to protect all of this from the next command.
    pub(super) fn cost(&self, root: &Path) -> ProtectionCost {
        let own = || self.entries.iter().filter(|(_, entry)| !entry.inherited);
        // One for each of them, and one for each folder that has to stay in its place.
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

/// A path of the workspace, for the list of protected paths.
fn as_place(path: &Path) -> Option<WorkspacePath> {
    let parts: Vec<_> = path.iter().map(|part| part.to_string_lossy()).collect();
    WorkspacePath::parse(&parts.join("/"), None).ok()
}

/// What it takes to protect the paths of a workspace from a command.
#[derive(Clone, Copy, Debug)]
pub(super) struct ProtectionCost {
    pub(super) mounts: usize,
    /// Bytes of the arguments that tell of the mounts.
    pub(super) argument_bytes: usize,
    /// Bytes of the files.
    pub(super) file_bytes: u64,
}

/// What is at a path.
struct FoundEntry {
    kind: EntryKind,
    mode: u32,
    size: u64,
    names: u64,
    identity: FileIdentity,
    content: KeptContent,
}

impl FoundEntry {
    /// With its content, if it is needed, and if it is still what it was: of what is new nothing
    /// has to be kept.
    fn read(
        path: &Path,
        metadata: &Metadata,
        keeping: bool,
        before: Option<Option<&SnapshotEntry>>,
    ) -> Self {
        let kind = EntryKind::of(metadata);
        // Of a file that cannot be put back no change can be told either.
        let mode = if keeping || kind.is_dir() { metadata.mode() & 0o7777 } else { 0 };
        let size = if kind.is_file() { metadata.len() } else { 0 };
        let content = match before {
            _ if kind.is_symlink() => {
                fs::read_link(path).map_or(KeptContent::NotKept, KeptContent::Link)
            }
            _ if !kind.is_file() || !keeping => KeptContent::NotKept,
            // What this user cannot read, a command of this user cannot change but by replacing it,
            // which shows in the mode.
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
