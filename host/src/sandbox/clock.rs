//! Time that counts: a stopwatch that stands still while a call waits for somebody else.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use tokio_util::sync::CancellationToken;

use super::engine::TICK;

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
    /// How many hold it still.
    paused: u32,
}

/// Why a call has to stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stop {
    Expired,
    Cancelled,
}

impl Clock {
    pub(super) fn start(limit: Duration, cancel: CancellationToken) -> Self {
        let watch = Watch { counted: Duration::ZERO, running_since: Some(Instant::now()), paused: 0 };
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
        watch.paused += 1;
        if let Some(since) = watch.running_since.take() {
            watch.counted += since.elapsed();
        }
        Paused { clock: self }
    }

    /// The guest ran for a tick. That counts even while the clock stands still: who waits for a person does not compute.
    pub(super) fn ran(&self) {
        let mut watch = self.lock();
        if watch.paused > 0 {
            watch.counted += TICK;
        }
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
        let mut watch = self.clock.lock();
        watch.paused = watch.paused.saturating_sub(1);
        if watch.paused == 0 {
            watch.running_since = Some(Instant::now());
        }
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
    fn r049_it_stands_still_until_the_last_one_lets_go() {
        let clock = Clock::start(Duration::from_millis(200), CancellationToken::new());
        let second = {
            let _first = clock.pause();
            clock.pause()
        };
        std::thread::sleep(Duration::from_millis(300));
        assert_eq!(clock.stop(), None);
        drop(second);
        std::thread::sleep(Duration::from_millis(250));
        assert_eq!(clock.stop(), Some(Stop::Expired));
    }

    #[test]
    fn r098_a_guest_that_computes_while_somebody_is_asked_uses_up_its_time() {
        let clock = Clock::start(Duration::from_millis(200), CancellationToken::new());
        let _dialog = clock.pause();
        (0..20).for_each(|_| clock.ran());
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
