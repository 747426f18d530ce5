//! The parent process of a supervisor, which does nothing while the supervisor lives.
//!
//! If the supervisor is killed, the processes of its command become children of this process. It
//! kills them and restores the protected paths.

use super::error::{ConfineError, ConfineStep};
use super::journal;
use super::protocol::GuardPreparation;
use super::supervisor_start::replace_output;
use crate::os::{self, ForkedProcess};

/// Starts a supervisor, which runs `body` as a child of this process, and waits for its end. The
/// child may still have to receive its request.
///
/// This process must have one thread only.
///
/// # Errors
/// The supervisor cannot be started, or processes of the command remain after its end.
pub(super) fn guard_supervisor(
    preparation: &GuardPreparation,
    body: impl FnOnce() -> Result<(), ConfineError>,
) -> Result<(), ConfineError> {
    os::adopt_orphans().map_err(ConfineError::at(ConfineStep::AdoptProcesses))?;
    // The child has all that the supervisor needs: the link, and the request if there is one yet.
    // Another start of the program would take several milliseconds.
    let supervisor = ForkedProcess::start(|| i32::from(body().is_err()));
    let mut supervisor = supervisor.map_err(ConfineError::at(ConfineStep::StartSupervisor))?;
    // This process must not hold the output open after the supervisor has ended. It holds the link,
    // so that the host waits until the protected paths are restored.
    replace_output().map_err(ConfineError::at(ConfineStep::ReplaceStreams))?;
    let status = supervisor.wait().map_err(ConfineError::at(ConfineStep::WaitForCommand))?;
    if status.success() {
        return Ok(());
    }
    let ended = os::kill_descendants();
    journal::recover_after(
        &preparation.set_aside,
        supervisor.pid().as_raw_nonzero().get().unsigned_abs(),
    );
    ended.map_err(ConfineError::at(ConfineStep::KillProcesses))
}
