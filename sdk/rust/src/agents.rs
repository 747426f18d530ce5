//! Handing tasks to a sub-agent, which has tools that can only read. Needs
//! [`Capability::Delegate`](crate::Capability::Delegate).

pub use crate::bindings::cofferdam::plugin::agents::{AgentError, Answer, Failure};

use crate::ToolError;
use crate::lent::agents as host;

/// Hands over a task of at most 64 KiB and waits for the answer; a call has at most four. The
/// sub-agent knows nothing but the task, so say in it all that it needs.
pub fn delegate(task: &str) -> Result<Answer, AgentError> {
    host::delegate(task)
}

impl From<AgentError> for ToolError {
    fn from(error: AgentError) -> Self {
        match error {
            AgentError::Denied(denial) => Self::Denied(denial),
            AgentError::Invalid(message) => Self::invalid_input("", message),
            AgentError::Failed(Failure { kind, message }) => {
                Self::Failed(format!("the sub-agent gave no answer ({kind}): {message}"))
            }
        }
    }
}
