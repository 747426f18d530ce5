//! Namespaces: a root of its own in which only what a command may see is mounted, processes,
//! network and messages of its own. bubblewrap makes them; this file says what it is told.
//!
//! What is protected below the workspace is mounted over itself: read-only, or as something empty
//! that nobody may read. The directories around it are mounted over themselves too: a mount cannot
//! be renamed, so that none of them makes room for another one of its name. All of it is gone with
//! the namespace, and none of it was ever on the disk.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::super::super::confine::{CommandPaths, SandboxSpec};
use crate::policy::PathProtection;

/// Where it is looked for. Not in `PATH`, in which a folder of the workspace may stand.
const KNOWN_PATHS: &[&str] =
    &["/usr/bin/bwrap", "/usr/local/bin/bwrap", "/bin/bwrap", "/run/current-system/sw/bin/bwrap"];
/// The first version that is known to do all that is asked of it here.
const MIN_VERSION: (u32, u32) = (0, 8);
/// Where this program is inside, until it has become the command.
const INNER_PROGRAM: &str = "/run/cofferdam/confine";
/// More mounts than this take longer than anybody waits.
const MAX_MOUNTS: usize = 1500;
/// Files of `/proc` that tell of the machine, or change it, even to who has no privileges.
const MASKED_PATHS: &[&str] = &[
    "/proc/kcore",
    "/proc/keys",
    "/proc/key-users",
    "/proc/sysrq-trigger",
    "/proc/timer_list",
    "/proc/kmsg",
];

/// Finds it, or says what is the matter.
pub(in crate::sandbox) fn find() -> Result<PathBuf, String> {
    const INSTALL: &str = "install bubblewrap 0.8 or newer (Debian, Ubuntu: `apt install \
        bubblewrap`; Fedora: `dnf install bubblewrap`)";
    let Some(path) = KNOWN_PATHS.iter().map(Path::new).find(|path| path.exists()) else {
        return Err(INSTALL.to_owned());
    };
    let output = Command::new(path)
        .arg("--version")
        .env_clear()
        .output()
        .map_err(|error| format!("{}: {error}", path.display()))?;
    let said = String::from_utf8_lossy(&output.stdout);
    let version = said.trim().rsplit(' ').next().and_then(|version| {
        let mut parts = version.split('.').map(str::parse);
        Some((parts.next()?.ok()?, parts.next()?.ok()?))
    });
    match version {
        Some(version) if version >= MIN_VERSION => Ok(path.to_owned()),
        Some(_) | None => Err(format!("{} is {}; {INSTALL}", path.display(), said.trim())),
    }
}

/// The arguments of bubblewrap, collected.
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

/// bubblewrap with this program inside, and what that sees.
pub(super) fn sandbox_command(around: &SandboxSpec<'_>) -> Result<(Command, CommandPaths), String> {
    let bubblewrap = around.bubblewrap.ok_or("bubblewrap is missing")?;
    if around.workspace == Path::new("/") {
        return Err("the workspace is the whole file system; choose a folder of it".to_owned());
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
    // `/proc/sys` takes orders from whoever has the number of root, without privileges too.
    arguments.mount("--ro-bind", Path::new("/proc/sys"), Path::new("/proc/sys"));
    for path in MASKED_PATHS.iter().map(Path::new).filter(|path| path.exists()) {
        arguments.mount("--ro-bind", around.empty_file, path);
    }
    arguments.mount("--bind", around.temporary, Path::new("/tmp"));
    arguments.mount("--bind", around.temporary, Path::new("/var/tmp"));
    let mut places = mount_visible_paths(around, &mut arguments);
    arguments.mount("--bind", around.workspace, around.workspace);
    mount_protections(around, &mut arguments)?;
    // Inside of everything, so that another program at this path would only confine itself less.
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

/// Mounts what there is besides the workspace: an empty home, and what may be read and written,
/// outer paths first.
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
) -> Result<(), String> {
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
        let (folder, most) = fullest_directory(around);
        return Err(format!(
            "the protected files of the workspace take {mounts} mounts, and more than \
                {MAX_MOUNTS} are too many. {most} of them are in {}: \
             move them elsewhere, show them (`shown` under `[protected]` in a policy), or choose \
             a smaller workspace (`-C FOLDER`).",
            crate::terminal_escape::escape_line(&folder.display().to_string(), 200)
        ));
    }
    // Outer ones first: a mount over a directory would cover those that were made below it before.
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
        // A mount would go to where a link leads. Where that is inside, it is protected there.
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
            // What is hidden there stays hidden.
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
    // Whoever listens there runs outside of the sandbox.
    sockets.iter().for_each(|socket| arguments.mount("--ro-bind", around.empty_file, socket));
    Ok(())
}

/// Whether something that is mounted in place of an outer directory, or of this very path, hides it
/// already.
fn is_covered(around: &SandboxSpec<'_>, path: &Path) -> bool {
    let hidden = around.protected.iter().filter(|(_, how, _)| *how == PathProtection::Hidden);
    hidden.map(|(path, ..)| around.workspace.join(path)).any(|hidden| path.starts_with(hidden))
}

/// The folder in which the most protected files are, and how many.
fn fullest_directory(around: &SandboxSpec<'_>) -> (PathBuf, usize) {
    let mut counts = std::collections::BTreeMap::<&Path, usize>::new();
    for (path, ..) in around.protected {
        *counts.entry(path.parent().unwrap_or(Path::new(""))).or_default() += 1;
    }
    let (folder, most) =
        counts.into_iter().max_by_key(|(_, count)| *count).unwrap_or((Path::new(""), 0));
    (around.workspace.join(folder), most)
}
