//! The file system of a command: what it mounts where, in order.
//!
//! The command gets its own root with only the visible paths mounted. Protected paths below the
//! workspace are mounted over themselves read-only, or replaced by an empty file or directory
//! without permissions. The directories above them are mounted over themselves too, because a mount
//! point cannot be renamed and replaced. All mounts vanish with the mount namespace, and nothing of
//! them is on the disk.

use std::fs;
use std::path::{Path, PathBuf};

use crate::error::StepProblem;
use crate::{CommandPaths, ConfineError, ConfineStep, SandboxSpec};
use cofferdam_policy::PathProtection;

/// The maximum number of mounts. More would delay the start of the command noticeably.
const MAX_MOUNTS: usize = 1500;
/// Files of `/proc` that reveal or change the state of the machine, even without privileges.
const MASKED_PATHS: &[&str] = &[
    "/proc/kcore",
    "/proc/keys",
    "/proc/key-users",
    "/proc/sysrq-trigger",
    "/proc/timer_list",
    "/proc/kmsg",
];

/// The directory of which commands see about fifty entries.
const SYSTEM_SETTINGS: &str = "/etc";

/// The directories for temporary files, which each command has for itself.
const TEMPORARY_PATHS: &[&str] = &["/tmp", "/var/tmp"];

/// The mounts of a command's root, outer paths first. A later mount covers an earlier one.
#[derive(Debug)]
pub(super) struct MountPlan {
    /// The steps that are the same for every command of a host. They come first.
    pub(super) common: Vec<MountStep>,
    /// The steps for this command.
    pub(super) own: Vec<MountStep>,
    /// The paths that the command can see in its root.
    pub(super) paths: CommandPaths,
}

/// One step of creating the root of a command. All paths are absolute.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum MountStep {
    /// An empty directory, with its parents.
    Directory(PathBuf),
    /// A writable directory in memory.
    Memory(PathBuf),
    /// The processes of the command's namespace.
    Processes(PathBuf),
    /// Devices without effect on the machine, shared memory, and pseudo-terminals.
    Devices(PathBuf),
    /// A symbolic link.
    Link {
        /// The text of the link.
        target: PathBuf,
        /// The place of the link.
        at: PathBuf,
    },
    /// A file or directory of the host, with everything that is mounted below it.
    Bind {
        /// The path outside.
        from: PathBuf,
        /// The path in the root of the command.
        to: PathBuf,
        access: BindAccess,
        presence: BindPresence,
    },
}

/// What a command may do with a mounted file or directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BindAccess {
    ReadOnly,
    ReadWrite,
}

/// Whether the outer path of a mount has to exist.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BindPresence {
    Required,
    /// Without the outer path, there is no mount.
    IfExists,
}

impl MountPlan {
    /// Plans the root of a command.
    ///
    /// # Errors
    /// The workspace is the root directory, or its protected paths need too many mounts.
    pub(super) fn new(around: &SandboxSpec<'_>) -> Result<Self, ConfineError> {
        if around.workspace == Path::new("/") {
            return Err(ConfineError::new(ConfineStep::PlanSandbox, StepProblem::WholeFileSystem));
        }
        let mut steps = MountSteps(vec![MountStep::Processes("/proc".into())]);
        // Some files of `/proc/sys` can be written by user ID 0 even without capabilities.
        steps.bind_read_only(Path::new("/proc/sys"), Path::new("/proc/sys"));
        for path in MASKED_PATHS.iter().map(Path::new).filter(|path| path.exists()) {
            steps.bind_read_only(around.empty_file, path);
        }
        for (path, from) in TEMPORARY_PATHS.iter().map(|path| (Path::new(path), around.temporary)) {
            steps.bind(from, path);
        }
        let (common, later) = split_visible_steps(around.home, around.paths);
        steps.0.extend(later);
        for (path, copy) in around.copies {
            if !path.starts_with(around.workspace) {
                steps.bind_read_only(copy, path);
            }
        }
        let mut paths = around.paths.clone();
        paths.write.extend(around.home.map(Path::to_owned));
        steps.bind_workspace(around, around.workspace);
        mount_protections(around, &mut steps)?;
        let is_created = |directory: &Path| is_created(directory, common.iter().chain(&steps.0));
        merge_read_paths(&mut paths.read, around.home, is_created);
        paths.read.push("/proc".into());
        paths.write.extend(["/tmp", "/var/tmp", "/dev"].map(PathBuf::from));
        paths.workspace_list(around).push(around.workspace.to_owned());
        Ok(Self { common, own: steps.0, paths })
    }
}

/// Returns the steps that depend only on the home and the visible paths, and thus are the same for
/// every command of a host.
pub(super) fn common_steps(home: Option<&Path>, visible: &CommandPaths) -> Vec<MountStep> {
    split_visible_steps(home, visible).0
}

/// Returns the steps for devices, the home and the visible paths in two lists: those that can come
/// first in a root, and those that must come after the directories that each command has for
/// itself, because one of the two contains the other.
fn split_visible_steps(
    home: Option<&Path>,
    visible: &CommandPaths,
) -> (Vec<MountStep>, Vec<MountStep>) {
    let mut common = vec![MountStep::Directory("/run".into()), MountStep::Devices("/dev".into())];
    let mut later = Vec::<MountStep>::new();
    let own = ["/proc"].iter().chain(TEMPORARY_PATHS).map(Path::new);
    let own: Vec<&Path> = own.collect();
    for step in visible_steps(home, visible) {
        let path = step.path();
        let overlaps = |other: &Path| other.starts_with(path) || path.starts_with(other);
        let is_later = own.iter().copied().chain(later.iter().map(MountStep::path)).any(overlaps);
        if is_later { &mut later } else { &mut common }.push(step);
    }
    (common, later)
}

impl MountStep {
    /// Returns the path in the root of the command.
    pub(super) fn path(&self) -> &Path {
        match self {
            Self::Directory(path)
            | Self::Memory(path)
            | Self::Processes(path)
            | Self::Devices(path)
            | Self::Link { at: path, .. }
            | Self::Bind { to: path, .. } => path,
        }
    }
}

/// Returns whether a directory of the root is created for the command. It then contains only what
/// these steps mount in it.
fn is_created<'a>(directory: &Path, mut steps: impl Iterator<Item = &'a MountStep>) -> bool {
    !steps.any(|step| match step {
        MountStep::Bind { to: path, .. } | MountStep::Link { at: path, .. } => {
            directory.starts_with(path)
        }
        MountStep::Directory(_)
        | MountStep::Memory(_)
        | MountStep::Processes(_)
        | MountStep::Devices(_) => false,
    })
}

/// Merges readable paths in directories that are created for the command, so that Landlock needs
/// about twenty rules in place of seventy.
///
/// This opens nothing: such a directory contains only what is mounted in it, and all of that is
/// visible anyway. Outside the root of the command it does not exist, so that a rule for it allows
/// less there than rules for the files themselves. A rule for the home exists already.
fn merge_read_paths(
    read: &mut Vec<PathBuf>,
    home: Option<&Path>,
    is_created: impl Fn(&Path) -> bool,
) {
    if let Some(home) = home.filter(|home| is_created(home)) {
        read.retain(|path| path == home || !path.starts_with(home));
    }
    let settings = Path::new(SYSTEM_SETTINGS);
    let count = read.len();
    if is_created(settings) {
        read.retain(|path| !path.starts_with(settings));
    }
    if read.len() < count {
        read.push(settings.to_owned());
    }
}

/// The steps planned so far.
struct MountSteps(Vec<MountStep>);

impl MountSteps {
    fn push_bind(&mut self, from: &Path, to: &Path, access: BindAccess, presence: BindPresence) {
        let (from, to) = (from.to_owned(), to.to_owned());
        self.0.push(MountStep::Bind { from, to, access, presence });
    }

    fn bind(&mut self, from: &Path, to: &Path) {
        self.push_bind(from, to, BindAccess::ReadWrite, BindPresence::Required);
    }

    fn bind_read_only(&mut self, from: &Path, to: &Path) {
        self.push_bind(from, to, BindAccess::ReadOnly, BindPresence::Required);
    }

    /// Mounts the workspace, or a directory of it, over itself. Each mount has the access of the
    /// command to the workspace: a mount does not get the access of the one that it covers.
    fn bind_workspace(&mut self, around: &SandboxSpec<'_>, path: &Path) {
        if around.writes_workspace {
            self.bind(path, path);
        } else {
            self.bind_read_only(path, path);
        }
    }
}

/// Returns the steps that mount an empty home and the readable and writable paths outside the
/// workspace, outer paths first.
fn visible_steps(home: Option<&Path>, visible: &CommandPaths) -> Vec<MountStep> {
    let mut steps = MountSteps(Vec::new());
    steps.0.extend(home.map(|home| MountStep::Memory(home.to_owned())));
    let read = visible.read.iter().map(|path| (path, BindAccess::ReadOnly));
    let write = visible.write.iter().map(|path| (path, BindAccess::ReadWrite));
    let mut all: Vec<_> = read.chain(write).collect();
    all.sort_by_key(|(path, _)| path.components().count());
    for (path, access) in all {
        // `/bin` is a link to `usr/bin` on most systems, and stays one.
        let is_top = path.parent() == Some(Path::new("/"));
        match is_top.then(|| fs::read_link(path)) {
            Some(Ok(target)) if target.is_relative() => {
                steps.0.push(MountStep::Link { target, at: path.clone() });
            }
            Some(_) | None => steps.push_bind(path, path, access, BindPresence::IfExists),
        }
    }
    steps.0
}

fn mount_protections(around: &SandboxSpec<'_>, steps: &mut MountSteps) -> Result<(), ConfineError> {
    let mut pinned: Vec<PathBuf> = Vec::new();
    for (path, how, _) in around.protected {
        let above = || {
            path.ancestors()
                .skip(1)
                .filter(|above| !above.as_os_str().is_empty())
                .map(Path::to_owned)
        };
        match how {
            PathProtection::Pinned => pinned.extend(above().chain([path.clone()])),
            PathProtection::ReadOnly | PathProtection::Hidden => pinned.extend(above()),
        }
    }
    pinned.sort();
    pinned.dedup();
    let sockets: Vec<PathBuf> = around
        .sockets
        .iter()
        .map(|path| around.workspace.join(path))
        .filter(|path| !is_covered(around, path))
        .collect();
    let mounts =
        around.protected.iter().filter(|(_, how, _)| *how != PathProtection::Pinned).count()
            + pinned.len()
            + sockets.len()
            + around.copies.len();
    if mounts > MAX_MOUNTS {
        let (directory, count) = fullest_directory(around);
        let problem = StepProblem::TooManyMounts { mounts, limit: MAX_MOUNTS, directory, count };
        return Err(ConfineError::new(ConfineStep::PlanSandbox, problem));
    }
    // Outer directories come first, because a mount covers earlier mounts below it.
    for path in pinned
        .iter()
        .map(|path| around.workspace.join(path))
        .filter(|path| path.is_dir() && !path.is_symlink())
    {
        steps.bind_workspace(around, &path);
    }
    let mut mounted = Vec::new();
    for (path, how, kind) in around.protected {
        let whole = around.workspace.join(path);
        // A mount over a link applies to its target. A target inside the workspace is protected
        // there.
        let target = if kind.is_symlink() { whole.canonicalize().ok() } else { Some(whole) };
        let Some(target) = target
            .filter(|target| target.starts_with(around.workspace) && target != around.workspace)
        else {
            continue;
        };
        let copy =
            around.copies.iter().find(|(of, _)| *of == target).map(|(_, copy)| copy.as_path());
        match how {
            PathProtection::Pinned => {}
            // A hidden target must stay hidden.
            PathProtection::ReadOnly if kind.is_symlink() && is_covered(around, &target) => {}
            PathProtection::ReadOnly => steps.bind_read_only(copy.unwrap_or(&target), &target),
            PathProtection::Hidden if target.is_dir() => {
                steps.bind_read_only(around.empty_directory, &target)
            }
            PathProtection::Hidden => steps.bind_read_only(around.empty_file, &target),
        }
        mounted.push(target);
    }
    let is_left = |path: &Path| {
        path.starts_with(around.workspace)
            && !is_covered(around, path)
            && !mounted.iter().any(|known| known == path)
    };
    for (path, copy) in around.copies.iter().filter(|(path, _)| is_left(path)) {
        steps.bind_read_only(copy, path);
    }
    // The process that listens on a socket runs outside the sandbox.
    sockets.iter().for_each(|socket| steps.bind_read_only(around.empty_file, socket));
    Ok(())
}

/// Returns whether a mount over this path or over a directory above it hides the path already.
fn is_covered(around: &SandboxSpec<'_>, path: &Path) -> bool {
    let hidden = around.protected.iter().filter(|(_, how, _)| *how == PathProtection::Hidden);
    hidden.map(|(path, ..)| around.workspace.join(path)).any(|hidden| path.starts_with(hidden))
}

/// Returns the directory with the most protected files, and their number.
fn fullest_directory(around: &SandboxSpec<'_>) -> (PathBuf, usize) {
    let mut counts = std::collections::BTreeMap::<&Path, usize>::new();
    for (path, ..) in around.protected {
        *counts.entry(path.parent().unwrap_or(Path::new(""))).or_default() += 1;
    }
    let (folder, most) =
        counts.into_iter().max_by_key(|(_, count)| *count).unwrap_or((Path::new(""), 0));
    (around.workspace.join(folder), most)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_in_created_directories_are_merged() {
        let bind = |path: &str| MountStep::Bind {
            from: path.into(),
            to: path.into(),
            access: BindAccess::ReadOnly,
            presence: BindPresence::Required,
        };
        let merged = |mounted: &[&str]| {
            let steps: Vec<MountStep> = mounted.iter().map(|path| bind(path)).collect();
            let paths = ["/usr", "/etc/group", "/etc/ssl/certs", "/home/ann/go", "/home/annette"];
            let mut read: Vec<PathBuf> = paths.iter().map(PathBuf::from).collect();
            let home = Some(Path::new("/home/ann"));
            merge_read_paths(&mut read, home, |path| is_created(path, steps.iter()));
            read.iter().map(|path| path.display().to_string()).collect::<Vec<_>>()
        };
        let all = ["/usr", "/etc/group", "/etc/ssl/certs", "/home/ann/go", "/home/annette"];
        assert_eq!(merged(&["/etc/group", "/home/ann/go"]), ["/usr", "/home/annette", "/etc"]);
        assert_eq!(merged(&["/etc", "/home"]), all);
        assert_eq!(merged(&["/"]), all);
        assert_eq!(merged(&["/etc"]), ["/usr", "/etc/group", "/etc/ssl/certs", "/home/annette"]);
        assert_eq!(merged(&["/home/ann"]), ["/usr", "/home/ann/go", "/home/annette", "/etc"]);
    }

    #[test]
    fn what_overlaps_with_directories_of_each_command_comes_after_them() {
        let split = |home: &str, read: &[&str]| {
            let read = read.iter().map(PathBuf::from).collect();
            let visible = CommandPaths { read, ..CommandPaths::default() };
            let names = |steps: Vec<MountStep>| {
                steps.iter().map(|step| step.path().display().to_string()).collect::<Vec<_>>()
            };
            let (common, later) = split_visible_steps(Some(Path::new(home)), &visible);
            (names(common), names(later))
        };
        let (common, later) = split("/home/ann", &["/home/ann/go/bin", "/opt"]);
        assert_eq!(common, ["/run", "/dev", "/home/ann", "/opt", "/home/ann/go/bin"]);
        assert!(later.is_empty(), "{later:?}");
        let (common, later) = split("/tmp/ann", &["/opt", "/tmp/ann/go", "/tmpfile", "/proc/fs"]);
        assert_eq!(common, ["/run", "/dev", "/opt", "/tmpfile"]);
        assert_eq!(later, ["/tmp/ann", "/proc/fs", "/tmp/ann/go"]);
        // A path above comes after them, and so does what is below that path.
        let (common, later) = split("/root", &["/var", "/var/lib/x", "/vary"]);
        assert_eq!((common.len(), later), (4, vec!["/var".to_owned(), "/var/lib/x".to_owned()]));
    }
}
