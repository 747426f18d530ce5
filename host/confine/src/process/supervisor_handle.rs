//! The host's handle to a sandboxed command: its supervisor and the link to it. The command ends
//! when the link closes for any reason.

use std::os::fd::AsFd as _;
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::UnixStream;
use tokio::process::{ChildStderr, ChildStdout};

use super::{CommandEnding, CommandFailure};
use crate::{
    CommandExitKind, CommandJob, CommandLocation, CommandSandbox, ConfineError, SpawnPlan,
    SupervisorReport,
};
use cofferdam_policy::ComponentDigest;
use cofferdam_policy::SandboxLevel;

/// The time to wait for the report after a stop request. A supervisor with many files to restore
/// continues on its own.
const REPORT_TIMEOUT: Duration = Duration::from_millis(700);

/// The final report about a command.
#[derive(Debug)]
pub(super) struct ExitReport {
    /// The ending, or the reason why the command did not run to its end.
    pub(super) ending: Result<CommandEnding, ConfineError>,
    pub(super) notices: Vec<String>,
}

/// A running supervisor with its link.
pub(super) struct SupervisorHandle {
    link: UnixStream,
    buffer: Vec<u8>,
    digest: ComponentDigest,
    level: SandboxLevel,
    max_processes: u64,
    reported: bool,
}

impl SupervisorHandle {
    pub(super) async fn start(
        commands: &CommandSandbox,
        line: &str,
        level: SandboxLevel,
        place: CommandLocation<'_>,
    ) -> Result<(Self, Option<ChildStdout>, Option<ChildStderr>), CommandFailure> {
        let rules = commands.rules();
        let commission = commands.plan_spawn(
            CommandJob::CommandLine(line.to_owned()),
            commands.setup_at(level),
            place,
            rules.network,
        );
        let SpawnPlan { supervisor, link, request: order, digest } =
            commission.map_err(CommandFailure::Start)?;
        link.set_nonblocking(true).map_err(CommandFailure::Start)?;
        let mut link = UnixStream::from_std(link).map_err(CommandFailure::Start)?;
        let mut supervisor = tokio::process::Command::from(supervisor);
        // The supervisor ends by itself after the link closes, because it has to restore files
        // first.
        let mut child = supervisor
            .process_group(0)
            .kill_on_drop(false)
            .spawn()
            .map_err(CommandFailure::Start)?;
        // The command object holds the supervisor's end of the link.
        drop(supervisor);
        link.write_all(&order).await.map_err(CommandFailure::Start)?;
        let (out, err) = (child.stdout.take(), child.stderr.take());
        Ok((
            Self {
                link,
                buffer: Vec::new(),
                digest,
                level,
                max_processes: rules.limits.processes,
                reported: false,
            },
            out,
            err,
        ))
    }

    /// Waits for the report. This is cancel-safe.
    pub(super) async fn wait_for_report(&mut self) -> Result<ExitReport, CommandFailure> {
        loop {
            let mut chunk = [0; 4096];
            let count =
                self.link.read(&mut chunk).await.map_err(|_| CommandFailure::MissingReport)?;
            self.buffer.extend_from_slice(&chunk[..count]);
            if self.buffer.ends_with(b"\n") {
                break;
            }
            if count == 0 {
                return Err(CommandFailure::MissingReport);
            }
        }
        self.reported = true;
        let report: SupervisorReport =
            serde_json::from_slice(&self.buffer).map_err(|_| CommandFailure::MissingReport)?;
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
        Ok(ExitReport { ending, notices: remarks })
    }

    /// Ends the command, waits for its report, and returns the notices.
    pub(super) async fn stop(&mut self) -> Vec<String> {
        if self.reported {
            return Vec::new();
        }
        let _ = self.link.shutdown().await;
        let answer = tokio::time::timeout(REPORT_TIMEOUT, self.wait_for_report()).await;
        // The supervisor had its time, whatever the result.
        self.reported = true;
        match answer {
            Ok(Ok(ExitReport { ending, notices })) => {
                ending.err().map(|error| error.to_string()).into_iter().chain(notices).collect()
            }
            Ok(Err(_)) | Err(_) => {
                let remark = "the supervisor is still ending the command, and will then restore \
                    the protected paths"
                    .to_owned();
                vec![remark]
            }
        }
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
