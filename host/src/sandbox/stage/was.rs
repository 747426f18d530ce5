//! What was at a place, so that a change by somebody else is noticed.

use std::io;

use cap_std::fs::{Dir, Metadata, MetadataExt as _};

use crate::sandbox::below::{self, Kind};
use crate::sandbox::version::Version;

/// What a place held at some moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Was {
    Nothing,
    File(Stamp),
    /// By device and inode; what is in it changes without it being another one.
    Directory(u64, u64),
    Link(String),
    Special,
}

/// Tells a file from itself after any change: the system sets the time of the last change of a file's state, and nobody can
/// set it back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Stamp {
    device: u64,
    inode: u64,
    pub(super) size: u64,
    pub(super) mode: u32,
    pub(super) owner: (u32, u32),
    changed: (i64, i64),
    /// For whoever has read the file before.
    pub(super) version: Version,
}

impl Was {
    /// What is there now.
    pub(super) fn look(root: &Dir, place: &str) -> io::Result<Self> {
        let Some(metadata) = below::look_for(root, place)? else { return Ok(Self::Nothing) };
        Ok(match Kind::of(&metadata) {
            Kind::File => Self::File(Stamp::of(&metadata)),
            Kind::Directory => Self::Directory(metadata.dev(), metadata.ino()),
            Kind::Link => Self::Link(below::read_link(root, place)?),
            Kind::Special => Self::Special,
        })
    }
}

impl Stamp {
    pub(super) fn of(metadata: &Metadata) -> Self {
        Self {
            device: metadata.dev(),
            inode: metadata.ino(),
            size: metadata.len(),
            mode: metadata.mode() & 0o777,
            owner: (metadata.uid(), metadata.gid()),
            changed: (metadata.ctime(), metadata.ctime_nsec()),
            version: Version::of(metadata),
        }
    }
}
