//! The exit code of a command, including commands that a signal ended.

use std::os::unix::process::ExitStatusExt as _;
use std::process::ExitStatus;

/// Returns the exit code, which is 128 plus the signal if a signal ended the process.
///
/// Shells and bubblewrap report signals the same way, so the code is the same at every sandbox
/// level.
pub(super) fn exit_code(status: ExitStatus) -> i32 {
    status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or_default())
}
