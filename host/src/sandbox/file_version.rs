//! Which version of a file it was that somebody read, so that a change since then is noticed.

use cap_std::fs::{Metadata, MetadataExt as _};

/// Tells a file from itself after another content was written to it: by where it is on the disk,
/// its size, and the time of the last write. Other permissions make no other version.
///
/// It is a text, to be kept with a session and compared, and nothing else.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileVersion(String);

impl FileVersion {
    pub(super) fn from_metadata(metadata: &Metadata) -> Self {
        let (device, inode, size) = (metadata.dev(), metadata.ino(), metadata.len());
        Self(format!("{device}:{inode}:{size}:{}.{:09}", metadata.mtime(), metadata.mtime_nsec()))
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl From<String> for FileVersion {
    fn from(text: String) -> Self {
        Self(text)
    }
}
