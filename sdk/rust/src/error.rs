//! Building errors that a model can act on.

use std::fmt::Display;
use std::io;

use crate::{Denial, InputProblem, ToolError};

impl ToolError {
    /// The input fits the schema and still makes no sense. `pointer` is a JSON pointer such as
    /// `/lines/0`, empty for the whole input.
    pub fn invalid_input(pointer: impl Into<String>, message: impl Into<String>) -> Self {
        Self::InvalidInput(InputProblem { pointer: pointer.into(), message: message.into() })
    }

    /// What the call is about does not exist.
    pub fn not_found(message: impl Into<String>) -> Self {
        Self::NotFound(message.into())
    }

    /// It took too long. Say what was reached until then.
    pub fn timed_out(message: impl Into<String>) -> Self {
        Self::TimedOut(message.into())
    }

    /// Anything else. Say what went wrong and what to do about it.
    pub fn failed(message: impl Into<String>) -> Self {
        Self::Failed(message.into())
    }

    /// For `map_err`: names what was tried, on which file.
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
                    "{subject}: it is outside of the workspace, or the policy or the file's \
                        permissions forbid it"
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

/// What a tool without the permission to read is told of any file.
const NO_FILES: &str = "this tool may not read files; it would have to ask for `read-files`";

/// Whether there is a workspace. Without the permission to read there is none, and every path looks
/// as if nothing were there.
fn has_workspace() -> bool {
    std::fs::metadata(".").is_ok()
}

/// For `?` where no file is at hand. [`ToolError::io`] says more.
impl From<io::Error> for ToolError {
    fn from(error: io::Error) -> Self {
        Self::Failed(error.to_string())
    }
}

/// The host refused; the model and the user get to see its words.
impl From<Denial> for ToolError {
    fn from(denial: Denial) -> Self {
        Self::Denied(denial)
    }
}
