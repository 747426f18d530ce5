//! The active time of a request.
//!
//! The time that a user takes to answer a question does not count.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::Instant;

/// A clock that stops while a question to the user is open.
///
/// All clones share one clock.
#[derive(Clone, Debug, Default)]
pub struct ActiveTime {
    shared: Arc<SharedClock>,
}

#[derive(Debug, Default)]
struct SharedClock {
    state: Mutex<ActiveClockState>,
    resumed: Notify,
}

#[derive(Clone, Copy, Debug, Default)]
struct ActiveClockState {
    /// The number of questions that are open.
    open_questions: u32,
    paused_since: Option<Instant>,
    /// The sum of all pauses that have ended.
    total_paused: Duration,
}

/// A guard for one open question; the clock is stopped until it is dropped.
#[must_use = "the clock is paused until this guard is dropped"]
#[derive(Debug)]
pub struct ClockPause {
    clock: ActiveTime,
}

impl ActiveTime {
    /// Stops the clock while a question to the user is open.
    ///
    /// The clock runs again when every guard is dropped.
    pub fn pause(&self) -> ClockPause {
        let mut state = self.state();
        state.open_questions += 1;
        state.paused_since.get_or_insert_with(Instant::now);
        ClockPause { clock: self.clone() }
    }

    /// Waits until this much active time has passed from now on.
    pub(super) async fn sleep(&self, limit: Duration) {
        let (begun, paused_before) = (Instant::now(), self.state().paused_until(Instant::now()));
        loop {
            let resumed = self.shared.resumed.notified();
            let (now, state) = (Instant::now(), *self.state());
            let active = (now - begun).saturating_sub(state.paused_until(now) - paused_before);
            let left = limit.saturating_sub(active);
            if state.open_questions > 0 {
                resumed.await;
            } else if left.is_zero() {
                return;
            } else {
                // If the clock stops during this sleep, the next iteration waits for the rest.
                tokio::time::sleep(left).await;
            }
        }
    }

    fn state(&self) -> MutexGuard<'_, ActiveClockState> {
        self.shared.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ActiveClockState {
    fn paused_until(&self, now: Instant) -> Duration {
        self.total_paused
            + self.paused_since.map_or(Duration::ZERO, |since| now.saturating_duration_since(since))
    }
}

impl Drop for ClockPause {
    fn drop(&mut self) {
        let mut state = self.clock.state();
        state.open_questions -= 1;
        if state.open_questions == 0 {
            state.total_paused = state.paused_until(Instant::now());
            state.paused_since = None;
            self.clock.shared.resumed.notify_waiters();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHORT: Duration = Duration::from_millis(40);

    #[tokio::test]
    async fn r104_time_in_a_dialog_does_not_count() {
        let clock = ActiveTime::default();
        let (first, second) = (clock.pause(), clock.pause());
        let begun = Instant::now();
        let passed = tokio::spawn({
            let clock = clock.clone();
            async move {
                clock.sleep(SHORT).await;
                Instant::now()
            }
        });
        tokio::time::sleep(5 * SHORT).await;
        drop(first);
        tokio::time::sleep(SHORT).await;
        assert!(!passed.is_finished(), "one question is still open");
        drop(second);
        let ended = passed.await.expect("ends");
        assert!(ended - begun >= 7 * SHORT, "{:?}", ended - begun);
    }

    #[tokio::test]
    async fn r104_a_question_before_the_request_does_not_extend_its_limit() {
        let clock = ActiveTime::default();
        let pause = clock.pause();
        tokio::time::sleep(3 * SHORT).await;
        drop(pause);
        let begun = Instant::now();
        clock.sleep(SHORT).await;
        // There is no upper bound, because the machine may be busy.
        assert!(begun.elapsed() >= SHORT);
    }
}
