//! A record of the undo history: of the staged changes of a tool, or of the changes of a command.

use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, UNIX_EPOCH};

use cap_std::fs::Dir;
use serde::Deserialize;

use super::history::UndoHistoryEntry;
use super::moves::{self, MoveRecord};
use super::record::{self, ChangeRecordFile, ChangeState};
use super::restore::{RestoreReport, UndoScope};
use crate::own_file;

/// The largest `record.json`, in bytes.
const MAX_RECORD_SIZE: u64 = 128 << 20;

/// A record of the undo history.
#[derive(Debug)]
pub(super) enum HistoryRecord {
    /// Old contents were copied before the change.
    Copies(ChangeRecordFile),
    /// Old entries were moved away by the change.
    Moves(MoveRecord),
}

/// What the formats of all records have in common.
#[derive(Deserialize)]
struct RecordHeader {
    version: u32,
}

impl HistoryRecord {
    /// Reads a record.
    ///
    /// # Errors
    /// The record has an unknown version, or somebody else can have written it.
    pub(super) fn read(directory: PathBuf) -> io::Result<Self> {
        if !own_file::find_dir_io(&directory)? {
            return Err(io::ErrorKind::NotFound.into());
        }
        let text = own_file::read(&directory.join(record::FILE_NAME), MAX_RECORD_SIZE)?;
        let header: RecordHeader = serde_json::from_slice(&text)?;
        match header.version {
            record::FORMAT_VERSION => ChangeRecordFile::read(directory).map(Self::Copies),
            moves::FORMAT_VERSION => MoveRecord::read(directory).map(Self::Moves),
            other => Err(io::Error::new(
                io::ErrorKind::Unsupported,
                format!(
                    "unsupported format {other}; this version of cofferdam supports the formats \
                        {} and {}",
                    record::FORMAT_VERSION,
                    moves::FORMAT_VERSION
                ),
            )),
        }
    }

    pub(super) fn directory(&self) -> &Path {
        match self {
            Self::Copies(record) => record.directory(),
            Self::Moves(record) => record.directory(),
        }
    }

    pub(super) fn state(&self) -> ChangeState {
        match self {
            Self::Copies(record) => record.state(),
            Self::Moves(record) => record.state(),
        }
    }

    /// Saves the progress of the change.
    pub(super) fn set_state(&mut self, state: ChangeState) -> io::Result<()> {
        match self {
            Self::Copies(record) => record.set_state(state),
            Self::Moves(record) => record.set_state(state),
        }
    }

    /// Deletes the record with the old contents.
    pub(super) fn delete(&self) -> io::Result<()> {
        match self {
            Self::Copies(record) => record.delete(),
            Self::Moves(record) => record.delete(),
        }
    }

    /// Restores the state before the change and deletes the record. Newer work stays, and its paths
    /// fail; with `force` it is lost.
    pub(super) fn roll_back(&mut self, root: &Dir, force: bool) -> io::Result<RestoreReport> {
        match self {
            Self::Copies(record) => {
                let scope = if force { UndoScope::All } else { UndoScope::Unmodified };
                record.roll_back(root, scope)
            }
            Self::Moves(record) => record.roll_back(root, force),
        }
    }

    /// Returns the paths whose state differs from the one that the change left.
    pub(super) fn changed_since(&self, root: &Dir) -> Vec<String> {
        match self {
            Self::Copies(record) => {
                record.changed_since(root).into_iter().map(str::to_owned).collect()
            }
            Self::Moves(record) => record.changed_since(root),
        }
    }

    /// Returns what prevents an undo, so that it is known before anything is touched.
    pub(super) fn obstacles(&self, root: &Dir, force: bool) -> Vec<String> {
        match self {
            Self::Copies(record) => record.obstacles(root, force),
            Self::Moves(record) => record.obstacles(root, force),
        }
    }

    /// Remembers that an undo restored these paths; see [`MoveRecord::remember_restored`].
    pub(super) fn remember_restored(&mut self, root: &Dir, paths: &[String]) -> io::Result<()> {
        match self {
            // Such a record compares contents, not times.
            Self::Copies(_) => Ok(()),
            Self::Moves(record) => record.remember_restored(root, paths),
        }
    }

    /// Returns the size of the old contents in bytes.
    pub(super) fn kept_bytes(&self) -> u64 {
        match self {
            Self::Copies(record) => {
                let files = std::fs::read_dir(record.directory()).into_iter().flatten().flatten();
                let sizes = files.filter_map(|file| file.metadata().ok());
                sizes.fold(0, |sum, metadata| sum.saturating_add(metadata.len()))
            }
            Self::Moves(record) => record.manifest.kept_bytes,
        }
    }

    /// Describes the change for the user.
    pub(super) fn to_entry(&self) -> UndoHistoryEntry {
        let (time, tool, paths) = match self {
            Self::Copies(record) => {
                let manifest = &record.manifest;
                let paths = manifest.places.iter().map(|place| place.place.clone()).collect();
                (manifest.time, &manifest.tool, paths)
            }
            Self::Moves(record) => {
                let manifest = &record.manifest;
                let paths = manifest.moves.iter().map(|planned| planned.path.clone()).collect();
                (manifest.time, &manifest.tool, paths)
            }
        };
        UndoHistoryEntry {
            id: self.directory().file_name().unwrap_or_default().to_string_lossy().into_owned(),
            time: UNIX_EPOCH + Duration::from_secs(time),
            paths,
            tool: tool.clone(),
        }
    }
}
