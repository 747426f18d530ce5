//! Running commands on the user's machine. Needs
//! [`Capability::RunCommands`](crate::Capability::RunCommands).

pub use crate::bindings::cofferdam::plugin::commands::{Command, CommandError, Ending, Finished};

use crate::ToolError;
use crate::lent::commands as host;

impl Command {
    /// In seconds, unless [`Command::timeout`] says otherwise; it may be 1 to 600.
    pub const DEFAULT_TIMEOUT: u32 = 120;

    /// A line for `sh -c`, of at most 128 KiB, to be run in the root of the workspace.
    pub fn new(line: impl Into<String>) -> Self {
        Self { line: line.into(), directory: String::new(), timeout: Self::DEFAULT_TIMEOUT }
    }
}

impl Finished {
    /// A command that exited, for tests.
    pub fn exited(code: i32, stdout: impl Into<String>) -> Self {
        Self {
            ending: Ending::Exited(code),
            stdout: stdout.into(),
            stderr: String::new(),
            duration: 0.0,
        }
    }
}

/// Runs a command to its end, once the policy and the user have agreed to this very line.
///
/// A command that fails or runs out of time is [`Finished`] too.
pub fn run(command: &Command) -> Result<Finished, CommandError> {
    host::run(command)
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
