//! The pauses between the starts of a server that fails.

use std::time::{Duration, Instant};

/// The pause after the first failure. It doubles with each further one.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
/// The longest pause.
const MAX_PAUSE: Duration = Duration::from_secs(60);
/// The number of failures in a row after which the server is not started any more.
const MAX_FAILURES: u32 = 8;
/// The longest pause for which a call waits.
const MAX_WAIT: Duration = Duration::from_secs(4);

/// The failures of a server since its last success.
#[derive(Debug, Default)]
pub(super) struct RestartPolicy {
    failures: u32,
    last: Option<(Instant, String)>,
}

/// Whether a server may start.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum RestartDecision {
    /// After this pause.
    After(Duration),
    /// Not for this call. The text is a sentence without a full stop.
    Refused(String),
}

impl RestartPolicy {
    /// Records a failure, for this reason.
    pub(super) fn record_failure(&mut self, now: Instant, reason: &str) {
        self.failures = self.failures.saturating_add(1);
        self.last = Some((now, reason.to_owned()));
    }

    /// Records that a call succeeded.
    pub(super) fn record_success(&mut self) {
        *self = Self::default();
    }

    /// Decides whether the server may start now.
    pub(super) fn decide(&self, now: Instant) -> RestartDecision {
        let Some((last, reason)) = &self.last else {
            return RestartDecision::After(Duration::ZERO);
        };
        if self.failures >= MAX_FAILURES {
            return RestartDecision::Refused(format!(
                "it failed {} times in a row and is not started again: {reason}",
                self.failures
            ));
        }
        let doublings = self.failures.saturating_sub(1).min(16);
        let pause = FIRST_PAUSE.saturating_mul(1 << doublings).min(MAX_PAUSE);
        let left = pause.saturating_sub(now.saturating_duration_since(*last));
        match left > MAX_WAIT {
            true => RestartDecision::Refused(format!(
                "it failed {} times in a row and starts again in {} s at the earliest: {reason}",
                self.failures,
                left.as_secs() + 1
            )),
            false => RestartDecision::After(left),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_and_end_with_a_success() {
        let mut restarts = RestartPolicy::default();
        let start = Instant::now();
        let mut pauses = Vec::new();
        for _ in 0..MAX_FAILURES {
            pauses.push(match restarts.decide(start) {
                RestartDecision::After(pause) => Some(pause.as_secs()),
                RestartDecision::Refused(reason) => {
                    assert!(reason.contains("starts again in") && reason.ends_with("crash"));
                    None
                }
            });
            restarts.record_failure(start, "crash");
        }
        let expected = [Some(0), Some(1), Some(2), Some(4), None, None, None, None];
        assert_eq!(pauses, expected);
        let never = restarts.decide(start + Duration::from_secs(1_000_000));
        let RestartDecision::Refused(reason) = never else { panic!("{never:?}") };
        assert!(reason.contains("is not started again: crash"), "{reason}");
        restarts.record_success();
        assert_eq!(restarts.decide(start), RestartDecision::After(Duration::ZERO));
    }

    #[test]
    fn a_pause_that_is_over_is_no_pause() {
        let mut restarts = RestartPolicy::default();
        let start = Instant::now();
        (0..5).for_each(|_| restarts.record_failure(start, "crash"));
        assert!(matches!(restarts.decide(start), RestartDecision::Refused(_)));
        let later = restarts.decide(start + MAX_PAUSE);
        assert_eq!(later, RestartDecision::After(Duration::ZERO));
    }
}
