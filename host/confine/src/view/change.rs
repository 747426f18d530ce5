//! The changes of a command, as its layer shows them.

use serde::{Deserialize, Serialize};

/// A changed path of the workspace.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct LayerChange {
    /// The path, relative to the workspace. No other change is at or below it, except below a
    /// directory with [`LayerAction::SetMode`].
    pub path: String,
    /// The change of the path.
    pub action: LayerAction,
    /// What the command has seen at the path in the workspace.
    #[serde(default)]
    pub seen: SeenEntry,
}

/// The entry of the workspace that a command has seen at a path before it changed the path.
///
/// This enum is closed: code that commits changes has to check each kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum SeenEntry {
    /// The entry, or no entry, that was there when the command started.
    #[default]
    AtStart,
    /// An entry that a checkpoint of the command has committed. It has not changed since, if it and
    /// everything below it has no later change time than this one: seconds and nanoseconds since
    /// 1970.
    AtCheckpoint((i64, i64)),
    /// An entry that a checkpoint has committed, and that somebody else has changed or removed
    /// since.
    Lost,
}

/// A change of one path.
///
/// This enum is closed: code that commits changes has to treat each kind.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum LayerAction {
    /// The path is new.
    Create(LayerEntry),
    /// The path has another content, or is an entry of another kind.
    Replace {
        /// The kind of the old entry.
        before: LayerEntryKind,
        /// The new entry.
        after: LayerEntry,
        /// Whether both are files with the same content and permissions.
        is_same: bool,
    },
    /// The path was removed, with all entries below it.
    Remove {
        /// The kind of the old entry.
        before: LayerEntryKind,
    },
    /// The permissions of a file or a directory that stays.
    SetMode {
        /// The kind of the entry.
        kind: LayerEntryKind,
        /// The old permissions.
        before: u32,
        /// The new permissions.
        after: u32,
    },
}

/// A new entry, which lies in the layer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct LayerEntry {
    /// The number of the entry; see [`CommandLayer::entry`](super::CommandLayer::entry).
    pub number: usize,
    /// The kind of the entry.
    pub kind: LayerEntryKind,
    /// The permissions.
    pub mode: u32,
    /// The size in bytes: of the file, or of all files in the directory.
    pub size: u64,
    /// The number of entries below a directory.
    pub entries: u64,
}

/// The kind of an entry of a directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum LayerEntryKind {
    /// A regular file.
    File,
    /// A directory.
    Directory,
    /// A symbolic link.
    Link,
    /// A FIFO, a socket or a device.
    Special,
}

/// The changes in a layer, with notices about those that cannot be committed.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct CollectedChanges {
    pub(crate) changes: Vec<LayerChange>,
    pub(crate) notices: Vec<String>,
}

impl LayerAction {
    /// Returns whether an old directory is removed with everything in it.
    pub fn removes_directory(&self) -> bool {
        match self {
            Self::Remove { before } | Self::Replace { before, .. } => {
                *before == LayerEntryKind::Directory
            }
            Self::Create(_) | Self::SetMode { .. } => false,
        }
    }

    /// Returns the new entry at the path, if there is one.
    pub fn entry(&self) -> Option<&LayerEntry> {
        match self {
            Self::Create(after) | Self::Replace { after, .. } => Some(after),
            Self::Remove { .. } | Self::SetMode { .. } => None,
        }
    }
}
