//! Somebody who works on tasks, and has decided beforehand what comes of them.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use cofferdam::agent::RequestOutcome;
use cofferdam::agent::events::Observer;
use cofferdam::agent::ports::{SubAgentReport, TaskDelegate};
use tokio_util::sync::CancellationToken;

/// Ends tasks by a list, with an answer once the list is at its end, after three turns each, and
/// remembers what they were.
#[derive(Debug, Default)]
pub struct ScriptedDelegate {
    outcomes: Mutex<VecDeque<RequestOutcome>>,
    tasks: Mutex<Vec<String>>,
    finished_count: AtomicUsize,
    duration: TaskDuration,
}

#[derive(Debug, Default)]
enum TaskDuration {
    #[default]
    Immediate,
    Delayed(Duration),
    UntilCancelled,
}

impl ScriptedDelegate {
    /// With these outcomes.
    pub fn with_outcomes(outcomes: impl IntoIterator<Item = RequestOutcome>) -> Self {
        Self { outcomes: Mutex::new(outcomes.into_iter().collect()), ..Self::default() }
    }

    /// One that takes its time.
    pub fn with_delay(time: Duration) -> Self {
        Self { duration: TaskDuration::Delayed(time), ..Self::default() }
    }

    /// One that works until it is stopped.
    pub fn until_cancelled() -> Self {
        Self { duration: TaskDuration::UntilCancelled, ..Self::default() }
    }

    /// The tasks so far.
    pub fn tasks(&self) -> Vec<String> {
        self.tasks.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// How many came to an end.
    pub fn finished_count(&self) -> usize {
        self.finished_count.load(Ordering::Relaxed)
    }
}

impl TaskDelegate for ScriptedDelegate {
    fn delegate<'a>(
        &'a self,
        task: &'a str,
        _observer: &'a dyn Observer,
        cancel: &'a CancellationToken,
    ) -> std::pin::Pin<Box<dyn Future<Output = SubAgentReport> + Send + 'a>> {
        self.tasks.lock().unwrap_or_else(PoisonError::into_inner).push(task.to_owned());
        let next = self.outcomes.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
        Box::pin(async move {
            let outcome = match self.duration {
                TaskDuration::Immediate => next,
                TaskDuration::Delayed(time) => {
                    tokio::time::sleep(time).await;
                    next
                }
                TaskDuration::UntilCancelled => {
                    cancel.cancelled().await;
                    Some(RequestOutcome::Aborted)
                }
            };
            self.finished_count.fetch_add(1, Ordering::Relaxed);
            SubAgentReport {
                outcome: outcome.unwrap_or(RequestOutcome::Answered { text: "Found.".into() }),
                turns: 3,
            }
        })
    }
}
