//! Reading a file once, and only one that may be believed.

use std::fs::File;
use std::io::{self, Read as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, Mode, OFlags, openat};

/// No policy that a person wrote is longer.
const LARGEST: u64 = 256 << 10;

/// Who has to own the system's policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Owner(u32);

impl Owner {
    /// The administrator.
    pub const ROOT: Self = Self(0);

    /// A user by number.
    pub fn user(id: u32) -> Self {
        Self(id)
    }
}

/// A file cannot be read, or must not be believed.
#[derive(Debug, thiserror::Error)]
#[error("{}: {problem}", path.display())]
pub struct FileProblem {
    /// Which.
    pub path: PathBuf,
    /// What is the matter, and what to do about it.
    pub problem: String,
}

fn problem(path: &Path, problem: impl ToString) -> FileProblem {
    FileProblem { path: path.to_owned(), problem: problem.to_string() }
}

fn cannot_read(path: &Path) -> impl Fn(io::Error) -> FileProblem {
    move |error| problem(path, format!("this policy cannot be read, so nothing runs: {error}"))
}

/// The system's: owned by `owner` and writable by nobody else, it and its folder, and reached without a link.
pub(super) fn system(path: &Path, owner: Owner) -> Result<Option<String>, FileProblem> {
    let (Some(folder), Some(name)) = (path.parent(), path.file_name()) else { return Ok(None) };
    let no_link = OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::RDONLY;
    let Some(folder_file) = there(folder, openat(CWD, folder, no_link | OFlags::DIRECTORY, Mode::empty()))? else { return Ok(None) };
    let Some(file) = there(path, openat(&folder_file, Path::new(name), no_link | OFlags::NONBLOCK, Mode::empty()))? else {
        return Ok(None);
    };
    for (path, file) in [(folder, &folder_file), (path, &file)] {
        let metadata = file.metadata().map_err(cannot_read(path))?;
        if metadata.uid() != owner.0 {
            return Err(problem(
                path,
                format!("the policy of the system has to belong to user {}, and this belongs to {}", owner.0, metadata.uid()),
            ));
        }
        if metadata.mode() & 0o022 != 0 {
            return Err(problem(path, "others can write here, so it cannot be the policy of the system: `chmod go-w` it"));
        }
    }
    text(path, file).map(Some)
}

/// The user's: wherever a link leads, but nobody else's to write.
pub(super) fn user(path: &Path) -> Result<Option<String>, FileProblem> {
    let nonblock = i32::try_from(OFlags::NONBLOCK.bits()).unwrap_or_default();
    let Some(file) = there(path, File::options().read(true).custom_flags(nonblock).open(path))? else { return Ok(None) };
    let metadata = file.metadata().map_err(cannot_read(path))?;
    let me = rustix::process::geteuid().as_raw();
    if metadata.uid() != me && metadata.uid() != 0 {
        return Err(problem(path, format!("this policy belongs to user {}: make it yours, or remove it", metadata.uid())));
    }
    if metadata.mode() & 0o002 != 0 {
        return Err(problem(path, "everybody can write this policy: `chmod o-w` it"));
    }
    text(path, file).map(Some)
}

/// A project's: below its root without any link, so that it is a file of the project and no other.
pub(super) fn project(root: &Path, [folder, name]: [&str; 2]) -> Result<Option<String>, FileProblem> {
    let no_link = OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::RDONLY;
    let path = root.join(folder).join(name);
    let Some(root) = there(root, openat(CWD, root, OFlags::DIRECTORY | OFlags::CLOEXEC | OFlags::RDONLY, Mode::empty()))? else {
        return Ok(None);
    };
    let Some(folder) = there(&path, openat(root, folder, no_link | OFlags::DIRECTORY, Mode::empty()))? else { return Ok(None) };
    let Some(file) = there(&path, openat(folder, name, no_link | OFlags::NONBLOCK, Mode::empty()))? else { return Ok(None) };
    text(&path, file).map(Some)
}

/// An open file, or that there is none.
fn there<F: Into<File>, E: Into<io::Error>>(path: &Path, opened: Result<F, E>) -> Result<Option<File>, FileProblem> {
    match opened.map_err(Into::into) {
        Ok(file) => Ok(Some(file.into())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) if error.raw_os_error() == Some(rustix::io::Errno::LOOP.raw_os_error()) => {
            Err(problem(path, "this policy is a link, or below one; put the file itself there"))
        }
        Err(error) => Err(cannot_read(path)(error)),
    }
}

fn text(path: &Path, file: File) -> Result<String, FileProblem> {
    let metadata = file.metadata().map_err(cannot_read(path))?;
    if !metadata.is_file() {
        return Err(problem(path, "this policy is not a file"));
    }
    if metadata.len() > LARGEST {
        return Err(problem(path, format!("this policy has {} bytes; at most {LARGEST} are read", metadata.len())));
    }
    let mut text = String::new();
    file.take(LARGEST).read_to_string(&mut text).map_err(cannot_read(path))?;
    Ok(text)
}
