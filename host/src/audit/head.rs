//! The head: where a log ended when it was last put on the disk, in a small file beside it.
//!
//! A chain cannot show that its end is missing; this can, as long as nobody takes the trouble to
//! change both. Whoever writes as this user can do that, and can write a whole log anew, since
//! there is no secret in a hash. To be safe from that, keep heads where this user cannot write:
//! `cofferdam audit verify` prints them, and `--contains` looks for one.
//!
//! A head says nothing of lines that a power cut might take: it is set when they are on the disk.
//! So the chain can be longer than its head says, and never shorter.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt as _, OpenOptionsExt as _};
use std::path::Path;

use super::chain::{ChainEnd, HashChain};

/// The file that holds the head of a log that is being written.
pub(super) struct AuditHeadFile(File);

/// What is in the file of a head.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum HeadContent {
    /// Nothing: it was made, and the machine stopped before more of it was on the disk.
    Empty,
    /// Where the log ended.
    End(ChainEnd),
    /// What nobody here has written.
    Invalid,
}

impl AuditHeadFile {
    /// A new one, of a log without a line.
    pub(super) fn create(path: &Path) -> io::Result<Self> {
        let head = Self(OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?);
        head.write(&ChainEnd::default()).inspect_err(|_| drop(std::fs::remove_file(path)))?;
        Ok(head)
    }

    /// Always as many bytes, so that one `write` replaces one head by another.
    pub(super) fn write(&self, end: &ChainEnd) -> io::Result<()> {
        self.0.write_all_at(format!("{:>20} {}\n", end.lines, end.hash).as_bytes(), 0)
    }

    /// Puts it on the disk.
    pub(super) fn sync(&self) -> io::Result<()> {
        self.0.sync_all()
    }

    /// In place of the file, for a test.
    #[cfg(test)]
    pub(super) fn replace_file(&mut self, file: File) -> File {
        std::mem::replace(&mut self.0, file)
    }
}

/// Reads a head.
pub(super) fn parse(text: &str) -> HeadContent {
    let end = || {
        let (lines, hash) = text.strip_suffix('\n')?.trim_start().split_once(' ')?;
        let is_hash =
            hash.len() == 64 && hash.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
        Some(ChainEnd { lines: lines.parse().ok()?, hash: is_hash.then(|| hash.to_owned())? })
    };
    if text.is_empty() {
        HeadContent::Empty
    } else {
        end().map_or(HeadContent::Invalid, HeadContent::End)
    }
}

/// What a head says against a chain, as a sentence.
pub(super) fn check_chain(head: &ChainEnd, chain: &HashChain) -> Option<String> {
    let there = chain.hashes.len() as u64;
    if head.lines > there {
        return Some(format!(
            "its end is missing: line {} is the last of {} that were written",
            there, head.lines
        ));
    }
    let last = head.lines.checked_sub(1)?;
    let at_head = usize::try_from(last).ok().and_then(|last| chain.hashes.get(last));
    (at_head != Some(&head.hash))
        .then(|| format!("line {} is not the one that was written", head.lines))
}

#[cfg(test)]
mod tests {
    use serde_json::Map;

    use super::*;

    #[test]
    fn a_head_is_read_as_it_was_written_over_the_one_before() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("head");
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
    fn a_missing_end_is_found_and_a_crash_is_not_taken_for_one() {
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
            Some("its end is missing: line 1 is the last of 2 that were written")
        );
        let forged = HashChain::read(format!("{one}{other}").as_bytes());
        assert_eq!(
            check_chain(&second, &forged).as_deref(),
            Some("line 2 is not the one that was written")
        );
    }
}
