//! A serializable form of the snapshot before a command, without the contents of hidden files.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};

use super::{
    EntryInventory, EntryKind, FileIdentity, KeptContent, ProtectedSnapshot, SnapshotEntry,
};
use cofferdam_policy::PathProtection;

/// A [`ProtectedSnapshot`] from before a command, without the inventory of names. New files are not
/// counted against it.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct SavedSnapshot {
    entries: Vec<SavedEntry>,
    closed: Vec<SavedPath>,
    above_named: Vec<SavedPath>,
    repositories: Vec<u64>,
    begun: Option<Duration>,
    /// The inode, creation time and permissions of each directory that was closed to its owner.
    #[serde(default)]
    closed_directories: Vec<(u64, Option<Duration>, u32)>,
}

/// A path in an encoding that supports non-UTF-8 bytes.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct SavedPath(String);

#[derive(Debug, Serialize, Deserialize)]
struct SavedEntry {
    path: SavedPath,
    how: PathProtection,
    inherited: bool,
    runs: bool,
    own: bool,
    kind: EntryKind,
    mode: u32,
    size: u64,
    names: u64,
    inode: u64,
    born: Option<Duration>,
    kept: SavedContent,
}

#[derive(Debug, Serialize, Deserialize)]
enum SavedContent {
    File(String),
    Link(SavedPath),
    Nothing,
}

impl SavedPath {
    pub(crate) fn of(path: &Path) -> Self {
        Self(STANDARD.encode(path.as_os_str().as_bytes()))
    }

    pub(crate) fn path(&self) -> Option<PathBuf> {
        Some(PathBuf::from(OsString::from_vec(STANDARD.decode(&self.0).ok()?)))
    }
}

impl SavedSnapshot {
    pub(crate) fn of(snapshot: &ProtectedSnapshot) -> Self {
        let paths = |paths: &mut dyn Iterator<Item = &PathBuf>| {
            paths.map(|path| SavedPath::of(path)).collect()
        };
        Self {
            entries: snapshot
                .entries
                .iter()
                .map(|(path, entry)| SavedEntry::of(path, entry))
                .collect(),
            closed: paths(&mut snapshot.unreadable.iter()),
            above_named: paths(&mut snapshot.target_parents.iter()),
            repositories: snapshot.repositories.iter().copied().collect(),
            begun: snapshot.started_at.and_then(since_epoch),
            closed_directories: snapshot
                .closed
                .iter()
                .map(|(identity, mode)| {
                    (identity.inode, identity.created.and_then(since_epoch), mode)
                })
                .collect(),
        }
    }

    /// Returns the snapshot, or `None` if the record is malformed.
    pub(crate) fn restore(&self) -> Option<ProtectedSnapshot> {
        let paths =
            |paths: &[SavedPath]| paths.iter().map(SavedPath::path).collect::<Option<Vec<_>>>();
        let mut snapshot = ProtectedSnapshot {
            inventory: EntryInventory::unknown(),
            unreadable: paths(&self.closed)?,
            target_parents: paths(&self.above_named)?.into_iter().collect(),
            repositories: self.repositories.iter().copied().collect(),
            started_at: self.begun.map(|begun| UNIX_EPOCH + begun),
            entries: BTreeMap::new(),
            ..ProtectedSnapshot::default()
        };
        for (inode, born, mode) in &self.closed_directories {
            let created = born.map(|born| UNIX_EPOCH + born);
            snapshot.closed.insert(FileIdentity { inode: *inode, created }, *mode);
        }
        for saved in &self.entries {
            let (path, entry) = saved.restore()?;
            snapshot.insert(path, entry);
        }
        Some(snapshot)
    }
}

impl SavedEntry {
    fn of(path: &Path, entry: &SnapshotEntry) -> Self {
        let kept = match &entry.content {
            KeptContent::File(content) if entry.protection != PathProtection::Hidden => {
                SavedContent::File(STANDARD.encode(content))
            }
            KeptContent::Link(target) => SavedContent::Link(SavedPath::of(target)),
            KeptContent::File(_) | KeptContent::NotKept => SavedContent::Nothing,
        };
        let SnapshotEntry {
            protection: how,
            inherited,
            runs_code: runs,
            is_program_file: own,
            kind,
            mode,
            size,
            names,
            identity: FileIdentity { inode, created: born },
            ..
        } = *entry;
        let born = born.and_then(since_epoch);
        Self {
            path: SavedPath::of(path),
            how,
            inherited,
            runs,
            own,
            kind,
            mode,
            size,
            names,
            inode,
            born,
            kept,
        }
    }

    fn restore(&self) -> Option<(PathBuf, SnapshotEntry)> {
        let Self { how, inherited, runs, own, kind, mode, size, names, inode, .. } = *self;
        let kept = match &self.kept {
            SavedContent::File(content) => KeptContent::File(STANDARD.decode(content).ok()?.into()),
            SavedContent::Link(target) => KeptContent::Link(target.path()?),
            SavedContent::Nothing => KeptContent::NotKept,
        };
        // A record must not give a file set-user-ID or set-group-ID bits.
        let mode = mode & if kind.is_dir() { 0o3777 } else { 0o777 };
        let identity = FileIdentity { inode, created: self.born.map(|born| UNIX_EPOCH + born) };
        Some((
            self.path.path()?,
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
            },
        ))
    }
}

fn since_epoch(time: SystemTime) -> Option<Duration> {
    time.duration_since(UNIX_EPOCH).ok()
}
