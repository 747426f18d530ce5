//! The committed changes of a command, for the audit log.

use std::fs::File;
use std::io::Read as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use rustix::fs::OFlags;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use crate::policy::hex;
use cofferdam_confine::view::{CommandLayer, LayerAction, LayerChange, LayerEntry, LayerEntryKind};

/// The number of changes of one command that are recorded one by one.
const MAX_RECORDED_CHANGES: usize = 1000;
/// The bytes of all files of one command whose digests are recorded.
const MAX_DIGESTED_BYTES: u64 = 64 << 20;

/// A change that a command made to one path of the workspace.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct CommandChange {
    /// The path, relative to the workspace.
    pub path: String,
    /// The change.
    pub action: CommandChangeAction,
    /// The kind of the new entry, or of the removed one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<LayerEntryKind>,
    /// The new permissions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<u32>,
    /// The size of the new entry in bytes. For a directory, the size of all files in it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u64>,
    /// The number of entries below a new directory.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub entries: u64,
    /// The SHA-256 digest of a new file, unless the command wrote more than 64 MiB before it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sha256: Option<String>,
}

/// What a command did to a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum CommandChangeAction {
    /// The path is new.
    Create,
    /// The path has another content or kind.
    Replace,
    /// The path was removed, with everything below it.
    Remove,
    /// The path has other permissions.
    SetMode,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
pub(in crate::sandbox) fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// Describes the changes for the audit log: the first 1000 one by one, and the rest as a number.
pub(super) fn record_changes(
    layer: &CommandLayer,
    changes: &[LayerChange],
) -> (Vec<CommandChange>, u64) {
    let mut budget = MAX_DIGESTED_BYTES;
    let recorded = changes.iter().take(MAX_RECORDED_CHANGES);
    let recorded = recorded.map(|change| CommandChange::new(layer, change, &mut budget)).collect();
    let more = changes.len().saturating_sub(MAX_RECORDED_CHANGES);
    (recorded, u64::try_from(more).unwrap_or(u64::MAX))
}

impl CommandChange {
    fn new(layer: &CommandLayer, change: &LayerChange, budget: &mut u64) -> Self {
        let removed = |action, kind, mode| Self {
            path: change.path.clone(),
            action,
            kind,
            mode,
            bytes: None,
            entries: 0,
            sha256: None,
        };
        let mut created = |action, entry: &LayerEntry| Self {
            bytes: Some(entry.size),
            entries: entry.entries,
            sha256: digest(layer, entry, budget),
            ..removed(action, Some(entry.kind), Some(entry.mode))
        };
        match &change.action {
            LayerAction::Create(entry) => created(CommandChangeAction::Create, entry),
            LayerAction::Replace { after, .. } => created(CommandChangeAction::Replace, after),
            LayerAction::Remove { before } => {
                removed(CommandChangeAction::Remove, Some(*before), None)
            }
            LayerAction::SetMode { kind, after, .. } => {
                removed(CommandChangeAction::SetMode, Some(*kind), Some(*after))
            }
        }
    }
}

fn digest(layer: &CommandLayer, entry: &LayerEntry, budget: &mut u64) -> Option<String> {
    if entry.kind != LayerEntryKind::File {
        return None;
    }
    *budget = budget.checked_sub(entry.size)?;
    file_digest(&layer.entry(entry.number), entry.size)
}

/// Returns the digest of a file of at most `most` bytes.
pub(super) fn file_digest(path: &Path, most: u64) -> Option<String> {
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let flags = i32::try_from(flags.bits()).ok()?;
    let file = File::options().read(true).custom_flags(flags).open(path).ok()?;
    let mut file = file.take(most);
    let mut hasher = Sha256::new();
    let mut piece = vec![0; 64 << 10];
    loop {
        match file.read(&mut piece).ok()? {
            0 => return Some(hex(&hasher.finalize())),
            read => hasher.update(&piece[..read]),
        }
    }
}
