//! The hash chain: each line has its number, the hash of the line before it, and its own hash.
//!
//! ```json
//! {"n":2,"prev":"<hash of line 1>","kind":"decided", … ,"hash":"<SHA-256 of the line so far>"}
//! ```
//! A changed line no longer matches its hash. If the hash was changed too, the next line names a
//! different predecessor. A missing, duplicated or moved line breaks the numbering. A chain alone
//! cannot show that its end is missing: see [`AuditHeadFile`](super::head::AuditHeadFile).

use std::io::{self, BufRead};

use crate::bounded_json;
use serde_json::{Map, Value};
use sha2::{Digest as _, Sha256};

/// The hash that the first line has as its predecessor.
pub(super) const GENESIS_HASH: &str =
    "0000000000000000000000000000000000000000000000000000000000000000";
const HASH_DIGITS: usize = GENESIS_HASH.len();
const HASH_PREFIX: &str = ",\"hash\":\"";
const HASH_SUFFIX: &str = "\"}";

/// The position of the last line of a chain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ChainEnd {
    /// The number of lines in the chain.
    pub(super) lines: u64,
    /// The hash of the last line, or [`GENESIS_HASH`] if there is none.
    pub(super) hash: String,
}

impl Default for ChainEnd {
    fn default() -> Self {
        Self { lines: 0, hash: GENESIS_HASH.to_owned() }
    }
}

impl ChainEnd {
    /// Returns the next line with its newline, and the new end of the chain.
    pub(super) fn next_line(&self, record: Map<String, Value>) -> (String, Self) {
        let lines = self.lines + 1;
        let mut fields = Map::from_iter([
            ("n".to_owned(), lines.into()),
            ("prev".to_owned(), self.hash.as_str().into()),
        ]);
        fields.extend(record);
        let mut line = Value::Object(fields).to_string();
        line.pop();
        let hash = hash_content(&line);
        line.extend([HASH_PREFIX, &hash, HASH_SUFFIX, "\n"]);
        (line, Self { lines, hash })
    }
}

/// The first error in a chain.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ChainBreak {
    /// The line number, counted from 1.
    pub line: u64,
    /// What is wrong with the line, as the rest of a sentence that starts with "line N".
    pub reason: String,
}

/// A chain that was read and checked.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct HashChain {
    /// The records before the first bad line.
    pub(super) records: Vec<Map<String, Value>>,
    /// The hashes of these records.
    pub(super) hashes: Vec<String>,
    /// The first bad line, if there is one.
    pub(super) first_break: Option<ChainBreak>,
    /// Bytes after the last newline, from a line that a crash cut off.
    pub(super) torn_bytes: usize,
}

impl HashChain {
    /// Reads and checks a log line by line, up to the first bad line.
    pub(super) fn read_from(mut log: impl BufRead) -> io::Result<Self> {
        let mut chain = Self::default();
        let mut line = Vec::new();
        while log.read_until(b'\n', &mut line)? > 0 {
            let Some(whole) = line.strip_suffix(b"\n") else {
                chain.torn_bytes = line.len();
                break;
            };
            if let Err(broken) = chain.push_line(whole) {
                // A line that was replaced is found by the next one.
                let intact = usize::try_from(broken.line.saturating_sub(1)).unwrap_or(usize::MAX);
                chain.records.truncate(intact);
                chain.hashes.truncate(intact);
                chain.first_break = Some(broken);
                break;
            }
            line.clear();
        }
        Ok(chain)
    }

    /// Reads and checks a log in memory.
    #[cfg(test)]
    pub(super) fn read(bytes: &[u8]) -> Self {
        Self::read_from(bytes).unwrap_or_default()
    }

    fn push_line(&mut self, line: &[u8]) -> Result<(), ChainBreak> {
        let number = self.records.len() as u64 + 1;
        let broken = |problem: String| ChainBreak { line: number, reason: problem };
        let (content, hash) = split_hash(line)
            .ok_or_else(|| broken("is not an audit record: it was changed or inserted".into()))?;
        if hash_content(content) != hash {
            return Err(broken("was changed: its hash does not match".into()));
        }
        // A parsed value takes far more memory than its text.
        bounded_json::check(content).map_err(|error| broken(format!("cannot be read: {error}")))?;
        let record: Map<String, Value> = serde_json::from_str(&format!("{content}}}"))
            .map_err(|error| broken(format!("is not a valid record: {error}")))?;
        match record.get("n").and_then(Value::as_u64) {
            Some(n) if n == number => {}
            Some(n) if n > number => {
                return Err(broken(format!("is missing: line {n} is in its place")));
            }
            Some(n) => return Err(broken(format!("is a duplicate of line {n}"))),
            None => return Err(broken("has no number".into())),
        }
        let before = self.hashes.last().map_or(GENESIS_HASH, String::as_str);
        match record.get("prev").and_then(Value::as_str) {
            Some(prev) if prev == before => {}
            // This line matches its own hash, so the line before it was replaced.
            Some(_) if number > 1 => {
                return Err(ChainBreak {
                    line: number - 1,
                    reason: format!("was replaced: line {number} follows a different line"),
                });
            }
            Some(_) | None => return Err(broken("does not name its previous record".into())),
        }
        self.records.push(record);
        self.hashes.push(hash.to_owned());
        Ok(())
    }

    /// Returns the end of the chain.
    pub(super) fn end(&self) -> ChainEnd {
        let hash = self.hashes.last().map_or(GENESIS_HASH, String::as_str);
        ChainEnd { lines: self.hashes.len() as u64, hash: hash.to_owned() }
    }
}

/// Splits a line into the content that is hashed and the hash.
fn split_hash(line: &[u8]) -> Option<(&str, &str)> {
    let line = std::str::from_utf8(line).ok()?.strip_suffix(HASH_SUFFIX)?;
    let (rest, hash) = line.split_at_checked(line.len().checked_sub(HASH_DIGITS)?)?;
    Some((rest.strip_suffix(HASH_PREFIX)?, hash))
}

fn hash_content(content: &str) -> String {
    use std::fmt::Write as _;
    Sha256::digest(content.as_bytes()).iter().fold(
        String::with_capacity(HASH_DIGITS),
        |mut text, byte| {
            // Writing to a `String` cannot fail.
            let _ = write!(text, "{byte:02x}");
            text
        },
    )
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn write_chain(texts: &[String]) -> (Vec<String>, ChainEnd) {
        let mut end = ChainEnd::default();
        let mut lines = Vec::new();
        for text in texts {
            let Value::Object(record) = json!({"kind": "test", "text": text}) else {
                panic!("an object")
            };
            let (line, next) = end.next_line(record);
            lines.push(line);
            end = next;
        }
        (lines, end)
    }

    /// Returns the first line in which the chain or its recorded end shows an error.
    fn first_problem_line(lines: &[String], end: &ChainEnd) -> Option<u64> {
        let chain = HashChain::read(lines.concat().as_bytes());
        chain.first_break.map(|broken| broken.line).or_else(|| {
            (chain.hashes.last() != Some(&end.hash)).then_some(chain.hashes.len() as u64 + 1)
        })
    }

    #[test]
    fn a_chain_reads_as_it_was_written() {
        let (lines, end) =
            write_chain(&["one\ntwo".into(), "\",\"hash\":\"".into(), "\u{2028}\0".into()]);
        assert!(
            lines.iter().all(|line| line.matches('\n').count() == 1),
            "a newline in a field is no newline: {lines:?}"
        );
        let read = HashChain::read(lines.concat().as_bytes());
        assert_eq!((read.end(), read.first_break, read.torn_bytes), (end, None, 0));
        assert_eq!(read.records[0]["text"], "one\ntwo");
    }

    #[test]
    fn bytes_after_the_last_newline_are_a_torn_line() {
        let (lines, _) = write_chain(&["a".into(), "b".into()]);
        let text = lines.concat();
        for cut in lines[0].len()..text.len() {
            let read = HashChain::read(&text.as_bytes()[..cut]);
            assert_eq!(
                (read.records.len(), read.torn_bytes, read.first_break),
                (1, cut - lines[0].len(), None)
            );
        }
    }

    proptest! {
        #[test]
        fn a_changed_byte_is_found_in_its_line(
            texts in prop::collection::vec(".{0,12}", 1..6), at: prop::sample::Index, to: u8,
        ) {
            let (lines, end) = write_chain(&texts);
            let mut bytes = lines.concat().into_bytes();
            let at = at.index(bytes.len());
            prop_assume!(bytes[at] != to);
            let line = bytes[..at].iter().filter(|byte| **byte == b'\n').count() as u64 + 1;
            bytes[at] = to;
            let read = HashChain::read(&bytes);
            let last_newline = at == bytes.len() - 1;
            match read.first_break {
                Some(broken) => prop_assert_eq!(broken.line, line),
                // Without its newline, the last line looks torn. The recorded end distinguishes
                // this from a crash.
                None => prop_assert!(last_newline && read.hashes.last() != Some(&end.hash)),
            }
        }

        #[test]
        fn a_byte_too_many_or_too_few_is_found(
            texts in prop::collection::vec(".{0,12}", 1..6), at: prop::sample::Index,
            new: Option<u8>,
        ) {
            let (lines, end) = write_chain(&texts);
            let mut bytes = lines.concat().into_bytes();
            let at = at.index(bytes.len());
            match new {
                Some(byte) => bytes.insert(at, byte),
                None => {
                    bytes.remove(at);
                }
            }
            let read = HashChain::read(&bytes);
            let is_cut = read.torn_bytes > 0 && read.hashes.last() != Some(&end.hash);
            prop_assert!(read.first_break.is_some() || is_cut);
        }

        #[test]
        fn a_line_that_is_missing_is_found(
            texts in prop::collection::vec(".{0,12}", 1..8), at: prop::sample::Index,
        ) {
            let (mut lines, end) = write_chain(&texts);
            let at = at.index(lines.len());
            lines.remove(at);
            prop_assert_eq!(first_problem_line(&lines, &end), Some(at as u64 + 1));
        }

        #[test]
        fn lines_in_another_order_are_found(
            texts in prop::collection::vec(".{0,12}", 2..8), a: prop::sample::Index,
            b: prop::sample::Index,
        ) {
            let (mut lines, end) = write_chain(&texts);
            let (a, b) = (a.index(lines.len()), b.index(lines.len()));
            prop_assume!(a != b);
            lines.swap(a, b);
            prop_assert_eq!(first_problem_line(&lines, &end), Some(a.min(b) as u64 + 1));
        }

        #[test]
        fn a_replaced_line_with_a_valid_hash_is_found(
            texts in prop::collection::vec(".{0,12}", 1..8), at: prop::sample::Index,
        ) {
            let (mut lines, end) = write_chain(&texts);
            let at = at.index(lines.len());
            let before = HashChain::read(lines[..at].concat().as_bytes()).end();
            let Value::Object(forged) = json!({"kind": "forged"}) else { panic!("an object") };
            lines[at] = before.next_line(forged).0;
            let chain = HashChain::read(lines.concat().as_bytes());
            match chain.first_break {
                Some(broken) => prop_assert_eq!(broken.line, at as u64 + 1),
                // The last line has no successor. The recorded end shows the change.
                None => {
                    let is_last = at + 1 == lines.len();
                    prop_assert!(is_last && chain.hashes.last() != Some(&end.hash));
                }
            }
        }

        #[test]
        fn any_bytes_can_be_read(bytes: Vec<u8>) {
            let read = HashChain::read(&bytes);
            prop_assert!(read.first_break.is_some() || read.torn_bytes == bytes.len());
        }
    }
}
