//! Delegation of tasks: from the sandbox of a running call to a sub-agent, and back.

use std::sync::Arc;

use futures_util::stream::{FuturesUnordered, StreamExt as _};
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;

use super::parallel::ParallelCallSlot;
use crate::agent::RequestOutcome;
use crate::agent::events::{AgentEvent, ContextFitting, Observer};
use crate::agent::ports::{SubAgentReport, TaskDelegate};
use crate::conversation::ToolCall;
use crate::policy::{Denial, DenialCode};
use crate::sandbox::{DelegateTask, DelegationOutcome};

/// The runner of the tasks that tools delegate.
#[derive(Clone)]
pub enum SubAgentRunner {
    /// Sub-agents are available.
    Available(Arc<dyn TaskDelegate>),
    /// There is no model, for example because a tool is called from the command line.
    NoModel,
    /// The tools belong to a sub-agent, which cannot start another one.
    NotNested,
}

/// A task that a call delegated, with the channel for its result.
struct DelegatedTask {
    text: String,
    reply: oneshot::Sender<DelegationOutcome>,
}

/// The host's end of the channel for one call's tasks.
pub(super) struct CallTasks(mpsc::Receiver<DelegatedTask>);

/// Creates the two ends of the channel for one call.
pub(super) fn task_channel() -> (DelegateTask, CallTasks) {
    // A call delegates one task at a time.
    let (tasks, received) = mpsc::channel::<DelegatedTask>(1);
    let delegation: DelegateTask = Arc::new(move |text| {
        let tasks = tasks.clone();
        Box::pin(async move {
            let (reply, answer) = oneshot::channel();
            match tasks.send(DelegatedTask { text, reply }).await {
                Ok(()) => answer.await.unwrap_or_else(|_| cancelled_task()),
                Err(_) => cancelled_task(),
            }
        })
    });
    (delegation, CallTasks(received))
}

impl CallTasks {
    /// Runs the tasks of a call until `ended`, the call itself, completes. Then waits for the tasks
    /// that are still running; they were cancelled with the call.
    pub(super) async fn run_until<T>(
        mut self,
        ended: impl Future<Output = T>,
        by: &SubAgentRunner,
        call: &ToolCall,
        observer: &dyn Observer,
        (slot, cancel): (&ParallelCallSlot, &CancellationToken),
    ) -> T {
        let relay = ProgressRelay { call, observer };
        let mut working = FuturesUnordered::new();
        tokio::pin!(ended);
        let value = loop {
            tokio::select! {
                value = &mut ended => break value,
                Some(task) = self.0.recv() => {
                    working.push(run_task(by, task, &relay, (slot, cancel)));
                }
                Some(()) = working.next(), if !working.is_empty() => {}
            }
        };
        while working.next().await.is_some() {}
        value
    }
}

async fn run_task(
    by: &SubAgentRunner,
    task: DelegatedTask,
    observer: &dyn Observer,
    (slot, cancel): (&ParallelCallSlot, &CancellationToken),
) {
    let delegated = match by {
        SubAgentRunner::Available(delegate) => to_delegated(
            slot.release_during(cancel, delegate.delegate(&task.text, observer, cancel)).await,
        ),
        SubAgentRunner::NoModel => DelegationOutcome::Denied(Denial::without_remedy(
            DenialCode::NoSubAgent,
            "no model is available for a sub-agent.",
        )),
        SubAgentRunner::NotNested => DelegationOutcome::Denied(Denial::new(
            DenialCode::NoSubAgent,
            "a sub-agent cannot start another sub-agent.",
            "Use the other tools instead.",
        )),
    };
    // The receiver is gone if the call was stopped.
    let _ = task.reply.send(delegated);
}

fn to_delegated(SubAgentReport { outcome, turns }: SubAgentReport) -> DelegationOutcome {
    let kind = outcome.kind();
    match outcome {
        RequestOutcome::Answered { text } => {
            DelegationOutcome::Answered { text, complete: true, turns }
        }
        RequestOutcome::Limit { text, .. } if !text.trim().is_empty() => {
            DelegationOutcome::Answered { text, complete: false, turns }
        }
        RequestOutcome::Limit { turns, .. } => failed_task(
            "empty",
            format!("the sub-agent used all of its {turns} turns and gave no answer"),
        ),
        RequestOutcome::Empty => {
            failed_task(kind, "the model gave two empty answers in a row".to_owned())
        }
        RequestOutcome::Rejected => {
            failed_task(kind, "the user rejected a call of the sub-agent".to_owned())
        }
        RequestOutcome::Aborted => cancelled_task(),
        RequestOutcome::TimedOut { seconds } => {
            failed_task(kind, format!("the sub-agent reached its time limit of {seconds} seconds"))
        }
        RequestOutcome::ProviderError { message }
        | RequestOutcome::Overflow { message }
        | RequestOutcome::InternalError { message } => failed_task(kind, message),
    }
}

fn failed_task(kind: &'static str, message: String) -> DelegationOutcome {
    DelegationOutcome::Failed { kind, message }
}

fn cancelled_task() -> DelegationOutcome {
    DelegationOutcome::Denied(Denial::without_remedy(
        DenialCode::Cancelled,
        "the user cancelled the request.",
    ))
}

/// Reports the work of a sub-agent as progress and usage of the call that started it.
struct ProgressRelay<'a> {
    call: &'a ToolCall,
    observer: &'a dyn Observer,
}

impl Observer for ProgressRelay<'_> {
    fn observe(&self, event: &AgentEvent<'_>) {
        match event {
            AgentEvent::CallStarted { call, summary, .. } => {
                let message = format!("{} {summary}", call.name);
                self.observer.observe(&AgentEvent::CallProgress {
                    call: self.call,
                    message: message.trim_end(),
                });
            }
            AgentEvent::TurnFinished(turn) => self
                .observer
                .observe(&AgentEvent::SubAgentTurn { call: self.call, usage: turn.usage() }),
            AgentEvent::ContextFitting(ContextFitting::Summarised { usage, .. })
            | AgentEvent::Discarded { usage } => {
                self.observer.observe(&AgentEvent::SubAgentTurn { call: self.call, usage: *usage });
            }
            AgentEvent::RequestStarted { .. }
            | AgentEvent::TurnStarted { .. }
            | AgentEvent::ContextFitting(ContextFitting::Pruned(_) | ContextFitting::Summarising)
            | AgentEvent::Delta(_)
            | AgentEvent::Answered(_)
            | AgentEvent::CallsRequested(_)
            | AgentEvent::CallProgress { .. }
            | AgentEvent::CallFinished { .. }
            | AgentEvent::SubAgentTurn { .. }
            | AgentEvent::Notice(_)
            | AgentEvent::RequestFinished { .. } => {}
        }
    }

    /// Returns `false`: nobody sees the text of a sub-agent, so a broken stream may start again
    ///
    fn is_live(&self) -> bool {
        false
    }
}
