//! The `agents` interface: the guest delegates a task, and the host runs it in a sub-agent.

use std::sync::Arc;

use super::bindings::cofferdam::plugin::agents as wit;
use super::call_state::{CallState, not_granted};
use super::gate::{DelegateTask, DelegationOutcome};
use crate::policy::{Denial, DenialCode};

/// The longest task, 64 KiB by the WIT contract.
const MAX_TASK_LEN: usize = 64 << 10;
/// The number of tasks per call, four by the WIT contract. Each task costs money, and a guest could
/// delegate forever.
const MAX_TASKS: u32 = 4;

/// The host's state of the `agents` interface for one call.
pub(super) struct AgentsHost {
    delegation: DelegateTask,
    tasks: u32,
}

impl AgentsHost {
    pub(super) fn new(delegation: DelegateTask) -> Self {
        Self { delegation, tasks: 0 }
    }
}

impl wit::Host for CallState {
    async fn delegate(&mut self, task: String) -> Result<wit::Answer, wit::AgentError> {
        let Some(agents) = &mut self.agents else {
            return Err(denied(not_granted("delegate tasks to sub-agents", "delegate")));
        };
        if task.trim().is_empty() {
            return Err(wit::AgentError::Invalid("the task is empty".into()));
        }
        if task.len() > MAX_TASK_LEN {
            return Err(wit::AgentError::Invalid(format!(
                "the task has {} bytes; the limit is {MAX_TASK_LEN}",
                task.len()
            )));
        }
        if agents.tasks >= MAX_TASKS {
            let reason = format!("one call can delegate at most {MAX_TASKS} tasks.");
            return Err(denied(Denial::without_remedy(DenialCode::TooMany, reason)));
        }
        agents.tasks += 1;
        let working = (agents.delegation)(task);

        // A sub-agent has its own time limit.
        let clock = Arc::clone(&self.clock);
        let _waiting = clock.pause();
        match working.await {
            DelegationOutcome::Answered { text, complete, turns } => {
                Ok(wit::Answer { text, complete, turns })
            }
            DelegationOutcome::Failed { kind, message } => {
                Err(wit::AgentError::Failed(wit::Failure { kind: kind.to_owned(), message }))
            }
            DelegationOutcome::Denied(denial) => Err(denied(denial)),
        }
    }
}

fn denied(denial: Denial) -> wit::AgentError {
    wit::AgentError::Denied(denial.into())
}
