//! The arguments of bubblewrap, which creates the namespaces of a command.
//!
//! The command gets its own root with only the visible paths mounted, and its own processes,
//! network and IPC.
//!
//! Protected paths below the workspace are mounted over themselves read-only, or replaced by an
//! empty file or directory without permissions. The directories above them are mounted over
//! themselves too, because a mount point cannot be renamed and replaced. All mounts vanish with the
//! namespace, and nothing of them is on the disk.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use crate::error::StepProblem;
use crate::{CommandPaths, ConfineError, ConfineStep, PrerequisiteError, SandboxSpec};
use cofferdam_policy::PathProtection;

/// The paths where bubblewrap is looked up. `PATH` could name a directory of the workspace.
const KNOWN_PATHS: &[&str] =
    &["/usr/bin/bwrap", "/usr/local/bin/bwrap", "/bin/bwrap", "/run/current-system/sw/bin/bwrap"];
/// The first version that is known to support all options used here.
const MIN_VERSION: (u32, u32) = (0, 8);
/// The path of this program inside the sandbox, until it executes the command.
const INNER_PROGRAM: &str = "/run/cofferdam/confine";
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

/// Returns the path of bubblewrap.
///
/// # Errors
/// bubblewrap is missing or too old. The text says how to install it.
pub(crate) fn find() -> Result<PathBuf, PrerequisiteError> {
    let Some(path) = KNOWN_PATHS.iter().map(Path::new).find(|path| path.exists()) else {
        return Err(PrerequisiteError::BubblewrapMissing);
    };
    let output = Command::new(path).arg("--version").env_clear().output().map_err(|source| {
        PrerequisiteError::BubblewrapFailed { path: path.to_owned(), source: Arc::new(source) }
    })?;
    let said = String::from_utf8_lossy(&output.stdout);
    let version = said.trim().rsplit(' ').next().and_then(|version| {
        let mut parts = version.split('.').map(str::parse);
        Some((parts.next()?.ok()?, parts.next()?.ok()?))
    });
    match version {
        Some(version) if version >= MIN_VERSION => Ok(path.to_owned()),
        Some(_) | None => Err(PrerequisiteError::BubblewrapVersion {
            path: path.to_owned(),
            version: said.trim().to_owned(),
        }),
    }
}

/// A list of arguments for bubblewrap.
#[derive(Default)]
struct BwrapArguments(Vec<OsString>);

impl BwrapArguments {
    fn flag(&mut self, flag: &str) {
        self.0.push(flag.into());
    }

    fn path(&mut self, flag: &str, path: &Path) {
        self.0.extend([flag.into(), path.into()]);
    }

    fn mount(&mut self, flag: &str, from: &Path, to: &Path) {
        self.0.extend([flag.into(), from.into(), to.into()]);
    }
}

/// Returns the bubblewrap command that starts this program inside, and the paths visible there.
pub(super) fn sandbox_command(
    around: &SandboxSpec<'_>,
) -> Result<(Command, CommandPaths), ConfineError> {
    let bubblewrap = around.bubblewrap.ok_or_else(|| {
        ConfineError::new(ConfineStep::PlanSandbox, PrerequisiteError::BubblewrapMissing)
    })?;
    if around.workspace == Path::new("/") {
        return Err(ConfineError::new(ConfineStep::PlanSandbox, StepProblem::WholeFileSystem));
    }
    let mut arguments = BwrapArguments::default();
    for flag in [
        "--unshare-user",
        "--unshare-pid",
        "--unshare-ipc",
        "--unshare-uts",
        "--unshare-cgroup-try",
    ] {
        arguments.flag(flag);
    }
    if !around.network {
        arguments.flag("--unshare-net");
    }
    arguments.0.extend(
        ["--die-with-parent", "--new-session", "--cap-drop", "ALL", "--hostname", "cofferdam"]
            .map(OsString::from),
    );
    arguments.path("--dir", Path::new("/run"));
    arguments.path("--proc", Path::new("/proc"));
    arguments.path("--dev", Path::new("/dev"));
    // Some files of `/proc/sys` can be written by user ID 0 even without capabilities.
    arguments.mount("--ro-bind", Path::new("/proc/sys"), Path::new("/proc/sys"));
    for path in MASKED_PATHS.iter().map(Path::new).filter(|path| path.exists()) {
        arguments.mount("--ro-bind", around.empty_file, path);
    }
    arguments.mount("--bind", around.temporary, Path::new("/tmp"));
    arguments.mount("--bind", around.temporary, Path::new("/var/tmp"));
    let mut places = mount_visible_paths(around, &mut arguments);
    arguments.mount("--bind", around.workspace, around.workspace);
    mount_protections(around, &mut arguments)?;
    // This program is mounted last. A different program at this path could only confine itself
    // less.
    arguments.mount(
        "--ro-bind",
        &super::resolve_program(around.program)?,
        Path::new(INNER_PROGRAM),
    );
    arguments.path("--chdir", around.directory);
    arguments.0.extend(["--", INNER_PROGRAM].map(OsString::from));
    let mut command = Command::new(bubblewrap);
    command.args(arguments.0).current_dir("/");
    places.read.push("/proc".into());
    places.write.extend(["/tmp", "/var/tmp", "/dev"].map(PathBuf::from));
    places.write.push(around.workspace.to_owned());
    Ok((command, places))
}

/// Mounts an empty home and the readable and writable paths outside the workspace, outer paths
/// first.
fn mount_visible_paths(around: &SandboxSpec<'_>, arguments: &mut BwrapArguments) -> CommandPaths {
    let mut places = around.paths.clone();
    if let Some(home) = around.home {
        arguments.path("--tmpfs", home);
        places.write.push(home.to_owned());
    }
    let read = around.paths.read.iter().map(|path| (path, "--ro-bind-try"));
    let write = around.paths.write.iter().map(|path| (path, "--bind-try"));
    let mut all: Vec<_> = read.chain(write).collect();
    all.sort_by_key(|(path, _)| path.components().count());
    for (path, flag) in all {
        match fs::read_link(path) {
            // `/bin` is a link to `usr/bin` on most systems, and stays one.
            Ok(target) if target.is_relative() && path.parent() == Some(Path::new("/")) => {
                arguments.mount("--symlink", &target, path)
            }
            Ok(_) | Err(_) => arguments.mount(flag, path, path),
        }
    }
    for (path, copy) in around.copies.iter().filter(|(path, _)| !path.starts_with(around.workspace))
    {
        arguments.mount("--ro-bind", copy, path);
    }
    places
}

fn mount_protections(
    around: &SandboxSpec<'_>,
    arguments: &mut BwrapArguments,
) -> Result<(), ConfineError> {
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
        arguments.mount("--bind", &path, &path);
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
            PathProtection::ReadOnly => {
                arguments.mount("--ro-bind", copy.unwrap_or(&target), &target)
            }
            PathProtection::Hidden if target.is_dir() => {
                arguments.mount("--ro-bind", around.empty_directory, &target)
            }
            PathProtection::Hidden => arguments.mount("--ro-bind", around.empty_file, &target),
        }
        mounted.push(target);
    }
    let is_left = |path: &Path| {
        path.starts_with(around.workspace)
            && !is_covered(around, path)
            && !mounted.iter().any(|known| known == path)
    };
    for (path, copy) in around.copies.iter().filter(|(path, _)| is_left(path)) {
        arguments.mount("--ro-bind", copy, path);
    }
    // The process that listens on a socket runs outside the sandbox.
    sockets.iter().for_each(|socket| arguments.mount("--ro-bind", around.empty_file, socket));
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
