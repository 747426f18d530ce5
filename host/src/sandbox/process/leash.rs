//! A command in a sandbox, as seen from the host: its supervisor, and the link to it. A link that closes, in whatever way
//! this process loses it, ends the command.

use std::os::fd::AsFd as _;
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::UnixStream;
use tokio::process::{ChildStderr, ChildStdout};

use super::{Ending, Failed};
use crate::policy::SandboxLevel;
use crate::sandbox::confine::{self, Commands, Commission, Place, Report, Task};
use crate::sandbox::digest::Digest;

/// A supervisor that was told to end its command is through with that soon. One that has many files to look after goes on
/// by itself.
const PATIENCE: Duration = Duration::from_millis(700);

/// What was heard last of a command.
#[derive(Debug, Default)]
pub(super) struct Last {
    /// `None`: it did not run, and the remarks say why.
    pub(super) ending: Option<Ending>,
    pub(super) remarks: Vec<String>,
}

/// Holds a supervisor.
pub(super) struct Leash {
    link: UnixStream,
    heard: Vec<u8>,
    digest: Digest,
    level: SandboxLevel,
    most_processes: u64,
    reported: bool,
}

impl Leash {
    pub(super) async fn start(
        commands: &Commands,
        line: &str,
        level: SandboxLevel,
        place: Place<'_>,
    ) -> Result<(Self, Option<ChildStdout>, Option<ChildStderr>), Failed> {
        let rules = commands.rules();
        let commission = commands.commission(Task::Line(line.to_owned()), level, place, rules.network);
        let Commission { supervisor, link, order, digest } = commission.map_err(Failed::Start)?;
        link.set_nonblocking(true).map_err(Failed::Start)?;
        let mut link = UnixStream::from_std(link).map_err(Failed::Start)?;
        let mut supervisor = tokio::process::Command::from(supervisor);
        // It ends by itself when the link does, and has things to do before.
        let mut child = supervisor.process_group(0).kill_on_drop(false).spawn().map_err(Failed::Start)?;
        // It holds the supervisor's end of the link.
        drop(supervisor);
        link.write_all(&order).await.map_err(Failed::Start)?;
        let (out, err) = (child.stdout.take(), child.stderr.take());
        Ok((Self { link, heard: Vec::new(), digest, level, most_processes: rules.limits.processes, reported: false }, out, err))
    }

    /// Waits for the report. Can be dropped and called again.
    pub(super) async fn report(&mut self) -> Result<Last, Failed> {
        loop {
            let mut chunk = [0; 4096];
            let count = self.link.read(&mut chunk).await.map_err(|_| Failed::Unreported)?;
            self.heard.extend_from_slice(&chunk[..count]);
            if self.heard.ends_with(b"\n") {
                break;
            }
            if count == 0 {
                return Err(Failed::Unreported);
            }
        }
        self.reported = true;
        let report: Report = serde_json::from_slice(&self.heard).map_err(|_| Failed::Unreported)?;
        // What ran is what was approved, and where.
        if report.digest != self.digest || report.level != self.level {
            return Err(Failed::Unreported);
        }
        let mut remarks = report.remarks;
        let ending = match report.ending {
            confine::Ending::Exited(code) => Some(Ending::Exited(code)),
            confine::Ending::Stopped => Some(Ending::TimedOut),
            confine::Ending::TooManyProcesses => {
                remarks.push(format!("the command had more than {} processes and was killed", self.most_processes));
                Some(Ending::Killed(rustix::process::Signal::KILL.as_raw()))
            }
            confine::Ending::NotRun(problem) => {
                remarks.insert(0, problem);
                None
            }
        };
        Ok(Last { ending, remarks })
    }

    /// Ends the command, and hears what there is to say about it.
    pub(super) async fn pull(&mut self) -> Last {
        if self.reported {
            return Last::default();
        }
        let _ = self.link.shutdown().await;
        let answer = tokio::time::timeout(PATIENCE, self.report()).await;
        // It has had its time, whatever came of it.
        self.reported = true;
        match answer {
            Ok(Ok(last)) => last,
            Ok(Err(_)) | Err(_) => {
                let remark = "the process around the command is still ending it, and looks after protected paths then".to_owned();
                Last { ending: None, remarks: vec![remark] }
            }
        }
    }
}

impl Drop for Leash {
    /// Whoever drops this in the middle, such as a call that was stopped, finds nothing of the command left afterwards.
    fn drop(&mut self) {
        if self.reported {
            return;
        }
        let Ok(link) = self.link.as_fd().try_clone_to_owned() else { return };
        let mut link = std::os::unix::net::UnixStream::from(link);
        let hears = link.shutdown(std::net::Shutdown::Write).is_ok() && link.set_nonblocking(false).is_ok();
        if hears && link.set_read_timeout(Some(PATIENCE)).is_ok() {
            // The report comes when all is ended; what it says nobody asks any more.
            drop(std::io::Read::read(&mut link, &mut [0]));
        }
    }
}
