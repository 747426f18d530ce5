//! Removal of a directory tree of any depth and size.
//!
//! Each directory is moved up to the outermost one before it is emptied. This takes two open files,
//! paths of one component and no recursion. A command can create directories deeper than any path
//! can express.

use std::ffi::CString;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::{
    AtFlags, Dir, FileType, Mode, OFlags, chmodat, openat, renameat, statat, unlinkat,
};
use rustix::io::Errno;

/// Removes the entry with this name from a directory. Links are removed, not followed.
///
/// `goes_on` is called regularly. Once it returns false, the rest stays.
///
/// # Errors
/// The removal fails, or `goes_on` returned false ([`io::ErrorKind::TimedOut`]).
pub(super) fn remove_tree(
    parent: impl AsFd,
    name: impl rustix::path::Arg + Copy,
    goes_on: &mut dyn FnMut() -> bool,
) -> io::Result<()> {
    let parent = parent.as_fd();
    let top = match open_for_removal(parent, name) {
        Ok(top) => top,
        Err(Errno::NOTDIR | Errno::LOOP) => return Ok(unlinkat(parent, name, AtFlags::empty())?),
        Err(error) => return Err(error.into()),
    };
    let mut number = 0_u64;
    // Entries that move up during a pass may appear only in the next one.
    loop {
        let mut was_empty = true;
        for (entry, kind) in list_some(top.as_fd())? {
            was_empty = false;
            if !goes_on() {
                return Err(io::ErrorKind::TimedOut.into());
            }
            if kind == FileType::Directory {
                flatten_into(top.as_fd(), &entry, &mut number, goes_on)?;
                unlinkat(&top, &entry, AtFlags::REMOVEDIR)?;
            } else {
                unlinkat(&top, &entry, AtFlags::empty())?;
            }
        }
        if was_empty {
            break;
        }
    }
    Ok(unlinkat(parent, name, AtFlags::REMOVEDIR)?)
}

/// Removes the files of a directory in `top`, and moves its subdirectories to `top`.
fn flatten_into(
    top: BorrowedFd<'_>,
    name: &CString,
    number: &mut u64,
    goes_on: &mut dyn FnMut() -> bool,
) -> io::Result<()> {
    let folder = open_for_removal(top, name.as_c_str())?;
    loop {
        let entries = list_some(folder.as_fd())?;
        if entries.is_empty() {
            return Ok(());
        }
        for (entry, kind) in entries {
            if !goes_on() {
                return Err(io::ErrorKind::TimedOut.into());
            }
            if kind == FileType::Directory {
                move_up(folder.as_fd(), &entry, top, number)?
            } else {
                unlinkat(&folder, &entry, AtFlags::empty())?
            }
        }
    }
}

fn move_up(
    folder: BorrowedFd<'_>,
    name: &CString,
    top: BorrowedFd<'_>,
    number: &mut u64,
) -> io::Result<()> {
    loop {
        *number += 1;
        match renameat(folder, name, top, format!("cofferdam-removes-{number}")) {
            Ok(()) => return Ok(()),
            Err(Errno::EXIST | Errno::NOTEMPTY | Errno::NOTDIR | Errno::ISDIR) => {}
            // Moving a directory to another parent requires write access to it.
            Err(Errno::ACCESS)
                if statat(folder, name, AtFlags::SYMLINK_NOFOLLOW)?.st_mode & 0o700 != 0o700 =>
            {
                chmodat(folder, name, Mode::RWXU, AtFlags::empty())?;
            }
            Err(error) => return Err(error.into()),
        }
    }
}

/// Opens a directory so that it can be emptied, and changes its permissions if needed.
fn open_for_removal(
    parent: BorrowedFd<'_>,
    name: impl rustix::path::Arg + Copy,
) -> rustix::io::Result<OwnedFd> {
    let how = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let metadata = statat(parent, name, AtFlags::SYMLINK_NOFOLLOW)?;
    if FileType::from_raw_mode(metadata.st_mode) == FileType::Directory
        && metadata.st_mode & 0o700 != 0o700
    {
        chmodat(parent, name, Mode::RWXU, AtFlags::empty())?;
    }
    openat(parent, name, how, Mode::empty())
}

/// Returns some of the names in a directory, because there can be millions.
pub(super) fn list_some(folder: BorrowedFd<'_>) -> io::Result<Vec<(CString, FileType)>> {
    const AT_ONCE: usize = 10_000;
    let mut found = Vec::new();
    for entry in Dir::read_from(folder)? {
        let entry = entry?;
        let name = entry.file_name();
        if matches!(name.to_bytes(), b"." | b"..") {
            continue;
        }
        let kind = match entry.file_type() {
            FileType::Unknown => {
                FileType::from_raw_mode(statat(folder, name, AtFlags::SYMLINK_NOFOLLOW)?.st_mode)
            }
            kind => kind,
        };
        found.push((name.to_owned(), kind));
        if found.len() == AT_ONCE {
            break;
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;
    use std::path::Path;

    use rustix::fs::{CWD, mkdirat};

    use super::*;

    /// Creates nested directories of the given depth.
    fn make_deep(outer: &Path, levels: usize) {
        let mut at = openat(CWD, outer, OFlags::DIRECTORY | OFlags::RDONLY, Mode::empty())
            .expect("it opens");
        for _ in 0..levels {
            mkdirat(&at, "d", Mode::RWXU).expect("it is made");
            at = openat(&at, "d", OFlags::DIRECTORY | OFlags::RDONLY, Mode::empty())
                .expect("it opens");
        }
    }

    fn remove(outer: &Path, name: &str) -> io::Result<()> {
        let outer = openat(CWD, outer, OFlags::DIRECTORY | OFlags::RDONLY, Mode::empty())?;
        remove_tree(outer, name, &mut || true)
    }

    #[test]
    fn a_folder_of_twenty_thousand_levels_is_removed() {
        // A file system in memory is faster, because a disk takes milliseconds to remove a
        // directory.
        let memory = Path::new("/dev/shm");
        let outer =
            if memory.exists() { tempfile::tempdir_in(memory) } else { tempfile::tempdir() }
                .expect("a folder");
        std::fs::create_dir(outer.path().join("x")).expect("it is made");
        make_deep(&outer.path().join("x"), 20_000);
        remove(outer.path(), "x").expect("it is removed");
        assert!(!outer.path().join("x").exists());
    }

    #[test]
    fn what_is_closed_or_has_the_name_of_what_moves_is_removed_and_no_link_is_followed() {
        let outer = tempfile::tempdir().expect("a folder");
        let path = |name: &str| outer.path().join(name);
        for name in ["x/a/b/c", "x/cofferdam-removes-1/y", "kept"] {
            std::fs::create_dir_all(path(name)).expect("it is made");
        }
        for name in ["x/a/b/c/file", "x/cofferdam-removes-2", "kept/file"] {
            std::fs::write(path(name), "").expect("it is written");
        }
        std::os::unix::fs::symlink(path("kept"), path("x/a/link")).expect("it is made");
        for name in ["x/a/b/c", "x/a/b", "x/a", "x"] {
            std::fs::set_permissions(path(name), std::fs::Permissions::from_mode(0o000))
                .expect("it is set");
        }
        remove(outer.path(), "x").expect("it is removed");
        assert!(!path("x").exists() && path("kept/file").exists());
    }

    #[test]
    fn it_ends_when_there_is_no_time_left() {
        let outer = tempfile::tempdir().expect("a folder");
        std::fs::create_dir_all(outer.path().join("x/y")).expect("it is made");
        let folder = openat(CWD, outer.path(), OFlags::DIRECTORY | OFlags::RDONLY, Mode::empty())
            .expect("it opens");
        let error = remove_tree(folder, "x", &mut || false).expect_err("there is no time");
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
    }
}
