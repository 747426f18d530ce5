//! The head: a small file beside each log that says where the log ended at its last sync.
//!
//! A hash chain cannot show that its end is missing. The head can, unless somebody changes both
//! files. Anyone who can write as this user can change both, and can rewrite a whole log, because
//! the hashes contain no secret. To guard against that, keep copies of the heads where this user
//! cannot write: `cofferdam audit verify` prints them, and `--contains` looks for one.
//!
//! The head is written after its lines are on disk, so it never covers lines that a power cut could
//! lose. The chain can be longer than its head says, and never shorter.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt as _, OpenOptionsExt as _};
use std::path::Path;

use super::chain::{ChainEnd, HashChain};

/// The open head file of a log that is being written.
pub(super) struct AuditHeadFile(File);

/// The parsed content of a head file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum HeadContent {
    /// The file is empty: the machine stopped before its content was on disk.
    Empty,
    /// The end of the log at its last sync.
    End(ChainEnd),
    /// Content that the program did not write.
    Invalid,
}

impl AuditHeadFile {
    /// Creates the head file of a log that has no lines yet.
    pub(super) fn create(path: &Path) -> io::Result<Self> {
        let head = Self(OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?);
        head.write(&ChainEnd::default()).inspect_err(|_| {
            let _ = std::fs::remove_file(path);
        })?;
        Ok(head)
    }

    /// Overwrites the head.
    ///
    /// The content always has the same length, so one `write` replaces the whole head.
    pub(super) fn write(&self, end: &ChainEnd) -> io::Result<()> {
        self.0.write_all_at(format!("{:>20} {}\n", end.lines, end.hash).as_bytes(), 0)
    }

    /// Syncs the head file to disk.
    pub(super) fn sync(&self) -> io::Result<()> {
        self.0.sync_all()
    }

    /// Replaces the open file, for tests.
    #[cfg(test)]
    pub(super) fn replace_file(&mut self, file: File) -> File {
        std::mem::replace(&mut self.0, file)
    }
}

/// Parses the content of a head file.
pub(super) fn parse(text: &str) -> HeadContent {
    let end = || {
        let (lines, hash) = text.strip_suffix('\n')?.trim_start().split_once(' ')?;
        let is_hash =
            hash.len() == 64 && hash.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
        if !is_hash {
            return None;
        }
        Some(ChainEnd { lines: lines.parse().ok()?, hash: hash.to_owned() })
    };
    if text.is_empty() {
        HeadContent::Empty
    } else {
        end().map_or(HeadContent::Invalid, HeadContent::End)
    }
}

/// Compares a head with its chain and describes the mismatch in a sentence, if there is one.
pub(super) fn check_chain(head: &ChainEnd, chain: &HashChain) -> Option<String> {
    let lines = chain.hashes.len() as u64;
    if head.lines > lines {
        return Some(format!(
            "its end is missing: it has {} of {} written lines",
            lines, head.lines
        ));
    }
    let index = head.lines.checked_sub(1)?;
    let hash = usize::try_from(index).ok().and_then(|index| chain.hashes.get(index));
    if hash == Some(&head.hash) {
        return None;
    }
    Some(format!("line {} was replaced", head.lines))
}

#[cfg(test)]
mod tests {
    use serde_json::Map;

    use super::*;

    #[test]
    fn a_head_replaces_the_previous_one() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("head");
        let head = AuditHeadFile::create(&path).expect("it can be made");
        let read = || parse(&std::fs::read_to_string(&path).expect("readable"));
        assert_eq!(read(), HeadContent::End(ChainEnd::default()));
        for lines in [1, 9, 10, u64::MAX] {
            let end = ChainEnd { lines, hash: "ab".repeat(32) };
            head.write(&end).expect("writable");
            assert_eq!(read(), HeadContent::End(end));
        }
        assert_eq!(parse(""), HeadContent::Empty);
        for text in ["1", "1 ab\n", "x ", &format!("-1 {}\n", "ab".repeat(32))] {
            assert_eq!(parse(text), HeadContent::Invalid, "{text:?}");
        }
    }

    #[test]
    fn a_missing_end_is_distinguished_from_a_crash() {
        let (one, first) = ChainEnd::default().next_line(Map::new());
        let (two, second) = first.next_line(Map::new());
        let (other, _) = first.next_line(Map::from_iter([("kind".to_owned(), "x".into())]));
        let whole = HashChain::read(format!("{one}{two}").as_bytes());
        assert_eq!(check_chain(&second, &whole), None);
        assert_eq!(check_chain(&first, &whole), None, "killed between line and head");
        assert_eq!(
            check_chain(&ChainEnd::default(), &whole),
            None,
            "killed before anything was put on the disk"
        );
        let short = HashChain::read(one.as_bytes());
        assert_eq!(
            check_chain(&second, &short).as_deref(),
            Some("its end is missing: it has 1 of 2 written lines")
        );
        let forged = HashChain::read(format!("{one}{other}").as_bytes());
        assert_eq!(check_chain(&second, &forged).as_deref(), Some("line 2 was replaced"));
    }
}
