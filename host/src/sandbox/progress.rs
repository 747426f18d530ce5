//! `progress`: a line for the user, from a guest that may send a million of them.

use std::time::{Duration, Instant};

use super::bindings::cofferdam::plugin::progress::Host;
use super::state::State;

/// The contract's ten lines in a second.
const APART: Duration = Duration::from_millis(100);
/// The contract's 200 characters.
const LONGEST: usize = 200;

/// Lets a line through at most every [`APART`].
#[derive(Debug, Default)]
pub(super) struct Throttle {
    last: Option<Instant>,
}

impl Throttle {
    fn admits(&mut self, now: Instant) -> bool {
        let due = self.last.is_none_or(|last| now.duration_since(last) >= APART);
        if due {
            self.last = Some(now);
        }
        due
    }
}

impl Host for State {
    fn report(&mut self, message: String) {
        if let Some((sink, throttle)) = &mut self.progress
            && throttle.admits(Instant::now())
        {
            let line: String = message.lines().next().unwrap_or_default().chars().take(LONGEST).collect();
            sink(&line);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ten_lines_a_second_pass() {
        let mut throttle = Throttle::default();
        let start = Instant::now();
        let passed = (0..1000).filter(|n| throttle.admits(start + Duration::from_millis(*n))).count();
        assert_eq!(passed, 10);
    }
}
