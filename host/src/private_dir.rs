//! Folders that are the user's alone: of what was said, of what was done, and of code that will be
//! run.

use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};
use std::path::Path;

/// A folder is not, or cannot become, the user's alone.
#[derive(Debug, thiserror::Error)]
pub enum PrivateDirError {
    /// It cannot be made or looked at.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// It stands there in another way, such as `is open to others`.
    #[error("{0}")]
    NotPrivate(&'static str),
}

/// Makes a folder, with those above it, or finds that it is there and nobody else's. A link to a
/// folder is none.
pub fn create(path: &Path) -> Result<(), PrivateDirError> {
    DirBuilder::new().recursive(true).mode(0o700).create(path)?;
    check(path)
}

/// Finds that a folder is there and nobody else's.
pub fn check(path: &Path) -> Result<(), PrivateDirError> {
    let metadata = fs::symlink_metadata(path)?;
    if !metadata.is_dir() {
        Err(PrivateDirError::NotPrivate("is not a folder"))
    } else if metadata.uid() != rustix::process::geteuid().as_raw() {
        Err(PrivateDirError::NotPrivate("belongs to somebody else"))
    } else if metadata.mode() & 0o077 != 0 {
        Err(PrivateDirError::NotPrivate("is open to others"))
    } else {
        Ok(())
    }
}

/// Checks that an open file belongs to this user and that nobody else can write it.
///
/// # Errors
/// It belongs to somebody else, or its mode lets the group or others write.
pub fn check_file(metadata: &fs::Metadata) -> Result<(), PrivateDirError> {
    if metadata.uid() != rustix::process::geteuid().as_raw() {
        Err(PrivateDirError::NotPrivate("belongs to somebody else"))
    } else if metadata.mode() & 0o022 != 0 {
        Err(PrivateDirError::NotPrivate("can be written by others"))
    } else {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    use super::*;

    fn said_of(path: &Path) -> String {
        create(path).map_or_else(|problem| problem.to_string(), |()| "private".to_owned())
    }

    #[test]
    fn r114_a_folder_is_the_users_alone_or_refused() {
        let temp = tempfile::tempdir().expect("a folder");
        let at = |name: &str| temp.path().join(name);
        assert_eq!(said_of(&at("a/b")), "private");
        assert_eq!(said_of(&at("a/b")), "private", "and so it stays");
        assert_eq!(fs::metadata(at("a")).expect("it is there").mode() & 0o777, 0o700);

        fs::set_permissions(at("a"), fs::Permissions::from_mode(0o750)).expect("it is ours");
        assert_eq!(said_of(&at("a")), "is open to others");
        symlink(at("a/b"), at("link")).expect("a link");
        assert_eq!(said_of(&at("link")), "is not a folder");
        fs::write(at("file"), "").expect("a file");
        assert!(matches!(create(&at("file")), Err(PrivateDirError::Io(_))));
    }
}
