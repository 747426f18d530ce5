//! The state of a path, to detect changes by other processes.

use std::io;

use cap_std::fs::{Dir, Metadata, MetadataExt as _};

use super::rights::FileRights;
use crate::sandbox::file_version::FileVersion;
use crate::sandbox::rooted_fs::{self, FileKind};

/// The state of a path at some moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum FileState {
    Absent,
    File(FileStamp),
    /// A directory, whatever its entries are.
    Directory(DirectoryStamp),
    Link(String),
    Special,
}

/// Identifies a file and detects any change of it. The system sets the time of the last status
/// change, and nobody can set it back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct FileStamp {
    device: u64,
    inode: u64,
    pub(super) size: u64,
    pub(super) rights: FileRights,
    ctime: (i64, i64),
    /// The version of the file, to compare with earlier reads.
    pub(super) version: FileVersion,
}

/// Identifies a directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct DirectoryStamp {
    device: u64,
    inode: u64,
    /// The permissions, including the sticky and the set-group-id bit.
    pub(super) rights: FileRights,
}

impl FileState {
    /// Reads the current state of a path.
    pub(super) fn read(root: &Dir, path: &str) -> io::Result<Self> {
        let Some(metadata) = rooted_fs::find_metadata(root, path)? else {
            return Ok(Self::Absent);
        };
        Ok(match FileKind::from_metadata(&metadata) {
            FileKind::File => Self::File(FileStamp::from_metadata(&metadata)),
            FileKind::Directory => Self::Directory(DirectoryStamp {
                device: metadata.dev(),
                inode: metadata.ino(),
                rights: rights(&metadata, 0o3777),
            }),
            FileKind::Link => Self::Link(rooted_fs::read_link(root, path)?),
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
            // The set-user-id, set-group-id and sticky bits are never kept.
            rights: rights(metadata, 0o777),
            ctime: (metadata.ctime(), metadata.ctime_nsec()),
            version: FileVersion::from_metadata(metadata),
        }
    }
}
