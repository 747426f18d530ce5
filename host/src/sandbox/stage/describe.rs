//! The steps of a change in words and diffs, for whoever decides on them.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read as _};
use std::time::{Duration, Instant};

use cap_std::fs::Dir;

use super::compare::{self, MAX_COMPARED_BYTES};
use super::file_state::{FileStamp, FileState};
use super::staged::{StageError, StagedStep, TargetState, file_digest};
use crate::policy::{ChangeKind, ChangeSet, ContentDigest, FileChange, WorkspacePath};
use crate::sandbox::rooted_fs;

/// Of all diffs of one call together; what comes after is told by its size.
const MAX_DIFF_BYTES: usize = 1 << 20;
/// Bytes that are compared for one call, of both sides together.
const MAX_TOTAL_COMPARED_BYTES: usize = 16 << 20;
/// How long all comparing of one call may take. It is the call's time, and a diff is not to fail
/// what it shows.
const TOTAL_DIFF_TIMEOUT: Duration = Duration::from_secs(2);

/// An act, with its diff if there is one.
type DescribedStep = (ChangeKind, Option<String>);

/// Tells what steps do.
pub(super) struct ChangeDescriber<'a> {
    root: &'a Dir,
    steps: &'a [StagedStep],
    /// Files that have come from elsewhere, and from where.
    moved: &'a [(String, String)],
    diff_budget: Cell<usize>,
    compare_budget: Cell<usize>,
    deadline: Instant,
}

impl<'a> ChangeDescriber<'a> {
    pub(super) fn new(
        root: &'a Dir,
        steps: &'a [StagedStep],
        moved: &'a [(String, String)],
    ) -> Self {
        let deadline = Instant::now() + TOTAL_DIFF_TIMEOUT;
        Self {
            root,
            steps,
            moved,
            diff_budget: Cell::new(MAX_DIFF_BYTES),
            compare_budget: Cell::new(MAX_TOTAL_COMPARED_BYTES),
            deadline,
        }
    }

    /// All of them, unless nobody waits for that any more.
    pub(super) fn changes(&self, is_over: &dyn Fn() -> bool) -> Result<ChangeSet, StageError> {
        let mut changes = Vec::new();
        let mut undiffed = BTreeMap::new();
        for step in self.steps {
            if is_over() {
                return Err(StageError::Stopped);
            }
            // What goes first, where something else takes the place.
            for (act, diff) in
                self.describe_removal(step).into_iter().chain(self.describe_content(step)?)
            {
                let path = workspace_path(&step.path)?;
                if let (None, TargetState::File { data, digest, .. }) = (&diff, &step.target)
                    && self.is_new_content(&act, digest)
                {
                    undiffed.insert(path.clone(), data.clone());
                }
                changes.push(FileChange { path, kind: act, diff });
            }
        }
        Ok(ChangeSet::new(changes).with_undiffed(undiffed))
    }

    /// Whether an act puts a content in place that the workspace did not have there before. A file
    /// that only moves has the content that it had.
    fn is_new_content(&self, act: &ChangeKind, digest: &str) -> bool {
        match act {
            ChangeKind::Create { .. } | ChangeKind::Modify { .. } => true,
            ChangeKind::Move { from, .. } => !rooted_fs::open(self.root, from.as_str())
                .is_ok_and(|(mut file, _)| file_digest(&mut file).is_ok_and(|old| old == digest)),
            ChangeKind::Delete { .. }
            | ChangeKind::CreateDirectory
            | ChangeKind::RemoveDirectory
            | ChangeKind::Link { .. }
            | ChangeKind::Unlink => false,
        }
    }

    /// What was at the place, if it goes.
    fn describe_removal(
        &self,
        StagedStep { path: place, original: was, target: becomes }: &StagedStep,
    ) -> Option<DescribedStep> {
        match (was, becomes) {
            (
                FileState::Directory(..),
                TargetState::Absent | TargetState::Link(_) | TargetState::File { .. },
            ) => Some((ChangeKind::RemoveDirectory, None)),
            (
                FileState::Link(_),
                TargetState::Absent | TargetState::Directory { .. } | TargetState::File { .. },
            ) => Some((ChangeKind::Unlink, None)),
            (FileState::File(_), TargetState::Absent) if self.has_moved(place) => None,
            (
                FileState::File(stamp),
                TargetState::Absent | TargetState::Directory { .. } | TargetState::Link(_),
            ) => {
                let diff = self
                    .diff(|| Some((Some((place, read_unchanged(self.root, place, stamp)?)), None)));
                Some((ChangeKind::Delete { before: stamp.size }, diff))
            }
            (FileState::Absent | FileState::Special, _)
            | (FileState::Link(_), TargetState::Link(_)) => None,
            (FileState::File(_), TargetState::File { .. })
            | (FileState::Directory(..), TargetState::Directory { .. }) => None,
        }
    }

    /// What is to be at the place, if anything is.
    fn describe_content(
        &self,
        StagedStep { path: place, original: was, target: becomes }: &StagedStep,
    ) -> io::Result<Option<DescribedStep>> {
        let (data, digest) = match becomes {
            TargetState::Absent => return Ok(None),
            TargetState::Directory { .. } => return Ok(Some((ChangeKind::CreateDirectory, None))),
            TargetState::Link(to) => return Ok(Some((ChangeKind::Link { to: to.clone() }, None))),
            TargetState::File { data, digest, .. } => (data, digest),
        };
        let after = ContentDigest { size: data.metadata()?.len(), digest: digest.clone() };
        let new = read_small(File::open(data)?);
        Ok(Some(match (was, self.origin(place)) {
            (FileState::File(stamp), _) => {
                let diff = self.diff(|| {
                    Some((
                        Some((place, read_unchanged(self.root, place, stamp)?)),
                        Some((place, new?)),
                    ))
                });
                (ChangeKind::Modify { before: stamp.size, after }, diff)
            }
            (_, Some(from)) => {
                let old =
                    || rooted_fs::open(self.root, from).ok().and_then(|(file, _)| read_small(file));
                let diff = self.diff(|| Some((Some((from, old()?)), Some((place, new?)))));
                (ChangeKind::Move { from: workspace_path(from)?, after }, diff)
            }
            (_, None) => {
                (ChangeKind::Create { after }, self.diff(|| Some((None, Some((place, new?))))))
            }
        }))
    }

    /// Compares two sides, if both can be had and there is room to show it.
    fn diff<'s>(&self, sides: impl FnOnce() -> Option<ContentSides<'s>>) -> Option<String> {
        if self.diff_budget.get() == 0 {
            return None;
        }
        let (old, new) = sides()?;
        let bytes = [&old, &new].into_iter().flatten().map(|(_, bytes)| bytes.len()).sum();
        self.compare_budget.set(self.compare_budget.get().checked_sub(bytes)?);
        let diff =
            compare::diff(borrow_side(old.as_ref()), borrow_side(new.as_ref()), self.deadline)?;
        self.diff_budget.set(self.diff_budget.get().checked_sub(diff.len())?);
        Some(diff)
    }

    fn is_removed(&self, place: &str) -> bool {
        self.steps
            .iter()
            .any(|step| step.path == place && matches!(step.target, TargetState::Absent))
    }

    /// Where a file was before it moved here.
    fn origin(&self, place: &str) -> Option<&str> {
        self.moved
            .iter()
            .find(|(to, from)| to == place && self.is_removed(from))
            .map(|(_, from)| from.as_str())
    }

    /// Whether the file of this place is at another one now.
    fn has_moved(&self, place: &str) -> bool {
        let is_there = |to: &str| self.steps.iter().any(|step| step.path == to);
        self.moved.iter().any(|(to, from)| from == place && self.is_removed(from) && is_there(to))
    }
}

/// A content and where it is.
type ContentSide<'s> = (&'s str, Vec<u8>);
/// Before and after.
type ContentSides<'s> = (Option<ContentSide<'s>>, Option<ContentSide<'s>>);

fn borrow_side<'s>(side: Option<&'s ContentSide<'_>>) -> Option<(&'s str, &'s [u8])> {
    side.map(|(place, bytes)| (*place, bytes.as_slice()))
}

fn workspace_path(place: &str) -> io::Result<WorkspacePath> {
    WorkspacePath::parse(place, None)
        .map_err(|problem| io::Error::new(io::ErrorKind::InvalidFilename, problem))
}

/// The content of a file of the workspace, if it is small, and still the one that was met.
fn read_unchanged(root: &Dir, place: &str, stamp: &FileStamp) -> Option<Vec<u8>> {
    let (file, metadata) = rooted_fs::open(root, place).ok()?;
    if FileStamp::from_metadata(&metadata) == *stamp { read_small(file) } else { None }
}

fn read_small(file: File) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    file.take(MAX_COMPARED_BYTES + 1).read_to_end(&mut bytes).ok()?;
    (bytes.len() as u64 <= MAX_COMPARED_BYTES).then_some(bytes)
}
