//! What was at a place, so that a change by somebody else is noticed.

use std::io;

use cap_std::fs::{Dir, Metadata, MetadataExt as _};

use super::rights::Rights;
use crate::sandbox::below::{self, Kind};
use crate::sandbox::version::Version;

/// What a place held at some moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Was {
    Nothing,
    File(Stamp),
    /// What is in it changes without it being another one.
    Directory(DirectoryStamp),
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
    pub(super) rights: Rights,
    changed: (i64, i64),
    /// For whoever has read the file before.
    pub(super) version: Version,
}

/// Tells a directory from another one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct DirectoryStamp {
    device: u64,
    inode: u64,
    /// With the bits that say who may remove what is in it, and to whose group that belongs.
    pub(super) rights: Rights,
}

impl Was {
    /// What is there now.
    pub(super) fn look(root: &Dir, place: &str) -> io::Result<Self> {
        let Some(metadata) = below::look_for(root, place)? else { return Ok(Self::Nothing) };
        Ok(match Kind::of(&metadata) {
            Kind::File => Self::File(Stamp::of(&metadata)),
            Kind::Directory => {
                Self::Directory(DirectoryStamp { device: metadata.dev(), inode: metadata.ino(), rights: rights(&metadata, 0o3777) })
            }
            Kind::Link => Self::Link(below::read_link(root, place)?),
            Kind::Special => Self::Special,
        })
    }
}

fn rights(metadata: &Metadata, bits: u32) -> Rights {
    Rights { mode: metadata.mode() & bits, owner: Some((metadata.uid(), metadata.gid())) }
}

impl Stamp {
    pub(super) fn of(metadata: &Metadata) -> Self {
        Self {
            device: metadata.dev(),
            inode: metadata.ino(),
            size: metadata.len(),
            // Set-id bits are never among them.
            rights: rights(metadata, 0o777),
            changed: (metadata.ctime(), metadata.ctime_nsec()),
            version: Version::of(metadata),
        }
    }
}
