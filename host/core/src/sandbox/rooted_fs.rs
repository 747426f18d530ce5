//! File operations below an open directory, by paths without links.
//!
//! All paths here are *resolved*: relative to the workspace, made of names without `..`, and
//! without a symbolic link among their parents. Every function opens the parent of a path without
//! following links. If a link replaces a directory meanwhile, that is an error and not a way out of
//! the workspace. No function blocks, whatever kind of file a path leads to.

use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;

use cap_std::fs::{Dir, Metadata};
use rustix::fs::{Mode, OFlags};

/// The number of names of one directory that a guest can get. Each takes memory of the host.
const MAX_NAMES: usize = 500_000;

/// The kind of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FileKind {
    File,
    Directory,
    Link,
    /// A FIFO, a socket or a device.
    Special,
}

impl FileKind {
    pub(super) fn from_metadata(metadata: &Metadata) -> Self {
        let kind = metadata.file_type();
        if kind.is_file() {
            Self::File
        } else if kind.is_dir() {
            Self::Directory
        } else if kind.is_symlink() {
            Self::Link
        } else {
            Self::Special
        }
    }

    fn from_file_type(kind: rustix::fs::FileType) -> Option<Self> {
        use rustix::fs::FileType;
        match kind {
            FileType::RegularFile => Some(Self::File),
            FileType::Directory => Some(Self::Directory),
            FileType::Symlink => Some(Self::Link),
            FileType::Fifo
            | FileType::Socket
            | FileType::CharacterDevice
            | FileType::BlockDevice => Some(Self::Special),
            FileType::Unknown => None,
        }
    }
}

/// Appends a name to the path of a directory.
pub(super) fn join(directory: &str, name: &str) -> String {
    if directory.is_empty() { name.to_owned() } else { format!("{directory}/{name}") }
}

/// Splits a path into its directory and its name. For the workspace itself both are empty.
pub(super) fn split(path: &str) -> (&str, &str) {
    path.rsplit_once('/').unwrap_or(("", path))
}

/// Opens a directory for access to its entries.
pub(super) fn open_dir(root: &Dir, path: &str) -> io::Result<Dir> {
    if path.is_empty() {
        return root.try_clone();
    }
    Ok(Dir::from_std_file(File::from(open_dir_fd(root, path)?)))
}

#[cfg(target_os = "linux")]
fn open_dir_fd(root: &Dir, path: &str) -> io::Result<OwnedFd> {
    use rustix::fs::ResolveFlags;
    use rustix::io::Errno;
    let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    match rustix::fs::openat2(root, path, flags, Mode::empty(), resolve) {
        // Old kernels do not have openat2, and old containers forbid it.
        Err(Errno::NOSYS | Errno::PERM) => open_dir_by_components(root, path),
        opened => Ok(opened?),
    }
}

#[cfg(not(target_os = "linux"))]
fn open_dir_fd(root: &Dir, path: &str) -> io::Result<OwnedFd> {
    open_dir_by_components(root, path)
}

fn open_dir_by_components(root: &Dir, path: &str) -> io::Result<OwnedFd> {
    let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let open = |directory: std::os::fd::BorrowedFd<'_>, name: &str| {
        rustix::fs::openat(directory, name, flags, Mode::empty())
    };
    let mut names = path.split('/');
    let first = names.next().unwrap_or_default();
    let mut opened = open(std::os::fd::AsFd::as_fd(root), first)?;
    for name in names {
        opened = open(std::os::fd::AsFd::as_fd(&opened), name)?;
    }
    Ok(opened)
}

/// Returns the metadata of a path, without following a link.
pub(super) fn symlink_metadata(root: &Dir, path: &str) -> io::Result<Metadata> {
    if path.is_empty() {
        return root.dir_metadata();
    }
    let (parent, name) = split(path);
    // The root is already open, so only deeper paths need another open.
    if parent.is_empty() {
        root.symlink_metadata(name)
    } else {
        open_dir(root, parent)?.symlink_metadata(name)
    }
}

/// Returns the metadata of a path, or `None` if it does not exist.
pub(super) fn find_metadata(root: &Dir, path: &str) -> io::Result<Option<Metadata>> {
    match symlink_metadata(root, path) {
        Ok(metadata) => Ok(Some(metadata)),
        Err(error)
            if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) =>
        {
            Ok(None)
        }
        // One of the parents is a link, so the path is not resolved.
        Err(error) if error.raw_os_error() == Some(rustix::io::Errno::LOOP.raw_os_error()) => {
            Ok(None)
        }
        Err(error) => Err(error),
    }
}

/// Opens a regular file for reading. Anything else is an error. The kind is checked before the file
/// is opened and again after.
pub(super) fn open(root: &Dir, path: &str) -> io::Result<(File, Metadata)> {
    let (parent, name) = split(path);
    let parent = open_dir(root, parent)?;
    let no_file = || io::Error::from(io::ErrorKind::InvalidInput);
    if FileKind::from_metadata(&parent.symlink_metadata(name)?) != FileKind::File {
        return Err(no_file());
    }
    let flags =
        OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let file = File::from(rustix::fs::openat(&parent, name, flags, Mode::empty())?);
    let metadata = Metadata::from_file(&file)?;
    if FileKind::from_metadata(&metadata) == FileKind::File {
        Ok((file, metadata))
    } else {
        Err(no_file())
    }
}

/// Opens a file that a listing has just reported as regular, with as few system calls as possible.
#[cfg(target_os = "linux")]
pub(super) fn open_listed(root: &Dir, path: &str) -> io::Result<(File, Metadata)> {
    use rustix::fs::ResolveFlags;
    let flags =
        OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    let Ok(opened) = rustix::fs::openat2(root, path, flags, Mode::empty(), resolve) else {
        return open(root, path);
    };
    let file = File::from(opened);
    let metadata = Metadata::from_file(&file)?;
    if FileKind::from_metadata(&metadata) == FileKind::File {
        Ok((file, metadata))
    } else {
        Err(io::ErrorKind::InvalidInput.into())
    }
}

#[cfg(not(target_os = "linux"))]
pub(super) fn open_listed(root: &Dir, path: &str) -> io::Result<(File, Metadata)> {
    open(root, path)
}

/// Checks whether this process may write to a file, or create files in a directory, according to
/// the system.
pub(super) fn check_writable(root: &Dir, path: &str) -> io::Result<()> {
    let (parent, name) = split(path);
    let name = if name.is_empty() { "." } else { name };
    Ok(rustix::fs::accessat(
        open_dir(root, parent)?,
        name,
        rustix::fs::Access::WRITE_OK,
        rustix::fs::AtFlags::empty(),
    )?)
}

/// Returns when an entry was created, in seconds and nanoseconds since 1970.
#[cfg(target_os = "linux")]
pub(super) fn created(parent: &Dir, name: &str) -> Option<(i64, u32)> {
    use rustix::fs::{AtFlags, StatxFlags, statx};
    let found = statx(parent, name, AtFlags::SYMLINK_NOFOLLOW, StatxFlags::BTIME).ok()?;
    let is_known = found.stx_mask & StatxFlags::BTIME.bits() != 0;
    is_known.then_some((found.stx_btime.tv_sec, found.stx_btime.tv_nsec))
}

/// Nothing needs this here.
#[cfg(not(target_os = "linux"))]
pub(super) fn created(_parent: &Dir, _name: &str) -> Option<(i64, u32)> {
    None
}

/// Sets the permissions of a file or a directory, also of one that this user cannot open. Fails for
/// a symbolic link.
#[cfg(target_os = "linux")]
pub(super) fn set_mode(parent: &Dir, name: &str, mode: u32) -> io::Result<()> {
    use std::os::fd::AsRawFd as _;
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let entry = rustix::fs::openat(parent, name, flags, Mode::empty())?;
    let path = format!("/proc/self/fd/{}", entry.as_raw_fd());
    Ok(rustix::fs::chmod(path, Mode::from_bits_truncate(mode))?)
}

/// Sets the permissions of a file or a directory that this user can open.
#[cfg(not(target_os = "linux"))]
pub(super) fn set_mode(parent: &Dir, name: &str, mode: u32) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt as _;
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let entry = File::from(rustix::fs::openat(parent, name, flags, Mode::empty())?);
    entry.set_permissions(std::fs::Permissions::from_mode(mode))
}

/// Returns the text of a symbolic link.
pub(super) fn read_link(root: &Dir, path: &str) -> io::Result<String> {
    let (parent, name) = split(path);
    let target = rustix::fs::readlinkat(open_dir(root, parent)?, name, Vec::new())?;
    target
        .into_string()
        .map_err(|_| io::Error::from_raw_os_error(rustix::io::Errno::ILSEQ.raw_os_error()))
}

/// An error for a name that is not UTF-8. Such a file cannot be opened below a workspace. The name
/// is shown with its other bytes as `\xff`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("cannot open `{}`: its name is not UTF-8", .0.escape_ascii())]
pub(super) struct ForeignName(Vec<u8>);

impl From<ForeignName> for io::Error {
    fn from(_: ForeignName) -> Self {
        Self::from_raw_os_error(rustix::io::Errno::ILSEQ.raw_os_error())
    }
}

/// Returns the names in a directory, unsorted. Fails if there are more than [`MAX_NAMES`].
pub(super) fn list(
    root: &Dir,
    path: &str,
) -> io::Result<Vec<Result<(String, FileKind), ForeignName>>> {
    let directory = open_dir(root, path)?;
    // The directory was opened for access to its entries only, which may not include reading it.
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let listed = rustix::fs::Dir::new(rustix::fs::openat(&directory, ".", flags, Mode::empty())?)?;
    let mut names = Vec::new();
    for entry in listed {
        let entry = entry?;
        if names.len() == MAX_NAMES {
            return Err(io::Error::from_raw_os_error(rustix::io::Errno::OVERFLOW.raw_os_error()));
        }
        let name = match entry.file_name().to_str() {
            Ok("." | "..") => continue,
            Ok(name) => name.to_owned(),
            Err(_) => {
                names.push(Err(ForeignName(entry.file_name().to_bytes().to_vec())));
                continue;
            }
        };
        let kind = match FileKind::from_file_type(entry.file_type()) {
            Some(kind) => kind,
            // Some file systems do not report the kind, and the entry may be gone by now.
            None => match directory.symlink_metadata(&name) {
                Ok(metadata) => FileKind::from_metadata(&metadata),
                Err(_) => continue,
            },
        };
        names.push(Ok((name, kind)));
    }
    Ok(names)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[cfg(target_os = "linux")]
    #[test]
    fn the_error_for_a_foreign_name_names_the_file() {
        use std::os::unix::ffi::OsStrExt as _;
        let (directory, root) = test_directory();
        std::fs::write(
            directory.path().join(std::ffi::OsStr::from_bytes(b"gr\xfc\xdfe\n.txt")),
            "",
        )
        .expect("the disk takes it");
        let foreign: Vec<String> = list(&root, "")
            .expect("it is there")
            .into_iter()
            .filter_map(|name| Some(name.err()?.to_string()))
            .collect();
        assert_eq!(foreign, ["cannot open `gr\\xfc\\xdfe\\n.txt`: its name is not UTF-8"]);
    }

    fn test_directory() -> (tempfile::TempDir, Dir) {
        let directory = tempfile::tempdir().expect("create a temporary directory");
        std::fs::create_dir_all(directory.path().join("a/b")).expect("create the directory");
        std::fs::write(directory.path().join("a/b/file"), "content").expect("write the file");
        symlink("a", directory.path().join("link")).expect("create the link");
        let root = Dir::open_ambient_dir(directory.path(), cap_std::ambient_authority())
            .expect("it opens");
        (directory, root)
    }

    #[test]
    fn r123_links_in_the_path_are_not_followed() {
        let (_directory, root) = test_directory();
        assert!(open(&root, "a/b/file").is_ok());
        for path in ["link/b/file", "link/b", "link"] {
            assert!(open_dir(&root, path).is_err(), "{path}");
            assert!(open_dir_by_components(&root, path).is_err(), "{path}");
            assert!(open(&root, path).is_err(), "{path}");
        }
        assert!(open_dir_by_components(&root, "a/b").is_ok());
        assert_eq!(
            symlink_metadata(&root, "link").map(|metadata| FileKind::from_metadata(&metadata)).ok(),
            Some(FileKind::Link)
        );
        assert_eq!(read_link(&root, "link").ok().as_deref(), Some("a"));
    }

    #[test]
    fn only_regular_files_are_opened_and_nothing_blocks() {
        let (directory, root) = test_directory();
        let status =
            std::process::Command::new("mkfifo").arg(directory.path().join("fifo")).status();
        assert!(status.expect("it starts").success());
        assert!(open(&root, "fifo").is_err());
        assert!(open(&root, "a").is_err());
        let mut names: Vec<_> = list(&root, "")
            .expect("it lists")
            .into_iter()
            .map(|name| name.expect("it is text"))
            .collect();
        names.sort_by(|a, b| a.0.cmp(&b.0));
        assert_eq!(
            names,
            [
                ("a".into(), FileKind::Directory),
                ("fifo".into(), FileKind::Special),
                ("link".into(), FileKind::Link)
            ]
        );
    }
}
