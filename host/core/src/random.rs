//! Random numbers for identifiers and pauses, unsuitable for secrets.

use std::hash::{BuildHasher as _, RandomState};
use std::time::Duration;

/// Returns 64 random bits, taken from the keys of a standard library hasher.
pub(crate) fn next_u64() -> u64 {
    RandomState::new().hash_one(0_u8)
}

/// Returns a random duration between three quarters of `pause` and all of it.
///
/// The spread keeps many waiting clients from retrying at the same moment.
pub(crate) fn jitter(pause: Duration) -> Duration {
    #[expect(clippy::cast_precision_loss, reason = "24 bits fit exactly")]
    let fraction = (next_u64() >> 40) as f64 / (1_u64 << 24) as f64;
    pause - pause.mul_f64(0.25 * fraction)
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn r026_pauses_differ_and_stay_within_their_bounds() {
        let pauses: HashSet<Duration> = (0..20).map(|_| jitter(Duration::from_secs(1))).collect();
        assert!(
            pauses.len() > 1
                && pauses.iter().all(|pause| (750..=1000).contains(&pause.as_millis())),
            "{pauses:?}"
        );
    }
}
