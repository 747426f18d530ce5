//! The kind of a directory entry, which can be kept on the disk.

use std::fs::Metadata;
use std::os::unix::fs::MetadataExt as _;

use serde::{Deserialize, Serialize};

/// The bits of a mode that tell the kind.
const KIND: u32 = 0o170_000;
const DIRECTORY: u32 = 0o040_000;
const FILE: u32 = 0o100_000;
const LINK: u32 = 0o120_000;

/// The kind of a directory entry, as the mode tells it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::sandbox) struct EntryKind(u32);

impl EntryKind {
    pub(in crate::sandbox) fn of(metadata: &Metadata) -> Self {
        Self(metadata.mode() & KIND)
    }

    pub(in crate::sandbox) fn is_dir(self) -> bool {
        self.0 == DIRECTORY
    }

    pub(in crate::sandbox) fn is_file(self) -> bool {
        self.0 == FILE
    }

    pub(in crate::sandbox) fn is_symlink(self) -> bool {
        self.0 == LINK
    }
}
