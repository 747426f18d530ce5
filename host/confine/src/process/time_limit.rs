//! The time limit of a command, which does not run while a question to the user is open.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::Instant;

/// The time limit of a command. Clones share their pauses.
#[derive(Clone, Debug)]
pub struct CommandTimeLimit {
    limit: Duration,
    /// The number of pauses.
    pauses: Arc<watch::Sender<usize>>,
}

/// A guard during which the time of a command does not count.
#[must_use = "the time limit is paused until this guard is dropped"]
#[derive(Debug)]
pub struct TimeLimitPause(Arc<watch::Sender<usize>>);

impl CommandTimeLimit {
    /// Creates a limit that counts from the start of the command.
    pub fn new(limit: Duration) -> Self {
        Self { limit, pauses: Arc::new(watch::Sender::new(0)) }
    }

    /// Pauses the limit until the guard is dropped.
    pub fn pause(&self) -> TimeLimitPause {
        self.pauses.send_modify(|count| *count += 1);
        TimeLimitPause(Arc::clone(&self.pauses))
    }

    /// Returns the number of pauses that have not ended.
    pub fn pauses(&self) -> usize {
        *self.pauses.borrow()
    }

    /// Waits until the time is over, counted from now.
    pub(super) async fn expire(&self) {
        let mut pauses = self.pauses.subscribe();
        let mut left = self.limit;
        loop {
            // The sender lives as long as `self`, so waiting does not fail.
            let _ = pauses.wait_for(|count| *count == 0).await;
            let started = Instant::now();
            match tokio::time::timeout(left, pauses.wait_for(|count| *count > 0)).await {
                Ok(_) => left = left.saturating_sub(started.elapsed()),
                Err(_) => return,
            }
        }
    }
}

impl From<Duration> for CommandTimeLimit {
    fn from(limit: Duration) -> Self {
        Self::new(limit)
    }
}

impl Drop for TimeLimitPause {
    fn drop(&mut self) {
        self.0.send_modify(|count| *count = count.saturating_sub(1));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn r049_pauses_do_not_count() {
        let limit = CommandTimeLimit::new(Duration::from_millis(200));
        let started = Instant::now();
        let pausing = async {
            tokio::time::sleep(Duration::from_millis(50)).await;
            let first = limit.pause();
            tokio::time::sleep(Duration::from_millis(300)).await;
            let second = limit.pause();
            drop(first);
            tokio::time::sleep(Duration::from_millis(300)).await;
            drop(second);
        };
        tokio::join!(limit.expire(), pausing);
        let taken = started.elapsed();
        assert!(taken >= Duration::from_millis(790), "{taken:?}");
        let unpaused = Instant::now();
        limit.expire().await;
        assert!(unpaused.elapsed() < Duration::from_millis(500));
    }
}
