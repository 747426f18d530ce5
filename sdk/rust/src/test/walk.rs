//! Walks through the workspace of a test, with the order, the ignore rules and the globs of the
//! real ones.

use std::fs;
use std::iter::Peekable;
use std::path::Path;
use std::rc::Rc;
use std::time::UNIX_EPOCH;

use ignore::WalkBuilder;
use ignore::overrides::OverrideBuilder;

use crate::bindings::cofferdam::plugin::workspace::{Datetime, Entry};
use crate::workspace::{Batch, EntryKind, FilePiece, WalkOptions, WorkspaceError};

/// The limit of the contract.
const MAX_WALKS: usize = 16;

/// The number of open walks of a host.
#[derive(Clone, Default)]
pub(super) struct OpenWalkCount(Rc<()>);

/// A walk of a test.
pub(super) struct TestWalk {
    steps: Peekable<ignore::Walk>,
    required: Vec<Vec<u8>>,
    ignore_case: bool,
    problems: Vec<String>,
    /// The rest of a file that is larger than a batch.
    rest: Option<(String, Vec<u8>)>,
    _open: OpenWalkCount,
}

impl std::fmt::Debug for TestWalk {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TestWalk").field("problems", &self.problems).finish_non_exhaustive()
    }
}

impl TestWalk {
    pub(super) fn open(
        options: &WalkOptions,
        open: &OpenWalkCount,
    ) -> Result<Self, WorkspaceError> {
        if Rc::strong_count(&open.0) > MAX_WALKS {
            return Err(WorkspaceError::InvalidOption(format!(
                "{MAX_WALKS} walks are open already; drop one first"
            )));
        }
        let root = Path::new(".").join(&options.root);
        fs::symlink_metadata(&root)
            .map_err(|error| WorkspaceError::NotFound(format!("{}: {error}", options.root)))?;
        let mut globs = OverrideBuilder::new(".");
        for glob in &options.globs {
            globs
                .add(glob)
                .map_err(|error| WorkspaceError::InvalidGlob(format!("'{glob}': {error}")))?;
        }
        let globs =
            globs.build().map_err(|error| WorkspaceError::InvalidGlob(error.to_string()))?;
        let steps = WalkBuilder::new(root)
            .standard_filters(options.respect_ignore)
            // The workspace of a test is no repository. Its ignore files apply nevertheless.
            .require_git(false)
            .hidden(!options.hidden)
            .max_depth(options.max_depth.and_then(|depth| usize::try_from(depth).ok()))
            .overrides(globs)
            .filter_entry(|entry| entry.depth() == 0 || entry.file_name() != ".git")
            .sort_by_file_name(std::ffi::OsStr::cmp)
            .build()
            .peekable();
        let (required, ignore_case) = (options.required.clone(), options.required_ignore_case);
        let _open = open.clone();
        Ok(Self { steps, required, ignore_case, problems: Vec::new(), rest: None, _open })
    }

    pub(super) fn next_entries(&mut self, limit: u32) -> Vec<Entry> {
        let limit = usize::try_from(limit.min(4096)).unwrap_or(4096);
        std::iter::from_fn(|| self.next()).take(limit).collect()
    }

    pub(super) fn next_files(&mut self, max_bytes: u32) -> Batch {
        let limit = usize::try_from(max_bytes).unwrap_or(usize::MAX).clamp(64 << 10, 2 << 20);
        let mut batch = Batch { pieces: Vec::new(), data: Vec::new() };
        while batch.data.len() < limit
            && let Some((path, mut bytes)) = self.rest.take().or_else(|| self.next_file())
        {
            let rest = bytes.split_off(bytes.len().min(limit - batch.data.len()));
            let length = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
            batch.pieces.push(FilePiece { path: path.clone(), length, more: !rest.is_empty() });
            batch.data.extend(bytes);
            self.rest = (!rest.is_empty()).then_some((path, rest));
        }
        batch
    }

    pub(super) fn problems(&self) -> Vec<String> {
        self.problems.clone()
    }

    fn next(&mut self) -> Option<Entry> {
        loop {
            let found = match self.steps.next()? {
                Ok(found) => found,
                Err(error) => {
                    self.problems.push(error.to_string());
                    continue;
                }
            };
            let kind = match found.file_type() {
                Some(kind) if kind.is_dir() && found.depth() == 0 => continue,
                Some(kind) if kind.is_dir() => EntryKind::Directory,
                Some(kind) if kind.is_file() => EntryKind::File,
                Some(kind) if kind.is_symlink() => EntryKind::Symlink,
                Some(_) | None => EntryKind::Other,
            };
            let metadata = found.metadata().ok();
            let size =
                metadata.as_ref().filter(|_| kind == EntryKind::File).map_or(0, fs::Metadata::len);
            let modified = metadata
                .and_then(|metadata| metadata.modified().ok()?.duration_since(UNIX_EPOCH).ok());
            let path = found.path();
            let path = path.strip_prefix(".").unwrap_or(path).to_string_lossy().into_owned();
            let modified = modified.map(|since_1970| Datetime {
                seconds: since_1970.as_secs(),
                nanoseconds: since_1970.subsec_nanos(),
            });
            return Some(Entry { path, kind, size, modified });
        }
    }

    fn next_file(&mut self) -> Option<(String, Vec<u8>)> {
        loop {
            let entry = self.next()?;
            if entry.kind != EntryKind::File {
                continue;
            }
            match fs::read(&entry.path) {
                Ok(bytes) if self.may_match(&bytes) => return Some((entry.path, bytes)),
                Ok(_) => {}
                Err(error) => self.problems.push(format!("{}: {error}", entry.path)),
            }
        }
    }

    fn may_match(&self, bytes: &[u8]) -> bool {
        let is_utf16 = bytes.starts_with(b"\xFF\xFE") || bytes.starts_with(b"\xFE\xFF");
        let contains = |required: &Vec<u8>| {
            bytes.windows(required.len().max(1)).any(|window| {
                if self.ignore_case {
                    window.eq_ignore_ascii_case(required)
                } else {
                    window == required.as_slice()
                }
            })
        };
        is_utf16
            || self.required.is_empty()
            || self.required.iter().any(|required| required.is_empty() || contains(required))
    }
}

#[cfg(test)]
mod tests {
    use super::super::temp_dir::TempDir;
    use super::*;

    #[test]
    fn files_come_in_batches_and_large_ones_in_pieces() {
        let directory = TempDir::new();
        directory.write("a", &[b'x'; 100_000]);
        directory.write("b", b"short");
        directory.write("c", b"not this one");
        let _one_at_a_time = super::super::WORKING_DIRECTORY
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        let _working_directory = directory.enter();
        let options = WalkOptions {
            required: vec![b"xx".to_vec(), b"SHORT".to_vec()],
            required_ignore_case: true,
            ..WalkOptions::default()
        };
        let Ok(mut walk) = TestWalk::open(&options, &OpenWalkCount::default()) else {
            panic!("it opens")
        };
        let mut pieces = Vec::new();
        loop {
            let batch = walk.next_files(1);
            if batch.pieces.is_empty() {
                break;
            }
            pieces.extend(
                batch.pieces.into_iter().map(|piece| (piece.path, piece.length, piece.more)),
            );
        }
        let expected = [("a", 65536, true), ("a", 34464, false), ("b", 5, false)];
        assert_eq!(pieces, expected.map(|(path, length, more)| (path.to_owned(), length, more)));
    }
}
