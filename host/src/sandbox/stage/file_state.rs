//! What was at a place, so that a change by somebody else is noticed.

use std::io;

use cap_std::fs::{Dir, Metadata, MetadataExt as _};

use super::rights::FileRights;
use crate::sandbox::file_version::FileVersion;
use crate::sandbox::rooted_fs::{self, FileKind};

/// What a place held at some moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum FileState {
    Absent,
    File(FileStamp),
    /// What is in it changes without it being another one.
    Directory(DirectoryStamp),
    Link(String),
    Special,
}

/// Tells a file from itself after any change: the system sets the time of the last change of a
/// file's state, and nobody can set it back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct FileStamp {
    device: u64,
    inode: u64,
    pub(super) size: u64,
    pub(super) rights: FileRights,
    ctime: (i64, i64),
    /// For whoever has read the file before.
    pub(super) version: FileVersion,
}

/// Tells a directory from another one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct DirectoryStamp {
    device: u64,
    inode: u64,
    /// With the bits that say who may remove what is in it, and to whose group that belongs.
    pub(super) rights: FileRights,
}

impl FileState {
    /// What is there now.
    pub(super) fn read(root: &Dir, place: &str) -> io::Result<Self> {
        let Some(metadata) = rooted_fs::find_metadata(root, place)? else {
            return Ok(Self::Absent);
        };
        Ok(match FileKind::from_metadata(&metadata) {
            FileKind::File => Self::File(FileStamp::from_metadata(&metadata)),
            FileKind::Directory => Self::Directory(DirectoryStamp {
                device: metadata.dev(),
                inode: metadata.ino(),
                rights: rights(&metadata, 0o3777),
            }),
            FileKind::Link => Self::Link(rooted_fs::read_link(root, place)?),
            FileKind::Special => Self::Special,
        })
    }
}

fn rights(metadata: &Metadata, bits: u32) -> FileRights {
    FileRights { mode: metadata.mode() & bits, owner: Some((metadata.uid(), metadata.gid())) }
}

impl FileStamp {
    pub(super) fn from_metadata(metadata: &Metadata) -> Self {
        Self {
            device: metadata.dev(),
            inode: metadata.ino(),
            size: metadata.len(),
            // Set-id bits are never among them.
            rights: rights(metadata, 0o777),
            ctime: (metadata.ctime(), metadata.ctime_nsec()),
            version: FileVersion::from_metadata(metadata),
        }
    }
}
