//! The file of a log, and writing to it.
//!
//! A log belongs to one run of the program: its file is made new, and nobody ever opens it for
//! writing again. So two processes never write one, and a line that a crash tore stays the last of
//! its log; readers pass over it.
//!
//! Beginning one waits for no disk. What has to be there before something happens is put there with
//! all lines before it, and what is left when the run ends is put there then.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::PathBuf;

use super::chain::ChainEnd;
use super::head::AuditHeadFile;
use super::record::{JsonFields, SyncPolicy};

/// The two files of a log, and their folder.
pub(super) struct AuditLogFiles {
    pub(super) log: PathBuf,
    pub(super) head: PathBuf,
    pub(super) directory: PathBuf,
}

/// A log that this process writes. Others see by a lock that it does.
pub(super) struct AuditLogWriter {
    file: File,
    head: AuditHeadFile,
    directory: PathBuf,
    end: ChainEnd,
    /// How many lines the head tells of.
    head_lines: u64,
    /// The length of what was written whole.
    complete_bytes: u64,
    /// The files are in their folder on the disk, and not only in memory.
    directory_synced: bool,
    /// A part of a line could not be taken back: whatever came after it would be read as its rest.
    has_torn_line: bool,
}

impl AuditLogWriter {
    /// A new log that begins with this record. The head comes first, so that there is no log
    /// without one.
    pub(super) fn create(files: AuditLogFiles, first: JsonFields) -> io::Result<Self> {
        let AuditLogFiles { log: path, head: head_path, directory: folder } = files;
        let head = AuditHeadFile::create(&head_path)?;
        let file = OpenOptions::new().append(true).create_new(true).mode(0o600).open(&path);
        let file = file.inspect_err(|_| drop(fs::remove_file(&head_path)))?;
        let mut log = Self {
            file,
            head,
            directory: folder,
            end: ChainEnd::default(),
            head_lines: 0,
            complete_bytes: 0,
            directory_synced: false,
            has_torn_line: false,
        };
        // A file system without locks has logs that look as if nobody were writing them.
        drop(log.file.try_lock());
        match log.append(first, SyncPolicy::Deferred) {
            Ok(_) => Ok(log),
            Err(error) => {
                // What was not begun leaves nothing behind.
                drop((fs::remove_file(&path), fs::remove_file(&head_path)));
                log.has_torn_line = true;
                Err(error)
            }
        }
    }

    /// Adds a record and gives its number. A record that fails leaves no trace.
    pub(super) fn append(&mut self, record: JsonFields, durable: SyncPolicy) -> io::Result<u64> {
        if self.has_torn_line {
            return Err(io::Error::other("its last line is torn"));
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

    /// Once, before the first line that has to be on the disk: or a power cut could leave that line
    /// without its head, or without its name.
    fn sync_directory(&mut self) -> io::Result<()> {
        if !self.directory_synced {
            self.head.sync()?;
            File::open(&self.directory)?.sync_all()?;
            self.directory_synced = true;
        }
        Ok(())
    }

    /// Puts all lines on the disk, and tells the head. If none of them had to be there, a power cut
    /// may still take the head itself, and that is no fault of such a log: so this waits for the
    /// disk once.
    fn sync_all(&mut self) -> io::Result<()> {
        if self.head_lines < self.end.lines && !self.has_torn_line {
            self.file.sync_data()?;
            self.head.write(&self.end)?;
            self.head_lines = self.end.lines;
        }
        Ok(())
    }

    /// In place of the file, for a test.
    #[cfg(test)]
    pub(super) fn replace_file(&mut self, file: File) -> File {
        std::mem::replace(&mut self.file, file)
    }

    /// In place of that of the head.
    #[cfg(test)]
    pub(super) fn replace_head(&mut self, file: File) -> File {
        self.head.replace_file(file)
    }
}

impl Drop for AuditLogWriter {
    fn drop(&mut self) {
        // A log that cannot be finished is as after a crash.
        drop(self.sync_all());
        // A process that is just being started still has the file open, and with it the lock.
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
    fn a_log_that_cannot_be_begun_leaves_nothing_behind() {
        let temp = tempfile::tempdir().expect("a folder");
        let files = |log: &str| AuditLogFiles {
            log: temp.path().join(log),
            head: temp.path().join("head"),
            directory: temp.path().to_owned(),
        };
        assert!(AuditLogWriter::create(files("no/log"), gap_record()).is_err());
        assert_eq!(fs::read_dir(temp.path()).expect("readable").count(), 0);
    }

    #[test]
    fn a_record_whose_head_cannot_be_set_is_not_there() {
        let temp = tempfile::tempdir().expect("a folder");
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
