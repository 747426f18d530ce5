//! Plausibility checks for the token counts that providers report.
//!
//! Wrong counts would trigger early summaries of the conversation and show costs that nobody paid.
//! An implausible count becomes unknown.

use crate::conversation::TokenUsage;

/// The most input tokens, in addition to the body, that a provider may add by itself.
const MAX_UNSEEN_INPUT: u64 = 64 << 10;

/// The most output tokens that are plausible for any model, hidden thinking included.
const MAX_OUTPUT: u64 = 1 << 20;

/// Removes implausible counts from the usage of a response.
///
/// `body` is the size of the request in bytes, and `window` is the context window of the model in
/// tokens. A token is at least one byte, except in pictures, of which a request has few. Input up
/// to the size of the window is always plausible.
pub(super) fn plausible_usage(usage: TokenUsage, body: usize, window: u64) -> TokenUsage {
    let max_input =
        u64::try_from(body).unwrap_or(u64::MAX).saturating_add(MAX_UNSEEN_INPUT).max(window);
    let input = usage.input.filter(|tokens| *tokens <= max_input);
    let of_input =
        |part: Option<u64>| part.filter(|tokens| input.is_some_and(|input| *tokens <= input));
    TokenUsage {
        input,
        output: usage.output.filter(|tokens| *tokens <= MAX_OUTPUT.max(window)),
        cached_input: of_input(usage.cached_input),
        cache_write: of_input(usage.cache_write),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn usage(input: u64, output: u64, cached: u64, written: u64) -> TokenUsage {
        TokenUsage {
            input: Some(input),
            output: Some(output),
            cached_input: Some(cached),
            cache_write: Some(written),
        }
    }

    #[test]
    fn r091_an_implausible_count_is_unknown() {
        let fine = usage(150_000, 300_000, 100_000, 50_000);
        assert_eq!(plausible_usage(fine, 1_000, 200_000), fine);
        assert_eq!(
            plausible_usage(usage(65_537 + 999, 1, 0, 0), 1_000, 32_768).input,
            Some(66_536)
        );
        let table = [
            (usage(u64::MAX, 7, 3, 3), TokenUsage { output: Some(7), ..TokenUsage::default() }),
            (usage(200_001, 7, 3, 3), TokenUsage { output: Some(7), ..TokenUsage::default() }),
            (usage(10, 2_000_000_000, 3, 4), TokenUsage { output: None, ..usage(10, 0, 3, 4) }),
            (usage(10, 7, 11, 4), TokenUsage { cached_input: None, ..usage(10, 7, 0, 4) }),
            (usage(10, 7, 10, u64::MAX), TokenUsage { cache_write: None, ..usage(10, 7, 10, 0) }),
        ];
        for (reported, expected) in table {
            assert_eq!(plausible_usage(reported, 1_000, 200_000), expected, "{reported:?}");
        }
        let unknown = TokenUsage { cached_input: Some(5), ..TokenUsage::default() };
        assert_eq!(
            plausible_usage(unknown, 1_000, 200_000),
            TokenUsage::default(),
            "a part of nobody knows what"
        );
    }
}
