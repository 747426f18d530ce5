//! The parent process of a supervisor, which does nothing while the supervisor lives.
//!
//! If the supervisor is killed, the processes of its command become children of this process. It
//! kills them and restores the protected paths.

use std::fs::File;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Command, Stdio};

use super::journal;
use crate::os;

/// Starts a supervisor and waits for its end.
///
/// The supervisor gets standard input and output of this process. `set_aside` is the directory with
/// the records of unfinished commands.
pub fn guard_supervisor(set_aside: &Path) -> Result<(), String> {
    os::protect_process_memory();
    os::close_inherited_files(None)
        .map_err(|error| format!("cannot close inherited files: {error}"))?;
    os::adopt_orphans().map_err(|error| format!("cannot adopt processes: {error}"))?;
    let program =
        os::current_program().map_err(|error| format!("cannot find this program: {error}"))?;
    let mut supervisor = Command::new(program);
    let started =
        supervisor.arg0("cofferdam").arg("supervise-command").stdin(Stdio::inherit()).spawn();
    let mut started =
        started.map_err(|error| format!("cannot start the process around the command: {error}"))?;
    // This process must not hold the output open after the supervisor has ended.
    let nothing = File::options()
        .read(true)
        .write(true)
        .open("/dev/null")
        .map_err(|error| format!("/dev/null: {error}"))?;
    rustix::stdio::dup2_stdout(&nothing)
        .and_then(|()| rustix::stdio::dup2_stderr(&nothing))
        .map_err(|error| error.to_string())?;
    let supervisor = started.id();
    let status = started.wait().map_err(|error| error.to_string())?;
    if status.success() {
        return Ok(());
    }
    let ended = os::kill_descendants();
    journal::recover_after(set_aside, supervisor);
    ended
}
