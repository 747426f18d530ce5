//! The common part of a command's root, mounted before there is a command.
//!
//! A root has about sixty mounts that are the same for every command of a host, which take a third
//! of the time until a command starts. The copy of a whole tree of mounts takes one system call.

use std::fs;
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use rustix::fs::{CWD, Mode, OFlags, fstat, openat};
use rustix::mount::{OpenTreeFlags, open_tree};

use super::super::mount_plan::MountStep;
use super::command_root::CommandRoot;
use crate::{ConfineError, ConfineStep};

/// The directory over which a prepared root is mounted. It hides that directory, which no command
/// needs. The root directory is no such place: the kernel refuses new namespaces of users to a
/// process whose root is covered. Neither is a directory of `/proc`, of which a command needs a new
/// one.
const MOUNT_POINT: &str = "/sys/bus";

/// The device and the number of a file.
type SourceIdentity = (u64, u64);

/// The common part of a root, mounted in the namespace of a process that waits for a command.
#[derive(Debug)]
pub(super) struct PreparedRoot {
    steps: Vec<MountStep>,
    /// What was mounted for each step; `None` if that is nothing, or is created by the step.
    mounted: Vec<Option<SourceIdentity>>,
    root: SourceIdentity,
}

impl PreparedRoot {
    /// Mounts a root with these steps.
    ///
    /// # Errors
    /// The step that failed.
    pub(super) fn mount(steps: Vec<MountStep>) -> Result<Self, ConfineError> {
        let place = Path::new(MOUNT_POINT);
        let overlaps = |path: &Path| path.starts_with(place) || place.starts_with(path);
        if steps.iter().map(MountStep::path).any(overlaps) {
            let problem = std::io::Error::other("commands see the place of a prepared root");
            return Err(ConfineError::new(ConfineStep::MountRoot, problem));
        }
        // A file that is exchanged between this and the mount is noticed when the root is used.
        let mounted = steps.iter().map(source_identity).collect();
        let root = CommandRoot::mount(&steps, place)?;
        let status = fstat(root.directory())
            .map_err(std::io::Error::from)
            .map_err(ConfineError::at(ConfineStep::MountRoot))?;
        Ok(Self { steps, mounted, root: (status.st_dev, status.st_ino) })
    }

    /// Returns a copy of the root in the mount namespace of this process, which is a child of the
    /// one that mounted it. Returns `None` if these steps would give another root by now.
    pub(super) fn copy(&self, steps: &[MountStep]) -> Option<CommandRoot> {
        let is_current = self.steps == steps
            && steps.iter().map(source_identity).eq(self.mounted.iter().copied());
        if !is_current {
            return None;
        }
        let flags = OpenTreeFlags::OPEN_TREE_CLONE
            | OpenTreeFlags::OPEN_TREE_CLOEXEC
            | OpenTreeFlags::AT_RECURSIVE
            | OpenTreeFlags::AT_EMPTY_PATH;
        // The mounts of the parent are locked here: they can be copied, but not become the root.
        let copy = open_tree(self.find()?, "", flags).ok()?;
        CommandRoot::attach(copy, Path::new("/")).ok()
    }

    /// Opens the root as it is mounted in the namespace of this process.
    fn find(&self) -> Option<OwnedFd> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let found = openat(CWD, MOUNT_POINT, flags, Mode::empty()).ok()?;
        let status = fstat(&found).ok()?;
        ((status.st_dev, status.st_ino) == self.root).then_some(found)
    }
}

/// Returns what a step would mount now.
fn source_identity(step: &MountStep) -> Option<SourceIdentity> {
    let of = |path: &Path| fs::metadata(path).ok().map(|metadata| (metadata.dev(), metadata.ino()));
    match step {
        MountStep::Bind { from, .. } => of(from),
        MountStep::Directory(_)
        | MountStep::Memory(_)
        | MountStep::Processes(_)
        | MountStep::Devices(_)
        | MountStep::Link { .. } => None,
    }
}
