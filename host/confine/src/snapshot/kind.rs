//! A serializable file type of a directory entry.

use std::fs::Metadata;
use std::os::unix::fs::MetadataExt as _;

use serde::{Deserialize, Serialize};

/// The bits of a mode that contain the file type.
const KIND: u32 = 0o170_000;
const DIRECTORY: u32 = 0o040_000;
const FILE: u32 = 0o100_000;
const LINK: u32 = 0o120_000;

/// The type of a directory entry, as in its mode.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct EntryKind(u32);

impl EntryKind {
    pub(crate) fn of(metadata: &Metadata) -> Self {
        Self(metadata.mode() & KIND)
    }

    pub(crate) fn is_dir(self) -> bool {
        self.0 == DIRECTORY
    }

    pub(crate) fn is_file(self) -> bool {
        self.0 == FILE
    }

    pub(crate) fn is_symlink(self) -> bool {
        self.0 == LINK
    }
}
