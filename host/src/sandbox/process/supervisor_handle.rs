//! A command in a sandbox, as seen from the host: its supervisor, and the link to it. A link that
//! closes, in whatever way this process loses it, ends the command.

use std::os::fd::AsFd as _;
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::UnixStream;
use tokio::process::{ChildStderr, ChildStdout};

use super::{CommandEnding, CommandFailure};
use crate::policy::SandboxLevel;
use crate::sandbox::confine::{
    self, CommandJob, CommandLocation, CommandSandbox, SpawnPlan, SupervisorReport,
};
use crate::sandbox::digest::ComponentDigest;

/// A supervisor that was told to end its command is through with that soon. One that has many files
/// to look after goes on by itself.
const REPORT_TIMEOUT: Duration = Duration::from_millis(700);

/// What was heard last of a command.
#[derive(Debug, Default)]
pub(super) struct ExitReport {
    /// `None`: it did not run, and the remarks say why.
    pub(super) ending: Option<CommandEnding>,
    pub(super) notices: Vec<String>,
}

/// Holds a supervisor.
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
            level,
            place,
            rules.network,
        );
        let SpawnPlan { supervisor, link, request: order, digest } =
            commission.map_err(CommandFailure::Start)?;
        link.set_nonblocking(true).map_err(CommandFailure::Start)?;
        let mut link = UnixStream::from_std(link).map_err(CommandFailure::Start)?;
        let mut supervisor = tokio::process::Command::from(supervisor);
        // It ends by itself when the link does, and has things to do before.
        let mut child = supervisor
            .process_group(0)
            .kill_on_drop(false)
            .spawn()
            .map_err(CommandFailure::Start)?;
        // It holds the supervisor's end of the link.
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

    /// Waits for the report. Can be dropped and called again.
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
        // What ran is what was approved, and where.
        if report.digest != self.digest || report.level != self.level {
            return Err(CommandFailure::MissingReport);
        }
        let mut remarks = report.notices;
        let ending = match report.ending {
            confine::CommandExitKind::Exited(code) => Some(CommandEnding::Exited(code)),
            confine::CommandExitKind::Stopped => Some(CommandEnding::TimedOut),
            confine::CommandExitKind::TooManyProcesses => {
                remarks.push(format!(
                    "the command had more than {} processes and was killed",
                    self.max_processes
                ));
                Some(CommandEnding::Killed(rustix::process::Signal::KILL.as_raw()))
            }
            confine::CommandExitKind::NotRun(problem) => {
                remarks.insert(0, problem);
                None
            }
        };
        Ok(ExitReport { ending, notices: remarks })
    }

    /// Ends the command, and hears what there is to say about it.
    pub(super) async fn stop(&mut self) -> ExitReport {
        if self.reported {
            return ExitReport::default();
        }
        let _ = self.link.shutdown().await;
        let answer = tokio::time::timeout(REPORT_TIMEOUT, self.wait_for_report()).await;
        // It has had its time, whatever came of it.
        self.reported = true;
        match answer {
            Ok(Ok(last)) => last,
            Ok(Err(_)) | Err(_) => {
                let remark = "the process around the command is still ending it, and looks after \
                    protected paths then"
                    .to_owned();
                ExitReport { ending: None, notices: vec![remark] }
            }
        }
    }
}

impl Drop for SupervisorHandle {
    /// Whoever drops this in the middle, such as a call that was stopped, finds nothing of the
    /// command left afterwards.
    fn drop(&mut self) {
        if self.reported {
            return;
        }
        let Ok(link) = self.link.as_fd().try_clone_to_owned() else { return };
        let mut link = std::os::unix::net::UnixStream::from(link);
        let hears =
            link.shutdown(std::net::Shutdown::Write).is_ok() && link.set_nonblocking(false).is_ok();
        if hears && link.set_read_timeout(Some(REPORT_TIMEOUT)).is_ok() {
            // The report comes when all is ended; what it says nobody asks any more.
            drop(std::io::Read::read(&mut link, &mut [0]));
        }
    }
}
