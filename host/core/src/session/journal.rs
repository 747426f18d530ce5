//! The file of a session, with functions to write and read it.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, BufReader, Read as _, Write as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use super::fold::{SavedSession, UnreadableJournal};
use super::record::{JournalHeader, JournalRecord};
use super::{SessionError, SessionId};
use crate::own_file;
use crate::private_dir::{self, PrivateDirError};

/// The largest session log that is read, in bytes.
///
/// A long session with images has some tens of megabytes.
const MAX_JOURNAL_BYTES: u64 = if cfg!(test) { 1 << 20 } else { 512 << 20 };

/// A function that removes secrets from a text.
pub type RedactSecrets = Box<dyn Fn(&str) -> String + Send + Sync>;

/// A session log that this process writes.
///
/// The file is locked until the journal is dropped, so no other process can write it.
pub struct SessionJournal {
    id: SessionId,
    file: LockedFile,
    outputs_directory: PathBuf,
    /// The length of the complete lines, in bytes.
    complete_bytes: u64,
    redact: RedactSecrets,
}

/// A session file that is locked until it is dropped.
///
/// No child process inherits the descriptor. The file is unlocked explicitly, so that a child that
/// is just being started cannot keep the lock.
pub(super) struct LockedFile(File);

impl Drop for LockedFile {
    fn drop(&mut self) {
        // Closing the file would be enough, except for such a child process.
        let _ = self.0.unlock();
    }
}

impl SessionJournal {
    /// Creates a session in a new file.
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
            outputs_directory: outputs_directory(path),
            complete_bytes: 0,
            redact,
        };
        journal.write_header(header).map_err(failed())?;
        Ok(journal)
    }

    /// Opens a session to continue it.
    ///
    /// A torn last line is removed from the file before anything is appended. A turn that a
    /// crash left open is closed in the file as in the transcript, so that new records can follow
    ///
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
        if saved.header.as_ref().is_some_and(|header| header.workspace != workspace) {
            return Err(SessionError::OtherWorkspace { path: path.to_owned() });
        }
        if file.0.metadata().map_err(failed())?.len() > saved.complete_bytes {
            file.0.set_len(saved.complete_bytes).map_err(failed())?;
        }
        let mut journal = Self {
            id: id.clone(),
            file,
            outputs_directory: outputs_directory(path),
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

    /// Returns the ID of the session.
    pub fn id(&self) -> &SessionId {
        &self.id
    }

    /// Returns the directory for outputs that are too long for the session log.
    ///
    /// The directory may not exist yet.
    pub fn outputs_directory(&self) -> &Path {
        &self.outputs_directory
    }

    fn write_header(&mut self, header: &JournalHeader) -> io::Result<()> {
        let line = serde_json::to_string(header)?;
        self.write_line(&format!("{line}\n"))?;
        self.sync()
    }

    /// Appends a record.
    ///
    /// If writing fails, the part that was written is removed if possible.
    pub(super) fn append(&mut self, record: &JournalRecord) -> io::Result<()> {
        let line = record.to_line(&*self.redact)?;
        self.write_line(&line)
    }

    /// Waits until everything that was appended is on the disk.
    pub(super) fn sync(&self) -> io::Result<()> {
        self.file.0.sync_data()
    }

    /// Writes a line with one system call, unless the disk is full.
    ///
    /// If only a part could be written, that part is removed again.
    fn write_line(&mut self, line: &str) -> io::Result<()> {
        let written = self.file.0.write_all(line.as_bytes());
        match written {
            Ok(()) => self.complete_bytes += line.len() as u64,
            // If this fails too, the part is a torn line, which is ignored when reading.
            Err(_) => {
                let _ = self.file.0.set_len(self.complete_bytes);
            }
        }
        written
    }

    /// Replaces the file in a test.
    #[cfg(test)]
    pub(super) fn replace_file(&mut self, file: File) {
        self.file = LockedFile(file);
    }
}

/// Returns the directory for the complete outputs of a session, next to its file.
fn outputs_directory(path: &Path) -> PathBuf {
    path.with_extension("")
}

/// Deletes a session that no process writes, with its outputs.
///
/// The outputs are deleted first. If that fails, the session can still be found.
pub(super) fn delete_files(path: &Path, id: &SessionId) -> Result<(), SessionError> {
    let file = OpenOptions::new().append(true).custom_flags(own_file::safe_flags()).open(path);
    let file = file.map_err(SessionError::io(path))?;
    let _locked = lock_file(file, path, id)?;
    match std::fs::remove_dir_all(outputs_directory(path)) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            return Err(SessionError::io(&outputs_directory(path))(error));
        }
        Ok(()) | Err(_) => {}
    }
    std::fs::remove_file(path).map_err(SessionError::io(path))
}

/// Reads a session that another process may be writing.
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
    if size > MAX_JOURNAL_BYTES {
        return Err(SessionError::TooLong { path: path.to_owned(), size, most: MAX_JOURNAL_BYTES });
    }
    // The file may grow while it is read, so the limit is applied again.
    SavedSession::read_from(BufReader::new(file.take(MAX_JOURNAL_BYTES))).map_err(|unreadable| {
        match unreadable {
            UnreadableJournal::Io(kind) => SessionError::io(path)(kind.into()),
            UnreadableJournal::NewerVersion { version } => {
                SessionError::NewerVersion { path: path.to_owned(), version }
            }
            UnreadableJournal::Damaged { line, reason } => {
                SessionError::Damaged { path: path.to_owned(), line, reason }
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
    // The previous owner of the lock may have deleted the file. Anything written to it now would be
    // lost.
    let file = LockedFile(file);
    match file.0.metadata().map_err(SessionError::io(path))?.nlink() {
        0 => Err(SessionError::Deleted(id.clone())),
        _ => Ok(file),
    }
}
