//! Running commands on the user's machine. Needs
//! [`Capability::RunCommands`](crate::Capability::RunCommands).

use std::time::Duration;

pub use crate::bindings::cofferdam::plugin::commands::{CommandError, ExitStatus};

use crate::ToolError;
use crate::bindings::cofferdam::plugin::commands as wit;
use crate::imports::commands as host;

/// A command to run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Command {
    /// The command line for `sh -c`. At most 128 KiB.
    pub line: String,
    /// The working directory, a directory of the workspace; empty for its root.
    pub directory: String,
    /// The time limit, 1 to 600 seconds.
    pub timeout: Duration,
}

/// How a command ended, and what it wrote.
#[derive(Clone, Debug, PartialEq)]
pub struct CommandOutput {
    /// How the command ended.
    pub status: ExitStatus,
    /// Standard output. U+FFFD replaces bytes that are not UTF-8. If a stream is too long, it keeps
    /// its first and its last part.
    pub stdout: String,
    /// Standard error, in the same way.
    pub stderr: String,
    /// The time from start to end.
    pub elapsed: Duration,
}

impl Command {
    /// The time limit of [`Command::new`].
    pub const DEFAULT_TIMEOUT: Duration = Duration::from_secs(120);

    /// Creates a command that runs in the root of the workspace.
    pub fn new(line: impl Into<String>) -> Self {
        Self { line: line.into(), directory: String::new(), timeout: Self::DEFAULT_TIMEOUT }
    }
}

impl CommandOutput {
    /// Creates the output of a command that exited, for tests.
    pub fn exited(code: i32, stdout: impl Into<String>) -> Self {
        Self {
            status: ExitStatus::Exited(code),
            stdout: stdout.into(),
            stderr: String::new(),
            elapsed: Duration::ZERO,
        }
    }
}

/// Runs a command and waits until it exits. The line needs approval, by the user or by an `allow`
/// rule.
///
/// Returns a [`CommandOutput`] even if the command fails or times out.
pub fn run(command: &Command) -> Result<CommandOutput, CommandError> {
    let output = host::run(&wit::Command {
        line: command.line.clone(),
        directory: command.directory.clone(),
        timeout: u64::try_from(command.timeout.as_nanos()).unwrap_or(u64::MAX),
    })?;
    Ok(CommandOutput {
        status: output.status,
        stdout: output.stdout,
        stderr: output.stderr,
        elapsed: Duration::from_nanos(output.elapsed),
    })
}

impl From<CommandError> for ToolError {
    fn from(error: CommandError) -> Self {
        match error {
            CommandError::Denied(denial) => Self::Denied(denial),
            CommandError::Invalid(message) => Self::invalid_input("", message),
            CommandError::Failed(message) => Self::Failed(message),
        }
    }
}
