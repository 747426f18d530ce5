//! The system calls for mounts, on file descriptors instead of paths, so that nobody can exchange a
//! directory between two calls.

use std::ffi::CStr;
use std::os::fd::{AsFd, AsRawFd as _, OwnedFd};
use std::path::Path;

use rustix::fs::CWD;
use rustix::mount::{
    FsMountFlags, FsOpenFlags, MountAttrFlags, MoveMountFlags, OpenTreeFlags, fsconfig_create,
    fsconfig_set_string, fsmount, fsopen, move_mount, open_tree,
};

/// No programs with other users' rights and no device files.
pub(super) const PLAIN_FILES: MountAttrFlags =
    MountAttrFlags::MOUNT_ATTR_NOSUID.union(MountAttrFlags::MOUNT_ATTR_NODEV);

/// Creates a file system of this type with these options.
pub(super) fn new_file_system(
    kind: &CStr,
    options: &[(&str, &str)],
    attributes: MountAttrFlags,
) -> std::io::Result<OwnedFd> {
    let context = fsopen(kind, FsOpenFlags::FSOPEN_CLOEXEC)?;
    for (name, value) in options {
        fsconfig_set_string(&context, *name, *value)?;
    }
    fsconfig_create(&context)?;
    Ok(fsmount(&context, FsMountFlags::FSMOUNT_CLOEXEC, attributes)?)
}

/// Returns a copy of the mount at this path, with all mounts below it and these attributes added.
pub(super) fn copy_of(from: &Path, attributes: MountAttrFlags) -> std::io::Result<OwnedFd> {
    let flags = OpenTreeFlags::OPEN_TREE_CLONE
        | OpenTreeFlags::OPEN_TREE_CLOEXEC
        | OpenTreeFlags::AT_RECURSIVE;
    let copy = open_tree(CWD, from, flags)?;
    add_attributes(&copy, attributes)?;
    Ok(copy)
}

/// Returns a copy of the mount of an open directory, without mounts below it, with these attributes
/// added.
pub(super) fn copy_of_open(
    directory: OwnedFd,
    attributes: MountAttrFlags,
) -> std::io::Result<OwnedFd> {
    let flags = OpenTreeFlags::OPEN_TREE_CLONE
        | OpenTreeFlags::OPEN_TREE_CLOEXEC
        | OpenTreeFlags::AT_EMPTY_PATH;
    let copy = open_tree(&directory, "", flags)?;
    add_attributes(&copy, attributes)?;
    Ok(copy)
}

/// Mounts what [`new_file_system`] or [`copy_of`] returned over this file or directory.
pub(super) fn attach(mount: &OwnedFd, over: impl AsFd) -> std::io::Result<()> {
    let flags = MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH | MoveMountFlags::MOVE_MOUNT_T_EMPTY_PATH;
    Ok(move_mount(mount, "", over, "", flags)?)
}

/// Adds attributes to a mount and all mounts below it, which no later mount outside changes.
fn add_attributes(mount: &OwnedFd, attributes: MountAttrFlags) -> std::io::Result<()> {
    let attributes = libc::mount_attr {
        attr_set: u64::from(attributes.bits()),
        attr_clr: 0,
        propagation: libc::MS_PRIVATE,
        userns_fd: 0,
    };
    #[expect(unsafe_code, reason = "no package has a safe function for this system call")]
    // SAFETY: the pointers are to a C string and to a structure that live as long as the call, and
    // the last argument is the size of the structure.
    let result = unsafe {
        libc::syscall(
            libc::SYS_mount_setattr,
            mount.as_raw_fd(),
            c"".as_ptr(),
            libc::AT_EMPTY_PATH | libc::AT_RECURSIVE,
            &raw const attributes,
            size_of::<libc::mount_attr>(),
        )
    };
    if result == 0 { Ok(()) } else { Err(std::io::Error::last_os_error()) }
}
