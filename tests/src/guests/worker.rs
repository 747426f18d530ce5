//! Somebody who works on tasks, and has decided beforehand what comes of them.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use cofferdam::agent::Outcome;
use cofferdam::agent::events::Observer;
use cofferdam::agent::ports::{Delegate, Worked};
use tokio_util::sync::CancellationToken;

/// Ends tasks by a list, with an answer once the list is at its end, after three turns each, and remembers what they were.
#[derive(Debug, Default)]
pub struct Worker {
    outcomes: Mutex<VecDeque<Outcome>>,
    tasks: Mutex<Vec<String>>,
    ended: AtomicUsize,
    pace: Pace,
}

#[derive(Debug, Default)]
enum Pace {
    #[default]
    AtOnce,
    After(Duration),
    OnceCancelled,
}

impl Worker {
    /// With these outcomes.
    pub fn with(outcomes: impl IntoIterator<Item = Outcome>) -> Self {
        Self { outcomes: Mutex::new(outcomes.into_iter().collect()), ..Self::default() }
    }

    /// One that takes its time.
    pub fn that_takes(time: Duration) -> Self {
        Self { pace: Pace::After(time), ..Self::default() }
    }

    /// One that works until it is stopped.
    pub fn that_waits_to_be_cancelled() -> Self {
        Self { pace: Pace::OnceCancelled, ..Self::default() }
    }

    /// The tasks so far.
    pub fn tasks(&self) -> Vec<String> {
        self.tasks.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// How many came to an end.
    pub fn ended(&self) -> usize {
        self.ended.load(Ordering::Relaxed)
    }
}

impl Delegate for Worker {
    fn delegate<'a>(
        &'a self,
        task: &'a str,
        _observer: &'a dyn Observer,
        cancel: &'a CancellationToken,
    ) -> std::pin::Pin<Box<dyn Future<Output = Worked> + Send + 'a>> {
        self.tasks.lock().unwrap_or_else(PoisonError::into_inner).push(task.to_owned());
        let next = self.outcomes.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
        Box::pin(async move {
            let outcome = match self.pace {
                Pace::AtOnce => next,
                Pace::After(time) => {
                    tokio::time::sleep(time).await;
                    next
                }
                Pace::OnceCancelled => {
                    cancel.cancelled().await;
                    Some(Outcome::Aborted)
                }
            };
            self.ended.fetch_add(1, Ordering::Relaxed);
            Worked { outcome: outcome.unwrap_or(Outcome::Answered { text: "Found.".into() }), turns: 3 }
        })
    }
}
