//! How the context window of a model is divided.

use crate::conversation::Pruning;

/// Tokens that stay free for the response.
const RESERVE: u64 = 16_384;
/// Tokens of the newest turns that a summary leaves as they are.
const KEEP: u64 = 20_000;
/// Where results are left out, with a window of the usual size.
const LARGE: Pruning = Pruning { protected: 40_000, least_gain: 20_000 };
/// The same where a summary would be due before the large figures are ever reached.
const SMALL: Pruning = Pruning { protected: 2_000, least_gain: 500 };

/// The parts of a window, in tokens. In a small one, reserve and kept part take a quarter each at most, so
/// that half of it is there to be used before anything is summarised.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Room {
    pub(super) window: u64,
    /// Beyond so many, the oldest part is summarised.
    pub(super) limit: u64,
    /// So many of the newest are not.
    pub(super) keep: u64,
    pub(super) pruning: Pruning,
}

impl Room {
    pub(super) fn of(window: u64) -> Self {
        let keep = KEEP.min(window / 4);
        let limit = window - RESERVE.min(window / 4) - keep;
        let pruning = if limit >= LARGE.protected + LARGE.least_gain { LARGE } else { SMALL };
        Self { window, limit, keep, pruning }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn r066_r068_the_window_is_divided_by_its_size() {
        let table = [
            (1_000_000, 963_616, 20_000, LARGE),
            (200_000, 163_616, 20_000, LARGE),
            (128_000, 91_616, 20_000, LARGE),
            (96_000, 59_616, 20_000, SMALL),
            (64_000, 32_000, 16_000, SMALL),
            (32_768, 16_384, 8_192, SMALL),
            (8_192, 4_096, 2_048, SMALL),
            (0, 0, 0, SMALL),
        ];
        for (window, limit, keep, pruning) in table {
            assert_eq!(Room::of(window), Room { window, limit, keep, pruning });
        }
    }
}
