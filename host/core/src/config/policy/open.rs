//! Reading of the system policy and of project policies, with their different checks.

use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use rustix::fs::{CWD, Mode, OFlags, openat};

use super::super::trusted_file::{
    TrustedFileError, existing_file, file_error, read_error, read_text,
};

/// The name of the file in error messages.
pub(super) const POLICY: &str = "policy";

/// The required owner of the system policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PolicyFileOwner(u32);

impl PolicyFileOwner {
    /// The system administrator, with user ID 0.
    pub const ROOT: Self = Self(0);

    /// Creates the owner with a user ID.
    pub fn from_uid(id: u32) -> Self {
        Self(id)
    }
}

/// Reads the system policy.
///
/// The file and its directory must belong to `owner`, must not be writable by other users, and must
/// not be links.
pub(super) fn read_system(
    path: &Path,
    owner: PolicyFileOwner,
) -> Result<Option<String>, TrustedFileError> {
    let (Some(directory), Some(name)) = (path.parent(), path.file_name()) else {
        return Ok(None);
    };
    let no_link = OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::RDONLY;
    let Some(directory_file) = existing_file(
        directory,
        POLICY,
        openat(CWD, directory, no_link | OFlags::DIRECTORY, Mode::empty()),
    )?
    else {
        return Ok(None);
    };
    let Some(file) = existing_file(
        path,
        POLICY,
        openat(&directory_file, Path::new(name), no_link | OFlags::NONBLOCK, Mode::empty()),
    )?
    else {
        return Ok(None);
    };
    for (path, file) in [(directory, &directory_file), (path, &file)] {
        let metadata = file.metadata().map_err(read_error(path, POLICY))?;
        if metadata.uid() != owner.0 {
            return Err(file_error(
                path,
                format!(
                    "the system policy must belong to user {}, but this belongs to user {}",
                    owner.0,
                    metadata.uid()
                ),
            ));
        }
        if metadata.mode() & 0o022 != 0 {
            return Err(file_error(
                path,
                "other users can write the system policy here; run `chmod go-w` on it",
            ));
        }
    }
    read_text(path, POLICY, file).map(Some)
}

/// Reads a project policy.
///
/// The path below the root must not contain a link, so that the file belongs to the project.
pub(super) fn read_project(
    root: &Path,
    [directory, name]: [&str; 2],
) -> Result<Option<String>, TrustedFileError> {
    let no_link = OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::RDONLY;
    let path = root.join(directory).join(name);
    let Some(root) = existing_file(
        root,
        POLICY,
        openat(CWD, root, OFlags::DIRECTORY | OFlags::CLOEXEC | OFlags::RDONLY, Mode::empty()),
    )?
    else {
        return Ok(None);
    };
    let Some(directory) = existing_file(
        &path,
        POLICY,
        openat(root, directory, no_link | OFlags::DIRECTORY, Mode::empty()),
    )?
    else {
        return Ok(None);
    };
    let Some(file) = existing_file(
        &path,
        POLICY,
        openat(directory, name, no_link | OFlags::NONBLOCK, Mode::empty()),
    )?
    else {
        return Ok(None);
    };
    read_text(&path, POLICY, file).map(Some)
}
