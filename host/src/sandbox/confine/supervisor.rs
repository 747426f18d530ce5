//! The process between the host and a command: it makes the sandbox, waits, ends everything that
//! the command has started, looks after the protected paths, and reports. It outlives a host that
//! is killed just long enough to do so.

use std::fs::Permissions;
use std::os::fd::OwnedFd;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use super::journal::{self, RestoreJournal};
use super::link::SupervisorLink;
use super::modes::RecordedFileModes;
use super::protocol::{
    ChildReadiness, CommandExitKind, CommandPaths, ConfinementSpec, SocketAccess, SupervisorReport,
    SupervisorRequest,
};
use super::queue;
use super::remove::remove_tree;
use super::restore::{RestorePhase, SnapshotRestore};
use super::settings::{SettingsCopies, WorkspaceSettings};
use super::snapshot::{EntryKind, MAX_ENTRIES, OpenedDirectories, ProtectedSnapshot};
use crate::policy::{PathProtection, ProtectedPaths, SandboxLevel};
use crate::sandbox::exit_code::exit_code;
use crate::sandbox::git::GitNamedPaths;
use crate::sandbox::os;

/// How long the command has to end by itself after it was asked to; an abort has to be back within
/// a second.
const GRACE_PERIOD: Duration = Duration::from_millis(300);
/// How often processes are counted.
const POLL_INTERVAL: Duration = Duration::from_millis(100);

/// What was protected before a command is looked at first, and for so long.
const KNOWN_PATHS_TIMEOUT: Duration = Duration::from_secs(5);
/// Then the workspace is searched for so long; what was made and could not be looked at by then is
/// taken away.
const SEARCH_TIMEOUT: Duration = Duration::from_secs(30);
/// Rounds of that: what hides behind a crowd is found when that is gone.
const MAX_ROUNDS: usize = 20;
/// What a command left in its own folders is removed for so long before its report, and the rest of
/// it afterwards.
const CLEANUP_TIMEOUT: Duration = Duration::from_secs(2);
/// Taking a crowd away takes as long as making it did, and some more.
const REMOVAL_TIMEOUT: Duration = Duration::from_secs(60);

/// What there is around a command, for what makes its sandbox.
#[derive(Debug)]
#[allow(dead_code, reason = "each operating system reads what its sandbox is made of")]
pub(in crate::sandbox) struct SandboxSpec<'a> {
    pub(in crate::sandbox) level: SandboxLevel,
    pub(in crate::sandbox) program: &'a Path,
    pub(in crate::sandbox) bubblewrap: Option<&'a Path>,
    pub(in crate::sandbox) workspace: &'a Path,
    pub(in crate::sandbox) directory: &'a Path,
    pub(in crate::sandbox) home: Option<&'a Path>,
    pub(in crate::sandbox) network: bool,
    pub(in crate::sandbox) paths: &'a CommandPaths,
    /// Copies of files without their secrets, to be put in place of them: of what, and where they
    /// are.
    pub(in crate::sandbox) copies: &'a [(PathBuf, PathBuf)],
    /// Variables on top of those that every command has.
    pub(in crate::sandbox) environment: &'a [(&'static str, PathBuf)],
    /// A folder for this command alone.
    pub(in crate::sandbox) temporary: &'a Path,
    /// To be put in place of what is hidden; nobody can read them.
    pub(in crate::sandbox) empty_file: &'a Path,
    pub(in crate::sandbox) empty_directory: &'a Path,
    /// What is protected, below the workspace, outer paths first.
    pub(in crate::sandbox) protected: &'a [(PathBuf, PathProtection, EntryKind)],
    /// Sockets in the workspace, at which somebody outside may listen.
    pub(in crate::sandbox) sockets: &'a [PathBuf],
    /// Says it of paths that are not there yet.
    pub(in crate::sandbox) rules: &'a ProtectedPaths,
}

/// Takes an order from standard input and carries it out.
pub fn supervise_command() -> Result<(), String> {
    os::protect_process_memory();
    os::close_inherited_files(None)
        .map_err(|error| format!("cannot close inherited files: {error}"))?;
    let mut host = SupervisorLink::from_stdin().map_err(|error| error.to_string())?;
    let Some(order) = host
        .receive::<SupervisorRequest>()
        .map_err(|error| format!("the order cannot be read: {error}"))?
    else {
        return Ok(());
    };
    // The terminal's signals are for the host, which then lets this process know.
    let _ = rustix::process::setsid();
    let mut private = None;
    let mut remarks = Vec::new();
    let ending = handle_request(&order, &mut host, &mut private, &mut remarks)
        .unwrap_or_else(CommandExitKind::NotRun);
    let report =
        SupervisorReport { ending, digest: order.digest, level: order.level, notices: remarks };
    // A host that is gone hears nothing. What is left of the command's own folders is removed when
    // nobody waits for it.
    let _ = host.send(&report);
    drop(private);
    Ok(())
}

fn handle_request(
    order: &SupervisorRequest,
    host: &mut SupervisorLink,
    slot: &mut Option<PrivateDirs>,
    remarks: &mut Vec<String>,
) -> Result<CommandExitKind, String> {
    if order.job.digest() != order.digest {
        return Err("the line is not the one that was approved".to_owned());
    }
    os::adopt_orphans().map_err(|error| format!("cannot adopt processes: {error}"))?;
    // Until everything is put back: what one command is not allowed to leave behind is not there
    // for another to find.
    let Some(_turn) =
        queue::wait_for_turn(&order.workspace, &order.set_aside, || !host.is_closed())?
    else {
        return Ok(CommandExitKind::Stopped);
    };
    remarks.extend(journal::recover(&order.set_aside, &order.workspace));
    let private = slot.insert(
        PrivateDirs::create()
            .map_err(|error| format!("cannot make a temporary folder: {error}"))?,
    );
    let keeping = order.level != SandboxLevel::Full;
    let git = GitNamedPaths::new(&order.workspace, &order.user_settings)?;
    let (mut before, protected) = ProtectedSnapshot::capture_before(
        &order.workspace,
        &order.protected,
        git,
        keeping,
        &mut || !host.is_closed(),
    )?;
    if keeping && before.contains_program_files {
        return Err("this program keeps files of its own in the workspace, which this sandbox \
            cannot close to commands. \
            Choose a folder of it as the workspace (`-C FOLDER`), or install bubblewrap"
            .to_owned());
    }
    (before.written_outside, before.program_places) = places_closed_to_links(order);
    let list: Vec<_> = before
        .entries
        .iter()
        .filter(|(_, entry)| !entry.inherited)
        .map(|(path, entry)| (path.clone(), entry.protection, entry.kind))
        .collect();
    let settings = WorkspaceSettings { protected: &list, found: &before.package_settings };
    let (copies, places) = SettingsCopies::create(order, settings, &private.settings)
        .map_err(|error| format!("cannot copy settings without their secrets: {error}"))?;
    let surroundings = SandboxSpec {
        level: order.level,
        program: &order.program,
        bubblewrap: order.bubblewrap.as_deref(),
        workspace: &order.workspace,
        directory: &order.directory,
        home: order.home.as_deref(),
        network: order.network,
        paths: &places,
        copies: &copies.mounts,
        environment: &copies.environment,
        temporary: &private.temporary,
        empty_file: &private.empty_file,
        empty_directory: &private.empty_directory,
        protected: &list,
        sockets: &before.sockets,
        rules: &protected,
    };
    let unfinished = RestoreJournal::begin(order, &private.temporary, &protected, &before);
    let unfinished = unfinished
        .map_err(|error| format!("cannot record what is protected before the command: {error}"))?;
    // Where the files themselves are, their permissions are too.
    let modes = if keeping {
        // `x` stands for what is in the directory itself.
        let records = order.set_aside.join("unfinished/x");
        let reached = [order.workspace.as_path(), &records, &private.temporary];
        RecordedFileModes::of(&order.own, &reached)
    } else {
        RecordedFileModes::default()
    };
    let begun = Instant::now();
    let ran = run_command(order, &surroundings, host);
    let ended = os::kill_descendants();
    remarks.extend(modes.put_back());
    match restore_protected_paths(
        (&order.workspace, &order.set_aside),
        &protected,
        keeping,
        &before,
        begun.elapsed(),
    ) {
        Ok(done) => {
            remarks.extend(done);
            remarks.extend(
                unfinished
                    .end()
                    .err()
                    .map(|error| format!("the record of the command cannot be removed: {error}")),
            );
        }
        // The next command tries it again.
        Err(problem) => {
            remarks.push(format!("protected paths could not be looked after: {problem}"))
        }
    }
    remarks.extend(copies.remarks);
    remarks.extend(ended.err());
    if private.clear(Some(Instant::now() + CLEANUP_TIMEOUT)) {
        *slot = None;
    }
    ran
}

/// Where a new link may not lead: where commands write, and where this program keeps its files.
fn places_closed_to_links(order: &SupervisorRequest) -> (Vec<PathBuf>, Vec<PathBuf>) {
    let real = |path: &PathBuf| path.canonicalize().unwrap_or_else(|_| path.clone());
    let own = order.own.iter().chain([&order.set_aside]).map(real);
    (order.paths.write.iter().map(real).collect(), own.collect())
}

/// Puts everything back that is protected: what was there before at once, and then what is found.
pub(super) fn restore_protected_paths(
    (root, set_aside): (&Path, &Path),
    protected: &ProtectedPaths,
    keeping: bool,
    before: &ProtectedSnapshot,
    took: Duration,
) -> Result<Vec<String>, String> {
    // Before anything is looked for: nothing is found below a closed directory.
    let mut opened = OpenedDirectories::open_after(root, before, Instant::now() + SEARCH_TIMEOUT)?;
    let mut restoration =
        SnapshotRestore::new(root, before, set_aside).map_err(|error| error.to_string())?;
    opened.notices().into_iter().for_each(|notice| restoration.add_notice(|| notice));
    let known = ProtectedSnapshot::capture_known(
        root,
        protected,
        keeping,
        before,
        &opened,
        Instant::now() + KNOWN_PATHS_TIMEOUT,
    )?;
    restoration.restore(&known, RestorePhase::Known);
    known.restore_modes(root, before);
    opened.reopen(root);
    let until = Instant::now() + REMOVAL_TIMEOUT + 4 * took;
    let mut is_moved_back = false;
    for round in 0..MAX_ROUNDS {
        if round > 0 {
            opened.close(root, before);
            opened = OpenedDirectories::open_after(root, before, Instant::now() + SEARCH_TIMEOUT)?;
            opened.notices().into_iter().for_each(|notice| restoration.add_notice(|| notice));
        }
        let mut after = ProtectedSnapshot::capture_after(
            root,
            protected,
            keeping,
            before,
            &opened,
            Instant::now() + SEARCH_TIMEOUT,
        )?;
        after.growth.is_truncated |= opened.is_truncated();
        if !after.moved.is_empty() && !is_moved_back {
            is_moved_back = true;
            opened.close(root, before);
            restoration.move_back(&after);
            after.restore_modes(root, before);
            continue;
        }
        restoration.restore(&after, RestorePhase::All);
        restoration.take_away_too_deep(&after);
        let is_too_much = after.growth.exceeds_limit(MAX_ENTRIES);
        if is_too_much {
            restoration.reduce_growth(&after.growth, &before.inventory, until);
        }
        after.restore_modes(root, before);
        if !is_too_much && !restoration.take_left_in_workspace() {
            opened.close(root, before);
            return Ok(restoration.into_notices());
        }
        if Instant::now() > until {
            break;
        }
    }
    opened.close(root, before);
    restoration.add_notice(|| {
        "the workspace has too many files to look after protected paths in all of \
            its folders; remove some"
            .to_owned()
    });
    Ok(restoration.into_notices())
}

fn run_command(
    order: &SupervisorRequest,
    surroundings: &SandboxSpec<'_>,
    host: &mut SupervisorLink,
) -> Result<CommandExitKind, String> {
    let (mut command, places) = os::sandbox_command(surroundings)?;
    let (ours, theirs) = UnixStream::pair().map_err(|error| error.to_string())?;
    let temporary =
        if order.level == SandboxLevel::Full { Path::new("/tmp") } else { surroundings.temporary };
    let mut child = command
        .arg("confined-command")
        .env("TMPDIR", temporary)
        .env("XDG_CACHE_HOME", temporary.join(".cache"))
        // npm does not know of the above, and its own folder in the home is not there.
        .env("npm_config_cache", temporary.join(".cache/npm"))
        .envs(surroundings.environment.iter().map(|(name, value)| (*name, value)))
        .stdin(Stdio::from(OwnedFd::from(theirs)))
        .spawn()
        .map_err(|error| {
            format!("{} cannot be started: {error}", command.get_program().display())
        })?;
    // It holds the other end of the pair.
    drop(command);
    let sockets = match (order.level, order.network) {
        (SandboxLevel::Full, false) => SocketAccess::Own,
        (SandboxLevel::Full, true) => SocketAccess::OwnAndNetwork,
        (SandboxLevel::Kernel | SandboxLevel::None, false) => SocketAccess::Pairs,
        (SandboxLevel::Kernel | SandboxLevel::None, true) => SocketAccess::PairsAndNetwork,
    };
    let mut confined = SupervisorLink::new(ours);
    let confinement =
        ConfinementSpec { job: order.job.clone(), paths: places, sockets, limits: order.limits };
    // What ends before it has read this has something to say for itself, or has ended with a status
    // that says it.
    let _ = confined.send(&confinement);
    match confined.receive::<ChildReadiness>() {
        Ok(Some(ChildReadiness::Confined)) => wait_for_command(&mut child, order, host),
        Ok(Some(ChildReadiness::Failed(problem))) => Err(problem),
        Ok(None) | Err(_) => {
            let status = child.wait().map_err(|error| error.to_string())?;
            Err(format!("what makes the sandbox ended with {status}"))
        }
    }
}

fn wait_for_command(
    child: &mut Child,
    order: &SupervisorRequest,
    host: &mut SupervisorLink,
) -> Result<CommandExitKind, String> {
    let most = usize::try_from(order.limits.processes).unwrap_or(usize::MAX);
    loop {
        if let Some(status) = child.try_wait().map_err(|error| error.to_string())? {
            return Ok(exit_kind(status));
        }
        if host.is_closed() {
            terminate_gracefully(child, order.level);
            return Ok(CommandExitKind::Stopped);
        }
        // For root the kernel does not count.
        if os::count_descendants() > most {
            return Ok(CommandExitKind::TooManyProcesses);
        }
        os::wait_for_child_or_link(child, host, POLL_INTERVAL)
            .map_err(|error| error.to_string())?;
    }
}

fn exit_kind(status: ExitStatus) -> CommandExitKind {
    CommandExitKind::Exited(exit_code(status))
}

fn terminate_gracefully(child: &mut Child, level: SandboxLevel) {
    os::terminate_descendants(os::sandbox_process_depth(level));
    let deadline = Instant::now() + GRACE_PERIOD;
    while Instant::now() < deadline && matches!(child.try_wait(), Ok(None)) {
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Folders and files for this command alone, removed with it.
struct PrivateDirs {
    directory: tempfile::TempDir,
    temporary: PathBuf,
    empty_file: PathBuf,
    empty_directory: PathBuf,
    /// Made when it is needed.
    settings: PathBuf,
}

impl PrivateDirs {
    fn create() -> std::io::Result<Self> {
        let folder = tempfile::Builder::new()
            .prefix("cofferdam-")
            .permissions(Permissions::from_mode(0o700))
            .tempdir()?;
        // Links in the way, such as that of macOS's `/tmp`, are none of a sandbox's business.
        let path = folder.path().canonicalize()?;
        let [temporary, empty_file, empty_folder, settings] =
            ["tmp", "file", "folder", "settings"].map(|name| path.join(name));
        let private = Self {
            directory: folder,
            temporary,
            empty_file,
            empty_directory: empty_folder,
            settings,
        };
        std::fs::create_dir(&private.temporary)?;
        std::fs::create_dir(&private.empty_directory)?;
        std::fs::write(&private.empty_file, "")?;
        for path in [&private.empty_file, &private.empty_directory] {
            std::fs::set_permissions(path, Permissions::from_mode(0o000))?;
        }
        Ok(private)
    }
}

impl PrivateDirs {
    /// Removes what is in it, until then; whether that is all. The command may have left folders
    /// that nobody can enter, and such that are deeper than any path.
    fn clear(&self, until: Option<Instant>) -> bool {
        let Ok(opened) = std::fs::File::open(self.directory.path()) else { return false };
        let mut goes_on = || until.is_none_or(|until| Instant::now() < until);
        ["tmp", "folder"].into_iter().all(|name| remove_tree(&opened, name, &mut goes_on).is_ok())
    }
}

impl Drop for PrivateDirs {
    fn drop(&mut self) {
        self.clear(None);
    }
}
