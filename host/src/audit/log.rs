//! The file of a log, and writing to it.
//!
//! A log belongs to one run of the program: its file is made new, and nobody ever opens it for writing again. So two processes
//! never write one, and a line that a crash tore stays the last of its log; readers pass over it.

use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use serde_json::{Map, Value};

use super::chain::End;
use super::head::Head;

/// A log that this process writes.
pub(super) struct Log {
    file: File,
    head: Head,
    end: End,
    /// The length of what was written whole.
    whole: u64,
    /// A part of a line could not be taken back: whatever came after it would be read as its rest.
    torn: bool,
}

/// When a line has to be on the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Durable {
    Later,
    Now,
}

impl Log {
    /// A new log that begins with this record.
    pub(super) fn create(path: &Path, head: &Path, first: Map<String, Value>) -> io::Result<Self> {
        let file = OpenOptions::new().append(true).create_new(true).mode(0o600).open(path)?;
        let mut log = Self { file, head: Head::create(head)?, end: End::default(), whole: 0, torn: false };
        log.append(first, Durable::Now)?;
        Ok(log)
    }

    /// Adds a record and gives its number. A record that fails leaves no trace.
    pub(super) fn append(&mut self, record: Map<String, Value>, durable: Durable) -> io::Result<u64> {
        if self.torn {
            return Err(io::Error::other("its last line is torn"));
        }
        let (line, end) = self.end.next(record);
        let written = self.file.write_all(line.as_bytes()).and_then(|()| match durable {
            Durable::Later => Ok(()),
            Durable::Now => self.file.sync_data(),
        });
        if let Err(error) = written {
            let as_before = |file: &File| file.metadata().is_ok_and(|metadata| metadata.len() == self.whole);
            self.torn = self.file.set_len(self.whole).is_err() && !as_before(&self.file);
            return Err(error);
        }
        self.whole += line.len() as u64;
        self.end = end;
        // A head that cannot be written is behind, as after a crash; the record itself is there.
        drop(self.head.set(&self.end));
        Ok(self.end.lines)
    }

    /// In place of the file, for a test.
    #[cfg(test)]
    pub(super) fn replace_file(&mut self, file: File) -> File {
        std::mem::replace(&mut self.file, file)
    }
}
