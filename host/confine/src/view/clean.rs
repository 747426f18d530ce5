//! Removes from new entries what only overlayfs understands.
//!
//! overlayfs marks directories and copied files with extended attributes. Left in the workspace,
//! they would change what a later overlay shows.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{CStr, CString, OsStr};
use std::io;
use std::os::fd::{AsFd, AsRawFd as _, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::{
    AtFlags, Dir, FileType, Mode, OFlags, ResolveFlags, Stat, XattrFlags, lgetxattr, llistxattr,
    lremovexattr, lsetxattr, openat2, statat, unlinkat,
};
use rustix::io::Errno;

/// The prefix of the attributes of an overlay that an ordinary user may mount.
const ATTRIBUTE_PREFIX: &[u8] = b"user.overlay.";
/// The mark of a directory that hides the directory below it; see the kernel's documentation of
/// overlayfs.
const OPAQUE_ATTRIBUTE: &CStr = c"user.overlay.opaque";
/// The largest value of an extended attribute, and the largest list of names, in bytes; see
/// xattr(7).
const MAX_ATTRIBUTE_LEN: usize = 64 << 10;

/// The contents of a new entry.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct EntrySize {
    /// The size of all files, in bytes.
    pub(super) bytes: u64,
    /// The number of entries below a directory.
    pub(super) entries: u64,
}

/// Removes the marks of overlayfs from an entry and everything below it, and returns its size. Adds
/// the numbers of files with several names to `linked`.
///
/// # Errors
/// An entry cannot be read, or is deeper than a path can express.
pub(super) fn clean_entry(
    parent: BorrowedFd<'_>,
    name: &CStr,
    linked: &mut BTreeSet<u64>,
) -> io::Result<EntrySize> {
    let mut size = EntrySize::default();
    let found = statat(parent, name, AtFlags::SYMLINK_NOFOLLOW)?;
    let mut add_linked = |found: &Stat| {
        if FileType::from_raw_mode(found.st_mode) == FileType::RegularFile && found.st_nlink > 1 {
            linked.insert(found.st_ino);
        }
    };
    add_linked(&found);
    let Some(top) = clean_one(parent, name, &found, &mut size)? else { return Ok(size) };
    let mut pending = vec![PathBuf::new()];
    while let Some(path) = pending.pop() {
        let directory =
            if path.as_os_str().is_empty() { top.try_clone()? } else { open_below(&top, &path)? };
        for name in names_in(&directory)? {
            size.entries += 1;
            let found = statat(&directory, &*name, AtFlags::SYMLINK_NOFOLLOW)?;
            add_linked(&found);
            if is_whiteout(&found) {
                // It hides nothing here, because a new directory has nothing below it.
                unlinkat(&directory, &*name, AtFlags::empty())?;
            } else if clean_one(directory.as_fd(), &name, &found, &mut size)?.is_some() {
                pending.push(path.join(OsStr::from_bytes(name.to_bytes())));
            }
        }
    }
    Ok(size)
}

/// Cleans one entry, and opens it if it is a directory.
fn clean_one(
    parent: BorrowedFd<'_>,
    name: &CStr,
    found: &Stat,
    size: &mut EntrySize,
) -> io::Result<Option<OwnedFd>> {
    match FileType::from_raw_mode(found.st_mode) {
        FileType::RegularFile => {
            size.bytes = size.bytes.saturating_add(u64::try_from(found.st_size).unwrap_or(0));
            remove_marks(parent, name)?;
            Ok(None)
        }
        FileType::Directory => {
            remove_marks(parent, name)?;
            open_below(parent, Path::new(OsStr::from_bytes(name.to_bytes()))).map(Some)
        }
        _ => Ok(None),
    }
}

fn remove_marks(parent: BorrowedFd<'_>, name: &CStr) -> io::Result<()> {
    let path = path_of(parent, name);
    for attribute in attribute_names(&path)? {
        if attribute.to_bytes().starts_with(ATTRIBUTE_PREFIX) {
            lremovexattr(&path, &*attribute)?;
        }
    }
    Ok(())
}

/// Returns the extended attributes of an entry that are not marks of overlayfs, with their values.
pub(super) fn attributes(
    parent: BorrowedFd<'_>,
    name: &CStr,
) -> io::Result<BTreeMap<CString, Vec<u8>>> {
    let path = path_of(parent, name);
    let mut found = BTreeMap::new();
    for attribute in attribute_names(&path)? {
        if attribute.to_bytes().starts_with(ATTRIBUTE_PREFIX) {
            continue;
        }
        let mut value = vec![0; MAX_ATTRIBUTE_LEN];
        let length = lgetxattr(&path, &*attribute, &mut value)?;
        value.truncate(length);
        found.insert(attribute, value);
    }
    Ok(found)
}

fn attribute_names(path: &Path) -> io::Result<Vec<CString>> {
    let mut short = [0; 1 << 10];
    let names = match llistxattr(path, &mut short) {
        Ok(0) | Err(Errno::NOTSUP) => return Ok(Vec::new()),
        Ok(length) => short[..length].to_vec(),
        Err(Errno::RANGE) => {
            let mut long = vec![0; MAX_ATTRIBUTE_LEN];
            let length = llistxattr(path, &mut long)?;
            long.truncate(length);
            long
        }
        Err(error) => return Err(error.into()),
    };
    let names = names.split(|byte| *byte == 0).filter(|name| !name.is_empty());
    Ok(names.filter_map(|name| CString::new(name).ok()).collect())
}

/// Lets a new directory of the layer hide the directory below it, from now on also a directory that
/// is committed there.
///
/// # Errors
/// The mark cannot be set.
pub(super) fn make_opaque(parent: BorrowedFd<'_>, name: &CStr) -> io::Result<()> {
    Ok(lsetxattr(path_of(parent, name), OPAQUE_ATTRIBUTE, b"y", XattrFlags::empty())?)
}

/// Returns whether a directory of the layer hides the directory below it.
pub(crate) fn is_opaque(parent: BorrowedFd<'_>, name: &CStr) -> io::Result<bool> {
    match lgetxattr(path_of(parent, name), OPAQUE_ATTRIBUTE, &mut [0_u8; 8]) {
        Ok(_) => Ok(true),
        Err(Errno::NODATA | Errno::NOTSUP) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// Returns whether an entry of the layer hides the entry below it: a device file with the number 0.
pub(super) fn is_whiteout(found: &Stat) -> bool {
    FileType::from_raw_mode(found.st_mode) == FileType::CharacterDevice && found.st_rdev == 0
}

/// Opens a directory below another one, without following links.
pub(super) fn open_below(top: impl AsFd, path: &Path) -> io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS;
    let path = if path.as_os_str().is_empty() { Path::new(".") } else { path };
    Ok(openat2(top, path, flags, Mode::empty(), resolve)?)
}

/// Returns the names in a directory.
pub(super) fn names_in(directory: impl AsFd) -> io::Result<Vec<CString>> {
    let mut names = Vec::new();
    for entry in Dir::read_from(directory)? {
        let entry = entry?;
        if !matches!(entry.file_name().to_bytes(), b"." | b"..") {
            names.push(entry.file_name().to_owned());
        }
    }
    Ok(names)
}

/// Returns a path of an entry, for system calls that take no directory. The last component is the
/// entry itself.
pub(super) fn path_of(parent: BorrowedFd<'_>, name: &CStr) -> PathBuf {
    let directory = PathBuf::from(format!("/proc/self/fd/{}", parent.as_raw_fd()));
    directory.join(OsStr::from_bytes(name.to_bytes()))
}
