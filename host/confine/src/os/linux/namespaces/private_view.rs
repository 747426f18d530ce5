//! The overlay over the workspace, in a mount namespace of the supervisor.

use std::os::fd::{AsRawFd as _, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, Mode, OFlags, openat};
use rustix::mount::{
    FsMountFlags, FsOpenFlags, UnmountFlags, fsconfig_create, fsconfig_set_flag,
    fsconfig_set_string, fsmount, fsopen, unmount,
};

use super::mount::{PLAIN_FILES, attach};
use crate::snapshot::LayerScope;
use crate::view::LayerPaths;

/// An overlay over the workspace, unmounted when the value is dropped.
pub(crate) struct WorkspaceOverlay {
    workspace: PathBuf,
    /// The workspace below the overlay.
    lower: OwnedFd,
    /// The mounted overlay; `None` after it was unmounted.
    mount: Option<OwnedFd>,
}

/// An overlay without a place in the file system. It ends when the value is dropped, which writes
/// all changes of its file system to the disk.
pub(crate) struct DetachedOverlay(#[expect(dead_code, reason = "it is dropped")] OwnedFd);

impl WorkspaceOverlay {
    /// Mounts an overlay of the workspace and an empty layer over the workspace.
    ///
    /// # Errors
    /// The kernel or the file system does not support it.
    pub(crate) fn mount(workspace: &Path, layer: &LayerPaths) -> std::io::Result<Self> {
        let [lower, upper, work] = [workspace, &layer.upper, &layer.work].map(open_directory);
        let (lower, upper, work) = (lower?, upper?, work?);
        let context = fsopen(c"overlay", FsOpenFlags::FSOPEN_CLOEXEC)?;
        // Paths of descriptors have no characters with a meaning for overlayfs.
        for (name, directory) in [("lowerdir", &lower), ("upperdir", &upper), ("workdir", &work)] {
            let path = format!("/proc/self/fd/{}", directory.as_raw_fd());
            fsconfig_set_string(&context, name, &*path)?;
        }
        // Without privileges outside, overlayfs can only use attributes of users.
        fsconfig_set_flag(&context, "userxattr")?;
        fsconfig_create(&context)?;
        let mount = fsmount(&context, FsMountFlags::FSMOUNT_CLOEXEC, PLAIN_FILES)?;
        attach(&mount, &lower)?;
        Ok(Self { workspace: workspace.to_owned(), lower, mount: Some(mount) })
    }

    /// Returns what a command can have changed in this overlay, and in these directories that it
    /// wrote directly.
    ///
    /// # Errors
    /// The layer cannot be opened.
    pub(crate) fn scope(
        &self,
        layer: &LayerPaths,
        direct: Vec<PathBuf>,
    ) -> std::io::Result<LayerScope> {
        LayerScope::open(&layer.upper, self.lower.try_clone()?, direct)
    }

    /// Returns the workspace below the overlay.
    ///
    /// # Errors
    /// This process has too many open files.
    pub(crate) fn lower(&self) -> std::io::Result<OwnedFd> {
        self.lower.try_clone()
    }

    /// Returns the overlay, also for after it was unmounted.
    ///
    /// # Errors
    /// This process has too many open files.
    pub(crate) fn shown(&self) -> std::io::Result<Option<OwnedFd>> {
        self.mount.as_ref().map(OwnedFd::try_clone).transpose()
    }

    /// Unmounts a directory that is mounted in the overlay.
    ///
    /// # Errors
    /// The kernel refuses it.
    pub(crate) fn unmount_direct(&self, path: &Path) -> std::io::Result<()> {
        let flags = UnmountFlags::DETACH | UnmountFlags::NOFOLLOW;
        Ok(unmount(self.workspace.join(path), flags)?)
    }

    /// Unmounts the overlay, so that the workspace is visible again. Nothing may use the overlay
    /// any more.
    ///
    /// # Errors
    /// The kernel refuses it.
    pub(crate) fn unmount(mut self) -> std::io::Result<Option<DetachedOverlay>> {
        // This process may still have directories of the overlay open, but changes nothing in them.
        unmount(&self.workspace, UnmountFlags::DETACH)?;
        Ok(self.mount.take().map(DetachedOverlay))
    }
}

impl Drop for WorkspaceOverlay {
    fn drop(&mut self) {
        if self.mount.is_some() {
            // The mount ends with its namespace in any case.
            let _ = unmount(&self.workspace, UnmountFlags::DETACH);
        }
    }
}

fn open_directory(path: &Path) -> std::io::Result<OwnedFd> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    Ok(openat(CWD, path, flags, Mode::empty())?)
}
