//! The process between the host and a command.
//!
//! It creates the sandbox, waits, kills all processes of the command, restores the protected paths
//! and reports. If the host is killed, it lives just long enough to do so.

use std::ffi::OsString;
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::time::{Duration, Instant};

use super::checkpoint::{CheckpointMaker, refuse_checkpoint};
use super::command_dirs::PrivateDirs;
use super::command_environment::{added_environment, pass_listener};
use super::error::{ConfineError, ConfineStep, StepProblem};
use super::isolation::{IsolatingLayer, PlannedIsolation, WorkspaceIsolation};
use super::journal::RestoreJournal;
use super::link::{LinkState, SupervisorLink};
use super::modes::RecordedFileModes;
use super::protection_rounds::restore_protected_paths;
use super::protocol::{
    ChildReadiness, CommandExitKind, CommandPaths, ConfinementSpec, HostMessage, NamespaceMaker,
    NetworkAccess, SocketAccess, SupervisedView, SupervisorMessage, SupervisorReport,
    SupervisorRequest,
};
use super::sandbox_process::{SandboxProcess, SandboxStart};
use super::set_aside::move_held_entries;
use super::settings::{SettingsCopies, WorkspaceSettings};
use super::snapshot::EntryKind;
use super::supervisor_start::replace_output;
use crate::exit_code::exit_code;
use crate::os::{self, DetachedOverlay, PreparedSandbox};
use crate::path_resolver::PathResolver;
use crate::view::collect::{collect_changes, open_directory};
use crate::view::{CollectedChanges, CommittedPaths, OverlayFacts};
use cofferdam_policy::{PathProtection, ProtectedPaths, SandboxLevel};

/// The time between a stop request and killing the command. An abort has to return within a second
///
const GRACE_PERIOD: Duration = Duration::from_millis(300);
/// The interval at which processes are counted.
const POLL_INTERVAL: Duration = Duration::from_millis(100);
/// The time for the host to commit the changes of a command.
const COMMIT_TIMEOUT: Duration = Duration::from_secs(1);

/// The description of a command's sandbox, for the operating system modules.
#[derive(Debug)]
#[allow(dead_code, reason = "each operating system reads what its sandbox is made of")]
pub(crate) struct SandboxSpec<'a> {
    pub(crate) level: SandboxLevel,
    pub(crate) program: &'a Path,
    /// What creates the namespaces, at the level `full`.
    pub(crate) namespaces: Option<&'a NamespaceMaker>,
    pub(crate) workspace: &'a Path,
    /// Whether the command can change the workspace.
    pub(crate) writes_workspace: bool,
    pub(crate) directory: &'a Path,
    pub(crate) home: Option<&'a Path>,
    pub(crate) network: NetworkAccess,
    pub(crate) paths: &'a CommandPaths,
    /// The pairs of a file with secrets and the copy without them that replaces it.
    pub(crate) copies: &'a [(PathBuf, PathBuf)],
    /// Variables in addition to those of every command.
    pub(crate) environment: &'a [(&'static str, PathBuf)],
    /// A private directory of this command.
    pub(crate) temporary: &'a Path,
    /// A replacement for hidden files that nobody can read.
    pub(crate) empty_file: &'a Path,
    pub(crate) empty_directory: &'a Path,
    /// The protected entries below the workspace, outer paths first.
    pub(crate) protected: &'a [(PathBuf, PathProtection, EntryKind)],
    /// The sockets in the workspace, which may have listeners outside.
    pub(crate) sockets: &'a [PathBuf],
    /// The rules for paths that do not exist yet.
    pub(crate) rules: &'a ProtectedPaths,
}

/// Executes a request, unless this process could not be prepared, and reports the result.
pub(super) fn supervise(
    order: &SupervisorRequest,
    host: &mut SupervisorLink,
    prepared: Result<Option<PreparedSandbox>, ConfineError>,
) {
    // Terminal signals go to the host, which then closes the link.
    let _ = rustix::process::setsid();
    let mut results = CommandResults::default();
    let ending = prepared
        .and_then(|prepared| handle_request(order, host, prepared, &mut results))
        .unwrap_or_else(|error| CommandExitKind::NotRun(error.encode()));
    let report = SupervisorMessage::Ended(SupervisorReport {
        ending,
        digest: order.digest.clone(),
        level: order.level,
        notices: results.notices,
        changes: results.changes,
    });
    // The host may be gone.
    if host.send(&report).is_ok() && results.overlay.is_some() {
        // The commit of the changes would wait for a disk that the end of the overlay keeps busy.
        host.wait_until_closed(COMMIT_TIMEOUT);
    }
    // The rest takes time, and nobody waits for it: removing the private files, and the end of the
    // overlay.
    drop((results.private, results.overlay));
}

/// What a request leaves besides the ending of its command.
#[derive(Default)]
struct CommandResults {
    private: Option<PrivateDirs>,
    notices: Vec<String>,
    changes: Option<CollectedChanges>,
    /// The overlay of the command, which nothing uses any more.
    overlay: Option<DetachedOverlay>,
}

fn handle_request(
    order: &SupervisorRequest,
    host: &mut SupervisorLink,
    prepared: Option<PreparedSandbox>,
    results: &mut CommandResults,
) -> Result<CommandExitKind, ConfineError> {
    if order.job.digest() != order.digest {
        return Err(ConfineError::new(ConfineStep::ReadRequest, StepProblem::LineNotApproved));
    }
    os::adopt_orphans().map_err(ConfineError::at(ConfineStep::AdoptProcesses))?;
    let CommandResults { private: slot, notices, changes, overlay: detached } = results;
    let Some(isolation) = PlannedIsolation::begin(order, host, notices)? else {
        return Ok(CommandExitKind::Stopped);
    };
    let private = slot.insert(
        PrivateDirs::create(&order.temp_dir)
            .map_err(ConfineError::at(ConfineStep::CreatePrivateDirs))?,
    );
    let keeping = order.level != SandboxLevel::Full;
    let (isolation, (mut before, protected)) = isolation.capture(order, host, keeping, notices)?;
    if keeping && before.contains_program_files {
        return Err(ConfineError::new(
            ConfineStep::PlanSandbox,
            StepProblem::ProgramFilesInWorkspace,
        ));
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
        .map_err(ConfineError::at(ConfineStep::CopySettings))?;
    let surroundings = SandboxSpec {
        level: order.level,
        program: &order.program,
        namespaces: order.namespaces.as_ref(),
        workspace: &order.workspace,
        writes_workspace: order.view != SupervisedView::ReadOnly,
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
    // A killed supervisor leaves nothing in the workspace if all changes are in a layer.
    let unfinished = isolation
        .journal_place()
        .map(|place| RestoreJournal::begin(place, order, &private.temporary, &protected, &before))
        .transpose()
        .map_err(ConfineError::at(ConfineStep::RecordProtectedPaths))?;
    // At this level commands can reach the files themselves, and so their permissions.
    let modes = if keeping {
        // `x` stands for an entry of the directory, so that the directory itself counts as a
        // parent.
        let records = order.set_aside.join("unfinished/x");
        let reached = [order.workspace.as_path(), &records, &private.temporary];
        RecordedFileModes::of(&order.own, &reached)
    } else {
        RecordedFileModes::default()
    };
    let begun = Instant::now();
    let mut committed = CommittedPaths::default();
    if let WorkspaceIsolation::Layer(layer) = &isolation {
        committed.set_start(layer.since);
    }
    let mut checkpoints = match &isolation {
        WorkspaceIsolation::Layer(IsolatingLayer { overlay, paths, direct: None, .. }) => {
            let (before, protected) = (&before, &protected);
            let committed = &mut committed;
            let held = Vec::new();
            Some(CheckpointMaker { order, overlay, paths, before, protected, committed, held })
        }
        // What a command writes directly is not collected.
        WorkspaceIsolation::Layer(_)
        | WorkspaceIsolation::Turn(_)
        | WorkspaceIsolation::Unneeded => None,
    };
    let sandbox = os::plan_sandbox(&surroundings, prepared);
    let environment = added_environment(&surroundings);
    let ran = sandbox
        .and_then(|sandbox| run_command(order, sandbox, environment, host, checkpoints.as_mut()));
    let ended = os::kill_descendants();
    let mut held = Vec::new();
    if let Some(checkpoints) = &mut checkpoints {
        checkpoints.wait_until_settled(host);
        held = std::mem::take(&mut checkpoints.held);
    }
    notices.extend(modes.put_back());
    let restore = |scope| {
        let paths = (order.workspace.as_path(), order.set_aside.as_path());
        restore_protected_paths(paths, &protected, keeping, &before, scope, begun.elapsed())
    };
    notices.extend(copies.remarks);
    match isolation {
        WorkspaceIsolation::Unneeded => {
            notices.extend(ended.err().map(|remaining| remaining.to_string()));
        }
        // A command whose changes cannot be checked changes nothing.
        WorkspaceIsolation::Layer(IsolatingLayer { overlay, paths, direct, .. }) => {
            ended.map_err(ConfineError::at(ConfineStep::KillProcesses))?;
            let failed = ConfineError::at::<std::io::Error>;
            let view = direct.as_ref().map(|direct| &direct.view);
            notices.extend(view.and_then(|view| view.describe_changes(&order.workspace)));
            let mounted = view.map(|view| view.mounted().to_vec()).unwrap_or_default();
            let scope =
                overlay.scope(&paths, mounted).map_err(failed(ConfineStep::CheckChanges))?;
            let restored =
                restore(Some(&scope)).map_err(ConfineError::at(ConfineStep::CheckChanges))?;
            notices.extend(restored.notices);
            held.extend(restored.held);
            let created = view.map(|view| view.created().to_vec()).unwrap_or_default();
            let shown = overlay.shown().map_err(failed(ConfineStep::CollectChanges))?;
            // The kernel writes all changes of the file system to the disk when the overlay ends,
            // which takes long. No command that changes files directly waits for that.
            *detached = overlay.unmount().map_err(failed(ConfineStep::CollectChanges))?;
            move_held_entries(&held, &paths.upper, &order.workspace)
                .map_err(failed(ConfineStep::CheckChanges))?;
            // Until now, directories that the command wrote directly may have had such entries.
            notices.extend(end_record(unfinished));
            if let Some(view) = view {
                view.remove_empty(&order.workspace);
            }
            let collected = open_directory(&order.workspace)
                .map(|workspace| (workspace, OverlayFacts { shown, created }))
                .and_then(|below| collect_changes(&paths, below, &committed));
            *changes = Some(collected.map_err(failed(ConfineStep::CollectChanges))?);
        }
        WorkspaceIsolation::Turn(_) => {
            match restore(None) {
                Ok(done) if done.has_unrestored => {
                    notices.extend(done.notices);
                    notices.extend(unfinished.map(RestoreJournal::keep_unrestored));
                }
                Ok(done) => {
                    notices.extend(done.notices);
                    notices.extend(end_record(unfinished));
                }
                // The record stays, and the next command tries again.
                Err(problem) => {
                    notices.push(format!("cannot restore the protected paths: {problem}"));
                }
            }
            notices.extend(ended.err().map(|remaining| remaining.to_string()));
        }
    }
    ran
}

/// Removes the record of a command after everything is restored. Returns a notice if this fails.
fn end_record(unfinished: Option<RestoreJournal>) -> Option<String> {
    let removed = unfinished.map_or(Ok(()), RestoreJournal::end);
    removed.err().map(|error| format!("cannot remove the record of the command: {error}"))
}

/// Returns the places that new links must not point to: those that commands can write, and those
/// with this program's files.
fn places_closed_to_links(order: &SupervisorRequest) -> (Vec<PathBuf>, Vec<PathBuf>) {
    let resolver = PathResolver::default();
    let real = |path: &PathBuf| resolver.real(path);
    let own = order.own.iter().chain([&order.set_aside]).map(real);
    (order.paths.write.iter().map(real).collect(), own.collect())
}

fn run_command(
    order: &SupervisorRequest,
    (start, places): (SandboxStart, CommandPaths),
    environment: Vec<(OsString, OsString)>,
    host: &mut SupervisorLink,
    checkpoints: Option<&mut CheckpointMaker<'_>>,
) -> Result<CommandExitKind, ConfineError> {
    let (ours, theirs) = UnixStream::pair().map_err(ConfineError::at(ConfineStep::StartSandbox))?;
    let mut child = start.start(theirs, environment)?;
    // The output ends with the processes of the command, not with this one.
    replace_output().map_err(ConfineError::at(ConfineStep::ReplaceStreams))?;
    let sockets = match (order.level, order.network) {
        (SandboxLevel::Full, NetworkAccess::None | NetworkAccess::Proxy) => SocketAccess::Own,
        (SandboxLevel::Full, NetworkAccess::Host) => SocketAccess::OwnAndNetwork,
        (SandboxLevel::Kernel | SandboxLevel::None, NetworkAccess::Host) => {
            SocketAccess::PairsAndNetwork
        }
        (SandboxLevel::Kernel | SandboxLevel::None, _) => SocketAccess::Pairs,
    };
    let mut confined = SupervisorLink::new(ours);
    let early = pass_listener(order, &mut confined, host)?;
    let confinement = ConfinementSpec {
        job: order.job.clone(),
        paths: places,
        sockets,
        limits: order.limits,
        streams: order.streams,
    };
    // A process that ends before reading this sends a message or has a meaningful exit status.
    let descriptors = host.take_descriptors();
    let _ = match descriptors.is_empty() {
        true => confined.send(&confinement),
        false => {
            let descriptors: Vec<_> = descriptors.iter().map(OwnedFd::as_fd).collect();
            confined.send_with_descriptors(&confinement, &descriptors)
        }
    };
    let answer = match early {
        Some(failed) => Ok(Some(failed)),
        None => confined.receive::<ChildReadiness>(),
    };
    match answer {
        Ok(Some(ChildReadiness::Confined)) => {
            wait_for_command(&mut child, order, host, checkpoints)
        }
        Ok(Some(ChildReadiness::Failed(problem))) => Err(problem.decode()),
        Ok(Some(ChildReadiness::Listening) | None) | Err(_) => {
            let status = child.wait().map_err(ConfineError::at(ConfineStep::WaitForCommand))?;
            Err(ConfineError::new(ConfineStep::StartSandbox, StepProblem::EndedEarly(status)))
        }
    }
}

fn wait_for_command(
    child: &mut SandboxProcess,
    order: &SupervisorRequest,
    host: &mut SupervisorLink,
    mut checkpoints: Option<&mut CheckpointMaker<'_>>,
) -> Result<CommandExitKind, ConfineError> {
    let failed = |error: std::io::Error| ConfineError::new(ConfineStep::WaitForCommand, error);
    let most = usize::try_from(order.limits.processes).unwrap_or(usize::MAX);
    let mut counted = Instant::now();
    loop {
        if let Some(status) = child.try_wait().map_err(failed)? {
            return Ok(exit_kind(status));
        }
        let is_stopped = match host.state() {
            LinkState::Quiet => false,
            LinkState::Closed => true,
            LinkState::Readable => {
                receive_message(host, order, checkpoints.as_deref_mut()).is_err()
            }
        };
        if is_stopped {
            terminate_gracefully(child, order.namespaces.as_ref());
            return Ok(CommandExitKind::Stopped);
        }
        // The kernel does not enforce the process limit for root. Counting reads the status of
        // every process of the machine, so that short commands end before the first time.
        if counted.elapsed() >= POLL_INTERVAL {
            counted = Instant::now();
            if os::count_descendants() > most {
                return Ok(CommandExitKind::TooManyProcesses);
            }
        }
        os::wait_for_child_or_link(child.pid(), host, POLL_INTERVAL).map_err(failed)?;
    }
}

/// Receives a message of the host and acts on it.
///
/// # Errors
/// The host is gone.
fn receive_message(
    host: &mut SupervisorLink,
    order: &SupervisorRequest,
    checkpoints: Option<&mut CheckpointMaker<'_>>,
) -> std::io::Result<()> {
    let message = host.receive::<HostMessage>()?.ok_or(std::io::ErrorKind::UnexpectedEof)?;
    match (message, checkpoints) {
        (HostMessage::Checkpoint(request), Some(checkpoints)) => {
            let report = checkpoints.collect(&request, host);
            host.send(&SupervisorMessage::Checkpoint(report))
        }
        (HostMessage::Checkpoint(_), None) => {
            host.send(&SupervisorMessage::Checkpoint(refuse_checkpoint(&order.workspace)))
        }
        (HostMessage::Settled, Some(checkpoints)) => {
            checkpoints.settle();
            host.send(&SupervisorMessage::Settled)
        }
        (HostMessage::Settled, None) => Ok(()),
    }
}

fn exit_kind(status: ExitStatus) -> CommandExitKind {
    CommandExitKind::Exited(exit_code(status))
}

fn terminate_gracefully(child: &mut SandboxProcess, namespaces: Option<&NamespaceMaker>) {
    os::terminate_descendants(os::sandbox_process_depth(namespaces));
    let deadline = Instant::now() + GRACE_PERIOD;
    while Instant::now() < deadline && matches!(child.try_wait(), Ok(None)) {
        std::thread::sleep(Duration::from_millis(5));
    }
}
