//! The parent process of a supervisor, which does nothing while the supervisor lives.
//!
//! If the supervisor is killed, the processes of its command become children of this process. It
//! kills them and restores the protected paths.

use std::fs::File;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Command, Stdio};

use super::error::{ConfineError, ConfineStep};
use super::journal;
use crate::os;

/// Starts a supervisor and waits for its end.
///
/// The supervisor gets standard input and output of this process. `set_aside` is the directory with
/// the records of unfinished commands.
///
/// # Errors
/// The supervisor cannot be started, or processes of the command remain after its end.
pub fn guard_supervisor(set_aside: &Path) -> Result<(), ConfineError> {
    os::protect_process_memory();
    os::close_inherited_files(None).map_err(ConfineError::at(ConfineStep::CloseInheritedFiles))?;
    os::adopt_orphans().map_err(ConfineError::at(ConfineStep::AdoptProcesses))?;
    let program = os::current_program().map_err(ConfineError::at(ConfineStep::FindProgram))?;
    let mut supervisor = Command::new(program);
    let started =
        supervisor.arg0("cofferdam").arg("supervise-command").stdin(Stdio::inherit()).spawn();
    let mut started = started.map_err(ConfineError::at(ConfineStep::StartSupervisor))?;
    // This process must not hold the output open after the supervisor has ended.
    let nothing = File::options()
        .read(true)
        .write(true)
        .open("/dev/null")
        .map_err(ConfineError::at(ConfineStep::ReplaceStreams))?;
    rustix::stdio::dup2_stdout(&nothing)
        .and_then(|()| rustix::stdio::dup2_stderr(&nothing))
        .map_err(ConfineError::at(ConfineStep::ReplaceStreams))?;
    let supervisor = started.id();
    let status = started.wait().map_err(ConfineError::at(ConfineStep::WaitForCommand))?;
    if status.success() {
        return Ok(());
    }
    let ended = os::kill_descendants();
    journal::recover_after(set_aside, supervisor);
    ended.map_err(ConfineError::at(ConfineStep::KillProcesses))
}
