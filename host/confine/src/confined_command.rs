//! The process that confines itself and then becomes the command.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Write as _};
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt as _;
use std::process::Command;

use super::error::{ConfineError, ConfineStep};
use super::link::SupervisorLink;
use super::protocol::{ChildReadiness, CommandJob, CommandStreams, ConfinementSpec};
use crate::os;

/// The exit code of a process that could not prepare itself. The supervisor gets the reason on the
/// link.
pub(crate) const PREPARATION_FAILED: i32 = 71;
/// The exit code of a command that could not be executed, as in a shell.
const EXECUTION_FAILED: i32 = 126;

/// Reads its restrictions from standard input, confines this process and executes the command.
///
/// # Errors
/// Returns only if the command could not be executed.
pub fn exec_confined_command() -> Result<(), ConfineError> {
    let mut supervisor =
        SupervisorLink::from_stdin().map_err(ConfineError::at(ConfineStep::ReadRequest))?;
    become_command(&mut supervisor, Vec::new())
}

/// Becomes the command like [`become_command`], in a child of the supervisor. Returns an exit code
/// if that fails.
pub(crate) fn execute_command(
    supervisor: &mut SupervisorLink,
    environment: Vec<(OsString, OsString)>,
) -> i32 {
    match become_command(supervisor, environment) {
        Ok(()) => 0,
        Err(error) => {
            // The link is closed to errors after the restrictions are active.
            let _ = writeln!(std::io::stderr(), "{error}");
            EXECUTION_FAILED
        }
    }
}

/// Receives the restrictions, confines this process and executes the command with these additional
/// variables.
///
/// # Errors
/// Returns only if the command could not be executed. Before the restrictions are active, the
/// supervisor gets the error instead.
fn become_command(
    supervisor: &mut SupervisorLink,
    environment: Vec<(OsString, OsString)>,
) -> Result<(), ConfineError> {
    let received = supervisor.receive::<ConfinementSpec>();
    let Some(confinement) = received.map_err(ConfineError::at(ConfineStep::ReadRequest))? else {
        return Ok(());
    };
    // From here on only this process can write to the supervisor.
    let streams = replace_streams(confinement.streams, supervisor.take_descriptors())
        .map_err(ConfineError::at(ConfineStep::ReplaceStreams));
    let confined = streams.and_then(|()| os::confine_this_process(&confinement, supervisor));
    if let Err(problem) = confined {
        let _ = supervisor.send(&ChildReadiness::Failed(problem.encode()));
        return Ok(());
    }
    supervisor
        .send(&ChildReadiness::Confined)
        .map_err(ConfineError::at(ConfineStep::ReportReadiness))?;
    match confinement.job {
        // The full path keeps workspace directories in `PATH` out of the lookup. The link closes
        // when `exec` succeeds.
        CommandJob::CommandLine(line) => {
            let error = Command::new("/bin/sh").arg("-c").arg(line).envs(environment).exec();
            Err(ConfineError::new(ConfineStep::Execute, error))
        }
        CommandJob::SelfTest(probes) => {
            probes.run_all().map_err(ConfineError::at(ConfineStep::Execute))
        }
    }
}

/// Gives this process the standard streams of the command. The supervisor's end of the link is
/// standard input until then.
fn replace_streams(streams: CommandStreams, descriptors: Vec<OwnedFd>) -> io::Result<()> {
    match (streams, descriptors.as_slice()) {
        (CommandStreams::OutputOnly, _) => {
            rustix::stdio::dup2_stdin(File::open("/dev/null")?)?;
        }
        (CommandStreams::Pipes, [input, output]) => {
            rustix::stdio::dup2_stdin(input)?;
            rustix::stdio::dup2_stdout(output)?;
            rustix::stdio::dup2_stderr(output)?;
        }
        (CommandStreams::SeparatePipes, [input, output, errors]) => {
            rustix::stdio::dup2_stdin(input)?;
            rustix::stdio::dup2_stdout(output)?;
            rustix::stdio::dup2_stderr(errors)?;
        }
        (CommandStreams::Terminal, [terminal]) => {
            // Only the first process of a session can get a controlling terminal.
            rustix::process::setsid()?;
            rustix::process::ioctl_tiocsctty(terminal)?;
            rustix::stdio::dup2_stdin(terminal)?;
            rustix::stdio::dup2_stdout(terminal)?;
            rustix::stdio::dup2_stderr(terminal)?;
        }
        (CommandStreams::Pipes | CommandStreams::SeparatePipes | CommandStreams::Terminal, _) => {
            let problem = "the streams of the command are missing";
            return Err(io::Error::new(io::ErrorKind::NotFound, problem));
        }
    }
    Ok(())
}
