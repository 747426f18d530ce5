//! `commands`: the guest proposes a line, the gate decides on exactly that line, and what was decided on is what runs.

use std::sync::Arc;
use std::time::Duration;

use super::bindings::cofferdam::plugin::commands as wit;
use super::gate::Ruling;
use super::process;
use super::state::{State, not_granted};
use super::workspace::path_denied;
use crate::policy::{Code, Denial, Effect};

/// The contract's 128 KiB; Linux takes no longer argument.
const LONGEST_LINE: usize = 128 << 10;
/// The contract's range, in seconds.
const TIMEOUT: std::ops::RangeInclusive<u32> = 1..=600;

impl wit::Host for State {
    async fn run(&mut self, command: wit::Command) -> Result<wit::Finished, wit::CommandError> {
        let Some((workspace, gate)) = &self.commands else {
            return Err(denied(not_granted("run commands", "run-commands")));
        };
        let workspace = Arc::clone(workspace);
        if command.line.len() > LONGEST_LINE || command.line.contains('\0') {
            return Err(wit::CommandError::Invalid("a command line has at most 128 KiB and no NUL byte".into()));
        }
        if !TIMEOUT.contains(&command.timeout) {
            return Err(wit::CommandError::Invalid(format!("the timeout is 1 to 600 seconds, not {}", command.timeout)));
        }
        let directory = workspace.parse(&command.directory).map_err(|problem| denied(path_denied(&problem)))?;
        let asked = gate(Effect::Command { line: command.line, directory });

        // A person may take as long as they like, and a command has a limit of its own.
        let clock = Arc::clone(&self.clock);
        let _waiting = clock.pause();
        let permit = match asked.await {
            Ruling::Permitted(permit) => permit,
            Ruling::Denied(denial) => return Err(denied(denial)),
        };
        match process::run(&permit, &workspace, Duration::from_secs(command.timeout.into()), clock.cancel()).await {
            Ok(finished) => Ok(finished.into()),
            Err(process::Failed::Cancelled) => Err(denied(Denial::fixed(Code::Cancelled, "the user stopped the request."))),
            Err(failed @ (process::Failed::Directory(..) | process::Failed::Start(_) | process::Failed::NotACommand)) => {
                Err(wit::CommandError::Failed(failed.to_string()))
            }
        }
    }
}

fn denied(denial: Denial) -> wit::CommandError {
    wit::CommandError::Denied(denial.into())
}

impl From<process::Finished> for wit::Finished {
    fn from(finished: process::Finished) -> Self {
        let ending = match finished.ending {
            process::Ending::Exited(code) => wit::Ending::Exited(code),
            process::Ending::Killed(signal) => wit::Ending::Killed(signal),
            process::Ending::TimedOut => wit::Ending::TimedOut,
        };
        Self { ending, stdout: finished.stdout, stderr: finished.stderr, duration: finished.duration.as_secs_f64() }
    }
}
