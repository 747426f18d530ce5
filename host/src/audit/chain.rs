//! The chain: how a line says what it is, where it stands, and which line it was written after.
//!
//! ```json
//! {"n":2,"prev":"<hash of line 1>","kind":"decided", … ,"hash":"<SHA-256 of this line up to here>"}
//! ```
//! A line that was changed does not have its hash any more. One that was changed together with its hash is not the one that
//! the next line was written after. One that is missing, doubled or elsewhere breaks the count. What no chain can show is a
//! missing end: see [`Head`](super::head::Head).

use std::io::{self, BufRead};

use serde_json::{Map, Value};
use sha2::{Digest as _, Sha256};

/// What the first line was written after.
pub(super) const NOTHING: &str = "0000000000000000000000000000000000000000000000000000000000000000";
const DIGITS: usize = NOTHING.len();
const BEFORE_HASH: &str = ",\"hash\":\"";
const AFTER_HASH: &str = "\"}";

/// The end of a chain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct End {
    /// How many lines there are.
    pub(super) lines: u64,
    /// The hash of the last one.
    pub(super) hash: String,
}

impl Default for End {
    fn default() -> Self {
        Self { lines: 0, hash: NOTHING.to_owned() }
    }
}

impl End {
    /// The next line, with its newline, and the end with it.
    pub(super) fn next(&self, record: Map<String, Value>) -> (String, Self) {
        let lines = self.lines + 1;
        let mut fields = Map::from_iter([("n".to_owned(), lines.into()), ("prev".to_owned(), self.hash.as_str().into())]);
        fields.extend(record);
        let mut line = Value::Object(fields).to_string();
        line.pop();
        let hash = hash_of(&line);
        line.extend([BEFORE_HASH, &hash, AFTER_HASH, "\n"]);
        (line, Self { lines, hash })
    }
}

/// What is wrong in a chain, and where it begins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Broken {
    /// Counted from 1.
    pub line: u64,
    /// As the end of a sentence that begins with the line.
    pub problem: String,
}

/// A chain that was read.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Chain {
    /// The records up to the first bad one.
    pub(super) records: Vec<Map<String, Value>>,
    /// Their hashes.
    pub(super) hashes: Vec<String>,
    /// The first bad one.
    pub(super) broken: Option<Broken>,
    /// Bytes after the last newline: a line that a crash tore.
    pub(super) torn: usize,
}

impl Chain {
    /// Reads and checks a log, line by line.
    pub(super) fn read_from(mut log: impl BufRead) -> io::Result<Self> {
        let mut chain = Self::default();
        let mut line = Vec::new();
        while log.read_until(b'\n', &mut line)? > 0 {
            let Some(whole) = line.strip_suffix(b"\n") else {
                chain.torn = line.len();
                break;
            };
            if let Err(broken) = chain.take(whole) {
                chain.broken = Some(broken);
                break;
            }
            line.clear();
        }
        Ok(chain)
    }

    /// The same of bytes.
    #[cfg(test)]
    pub(super) fn read(bytes: &[u8]) -> Self {
        Self::read_from(bytes).unwrap_or_default()
    }

    fn take(&mut self, line: &[u8]) -> Result<(), Broken> {
        let number = self.records.len() as u64 + 1;
        let broken = |problem: String| Broken { line: number, problem };
        let (content, hash) = split(line).ok_or_else(|| broken("is not a line of an audit log: it was changed or put there".into()))?;
        if hash_of(content) != hash {
            return Err(broken("was changed: it does not have its hash".into()));
        }
        let record: Map<String, Value> =
            serde_json::from_str(&format!("{content}}}")).map_err(|error| broken(format!("is not a record: {error}")))?;
        match record.get("n").and_then(Value::as_u64) {
            Some(n) if n == number => {}
            Some(n) if n > number => return Err(broken(format!("is missing: line {n} stands in its place"))),
            Some(n) => return Err(broken(format!("is line {n} once more"))),
            None => return Err(broken("has no number".into())),
        }
        let before = self.hashes.last().map_or(NOTHING, String::as_str);
        match record.get("prev").and_then(Value::as_str) {
            Some(prev) if prev == before => {}
            // This line is whole, so it is the one before that is not as it was.
            Some(_) if number > 1 => {
                return Err(Broken { line: number - 1, problem: format!("was replaced: line {number} was written after another one") });
            }
            Some(_) | None => return Err(broken("does not say what it was written after".into())),
        }
        self.records.push(record);
        self.hashes.push(hash.to_owned());
        Ok(())
    }

    /// Where it ends.
    pub(super) fn end(&self) -> End {
        let hash = self.hashes.last().map_or(NOTHING, String::as_str);
        End { lines: self.hashes.len() as u64, hash: hash.to_owned() }
    }
}

/// What is hashed, and the hash.
fn split(line: &[u8]) -> Option<(&str, &str)> {
    let line = std::str::from_utf8(line).ok()?.strip_suffix(AFTER_HASH)?;
    let (rest, hash) = line.split_at_checked(line.len().checked_sub(DIGITS)?)?;
    Some((rest.strip_suffix(BEFORE_HASH)?, hash))
}

fn hash_of(content: &str) -> String {
    use std::fmt::Write as _;
    Sha256::digest(content.as_bytes()).iter().fold(String::with_capacity(DIGITS), |mut text, byte| {
        // Writing to a String cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn chain(texts: &[String]) -> (Vec<String>, End) {
        let mut end = End::default();
        let mut lines = Vec::new();
        for text in texts {
            let Value::Object(record) = json!({"kind": "test", "text": text}) else { panic!("an object") };
            let (line, next) = end.next(record);
            lines.push(line);
            end = next;
        }
        (lines, end)
    }

    /// What is found in these lines by the chain and its end.
    fn found(lines: &[String], end: &End) -> Option<u64> {
        let chain = Chain::read(lines.concat().as_bytes());
        chain.broken.map(|broken| broken.line).or_else(|| (chain.hashes.last() != Some(&end.hash)).then_some(chain.hashes.len() as u64 + 1))
    }

    #[test]
    fn a_chain_reads_as_it_was_written() {
        let (lines, end) = chain(&["one\ntwo".into(), "\",\"hash\":\"".into(), "\u{2028}\0".into()]);
        assert!(lines.iter().all(|line| line.matches('\n').count() == 1), "a newline in a field is no newline: {lines:?}");
        let read = Chain::read(lines.concat().as_bytes());
        assert_eq!((read.end(), read.broken, read.torn), (end, None, 0));
        assert_eq!(read.records[0]["text"], "one\ntwo");
    }

    #[test]
    fn what_follows_the_last_newline_was_torn() {
        let (lines, _) = chain(&["a".into(), "b".into()]);
        let text = lines.concat();
        for cut in lines[0].len()..text.len() {
            let read = Chain::read(&text.as_bytes()[..cut]);
            assert_eq!((read.records.len(), read.torn, read.broken), (1, cut - lines[0].len(), None));
        }
    }

    proptest! {
        #[test]
        fn a_changed_byte_is_found_in_its_line(texts in prop::collection::vec(".{0,12}", 1..6), at: prop::sample::Index, to: u8) {
            let (lines, end) = chain(&texts);
            let mut bytes = lines.concat().into_bytes();
            let at = at.index(bytes.len());
            prop_assume!(bytes[at] != to);
            let line = bytes[..at].iter().filter(|byte| **byte == b'\n').count() as u64 + 1;
            bytes[at] = to;
            let read = Chain::read(&bytes);
            let last_newline = at == bytes.len() - 1;
            match read.broken {
                Some(broken) => prop_assert_eq!(broken.line, line),
                // Without its newline the last line is a torn one, which the end on record tells from a crash.
                None => prop_assert!(last_newline && read.hashes.last() != Some(&end.hash)),
            }
        }

        #[test]
        fn a_byte_too_many_or_too_few_is_found(texts in prop::collection::vec(".{0,12}", 1..6), at: prop::sample::Index, new: Option<u8>) {
            let (lines, end) = chain(&texts);
            let mut bytes = lines.concat().into_bytes();
            let at = at.index(bytes.len());
            match new {
                Some(byte) => bytes.insert(at, byte),
                None => drop(bytes.remove(at)),
            }
            let read = Chain::read(&bytes);
            prop_assert!(read.broken.is_some() || read.torn > 0 && read.hashes.last() != Some(&end.hash));
        }

        #[test]
        fn a_line_that_is_missing_is_found(texts in prop::collection::vec(".{0,12}", 1..8), at: prop::sample::Index) {
            let (mut lines, end) = chain(&texts);
            let at = at.index(lines.len());
            lines.remove(at);
            prop_assert_eq!(found(&lines, &end), Some(at as u64 + 1));
        }

        #[test]
        fn lines_in_another_order_are_found(texts in prop::collection::vec(".{0,12}", 2..8), a: prop::sample::Index, b: prop::sample::Index) {
            let (mut lines, end) = chain(&texts);
            let (a, b) = (a.index(lines.len()), b.index(lines.len()));
            prop_assume!(a != b);
            lines.swap(a, b);
            prop_assert_eq!(found(&lines, &end), Some(a.min(b) as u64 + 1));
        }

        #[test]
        fn a_line_that_was_replaced_with_a_good_hash_is_found(texts in prop::collection::vec(".{0,12}", 1..8), at: prop::sample::Index) {
            let (mut lines, end) = chain(&texts);
            let at = at.index(lines.len());
            let before = Chain::read(lines[..at].concat().as_bytes()).end();
            let Value::Object(forged) = json!({"kind": "forged"}) else { panic!("an object") };
            lines[at] = before.next(forged).0;
            let chain = Chain::read(lines.concat().as_bytes());
            match chain.broken {
                Some(broken) => prop_assert_eq!(broken.line, at as u64 + 1),
                // The last line has no next one; the end on record knows it.
                None => prop_assert!(at + 1 == lines.len() && chain.hashes.last() != Some(&end.hash)),
            }
        }

        #[test]
        fn any_bytes_can_be_read(bytes: Vec<u8>) {
            let read = Chain::read(&bytes);
            prop_assert!(read.broken.is_some() || read.torn == bytes.len());
        }
    }
}
