//! The exit code of a command that a signal ended.

use std::os::unix::process::ExitStatusExt as _;
use std::process::ExitStatus;

/// The exit code, which is 128 plus the signal if a signal ended the process. Shells say it so of
/// their children, and bubblewrap of the command in it, so that it is the same at every level of
/// the sandbox.
pub(super) fn exit_code(status: ExitStatus) -> i32 {
    status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or_default())
}
