//! Tasks that a running call hands over: from its enclosure to whoever has sub-agents, and back.

use std::sync::Arc;

use futures_util::stream::{FuturesUnordered, StreamExt as _};
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;

use super::parallel::Slot;
use crate::agent::Outcome;
use crate::agent::events::{Event, Fitting, Observer};
use crate::agent::ports::{Delegate, Worked};
use crate::conversation::Call;
use crate::policy::{Code, Denial};
use crate::sandbox::{Delegated, Delegation};

/// Who works on tasks that tools hand over.
#[derive(Clone)]
pub enum SubAgents {
    /// This one makes them.
    By(Arc<dyn Delegate>),
    /// There is no model, as when a tool is called by hand.
    NoModel,
    /// The tools are those of a sub-agent, which has none of its own.
    TooDeep,
}

/// A task on its way out of an enclosure.
struct Task {
    text: String,
    reply: oneshot::Sender<Delegated>,
}

/// The host's end of one call's tasks.
pub(super) struct Tasks(mpsc::Receiver<Task>);

/// The two ends for one call.
pub(super) fn tasks() -> (Delegation, Tasks) {
    // A call hands over one task at a time.
    let (tasks, received) = mpsc::channel::<Task>(1);
    let delegation: Delegation = Arc::new(move |text| {
        let tasks = tasks.clone();
        Box::pin(async move {
            let (reply, answer) = oneshot::channel();
            match tasks.send(Task { text, reply }).await {
                Ok(()) => answer.await.unwrap_or_else(|_| cancelled()),
                Err(_) => cancelled(),
            }
        })
    });
    (delegation, Tasks(received))
}

impl Tasks {
    /// Has the tasks of a call worked on until `ended`, which is the call itself, and waits for those that still run then:
    /// they were cancelled with it.
    pub(super) async fn work_until<T>(
        mut self,
        ended: impl Future<Output = T>,
        by: &SubAgents,
        call: &Call,
        observer: &dyn Observer,
        (slot, cancel): (&Slot, &CancellationToken),
    ) -> T {
        let relay = Relay { call, to: observer };
        let mut working = FuturesUnordered::new();
        tokio::pin!(ended);
        let value = loop {
            tokio::select! {
                value = &mut ended => break value,
                Some(task) = self.0.recv() => working.push(work(by, task, &relay, (slot, cancel))),
                Some(()) = working.next(), if !working.is_empty() => {}
            }
        };
        while working.next().await.is_some() {}
        value
    }
}

async fn work(by: &SubAgents, task: Task, observer: &dyn Observer, (slot, cancel): (&Slot, &CancellationToken)) {
    let delegated = match by {
        SubAgents::By(delegate) => told(slot.lent(cancel, delegate.delegate(&task.text, observer, cancel)).await),
        SubAgents::NoModel => Delegated::Denied(Denial::fixed(Code::NoSubAgent, "there is no model here that could work on a task.")),
        SubAgents::TooDeep => Delegated::Denied(Denial::new(
            Code::NoSubAgent,
            "this is a sub-agent, and a sub-agent has none of its own.",
            "Look for yourself with the other tools.",
        )),
    };
    // Nobody waits for it if the call was stopped.
    let _ = task.reply.send(delegated);
}

fn told(Worked { outcome, turns }: Worked) -> Delegated {
    let kind = outcome.kind();
    match outcome {
        Outcome::Answered { text } => Delegated::Answered { text, complete: true, turns },
        Outcome::Limit { text, .. } if !text.trim().is_empty() => Delegated::Answered { text, complete: false, turns },
        Outcome::Limit { turns, .. } => failed(kind, format!("it took all of its {turns} turns and gave no answer")),
        Outcome::Empty => failed(kind, "the model gave no answer, twice in a row".to_owned()),
        Outcome::Rejected => failed(kind, "it was handed back to the user".to_owned()),
        Outcome::Aborted => cancelled(),
        Outcome::TimedOut { seconds } => failed(kind, format!("it ran longer than {seconds} seconds")),
        Outcome::ProviderError { message } | Outcome::Overflow { message } | Outcome::InternalError { message } => failed(kind, message),
    }
}

fn failed(kind: &'static str, message: String) -> Delegated {
    Delegated::Failed { kind, message }
}

fn cancelled() -> Delegated {
    Delegated::Denied(Denial::fixed(Code::Cancelled, "the user stopped the request."))
}

/// What a sub-agent does, as the progress and the cost of the call that it works for.
struct Relay<'a> {
    call: &'a Call,
    to: &'a dyn Observer,
}

impl Observer for Relay<'_> {
    fn observe(&self, event: &Event<'_>) {
        match event {
            Event::CallStarted { call, summary, .. } => {
                let message = format!("{} {summary}", call.name);
                self.to.observe(&Event::CallProgress { call: self.call, message: message.trim_end() });
            }
            Event::TurnFinished(turn) => self.to.observe(&Event::SubAgentTurn { call: self.call, usage: turn.usage() }),
            Event::Fitting(Fitting::Summarised { usage, .. }) | Event::Discarded { usage } => {
                self.to.observe(&Event::SubAgentTurn { call: self.call, usage: *usage });
            }
            Event::RequestStarted { .. }
            | Event::TurnStarted { .. }
            | Event::Fitting(Fitting::Pruned(_) | Fitting::Summarising)
            | Event::Delta(_)
            | Event::Answered(_)
            | Event::CallsProposed(_)
            | Event::CallProgress { .. }
            | Event::CallFinished { .. }
            | Event::SubAgentTurn { .. }
            | Event::Notice(_)
            | Event::RequestFinished { .. } => {}
        }
    }

    /// Nobody sees its text, so a stream of it that broke may begin anew.
    fn is_live(&self) -> bool {
        false
    }
}
