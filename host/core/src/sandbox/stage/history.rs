//! The undo history of a project: a directory of records.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use cap_std::fs::Dir;

use super::history_record::HistoryRecord;
use super::planted_repository::find_restored_part;
use super::record::{self, ChangeRecordFile, ChangeState};
use super::staged::StagedStep;
use crate::own_file;
use crate::policy::ComponentDigest;
use crate::private_dir::PrivateDirError;
use crate::sandbox::workspace::Workspace;
use cofferdam_confine::remove_directory;

/// The number of changes that are kept.
const MAX_RECORDS: usize = 20;
/// The bytes of old contents that are kept, not counting those of the newest change.
const MAX_BYTES: u64 = 128 << 20;
/// The bytes of a project's name in the name of its directory.
const MAX_NAME_LEN: usize = 100;
/// How long to wait for another process that holds the lock.
const LOCK_TIMEOUT: Duration = Duration::from_secs(5);

/// The undo history of one project.
#[derive(Debug)]
pub struct UndoHistory {
    directory: PathBuf,
    /// The directory of a temporary history.
    temporary: Option<tempfile::TempDir>,
}

/// A change that can be undone.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct UndoHistoryEntry {
    /// The id. Ids sort by time.
    pub id: String,
    /// The time of the change.
    pub time: SystemTime,
    /// The name of the tool that made the change.
    pub tool: String,
    /// The changed paths.
    pub paths: Vec<String>,
}

/// The outcome of an undo.
#[derive(Debug)]
pub enum UndoOutcome {
    /// The change was undone.
    Change {
        /// The undone change.
        entry: UndoHistoryEntry,
        /// Directories of the change that remain, because others have put files into them.
        remaining: Vec<String>,
    },
    /// Interrupted changes were found and rolled back first. Nothing else was undone.
    Interrupted(Vec<String>),
}

/// Why an operation on the history failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum HistoryError {
    /// The operating system reported an error.
    #[error("cannot use the undo history in {directory}: {source}")]
    Io {
        /// The directory of the history.
        directory: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
    /// Somebody else can have written what is kept.
    #[error(
        "cannot use the undo history: {} {reason}\n\
            hint: use `chown` and `chmod go-w` to make it yours, or remove it", directory.display()
    )]
    NotOwn {
        /// The directory.
        directory: PathBuf,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// Somebody else is changing files.
    #[error("another cofferdam process is changing files of this project")]
    Busy,
    /// The history has no change.
    #[error("there is no change to undo in this project")]
    Empty,
    /// The old contents of the newest change were not kept.
    #[error("nothing was undone: the newest change, by {tool} to {}, replaced or removed more than \
        undo keeps\n\
        hint: --force undoes the change before it", paths.join(", "))]
    Unkept {
        /// The tool that made the newest change.
        tool: String,
        /// The changed paths, at most [`MAX_NAMED`](UndoHistory::MAX_NAMED).
        paths: Vec<String>,
    },
    /// Files have changed since the change was made.
    #[error("nothing was undone, because these files have changed since: {}\n\
        hint: --force restores the old files; the later changes are lost", .0.join(", "))]
    ChangedSince(Vec<String>),
    /// Old contents cannot be restored.
    #[error("nothing was undone: {}", .0.join("; "))]
    Blocked(Vec<String>),
    /// Only a part of the change could be undone.
    #[error("undone only in part: {failures}; the old files are in {backup}")]
    Partial {
        /// The paths that failed, each with the reason.
        failures: String,
        /// The directory with the old contents.
        backup: PathBuf,
    },
}

impl UndoHistory {
    /// The number of paths that an error names.
    pub const MAX_NAMED: usize = 5;

    /// Returns the history of a project, in a directory below `folder`.
    pub fn for_workspace(folder: &Path, workspace: &Workspace) -> Self {
        let root = workspace.root();
        let name = root.file_name().unwrap_or_default().to_string_lossy();
        // For whoever looks into the folder; the rest tells two projects apart, and has to fit too.
        let name = &name[..name.floor_char_boundary(MAX_NAME_LEN)];
        let key = ComponentDigest::compute(root.as_os_str().as_encoded_bytes());
        Self { directory: folder.join(format!("{name}-{}", key.short())), temporary: None }
    }

    /// Creates a history below `parent` that is deleted when the value is dropped.
    pub(in crate::sandbox) fn temporary(parent: &Path) -> Result<Self, HistoryError> {
        let private = std::os::unix::fs::PermissionsExt::from_mode(0o700);
        let folder = tempfile::Builder::new()
            .prefix("cofferdam-undo-")
            .permissions(private)
            .tempdir_in(parent)
            .map_err(|source| HistoryError::Io { directory: parent.to_owned(), source })?;
        Ok(Self { directory: folder.path().join("history"), temporary: Some(folder) })
    }

    /// Keeps the directory of a temporary history.
    pub(super) fn keep(&mut self) {
        if let Some(folder) = &mut self.temporary {
            folder.disable_cleanup(true);
        }
    }

    /// Deletes the history, for a project that no longer exists.
    pub fn delete(&self) -> Result<(), HistoryError> {
        if !self.check_directories()? {
            return Ok(());
        }
        match remove_directory(&self.directory) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(self.io_error(error)),
            Ok(()) | Err(_) => Ok(()),
        }
    }

    /// Returns the changes that can be undone, the newest first.
    pub fn list(&self) -> Result<Vec<UndoHistoryEntry>, HistoryError> {
        Ok(self
            .records(&[ChangeState::Made])?
            .into_iter()
            .rev()
            .map(|record| record.to_entry())
            .collect())
    }

    /// Returns the changes whose old contents were too large to be kept, the newest first.
    pub fn unkept(&self) -> Result<Vec<UndoHistoryEntry>, HistoryError> {
        let records = self.records(&[ChangeState::Unkept])?.into_iter().rev();
        Ok(records.map(|record| record.to_entry()).collect())
    }

    /// Returns the changes that were made or undone only in part, each with the directory of its
    /// old contents, for the user to look at.
    pub fn abandoned(&self) -> Result<Vec<(UndoHistoryEntry, PathBuf)>, HistoryError> {
        let records = self.records(&[ChangeState::Abandoned])?.into_iter();
        Ok(records.map(|record| (record.to_entry(), record.directory().to_owned())).collect())
    }

    /// Returns the records that cannot be read, each with the error: records of another version of
    /// this program, and damaged ones. They cannot be undone or described.
    pub fn unreadable(&self) -> Result<Vec<(PathBuf, io::Error)>, HistoryError> {
        let folders = self
            .record_directories()?
            .into_iter()
            .filter(|folder| folder.join(record::FILE_NAME).symlink_metadata().is_ok());
        Ok(folders
            .filter_map(|folder| {
                HistoryRecord::read(folder.clone()).err().map(|error| (folder, error))
            })
            .collect())
    }

    /// Returns the records of the changes that can be undone, the oldest first.
    pub(super) fn made_records(&self) -> Result<Vec<HistoryRecord>, HistoryError> {
        self.records(&[ChangeState::Made])
    }

    /// Returns the records in these states, the oldest first.
    fn records(&self, states: &[ChangeState]) -> Result<Vec<HistoryRecord>, HistoryError> {
        let records = self
            .record_directories()?
            .into_iter()
            .filter_map(|folder| HistoryRecord::read(folder).ok());
        Ok(records.filter(|record| states.contains(&record.state())).collect())
    }

    /// Undoes the newest change and removes it from the history.
    ///
    /// Without `force`, the undo is refused if a file has changed since, if a file cannot be
    /// restored, or if the newest change cannot be undone at all. With `force`, everything that can
    /// be restored is, and such a change is passed over. If an interrupted change was
    /// found, only that one is rolled back.
    ///
    /// # Errors
    ///
    /// Returns an error if the history is locked or empty, if the undo was refused, or if it failed
    /// in part.
    pub fn undo(&self, workspace: &Workspace, force: bool) -> Result<UndoOutcome, HistoryError> {
        let root = workspace.dir();
        let _lock = self.lock()?;
        let interrupted = self.recover_locked(root);
        if !interrupted.is_empty() {
            return Ok(UndoOutcome::Interrupted(interrupted));
        }
        let mut records = self.records(&[ChangeState::Made, ChangeState::Unkept])?;
        let made = records.iter().rposition(|record| record.state() == ChangeState::Made);
        let unkept = records.split_off(made.map_or(0, |newest| newest + 1));
        if let (Some(newest), false) = (unkept.last(), force) {
            let UndoHistoryEntry { tool, mut paths, .. } = newest.to_entry();
            paths.truncate(Self::MAX_NAMED);
            return Err(HistoryError::Unkept { tool, paths });
        }
        for passed in &unkept {
            // It is tried again the next time.
            let _ = passed.delete();
        }
        let mut record = records.pop().ok_or(HistoryError::Empty)?;
        let entry = record.to_entry();
        if !force {
            let changed = record.changed_since(root);
            if !changed.is_empty() {
                return Err(HistoryError::ChangedSince(changed));
            }
        }
        let mut obstacles = record.obstacles(root, force);
        if !force {
            let part = find_restored_part(root, &entry.paths);
            let part = part.map_err(|source| self.io_error(source))?;
            obstacles.extend(part.map(|path| {
                format!(
                    "`{path}` would be a part of a git repository, and git runs programs that the \
                        files of a repository name\nhint: look at the directory; --force undoes \
                        the change"
                )
            }));
        }
        if !obstacles.is_empty() && !force {
            return Err(HistoryError::Blocked(obstacles));
        }
        let undone =
            record.set_state(ChangeState::Pending).and_then(|()| record.roll_back(root, force));
        let back = undone.map_err(|source| self.io_error(source))?;
        for earlier in &mut records {
            // Without this, undoing the earlier change takes `--force`.
            let _ = earlier.remember_restored(root, &entry.paths);
        }
        if back.failed.is_empty() {
            return Ok(UndoOutcome::Change { entry, remaining: back.remaining });
        }
        // By force everything was tried; otherwise the rest can be, by the same words.
        record
            .set_state(if force { ChangeState::Abandoned } else { ChangeState::Made })
            .map_err(|source| self.io_error(source))?;
        Err(HistoryError::Partial {
            failures: back.describe_failures(),
            backup: record.directory().to_owned(),
        })
    }

    /// Rolls back changes that a crash interrupted. Returns a description of each.
    pub fn recover(&self, workspace: &Workspace) -> Result<Vec<String>, HistoryError> {
        if !self.check_directories()? {
            return Ok(Vec::new());
        }
        let _lock = self.lock()?;
        Ok(self.recover_locked(workspace.dir()))
    }

    /// Rolls back each interrupted change once. A file that cannot be restored now might have newer
    /// work later.
    fn recover_locked(&self, root: &Dir) -> Vec<String> {
        self.remove_unstarted();
        let taken_back =
            self.records(&[ChangeState::Pending]).unwrap_or_default().into_iter().rev().map(
                |mut record| {
                    let UndoHistoryEntry { paths, tool, .. } = record.to_entry();
                    let words =
                        format!("a change by {tool} to {} was interrupted", paths.join(", "));
                    let why = match record.roll_back(root, false) {
                        Ok(back) if back.failed.is_empty() => {
                            return format!("{words} and has been undone");
                        }
                        Ok(back) => back.describe_failures(),
                        Err(error) => error.to_string(),
                    };
                    // It may be that not even this can be written; then it is tried again.
                    let _ = record.set_state(ChangeState::Abandoned);
                    format!(
                        "{words} and was undone only in part ({why}); the old files are in {}",
                        record.directory().display()
                    )
                },
            );
        taken_back.collect()
    }

    /// Removes the backups of changes that never began. Only the holder of the lock knows that they
    /// will not begin.
    fn remove_unstarted(&self) {
        for folder in self.record_directories().unwrap_or_default() {
            if folder
                .join(record::FILE_NAME)
                .symlink_metadata()
                .is_err_and(|error| error.kind() == io::ErrorKind::NotFound)
            {
                // It is tried again the next time.
                let _ = remove_directory(&folder);
            }
        }
    }

    /// Locks the history for a change, against all processes, and rolls back interrupted changes.
    /// Returns a description of each.
    pub(super) fn lock_for_change(
        &self,
        root: &Dir,
    ) -> Result<(LockedHistory<'_>, Vec<String>), HistoryError> {
        let lock = self.lock()?;
        let interrupted = self.recover_locked(root);
        Ok((LockedHistory { history: self, _lock: lock }, interrupted))
    }

    /// Returns the directories of all records, the oldest first.
    fn record_directories(&self) -> Result<Vec<PathBuf>, HistoryError> {
        if !self.check_directories()? {
            return Ok(Vec::new());
        }
        let entries = match std::fs::read_dir(&self.directory) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(self.io_error(error)),
        };
        let is_numbered = |entry: &std::fs::DirEntry| {
            entry.file_name().to_str().is_some_and(|name| name.parse::<u128>().is_ok())
        };
        // A link is one that cannot be read.
        let is_directory = |entry: &std::fs::DirEntry| {
            entry.file_type().is_ok_and(|kind| kind.is_dir() || kind.is_symlink())
        };
        let folders = entries.flatten().filter(|entry| is_numbered(entry) && is_directory(entry));
        let mut folders: Vec<PathBuf> = folders.map(|entry| entry.path()).collect();
        folders.sort_unstable();
        Ok(folders)
    }

    fn lock(&self) -> Result<File, HistoryError> {
        use std::os::unix::fs::DirBuilderExt as _;
        std::fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&self.directory)
            .map_err(|source| self.io_error(source))?;
        self.check_directories()?;
        let lock = own_file::open_lock(&self.directory.join("lock"));
        let lock = lock.map_err(|source| self.io_error(source))?;
        let began = Instant::now();
        loop {
            match lock.try_lock() {
                Ok(()) => return Ok(lock),
                Err(std::fs::TryLockError::WouldBlock) if began.elapsed() < LOCK_TIMEOUT => {
                    std::thread::sleep(Duration::from_millis(20))
                }
                Err(std::fs::TryLockError::WouldBlock) => return Err(HistoryError::Busy),
                Err(std::fs::TryLockError::Error(source)) => return Err(self.io_error(source)),
            }
        }
    }

    /// Checks that nobody else can have put anything there. Returns whether it is there.
    fn check_directories(&self) -> Result<bool, HistoryError> {
        for directory in self.directory.parent().into_iter().chain([&*self.directory]) {
            match own_file::find_dir(directory) {
                Ok(true) => {}
                Ok(false) => return Ok(false),
                Err(PrivateDirError::Io(source)) => return Err(self.io_error(source)),
                Err(PrivateDirError::NotPrivate(reason)) => {
                    return Err(HistoryError::NotOwn { directory: directory.to_owned(), reason });
                }
            }
        }
        Ok(true)
    }

    fn io_error(&self, source: io::Error) -> HistoryError {
        HistoryError::Io { directory: self.directory.clone(), source }
    }
}

/// A history that is locked for a change.
pub(super) struct LockedHistory<'a> {
    history: &'a UndoHistory,
    _lock: File,
}

impl LockedHistory<'_> {
    /// Begins a change by backing up the old contents.
    pub(super) fn begin_record(
        &self,
        tool: &str,
        root: &Dir,
        steps: &[StagedStep],
    ) -> Result<ChangeRecordFile, HistoryError> {
        let (folder, time) = self.next_record()?;
        ChangeRecordFile::create(folder.clone(), time, tool, root, steps).map_err(|source| {
            let _ = std::fs::remove_dir_all(&folder);
            self.history.io_error(source)
        })
    }

    /// Returns the directory of the next record, and the time in seconds since 1970.
    pub(super) fn next_record(&self) -> Result<(PathBuf, u64), HistoryError> {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let newest = self
            .history
            .record_directories()?
            .pop()
            .and_then(|folder| folder.file_name()?.to_str()?.parse::<u128>().ok());
        // A clock that was set back does not change the order.
        let number = now.as_micros().max(newest.unwrap_or_default() + 1);
        Ok((self.history.directory.join(format!("{number:020}")), now.as_secs()))
    }

    /// Removes the oldest changes. Abandoned ones are kept for the user.
    pub(super) fn trim(&self) {
        let states = [ChangeState::Made, ChangeState::Unkept];
        let made = self.history.records(&states).unwrap_or_default();
        let mut bytes = 0u64;
        for (number, record) in made.iter().rev().enumerate() {
            bytes = bytes.saturating_add(record.kept_bytes());
            if number > 0 && (number >= MAX_RECORDS || bytes > MAX_BYTES) {
                // It is tried again the next time.
                let _ = record.delete();
            }
        }
    }
}
