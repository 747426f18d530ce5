//! Files one after the other, out of batches in which a large file is cut into pieces.

use std::io::{self, Read};
use std::ops::Range;

use super::{Batch, WorkspaceError};

/// Files with their contents, in the order of a walk. Holds one batch at a time.
///
/// `fetch` yields the next batch, and one without pieces at the end. A test passes batches of its
/// own making.
#[derive(Debug)]
pub struct Files<F> {
    fetch: F,
    batch: Batch,
    /// The piece after the current one.
    next: usize,
    /// What is unread of the current piece, as a range of the batch's data.
    unread: Range<usize>,
    /// Whether the current file goes on after the current piece.
    more: bool,
}

impl<F: FnMut() -> Result<Batch, WorkspaceError>> Files<F> {
    /// The files of the batches that `fetch` yields.
    pub fn new(fetch: F) -> Self {
        Self {
            fetch,
            batch: Batch { pieces: Vec::new(), data: Vec::new() },
            next: 0,
            unread: 0..0,
            more: false,
        }
    }

    /// The next file. What was not read of the one before is passed over.
    pub fn next_file(&mut self) -> Result<Option<File<'_, F>>, WorkspaceError> {
        loop {
            let of_last_file = self.more;
            if !self.advance()? {
                return Ok(None);
            }
            if !of_last_file {
                return Ok(Some(File { files: self }));
            }
        }
    }

    /// Goes to the next piece, if there is one.
    fn advance(&mut self) -> Result<bool, WorkspaceError> {
        if self.next == self.batch.pieces.len() {
            let batch = (self.fetch)()?;
            if batch.pieces.is_empty() {
                self.more = false;
                return Ok(false);
            }
            self.batch = batch;
            self.next = 0;
            self.unread = 0..0;
        }
        let piece = &self.batch.pieces[self.next];
        let start = self.unread.end;
        let length = usize::try_from(piece.length).unwrap_or(usize::MAX);
        self.unread = start..start.saturating_add(length).min(self.batch.data.len());
        self.more = piece.more;
        self.next += 1;
        Ok(true)
    }
}

/// One file of [`Files`]. Reading it reads its contents, however many batches they are spread over.
#[derive(Debug)]
pub struct File<'a, F> {
    files: &'a mut Files<F>,
}

impl<F> File<'_, F> {
    /// Below the workspace, with `/` between its parts.
    pub fn path(&self) -> &str {
        &self.files.batch.pieces[self.files.next - 1].path
    }

    /// The contents without copying them, if all that is unread is at hand. For a file that fits
    /// into a batch it is.
    pub fn whole(&self) -> Option<&[u8]> {
        (!self.files.more).then(|| &self.files.batch.data[self.files.unread.clone()])
    }
}

impl<F: FnMut() -> Result<Batch, WorkspaceError>> Read for File<'_, F> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.files.unread.is_empty() {
            if !self.files.more || !self.files.advance().map_err(io::Error::other)? {
                return Ok(0);
            }
        }
        let unread = &self.files.batch.data[self.files.unread.clone()];
        let length = unread.len().min(buffer.len());
        buffer[..length].copy_from_slice(&unread[..length]);
        self.files.unread.start += length;
        Ok(length)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workspace::FilePiece;

    /// `a` in one piece, `b` in three over as many batches, `c` empty, `d` in one piece.
    fn files() -> Files<impl FnMut() -> Result<Batch, WorkspaceError>> {
        let piece = |path: &str, length, more| FilePiece { path: path.to_owned(), length, more };
        let mut batches = vec![
            Batch {
                pieces: vec![piece("a", 2, false), piece("b", 1, true)],
                data: b"aab".to_vec(),
            },
            Batch { pieces: vec![piece("b", 3, true)], data: b"bbb".to_vec() },
            Batch {
                pieces: vec![piece("b", 1, false), piece("c", 0, false), piece("d", 1, false)],
                data: b"bd".to_vec(),
            },
        ]
        .into_iter();
        Files::new(move || {
            Ok(batches.next().unwrap_or(Batch { pieces: Vec::new(), data: Vec::new() }))
        })
    }

    #[test]
    fn files_are_read_across_batches() {
        let mut files = files();
        let mut seen = Vec::new();
        while let Ok(Some(mut file)) = files.next_file() {
            let path = file.path().to_owned();
            let whole = file.whole().is_some();
            let mut text = String::new();
            assert!(file.read_to_string(&mut text).is_ok());
            seen.push((path, text, whole));
        }
        let expected =
            [("a", "aa", true), ("b", "bbbbb", false), ("c", "", true), ("d", "d", true)];
        assert_eq!(
            seen,
            expected.map(|(path, text, whole)| (path.to_owned(), text.to_owned(), whole))
        );
    }

    #[test]
    fn what_is_not_read_is_passed_over() {
        let mut files = files();
        let mut seen = Vec::new();
        while let Ok(Some(mut file)) = files.next_file() {
            let mut byte = [0];
            assert!(file.read(&mut byte).is_ok());
            seen.push(file.path().to_owned());
        }
        assert_eq!(seen, ["a", "b", "c", "d"]);
    }
}
