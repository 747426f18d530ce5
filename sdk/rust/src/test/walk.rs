//! Walks through the workspace of a test, with the rules of the real ones: their order, ignore
//! files, globs, and what is left out.

use std::collections::BTreeMap;
use std::fs;
use std::iter::Peekable;
use std::path::Path;
use std::time::UNIX_EPOCH;

use ignore::WalkBuilder;
use ignore::overrides::OverrideBuilder;

use crate::workspace::{Batch, Entry, EntryKind, FilePiece, WalkOptions, WorkspaceError};

/// The contract's 16.
const MOST_WALKS: usize = 16;

/// The walks of a call.
#[derive(Default)]
pub(super) struct Walks {
    open: BTreeMap<u32, Walk>,
    opened: u32,
}

struct Walk {
    steps: Peekable<ignore::Walk>,
    required: Vec<Vec<u8>>,
    ignore_case: bool,
    problems: Vec<String>,
    /// What is left of a file that is larger than a batch.
    rest: Option<(String, Vec<u8>)>,
}

impl Walks {
    pub(super) fn open(&mut self, options: &WalkOptions) -> Result<u32, WorkspaceError> {
        if self.open.len() >= MOST_WALKS {
            return Err(WorkspaceError::InvalidWalk(format!(
                "{MOST_WALKS} walks are open, which is the most"
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
            // A test's workspace is no repository, and its ignore files count all the same.
            .require_git(false)
            .hidden(!options.hidden)
            .max_depth(options.max_depth.and_then(|depth| usize::try_from(depth).ok()))
            .overrides(globs)
            .filter_entry(|entry| entry.depth() == 0 || entry.file_name() != ".git")
            .sort_by_file_name(std::ffi::OsStr::cmp)
            .build()
            .peekable();
        let (required, ignore_case) = (options.required.clone(), options.required_ignore_case);
        self.opened += 1;
        self.open.insert(
            self.opened,
            Walk { steps, required, ignore_case, problems: Vec::new(), rest: None },
        );
        Ok(self.opened)
    }

    pub(super) fn next_entries(
        &mut self,
        walk: u32,
        limit: u32,
    ) -> Result<Vec<Entry>, WorkspaceError> {
        let limit = usize::try_from(limit.min(4096)).unwrap_or(4096);
        let walk = self.get(walk)?;
        Ok(std::iter::from_fn(|| walk.next()).take(limit).collect())
    }

    pub(super) fn next_files(
        &mut self,
        walk: u32,
        max_bytes: u32,
    ) -> Result<Batch, WorkspaceError> {
        let most = usize::try_from(max_bytes).unwrap_or(usize::MAX).clamp(64 << 10, 2 << 20);
        let walk = self.get(walk)?;
        let mut batch = Batch { pieces: Vec::new(), data: Vec::new() };
        while batch.data.len() < most
            && let Some((path, mut bytes)) = walk.rest.take().or_else(|| walk.next_file())
        {
            let rest = bytes.split_off(bytes.len().min(most - batch.data.len()));
            let length = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
            batch.pieces.push(FilePiece { path: path.clone(), length, more: !rest.is_empty() });
            batch.data.extend(bytes);
            walk.rest = (!rest.is_empty()).then_some((path, rest));
        }
        Ok(batch)
    }

    pub(super) fn problems(&mut self, walk: u32) -> Result<Vec<String>, WorkspaceError> {
        Ok(self.get(walk)?.problems.clone())
    }

    pub(super) fn close(&mut self, walk: u32) {
        self.open.remove(&walk);
    }

    fn get(&mut self, walk: u32) -> Result<&mut Walk, WorkspaceError> {
        self.open
            .get_mut(&walk)
            .ok_or_else(|| WorkspaceError::InvalidWalk(format!("there is no walk {walk}")))
    }
}

impl Walk {
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
            #[expect(clippy::cast_precision_loss, reason = "what a file's size is on the wire")]
            return Some(Entry {
                path,
                kind,
                size: size as f64,
                modified: modified.unwrap_or_default().as_secs_f64(),
            });
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
        let holds = |required: &Vec<u8>| {
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
            || self.required.iter().any(|required| required.is_empty() || holds(required))
    }
}

#[cfg(test)]
mod tests {
    use super::super::Folder;
    use super::*;

    #[test]
    fn files_come_in_batches_and_large_ones_in_pieces() {
        let folder = Folder::new();
        folder.write("a", &[b'x'; 100_000]);
        folder.write("b", b"short");
        folder.write("c", b"not this one");
        let _one_at_a_time = super::super::WORKING_DIRECTORY
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        let _inside = folder.enter();
        let mut walks = Walks::default();
        let options = WalkOptions {
            required: vec![b"xx".to_vec(), b"SHORT".to_vec()],
            required_ignore_case: true,
            ..WalkOptions::default()
        };
        let Ok(walk) = walks.open(&options) else { panic!("it opens") };
        let mut pieces = Vec::new();
        while let Ok(batch) = walks.next_files(walk, 1)
            && !batch.pieces.is_empty()
        {
            pieces.extend(
                batch.pieces.into_iter().map(|piece| (piece.path, piece.length, piece.more)),
            );
        }
        let expected = [("a", 65536, true), ("a", 34464, false), ("b", 5, false)];
        assert_eq!(pieces, expected.map(|(path, length, more)| (path.to_owned(), length, more)));
    }
}
