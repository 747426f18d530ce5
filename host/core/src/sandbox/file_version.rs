//! Versions of files, to detect that a file changed since it was read.

use cap_std::fs::{Metadata, MetadataExt as _};

/// Identifies the content of a file at some time by its device, inode, size and time of the last
/// write. A change of permissions makes no new version.
///
/// The value is an opaque string, to be stored with a session and compared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileVersion(String);

impl FileVersion {
    pub(super) fn from_metadata(metadata: &Metadata) -> Self {
        let (device, inode, size) = (metadata.dev(), metadata.ino(), metadata.len());
        Self(format!("{device}:{inode}:{size}:{}.{:09}", metadata.mtime(), metadata.mtime_nsec()))
    }

    /// Returns the version as a string.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl From<String> for FileVersion {
    fn from(text: String) -> Self {
        Self(text)
    }
}
