//! The head: where a log ended when it was last written, in a small file beside it.
//!
//! A chain cannot show that its end is missing; this can, as long as nobody takes the trouble to change both. Whoever writes
//! as this user can do that, and can write a whole log anew, since there is no secret in a hash. To be safe from that, keep
//! heads where this user cannot write: `cofferdam audit verify` prints them, and `--contains` looks for one.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt as _, OpenOptionsExt as _};
use std::path::Path;

use super::chain::{Chain, End};

/// The file that holds the head of a log that is being written.
pub(super) struct Head(File);

impl Head {
    pub(super) fn create(path: &Path) -> io::Result<Self> {
        OpenOptions::new().write(true).create_new(true).mode(0o600).open(path).map(Self)
    }

    /// Always as many bytes, so that one `write` replaces one head by another.
    pub(super) fn set(&self, end: &End) -> io::Result<()> {
        self.0.write_all_at(format!("{:>20} {}\n", end.lines, end.hash).as_bytes(), 0)
    }
}

/// Reads a head; `None` if this is none.
pub(super) fn parse(text: &str) -> Option<End> {
    let (lines, hash) = text.strip_suffix('\n')?.trim_start().split_once(' ')?;
    let is_hash = hash.len() == 64 && hash.bytes().all(|byte| byte.is_ascii_hexdigit());
    Some(End { lines: lines.parse().ok()?, hash: is_hash.then(|| hash.to_owned())? })
}

/// What a head says against a chain, as a sentence. The head is written after the line, so a crash leaves a chain that is
/// longer than its head says, and never one that is shorter.
pub(super) fn against(head: &End, chain: &Chain) -> Option<String> {
    let there = chain.hashes.len() as u64;
    if head.lines > there {
        return Some(format!("its end is missing: line {} is the last of {} that were written", there, head.lines));
    }
    let at_head = head.lines.checked_sub(1).and_then(|last| chain.hashes.get(usize::try_from(last).ok()?));
    (at_head != Some(&head.hash)).then(|| format!("line {} is not the one that was written", head.lines))
}

#[cfg(test)]
mod tests {
    use serde_json::Map;

    use super::*;

    #[test]
    fn a_head_is_read_as_it_was_written_over_the_one_before() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("head");
        let head = Head::create(&path).expect("it can be made");
        for lines in [1, 9, 10, u64::MAX] {
            let end = End { lines, hash: "ab".repeat(32) };
            head.set(&end).expect("writable");
            assert_eq!(parse(&std::fs::read_to_string(&path).expect("readable")), Some(end));
        }
        for text in ["", "1", "1 ab\n", "x ", &format!("-1 {}\n", "ab".repeat(32))] {
            assert_eq!(parse(text), None, "{text:?}");
        }
    }

    #[test]
    fn a_missing_end_is_found_and_a_crash_is_not_taken_for_one() {
        let (one, first) = End::default().next(Map::new());
        let (two, second) = first.next(Map::new());
        let (other, _) = first.next(Map::from_iter([("kind".to_owned(), "x".into())]));
        let whole = Chain::read(format!("{one}{two}").as_bytes());
        assert_eq!(against(&second, &whole), None);
        assert_eq!(against(&first, &whole), None, "killed between line and head");
        let short = Chain::read(one.as_bytes());
        assert_eq!(against(&second, &short).as_deref(), Some("its end is missing: line 1 is the last of 2 that were written"));
        let forged = Chain::read(format!("{one}{other}").as_bytes());
        assert_eq!(against(&second, &forged).as_deref(), Some("line 2 is not the one that was written"));
    }
}
