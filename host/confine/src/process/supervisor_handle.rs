//! The host's handle to a sandboxed command: its supervisor and the link to it. The command ends
//! when the link closes for any reason.

use std::os::fd::{AsFd as _, OwnedFd};
use std::time::Duration;

use tokio::io::AsyncWriteExt as _;
use tokio::net::UnixStream;
use tokio::process::{ChildStderr, ChildStdout};

use super::ready_supervisor::StartedSupervisor;
use super::streams::StreamPlan;
use super::{CommandCheckpoint, CommandEnding, CommandFailure, StartProxy};
use crate::link::{receive_with_descriptors, send_with_descriptors};
use crate::protocol::{
    CheckpointReport, CheckpointRequest, HostMessage, NetworkAccess, SupervisorMessage,
    SupervisorReport,
};
use crate::view::{CollectedChanges, CommandChanges, CommandLayer, PlannedView};
use crate::{
    CommandExitKind, CommandJob, CommandLocation, CommandSandbox, ConfineError, SandboxSetup,
    SpawnPlan,
};
use cofferdam_policy::ComponentDigest;
use cofferdam_policy::SandboxLevel;

/// The time to wait for the report after a stop request. A supervisor with many files to restore
/// continues on its own.
const REPORT_TIMEOUT: Duration = Duration::from_millis(700);

/// The time to wait for the changes of a command that reached its time limit.
const COLLECT_TIMEOUT: Duration = Duration::from_secs(30);

/// The largest report, in bytes: 100,000 changes with paths of 500 bytes.
const MAX_REPORT_LEN: usize = 64 << 20;

/// How long a stopped command is waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StopWait {
    /// Until it has ended. Its changes do not matter.
    Short,
    /// Until its changes are collected, too.
    ForChanges,
}

/// The final report about a command.
#[derive(Debug)]
pub(super) struct ExitReport {
    /// The ending, or the reason why the command did not run to its end.
    pub(super) ending: Result<CommandEnding, ConfineError>,
    pub(super) notices: Vec<String>,
    /// The changes in the layer of the command, if it has one and ran.
    pub(super) changes: Option<CommandChanges>,
}

/// News of a supervisor.
#[derive(Debug)]
pub(super) enum SupervisorEvent {
    /// What the command has changed so far, or why it could not be collected.
    Checkpoint(Result<CommandCheckpoint, String>),
    /// The supervisor knows what was committed.
    Settled,
    Ended(ExitReport),
}

impl ExitReport {
    /// The report of a command without a supervisor that reached its time limit.
    pub(super) fn timed_out() -> Self {
        Self { ending: Ok(CommandEnding::TimedOut), notices: Vec::new(), changes: None }
    }
}

/// A running supervisor with its link.
pub(super) struct SupervisorHandle {
    link: UnixStream,
    buffer: Vec<u8>,
    /// The length of the part of the buffer that has no line break.
    searched: usize,
    /// The descriptors that came with messages.
    received: Vec<OwnedFd>,
    digest: ComponentDigest,
    level: SandboxLevel,
    max_processes: u64,
    reported: bool,
    /// The layer of the command; `None` if it writes the workspace directly.
    layer: Option<CommandLayer>,
    /// The layer for the copies of the checkpoint that the supervisor makes.
    checkpoint: Option<CommandLayer>,
    /// Takes the socket of the proxy, if the command has one.
    proxy: Option<StartProxy>,
}

impl SupervisorHandle {
    pub(super) async fn start(
        commands: &CommandSandbox,
        line: &str,
        level: SandboxLevel,
        place: CommandLocation<'_>,
        view: PlannedView,
        streams: StreamPlan,
        proxy: Option<StartProxy>,
    ) -> Result<(Self, Option<ChildStdout>, Option<ChildStderr>), CommandFailure> {
        let rules = commands.rules();
        let StreamPlan { kind: streams, descriptors } = streams;
        let commission = commands.plan_spawn(
            CommandJob::CommandLine(line.to_owned()),
            SandboxSetup { view: view.to_request(), streams, ..commands.setup_at(level) },
            place,
            match (commands.network_access(), &proxy) {
                (NetworkAccess::Proxy, None) => NetworkAccess::None,
                (access, _) => access,
            },
        );
        let plan = commission.map_err(CommandFailure::Start)?;
        let started = commands.take_supervisor(&plan).map_err(CommandFailure::Start)?;
        let SpawnPlan { request: order, digest, preparation: _ } = plan;
        let (StartedSupervisor { mut child, link }, successor) = started;
        let (out, err) = (child.stdout.take(), child.stderr.take());
        // The supervisor ends by itself after the link closes, because it has to restore files
        // first. Meanwhile the processor that waits for the command starts the next one.
        successor.start_beside(child);
        let failed = CommandFailure::Start;
        if !descriptors.is_empty() {
            let descriptors: Vec<_> = descriptors.iter().map(OwnedFd::as_fd).collect();
            // Descriptors need at least one byte to come with. JSON may begin with a space, and one
            // byte always fits into the buffer of the socket.
            send_with_descriptors(link.as_fd(), b" ", &descriptors).map_err(failed)?;
        }
        link.set_nonblocking(true).map_err(failed)?;
        let mut link = UnixStream::from_std(link).map_err(failed)?;
        link.write_all(&order).await.map_err(failed)?;
        let out = out.map(ChildStdout::from_std).transpose().map_err(failed)?;
        let err = err.map(ChildStderr::from_std).transpose().map_err(failed)?;
        Ok((
            Self {
                link,
                buffer: Vec::new(),
                searched: 0,
                received: Vec::new(),
                digest,
                level,
                max_processes: rules.limits.processes,
                reported: false,
                layer: view.into_layer(),
                checkpoint: None,
                proxy,
            },
            out,
            err,
        ))
    }

    /// Waits for the report. Discards a checkpoint that comes before. This is cancel-safe.
    pub(super) async fn wait_for_report(&mut self) -> Result<ExitReport, CommandFailure> {
        loop {
            if let SupervisorEvent::Ended(report) = self.next_event().await? {
                return Ok(report);
            }
        }
    }

    /// Waits for the report or for a checkpoint. This is cancel-safe.
    pub(super) async fn next_event(&mut self) -> Result<SupervisorEvent, CommandFailure> {
        loop {
            match self.receive().await.map_err(|_| CommandFailure::MissingReport)? {
                Some(SupervisorMessage::Ended(report)) => {
                    return self.take_report(report).map(SupervisorEvent::Ended);
                }
                Some(SupervisorMessage::Checkpoint(report)) => {
                    let CheckpointReport { changes, notices } = report;
                    let layer = self.checkpoint.take();
                    let checkpoint =
                        changes.and_then(|CollectedChanges { changes, notices: more }| {
                            let layer = layer.ok_or("nobody asked for it")?;
                            let notices = notices.into_iter().chain(more).collect();
                            Ok(CommandCheckpoint {
                                changes: CommandChanges { layer, changes },
                                notices,
                            })
                        });
                    return Ok(SupervisorEvent::Checkpoint(checkpoint));
                }
                Some(SupervisorMessage::Settled) => return Ok(SupervisorEvent::Settled),
                Some(SupervisorMessage::Listening) => self.start_proxy(),
                None => return Err(CommandFailure::MissingReport),
            }
        }
    }

    /// Asks for a checkpoint, which [`Self::next_event`] returns.
    ///
    /// # Errors
    /// The command has no layer, or the supervisor is gone.
    pub(super) async fn request_checkpoint(&mut self) -> std::io::Result<()> {
        let layer = self.layer.as_ref().ok_or(std::io::ErrorKind::Unsupported)?;
        let copies = layer.create_for_checkpoint()?;
        let layer = copies.path().to_owned();
        self.checkpoint = Some(copies);
        self.send(&HostMessage::Checkpoint(CheckpointRequest { layer })).await
    }

    /// Tells the supervisor that the last checkpoint is committed or discarded, which it confirms
    /// with [`SupervisorEvent::Settled`].
    ///
    /// # Errors
    /// The supervisor is gone.
    pub(super) async fn settle_checkpoint(&mut self) -> std::io::Result<()> {
        self.send(&HostMessage::Settled).await
    }

    async fn send(&mut self, message: &HostMessage) -> std::io::Result<()> {
        let mut line = serde_json::to_vec(message)?;
        line.push(b'\n');
        self.link.write_all(&line).await
    }

    fn take_report(&mut self, report: SupervisorReport) -> Result<ExitReport, CommandFailure> {
        self.reported = true;
        // The report must be for the approved command at the approved level.
        if report.digest != self.digest || report.level != self.level {
            return Err(CommandFailure::MissingReport);
        }
        let mut remarks = report.notices;
        let ending = match report.ending {
            CommandExitKind::Exited(code) => Ok(CommandEnding::Exited(code)),
            CommandExitKind::Stopped => Ok(CommandEnding::TimedOut),
            CommandExitKind::TooManyProcesses => {
                remarks.push(format!(
                    "the command had more than {} processes and was killed",
                    self.max_processes
                ));
                Ok(CommandEnding::Killed(rustix::process::Signal::KILL.as_raw()))
            }
            CommandExitKind::NotRun(problem) => Err(problem.decode()),
        };
        let collected = report.changes.unwrap_or_default();
        remarks.extend(collected.notices);
        let changes = match (&ending, self.layer.take()) {
            (Ok(_), Some(mut layer)) => {
                if let Ok(link) = self.link.as_fd().try_clone_to_owned() {
                    layer.hold_overlay(link);
                }
                Some(CommandChanges { layer, changes: collected.changes })
            }
            (Ok(_), None) | (Err(_), _) => None,
        };
        Ok(ExitReport { ending, notices: remarks, changes })
    }

    /// Receives the next message, or `None` at the end. This is cancel-safe.
    async fn receive(&mut self) -> std::io::Result<Option<SupervisorMessage>> {
        let mut chunk = vec![0; 64 << 10];
        loop {
            let unread = self.buffer.get(self.searched..).unwrap_or_default();
            if let Some(end) = unread.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.buffer.drain(..=self.searched + end).collect();
                self.searched = 0;
                return Ok(Some(serde_json::from_slice(&line)?));
            }
            self.searched = self.buffer.len();
            if self.searched > MAX_REPORT_LEN {
                return Err(std::io::Error::other("the report of the command is too large"));
            }
            let received = &mut self.received;
            let link = &self.link;
            let count = link
                .async_io(tokio::io::Interest::READABLE, || {
                    receive_with_descriptors(link.as_fd(), &mut chunk, received)
                })
                .await?;
            if count == 0 {
                return Ok(None);
            }
            self.buffer.extend_from_slice(&chunk[..count]);
        }
    }

    /// Hands the socket of the proxy over. Without it, the command cannot connect.
    fn start_proxy(&mut self) {
        let listener = self.received.pop().map(std::net::TcpListener::from);
        if let (Some(start), Some(listener)) = (self.proxy.take(), listener) {
            start(listener);
        }
    }

    /// Ends the command and waits for its report. Returns `None` if there was a report before.
    ///
    /// A supervisor needs time to restore protected paths, or to collect the changes of a private
    /// view. If the report does not arrive in time, the changes of a private view are discarded.
    pub(super) async fn stop(&mut self, wait: StopWait) -> Option<ExitReport> {
        if self.reported {
            return None;
        }
        let _ = self.link.shutdown().await;
        let limit = match (wait, &self.layer) {
            (StopWait::ForChanges, Some(_)) => COLLECT_TIMEOUT,
            (StopWait::ForChanges | StopWait::Short, _) => REPORT_TIMEOUT,
        };
        let answer = tokio::time::timeout(limit, self.wait_for_report()).await;
        // The supervisor had its time, whatever the result.
        self.reported = true;
        if let Ok(Ok(mut report)) = answer {
            if let Err(error) = &report.ending {
                report.notices.insert(0, error.to_string());
            }
            report.ending = Ok(CommandEnding::TimedOut);
            return Some(report);
        }
        let notice = match self.layer {
            Some(_) => {
                "the changes of the command were discarded, because they could not be \
                collected in time"
            }
            None => {
                "the supervisor is still ending the command, and will then restore the \
                protected paths"
            }
        };
        let notices = vec![notice.to_owned()];
        Some(ExitReport { ending: Ok(CommandEnding::TimedOut), notices, changes: None })
    }
}

impl Drop for SupervisorHandle {
    /// Ends the command and waits for it, so that a stopped call leaves no process of the command
    /// behind.
    fn drop(&mut self) {
        if self.reported {
            return;
        }
        let Ok(link) = self.link.as_fd().try_clone_to_owned() else { return };
        let mut link = std::os::unix::net::UnixStream::from(link);
        let hears =
            link.shutdown(std::net::Shutdown::Write).is_ok() && link.set_nonblocking(false).is_ok();
        if hears && link.set_read_timeout(Some(REPORT_TIMEOUT)).is_ok() {
            // The report arrives when all processes have ended. Its content does not matter any
            // more.
            let _ = std::io::Read::read(&mut link, &mut [0]);
        }
    }
}
