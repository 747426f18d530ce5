//! The record of a commit by renames: each move, and the entries that it moved.
//!
//! A record is a directory with `record.json` and the slots, each named by the number of its move.
//! Before the commit, a slot has the new entry; after it, the old one. While the record is
//! *pending*, each move may have been made or not.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use cap_std::fs::Dir;
use rustix::fs::FileType;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use super::entry::{EntryIdentity, EntryLocation, EntryStatus};
use super::{MoveAction, MovePlan};
use crate::own_file;
use crate::policy::hex;
use crate::sandbox::stage::commit::CommitError;
use crate::sandbox::stage::record::{ChangeState, FILE_NAME, save_manifest};
use cofferdam_confine::remove_directory;

/// The version of the format of a record of moves.
pub(in crate::sandbox::stage) const FORMAT_VERSION: u32 = 3;
/// The largest `record.json`, in bytes: enough for 100,000 moves.
const MAX_RECORD_SIZE: u64 = 128 << 20;
/// The largest file whose digest is recorded, in bytes.
const MAX_DIGESTED_SIZE: u64 = 1 << 20;
/// The directory of a record with the slots.
const SLOTS: &str = "slots";

/// The record of a commit by renames.
#[derive(Debug)]
pub(in crate::sandbox::stage) struct MoveRecord {
    directory: PathBuf,
    pub(in crate::sandbox::stage) manifest: MoveManifest,
    /// The number of moves that may have been made. The others need not be made backwards.
    pub(super) tried: usize,
}

/// The content of `record.json`.
#[derive(Debug, Serialize, Deserialize)]
pub(in crate::sandbox::stage) struct MoveManifest {
    version: u32,
    state: ChangeState,
    /// The time of the commit, in seconds since 1970.
    pub(in crate::sandbox::stage) time: u64,
    /// The name of the tool that ran the command.
    pub(in crate::sandbox::stage) tool: String,
    /// The size of the old entries, in bytes.
    pub(in crate::sandbox::stage) kept_bytes: u64,
    pub(in crate::sandbox::stage) moves: Vec<RecordedMove>,
    /// The change times of paths that this program itself has changed since, when it undid later
    /// changes.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(super) restored: BTreeMap<String, (i64, i64)>,
}

/// One move of a record.
#[derive(Debug, Serialize, Deserialize)]
pub(in crate::sandbox::stage) struct RecordedMove {
    /// The path in the workspace.
    pub(in crate::sandbox::stage) path: String,
    /// The entry at the path before the commit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) old: Option<EntryIdentity>,
    /// The permissions of an old directory that the owner cannot write. A crash while it is renamed
    /// can leave it writable.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) old_mode: Option<u32>,
    /// The entry that the commit moves to the path.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) new: Option<EntryIdentity>,
    /// The permissions of a directory before and after the commit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    modes: Option<(u32, u32)>,
    /// The new entry after the commit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) after: Option<CommittedEntry>,
}

/// An entry right after the commit.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct CommittedEntry {
    pub(super) status: EntryStatus,
    /// The digest of a small file, or of the target of a link.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) digest: Option<String>,
}

impl RecordedMove {
    /// Returns whether the move sets permissions.
    pub(super) fn is_mode(&self) -> bool {
        self.modes.is_some()
    }

    /// Returns whether there was an entry at the path before the commit.
    pub(in crate::sandbox::stage) fn has_old(&self) -> bool {
        self.old.is_some()
    }

    /// Returns the permissions before and after a move that sets them.
    pub(in crate::sandbox::stage) fn modes(&self) -> Option<(u32, u32)> {
        self.modes
    }
}

impl MoveRecord {
    /// Moves the new entries to the slots, and records the planned moves.
    pub(super) fn begin(
        directory: PathBuf,
        (tool, time): (&str, u64),
        root: &Dir,
        plan: MovePlan,
        kept_bytes: u64,
    ) -> Result<Self, CommitError> {
        let at = |path: &str| {
            let path = path.to_owned();
            move |source| CommitError::Io { path, source }
        };
        let record = || String::from("the record of this change");
        create_private_dir(&directory)
            .and_then(|()| create_private_dir(&directory.join(SLOTS)))
            .map_err(at(&record()))?;
        let slots = open_dir(&directory.join(SLOTS)).map_err(at(&record()))?;
        let started = plan.since;
        let mut moves = Vec::with_capacity(plan.moves.len());
        for (number, planned) in plan.moves.into_iter().enumerate() {
            let since = planned.unchanged_since(started);
            let path = planned.path;
            let status = EntryLocation::open(root, &path)
                .and_then(|location| location.status())
                .map_err(at(&path))?;
            // Checked again, because checking all other moves takes time.
            let fits = since.is_some_and(|since| planned.action.fits(status.as_ref(), since));
            if !fits {
                return Err(CommitError::Changed(path));
            }
            let mut recorded = RecordedMove {
                path: path.clone(),
                old: status.as_ref().map(|status| status.identity.clone()),
                old_mode: status
                    .as_ref()
                    .filter(|status| status.is_closed_directory())
                    .map(|status| status.mode),
                new: None,
                modes: None,
                after: None,
            };
            match planned.action {
                MoveAction::Create { from } | MoveAction::Replace { from } => {
                    let new = take_entry(&from, &slots, number).map_err(at(&path))?;
                    recorded.new = Some(new);
                }
                MoveAction::Remove => {}
                MoveAction::SetMode { mode } => {
                    recorded.modes = status.map(|status| (status.mode, mode));
                }
            }
            moves.push(recorded);
        }
        let record = Self {
            directory,
            tried: moves.len(),
            manifest: MoveManifest {
                version: FORMAT_VERSION,
                state: ChangeState::Pending,
                time,
                tool: tool.to_owned(),
                kept_bytes,
                moves,
                restored: BTreeMap::new(),
            },
        };
        let path = record.directory.display().to_string();
        // The state after the commit is added later.
        let length = serde_json::to_vec(&record.manifest).map_or(usize::MAX, |text| text.len());
        if length as u64 > MAX_RECORD_SIZE / 2 {
            let source = io::Error::other("the command changed too many paths");
            return Err(CommitError::Io { path, source });
        }
        record.save().map_err(|source| CommitError::Io { path, source })?;
        Ok(record)
    }

    /// Records that all moves were made, with the state that they left.
    pub(super) fn finish(&mut self, root: &Dir) -> io::Result<()> {
        for recorded in &mut self.manifest.moves {
            if recorded.new.is_some() || recorded.is_mode() {
                let location = EntryLocation::open(root, &recorded.path)?;
                recorded.after = CommittedEntry::read(&location)?;
            }
        }
        self.set_state(ChangeState::Made)
    }

    /// Reads a record; an error if it is none of this version, or if somebody else can have written
    /// it.
    pub(in crate::sandbox::stage) fn read(directory: PathBuf) -> io::Result<Self> {
        if !own_file::find_dir_io(&directory)? {
            return Err(io::ErrorKind::NotFound.into());
        }
        let text = own_file::read(&directory.join(FILE_NAME), MAX_RECORD_SIZE)?;
        let manifest: MoveManifest = serde_json::from_slice(&text)?;
        if manifest.version != FORMAT_VERSION {
            return Err(io::ErrorKind::Unsupported.into());
        }
        Ok(Self { directory, tried: manifest.moves.len(), manifest })
    }

    pub(in crate::sandbox::stage) fn directory(&self) -> &Path {
        &self.directory
    }

    pub(in crate::sandbox::stage) fn state(&self) -> ChangeState {
        self.manifest.state
    }

    pub(in crate::sandbox::stage) fn set_state(&mut self, state: ChangeState) -> io::Result<()> {
        self.manifest.state = state;
        self.save()
    }

    /// Deletes the old entries, but not the record that the change was made.
    pub(super) fn discard_old(&mut self) -> io::Result<()> {
        self.manifest.kept_bytes = 0;
        self.set_state(ChangeState::Unkept)?;
        remove_directory(&self.directory.join(SLOTS))
    }

    /// Deletes the record with the entries in its slots.
    pub(in crate::sandbox::stage) fn delete(&self) -> io::Result<()> {
        // A record without its file is removed at the next start if this fails midway.
        std::fs::remove_file(self.directory.join(FILE_NAME))?;
        remove_directory(&self.directory)
    }

    pub(in crate::sandbox::stage) fn open_slots(&self) -> io::Result<Dir> {
        open_dir(&self.directory.join(SLOTS))
    }

    pub(super) fn save(&self) -> io::Result<()> {
        save_manifest(&self.directory, &self.manifest)
    }
}

impl CommittedEntry {
    /// Reads the entry at a place, if there is one.
    pub(super) fn read(location: &EntryLocation) -> io::Result<Option<Self>> {
        let Some(status) = location.status()? else { return Ok(None) };
        let digest = match status.file_type() {
            FileType::RegularFile if status.size <= MAX_DIGESTED_SIZE => {
                // A file that cannot be read is compared by its status.
                location.read().and_then(|file| digest(file, status.size)).ok()
            }
            FileType::Symlink => Some(hex(&Sha256::digest(location.read_link()?))),
            _ => None,
        };
        Ok(Some(Self { status, digest }))
    }
}

fn digest(file: File, size: u64) -> io::Result<String> {
    let mut content = Vec::new();
    // A file that grows meanwhile has another digest.
    file.take(size + 1).read_to_end(&mut content)?;
    Ok(hex(&Sha256::digest(content)))
}

/// Moves a new entry to its slot.
fn take_entry(from: &Path, slots: &Dir, number: usize) -> io::Result<EntryIdentity> {
    let invalid = || io::Error::from(io::ErrorKind::InvalidInput);
    let parent = open_dir(from.parent().ok_or_else(invalid)?)?;
    let name = from.file_name().and_then(|name| name.to_str()).ok_or_else(invalid)?;
    let slot = EntryLocation::in_directory(slots, number.to_string())?;
    EntryLocation::in_directory(&parent, name.to_owned())?.move_to(&slot)?;
    let status = slot.status()?.ok_or(io::ErrorKind::NotFound)?;
    Ok(status.identity)
}

fn open_dir(path: &Path) -> io::Result<Dir> {
    Dir::open_ambient_dir(path, cap_std::ambient_authority())
}

fn create_private_dir(path: &Path) -> io::Result<()> {
    use std::os::unix::fs::DirBuilderExt as _;
    std::fs::DirBuilder::new().mode(0o700).create(path)
}
