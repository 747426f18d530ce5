//! `progress`: a line for the user, from a guest that may send a million of them.

use std::time::{Duration, Instant};

use super::bindings::cofferdam::plugin::progress::Host;
use super::call_state::CallState;

/// The contract's ten lines in a second.
const MIN_INTERVAL: Duration = Duration::from_millis(100);
/// The contract's 200 characters.
const MAX_MESSAGE_CHARS: usize = 200;

/// Lets a line through at most every [`MIN_INTERVAL`].
#[derive(Debug, Default)]
pub(super) struct ProgressThrottle {
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

impl Host for CallState {
    fn report(&mut self, message: String) {
        if let Some((sink, throttle)) = &mut self.progress
            && throttle.try_acquire(Instant::now())
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
