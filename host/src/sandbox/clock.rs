//! Time that counts: a stopwatch that stands still while a call waits for somebody else.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use tokio_util::sync::CancellationToken;

/// The time of one call, and the two things that end it from outside.
#[derive(Debug)]
pub(super) struct Clock {
    limit: Duration,
    cancel: CancellationToken,
    expired: AtomicBool,
    watch: Mutex<Watch>,
}

#[derive(Debug)]
struct Watch {
    counted: Duration,
    running_since: Option<Instant>,
}

/// Why a call has to stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stop {
    Expired,
    Cancelled,
}

impl Clock {
    pub(super) fn start(limit: Duration, cancel: CancellationToken) -> Self {
        let watch = Watch { counted: Duration::ZERO, running_since: Some(Instant::now()) };
        Self { limit, cancel, expired: AtomicBool::new(false), watch: Mutex::new(watch) }
    }

    /// The time counted so far.
    pub(super) fn counted(&self) -> Duration {
        let watch = self.lock();
        watch.counted + watch.running_since.map_or(Duration::ZERO, |since| since.elapsed())
    }

    /// Stands still until the guard is dropped.
    pub(super) fn pause(&self) -> Paused<'_> {
        let mut watch = self.lock();
        if let Some(since) = watch.running_since.take() {
            watch.counted += since.elapsed();
        }
        Paused { clock: self }
    }

    /// Whether the call has to stop now, and why. Cheap enough for each tick.
    pub(super) fn stop(&self) -> Option<Stop> {
        if self.cancel.is_cancelled() {
            return Some(Stop::Cancelled);
        }
        if self.expired.load(Ordering::Relaxed) || self.counted() >= self.limit {
            self.expired.store(true, Ordering::Relaxed);
            return Some(Stop::Expired);
        }
        None
    }

    /// Returns once the call has to stop, for calls that wait in the host where no tick reaches them.
    pub(super) async fn stopped(&self) -> Stop {
        loop {
            if let Some(stop) = self.stop() {
                return stop;
            }
            let left = self.limit.saturating_sub(self.counted()).max(Duration::from_millis(1));
            tokio::select! {
                () = self.cancel.cancelled() => return Stop::Cancelled,
                () = tokio::time::sleep(left) => {}
            }
        }
    }

    /// Cancelled with the call.
    pub(super) fn cancel(&self) -> &CancellationToken {
        &self.cancel
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Watch> {
        // A panic while holding it leaves two plain values; both are fine to go on with.
        self.watch.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

/// While this lives, the clock stands still.
pub(super) struct Paused<'a> {
    clock: &'a Clock,
}

impl Drop for Paused<'_> {
    fn drop(&mut self) {
        self.clock.lock().running_since = Some(Instant::now());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn r049_time_in_a_dialog_does_not_count() {
        let clock = Clock::start(Duration::from_millis(200), CancellationToken::new());
        {
            let _dialog = clock.pause();
            std::thread::sleep(Duration::from_millis(300));
            assert_eq!(clock.stop(), None);
        }
        assert_eq!(clock.stop(), None);
        std::thread::sleep(Duration::from_millis(250));
        assert_eq!(clock.stop(), Some(Stop::Expired));
    }

    #[test]
    fn r101_cancelling_stops_a_call_at_once() {
        let cancel = CancellationToken::new();
        let clock = Clock::start(Duration::from_secs(60), cancel.clone());
        cancel.cancel();
        assert_eq!(clock.stop(), Some(Stop::Cancelled));
    }
}
