//! The record of a change: everything needed to undo it, on disk before the change begins.
//!
//! A record is a directory with `record.json` and the old contents, each in a file with a number.
//! While a record is *pending*, the change may be incomplete. The next process that holds the lock
//! of the history rolls it back. It tries that once: a change that cannot be rolled back is
//! *abandoned* to the user, because a later attempt might destroy newer work.

use std::fs::File;
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use cap_std::fs::Dir;
use serde::{Deserialize, Serialize};

use super::file_state::FileState;
use super::rights::FileRights;
use super::staged::{StagedStep, TargetState, file_digest};
use crate::own_file;
use crate::sandbox::rooted_fs;

pub(super) const FILE_NAME: &str = "record.json";
/// The version of the format.
pub(super) const FORMAT_VERSION: u32 = 2;
/// The largest `record.json`, in bytes: enough for a thousand of the longest paths.
const MAX_RECORD_SIZE: u64 = 16 << 20;

/// The record of a change on disk.
#[derive(Debug)]
pub(super) struct ChangeRecordFile {
    directory: PathBuf,
    pub(super) manifest: ChangeManifest,
}

/// The content of `record.json`.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct ChangeManifest {
    version: u32,
    state: ChangeState,
    /// The time of the change, in seconds since 1970.
    pub(super) time: u64,
    /// The name of the tool that made the change.
    pub(super) tool: String,
    pub(super) places: Vec<StagedPathChange>,
}

/// The progress of a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum ChangeState {
    /// The change has begun, or is being rolled back.
    Pending,
    Made,
    /// The change was made, and its old contents were too large to be kept.
    Unkept,
    /// The change was made or rolled back only in part. The record is kept so that the user can get
    /// the old contents.
    Abandoned,
}

/// One changed path, before and after.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct StagedPathChange {
    pub(super) place: String,
    pub(super) before: RecordedState,
    pub(super) after: RecordedState,
}

/// The state of a path in a record.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub(super) enum RecordedState {
    Nothing,
    Directory {
        /// The permissions of the directory before the change.
        #[serde(skip_serializing_if = "Option::is_none")]
        mode: Option<u32>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        owner: Option<(u32, u32)>,
    },
    Link {
        to: String,
    },
    File {
        digest: String,
        /// The backup of the old content; `None` for a new file.
        #[serde(skip_serializing_if = "Option::is_none")]
        kept: Option<BackupCopy>,
    },
    Special,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct BackupCopy {
    pub(super) name: String,
    #[serde(flatten)]
    pub(super) rights: FileRights,
}

impl ChangeRecordFile {
    /// Copies everything that will be replaced or removed, and records the planned change. All of
    /// it is durable when this returns.
    pub(super) fn create(
        folder: PathBuf,
        time: u64,
        tool: &str,
        root: &Dir,
        steps: &[StagedStep],
    ) -> io::Result<Self> {
        use std::os::unix::fs::DirBuilderExt as _;
        std::fs::DirBuilder::new().mode(0o700).create(&folder)?;
        let mut places = Vec::with_capacity(steps.len());
        for (number, step) in steps.iter().enumerate() {
            let before = match &step.original {
                FileState::Absent => RecordedState::Nothing,
                FileState::Directory(stamp) => RecordedState::Directory {
                    mode: Some(stamp.rights.mode),
                    owner: stamp.rights.owner,
                },
                FileState::Link(to) => RecordedState::Link { to: to.clone() },
                FileState::Special => RecordedState::Special,
                FileState::File(stamp) => {
                    let (mut file, _) = rooted_fs::open(root, &step.path)?;
                    let name = number.to_string();
                    let mut copy = create_private(&folder.join(&name))?;
                    io::copy(&mut file, &mut copy)?;
                    copy.sync_all()?;
                    let digest = file_digest(&mut File::open(folder.join(&name))?)?;
                    RecordedState::File {
                        digest,
                        kept: Some(BackupCopy { name, rights: stamp.rights }),
                    }
                }
            };
            let after = match &step.target {
                TargetState::Absent => RecordedState::Nothing,
                TargetState::Directory { .. } => RecordedState::plain_directory(),
                TargetState::Link(to) => RecordedState::Link { to: to.clone() },
                TargetState::File { digest, .. } => {
                    RecordedState::File { digest: digest.clone(), kept: None }
                }
            };
            places.push(StagedPathChange { place: step.path.clone(), before, after });
        }
        let record = Self {
            directory: folder,
            manifest: ChangeManifest {
                version: FORMAT_VERSION,
                state: ChangeState::Pending,
                time,
                tool: tool.to_owned(),
                places,
            },
        };
        record.save()?;
        // The name of its folder too.
        record.directory.parent().map_or(Ok(()), |history| File::open(history)?.sync_all())?;
        Ok(record)
    }

    /// Reads one; an error if it is none of this version, or if somebody else can have written it.
    pub(super) fn read(folder: PathBuf) -> io::Result<Self> {
        if !own_file::find_dir_io(&folder)? {
            return Err(io::ErrorKind::NotFound.into());
        }
        let text = own_file::read(&folder.join(FILE_NAME), MAX_RECORD_SIZE)?;
        let written: ChangeManifest = serde_json::from_slice(&text)?;
        if written.version != FORMAT_VERSION {
            return Err(io::Error::new(
                io::ErrorKind::Unsupported,
                format!(
                    "unsupported format {}; this version of cofferdam supports format \
                        {FORMAT_VERSION}",
                    written.version
                ),
            ));
        }
        Ok(Self { directory: folder, manifest: written })
    }

    pub(super) fn directory(&self) -> &Path {
        &self.directory
    }

    pub(super) fn state(&self) -> ChangeState {
        self.manifest.state
    }

    /// Saves the progress of the change.
    pub(super) fn set_state(&mut self, state: ChangeState) -> io::Result<()> {
        self.manifest.state = state;
        self.save()
    }

    /// Deletes the record with its backups.
    pub(super) fn delete(&self) -> io::Result<()> {
        std::fs::remove_dir_all(&self.directory)
    }

    /// Returns the temporary name of new content next to its path.
    pub(super) fn temporary_name(&self, number: usize) -> String {
        let id = self.directory.file_name().unwrap_or_default().to_string_lossy();
        format!(".cofferdam-{id}-{number}.tmp")
    }

    /// Returns the paths whose state differs from the one that the change left.
    pub(super) fn changed_since(&self, root: &Dir) -> Vec<&str> {
        let differs = |place: &&StagedPathChange| {
            !RecordedState::read(root, &place.place)
                .is_ok_and(|now| now.has_same_content(&place.after))
        };
        self.manifest.places.iter().filter(differs).map(|place| place.place.as_str()).collect()
    }

    /// Checks that the old content of a path is still available and undamaged.
    pub(super) fn check_backup(&self, held: &RecordedState) -> io::Result<()> {
        let RecordedState::File { digest: expected, kept } = held else { return Ok(()) };
        let Some(kept) = kept else { return Err(io::Error::from(io::ErrorKind::NotFound)) };
        let found = file_digest(&mut self.open_backup(kept)?)?;
        if found == *expected { Ok(()) } else { Err(io::Error::from(io::ErrorKind::InvalidData)) }
    }

    /// Opens the old content of a place, which is a file of the record and this user's own.
    pub(super) fn open_backup(&self, kept: &BackupCopy) -> io::Result<File> {
        if kept.name.is_empty() || !kept.name.bytes().all(|byte| byte.is_ascii_digit()) {
            return Err(io::ErrorKind::InvalidData.into());
        }
        own_file::open(&self.directory.join(&kept.name), u64::MAX)
    }

    fn save(&self) -> io::Result<()> {
        save_manifest(&self.directory, &self.manifest)
    }
}

/// Saves the manifest of a record, so that a crash leaves the old one or the new one.
pub(super) fn save_manifest(directory: &Path, manifest: &impl Serialize) -> io::Result<()> {
    let new = directory.join("record.json.new");
    let mut file = create_private(&new)?;
    file.write_all(&serde_json::to_vec(manifest)?)?;
    file.sync_all()?;
    std::fs::rename(new, directory.join(FILE_NAME))?;
    File::open(directory)?.sync_all()
}

fn create_private(path: &Path) -> io::Result<File> {
    let flags = own_file::safe_flags();
    let mut options = File::options();
    options.write(true).create(true).truncate(true).mode(0o600).custom_flags(flags).open(path)
}

impl RecordedState {
    fn read(root: &Dir, place: &str) -> io::Result<Self> {
        Self::from_file_state(root, place, &FileState::read(root, place)?)
    }

    pub(super) fn from_file_state(root: &Dir, place: &str, was: &FileState) -> io::Result<Self> {
        Ok(match was {
            FileState::Absent => Self::Nothing,
            FileState::Directory(_) => Self::plain_directory(),
            FileState::Link(to) => Self::Link { to: to.clone() },
            FileState::Special => Self::Special,
            FileState::File(_) => Self::File {
                digest: file_digest(&mut rooted_fs::open(root, place)?.0)?,
                kept: None,
            },
        })
    }

    /// Compares two states without their backups.
    pub(super) fn has_same_content(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::File { digest: one, .. }, Self::File { digest: other, .. }) => one == other,
            (Self::Directory { .. }, Self::Directory { .. }) => true,
            _ => self == other,
        }
    }

    pub(super) fn is_directory(&self) -> bool {
        matches!(self, Self::Directory { .. })
    }

    /// Returns a directory without known permissions.
    fn plain_directory() -> Self {
        Self::Directory { mode: None, owner: None }
    }

    /// Returns the permissions of a directory before the change.
    pub(super) fn directory_rights(&self) -> Option<FileRights> {
        match self {
            Self::Directory { mode, owner } => mode.map(|mode| FileRights { mode, owner: *owner }),
            Self::Nothing | Self::Link { .. } | Self::File { .. } | Self::Special => None,
        }
    }
}
