//! The output of a background command, in bounded memory.

use std::collections::VecDeque;

/// The number of bytes that are kept, by the WIT contract.
const CAPACITY: usize = 256 << 10;

/// The last output of a background command, with the position of its reader.
#[derive(Debug, Default)]
pub(super) struct JobOutput {
    kept: VecDeque<u8>,
    /// The number of bytes that were written in total.
    written: u64,
    /// The number of bytes that were read or skipped by the model.
    read: u64,
}

/// New output.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct NewOutput {
    /// The text. U+FFFD replaces bytes that are not UTF-8.
    pub text: String,
    /// The bytes before the text that are no longer available.
    pub dropped: u64,
}

impl JobOutput {
    pub(super) fn push(&mut self, bytes: &[u8]) {
        self.written += bytes.len() as u64;
        self.kept.extend(bytes);
        let surplus = self.kept.len().saturating_sub(CAPACITY);
        self.kept.drain(..surplus);
    }

    /// Returns the number of unread bytes, including those that are no longer available.
    pub(super) fn unread(&self) -> u64 {
        self.written - self.read
    }

    /// Takes the unread output. Keeps an incomplete character at the end, unless the output has
    /// ended.
    pub(super) fn take(&mut self, has_ended: bool) -> NewOutput {
        let first_kept = self.written - self.kept.len() as u64;
        let dropped = first_kept.saturating_sub(self.read);
        let start = self.read.max(first_kept) - first_kept;
        let skipped = usize::try_from(start).unwrap_or(usize::MAX);
        let mut bytes: Vec<u8> = self.kept.iter().skip(skipped).copied().collect();
        if !has_ended {
            bytes.truncate(bytes.len() - incomplete_len(&bytes));
        }
        self.read = first_kept + start + bytes.len() as u64;
        NewOutput { text: String::from_utf8_lossy(&bytes).into_owned(), dropped }
    }

    /// Returns the last `most` bytes of output, read or not.
    pub(super) fn tail(&self, most: usize) -> String {
        let skipped = self.kept.len().saturating_sub(most);
        let bytes: Vec<u8> = self.kept.iter().skip(skipped).copied().collect();
        let start = bytes.iter().take(4).position(|byte| byte & 0xc0 != 0x80).unwrap_or(0);
        String::from_utf8_lossy(&bytes[start..]).into_owned()
    }
}

/// Returns the length of a character at the end of which more bytes may follow.
fn incomplete_len(bytes: &[u8]) -> usize {
    let last = &bytes[bytes.len().saturating_sub(3)..];
    match str::from_utf8(last) {
        Ok(_) => 0,
        Err(_) => (1..=last.len())
            .find(|length| {
                let end = &last[last.len() - length..];
                end[0] & 0xc0 == 0xc0
                    && str::from_utf8(end).is_err_and(|error| error.error_len().is_none())
            })
            .unwrap_or(0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn new(text: &str, dropped: u64) -> NewOutput {
        NewOutput { text: text.to_owned(), dropped }
    }

    #[test]
    fn output_is_returned_once_and_without_parts_of_characters() {
        let mut output = JobOutput::default();
        assert_eq!(output.take(false), new("", 0));
        output.push("aä€😀".as_bytes());
        assert_eq!((output.unread(), output.take(false)), (10, new("aä€😀", 0)));
        for character in ["ä", "€", "😀"] {
            let bytes = character.as_bytes();
            for cut in 1..bytes.len() {
                output.push(&bytes[..cut]);
                assert_eq!(output.take(false), new("", 0), "{character} {cut}");
                output.push(&bytes[cut..]);
                assert_eq!(output.take(false), new(character, 0), "{character} {cut}");
            }
        }
        // These bytes can never become a character.
        output.push(b"x\xff");
        assert_eq!(output.take(false), new("x\u{fffd}", 0));
        output.push(b"\xe2\x82");
        assert_eq!(output.take(false), new("", 0));
        assert_eq!(output.take(true), new("\u{fffd}", 0));
        assert_eq!(output.unread(), 0);
    }

    #[test]
    fn old_output_is_dropped_and_counted() {
        let mut output = JobOutput::default();
        output.push(b"first\n");
        for _ in 0..10 {
            output.push(&vec![b'x'; 100 << 10]);
        }
        output.push(b"last\n");
        let taken = output.take(false);
        assert_eq!(taken.text.len(), CAPACITY);
        assert!(taken.text.ends_with("xlast\n"));
        assert_eq!(taken.dropped, (6 + (1000 << 10) + 5) - (256 << 10));
        assert_eq!(output.take(false), new("", 0));
        output.push("ä".repeat(10).as_bytes());
        assert_eq!(output.tail(3), "ä", "a tail begins with a whole character");
    }
}
