//! The last changes of a project, to be had back: a folder of [`Record`]s.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use cap_std::fs::Dir;

use super::record::Record;
use super::staged::Step;
use crate::sandbox::digest::Digest;
use crate::sandbox::workspace::Workspace;

/// Changes that are kept.
const MOST_RECORDS: usize = 20;
/// Bytes of old contents that are kept, apart from those of the last change.
const MOST_BYTES: u64 = 128 << 20;
/// How long another process may be at it.
const PATIENCE: Duration = Duration::from_secs(5);

/// The changes of one project.
#[derive(Debug)]
pub struct History {
    folder: PathBuf,
    /// For a history that nobody will ask for.
    _temporary: Option<tempfile::TempDir>,
}

/// A change that can be taken back.
#[derive(Clone, Debug)]
pub struct Entry {
    /// In the order of time.
    pub id: String,
    /// When it was made.
    pub time: SystemTime,
    /// By which tool.
    pub tool: String,
    /// What it changed.
    pub paths: Vec<String>,
}

/// What is wrong with the history.
#[derive(Debug, thiserror::Error)]
pub enum HistoryError {
    /// The system refused.
    #[error("cannot keep what was there before in {folder}: {source}")]
    Io {
        /// Where.
        folder: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// Somebody else is changing files.
    #[error("another cofferdam is changing files of this project")]
    Busy,
    /// No change is kept.
    #[error("there is no change to undo in this project")]
    Empty,
    /// Files are not what the change left.
    #[error("changed since then, so nothing was undone: {}. With --force what was there before is put back all the same, and these changes are lost", .0.join(", "))]
    ChangedSince(Vec<String>),
}

impl History {
    /// That of the project with this root, below a folder for all projects.
    pub fn of(folder: &Path, workspace: &Workspace) -> Self {
        let root = workspace.root();
        let name = root.file_name().unwrap_or_default().to_string_lossy();
        let key = Digest::of(root.as_os_str().as_encoded_bytes());
        Self { folder: folder.join(format!("{name}-{}", key.short())), _temporary: None }
    }

    /// One that lasts as long as this value.
    pub(super) fn temporary() -> Result<Self, HistoryError> {
        let folder = tempfile::Builder::new().prefix("cofferdam-undo-").tempdir();
        let folder = folder.map_err(|source| HistoryError::Io { folder: std::env::temp_dir(), source })?;
        Ok(Self { folder: folder.path().join("history"), _temporary: Some(folder) })
    }

    /// The changes that are kept, the newest first.
    pub fn list(&self) -> Result<Vec<Entry>, HistoryError> {
        let entry = |record: Record| Entry {
            id: record.folder().file_name().unwrap_or_default().to_string_lossy().into_owned(),
            time: UNIX_EPOCH + Duration::from_secs(record.written.time),
            paths: record.written.places.iter().map(|place| place.place.clone()).collect(),
            tool: record.written.tool,
        };
        let records = self.folders()?.into_iter().rev().filter_map(|folder| Record::read(folder).ok());
        Ok(records.filter(|record| !record.is_pending()).map(entry).collect())
    }

    /// Takes the newest change back and forgets it. Refused if a file is not what the change left there, unless `force`.
    pub fn undo(&self, workspace: &Workspace, force: bool) -> Result<Entry, HistoryError> {
        let _lock = self.lock()?;
        self.recover_locked(workspace.dir());
        let entry = self.list()?.into_iter().next().ok_or(HistoryError::Empty)?;
        let mut record = Record::read(self.folder.join(&entry.id)).map_err(|source| self.problem(source))?;
        let changed: Vec<String> = record.changed_since(workspace.dir()).into_iter().map(str::to_owned).collect();
        if !changed.is_empty() && !force {
            return Err(HistoryError::ChangedSince(changed));
        }
        let undone = record.reopen().and_then(|()| record.put_back(workspace.dir(), force));
        undone.map(|()| entry).map_err(|source| self.problem(source))
    }

    /// Takes back what a crash has left half done; tells which changes those were.
    pub fn recover(&self, workspace: &Workspace) -> Result<Vec<String>, HistoryError> {
        if !self.folder.is_dir() {
            return Ok(Vec::new());
        }
        let _lock = self.lock()?;
        Ok(self.recover_locked(workspace.dir()))
    }

    fn recover_locked(&self, root: &Dir) -> Vec<String> {
        let folders = self.folders().unwrap_or_default();
        let records = folders.into_iter().filter_map(|folder| Record::read(folder).ok()).filter(Record::is_pending);
        let taken_back = records.map(|record| {
            let paths: Vec<&str> = record.written.places.iter().map(|place| place.place.as_str()).collect();
            let words = format!("a change by {} to {}", record.written.tool, paths.join(", "));
            match record.roll_back(root) {
                Ok(()) => format!("{words} was interrupted and has been taken back"),
                Err(error) => format!(
                    "{words} was interrupted and cannot be taken back ({error}); what was there is in {}",
                    record.folder().display()
                ),
            }
        });
        taken_back.collect()
    }

    /// Begins a change: what was there is kept from now on. One at a time, whatever the process.
    pub(super) fn begin(&self, tool: &str, root: &Dir, steps: &[Step]) -> Result<Begun, HistoryError> {
        let lock = self.lock()?;
        let _ = self.recover_locked(root);
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let newest = self.folders()?.pop().and_then(|folder| folder.file_name()?.to_str()?.parse::<u128>().ok()).unwrap_or_default();
        // A clock that was set back does not change the order.
        let id = format!("{:020}", now.as_micros().max(newest + 1));
        let record = Record::begin(self.folder.join(&id), now.as_secs(), tool, root, steps).map_err(|source| {
            let _ = std::fs::remove_dir_all(self.folder.join(&id));
            self.problem(source)
        })?;
        Ok(Begun { record, _lock: lock })
    }

    /// Forgets the oldest changes.
    pub(super) fn trim(&self) {
        let mut bytes = 0u64;
        for (number, folder) in self.folders().unwrap_or_default().into_iter().rev().enumerate() {
            let sizes = std::fs::read_dir(&folder).into_iter().flatten().flatten().filter_map(|file| file.metadata().ok());
            bytes = sizes.fold(bytes, |sum, metadata| sum.saturating_add(metadata.len()));
            if number > 0 && (number >= MOST_RECORDS || bytes > MOST_BYTES) {
                // It is tried again the next time.
                let _ = std::fs::remove_dir_all(folder);
            }
        }
    }

    /// The folders of all records, the oldest first.
    fn folders(&self) -> Result<Vec<PathBuf>, HistoryError> {
        let entries = match std::fs::read_dir(&self.folder) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(self.problem(error)),
        };
        let mut folders: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).filter(|path| path.is_dir()).collect();
        folders.sort_unstable();
        Ok(folders)
    }

    fn lock(&self) -> Result<File, HistoryError> {
        use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
        let open = || {
            std::fs::DirBuilder::new().recursive(true).mode(0o700).create(&self.folder)?;
            File::options().write(true).create(true).truncate(false).mode(0o600).open(self.folder.join("lock"))
        };
        let lock = open().map_err(|source| self.problem(source))?;
        let began = Instant::now();
        loop {
            match lock.try_lock() {
                Ok(()) => return Ok(lock),
                Err(std::fs::TryLockError::WouldBlock) if began.elapsed() < PATIENCE => std::thread::sleep(Duration::from_millis(20)),
                Err(std::fs::TryLockError::WouldBlock) => return Err(HistoryError::Busy),
                Err(std::fs::TryLockError::Error(source)) => return Err(self.problem(source)),
            }
        }
    }

    fn problem(&self, source: io::Error) -> HistoryError {
        HistoryError::Io { folder: self.folder.clone(), source }
    }
}

/// A record, and the lock of its history.
pub(super) struct Begun {
    record: Record,
    _lock: File,
}

impl std::ops::Deref for Begun {
    type Target = Record;

    fn deref(&self) -> &Record {
        &self.record
    }
}

impl std::ops::DerefMut for Begun {
    fn deref_mut(&mut self) -> &mut Record {
        &mut self.record
    }
}
