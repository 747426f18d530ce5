//! The clock of a call, which pauses while the call waits for somebody else.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use tokio_util::sync::CancellationToken;

use super::engine::EPOCH_INTERVAL;

/// The time of one call, with its time limit and its cancellation.
#[derive(Debug)]
pub(super) struct CallClock {
    limit: Duration,
    cancellation: CancellationToken,
    expired: AtomicBool,
    watch: Mutex<DeadlineWatch>,
}

#[derive(Debug)]
struct DeadlineWatch {
    elapsed: Duration,
    running_since: Option<Instant>,
    /// The number of guards that pause the clock.
    pause_count: u32,
}

/// Why a call has to stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CallStopReason {
    Expired,
    Cancelled,
}

impl CallClock {
    pub(super) fn start(limit: Duration, cancellation: CancellationToken) -> Self {
        let watch = DeadlineWatch {
            elapsed: Duration::ZERO,
            running_since: Some(Instant::now()),
            pause_count: 0,
        };
        Self { limit, cancellation, expired: AtomicBool::new(false), watch: Mutex::new(watch) }
    }

    /// Returns the time counted so far.
    pub(super) fn elapsed(&self) -> Duration {
        let watch = self.lock();
        watch.elapsed + watch.running_since.map_or(Duration::ZERO, |since| since.elapsed())
    }

    /// Pauses the clock until the guard is dropped.
    pub(super) fn pause(&self) -> PausedClock<'_> {
        let mut watch = self.lock();
        watch.pause_count += 1;
        if let Some(since) = watch.running_since.take() {
            watch.elapsed += since.elapsed();
        }
        PausedClock { clock: self }
    }

    /// Counts one tick of the running guest. A tick counts even while the clock is paused: a call
    /// that waits for a person does not compute.
    pub(super) fn count_tick(&self) {
        let mut watch = self.lock();
        if watch.pause_count > 0 {
            watch.elapsed += EPOCH_INTERVAL;
        }
    }

    /// Returns whether the call has to stop now, and why. Cheap enough for each tick.
    pub(super) fn stop_reason(&self) -> Option<CallStopReason> {
        if self.cancellation.is_cancelled() {
            return Some(CallStopReason::Cancelled);
        }
        if self.expired.load(Ordering::Relaxed) || self.elapsed() >= self.limit {
            self.expired.store(true, Ordering::Relaxed);
            return Some(CallStopReason::Expired);
        }
        None
    }

    /// Waits until the call has to stop. For calls that wait in the host, where no tick reaches
    /// them.
    pub(super) async fn wait_for_stop(&self) -> CallStopReason {
        loop {
            if let Some(stop) = self.stop_reason() {
                return stop;
            }
            let left = self.limit.saturating_sub(self.elapsed()).max(Duration::from_millis(1));
            tokio::select! {
                () = self.cancellation.cancelled() => return CallStopReason::Cancelled,
                () = tokio::time::sleep(left) => {}
            }
        }
    }

    /// Returns the token that is cancelled with the call.
    pub(super) fn cancellation(&self) -> &CancellationToken {
        &self.cancellation
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, DeadlineWatch> {
        // A panic while the lock is held leaves two plain values, which are both valid.
        self.watch.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

/// Keeps the clock paused until it is dropped.
pub(super) struct PausedClock<'a> {
    clock: &'a CallClock,
}

impl Drop for PausedClock<'_> {
    fn drop(&mut self) {
        let mut watch = self.clock.lock();
        watch.pause_count = watch.pause_count.saturating_sub(1);
        if watch.pause_count == 0 {
            watch.running_since = Some(Instant::now());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn r049_time_in_a_dialog_does_not_count() {
        let clock = CallClock::start(Duration::from_millis(200), CancellationToken::new());
        {
            let _dialog = clock.pause();
            std::thread::sleep(Duration::from_millis(300));
            assert_eq!(clock.stop_reason(), None);
        }
        assert_eq!(clock.stop_reason(), None);
        std::thread::sleep(Duration::from_millis(250));
        assert_eq!(clock.stop_reason(), Some(CallStopReason::Expired));
    }

    #[test]
    fn r049_the_clock_is_paused_until_the_last_guard_is_dropped() {
        let clock = CallClock::start(Duration::from_millis(200), CancellationToken::new());
        let second = {
            let _first = clock.pause();
            clock.pause()
        };
        std::thread::sleep(Duration::from_millis(300));
        assert_eq!(clock.stop_reason(), None);
        drop(second);
        std::thread::sleep(Duration::from_millis(250));
        assert_eq!(clock.stop_reason(), Some(CallStopReason::Expired));
    }

    #[test]
    fn r098_a_guest_that_computes_during_a_dialog_uses_up_its_time() {
        let clock = CallClock::start(Duration::from_millis(200), CancellationToken::new());
        let _dialog = clock.pause();
        (0..20).for_each(|_| clock.count_tick());
        assert_eq!(clock.stop_reason(), Some(CallStopReason::Expired));
    }

    #[test]
    fn r101_cancelling_stops_a_call_at_once() {
        let cancel = CancellationToken::new();
        let clock = CallClock::start(Duration::from_secs(60), cancel.clone());
        cancel.cancel();
        assert_eq!(clock.stop_reason(), Some(CallStopReason::Cancelled));
    }
}
