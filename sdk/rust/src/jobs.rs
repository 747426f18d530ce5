//! Background commands, which continue after the call. Needs
//! [`Capability::RunCommands`](crate::Capability::RunCommands).
//!
//! ```no_run
//! use std::time::Duration;
//!
//! use cofferdam_sdk::jobs::{self, JobStart, WaitCondition};
//!
//! # fn f() -> Result<(), cofferdam_sdk::ToolError> {
//! let id = jobs::start(&JobStart::new("npm run dev"))?;
//! let output = jobs::read(id, WaitCondition::Output, Duration::from_secs(10))?;
//! assert!(output.text.contains("listening"));
//! jobs::stop(id)?;
//! # Ok(())
//! # }
//! ```

use std::time::Duration;

pub use crate::bindings::cofferdam::plugin::jobs::{
    Job, JobError, JobOutput, JobStart, JobStatus, WaitCondition,
};

use crate::ToolError;
use crate::imports::jobs as host;

impl JobStart {
    /// Creates a command that runs in the root of the workspace, without a terminal.
    pub fn new(line: impl Into<String>) -> Self {
        Self { line: line.into(), directory: String::new(), terminal: false }
    }
}

/// Starts a background command, and returns its number. The line needs approval, by the user or by
/// an `allow` rule.
///
/// # Errors
///
/// Fails if the line is denied, if the machine cannot run commands in the background, or if too
/// many of them run.
pub fn start(job: &JobStart) -> Result<u32, JobError> {
    host::start(job)
}

/// Returns the background commands that this plugin started in this session, oldest first.
///
/// # Errors
///
/// Fails without the permission to run commands.
pub fn list() -> Result<Vec<Job>, JobError> {
    host::list_jobs()
}

/// Returns the output since the last `read`. Waits up to `timeout`, at most 600 seconds, for the
/// condition.
///
/// # Errors
///
/// Fails if the command is unknown or the call was cancelled.
pub fn read(id: u32, until: WaitCondition, timeout: Duration) -> Result<JobOutput, JobError> {
    host::read(id, until, u64::try_from(timeout.as_nanos()).unwrap_or(u64::MAX))
}

/// Writes to the standard input of a command, at most 64 KiB, and then closes it if `close` is set.
/// The text needs approval, by the user or by the mode.
///
/// # Errors
///
/// Fails if the text is denied, or if the command does not read it.
pub fn write(id: u32, text: &str, close: bool) -> Result<(), JobError> {
    host::write(id, text, close)
}

/// Commits what a command has changed so far, and returns its new output. All processes of the
/// command pause for a moment, and then continue.
///
/// Changes that need approval are not committed. They are named in the notices.
///
/// # Errors
///
/// Fails if nothing could be committed: the mode denies it, the command is unknown or has ended, or
/// another program changed a file that the command changed, too.
pub fn commit(id: u32) -> Result<JobOutput, JobError> {
    host::commit(id)
}

/// Ends a command with all of its processes, and returns its last output.
///
/// # Errors
///
/// Fails if the command is unknown.
pub fn stop(id: u32) -> Result<JobOutput, JobError> {
    host::stop(id)
}

impl From<JobError> for ToolError {
    fn from(error: JobError) -> Self {
        match error {
            JobError::Denied(denial) => Self::Denied(denial),
            JobError::UnknownJob(id) => {
                Self::not_found(format!("no background command has the number {id}"))
            }
            JobError::Invalid(message) => Self::invalid_input("", message),
            JobError::Failed(message) => Self::Failed(message),
        }
    }
}
