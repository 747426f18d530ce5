//! Errors with messages for the model.

use std::fmt::Display;
use std::io;

use crate::{Denial, InputProblem, ToolError};

impl ToolError {
    /// The input is valid under the schema, but the tool cannot use it. `pointer` is a JSON pointer
    /// such as `/lines/0`; empty for the whole input.
    pub fn invalid_input(pointer: impl Into<String>, message: impl Into<String>) -> Self {
        Self::InvalidInput(InputProblem { pointer: pointer.into(), message: message.into() })
    }

    /// The file or other object of the call does not exist.
    pub fn not_found(message: impl Into<String>) -> Self {
        Self::NotFound(message.into())
    }

    /// An operation took too long. State what was done until then.
    pub fn timed_out(message: impl Into<String>) -> Self {
        Self::TimedOut(message.into())
    }

    /// Any other failure. State what failed and how to fix it.
    pub fn failed(message: impl Into<String>) -> Self {
        Self::Failed(message.into())
    }

    /// Converts an I/O error, for `map_err`. The message names the action and the file.
    ///
    /// ```
    /// use cofferdam_sdk::ToolError;
    ///
    /// let error = std::fs::read("no/such/file")
    ///     .map_err(ToolError::io("read", "no/such/file"))
    ///     .unwrap_err();
    /// assert_eq!(error, ToolError::not_found("cannot read `no/such/file`: it does not exist"));
    /// ```
    pub fn io(action: &str, path: impl Display) -> impl FnOnce(io::Error) -> Self {
        move |error| {
            if !has_workspace() {
                return Self::Failed(NO_FILES.to_owned());
            }
            let subject = format!("cannot {action} `{path}`");
            match error.kind() {
                io::ErrorKind::NotFound => Self::NotFound(format!("{subject}: it does not exist")),
                io::ErrorKind::PermissionDenied => Self::Failed(format!(
                    "{subject}: it is outside the workspace, or the policy or the permissions of \
                        the file deny it"
                )),
                io::ErrorKind::IsADirectory => {
                    Self::Failed(format!("{subject}: it is a directory"))
                }
                io::ErrorKind::NotADirectory => {
                    Self::NotFound(format!("{subject}: a part of the path is not a directory"))
                }
                _ => Self::Failed(format!("{subject}: {error}")),
            }
        }
    }
}

/// The error of a tool without the permission to read files.
const NO_FILES: &str = "this tool has no permission to read files; it has to request `read-files`";

/// Returns whether there is a workspace. Without the permission to read there is none, and no path
/// exists.
fn has_workspace() -> bool {
    std::fs::metadata(".").is_ok()
}

/// Converts an I/O error without a file name. Prefer [`ToolError::io`].
impl From<io::Error> for ToolError {
    fn from(error: io::Error) -> Self {
        Self::Failed(error.to_string())
    }
}

/// Returns a denial of the host unchanged, so that the model and the user see it.
impl From<Denial> for ToolError {
    fn from(denial: Denial) -> Self {
        Self::Denied(denial)
    }
}
