//! Describes the steps of a change as words and diffs, for the user's decision.

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

/// The bytes of all diffs of one call together. Further files are only described by their size.
const MAX_DIFF_BYTES: usize = 1 << 20;
/// The bytes that are compared for one call, of both sides together.
const MAX_TOTAL_COMPARED_BYTES: usize = 16 << 20;
/// The time of all comparisons of one call. They count as time of the call, and must not make it
/// fail.
const TOTAL_DIFF_TIMEOUT: Duration = Duration::from_secs(2);

/// A change with its diff, if it has one.
type DescribedStep = (ChangeKind, Option<String>);

/// Describes what the steps of a change do.
pub(super) struct ChangeDescriber<'a> {
    root: &'a Dir,
    steps: &'a [StagedStep],
    /// The moved files: the new path and the old one.
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

    /// Describes all steps, unless the call is stopped.
    pub(super) fn changes(&self, is_over: &dyn Fn() -> bool) -> Result<ChangeSet, StageError> {
        let mut changes = Vec::new();
        let mut undiffed = BTreeMap::new();
        for step in self.steps {
            if is_over() {
                return Err(StageError::Stopped);
            }
            // If a path is replaced by another kind, the removal comes first.
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
            | ChangeKind::Unlink
            | ChangeKind::SetMode { .. } => false,
        }
    }

    /// Describes the removal of the old file or directory, if the step removes one.
    fn describe_removal(
        &self,
        StagedStep { path, original, target }: &StagedStep,
    ) -> Option<DescribedStep> {
        match (original, target) {
            (
                FileState::Directory(..),
                TargetState::Absent | TargetState::Link(_) | TargetState::File { .. },
            ) => Some((ChangeKind::RemoveDirectory, None)),
            (
                FileState::Link(_),
                TargetState::Absent | TargetState::Directory { .. } | TargetState::File { .. },
            ) => Some((ChangeKind::Unlink, None)),
            (FileState::File(_), TargetState::Absent) if self.has_moved(path) => None,
            (
                FileState::File(stamp),
                TargetState::Absent | TargetState::Directory { .. } | TargetState::Link(_),
            ) => {
                let diff = self
                    .diff(|| Some((Some((path, read_unchanged(self.root, path, stamp)?)), None)));
                Some((ChangeKind::Delete { before: stamp.size }, diff))
            }
            (FileState::Absent | FileState::Special, _)
            | (FileState::Link(_), TargetState::Link(_)) => None,
            (FileState::File(_), TargetState::File { .. })
            | (FileState::Directory(..), TargetState::Directory { .. }) => None,
        }
    }

    /// Describes the new file, link or directory, if the step creates one.
    fn describe_content(
        &self,
        StagedStep { path, original, target }: &StagedStep,
    ) -> io::Result<Option<DescribedStep>> {
        let (data, digest) = match target {
            TargetState::Absent => return Ok(None),
            TargetState::Directory { .. } => return Ok(Some((ChangeKind::CreateDirectory, None))),
            TargetState::Link(to) => return Ok(Some((ChangeKind::Link { to: to.clone() }, None))),
            TargetState::File { data, digest, .. } => (data, digest),
        };
        let after = ContentDigest { size: data.metadata()?.len(), digest: digest.clone() };
        let new = read_small(File::open(data)?);
        Ok(Some(match (original, self.origin(path)) {
            (FileState::File(stamp), _) => {
                let diff = self.diff(|| {
                    Some((
                        Some((path, read_unchanged(self.root, path, stamp)?)),
                        Some((path, new?)),
                    ))
                });
                (ChangeKind::Modify { before: stamp.size, after }, diff)
            }
            (_, Some(from)) => {
                let old =
                    || rooted_fs::open(self.root, from).ok().and_then(|(file, _)| read_small(file));
                let diff = self.diff(|| Some((Some((from, old()?)), Some((path, new?)))));
                (ChangeKind::Move { from: workspace_path(from)?, after }, diff)
            }
            (_, None) => {
                (ChangeKind::Create { after }, self.diff(|| Some((None, Some((path, new?))))))
            }
        }))
    }

    /// Compares two sides, if both can be read and the budgets allow it.
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

    fn is_removed(&self, path: &str) -> bool {
        self.steps
            .iter()
            .any(|step| step.path == path && matches!(step.target, TargetState::Absent))
    }

    /// Returns the path that a file was moved from.
    fn origin(&self, path: &str) -> Option<&str> {
        self.moved
            .iter()
            .find(|(to, from)| to == path && self.is_removed(from))
            .map(|(_, from)| from.as_str())
    }

    /// Returns whether the file at this path was moved to another one.
    fn has_moved(&self, path: &str) -> bool {
        let is_there = |to: &str| self.steps.iter().any(|step| step.path == to);
        self.moved.iter().any(|(to, from)| from == path && self.is_removed(from) && is_there(to))
    }
}

/// A path with its content.
type ContentSide<'s> = (&'s str, Vec<u8>);
/// The sides of a diff: before and after.
type ContentSides<'s> = (Option<ContentSide<'s>>, Option<ContentSide<'s>>);

fn borrow_side<'s>(side: Option<&'s ContentSide<'_>>) -> Option<(&'s str, &'s [u8])> {
    side.map(|(path, bytes)| (*path, bytes.as_slice()))
}

fn workspace_path(path: &str) -> io::Result<WorkspacePath> {
    WorkspacePath::parse(path, None)
        .map_err(|problem| io::Error::new(io::ErrorKind::InvalidFilename, problem))
}

/// Returns the content of a workspace file if it is small and still in the expected state.
fn read_unchanged(root: &Dir, path: &str, stamp: &FileStamp) -> Option<Vec<u8>> {
    let (file, metadata) = rooted_fs::open(root, path).ok()?;
    if FileStamp::from_metadata(&metadata) == *stamp { read_small(file) } else { None }
}

fn read_small(file: File) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    file.take(MAX_COMPARED_BYTES + 1).read_to_end(&mut bytes).ok()?;
    (bytes.len() as u64 <= MAX_COMPARED_BYTES).then_some(bytes)
}
