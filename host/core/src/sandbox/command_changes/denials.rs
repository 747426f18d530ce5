//! The audit records of changes that were denied without a question.

use std::fs;
use std::path::Path;

use super::judge::{self, JudgedChanges, RestrictedPath};
use super::record::file_digest;
use crate::policy::{ChangeKind, ChangeSet, ContentDigest, Denial, FileChange, WorkspacePath};
use crate::sandbox::gate::DenialRecorder;
use cofferdam_confine::view::{CommandChanges, LayerAction, LayerEntryKind};

/// The number of reasons that are recorded. The audit log has a lower limit for each call, and
/// counts the rest.
const MAX_REASONS: usize = 100;
/// The number of paths of each reason that are described. A record lists no more.
const MAX_DESCRIBED: usize = 50;
/// The size of the largest file whose digest is recorded, in bytes.
const MAX_DIGESTED_SIZE: u64 = 1 << 20;

impl JudgedChanges {
    /// Records one decision for each reason of a denial.
    pub(super) fn record_denials(
        &self,
        changes: &CommandChanges,
        workspace: &Path,
        recorder: &DenialRecorder,
    ) {
        let mut by_reason: Vec<(&Denial, Vec<&RestrictedPath>)> = Vec::new();
        for path in self.discarded.iter().chain(&self.kept) {
            let Some(reason) = &path.reason else { continue };
            let known = |(_, paths): &&mut (&Denial, Vec<&RestrictedPath>)| {
                paths.first().is_some_and(|first| first.has_same_reason(path))
            };
            if let Some((_, paths)) = by_reason.iter_mut().find(known) {
                paths.push(path);
            } else if by_reason.len() < MAX_REASONS {
                by_reason.push((reason, vec![path]));
            }
        }
        for (reason, mut paths) in by_reason {
            paths.sort_by(|a, b| a.path.cmp(&b.path));
            let denied = paths.iter().enumerate().filter_map(|(number, path)| {
                let kind = if number < MAX_DESCRIBED {
                    describe_denied(path, changes, workspace)
                } else {
                    path.kind.map_or(judge::removed_kind(LayerEntryKind::File), judge::new_kind)
                };
                let path = WorkspacePath::parse(&path.path, None).ok()?;
                Some(FileChange { path, kind, diff: None })
            });
            let denied: Vec<FileChange> = denied.collect();
            if !denied.is_empty() {
                recorder(ChangeSet::new(denied), reason.clone());
            }
        }
    }
}

/// Returns the kind of a denied change, with the sizes of the files.
fn describe_denied(path: &RestrictedPath, changes: &CommandChanges, root: &Path) -> ChangeKind {
    let change = changes.changes.get(path.change);
    let old = fs::symlink_metadata(root.join(&path.path)).ok();
    let before = old.as_ref().map_or(0, fs::Metadata::len);
    let Some(kind) = path.kind else {
        return match change.map(|change| &change.action) {
            Some(LayerAction::SetMode { before, after, .. }) => {
                ChangeKind::SetMode { before: Some(*before), after: *after }
            }
            _ => {
                let kind = old.map_or(LayerEntryKind::File, |old| judge::kind_of(old.file_type()));
                match judge::removed_kind(kind) {
                    ChangeKind::Delete { .. } => ChangeKind::Delete { before },
                    other => other,
                }
            }
        };
    };
    let new = change.and_then(|change| change.action.entry()).map(|entry| {
        let top = changes.layer.entry(entry.number);
        path.below.as_ref().map_or(top.clone(), |below| top.join(below))
    });
    match judge::new_kind(kind) {
        ChangeKind::Create { .. } => {
            let size = new.as_ref().and_then(|new| fs::symlink_metadata(new).ok());
            let size = size.map_or(0, |new| new.len());
            let digest = new.filter(|_| kind == LayerEntryKind::File && size <= MAX_DIGESTED_SIZE);
            let digest = digest.and_then(|new| file_digest(&new, MAX_DIGESTED_SIZE));
            let after = ContentDigest { size, digest: digest.unwrap_or_default() };
            match old.is_some_and(|old| old.is_file()) {
                true => ChangeKind::Modify { before, after },
                false => ChangeKind::Create { after },
            }
        }
        ChangeKind::Link { .. } => {
            let to = new.and_then(|new| fs::read_link(new).ok()).unwrap_or_default();
            ChangeKind::Link { to: to.to_string_lossy().into_owned() }
        }
        other => other,
    }
}
