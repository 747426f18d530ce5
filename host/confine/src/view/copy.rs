//! Copies new entries out of a layer that is still in use, for a checkpoint.

use std::collections::HashMap;
use std::ffi::{CStr, CString, OsStr};
use std::fs::File;
use std::io::{self, Read as _, Seek as _};
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::fs::{
    AtFlags, FileType, Gid, Mode, OFlags, SeekFrom, Stat, Timespec, Timestamps, Uid, XattrFlags,
    chmodat, chownat, linkat, lsetxattr, mkdirat, openat, readlinkat, seek, statat, symlinkat,
    utimensat,
};
use rustix::io::Errno;

use super::clean::{EntrySize, attributes, is_whiteout, names_in, open_below, path_of};
use super::committed::{CopiedEntry, EntryStamp};

/// The maximum size of the files that a checkpoint copies, in bytes, as much as undo keeps.
const MAX_COPIED_BYTES: u64 = if cfg!(test) { 1 << 20 } else { 1 << 30 };
/// The maximum number of entries that a checkpoint copies.
const MAX_COPIED_ENTRIES: usize = if cfg!(test) { 1000 } else { 200_000 };
/// The time for a checkpoint, in which the command is paused.
const COPY_TIMEOUT: Duration = Duration::from_secs(30);
/// The prefix of the names of attributes that the system itself sets.
const SYSTEM_ATTRIBUTES: &[u8] = b"security.";
/// The attribute with the privileges of a program file.
const CAPABILITY_ATTRIBUTE: &[u8] = b"security.capability";

/// Copies the new entries of one checkpoint, within its limits.
pub(crate) struct EntryCopier<'a> {
    /// Returns whether nobody wants the checkpoint any more.
    is_cancelled: &'a mut dyn FnMut() -> bool,
    deadline: Instant,
    bytes_left: u64,
    entries_left: usize,
    /// The first copy of each file with several names, by its number, so that the copies are one
    /// file, too.
    pub(super) linked: HashMap<u64, PathBuf>,
    /// What was copied so far, also under several names.
    pub(super) copied: Vec<CopiedEntry>,
}

/// A directory of which the entries are copied. Its own attributes come last, because they may
/// forbid changes.
struct CopiedDirectory {
    path: PathBuf,
    status: Stat,
}

/// An entry to copy, and the place of its copy.
struct CopySource<'a> {
    from: BorrowedFd<'a>,
    from_name: &'a CStr,
    status: &'a Stat,
    to: BorrowedFd<'a>,
    to_name: &'a CStr,
}

impl<'a> CopySource<'a> {
    /// An entry whose copy has the same name.
    fn of_same_name(from: &'a OwnedFd, to: &'a OwnedFd, name: &'a CStr, status: &'a Stat) -> Self {
        Self { from: from.as_fd(), from_name: name, status, to: to.as_fd(), to_name: name }
    }
}

impl<'a> EntryCopier<'a> {
    pub(crate) fn new(is_cancelled: &'a mut dyn FnMut() -> bool) -> Self {
        Self {
            is_cancelled,
            deadline: Instant::now() + COPY_TIMEOUT,
            bytes_left: MAX_COPIED_BYTES,
            entries_left: MAX_COPIED_ENTRIES,
            linked: HashMap::new(),
            copied: Vec::new(),
        }
    }

    /// Checks that the checkpoint may go on.
    ///
    /// # Errors
    /// Nobody wants it any more, or it takes too long.
    pub(super) fn check_time(&mut self) -> io::Result<()> {
        if (self.is_cancelled)() {
            return Err(io::Error::other("it was cancelled"));
        }
        if Instant::now() > self.deadline {
            let seconds = COPY_TIMEOUT.as_secs();
            return Err(io::Error::other(format!(
                "reading the changes takes more than {seconds} s"
            )));
        }
        Ok(())
    }

    /// Copies an entry with everything below it, without the marks of overlayfs.
    ///
    /// `path` is its path in the workspace, for the list of what was copied.
    ///
    /// # Errors
    /// An entry cannot be copied, or the checkpoint reaches a limit.
    pub(super) fn copy_entry(
        &mut self,
        (from, from_name): (BorrowedFd<'_>, &CStr),
        status: &Stat,
        (to, to_name): (BorrowedFd<'_>, &CStr),
        path: &Path,
    ) -> io::Result<EntrySize> {
        let mut size = EntrySize::default();
        let to_path = PathBuf::from(OsStr::from_bytes(to_name.to_bytes()));
        self.copy_one(&CopySource { from, from_name, status, to, to_name }, &to_path, &mut size)?;
        if FileType::from_raw_mode(status.st_mode) == FileType::Directory {
            self.copy_below((from, from_name), (to, to_name), (path, &to_path), &mut size)?;
            set_attributes(&CopySource { from, from_name, status, to, to_name })?;
        }
        self.add_copied(path, status, to, to_name)?;
        Ok(size)
    }

    fn copy_below(
        &mut self,
        (from, from_name): (BorrowedFd<'_>, &CStr),
        (to, to_name): (BorrowedFd<'_>, &CStr),
        (path, to_path): (&Path, &Path),
        size: &mut EntrySize,
    ) -> io::Result<()> {
        let named = |name: &CStr| PathBuf::from(OsStr::from_bytes(name.to_bytes()));
        let (from_top, to_top) =
            (open_below(from, &named(from_name))?, open_below(to, &named(to_name))?);
        let mut pending = vec![PathBuf::new()];
        let mut directories = Vec::new();
        while let Some(below) = pending.pop() {
            let (source, target) = (open_below(&from_top, &below)?, open_below(&to_top, &below)?);
            for name in names_in(&source)? {
                let status = statat(&source, &*name, AtFlags::SYMLINK_NOFOLLOW)?;
                if is_whiteout(&status) {
                    continue;
                }
                size.entries += 1;
                let inner = below.join(OsStr::from_bytes(name.to_bytes()));
                let one = CopySource::of_same_name(&source, &target, &name, &status);
                self.copy_one(&one, &to_path.join(&inner), size)?;
                if FileType::from_raw_mode(status.st_mode) == FileType::Directory {
                    pending.push(inner.clone());
                    directories.push(CopiedDirectory { path: inner, status });
                } else {
                    self.add_copied(&path.join(&inner), &status, target.as_fd(), &name)?;
                }
            }
        }
        for CopiedDirectory { path: inner, status } in directories.into_iter().rev() {
            let parent = inner.parent().unwrap_or(Path::new(""));
            let (source, target) = (open_below(&from_top, parent)?, open_below(&to_top, parent)?);
            let name = CString::new(inner.file_name().unwrap_or_default().as_bytes())?;
            let one = CopySource::of_same_name(&source, &target, &name, &status);
            set_attributes(&one)?;
            self.add_copied(&path.join(&inner), &status, target.as_fd(), &name)?;
        }
        Ok(())
    }

    /// Copies one entry. A directory gets its entries and attributes later.
    fn copy_one(
        &mut self,
        one: &CopySource<'_>,
        to_path: &Path,
        size: &mut EntrySize,
    ) -> io::Result<()> {
        self.check_time()?;
        self.entries_left = self.entries_left.checked_sub(1).ok_or_else(|| {
            io::Error::other(format!(
                "the command wrote more than {MAX_COPIED_ENTRIES} files and directories"
            ))
        })?;
        match FileType::from_raw_mode(one.status.st_mode) {
            FileType::Directory => {
                mkdirat(one.to, one.to_name, Mode::RWXU)?;
                return Ok(());
            }
            FileType::RegularFile => {
                let length = u64::try_from(one.status.st_size).unwrap_or(0);
                size.bytes = size.bytes.saturating_add(length);
                if self.link_copy(one, to_path)? {
                    return Ok(());
                }
                self.copy_file(one)?;
            }
            FileType::Symlink => {
                let target = readlinkat(one.from, one.from_name, Vec::new())?;
                symlinkat(&*target, one.to, one.to_name)?;
            }
            kind => create_special(one, kind)?,
        }
        set_attributes(one)
    }

    /// Gives the copy of a file another name, if the file was copied before under another one.
    fn link_copy(&mut self, one: &CopySource<'_>, to_path: &Path) -> io::Result<bool> {
        if one.status.st_nlink <= 1 {
            return Ok(false);
        }
        let Some(first) = self.linked.get(&one.status.st_ino) else {
            self.linked.insert(one.status.st_ino, to_path.to_owned());
            return Ok(false);
        };
        // The directory of entries is as many levels above as the path has components.
        let mut top: OwnedFd = one.to.try_clone_to_owned()?;
        for _ in 1..to_path.components().count() {
            top = openat(&top, "..", OFlags::PATH | OFlags::DIRECTORY, Mode::empty())?;
        }
        linkat(&top, first, one.to, one.to_name, AtFlags::empty())?;
        Ok(true)
    }

    fn copy_file(&mut self, one: &CopySource<'_>) -> io::Result<()> {
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let source = File::from(openat(one.from, one.from_name, flags, Mode::empty())?);
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
        let target = File::from(openat(one.to, one.to_name, flags, Mode::RUSR | Mode::WUSR)?);
        if share_content(&source, &target) {
            return Ok(());
        }
        let length = u64::try_from(one.status.st_size).unwrap_or(0);
        let mut end = 0;
        // Only data is copied, so that holes stay holes.
        while let Some(start) = find_data(&source, end, length)? {
            end = seek(&source, SeekFrom::Hole(start))?.min(length);
            self.copy_data((&source, &target), start, end)?;
        }
        target.set_len(length)
    }

    fn copy_data(
        &mut self,
        (mut source, mut target): (&File, &File),
        start: u64,
        end: u64,
    ) -> io::Result<()> {
        /// The bytes between two looks at the clock.
        const PIECE: u64 = 16 << 20;
        source.seek(io::SeekFrom::Start(start))?;
        target.seek(io::SeekFrom::Start(start))?;
        let mut left = end.saturating_sub(start);
        while left > 0 {
            self.check_time()?;
            let piece = left.min(PIECE);
            self.bytes_left = self.bytes_left.checked_sub(piece).ok_or_else(|| {
                io::Error::other(format!(
                    "the command wrote more than {} MiB since the last commit",
                    MAX_COPIED_BYTES >> 20
                ))
            })?;
            let copied = io::copy(&mut source.take(piece), &mut target)?;
            if copied == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            left = left.saturating_sub(copied);
        }
        Ok(())
    }

    fn add_copied(
        &mut self,
        path: &Path,
        source: &Stat,
        to: BorrowedFd<'_>,
        name: &CStr,
    ) -> io::Result<()> {
        let copy = EntryStamp::of(&statat(to, name, AtFlags::SYMLINK_NOFOLLOW)?);
        let source = EntryStamp::of(source);
        self.copied.push(CopiedEntry { path: path.to_owned(), copy, source });
        Ok(())
    }
}

/// Returns the start of the next data of a file, or `None` if only a hole follows.
fn find_data(file: &File, from: u64, length: u64) -> io::Result<Option<u64>> {
    if from >= length {
        return Ok(None);
    }
    match seek(file, SeekFrom::Data(from)) {
        Ok(start) => Ok((start < length).then_some(start)),
        Err(Errno::NXIO) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Sets the extended attributes, the owner, the permissions and the times of a copy.
fn set_attributes(one: &CopySource<'_>) -> io::Result<()> {
    let kind = FileType::from_raw_mode(one.status.st_mode);
    if matches!(kind, FileType::RegularFile | FileType::Directory) {
        let path = path_of(one.to, one.to_name);
        for (name, value) in attributes(one.from, one.from_name)? {
            let bytes = name.to_bytes();
            // The system gives a new file its own label.
            if !bytes.starts_with(SYSTEM_ATTRIBUTES) || bytes == CAPABILITY_ATTRIBUTE {
                lsetxattr(&path, &*name, &value, XattrFlags::empty())?;
            }
        }
    }
    let copy = statat(one.to, one.to_name, AtFlags::SYMLINK_NOFOLLOW)?;
    let (owner, group) = (one.status.st_uid, one.status.st_gid);
    if (copy.st_uid, copy.st_gid) != (owner, group) {
        let (owner, group) = (Uid::from_raw(owner), Gid::from_raw(group));
        chownat(one.to, one.to_name, Some(owner), Some(group), AtFlags::SYMLINK_NOFOLLOW)?;
    }
    if kind != FileType::Symlink {
        // Set after the owner, because a new owner clears the set-ID bits.
        let mode = Mode::from_raw_mode(one.status.st_mode & super::collect::MODE_BITS);
        chmodat(one.to, one.to_name, mode, AtFlags::empty())?;
    }
    let time = |seconds, nanoseconds| Timespec { tv_sec: seconds, tv_nsec: nanoseconds };
    #[allow(
        clippy::useless_conversion,
        clippy::unnecessary_cast,
        reason = "the types differ by operating system"
    )]
    let times = Timestamps {
        last_access: time(one.status.st_atime as i64, one.status.st_atime_nsec as _),
        last_modification: time(one.status.st_mtime as i64, one.status.st_mtime_nsec as _),
    };
    Ok(utimensat(one.to, one.to_name, &times, AtFlags::SYMLINK_NOFOLLOW)?)
}

/// Lets a new file share the content of another one, where the file system supports it.
#[cfg(target_os = "linux")]
fn share_content(source: &File, target: &File) -> bool {
    rustix::fs::ioctl_ficlone(target, source).is_ok()
}

#[cfg(not(target_os = "linux"))]
fn share_content(_: &File, _: &File) -> bool {
    false
}

/// Creates a FIFO or a socket. Nobody listens at the copy of a socket, as after the end of a
/// command.
#[cfg(target_os = "linux")]
fn create_special(one: &CopySource<'_>, kind: FileType) -> io::Result<()> {
    Ok(rustix::fs::mknodat(one.to, one.to_name, kind, Mode::RUSR | Mode::WUSR, one.status.st_rdev)?)
}

#[cfg(not(target_os = "linux"))]
fn create_special(_: &CopySource<'_>, _: FileType) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

#[cfg(test)]
mod tests {
    use std::fs::Permissions;
    use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};

    use super::super::collect::open_directory;
    use super::*;

    /// Copies `source` below `top` to `copy`.
    fn copy(top: &Path, is_cancelled: bool) -> io::Result<EntrySize> {
        let directory = open_directory(top).expect("it is opened");
        let status = statat(&directory, "source", AtFlags::SYMLINK_NOFOLLOW).expect("it exists");
        let mut cancelled = || is_cancelled;
        let mut copier = EntryCopier::new(&mut cancelled);
        let source = (directory.as_fd(), c"source");
        copier.copy_entry(source, &status, (directory.as_fd(), c"copy"), Path::new("path"))
    }

    #[test]
    fn a_copy_has_the_attributes_holes_and_links_of_its_source_and_no_marks() {
        let top = tempfile::tempdir().expect("a directory");
        let source = top.path().join("source");
        std::fs::create_dir_all(source.join("inner")).expect("created");
        let file = source.join("inner/file");
        std::fs::write(&file, "content").expect("written");
        std::fs::hard_link(&file, source.join("link")).expect("linked");
        std::os::unix::fs::symlink("nowhere", source.join("symlink")).expect("linked");
        std::fs::set_permissions(&file, Permissions::from_mode(0o4750)).expect("set");
        let long_ago = std::time::UNIX_EPOCH + Duration::new(1_000_000_000, 123_456_789);
        for path in [&file, &source.join("inner")] {
            File::open(path).and_then(|file| file.set_modified(long_ago)).expect("set");
        }
        for (name, path) in [(c"user.kept", &file), (c"user.overlay.opaque", &source)] {
            lsetxattr(path, name, b"y", XattrFlags::empty()).expect("set");
        }
        let sparse = File::create(source.join("sparse")).expect("created");
        sparse.set_len(64 << 20).expect("set");
        std::os::unix::fs::FileExt::write_at(&sparse, b"end", (64 << 20) - 3).expect("written");
        std::fs::set_permissions(source.join("inner"), Permissions::from_mode(0o500)).expect("set");

        let size = copy(top.path(), false).expect("copied");
        assert_eq!(size, EntrySize { bytes: (64 << 20) + 2 * 7, entries: 5 });
        let copy = top.path().join("copy");
        let copied = copy.join("inner/file").metadata().expect("it exists");
        assert_eq!(copied.permissions().mode() & 0o7777, 0o4750);
        assert_eq!((copied.mtime(), copied.mtime_nsec()), (1_000_000_000, 123_456_789));
        let inner = copy.join("inner").metadata().expect("it exists");
        assert_eq!((inner.mode() & 0o7777, inner.mtime()), (0o500, 1_000_000_000));
        let link = copy.join("link").metadata().expect("it exists");
        assert_eq!((link.ino(), link.nlink()), (copied.ino(), 2));
        let target = std::fs::read_link(copy.join("symlink")).expect("a link");
        assert_eq!(target, Path::new("nowhere"));
        let sparse = copy.join("sparse").metadata().expect("it exists");
        assert!(sparse.len() == 64 << 20 && sparse.blocks() < 1000, "{sparse:?}");
        let parent = open_directory(&copy.join("inner")).expect("opened");
        let kept = attributes(parent.as_fd(), c"file").expect("read");
        assert_eq!(kept.get(c"user.kept").map(Vec::as_slice), Some(&b"y"[..]));
        let top = open_directory(top.path()).expect("opened");
        assert!(!super::super::is_opaque(top.as_fd(), c"copy").expect("read"));
    }

    #[test]
    fn a_checkpoint_has_limits_and_can_be_cancelled() {
        let top = tempfile::tempdir().expect("a directory");
        let source = top.path().join("source");
        let file = File::create(&source).expect("created");
        // The copy would be free if the file system can share content.
        if !share_content(&file, &File::create(top.path().join("shared")).expect("created")) {
            std::fs::write(&source, vec![1; (1 << 20) + 1]).expect("written");
            let problem = copy(top.path(), false).expect_err("it is too large").to_string();
            assert!(problem.contains("more than 1 MiB"), "{problem}");
        }
        std::fs::remove_file(&source).expect("removed");
        let _ = std::fs::remove_file(top.path().join("copy"));
        std::fs::create_dir(&source).expect("created");
        for number in 0..=MAX_COPIED_ENTRIES {
            std::fs::write(source.join(number.to_string()), "").expect("written");
        }
        let problem = copy(top.path(), false).expect_err("there are too many").to_string();
        assert!(problem.contains("more than 1000 files and directories"), "{problem}");
        let problem = copy(top.path(), true).expect_err("it is cancelled").to_string();
        assert!(problem.contains("cancelled"), "{problem}");
    }
}
