//! Files below an open directory, by paths without any link in them.
//!
//! A *place* is a path below the workspace as it really is: its parts are names, none is `..`, and
//! none of its parents is a symbolic link. Every function here opens the parent of a place without
//! following links, so that a link that takes a directory's place in the meantime is an error and
//! not a way out; and no function waits, whatever a place turns out to be.

use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;

use cap_std::fs::{Dir, Metadata};
use rustix::fs::{Mode, OFlags};

/// So many names of one directory are handed to a guest at the most, for each takes memory of the
/// host.
const MAX_NAMES: usize = 500_000;

/// What a name stands for.
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

/// The place of a name in a directory.
pub(super) fn join(directory: &str, name: &str) -> String {
    if directory.is_empty() { name.to_owned() } else { format!("{directory}/{name}") }
}

/// The directory of a place and its name in it. The workspace itself has neither.
pub(super) fn split(place: &str) -> (&str, &str) {
    place.rsplit_once('/').unwrap_or(("", place))
}

/// Opens a directory, for what is in it.
pub(super) fn open_dir(root: &Dir, place: &str) -> io::Result<Dir> {
    if place.is_empty() {
        return root.try_clone();
    }
    Ok(Dir::from_std_file(File::from(open_dir_fd(root, place)?)))
}

#[cfg(target_os = "linux")]
fn open_dir_fd(root: &Dir, place: &str) -> io::Result<OwnedFd> {
    use rustix::fs::ResolveFlags;
    use rustix::io::Errno;
    let how = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    match rustix::fs::openat2(root, place, how, Mode::empty(), resolve) {
        // Old kernels do not know it, and old containers forbid it.
        Err(Errno::NOSYS | Errno::PERM) => open_dir_by_components(root, place),
        opened => Ok(opened?),
    }
}

#[cfg(not(target_os = "linux"))]
fn open_directory(root: &Dir, place: &str) -> io::Result<OwnedFd> {
    open_dir_by_components(root, place)
}

fn open_dir_by_components(root: &Dir, place: &str) -> io::Result<OwnedFd> {
    let how = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let open = |directory: std::os::fd::BorrowedFd<'_>, name: &str| {
        rustix::fs::openat(directory, name, how, Mode::empty())
    };
    let mut names = place.split('/');
    let first = names.next().unwrap_or_default();
    let mut opened = open(std::os::fd::AsFd::as_fd(root), first)?;
    for name in names {
        opened = open(std::os::fd::AsFd::as_fd(&opened), name)?;
    }
    Ok(opened)
}

/// What is at a place; a link is itself.
pub(super) fn symlink_metadata(root: &Dir, place: &str) -> io::Result<Metadata> {
    if place.is_empty() {
        return root.dir_metadata();
    }
    let (parent, name) = split(place);
    // The root is at hand, and most places lie deeper than that.
    if parent.is_empty() {
        root.symlink_metadata(name)
    } else {
        open_dir(root, parent)?.symlink_metadata(name)
    }
}

/// The same; `None` if there is nothing.
pub(super) fn find_metadata(root: &Dir, place: &str) -> io::Result<Option<Metadata>> {
    match symlink_metadata(root, place) {
        Ok(metadata) => Ok(Some(metadata)),
        Err(error)
            if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) =>
        {
            Ok(None)
        }
        // One of its parents is a link, so that this is no place.
        Err(error) if error.raw_os_error() == Some(rustix::io::Errno::LOOP.raw_os_error()) => {
            Ok(None)
        }
        Err(error) => Err(error),
    }
}

/// Opens a file for reading. What is no file is an error, before it is opened and, should it have
/// changed, after.
pub(super) fn open(root: &Dir, place: &str) -> io::Result<(File, Metadata)> {
    let (parent, name) = split(place);
    let parent = open_dir(root, parent)?;
    let no_file = || io::Error::from(io::ErrorKind::InvalidInput);
    if FileKind::from_metadata(&parent.symlink_metadata(name)?) != FileKind::File {
        return Err(no_file());
    }
    let how =
        OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let file = File::from(rustix::fs::openat(&parent, name, how, Mode::empty())?);
    let metadata = Metadata::from_file(&file)?;
    if FileKind::from_metadata(&metadata) == FileKind::File {
        Ok((file, metadata))
    } else {
        Err(no_file())
    }
}

/// The same for what a listing has just called a file, in as few steps as there are.
#[cfg(target_os = "linux")]
pub(super) fn open_listed(root: &Dir, place: &str) -> io::Result<(File, Metadata)> {
    use rustix::fs::ResolveFlags;
    let how =
        OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    let Ok(opened) = rustix::fs::openat2(root, place, how, Mode::empty(), resolve) else {
        return open(root, place);
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
pub(super) fn open_listed(root: &Dir, place: &str) -> io::Result<(File, Metadata)> {
    open(root, place)
}

/// Whether this process may write to a file, or make files in a directory, as far as the system
/// says.
pub(super) fn check_writable(root: &Dir, place: &str) -> io::Result<()> {
    let (parent, name) = split(place);
    let name = if name.is_empty() { "." } else { name };
    Ok(rustix::fs::accessat(
        open_dir(root, parent)?,
        name,
        rustix::fs::Access::WRITE_OK,
        rustix::fs::AtFlags::empty(),
    )?)
}

/// Where a link leads, as it stands in it.
pub(super) fn read_link(root: &Dir, place: &str) -> io::Result<String> {
    let (parent, name) = split(place);
    let target = rustix::fs::readlinkat(open_dir(root, parent)?, name, Vec::new())?;
    target
        .into_string()
        .map_err(|_| io::Error::from_raw_os_error(rustix::io::Errno::ILSEQ.raw_os_error()))
}

/// A name that is not UTF-8, which nothing below a workspace can be opened by. It is shown with the
/// other bytes as `\xff`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the name of `{}` is not UTF-8, so that it cannot be opened", .0.escape_ascii())]
pub(super) struct ForeignName(Vec<u8>);

impl From<ForeignName> for io::Error {
    fn from(_: ForeignName) -> Self {
        Self::from_raw_os_error(rustix::io::Errno::ILSEQ.raw_os_error())
    }
}

/// The names in a directory, in no order, at most as many as there may be.
pub(super) fn list(
    root: &Dir,
    place: &str,
) -> io::Result<Vec<Result<(String, FileKind), ForeignName>>> {
    let directory = open_dir(root, place)?;
    // What was opened for what is in it need not be open for reading.
    let how = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let listed = rustix::fs::Dir::new(rustix::fs::openat(&directory, ".", how, Mode::empty())?)?;
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
            // Some file systems do not say, and then it may be gone by now.
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
    fn a_name_that_is_no_text_is_named_and_not_its_directory() {
        use std::os::unix::ffi::OsStrExt as _;
        let (folder, root) = folder();
        std::fs::write(folder.path().join(std::ffi::OsStr::from_bytes(b"gr\xfc\xdfe\n.txt")), "")
            .expect("the disk takes it");
        let foreign: Vec<String> = list(&root, "")
            .expect("it is there")
            .into_iter()
            .filter_map(|name| Some(name.err()?.to_string()))
            .collect();
        assert_eq!(
            foreign,
            ["the name of `gr\\xfc\\xdfe\\n.txt` is not UTF-8, so that it cannot be opened"]
        );
    }

    fn folder() -> (tempfile::TempDir, Dir) {
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::create_dir_all(folder.path().join("a/b")).expect("folders");
        std::fs::write(folder.path().join("a/b/file"), "content").expect("it is written");
        symlink("a", folder.path().join("link")).expect("a link");
        let root =
            Dir::open_ambient_dir(folder.path(), cap_std::ambient_authority()).expect("it opens");
        (folder, root)
    }

    #[test]
    fn r123_no_link_is_followed_on_the_way() {
        let (_folder, root) = folder();
        assert!(open(&root, "a/b/file").is_ok());
        for place in ["link/b/file", "link/b", "link"] {
            assert!(open_dir(&root, place).is_err(), "{place}");
            assert!(open_dir_by_components(&root, place).is_err(), "{place}");
            assert!(open(&root, place).is_err(), "{place}");
        }
        assert!(open_dir_by_components(&root, "a/b").is_ok());
        assert_eq!(
            symlink_metadata(&root, "link").map(|metadata| FileKind::from_metadata(&metadata)).ok(),
            Some(FileKind::Link)
        );
        assert_eq!(read_link(&root, "link").ok().as_deref(), Some("a"));
    }

    #[test]
    fn what_is_no_file_is_not_opened_and_nothing_waits() {
        let (folder, root) = folder();
        let made = std::process::Command::new("mkfifo").arg(folder.path().join("fifo")).status();
        assert!(made.expect("it starts").success());
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
