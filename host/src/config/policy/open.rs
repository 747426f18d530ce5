//! Reading the policies of the system and of a project, each by the road that is right for it.

use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use rustix::fs::{CWD, Mode, OFlags, openat};

use super::super::trusted_file::{
    TrustedFileError, existing_file, file_error, read_error, read_text,
};

/// In the words of errors.
pub(super) const POLICY: &str = "policy";

/// Who has to own the system's policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PolicyFileOwner(u32);

impl PolicyFileOwner {
    /// The administrator.
    pub const ROOT: Self = Self(0);

    /// A user by number.
    pub fn from_uid(id: u32) -> Self {
        Self(id)
    }
}

/// The system's: owned by `owner` and writable by nobody else, it and its folder, and reached
/// without a link.
pub(super) fn read_system(
    path: &Path,
    owner: PolicyFileOwner,
) -> Result<Option<String>, TrustedFileError> {
    let (Some(folder), Some(name)) = (path.parent(), path.file_name()) else { return Ok(None) };
    let no_link = OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::RDONLY;
    let Some(folder_file) = existing_file(
        folder,
        POLICY,
        openat(CWD, folder, no_link | OFlags::DIRECTORY, Mode::empty()),
    )?
    else {
        return Ok(None);
    };
    let Some(file) = existing_file(
        path,
        POLICY,
        openat(&folder_file, Path::new(name), no_link | OFlags::NONBLOCK, Mode::empty()),
    )?
    else {
        return Ok(None);
    };
    for (path, file) in [(folder, &folder_file), (path, &file)] {
        let metadata = file.metadata().map_err(read_error(path, POLICY))?;
        if metadata.uid() != owner.0 {
            return Err(file_error(
                path,
                format!(
                    "the policy of the system has to belong to user {}, and this belongs to {}",
                    owner.0,
                    metadata.uid()
                ),
            ));
        }
        if metadata.mode() & 0o022 != 0 {
            return Err(file_error(
                path,
                "others can write here, so it cannot be the policy of the system: `chmod go-w` it",
            ));
        }
    }
    read_text(path, POLICY, file).map(Some)
}

/// A project's: below its root without any link, so that it is a file of the project and no other.
pub(super) fn read_project(
    root: &Path,
    [folder, name]: [&str; 2],
) -> Result<Option<String>, TrustedFileError> {
    let no_link = OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::RDONLY;
    let path = root.join(folder).join(name);
    let Some(root) = existing_file(
        root,
        POLICY,
        openat(CWD, root, OFlags::DIRECTORY | OFlags::CLOEXEC | OFlags::RDONLY, Mode::empty()),
    )?
    else {
        return Ok(None);
    };
    let Some(folder) = existing_file(
        &path,
        POLICY,
        openat(root, folder, no_link | OFlags::DIRECTORY, Mode::empty()),
    )?
    else {
        return Ok(None);
    };
    let Some(file) = existing_file(
        &path,
        POLICY,
        openat(folder, name, no_link | OFlags::NONBLOCK, Mode::empty()),
    )?
    else {
        return Ok(None);
    };
    read_text(&path, POLICY, file).map(Some)
}
