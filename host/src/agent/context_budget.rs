//! How the context window of a model is divided.

use crate::conversation::PruneLimits;

/// Tokens that stay free for the response.
const RESPONSE_RESERVE: u64 = 16_384;
/// Tokens of the newest turns that a summary leaves as they are.
const KEEP_TOKENS: u64 = 20_000;
/// Where results are left out, with a window of the usual size.
const LARGE_WINDOW_PRUNING: PruneLimits =
    PruneLimits { protected_tokens: 40_000, min_gain: 20_000 };
/// The same where a summary would be due before the large figures are ever reached.
const SMALL_WINDOW_PRUNING: PruneLimits = PruneLimits { protected_tokens: 2_000, min_gain: 500 };

/// The parts of a window, in tokens. In a small one, reserve and kept part take a
/// quarter each at most, so that half of it is there to be used before anything is summarised. What
/// the model is asked to leave for its response stays free in any case, up to three quarters of the
/// window: there are servers that count it in, and refuse what does not fit beside it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ContextBudget {
    pub(super) window: u64,
    /// Beyond so many, a request would be refused.
    pub(super) max_request: u64,
    /// Beyond so many, the oldest part is summarised.
    pub(super) compact_threshold: u64,
    /// So many of the newest are not.
    pub(super) keep_tokens: u64,
    pub(super) pruning: PruneLimits,
}

impl ContextBudget {
    pub(super) fn new(window: u64, max_output: Option<u64>) -> Self {
        let output = max_output.unwrap_or_default().min(window / 4 * 3);
        let keep_tokens = KEEP_TOKENS.min(window / 4).min((window - output) / 3);
        let compact_threshold = window - output.max(RESPONSE_RESERVE.min(window / 4)) - keep_tokens;
        let pruning = if compact_threshold
            >= LARGE_WINDOW_PRUNING.protected_tokens + LARGE_WINDOW_PRUNING.min_gain
        {
            LARGE_WINDOW_PRUNING
        } else {
            SMALL_WINDOW_PRUNING
        };
        Self { window, max_request: window - output, compact_threshold, keep_tokens, pruning }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn r066_r068_the_window_is_divided_by_its_size() {
        let table = [
            (1_000_000, 963_616, 20_000, LARGE_WINDOW_PRUNING),
            (200_000, 163_616, 20_000, LARGE_WINDOW_PRUNING),
            (128_000, 91_616, 20_000, LARGE_WINDOW_PRUNING),
            (96_000, 59_616, 20_000, SMALL_WINDOW_PRUNING),
            (64_000, 32_000, 16_000, SMALL_WINDOW_PRUNING),
            (32_768, 16_384, 8_192, SMALL_WINDOW_PRUNING),
            (8_192, 4_096, 2_048, SMALL_WINDOW_PRUNING),
            (0, 0, 0, SMALL_WINDOW_PRUNING),
        ];
        for (window, limit, keep, pruning) in table {
            assert_eq!(
                ContextBudget::new(window, None),
                ContextBudget {
                    window,
                    max_request: window,
                    compact_threshold: limit,
                    keep_tokens: keep,
                    pruning
                }
            );
            assert_eq!(
                ContextBudget::new(window, Some(100)).compact_threshold,
                limit,
                "a short response has room in the reserve"
            );
        }
    }

    #[test]
    fn r068_what_is_asked_for_the_response_stays_free() {
        let table = [
            (200_000, 32_000, 168_000, 148_000),
            (32_768, 24_000, 8_768, 5_846),
            (32_768, 12_000, 20_768, 13_846),
        ];
        for (window, max_output, most, limit) in table {
            let room = ContextBudget::new(window, Some(max_output));
            assert_eq!((room.max_request, room.compact_threshold), (most, limit));
            assert_eq!(room.max_request + max_output, window);
        }
    }
}
