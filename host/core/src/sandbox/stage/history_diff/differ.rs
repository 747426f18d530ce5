//! The comparison of old states with the workspace.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, Read as _};
use std::time::{Duration, Instant};

use cap_std::fs::Dir;

use super::old_states::{KeptEntry, OldEntry, OldStates};
use crate::policy::{ChangeKind, ContentDigest, FileChange, WorkspacePath};
use crate::sandbox::rooted_fs;
use crate::sandbox::stage::compare::{self, MAX_COMPARED_BYTES};
use crate::sandbox::stage::file_state::FileState;

/// The number of changed paths that are listed.
const MAX_LISTED: usize = 1000;
/// The number of listed paths in one directory that was created, replaced or removed as a whole.
const MAX_LISTED_BELOW: usize = 200;
/// The number of entries that are compared.
const MAX_COMPARED: usize = 100_000;
/// The bytes of all diffs together.
const MAX_DIFF_BYTES: usize = 4 << 20;
/// The time for all comparisons.
const DIFF_TIMEOUT: Duration = Duration::from_secs(5);
/// The largest file whose content is compared to find out whether it changed at all, in bytes.
const MAX_SAME_SIZE: u64 = 64 << 20;
/// The depth of a directory tree that is compared.
const MAX_DEPTH: usize = 200;

/// One side of a comparison: an entry of the workspace, or a kept one.
#[derive(Clone, Copy)]
struct ComparedEntry<'a> {
    directory: &'a Dir,
    path: &'a str,
}

impl ComparedEntry<'_> {
    fn state(self) -> io::Result<FileState> {
        match FileState::read(self.directory, self.path) {
            // It was removed meanwhile.
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(FileState::Absent),
            state => state,
        }
    }

    /// Returns the content of a small file.
    fn content(self) -> Option<Vec<u8>> {
        let (file, _) = rooted_fs::open(self.directory, self.path).ok()?;
        let mut bytes = Vec::new();
        file.take(MAX_COMPARED_BYTES + 1).read_to_end(&mut bytes).ok()?;
        (bytes.len() as u64 <= MAX_COMPARED_BYTES).then_some(bytes)
    }

    fn open(self) -> io::Result<File> {
        Ok(rooted_fs::open(self.directory, self.path)?.0)
    }

    /// Returns the names in a directory, and whether these are all of them.
    fn names(self) -> (BTreeSet<String>, bool) {
        let Ok(listed) = rooted_fs::list(self.directory, self.path) else {
            return (BTreeSet::new(), false);
        };
        let count = listed.len();
        let names: BTreeSet<String> =
            listed.into_iter().filter_map(|entry| entry.ok().map(|(name, _)| name)).collect();
        let is_complete = names.len() == count;
        (names, is_complete)
    }
}

/// An old state with the path at which its entries are kept.
struct OldSide<'a> {
    state: FileState,
    kept: Option<(&'a KeptEntry, String)>,
}

impl OldSide<'_> {
    fn entry(&self) -> Option<ComparedEntry<'_>> {
        let (kept, path) = self.kept.as_ref()?;
        Some(ComparedEntry { directory: &kept.directory, path })
    }
}

/// Compares old states with the workspace.
pub(super) struct HistoryDiffer<'a> {
    root: &'a Dir,
    pub(super) changes: Vec<FileChange>,
    pub(super) is_complete: bool,
    /// The number of entries that were compared.
    compared: usize,
    diff_budget: usize,
    deadline: Instant,
}

impl<'a> HistoryDiffer<'a> {
    pub(super) fn new(root: &'a Dir) -> Self {
        Self {
            root,
            changes: Vec::new(),
            is_complete: true,
            compared: 0,
            diff_budget: MAX_DIFF_BYTES,
            deadline: Instant::now() + DIFF_TIMEOUT,
        }
    }

    pub(super) fn compare_all(&mut self, old: &OldStates) {
        for (path, entry) in &old.entries {
            let side = match entry {
                OldEntry::Absent => OldSide { state: FileState::Absent, kept: None },
                OldEntry::Link(to) => OldSide { state: FileState::Link(to.clone()), kept: None },
                OldEntry::Special => OldSide { state: FileState::Special, kept: None },
                OldEntry::Directory => {
                    let now = ComparedEntry { directory: self.root, path }.state();
                    if !matches!(now, Ok(FileState::Directory(_))) {
                        self.add(path, ChangeKind::RemoveDirectory, None);
                    }
                    continue;
                }
                OldEntry::Kept(kept) => {
                    let entry = ComparedEntry { directory: &kept.directory, path: &kept.path };
                    match entry.state() {
                        Ok(state) => OldSide { state, kept: Some((kept, kept.path.clone())) },
                        Err(_) => {
                            self.is_complete = false;
                            continue;
                        }
                    }
                }
            };
            self.compare_tree(path, side, old);
        }
        for (path, before) in &old.modes {
            let now = match (ComparedEntry { directory: self.root, path }).state() {
                Ok(FileState::File(stamp)) => stamp.rights.mode,
                Ok(FileState::Directory(stamp)) => stamp.rights.mode,
                Ok(_) | Err(_) => continue,
            };
            self.add_mode(path, *before, now);
        }
    }

    /// Compares a path and everything below it, except paths with old states of their own.
    fn compare_tree(&mut self, top: &str, side: OldSide<'_>, old: &OldStates) {
        let mut pending = vec![(top.to_owned(), side, 0_usize)];
        let most = self.changes.len().saturating_add(MAX_LISTED_BELOW).min(MAX_LISTED);
        while let Some((path, side, depth)) = pending.pop() {
            self.compared += 1;
            let is_over = self.compared > MAX_COMPARED || Instant::now() > self.deadline;
            if is_over || depth > MAX_DEPTH || self.changes.len() >= most {
                self.is_complete = false;
                return;
            }
            let now = ComparedEntry { directory: self.root, path: &path };
            let Ok(state) = now.state() else {
                self.is_complete = false;
                continue;
            };
            self.compare_one(&path, &side, &state);
            let mut names = BTreeSet::new();
            let is_directory = |state: &FileState| matches!(state, FileState::Directory(_));
            let listed = [
                side.entry().filter(|_| is_directory(&side.state)),
                Some(now).filter(|_| is_directory(&state)),
            ];
            for entry in listed.into_iter().flatten() {
                let (found, is_complete) = entry.names();
                names.extend(found);
                self.is_complete &= is_complete;
            }
            for name in names.into_iter().rev() {
                let below = rooted_fs::join(&path, &name);
                if old.entries.contains_key(&below) {
                    continue;
                }
                let kept = side.kept.as_ref().filter(|_| is_directory(&side.state));
                let kept = kept.map(|(kept, path)| (*kept, rooted_fs::join(path, &name)));
                let state = kept.as_ref().map_or(Ok(FileState::Absent), |(kept, path)| {
                    ComparedEntry { directory: &kept.directory, path }.state()
                });
                match state {
                    Ok(state) => pending.push((below, OldSide { state, kept }, depth + 1)),
                    Err(_) => self.is_complete = false,
                }
            }
        }
    }

    /// Compares one path without the entries below it.
    fn compare_one(&mut self, path: &str, side: &OldSide<'_>, now: &FileState) {
        let new = ComparedEntry { directory: self.root, path };
        let was = &side.state;
        match (was, now) {
            (FileState::File(before), FileState::File(after)) => {
                // A larger file was replaced by one of the changes, and counts as changed.
                let is_same = before.size == after.size
                    && before.size <= MAX_SAME_SIZE
                    && side.entry().is_some_and(|old| have_same_content(old, new));
                if !is_same {
                    let kind =
                        ChangeKind::Modify { before: before.size, after: content(after.size) };
                    let diff = self.diff(path, side.entry(), Some(new));
                    self.add(path, kind, diff);
                } else if side.kept.as_ref().is_some_and(|(kept, _)| kept.has_mode) {
                    self.add_mode(path, before.rights.mode, after.rights.mode);
                }
                return;
            }
            (FileState::Directory(before), FileState::Directory(after)) => {
                self.add_mode(path, before.rights.mode, after.rights.mode);
                return;
            }
            (FileState::Link(before), FileState::Link(after)) if before == after => return,
            (FileState::Special, FileState::Special) => return,
            _ => {}
        }
        match was {
            FileState::Absent | FileState::Special => {}
            FileState::File(stamp) => {
                let diff = self.diff(path, side.entry(), None);
                self.add(path, ChangeKind::Delete { before: stamp.size }, diff);
            }
            FileState::Directory(_) => self.add(path, ChangeKind::RemoveDirectory, None),
            FileState::Link(_) if matches!(now, FileState::Link(_)) => {}
            FileState::Link(_) => self.add(path, ChangeKind::Unlink, None),
        }
        match now {
            FileState::Absent | FileState::Special => {}
            FileState::File(stamp) => {
                let diff = self.diff(path, None, Some(new));
                self.add(path, ChangeKind::Create { after: content(stamp.size) }, diff);
            }
            FileState::Directory(_) => self.add(path, ChangeKind::CreateDirectory, None),
            FileState::Link(to) => self.add(path, ChangeKind::Link { to: to.clone() }, None),
        }
    }

    fn diff(
        &mut self,
        path: &str,
        old: Option<ComparedEntry<'_>>,
        new: Option<ComparedEntry<'_>>,
    ) -> Option<String> {
        if self.diff_budget == 0 || self.changes.len() >= MAX_LISTED {
            return None;
        }
        let read = |side: Option<ComparedEntry<'_>>| match side {
            None => Some(None),
            Some(entry) => entry.content().map(Some),
        };
        let (old, new) = (read(old)?, read(new)?);
        let old = old.as_deref().map(|bytes| (path, bytes));
        let new = new.as_deref().map(|bytes| (path, bytes));
        let diff = compare::diff(old, new, self.deadline)?;
        self.diff_budget = self.diff_budget.checked_sub(diff.len())?;
        Some(diff)
    }

    fn add_mode(&mut self, path: &str, before: u32, after: u32) {
        if before & 0o777 != after & 0o777 {
            self.add(path, ChangeKind::SetMode { before: Some(before), after }, None);
        }
    }

    fn add(&mut self, path: &str, kind: ChangeKind, diff: Option<String>) {
        match WorkspacePath::parse(path, None) {
            Ok(path) if self.changes.len() < MAX_LISTED => {
                self.changes.push(FileChange { path, kind, diff });
            }
            Ok(_) | Err(_) => self.is_complete = false,
        }
    }
}

/// Returns the description of a content whose digest nobody needs.
fn content(size: u64) -> ContentDigest {
    ContentDigest { size, digest: String::new() }
}

fn have_same_content(one: ComparedEntry<'_>, other: ComparedEntry<'_>) -> bool {
    let compare = || -> io::Result<bool> {
        let (mut one, mut other) = (one.open()?, other.open()?);
        let (mut left, mut right) = (vec![0; 64 << 10], vec![0; 64 << 10]);
        loop {
            let count = one.read(&mut left)?;
            if count == 0 {
                return Ok(other.read(&mut right[..1])? == 0);
            }
            if other.read_exact(&mut right[..count]).is_err() || left[..count] != right[..count] {
                return Ok(false);
            }
        }
    };
    compare().unwrap_or(false)
}
