//! Delegating tasks to a read-only sub-agent. Needs
//! [`Capability::Delegate`](crate::Capability::Delegate).

pub use crate::bindings::cofferdam::plugin::agents::{AgentError, AgentFailure, Answer};

use crate::ToolError;
use crate::imports::agents as host;

/// Gives a task of at most 64 KiB to a sub-agent and waits for the answer. A call can delegate
/// four tasks.
///
/// The sub-agent sees only the task, so the task must contain all necessary information.
pub fn delegate(task: &str) -> Result<Answer, AgentError> {
    host::delegate(task)
}

impl From<AgentError> for ToolError {
    fn from(error: AgentError) -> Self {
        match error {
            AgentError::Denied(denial) => Self::Denied(denial),
            AgentError::Invalid(message) => Self::invalid_input("", message),
            AgentError::Failed(AgentFailure { code, message }) => {
                Self::Failed(format!("the sub-agent gave no answer ({code}): {message}"))
            }
        }
    }
}
