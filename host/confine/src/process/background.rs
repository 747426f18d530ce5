//! Commands that continue while their caller does something else.
//!
//! A background command has a private view of the workspace, or a read-only workspace. It needs
//! neither a turn nor the end of other commands. It ends at the latest when this process ends.

use std::path::Path;
use std::time::{Duration, Instant};

use super::streams::{
    BackgroundInput, BackgroundOutput, ServerStreams, create_server_streams, create_streams,
};
use super::supervisor_handle::{ExitReport, StopWait, SupervisorEvent, SupervisorHandle};
use super::{CommandEnding, CommandFailure, CommandWorkspace, DRAIN_TIMEOUT, ProxyFactory};
use crate::view::{CommandChanges, PlannedView, ViewUnavailable};
use crate::{CommandLocation, CommandSandbox};
use cofferdam_policy::{Effect, Permit, SandboxLevel, WorkspaceAccess};
use tokio::net::unix::pipe::Receiver;

/// The bytes of output that are read at once.
const CHUNK_LEN: usize = 64 << 10;

/// The standard streams of a background command.
///
/// This enum is closed: each kind is created differently.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum BackgroundStreams {
    /// One pipe for the input, and one for both outputs, so that they stay in order.
    #[default]
    Pipes,
    /// A pseudo-terminal of 120 columns and 40 lines.
    Terminal,
}

/// A command that runs in the background. If the value is dropped, the command is killed and its
/// changes are discarded.
pub struct BackgroundCommand {
    supervisor: SupervisorHandle,
    output: BackgroundOutput,
    started: Instant,
    has_ended: bool,
}

/// News of a background command.
#[derive(Debug)]
#[non_exhaustive]
pub enum BackgroundEvent {
    /// The command wrote this.
    Output(Vec<u8>),
    /// What the command has changed so far, since the last checkpoint, or why it could not be
    /// collected. [`BackgroundCommand::settle_checkpoint`] has to follow.
    Checkpoint(Result<CommandCheckpoint, String>),
    /// The last checkpoint is settled. From now on, a change of an entry that it committed is one
    /// of somebody else.
    Settled,
    /// The command has ended.
    Ended(BackgroundEnding),
}

/// What a background command has changed so far, since its last checkpoint. Nothing of it is in the
/// workspace yet.
#[derive(Debug)]
#[non_exhaustive]
pub struct CommandCheckpoint {
    /// The changes, with copies of the new entries.
    pub changes: CommandChanges,
    /// Notices about changes to protected paths that were undone.
    pub notices: Vec<String>,
}

/// The end of a background command.
#[derive(Debug)]
#[non_exhaustive]
pub struct BackgroundEnding {
    /// The way in which it ended, or why it did not run. A stopped command counts as timed out.
    pub ending: Result<CommandEnding, CommandFailure>,
    /// The rest of the output.
    pub output: Vec<u8>,
    /// The time from the start of the command to its end.
    pub duration: Duration,
    /// Notices about changes to protected paths that were undone.
    pub notices: Vec<String>,
    /// The changes of the command, none of which is in the workspace yet.
    pub changes: Option<CommandChanges>,
}

/// Starts the command of the permit in the background.
///
/// `proxy` returns what starts the proxy for the hosts that the rules list.
///
/// # Errors
/// The command could not be started. Without a private view of the workspace, only commands with a
/// read-only workspace run in the background.
pub async fn start_in_background(
    permit: Permit,
    workspace: CommandWorkspace<'_>,
    commands: &CommandSandbox,
    streams: BackgroundStreams,
    proxy: Option<ProxyFactory<'_>>,
) -> Result<(BackgroundCommand, BackgroundInput), CommandFailure> {
    let access = permit.workspace_access().clone();
    let Effect::Command { line, directory, background: true } = permit.into_effect() else {
        return Err(CommandFailure::NotACommand);
    };
    let level = SandboxLevel::Full;
    let directory = workspace
        .resolve(Path::new(directory.as_fs_path()))
        .map_err(|source| CommandFailure::Directory { directory: directory.to_string(), source })?;
    check_background(commands, workspace.root)?;
    let view = match access {
        WorkspaceAccess::ReadOnly(_) => PlannedView::ReadOnly,
        WorkspaceAccess::ReadWrite => commands
            .create_layer(workspace.root)
            .map_err(CommandFailure::Start)?
            .map(PlannedView::Layer)
            .ok_or(ViewUnavailable::Namespaces)?,
    };
    let place = CommandLocation {
        workspace: workspace.root,
        directory: &directory,
        protected: workspace.protected,
        direct: workspace.direct,
    };
    let (plan, output, input) = create_streams(streams).map_err(CommandFailure::Start)?;
    let started = Instant::now();
    let proxy = proxy.map(|new| new());
    let started_supervisor =
        SupervisorHandle::start(commands, &line, level, place, view, plan, proxy);
    let (supervisor, ..) = started_supervisor.await?;
    Ok((BackgroundCommand { supervisor, output, started, has_ended: false }, input))
}

/// Starts the command of the permit as a server, whose output is a protocol of its own. The events
/// of the command contain only its errors. The command is in the level `full` in any case.
///
/// `proxy` returns what starts the proxy for the hosts that the rules list.
///
/// # Errors
/// The command could not be started. Without a private view of the workspace, only commands with a
/// read-only workspace start.
pub async fn start_server(
    permit: Permit,
    workspace: CommandWorkspace<'_>,
    commands: &CommandSandbox,
    proxy: Option<ProxyFactory<'_>>,
) -> Result<(BackgroundCommand, Receiver, BackgroundInput), CommandFailure> {
    let access = permit.workspace_access().clone();
    let Effect::Command { line, directory: _, background: true } = permit.into_effect() else {
        return Err(CommandFailure::NotACommand);
    };
    if commands.measured().level != SandboxLevel::Full {
        return Err(ViewUnavailable::Namespaces.into());
    }
    let view = match access {
        WorkspaceAccess::ReadOnly(_) => PlannedView::ReadOnly,
        WorkspaceAccess::ReadWrite => {
            check_background(commands, workspace.root)?;
            commands
                .create_layer(workspace.root)
                .map_err(CommandFailure::Start)?
                .map(PlannedView::Layer)
                .ok_or(ViewUnavailable::Namespaces)?
        }
    };
    let place = CommandLocation {
        workspace: workspace.root,
        directory: workspace.root,
        protected: workspace.protected,
        direct: workspace.direct,
    };
    let streams = create_server_streams().map_err(CommandFailure::Start)?;
    let ServerStreams { plan, errors, output, input } = streams;
    let started = Instant::now();
    let proxy = proxy.map(|new| new());
    let level = SandboxLevel::Full;
    let started_supervisor =
        SupervisorHandle::start(commands, &line, level, place, view, plan, proxy);
    let (supervisor, ..) = started_supervisor.await?;
    let command = BackgroundCommand { supervisor, output: errors, started, has_ended: false };
    Ok((command, output, input))
}

/// Checks whether commands can run in the background in a workspace.
///
/// # Errors
/// The reason why they cannot: they have no private view, so they would stop all other commands.
pub fn check_background(commands: &CommandSandbox, workspace: &Path) -> Result<(), CommandFailure> {
    Ok(commands.private_view(workspace)?)
}

impl BackgroundCommand {
    /// Waits for the next news. Returns `None` after the end. This is cancel-safe.
    pub async fn next(&mut self) -> Option<BackgroundEvent> {
        if self.has_ended {
            return None;
        }
        let mut buffer = vec![0; CHUNK_LEN];
        loop {
            tokio::select! {
                count = self.output.read(&mut buffer), if self.output.is_open() => {
                    if count > 0 {
                        buffer.truncate(count);
                        return Some(BackgroundEvent::Output(buffer));
                    }
                }
                event = self.supervisor.next_event() => {
                    let report = match event {
                        Ok(SupervisorEvent::Checkpoint(checkpoint)) => {
                            return Some(BackgroundEvent::Checkpoint(checkpoint));
                        }
                        Ok(SupervisorEvent::Settled) => return Some(BackgroundEvent::Settled),
                        Ok(SupervisorEvent::Ended(report)) => Ok(report),
                        Err(failure) => Err(failure),
                    };
                    return Some(BackgroundEvent::Ended(self.finish(report).await));
                }
            }
        }
    }

    /// Asks for what the command has changed so far. All of its processes pause meanwhile. The next
    /// request has to wait until this one is [settled](Self::settle_checkpoint).
    ///
    /// # Errors
    /// The reason why the command has no checkpoint: it has ended, or changes no files.
    pub async fn request_checkpoint(&mut self) -> std::io::Result<()> {
        if self.has_ended {
            return Err(std::io::Error::other("the command has ended"));
        }
        self.supervisor.request_checkpoint().await
    }

    /// Tells the supervisor of the command that the changes of the last checkpoint are committed or
    /// discarded. It collects no others before.
    pub async fn settle_checkpoint(&mut self) {
        // Without the supervisor, there are no other changes.
        let _ = self.supervisor.settle_checkpoint().await;
    }

    /// Ends the command with all of its processes, and collects its changes. Returns `None` after
    /// the end.
    pub async fn stop(&mut self) -> Option<BackgroundEnding> {
        if self.has_ended {
            return None;
        }
        let report = self.supervisor.stop(StopWait::ForChanges).await;
        let report = report.unwrap_or_else(ExitReport::timed_out);
        Some(self.finish(Ok(report)).await)
    }

    async fn finish(&mut self, report: Result<ExitReport, CommandFailure>) -> BackgroundEnding {
        self.has_ended = true;
        let mut output = Vec::new();
        let _ = tokio::time::timeout(DRAIN_TIMEOUT, async {
            let mut buffer = vec![0; CHUNK_LEN];
            // The buffer of a pipe or a terminal bounds this: all processes have ended.
            while let count @ 1.. = self.output.read(&mut buffer).await {
                output.extend_from_slice(&buffer[..count]);
            }
        })
        .await;
        let duration = self.started.elapsed();
        let (ending, notices, changes) = match report {
            Err(failure) => (Err(failure), Vec::new(), None),
            Ok(ExitReport { ending: Ok(ending), notices, changes }) => {
                (Ok(ending), notices, changes)
            }
            Ok(ExitReport { ending: Err(source), notices: details, .. }) => {
                (Err(CommandFailure::Sandbox { source, details }), Vec::new(), None)
            }
        };
        BackgroundEnding { ending, output, duration, notices, changes }
    }
}
