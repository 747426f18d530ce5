//! The arguments of bubblewrap, which creates the namespaces of a command.
//!
//! The command gets its own processes, network and IPC, and the root that [`MountPlan`] describes.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use super::mount_plan::{BindAccess, BindPresence, MountPlan, MountStep};
use crate::protocol::NetworkAccess;
use crate::{CommandPaths, ConfineError, PrerequisiteError, SandboxSpec};

/// The paths where bubblewrap is looked up. `PATH` could name a directory of the workspace.
const KNOWN_PATHS: &[&str] =
    &["/usr/bin/bwrap", "/usr/local/bin/bwrap", "/bin/bwrap", "/run/current-system/sw/bin/bwrap"];
/// The first version that is known to support all options used here.
const MIN_VERSION: (u32, u32) = (0, 8);
/// The path of this program inside the sandbox, until it executes the command.
const INNER_PROGRAM: &str = "/run/cofferdam/confine";

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

    fn step(&mut self, step: &MountStep) {
        match step {
            MountStep::Directory(path) => self.path("--dir", path),
            MountStep::Memory(path) => self.path("--tmpfs", path),
            MountStep::Processes(path) => self.path("--proc", path),
            MountStep::Devices(path) => self.path("--dev", path),
            MountStep::Link { target, at } => self.mount("--symlink", target, at),
            MountStep::Bind { from, to, access, presence } => {
                let flag = match (access, presence) {
                    (BindAccess::ReadOnly, BindPresence::Required) => "--ro-bind",
                    (BindAccess::ReadOnly, BindPresence::IfExists) => "--ro-bind-try",
                    (BindAccess::ReadWrite, BindPresence::Required) => "--bind",
                    (BindAccess::ReadWrite, BindPresence::IfExists) => "--bind-try",
                };
                self.mount(flag, from, to);
            }
        }
    }
}

/// Returns the bubblewrap command that starts this program inside, and the paths visible there.
pub(super) fn sandbox_command(
    bubblewrap: &Path,
    around: &SandboxSpec<'_>,
) -> Result<(Command, CommandPaths), ConfineError> {
    let MountPlan { common, own, paths } = MountPlan::new(around)?;
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
    if around.network != NetworkAccess::Host {
        arguments.flag("--unshare-net");
    }
    arguments.0.extend(
        ["--die-with-parent", "--new-session", "--cap-drop", "ALL", "--hostname", "cofferdam"]
            .map(OsString::from),
    );
    common.iter().chain(&own).for_each(|step| arguments.step(step));
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
    Ok((command, paths))
}
