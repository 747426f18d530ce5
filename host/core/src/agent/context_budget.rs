//! The division of a model's context window.

use crate::conversation::PruneLimits;

/// Tokens that stay free for the response.
const RESPONSE_RESERVE: u64 = 16_384;
/// Tokens of the newest turns that a summary leaves unchanged.
const KEEP_TOKENS: u64 = 20_000;
/// The limits for leaving out old results in a window of the usual size.
const LARGE_WINDOW_PRUNING: PruneLimits =
    PruneLimits { protected_tokens: 40_000, min_gain: 20_000 };
/// The limits for a window so small that a summary would be due before the large limits apply.
const SMALL_WINDOW_PRUNING: PruneLimits = PruneLimits { protected_tokens: 2_000, min_gain: 500 };

/// The parts of a context window, in tokens.
///
/// In a small window, the reserve and the kept part take at most a quarter each. So half of the
/// window can be used before anything is summarised.
///
/// The configured output limit always stays free, up to three quarters of the window. Some servers
/// count it as part of the request and refuse a request that does not fit beside it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ContextBudget {
    pub(super) window: u64,
    /// The largest request that the provider accepts.
    pub(super) max_request: u64,
    /// The size above which the oldest part is summarised.
    pub(super) compact_threshold: u64,
    /// The size of the newest part, which is not summarised.
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
        for (window, threshold, keep, pruning) in table {
            assert_eq!(
                ContextBudget::new(window, None),
                ContextBudget {
                    window,
                    max_request: window,
                    compact_threshold: threshold,
                    keep_tokens: keep,
                    pruning
                }
            );
            assert_eq!(
                ContextBudget::new(window, Some(100)).compact_threshold,
                threshold,
                "a short response has room in the reserve"
            );
        }
    }

    #[test]
    fn r068_the_output_limit_stays_free() {
        let table = [
            (200_000, 32_000, 168_000, 148_000),
            (32_768, 24_000, 8_768, 5_846),
            (32_768, 12_000, 20_768, 13_846),
        ];
        for (window, max_output, max_request, threshold) in table {
            let budget = ContextBudget::new(window, Some(max_output));
            assert_eq!((budget.max_request, budget.compact_threshold), (max_request, threshold));
            assert_eq!(budget.max_request + max_output, window);
        }
    }
}
