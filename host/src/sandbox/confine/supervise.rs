//! The process between the host and a command: it makes the sandbox, waits, ends everything that the command has started,
//! looks after the protected paths, and reports. It outlives a host that is killed just long enough to do so.

use std::fs::Permissions;
use std::os::fd::OwnedFd;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use super::journal::{self, Journal};
use super::link::Link;
use super::modes::OwnModes;
use super::order::{Confinement, Ending, Order, Places, Readiness, Report, Sockets};
use super::queue;
use super::remove::remove_tree;
use super::restore::{Phase, Restoration};
use super::settings::{SettingsCopies, WorkspaceSettings};
use super::watch::{EntryKind, MOST_ENTRIES, Snapshot};
use crate::policy::{Protected, ProtectedPaths, SandboxLevel};
use crate::sandbox::exit_code::exit_code;
use crate::sandbox::git::NamedPaths;
use crate::sandbox::os;

/// How long the command has to end by itself after it was asked to; an abort has to be back within a second.
const GRACE: Duration = Duration::from_millis(300);
/// How often processes are counted.
const GLANCE: Duration = Duration::from_millis(100);

/// What was protected before a command is looked at first, and for so long.
const LONGEST_FIRST_LOOK: Duration = Duration::from_secs(5);
/// Then the workspace is searched for so long; what was made and could not be looked at by then is taken away.
const LONGEST_SEARCH: Duration = Duration::from_secs(30);
/// Rounds of that: what hides behind a crowd is found when that is gone.
const MOST_ROUNDS: usize = 20;
/// What a command left in its own folders is removed for so long before its report, and the rest of it afterwards.
const LONGEST_TIDYING: Duration = Duration::from_secs(2);
/// Taking a crowd away takes as long as making it did, and some more.
const LONGEST_REMOVAL: Duration = Duration::from_secs(60);

/// What there is around a command, for what makes its sandbox.
#[derive(Debug)]
#[allow(dead_code, reason = "each operating system reads what its sandbox is made of")]
pub(in crate::sandbox) struct Surroundings<'a> {
    pub(in crate::sandbox) level: SandboxLevel,
    pub(in crate::sandbox) program: &'a Path,
    pub(in crate::sandbox) bubblewrap: Option<&'a Path>,
    pub(in crate::sandbox) workspace: &'a Path,
    pub(in crate::sandbox) directory: &'a Path,
    pub(in crate::sandbox) home: Option<&'a Path>,
    pub(in crate::sandbox) network: bool,
    pub(in crate::sandbox) places: &'a Places,
    /// Copies of files without their secrets, to be put in place of them: of what, and where they are.
    pub(in crate::sandbox) copies: &'a [(PathBuf, PathBuf)],
    /// Variables on top of those that every command has.
    pub(in crate::sandbox) environment: &'a [(&'static str, PathBuf)],
    /// A folder for this command alone.
    pub(in crate::sandbox) temporary: &'a Path,
    /// To be put in place of what is hidden; nobody can read them.
    pub(in crate::sandbox) empty_file: &'a Path,
    pub(in crate::sandbox) empty_folder: &'a Path,
    /// What is protected, below the workspace, outer paths first.
    pub(in crate::sandbox) protected: &'a [(PathBuf, Protected, EntryKind)],
    /// Sockets in the workspace, at which somebody outside may listen.
    pub(in crate::sandbox) sockets: &'a [PathBuf],
    /// Says it of paths that are not there yet.
    pub(in crate::sandbox) rules: &'a ProtectedPaths,
}

/// Takes an order from standard input and carries it out.
pub fn supervise_command() -> Result<(), String> {
    os::hide_from_own_user();
    os::close_inherited_files(None).map_err(|error| format!("cannot close inherited files: {error}"))?;
    let mut host = Link::of_this_process().map_err(|error| error.to_string())?;
    let Some(order) = host.receive::<Order>().map_err(|error| format!("the order cannot be read: {error}"))? else { return Ok(()) };
    // The terminal's signals are for the host, which then lets this process know.
    let _ = rustix::process::setsid();
    let mut private = None;
    let mut remarks = Vec::new();
    let ending = carry_out(&order, &mut host, &mut private, &mut remarks).unwrap_or_else(Ending::NotRun);
    let report = Report { ending, digest: order.digest, level: order.level, remarks };
    // A host that is gone hears nothing. What is left of the command's own folders is removed when nobody waits for it.
    let _ = host.send(&report);
    drop(private);
    Ok(())
}

fn carry_out(order: &Order, host: &mut Link, slot: &mut Option<Private>, remarks: &mut Vec<String>) -> Result<Ending, String> {
    if order.task.digest() != order.digest {
        return Err("the line is not the one that was approved".to_owned());
    }
    os::adopt_orphans().map_err(|error| format!("cannot adopt processes: {error}"))?;
    // Until everything is put back: what one command is not allowed to leave behind is not there for another to find.
    let Some(_turn) = queue::wait_for_turn(&order.workspace, &order.set_aside, || !host.has_ended())? else {
        return Ok(Ending::Stopped);
    };
    remarks.extend(journal::recover(&order.set_aside, &order.workspace));
    let private = slot.insert(Private::make().map_err(|error| format!("cannot make a temporary folder: {error}"))?);
    let keeping = order.level != SandboxLevel::Full;
    let git = NamedPaths::new(&order.workspace, &order.user_settings)?;
    let (before, protected) = Snapshot::before(&order.workspace, &order.protected, git, keeping, &mut || !host.has_ended())?;
    if keeping && before.holds_own {
        return Err("this program keeps files of its own in the workspace, which this sandbox cannot close to commands. \
            Choose a folder of it as the workspace (`-C FOLDER`), or install bubblewrap"
            .to_owned());
    }
    let list: Vec<_> =
        before.entries.iter().filter(|(_, entry)| !entry.inherited).map(|(path, entry)| (path.clone(), entry.how, entry.kind)).collect();
    let settings = WorkspaceSettings { protected: &list, found: &before.package_settings };
    let (copies, places) = SettingsCopies::make(order, settings, &private.settings)
        .map_err(|error| format!("cannot copy settings without their secrets: {error}"))?;
    let surroundings = Surroundings {
        level: order.level,
        program: &order.program,
        bubblewrap: order.bubblewrap.as_deref(),
        workspace: &order.workspace,
        directory: &order.directory,
        home: order.home.as_deref(),
        network: order.network,
        places: &places,
        copies: &copies.mounts,
        environment: &copies.environment,
        temporary: &private.temporary,
        empty_file: &private.empty_file,
        empty_folder: &private.empty_folder,
        protected: &list,
        sockets: &before.sockets,
        rules: &protected,
    };
    let unfinished = Journal::begin(order, &private.temporary, &protected, &before);
    let unfinished = unfinished.map_err(|error| format!("cannot record what is protected before the command: {error}"))?;
    // Where the files themselves are, their permissions are too.
    let modes = if keeping { OwnModes::of(&order.own) } else { OwnModes::default() };
    let begun = Instant::now();
    let ran = run(order, &surroundings, host);
    let ended = os::end_descendants();
    remarks.extend(modes.put_back());
    match look_after((&order.workspace, &order.set_aside), &protected, keeping, &before, begun.elapsed()) {
        Ok(done) => {
            remarks.extend(done);
            remarks.extend(unfinished.end().err().map(|error| format!("the record of the command cannot be removed: {error}")));
        }
        // The next command tries it again.
        Err(problem) => remarks.push(format!("protected paths could not be looked after: {problem}")),
    }
    remarks.extend(copies.remarks);
    remarks.extend(ended.err());
    if private.empty(Some(Instant::now() + LONGEST_TIDYING)) {
        *slot = None;
    }
    ran
}

/// Puts everything back that is protected: what was there before at once, and then what is found.
pub(super) fn look_after(
    (root, set_aside): (&Path, &Path),
    protected: &ProtectedPaths,
    keeping: bool,
    before: &Snapshot,
    took: Duration,
) -> Result<Vec<String>, String> {
    let mut restoration = Restoration::begin(root, before, set_aside).map_err(|error| error.to_string())?;
    let known = Snapshot::of_known(root, protected, keeping, before, Instant::now() + LONGEST_FIRST_LOOK)?;
    restoration.restore(&known, Phase::Known);
    known.close_again(root, before);
    let until = Instant::now() + LONGEST_REMOVAL + 4 * took;
    let mut is_moved_back = false;
    for _ in 0..MOST_ROUNDS {
        let after = Snapshot::after(root, protected, keeping, before, Instant::now() + LONGEST_SEARCH)?;
        if !after.moved.is_empty() && !is_moved_back {
            is_moved_back = true;
            restoration.move_back(&after);
            after.close_again(root, before);
            continue;
        }
        restoration.restore(&after, Phase::All);
        restoration.take_away_too_deep(&after);
        let is_too_much = after.growth.is_too_much(MOST_ENTRIES);
        if is_too_much {
            restoration.reduce(&after.growth, &before.inventory, until);
        }
        after.close_again(root, before);
        if !is_too_much && !restoration.leaves_something() {
            return Ok(restoration.remarks());
        }
        if Instant::now() > until {
            break;
        }
    }
    restoration.remark(|| "the workspace has too many files to look after protected paths in all of its folders; remove some".to_owned());
    Ok(restoration.remarks())
}

fn run(order: &Order, surroundings: &Surroundings<'_>, host: &mut Link) -> Result<Ending, String> {
    let (mut command, places) = os::enclose(surroundings)?;
    let (ours, theirs) = UnixStream::pair().map_err(|error| error.to_string())?;
    let temporary = if order.level == SandboxLevel::Full { Path::new("/tmp") } else { surroundings.temporary };
    let mut child = command
        .arg("confined-command")
        .env("TMPDIR", temporary)
        .env("XDG_CACHE_HOME", temporary.join(".cache"))
        // npm does not know of the above, and its own folder in the home is not there.
        .env("npm_config_cache", temporary.join(".cache/npm"))
        .envs(surroundings.environment.iter().map(|(name, value)| (*name, value)))
        .stdin(Stdio::from(OwnedFd::from(theirs)))
        .spawn()
        .map_err(|error| format!("{} cannot be started: {error}", command.get_program().display()))?;
    // It holds the other end of the pair.
    drop(command);
    let sockets = match (order.level, order.network) {
        (SandboxLevel::Full, false) => Sockets::Own,
        (SandboxLevel::Full, true) => Sockets::OwnAndNetwork,
        (SandboxLevel::Kernel | SandboxLevel::None, false) => Sockets::Pairs,
        (SandboxLevel::Kernel | SandboxLevel::None, true) => Sockets::PairsAndNetwork,
    };
    let mut confined = Link::over(ours);
    let confinement = Confinement { task: order.task.clone(), places, sockets, limits: order.limits };
    // What ends before it has read this has something to say for itself, or has ended with a status that says it.
    let _ = confined.send(&confinement);
    match confined.receive::<Readiness>() {
        Ok(Some(Readiness::Confined)) => watch(&mut child, order, host),
        Ok(Some(Readiness::Failed(problem))) => Err(problem),
        Ok(None) | Err(_) => {
            let status = child.wait().map_err(|error| error.to_string())?;
            Err(format!("what makes the sandbox ended with {status}"))
        }
    }
}

fn watch(child: &mut Child, order: &Order, host: &mut Link) -> Result<Ending, String> {
    let most = usize::try_from(order.limits.processes).unwrap_or(usize::MAX);
    loop {
        if let Some(status) = child.try_wait().map_err(|error| error.to_string())? {
            return Ok(ending(status));
        }
        if host.has_ended() {
            ask_to_end(child, order.level);
            return Ok(Ending::Stopped);
        }
        // For root the kernel does not count.
        if os::count_descendants() > most {
            return Ok(Ending::TooManyProcesses);
        }
        os::wait_for_either(child, host, GLANCE).map_err(|error| error.to_string())?;
    }
}

fn ending(status: ExitStatus) -> Ending {
    Ending::Exited(exit_code(status))
}

fn ask_to_end(child: &mut Child, level: SandboxLevel) {
    os::ask_descendants_to_end(os::own_generations(level));
    let deadline = Instant::now() + GRACE;
    while Instant::now() < deadline && matches!(child.try_wait(), Ok(None)) {
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Folders and files for this command alone, removed with it.
struct Private {
    folder: tempfile::TempDir,
    temporary: PathBuf,
    empty_file: PathBuf,
    empty_folder: PathBuf,
    /// Made when it is needed.
    settings: PathBuf,
}

impl Private {
    fn make() -> std::io::Result<Self> {
        let folder = tempfile::Builder::new().prefix("cofferdam-").permissions(Permissions::from_mode(0o700)).tempdir()?;
        // Links in the way, such as that of macOS's `/tmp`, are none of a sandbox's business.
        let path = folder.path().canonicalize()?;
        let [temporary, empty_file, empty_folder, settings] = ["tmp", "file", "folder", "settings"].map(|name| path.join(name));
        let private = Self { folder, temporary, empty_file, empty_folder, settings };
        std::fs::create_dir(&private.temporary)?;
        std::fs::create_dir(&private.empty_folder)?;
        std::fs::write(&private.empty_file, "")?;
        for path in [&private.empty_file, &private.empty_folder] {
            std::fs::set_permissions(path, Permissions::from_mode(0o000))?;
        }
        Ok(private)
    }
}

impl Private {
    /// Removes what is in it, until then; whether that is all. The command may have left folders that nobody can enter, and
    /// such that are deeper than any path.
    fn empty(&self, until: Option<Instant>) -> bool {
        let Ok(opened) = std::fs::File::open(self.folder.path()) else { return false };
        let mut goes_on = || until.is_none_or(|until| Instant::now() < until);
        ["tmp", "folder"].into_iter().all(|name| remove_tree(&opened, name, &mut goes_on).is_ok())
    }
}

impl Drop for Private {
    fn drop(&mut self) {
        self.empty(None);
    }
}
