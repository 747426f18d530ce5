//! The changes of a command that need an approval of their own.

use std::fs;

use super::SettleError;
use super::judge::RestrictedPath;
use super::record::file_digest;
use crate::policy::{ApprovalPaths, ChangeKind, ChangeSet, FileChange, WorkspacePath};
use crate::sandbox::listed_files::ListedChange;
use crate::sandbox::stage::{ShownChange, describe_shown};
use crate::sandbox::workspace::Workspace;
use cofferdam_confine::view::{
    CommandChanges, CommandLayer, LayerAction, LayerChange, LayerEntryKind,
};

/// The largest file whose digest is remembered, in bytes, as in a scan of the workspace.
const MAX_DIGESTED_FILE_SIZE: u64 = 1 << 20;

/// Describes the changes with diffs, as those of tools are described.
pub(super) fn describe_changes(
    workspace: &Workspace,
    changes: &CommandChanges,
    asked: &[RestrictedPath],
) -> Result<ChangeSet, SettleError> {
    let mut modes = Vec::new();
    let shown = asked.iter().filter_map(|path| {
        let change = changes.changes.get(path.change)?;
        if let LayerAction::SetMode { before, after, .. } = change.action {
            modes.extend(describe_mode(&path.path, Some(before), after));
            return None;
        }
        let entry = change.action.entry().zip(path.kind).map(|(entry, kind)| {
            let top = changes.layer.entry(entry.number);
            (path.below.as_ref().map_or(top.clone(), |below| top.join(below)), kind)
        });
        Some(ShownChange { path: path.path.clone(), entry })
    });
    let shown = shown.collect();
    let described = describe_shown(workspace.dir(), shown)?;
    Ok(described.with_changes(modes))
}

/// Describes a change of permissions.
pub(super) fn describe_mode(path: &str, before: Option<u32>, after: u32) -> Option<FileChange> {
    let path = WorkspacePath::parse(path, None).ok()?;
    Some(FileChange { path, kind: ChangeKind::SetMode { before, after }, diff: None })
}

/// Returns the approved changes of files on the built-in lists.
pub(super) fn listed_changes(
    layer: &CommandLayer,
    accepted: &[LayerChange],
    approved: &[RestrictedPath],
) -> Vec<ListedChange> {
    let lists = ApprovalPaths::default();
    let listed = approved.iter().filter_map(|path| {
        let list = lists.find_built_in(&WorkspacePath::parse(&path.path, None).ok()?)?.list;
        let is_new = path.below.is_some();
        let mut existed = !is_new;
        let mut version = None;
        if let Some(kind) = path.kind {
            let in_layer = accepted.iter().find_map(|change| {
                let rest = path.path.strip_prefix(&change.path)?.trim_start_matches('/');
                let entry = change.action.entry()?;
                existed &= !matches!(change.action, LayerAction::Create(_));
                Some(layer.entry(entry.number).join(rest))
            })?;
            version = Some(match kind {
                LayerEntryKind::File => file_digest(&in_layer, MAX_DIGESTED_FILE_SIZE)
                    .map_or("no file".to_owned(), |digest| format!("sha256:{digest}")),
                LayerEntryKind::Link => {
                    let target = fs::read_link(&in_layer).unwrap_or_default();
                    format!("link to {}", target.to_string_lossy())
                }
                _ => "no file".to_owned(),
            });
        }
        Some(ListedChange { path: path.path.clone(), list, version, existed })
    });
    listed.collect()
}
