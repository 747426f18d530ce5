//! Lines out of a stream, in memory that depends neither on the file's size nor on its lines'
//! lengths.

use std::io::{self, Read};
use std::ops::Range;

/// How much of the file's beginning decides whether it is text.
pub(crate) const HEAD: usize = 8 << 10;

/// How much of a line is kept: enough for 2,000 characters of four bytes.
pub(crate) const KEPT: usize = 8_000;

/// The host reads at most this much at once and clears as much memory as it is asked for, so
/// a small file, which is most of them, is read with the smaller one.
const FIRST_READ: usize = 16 << 10;
const READ: usize = 64 << 10;

/// A line, without its ending.
#[derive(Debug, Default)]
pub(crate) struct Line {
    /// Its first [`KEPT`] bytes.
    pub(crate) bytes: Vec<u8>,
    /// How many characters it has in all.
    pub(crate) characters: u64,
}

/// What is left after the lines that were read.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Rest {
    /// This many lines.
    Lines(u64),
    /// More than was worth counting.
    Unknown,
}

#[derive(Debug)]
pub(crate) struct Lines<R> {
    reader: R,
    buffer: Vec<u8>,
    unread: Range<usize>,
}

impl<R: Read> Lines<R> {
    pub(crate) fn new(reader: R) -> Self {
        Self { reader, buffer: vec![0; FIRST_READ], unread: 0..0 }
    }

    /// The file's first bytes, before anything was read: [`HEAD`] of them if it has as many.
    pub(crate) fn head(&mut self) -> io::Result<&[u8]> {
        while self.unread.end < HEAD {
            match retried(&mut self.reader, &mut self.buffer[self.unread.end..])? {
                0 => break,
                length => self.unread.end += length,
            }
        }
        Ok(&self.buffer[..self.unread.end.min(HEAD)])
    }

    /// Passes over bytes that [`Lines::head`] has shown.
    pub(crate) fn consume(&mut self, bytes: usize) {
        self.unread.start += bytes;
    }

    /// Passes over lines. Fewer than asked for means that the file has no more.
    pub(crate) fn skip(&mut self, lines: u64) -> io::Result<u64> {
        let mut skipped = 0;
        let mut in_line = false;
        while skipped < lines {
            let chunk = self.chunk()?;
            if chunk.is_empty() {
                return Ok(skipped + u64::from(in_line));
            }
            let ends = count(chunk);
            if skipped + ends < lines {
                skipped += ends;
                in_line = !chunk.ends_with(b"\n");
                let length = chunk.len();
                self.consume(length);
            } else {
                let last = usize::try_from(lines - skipped - 1).unwrap_or(usize::MAX);
                let length =
                    memchr::memchr_iter(b'\n', chunk).nth(last).map_or(chunk.len(), |end| end + 1);
                self.consume(length);
                skipped = lines;
            }
        }
        Ok(skipped)
    }

    /// Reads the next line, if there is one.
    pub(crate) fn next_line(&mut self, line: &mut Line) -> io::Result<bool> {
        line.bytes.clear();
        line.characters = 0;
        let mut started = false;
        loop {
            let chunk = self.chunk()?;
            if chunk.is_empty() {
                return Ok(started);
            }
            started = true;
            let end = memchr::memchr(b'\n', chunk);
            let part = &chunk[..end.unwrap_or(chunk.len())];
            let room = KEPT.saturating_sub(line.bytes.len());
            line.bytes.extend_from_slice(&part[..part.len().min(room)]);
            line.characters += characters(part);
            let length = part.len() + usize::from(end.is_some());
            self.consume(length);
            if end.is_some() {
                if line.bytes.ends_with(b"\r") && line.bytes.len() < KEPT {
                    line.bytes.pop();
                    line.characters -= 1;
                }
                return Ok(true);
            }
        }
    }

    /// Counts the lines that are left, and gives up after about `bytes`.
    pub(crate) fn rest(&mut self, bytes: usize) -> io::Result<Rest> {
        let mut lines = 0;
        let mut seen = 0;
        let mut in_line = false;
        while seen < bytes {
            let chunk = self.chunk()?;
            if chunk.is_empty() {
                return Ok(Rest::Lines(lines + u64::from(in_line)));
            }
            lines += count(chunk);
            in_line = !chunk.ends_with(b"\n");
            let length = chunk.len();
            seen += length;
            self.consume(length);
        }
        Ok(Rest::Unknown)
    }

    /// What is unread in the buffer, which is filled first if that is nothing; empty at the end of
    /// the file.
    fn chunk(&mut self) -> io::Result<&[u8]> {
        if self.unread.is_empty() {
            if self.unread.end > 0 {
                self.buffer.resize(READ, 0);
            }
            let length = retried(&mut self.reader, &mut self.buffer)?;
            self.unread = 0..length;
        }
        Ok(&self.buffer[self.unread.clone()])
    }
}

fn retried(reader: &mut impl Read, buffer: &mut [u8]) -> io::Result<usize> {
    loop {
        match reader.read(buffer) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            result => return result,
        }
    }
}

fn count(bytes: &[u8]) -> u64 {
    memchr::memchr_iter(b'\n', bytes).count() as u64
}

/// In UTF-8, each byte begins a character unless it is of the form `10xxxxxx`.
fn characters(bytes: &[u8]) -> u64 {
    bytes.iter().filter(|&&byte| byte & 0xC0 != 0x80).count() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Hands out a byte at a time, so that everything falls on a border.
    struct Bytewise<'a>(&'a [u8]);

    impl Read for Bytewise<'_> {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            let length = buffer.len().min(1);
            self.0.read(&mut buffer[..length])
        }
    }

    fn lines(mut lines: Lines<impl Read>) -> io::Result<Vec<String>> {
        let mut all = Vec::new();
        let mut line = Line::default();
        while lines.next_line(&mut line)? {
            all.push(String::from_utf8_lossy(&line.bytes).into_owned());
        }
        Ok(all)
    }

    #[test]
    fn lines_end_with_a_newline_or_the_file() -> io::Result<()> {
        for (text, expected) in [
            ("", &[][..]),
            ("a", &["a"]),
            ("a\n", &["a"]),
            ("a\r\nb\r\n", &["a", "b"]),
            ("\n\na\rb\r", &["", "", "a\rb\r"]),
        ] {
            assert_eq!(lines(Lines::new(text.as_bytes()))?, expected, "{text:?}");
            assert_eq!(lines(Lines::new(Bytewise(text.as_bytes())))?, expected, "{text:?}");
        }
        Ok(())
    }

    #[test]
    fn skipping_says_how_many_lines_there_were() -> io::Result<()> {
        for (text, asked, skipped, next) in [
            ("a\nb\nc", 0, 0, Some("a")),
            ("a\nb\nc", 2, 2, Some("c")),
            ("a\nb\nc", 3, 3, None),
            ("a\nb\nc", 4, 3, None),
            ("a\nb\n", 2, 2, None),
            ("a\nb\n", 9, 2, None),
        ] {
            let mut whole = Lines::new(text.as_bytes());
            assert_eq!(whole.skip(asked)?, skipped);
            assert_eq!(lines(whole)?.first().map(String::as_str), next);
            let mut bytewise = Lines::new(Bytewise(text.as_bytes()));
            assert_eq!(bytewise.skip(asked)?, skipped);
            assert_eq!(lines(bytewise)?.first().map(String::as_str), next);
        }
        Ok(())
    }

    #[test]
    fn a_long_line_keeps_its_beginning_and_its_length() -> io::Result<()> {
        let text = format!("{}\nb", "é".repeat(100_000));
        let mut lines = Lines::new(text.as_bytes());
        let mut line = Line::default();
        assert!(lines.next_line(&mut line)?);
        assert_eq!((line.bytes.len(), line.characters), (KEPT, 100_000));
        assert!(lines.next_line(&mut line)?);
        assert_eq!(line.bytes, b"b");
        Ok(())
    }

    #[test]
    fn the_rest_is_counted_up_to_a_point() -> io::Result<()> {
        let text = "x\n".repeat(100_000) + "x";
        assert_eq!(Lines::new(text.as_bytes()).rest(1 << 20)?, Rest::Lines(100_001));
        assert_eq!(Lines::new(text.as_bytes()).rest(1 << 10)?, Rest::Unknown);
        Ok(())
    }
}
