//! Time that counts: a stopwatch that stands still while a call waits for somebody else.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use tokio_util::sync::CancellationToken;

use super::engine::EPOCH_INTERVAL;

/// The time of one call, and the two things that end it from outside.
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
    /// How many hold it still.
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

    /// The time counted so far.
    pub(super) fn elapsed(&self) -> Duration {
        let watch = self.lock();
        watch.elapsed + watch.running_since.map_or(Duration::ZERO, |since| since.elapsed())
    }

    /// Stands still until the guard is dropped.
    pub(super) fn pause(&self) -> PausedClock<'_> {
        let mut watch = self.lock();
        watch.pause_count += 1;
        if let Some(since) = watch.running_since.take() {
            watch.elapsed += since.elapsed();
        }
        PausedClock { clock: self }
    }

    /// The guest ran for a tick. That counts even while the clock stands still: who waits for a
    /// person does not compute.
    pub(super) fn count_tick(&self) {
        let mut watch = self.lock();
        if watch.pause_count > 0 {
            watch.elapsed += EPOCH_INTERVAL;
        }
    }

    /// Whether the call has to stop now, and why. Cheap enough for each tick.
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

    /// Returns once the call has to stop, for calls that wait in the host where no tick reaches
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

    /// Cancelled with the call.
    pub(super) fn cancellation(&self) -> &CancellationToken {
        &self.cancellation
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, DeadlineWatch> {
        // A panic while holding it leaves two plain values; both are fine to go on with.
        self.watch.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

/// While this lives, the clock stands still.
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
    fn r049_it_stands_still_until_the_last_one_lets_go() {
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
    fn r098_a_guest_that_computes_while_somebody_is_asked_uses_up_its_time() {
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
