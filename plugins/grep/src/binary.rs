//! Telling text from other files by their NULs, as ripgrep does.
//!
//! ripgrep looks at one buffer after the other, so what it says depends on how a file falls into
//! buffers. Here it depends on the file alone: with a NUL in its first 64 KiB it is not searched,
//! otherwise it is searched up to its first NUL. Matches in a file with a NUL anywhere are not
//! counted.

use std::io::{self, Read};

/// In bytes.
pub(crate) const HEAD: usize = 64 << 10;

/// UTF-16 is full of NULs until it is decoded, which the searcher does where a byte order mark says
/// so.
pub(crate) fn is_utf16(bytes: &[u8]) -> bool {
    bytes.starts_with(b"\xFF\xFE") || bytes.starts_with(b"\xFE\xFF")
}

/// Where a file ceases to be text.
pub(crate) fn first_nul(file: &[u8]) -> Option<usize> {
    if is_utf16(file) { None } else { memchr::memchr(0, file) }
}

/// A stream that ends before its first NUL.
#[derive(Debug)]
pub(crate) struct UntilNul<R> {
    reader: R,
    read: u64,
    ended: bool,
}

impl<R: Read> UntilNul<R> {
    pub(crate) fn new(reader: R) -> Self {
        Self { reader, read: 0, ended: false }
    }

    /// Where that NUL is, once it was met.
    pub(crate) fn nul(&self) -> Option<u64> {
        self.ended.then_some(self.read)
    }
}

impl<R: Read> Read for UntilNul<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.ended {
            return Ok(0);
        }
        let mut length = self.reader.read(buffer)?;
        if let Some(nul) = memchr::memchr(0, &buffer[..length]) {
            self.ended = true;
            length = nul;
        }
        self.read += length as u64;
        Ok(length)
    }
}
