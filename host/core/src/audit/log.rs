//! The file of a log, and appending to it.
//!
//! A log belongs to one run of the program. Its file is created new, and nothing opens it for
//! writing again. Two processes therefore never write the same log, and a line that a crash cut off
//! is always the last line. Readers skip it.
//!
//! Starting a log does not wait for the disk. A record that must be on disk before something
//! happens is synced together with all lines before it. The remaining lines are synced when the run
//! ends.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use super::chain::ChainEnd;
use super::head::AuditHeadFile;
use super::record::{JsonFields, SyncPolicy};

/// The names of the files of a log until they have their content.
const NEW_NAMES: [&str; 2] = ["log.new", "head.new"];

/// The paths of the two files of a log and of their directory.
pub(super) struct AuditLogFiles {
    pub(super) log: PathBuf,
    pub(super) head: PathBuf,
    pub(super) directory: PathBuf,
}

/// A log that this process writes, which a file lock shows to other processes.
pub(super) struct AuditLogWriter {
    file: File,
    head: AuditHeadFile,
    directory: PathBuf,
    end: ChainEnd,
    /// The number of lines that the head covers.
    head_lines: u64,
    /// The length of the complete lines, in bytes.
    complete_bytes: u64,
    /// Whether the directory entries of the files are on disk.
    directory_synced: bool,
    /// Whether a partly written line could not be removed.
    ///
    /// A line written after it would be read as its rest, so the log accepts no more records.
    has_torn_line: bool,
}

/// Renames a file, unless the new name exists.
fn rename_new(from: &Path, to: &Path) -> io::Result<()> {
    use rustix::fs::{CWD, RenameFlags, renameat_with};
    use rustix::io::Errno;
    match renameat_with(CWD, from, CWD, to, RenameFlags::NOREPLACE) {
        // The file system cannot do it in one step.
        Err(Errno::INVAL | Errno::NOSYS | Errno::NOTSUP) => {
            if to.symlink_metadata().is_ok() {
                return Err(io::ErrorKind::AlreadyExists.into());
            }
            fs::rename(from, to)
        }
        renamed => Ok(renamed?),
    }
}

impl AuditLogWriter {
    /// Creates a log with this first record. The caller holds the lock of starts.
    ///
    /// Both files get their names when they have their content: a process that is killed here
    /// leaves no log, or a log with its first record. That record needs no head, because nothing
    /// has happened yet that must be on record.
    pub(super) fn create(files: AuditLogFiles, first: JsonFields) -> io::Result<Self> {
        let AuditLogFiles { log: path, head: head_path, directory } = files;
        let [new_log, new_head] = NEW_NAMES.map(|name| directory.join(name));
        for left in [&new_log, &new_head] {
            // Of a process that was killed.
            let _ = fs::remove_file(left);
        }
        let head = AuditHeadFile::create(&new_head)?;
        let file = OpenOptions::new().append(true).create_new(true).mode(0o600).open(&new_log)?;
        let mut log = Self {
            file,
            head,
            directory,
            end: ChainEnd::default(),
            head_lines: 0,
            complete_bytes: 0,
            directory_synced: false,
            has_torn_line: false,
        };
        // A file system without locks only makes the log look as if nothing were writing it.
        let _ = log.file.try_lock();
        let started = log
            .append(first, SyncPolicy::Deferred)
            .and_then(|_| rename_new(&new_log, &path))
            .and_then(|()| {
                rename_new(&new_head, &head_path).inspect_err(|_| {
                    let _ = fs::remove_file(&path);
                })
            });
        match started {
            Ok(()) => Ok(log),
            Err(error) => {
                // A log that could not be started leaves no files behind.
                for left in [&new_log, &new_head] {
                    let _ = fs::remove_file(left);
                }
                log.has_torn_line = true;
                Err(error)
            }
        }
    }

    /// Appends a record and returns its number. A failed append leaves no trace in the log.
    pub(super) fn append(&mut self, record: JsonFields, durable: SyncPolicy) -> io::Result<u64> {
        if self.has_torn_line {
            return Err(io::Error::other("its last line is incomplete"));
        }
        let (line, end) = self.end.next_line(record);
        let written = match durable {
            SyncPolicy::Deferred => self.file.write_all(line.as_bytes()),
            SyncPolicy::Immediate => self.write_synced(&line, &end),
        };
        if let Err(error) = written {
            let as_before = |file: &File| {
                file.metadata().is_ok_and(|metadata| metadata.len() == self.complete_bytes)
            };
            self.has_torn_line =
                self.file.set_len(self.complete_bytes).is_err() && !as_before(&self.file);
            return Err(error);
        }
        self.complete_bytes += line.len() as u64;
        self.end = end;
        if durable == SyncPolicy::Immediate {
            self.head_lines = self.end.lines;
        }
        Ok(self.end.lines)
    }

    fn write_synced(&mut self, line: &str, end: &ChainEnd) -> io::Result<()> {
        self.sync_directory()?;
        self.file.write_all(line.as_bytes())?;
        self.file.sync_data()?;
        self.head.write(end)
    }

    /// Syncs the head and the directory once, before the first record that must be on disk.
    ///
    /// Otherwise a power cut could leave that record without its head or without its file name.
    fn sync_directory(&mut self) -> io::Result<()> {
        if !self.directory_synced {
            self.head.sync()?;
            File::open(&self.directory)?.sync_all()?;
            self.directory_synced = true;
        }
        Ok(())
    }

    /// Syncs all lines and writes the head.
    ///
    /// The head itself is not synced here, so that this waits for the disk only once. If no record
    /// had to be on disk, a power cut may lose the head, which the checks accept.
    fn sync_all(&mut self) -> io::Result<()> {
        if self.head_lines < self.end.lines && !self.has_torn_line {
            self.file.sync_data()?;
            self.head.write(&self.end)?;
            self.head_lines = self.end.lines;
        }
        Ok(())
    }

    /// Replaces the log file, for tests.
    #[cfg(test)]
    pub(super) fn replace_file(&mut self, file: File) -> File {
        std::mem::replace(&mut self.file, file)
    }

    /// Replaces the head file, for tests.
    #[cfg(test)]
    pub(super) fn replace_head(&mut self, file: File) -> File {
        self.head.replace_file(file)
    }
}

impl Drop for AuditLogWriter {
    fn drop(&mut self) {
        // A failed sync leaves the log in the same state as a crash would.
        let _ = self.sync_all();
        // Unlock explicitly: a child process that is being spawned still has the file open, and the
        // lock.
        let _ = self.file.unlock();
    }
}

#[cfg(test)]
mod tests {
    use super::super::record::RecordKind;
    use super::super::{AuditStore, inspect_logs};
    use super::*;

    fn gap_record() -> JsonFields {
        RecordKind::Gap { lost: 1 }.to_fields()
    }

    #[test]
    fn a_log_that_cannot_be_started_leaves_no_files() {
        let temp = tempfile::tempdir().expect("a directory");
        let files = |log: &str| AuditLogFiles {
            log: temp.path().join(log),
            head: temp.path().join("head"),
            directory: temp.path().to_owned(),
        };
        assert!(AuditLogWriter::create(files("no/log"), gap_record()).is_err());
        assert_eq!(fs::read_dir(temp.path()).expect("readable").count(), 0);
    }

    #[test]
    fn a_record_is_removed_if_its_head_cannot_be_written() {
        let temp = tempfile::tempdir().expect("a directory");
        let store = AuditStore::new(temp.path().join("audit"));
        let (audit, _) = super::super::test_log::begin_log(&store, true);
        let path = store.log_path(audit.name());
        let full = OpenOptions::new().write(true).open("/dev/full").expect("there is one");
        let good = audit.replace_head(full);
        let before = fs::read(&path).expect("readable");
        use crate::tools::AuditSink as _;
        audit
            .record_change(&crate::tools::AuthorityChange::ModeChanged(
                crate::policy::ApprovalMode::Plan,
            ))
            .expect_err("there is no room");
        assert_eq!(fs::read(&path).expect("readable"), before);
        audit.replace_head(good);
        drop(audit);
        assert!(inspect_logs(&store).expect("readable").logs[0].is_intact());
    }
}
