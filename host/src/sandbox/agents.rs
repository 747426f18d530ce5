//! `agents`: the guest hands over a task, and somebody outside has a sub-agent work on it.

use std::sync::Arc;

use super::bindings::cofferdam::plugin::agents as wit;
use super::gate::{Delegated, Delegation};
use super::state::{State, not_granted};
use crate::policy::{Code, Denial};

/// The contract's 64 KiB.
const LONGEST_TASK: usize = 64 << 10;
/// The contract's four: each costs money, and a guest could ask for ever.
const MOST_TASKS: u32 = 4;

/// Whom a call hands its tasks to, and how many it has handed over.
pub(super) struct Agents {
    delegation: Delegation,
    tasks: u32,
}

impl Agents {
    pub(super) fn new(delegation: Delegation) -> Self {
        Self { delegation, tasks: 0 }
    }
}

impl wit::Host for State {
    async fn delegate(&mut self, task: String) -> Result<wit::Answer, wit::AgentError> {
        let Some(agents) = &mut self.agents else {
            return Err(denied(not_granted("hand tasks to sub-agents", "delegate")));
        };
        if task.trim().is_empty() {
            return Err(wit::AgentError::Invalid("the task is empty".into()));
        }
        if task.len() > LONGEST_TASK {
            return Err(wit::AgentError::Invalid(format!("the task has {} bytes; at most {LONGEST_TASK} are taken", task.len())));
        }
        if agents.tasks >= MOST_TASKS {
            let reason = format!("this call has handed over {MOST_TASKS} tasks, which is the most for one call.");
            return Err(denied(Denial::fixed(Code::TooMany, reason)));
        }
        agents.tasks += 1;
        let working = (agents.delegation)(task);

        // A sub-agent has limits of its own.
        let clock = Arc::clone(&self.clock);
        let _waiting = clock.pause();
        match working.await {
            Delegated::Answered { text, complete, turns } => Ok(wit::Answer { text, complete, turns }),
            Delegated::Failed { kind, message } => Err(wit::AgentError::Failed(wit::Failure { kind: kind.to_owned(), message })),
            Delegated::Denied(denial) => Err(denied(denial)),
        }
    }
}

fn denied(denial: Denial) -> wit::AgentError {
    wit::AgentError::Denied(denial.into())
}
