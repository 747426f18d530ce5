//! Directories that only the user can access.
//!
//! They hold session logs, audit logs and code that will be run.

use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};
use std::path::Path;

/// The reason why a directory is not private to the user.
///
/// This enum is closed: code that matches it decides whether the content can be trusted.
#[derive(Debug, thiserror::Error)]
pub enum PrivateDirError {
    /// The path cannot be created or read.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// The path exists with the wrong type, owner or mode.
    ///
    /// The text continues a sentence that begins with the path, such as
    /// `is accessible to other users`.
    #[error("{0}")]
    NotPrivate(&'static str),
}

/// Creates a directory and its parents with mode 0700, or checks the one that exists.
///
/// A symbolic link to a directory does not count as a directory.
///
/// # Errors
/// The directory cannot be created, or [`check`] rejects it.
pub fn create(path: &Path) -> Result<(), PrivateDirError> {
    DirBuilder::new().recursive(true).mode(0o700).create(path)?;
    check(path)
}

/// Checks that a path is a directory that only this user can access.
///
/// # Errors
/// The path cannot be read, is not a directory, has another owner, or its mode lets others in.
pub fn check(path: &Path) -> Result<(), PrivateDirError> {
    let metadata = fs::symlink_metadata(path)?;
    if !metadata.is_dir() {
        Err(PrivateDirError::NotPrivate("is not a directory"))
    } else if metadata.uid() != rustix::process::geteuid().as_raw() {
        Err(PrivateDirError::NotPrivate("belongs to another user"))
    } else if metadata.mode() & 0o077 != 0 {
        Err(PrivateDirError::NotPrivate("is accessible to other users"))
    } else {
        Ok(())
    }
}

/// Checks that an open file belongs to this user and that nobody else can write it.
///
/// # Errors
/// The file has another owner, or its mode lets the group or others write it.
pub fn check_file(metadata: &fs::Metadata) -> Result<(), PrivateDirError> {
    if metadata.uid() != rustix::process::geteuid().as_raw() {
        Err(PrivateDirError::NotPrivate("belongs to another user"))
    } else if metadata.mode() & 0o022 != 0 {
        Err(PrivateDirError::NotPrivate("is writable by other users"))
    } else {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    use super::*;

    fn create_and_describe(path: &Path) -> String {
        create(path).map_or_else(|error| error.to_string(), |()| "private".to_owned())
    }

    #[test]
    fn r114_a_directory_must_be_private_to_the_user() {
        let temp = tempfile::tempdir().expect("a folder");
        let at = |name: &str| temp.path().join(name);
        assert_eq!(create_and_describe(&at("a/b")), "private");
        assert_eq!(create_and_describe(&at("a/b")), "private", "and so it stays");
        assert_eq!(fs::metadata(at("a")).expect("it is there").mode() & 0o777, 0o700);

        fs::set_permissions(at("a"), fs::Permissions::from_mode(0o750)).expect("it is ours");
        assert_eq!(create_and_describe(&at("a")), "is accessible to other users");
        symlink(at("a/b"), at("link")).expect("a link");
        assert_eq!(create_and_describe(&at("link")), "is not a directory");
        fs::write(at("file"), "").expect("a file");
        assert!(matches!(create(&at("file")), Err(PrivateDirError::Io(_))));
    }
}
