//! The `progress` interface: lines for the user, limited because a guest may send a million of
//! them.

use std::time::{Duration, Instant};

use super::contract::v0_2::progress::Host;
use super::gate::ProgressSink;

/// The shortest interval between lines: ten lines per second by the WIT contract.
const MIN_INTERVAL: Duration = Duration::from_millis(100);
/// The longest line, 200 characters by the WIT contract.
const MAX_MESSAGE_CHARS: usize = 200;

/// Lets one line through per [`MIN_INTERVAL`].
#[derive(Debug, Default)]
struct ProgressThrottle {
    last_sent: Option<Instant>,
}

impl ProgressThrottle {
    fn try_acquire(&mut self, now: Instant) -> bool {
        let due = self.last_sent.is_none_or(|last| now.duration_since(last) >= MIN_INTERVAL);
        if due {
            self.last_sent = Some(now);
        }
        due
    }
}

/// The host's state of the `progress` interface for one call.
#[derive(Default)]
pub(super) struct ProgressHost {
    /// `None` while tools are listed.
    sink: Option<ProgressSink>,
    throttle: ProgressThrottle,
}

impl ProgressHost {
    pub(super) fn new(sink: ProgressSink) -> Self {
        Self { sink: Some(sink), throttle: ProgressThrottle::default() }
    }
}

impl Host for ProgressHost {
    fn report(&mut self, message: String) {
        if let Some(sink) = &self.sink
            && self.throttle.try_acquire(Instant::now())
        {
            let line: String = message
                .lines()
                .next()
                .unwrap_or_default()
                .chars()
                .take(MAX_MESSAGE_CHARS)
                .collect();
            sink(&line);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ten_lines_a_second_pass() {
        let mut throttle = ProgressThrottle::default();
        let start = Instant::now();
        let passed =
            (0..1000).filter(|n| throttle.try_acquire(start + Duration::from_millis(*n))).count();
        assert_eq!(passed, 10);
    }
}
