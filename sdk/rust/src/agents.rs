//! Delegating tasks to a sub-agent, whose tools can only read. Needs
//! [`Capability::Delegate`](crate::Capability::Delegate).

pub use crate::bindings::cofferdam::plugin::agents::{AgentError, AgentFailure, Answer};

use crate::ToolError;
use crate::imports::agents as host;

/// Gives a task of at most 64 KiB to a sub-agent and waits for the answer. A call can delegate
/// four tasks.
///
/// The sub-agent knows nothing but the task, so the task has to contain everything that it needs.
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
