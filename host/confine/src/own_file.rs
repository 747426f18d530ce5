//! Directories and files that only this user can have written. Their contents are trusted with the
//! permissions of this user.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Read as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::Path;

use rustix::fs::OFlags;

use crate::private_dir::{self, PrivateDirError};

/// Checks that a path is a directory of this user that nobody else can write, and not a link.
/// Returns whether it exists.
///
/// # Errors
/// The directory exists but fails the check, or cannot be examined.
pub fn find_dir(path: &Path) -> Result<bool, PrivateDirError> {
    let metadata = match fs::symlink_metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
        metadata => metadata?,
    };
    if metadata.is_symlink() {
        return Err(PrivateDirError::NotPrivate("is a link"));
    }
    if !metadata.is_dir() {
        return Err(PrivateDirError::NotPrivate("is not a directory"));
    }
    private_dir::check_file(&metadata).map(|()| true)
}

/// Creates a directory and its parents for this user alone, or checks the existing one like
/// [`find_dir`].
pub fn create_dir(path: &Path) -> Result<(), PrivateDirError> {
    DirBuilder::new().recursive(true).mode(0o700).create(path)?;
    find_dir(path).map(drop)
}

/// Creates or checks a directory like [`create_dir`], but returns an [`io::Error`].
pub fn create_dir_io(path: &Path) -> io::Result<()> {
    create_dir(path).map_err(|problem| describe(path, problem))
}

/// Checks a directory like [`find_dir`], but returns an [`io::Error`].
pub fn find_dir_io(path: &Path) -> io::Result<bool> {
    find_dir(path).map_err(|problem| describe(path, problem))
}

fn describe(path: &Path, problem: PrivateDirError) -> io::Error {
    match problem {
        PrivateDirError::Io(error) => error,
        PrivateDirError::NotPrivate(reason) => {
            refusal(&format!("{} {reason}, so it is not used", path.display()))
        }
    }
}

/// Opens a regular file of this user that nobody else can write and that has at most `max_size`
/// bytes.
///
/// Follows no links and never blocks.
pub fn open(path: &Path, max_size: u64) -> io::Result<File> {
    let file = OpenOptions::new().read(true).custom_flags(safe_flags()).open(path);
    let file = file.map_err(explain_link)?;
    let size = check(&file)?.len();
    if size > max_size {
        return Err(too_large(max_size));
    }
    Ok(file)
}

/// Reads a file that meets the conditions of [`open`].
pub fn read(path: &Path, max_size: u64) -> io::Result<Vec<u8>> {
    read_limited(open(path, max_size)?, max_size)
}

/// Opens a lock file of this user for writing, and creates it if it does not exist.
pub fn open_lock(path: &Path) -> io::Result<File> {
    let file = OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .custom_flags(safe_flags())
        .open(path);
    let file = file.map_err(explain_link)?;
    if file.metadata()?.is_file() { Ok(file) } else { Err(refusal("it is not a regular file")) }
}

/// Checks that an open file is a regular file of this user that nobody else can write.
pub fn check(file: &File) -> io::Result<fs::Metadata> {
    let metadata = file.metadata()?;
    if !metadata.is_file() {
        return Err(refusal("it is not a regular file"));
    }
    match private_dir::check_file(&metadata) {
        Ok(()) => Ok(metadata),
        Err(PrivateDirError::Io(error)) => Err(error),
        Err(PrivateDirError::NotPrivate(reason)) => Err(refusal(&format!("it {reason}"))),
    }
}

/// Reads a regular file of any owner that has at most `max_size` bytes.
///
/// Follows links and never blocks.
pub fn read_regular(path: &Path, max_size: u64) -> io::Result<Vec<u8>> {
    let file = OpenOptions::new().read(true).custom_flags(nonblocking_flags()).open(path)?;
    let metadata = file.metadata()?;
    if !metadata.is_file() {
        return Err(refusal("it is not a regular file"));
    }
    if metadata.len() > max_size {
        return Err(too_large(max_size));
    }
    read_limited(file, max_size)
}

/// Reads a UTF-8 file that meets the conditions of [`read_regular`].
pub fn read_regular_text(path: &Path, max_size: u64) -> io::Result<String> {
    String::from_utf8(read_regular(path, max_size)?)
        .map_err(|_| io::Error::new(io::ErrorKind::InvalidData, "it is not UTF-8"))
}

/// Returns the flags for opening a file without blocking on a FIFO or following a link.
pub fn safe_flags() -> i32 {
    i32::try_from((OFlags::NONBLOCK | OFlags::NOFOLLOW).bits()).unwrap_or_default()
}

/// Returns the flags for opening a file without blocking on a FIFO.
pub fn nonblocking_flags() -> i32 {
    i32::try_from(OFlags::NONBLOCK.bits()).unwrap_or_default()
}

fn read_limited(file: File, max_size: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    // The file may grow meanwhile.
    let read = file.take(max_size.saturating_add(1)).read_to_end(&mut bytes)?;
    if read as u64 > max_size { Err(too_large(max_size)) } else { Ok(bytes) }
}

fn explain_link(error: io::Error) -> io::Error {
    if error.raw_os_error() == Some(rustix::io::Errno::LOOP.raw_os_error()) {
        refusal("it is a link")
    } else if error.raw_os_error() == Some(rustix::io::Errno::NXIO.raw_os_error()) {
        refusal("it is not a regular file")
    } else {
        error
    }
}

fn too_large(max_size: u64) -> io::Error {
    io::Error::new(
        io::ErrorKind::FileTooLarge,
        format!("it has more than {max_size} bytes, the limit"),
    )
}

fn refusal(reason: &str) -> io::Error {
    io::Error::new(io::ErrorKind::PermissionDenied, reason)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    use super::*;

    fn set_mode(path: &Path, mode: u32) {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("it is ours");
    }

    fn make_fifo(path: &Path) {
        let kind = rustix::fs::FileType::Fifo;
        rustix::fs::mknodat(rustix::fs::CWD, path, kind, rustix::fs::Mode::RWXU, 0)
            .expect("a FIFO");
    }

    #[test]
    fn only_a_directory_that_nobody_else_can_write_is_used() {
        let temp = tempfile::tempdir().expect("a directory");
        let path = temp.path().join("dir");
        assert!(!find_dir(&path).expect("it is not there"));
        create_dir(&path).expect("it is made");
        for (mode, expected) in [
            (0o700, "ok"),
            (0o755, "ok"),
            (0o777, "is writable by other users"),
            (0o770, "is writable by other users"),
            (0o1777, "is writable by other users"),
        ] {
            set_mode(&path, mode);
            let found = create_dir(&path).map_or_else(|e| e.to_string(), |()| "ok".into());
            assert_eq!(found, expected, "{mode:o}");
        }
        let link = temp.path().join("link");
        symlink(&path, &link).expect("a link");
        set_mode(&path, 0o700);
        assert_eq!(find_dir(&link).unwrap_err().to_string(), "is a link");
        fs::write(temp.path().join("file"), "").expect("a file");
        let found = find_dir(&temp.path().join("file")).unwrap_err().to_string();
        assert_eq!(found, "is not a directory");
        if rustix::process::geteuid().is_root() {
            std::os::unix::fs::chown(&path, Some(65_534), None).expect("root can");
            assert_eq!(find_dir(&path).unwrap_err().to_string(), "belongs to another user");
        }
    }

    #[test]
    fn only_a_bounded_regular_file_that_nobody_else_can_write_is_read() {
        let temp = tempfile::tempdir().expect("a directory");
        let [file, link, fifo, zero] =
            ["file", "link", "fifo", "zero"].map(|name| temp.path().join(name));
        fs::write(&file, "12345").expect("a file");
        set_mode(&file, 0o644);
        symlink(&file, &link).expect("a link");
        symlink("/dev/zero", &zero).expect("a link");
        make_fifo(&fifo);
        let problem = |path: &Path, max: u64| read(path, max).unwrap_err().to_string();
        assert_eq!(read(&file, 5).expect("it is read"), b"12345");
        assert!(problem(&file, 4).contains("more than 4 bytes"));
        assert_eq!(problem(&link, 5), "it is a link");
        assert_eq!(problem(&fifo, 5), "it is not a regular file");
        assert_eq!(open_lock(&link).unwrap_err().to_string(), "it is a link");
        assert_eq!(open_lock(&fifo).unwrap_err().to_string(), "it is not a regular file");
        let regular = |path: &Path| read_regular_text(path, 5).map_err(|e| e.to_string());
        assert_eq!(regular(&link).as_deref(), Ok("12345"));
        for path in [&fifo, &zero] {
            assert_eq!(regular(path), Err("it is not a regular file".into()));
        }
        set_mode(&file, 0o666);
        assert_eq!(problem(&file, 5), "it is writable by other users");
        set_mode(&file, 0o644);
        if rustix::process::geteuid().is_root() {
            std::os::unix::fs::chown(&file, Some(65_534), None).expect("root can");
            assert_eq!(problem(&file, 5), "it belongs to another user");
        }
    }
}
