//! The root of a command: mounted as the plan says, then exchanged for the root of this process.

use std::os::fd::OwnedFd;
use std::path::{Component, Path};

use rustix::fs::{CWD, FileType, Mode, OFlags, ResolveFlags, fstat, mkdirat, openat, openat2};
use rustix::io::Errno;
use rustix::mount::{MountAttrFlags, MountPropagationFlags, UnmountFlags, mount_change, unmount};
use rustix::process::{chdir, fchdir, pivot_root};

use super::super::mount_plan::{BindAccess, BindPresence, MountPlan, MountStep};
use super::mount::{PLAIN_FILES, attach, copy_of, new_file_system};
use super::prepared_root::PreparedRoot;
use crate::error::StepProblem;
use crate::{ConfineError, ConfineStep};

/// Devices that reveal nothing about the machine, and the terminal of the process.
const DEVICES: &[&str] = &["null", "zero", "full", "random", "urandom", "tty"];
/// The links of `/dev`.
const DEVICE_LINKS: &[(&str, &str)] = &[
    ("fd", "/proc/self/fd"),
    ("stdin", "/proc/self/fd/0"),
    ("stdout", "/proc/self/fd/1"),
    ("stderr", "/proc/self/fd/2"),
    ("ptmx", "pts/ptmx"),
];
const DIRECTORY_MODE: Mode = Mode::from_raw_mode(0o755);
/// The directory for shared memory, open to everybody in the sandbox.
const SHARED_MODE: Mode = Mode::from_raw_mode(0o1777);

/// The kind of a file system entry that something is mounted over.
#[derive(Clone, Copy, PartialEq, Eq)]
enum MountPointKind {
    Directory,
    File,
}

/// Mounts the plan, and makes it the root of this process. A prepared root saves the common steps.
///
/// # Errors
/// The step of the plan that failed.
pub(super) fn enter_root(
    plan: &MountPlan,
    prepared: Option<&PreparedRoot>,
) -> Result<(), ConfineError> {
    let failed = ConfineError::at::<std::io::Error>;
    let all = MountPropagationFlags::PRIVATE | MountPropagationFlags::REC;
    mount_change("/", all).map_err(std::io::Error::from).map_err(failed(ConfineStep::MountRoot))?;
    let root = match prepared.and_then(|prepared| prepared.copy(&plan.common)) {
        Some(root) => root,
        None => CommandRoot::mount(&plan.common, Path::new("/"))?,
    };
    root.take_all(&plan.own)?;
    root.enter().map_err(failed(ConfineStep::MountRoot))
}

/// A root that is being built.
pub(super) struct CommandRoot(OwnedFd);

impl CommandRoot {
    /// Mounts a root with these steps over a directory. Over the current root, it is not visible,
    /// because paths begin below it.
    ///
    /// # Errors
    /// The step that failed.
    pub(super) fn mount(steps: &[MountStep], over: &Path) -> Result<Self, ConfineError> {
        let root = memory("0755").and_then(|root| Self::attach(root, over));
        let root = root.map_err(ConfineError::at(ConfineStep::MountRoot))?;
        root.take_all(steps)?;
        Ok(root)
    }

    /// Mounts this root over a directory.
    ///
    /// # Errors
    /// The kernel refuses it.
    pub(super) fn attach(root: OwnedFd, over: &Path) -> std::io::Result<Self> {
        attach(&root, open_directory(over)?)?;
        Ok(Self(root))
    }

    /// Returns the root directory.
    pub(super) fn directory(&self) -> &OwnedFd {
        &self.0
    }

    fn take_all(&self, steps: &[MountStep]) -> Result<(), ConfineError> {
        steps.iter().try_for_each(|step| {
            self.take(step).map_err(|source| {
                let problem = StepProblem::Mount { path: step.path().to_owned(), source };
                ConfineError::new(ConfineStep::MountRoot, problem)
            })
        })
    }

    fn take(&self, step: &MountStep) -> std::io::Result<()> {
        match step {
            MountStep::Directory(path) => {
                self.mount_point(path, MountPointKind::Directory).map(drop)
            }
            MountStep::Memory(path) => self.mount_directory(path, &memory("0755")?).map(drop),
            MountStep::Processes(path) => {
                let attributes = PLAIN_FILES | MountAttrFlags::MOUNT_ATTR_NOEXEC;
                self.mount_directory(path, &new_file_system(c"proc", &[], attributes)?)
            }
            MountStep::Devices(path) => self.create_devices(path),
            MountStep::Link { target, at } => {
                let (parent, name) = self.parent(at)?;
                Ok(rustix::fs::symlinkat(target, parent, name)?)
            }
            MountStep::Bind { from, to, access, presence } => {
                let attributes = match access {
                    BindAccess::ReadOnly => PLAIN_FILES | MountAttrFlags::MOUNT_ATTR_RDONLY,
                    BindAccess::ReadWrite => PLAIN_FILES,
                };
                match copy_of(from, attributes) {
                    Err(error)
                        if error.kind() == std::io::ErrorKind::NotFound
                            && *presence == BindPresence::IfExists =>
                    {
                        Ok(())
                    }
                    copy => self.bind(&copy?, to),
                }
            }
        }
    }

    fn bind(&self, copy: &OwnedFd, to: &Path) -> std::io::Result<()> {
        let kind = match FileType::from_raw_mode(fstat(copy)?.st_mode) {
            FileType::Directory => MountPointKind::Directory,
            _ => MountPointKind::File,
        };
        attach(copy, self.mount_point(to, kind)?)
    }

    fn mount_directory(&self, path: &Path, mount: &OwnedFd) -> std::io::Result<()> {
        attach(mount, self.mount_point(path, MountPointKind::Directory)?)
    }

    fn create_devices(&self, path: &Path) -> std::io::Result<()> {
        self.mount_directory(path, &memory("0755")?)?;
        for name in DEVICES {
            // Without the terminal and the like, programs find the same as on a machine without it.
            let attributes = MountAttrFlags::MOUNT_ATTR_NOSUID | MountAttrFlags::MOUNT_ATTR_NOEXEC;
            let Ok(device) = copy_of(&Path::new("/dev").join(name), attributes) else { continue };
            self.bind(&device, &path.join(name))?;
        }
        for (name, target) in DEVICE_LINKS {
            let at = path.join(name);
            let (parent, name) = self.parent(&at)?;
            rustix::fs::symlinkat(*target, parent, name)?;
        }
        let shared = self.mount_point(&path.join("shm"), MountPointKind::Directory)?;
        // The descriptor is a path only, which `fchmod` does not accept.
        rustix::fs::chmodat(&shared, ".", SHARED_MODE, rustix::fs::AtFlags::empty())?;
        let options = [("mode", "620"), ("ptmxmode", "666")];
        let attributes = MountAttrFlags::MOUNT_ATTR_NOSUID | MountAttrFlags::MOUNT_ATTR_NOEXEC;
        let terminals = new_file_system(c"devpts", &options, attributes)?;
        self.mount_directory(&path.join("pts"), &terminals)
    }

    /// Opens a path in this root, and creates it with its parents if it does not exist. Links in it
    /// are resolved in this root.
    fn mount_point(&self, path: &Path, kind: MountPointKind) -> std::io::Result<OwnedFd> {
        match self.open(path) {
            Err(Errno::NOENT) => {}
            opened => return Ok(opened?),
        }
        let (parent, name) = self.parent(path)?;
        let (flags, mode) = match kind {
            MountPointKind::Directory => {
                mkdirat(&parent, name, DIRECTORY_MODE)?;
                (OFlags::PATH | OFlags::DIRECTORY, Mode::empty())
            }
            MountPointKind::File => {
                (OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY, Mode::from_raw_mode(0o444))
            }
        };
        Ok(openat(&parent, name, flags | OFlags::NOFOLLOW | OFlags::CLOEXEC, mode)?)
    }

    /// Opens the directory above a path, and returns it with the last component.
    fn parent<'a>(&self, path: &'a Path) -> std::io::Result<(OwnedFd, &'a Path)> {
        let invalid = || std::io::Error::from(std::io::ErrorKind::InvalidInput);
        let name = path.file_name().map(Path::new).ok_or_else(invalid)?;
        let parent = path.parent().ok_or_else(invalid)?;
        Ok((self.mount_point(parent, MountPointKind::Directory)?, name))
    }

    fn open(&self, path: &Path) -> Result<OwnedFd, Errno> {
        let inside = path.strip_prefix(Component::RootDir).unwrap_or(path);
        let inside = if inside.as_os_str().is_empty() { Path::new(".") } else { inside };
        let flags = OFlags::PATH | OFlags::CLOEXEC;
        let resolve = ResolveFlags::IN_ROOT | ResolveFlags::NO_MAGICLINKS;
        openat2(&self.0, inside, flags, Mode::empty(), resolve)
    }

    /// Makes this the root of the process. The previous root is not reachable any more.
    fn enter(self) -> std::io::Result<()> {
        fchdir(&self.0)?;
        // With the same directory twice, the old root is mounted over the new one; see
        // pivot_root(2).
        pivot_root(".", ".")?;
        unmount(".", UnmountFlags::DETACH)?;
        Ok(chdir("/")?)
    }
}

/// Creates a directory in memory with these permissions, as octal digits.
fn memory(mode: &str) -> std::io::Result<OwnedFd> {
    new_file_system(c"tmpfs", &[("mode", mode)], PLAIN_FILES)
}

fn open_directory(path: &Path) -> std::io::Result<OwnedFd> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    Ok(openat(CWD, path, flags, Mode::empty())?)
}
