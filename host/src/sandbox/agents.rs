//! `agents`: the guest hands over a task, and somebody outside has a sub-agent work on it.

use std::sync::Arc;

use super::bindings::cofferdam::plugin::agents as wit;
use super::call_state::{CallState, not_granted};
use super::gate::{DelegateTask, DelegationOutcome};
use crate::policy::{Denial, DenialCode};

/// The contract's 64 KiB.
const MAX_TASK_LEN: usize = 64 << 10;
/// The contract's four: each costs money, and a guest could ask for ever.
const MAX_TASKS: u32 = 4;

/// Whom a call hands its tasks to, and how many it has handed over.
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
            return Err(denied(not_granted("hand tasks to sub-agents", "delegate")));
        };
        if task.trim().is_empty() {
            return Err(wit::AgentError::Invalid("the task is empty".into()));
        }
        if task.len() > MAX_TASK_LEN {
            return Err(wit::AgentError::Invalid(format!(
                "the task has {} bytes; at most {MAX_TASK_LEN} are taken",
                task.len()
            )));
        }
        if agents.tasks >= MAX_TASKS {
            let reason = format!(
                "this call has handed over {MAX_TASKS} tasks, which is the most for one call."
            );
            return Err(denied(Denial::without_remedy(DenialCode::TooMany, reason)));
        }
        agents.tasks += 1;
        let working = (agents.delegation)(task);

        // A sub-agent has limits of its own.
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
