//! The file of a session, and writing to it.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, BufReader, Read as _, Write as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use super::fold::{SavedSession, UnreadableJournal};
use super::record::{JournalHeader, JournalRecord};
use super::{SessionError, SessionId};
use crate::own_file;
use crate::private_dir::{self, PrivateDirError};

/// The longest journal that is read. A long session with pictures has some tens of megabytes.
const LONGEST: u64 = if cfg!(test) { 1 << 20 } else { 512 << 20 };

/// Takes the secrets out of a text.
pub type RedactSecrets = Box<dyn Fn(&str) -> String + Send + Sync>;

/// A session that this process writes, and no other: the file is locked while this lives.
pub struct SessionJournal {
    id: SessionId,
    file: LockedFile,
    outputs_directory: PathBuf,
    /// The length of what was written whole.
    complete_bytes: u64,
    redact: RedactSecrets,
}

/// A file with its lock. No child process inherits the descriptor, and the lock is given back by
/// name, so that one which is just being started does not hold it either.
pub(super) struct LockedFile(File);

impl Drop for LockedFile {
    fn drop(&mut self) {
        // Closing the file would do, but for such a child.
        drop(self.0.unlock());
    }
}

impl SessionJournal {
    /// Begins a session in a new file.
    pub(super) fn create(
        path: &Path,
        header: &JournalHeader,
        redact: RedactSecrets,
    ) -> Result<Self, SessionError> {
        let failed = || SessionError::io(path);
        let file = OpenOptions::new()
            .read(true)
            .append(true)
            .create_new(true)
            .mode(0o600)
            .open(path)
            .map_err(failed())?;
        let file = lock_file(file, path, &header.id)?;
        let mut journal = Self {
            id: header.id.clone(),
            file,
            outputs_directory: outputs(path),
            complete_bytes: 0,
            redact,
        };
        journal.write_header(header).map_err(failed())?;
        Ok(journal)
    }

    /// Goes on with a session. A torn last line is taken off the file before anything is added to
    /// it, and a turn that a crash left open is closed in it as it is in the transcript, so
    /// that whatever comes next can follow.
    pub(super) fn open(
        path: &Path,
        id: &SessionId,
        workspace: &str,
        redact: RedactSecrets,
    ) -> Result<(Self, SavedSession), SessionError> {
        let failed = || SessionError::io(path);
        let file = OpenOptions::new()
            .read(true)
            .append(true)
            .custom_flags(own_file::safe_flags())
            .open(path)
            .map_err(failed())?;
        let file = lock_file(file, path, id)?;
        check_own(&file.0, path)?;
        let saved = read_file(&file.0, path)?;
        if file.0.metadata().map_err(failed())?.len() > saved.complete_bytes {
            file.0.set_len(saved.complete_bytes).map_err(failed())?;
        }
        let mut journal = Self {
            id: id.clone(),
            file,
            outputs_directory: outputs(path),
            complete_bytes: saved.complete_bytes,
            redact,
        };
        if saved.header.is_none() {
            journal
                .write_header(&JournalHeader::new(id.clone(), workspace.to_owned()))
                .map_err(failed())?;
        }
        if let Some(record) = &saved.closing_record {
            journal.append(record).and_then(|()| journal.sync()).map_err(failed())?;
        }
        Ok((journal, saved))
    }

    /// The session's name.
    pub fn id(&self) -> &SessionId {
        &self.id
    }

    /// The folder for outputs of its calls that are too long for it, which need not be there yet.
    pub fn outputs_directory(&self) -> &Path {
        &self.outputs_directory
    }

    fn write_header(&mut self, header: &JournalHeader) -> io::Result<()> {
        let line = serde_json::to_string(header)?;
        self.write_line(&format!("{line}\n"))?;
        self.sync()
    }

    /// Adds a record. A record that fails leaves no trace, as far as that can be had.
    pub(super) fn append(&mut self, record: &JournalRecord) -> io::Result<()> {
        let line = record.to_line(&*self.redact)?;
        self.write_line(&line)
    }

    /// Returns once everything that was added is on the disk.
    pub(super) fn sync(&self) -> io::Result<()> {
        self.file.0.sync_data()
    }

    /// One call of `write` for a line, unless the disk is full in the middle of it: then the part
    /// is taken back.
    fn write_line(&mut self, line: &str) -> io::Result<()> {
        let written = self.file.0.write_all(line.as_bytes());
        match written {
            Ok(()) => self.complete_bytes += line.len() as u64,
            // Should this fail too, the part is a torn line, and reading passes over it.
            Err(_) => drop(self.file.0.set_len(self.complete_bytes)),
        }
        written
    }

    /// In place of the file, for a test.
    #[cfg(test)]
    pub(super) fn replace_file(&mut self, file: File) {
        self.file = LockedFile(file);
    }
}

/// Where the whole outputs of a session are: in a folder of its name, beside it.
fn outputs(path: &Path) -> PathBuf {
    path.with_extension("")
}

/// Deletes a session that nobody writes, with its outputs; those first, so that what could not be
/// deleted can still be found.
pub(super) fn delete_files(path: &Path, id: &SessionId) -> Result<(), SessionError> {
    let file = OpenOptions::new().append(true).custom_flags(own_file::safe_flags()).open(path);
    let file = file.map_err(SessionError::io(path))?;
    let _locked = lock_file(file, path, id)?;
    match std::fs::remove_dir_all(outputs(path)) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            return Err(SessionError::io(&outputs(path))(error));
        }
        Ok(()) | Err(_) => {}
    }
    std::fs::remove_file(path).map_err(SessionError::io(path))
}

/// Reads a session, which may be written meanwhile.
pub(super) fn load(path: &Path) -> Result<SavedSession, SessionError> {
    let file = OpenOptions::new().read(true).custom_flags(own_file::safe_flags()).open(path);
    let file = file.map_err(SessionError::io(path))?;
    check_own(&file, path)?;
    read_file(&file, path)
}

/// Checks that nobody else can have written a session.
fn check_own(file: &File, path: &Path) -> Result<(), SessionError> {
    let metadata = file.metadata().map_err(SessionError::io(path))?;
    private_dir::check_file(&metadata).map_err(|problem| match problem {
        PrivateDirError::Io(error) => SessionError::io(path)(error),
        PrivateDirError::NotPrivate(problem) => {
            SessionError::NotTrusted { path: path.to_owned(), problem }
        }
    })
}

fn read_file(file: &File, path: &Path) -> Result<SavedSession, SessionError> {
    let size = file.metadata().map_err(SessionError::io(path))?.len();
    if size > LONGEST {
        return Err(SessionError::TooLong { path: path.to_owned(), size, most: LONGEST });
    }
    // It may be written meanwhile, but not without end.
    SavedSession::read_from(BufReader::new(file.take(LONGEST))).map_err(|unreadable| {
        match unreadable {
            UnreadableJournal::Io(kind) => SessionError::io(path)(kind.into()),
            UnreadableJournal::NewerVersion { version } => {
                SessionError::NewerVersion { path: path.to_owned(), version }
            }
            UnreadableJournal::Damaged { line, reason: problem } => {
                SessionError::Damaged { path: path.to_owned(), line, reason: problem }
            }
        }
    })
}

pub(super) fn lock_file(
    file: File,
    path: &Path,
    id: &SessionId,
) -> Result<LockedFile, SessionError> {
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => return Err(SessionError::InUse(id.clone())),
        Err(TryLockError::Error(error)) => return Err(SessionError::io(path)(error)),
    }
    // Whoever had the lock before may have deleted the file; what is written to it now would be
    // nowhere.
    let file = LockedFile(file);
    match file.0.metadata().map_err(SessionError::io(path))?.nlink() {
        0 => Err(SessionError::Deleted(id.clone())),
        _ => Ok(file),
    }
}
