//! The price of responses.
//!
//! List prices in US dollars for standard processing, as of November 2026, from
//! <https://platform.claude.com/docs/en/about-claude/pricing> and
//! <https://developers.openai.com/api/docs/pricing>. Only exact names and their dated snapshots
//! match. A price that is not in the table is unknown and is never guessed.

use crate::conversation::TokenUsage;

/// The prices of a model in US dollars per million tokens.
#[derive(Clone, Copy)]
struct ModelTokenPrice {
    input: f64,
    cached: f64,
    cache_write: f64,
    output: f64,
    /// The most input tokens that this price applies to. Above it, the price is unknown.
    max_input: u64,
}

const UNLIMITED: u64 = u64::MAX;

const fn price(
    input: f64,
    cached: f64,
    cache_write: f64,
    output: f64,
    up_to: u64,
) -> ModelTokenPrice {
    ModelTokenPrice { input, cached, cache_write, output, max_input: up_to }
}

const PRICES: [(&str, ModelTokenPrice); 26] = [
    ("claude-fable-5-1", price(10.0, 0.25, 12.5, 50.0, UNLIMITED)),
    ("claude-fable-5", price(10.0, 1.0, 12.5, 50.0, UNLIMITED)),
    ("claude-opus-5-5", price(4.0, 0.2, 5.0, 20.0, UNLIMITED)),
    ("claude-opus-5", price(5.0, 0.5, 6.25, 25.0, UNLIMITED)),
    ("claude-opus-4-8", price(5.0, 0.5, 6.25, 25.0, UNLIMITED)),
    ("claude-opus-4-7", price(5.0, 0.5, 6.25, 25.0, UNLIMITED)),
    ("claude-opus-4-6", price(5.0, 0.5, 6.25, 25.0, UNLIMITED)),
    ("claude-opus-4-5", price(5.0, 0.5, 6.25, 25.0, UNLIMITED)),
    ("claude-opus-4-1", price(15.0, 1.5, 18.75, 75.0, UNLIMITED)),
    ("claude-sonnet-5-5", price(2.0, 0.1, 2.5, 10.0, UNLIMITED)),
    ("claude-sonnet-5", price(2.0, 0.2, 2.5, 10.0, UNLIMITED)),
    ("claude-sonnet-4-6", price(3.0, 0.3, 3.75, 15.0, UNLIMITED)),
    ("claude-sonnet-4-5", price(3.0, 0.3, 3.75, 15.0, 200_000)),
    ("claude-haiku-5-5", price(0.1, 0.01, 0.125, 0.5, 100_000)),
    ("claude-haiku-4-5", price(1.0, 0.1, 1.25, 5.0, UNLIMITED)),
    ("gpt-6-sol", price(2.0, 0.2, 2.5, 10.0, 272_000)),
    ("gpt-5", price(1.25, 0.125, 1.25, 10.0, UNLIMITED)),
    ("gpt-5-mini", price(0.25, 0.025, 0.25, 2.0, UNLIMITED)),
    ("gpt-5-nano", price(0.05, 0.005, 0.05, 0.4, UNLIMITED)),
    ("gpt-4.1", price(2.0, 0.5, 2.0, 8.0, UNLIMITED)),
    ("gpt-4.1-mini", price(0.4, 0.1, 0.4, 1.6, UNLIMITED)),
    ("gpt-4.1-nano", price(0.1, 0.025, 0.1, 0.4, UNLIMITED)),
    ("gpt-4o", price(2.5, 1.25, 2.5, 10.0, UNLIMITED)),
    ("gpt-4o-mini", price(0.15, 0.075, 0.15, 0.6, UNLIMITED)),
    ("o3", price(2.0, 0.5, 2.0, 8.0, UNLIMITED)),
    ("o4-mini", price(1.1, 0.275, 1.1, 4.4, UNLIMITED)),
];

/// Returns the price of a response in US dollars.
///
/// Returns `None` if the price or one of the two token counts is unknown. Input counts at the full
/// price if its cached part is unknown.
pub fn cost(usage: TokenUsage, model: &str) -> Option<f64> {
    let price =
        PRICES.iter().find(|(name, _)| is_model_version(model, name)).map(|(_, price)| price)?;
    let (input, output) = (usage.input?, usage.output?);
    if input > price.max_input {
        return None;
    }
    let cached = usage.cached_input.unwrap_or(0).min(input);
    let written = usage.cache_write.unwrap_or(0).min(input - cached);
    let plain = input - cached - written;
    #[expect(clippy::cast_precision_loss, reason = "no response has 2^53 tokens")]
    let dollars = |tokens: u64, per_million: f64| tokens as f64 * per_million / 1e6;
    Some(
        dollars(plain, price.input)
            + dollars(cached, price.cached)
            + dollars(written, price.cache_write)
            + dollars(output, price.output),
    )
}

/// Returns whether a model is `name` itself or a dated snapshot of it.
fn is_model_version(model: &str, name: &str) -> bool {
    let Some(rest) = model.strip_prefix(name) else { return false };
    let date = rest.strip_prefix(['-', '@']).unwrap_or_default();
    rest.is_empty() || (date.len() >= 8 && date.chars().all(|c| c.is_ascii_digit() || c == '-'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn usage(input: u64, output: u64, cached: Option<u64>, written: Option<u64>) -> TokenUsage {
        TokenUsage {
            input: Some(input),
            output: Some(output),
            cached_input: cached,
            cache_write: written,
        }
    }

    fn assert_cost(usage: TokenUsage, model: &str, expected: f64) {
        let cost = cost(usage, model).expect("the price is known");
        assert!((cost - expected).abs() < 1e-9, "{cost} instead of {expected}");
    }

    #[test]
    fn r097_cached_input_is_priced_apart() {
        assert_cost(usage(1_000_000, 1_000_000, None, None), "claude-opus-5-5", 24.0);
        assert_cost(
            usage(1_000_000, 0, Some(400_000), Some(100_000)),
            "claude-haiku-4-5",
            0.5 + 0.04 + 0.125,
        );
        assert_cost(
            usage(2_000, 1_000, Some(1_000), None),
            "gpt-4.1-mini-2025-04-14",
            (0.4 + 0.1 + 1.6) / 1_000.0,
        );
    }

    #[test]
    fn r097_an_unknown_price_is_unknown() {
        let some = usage(10, 10, None, None);
        assert_eq!(cost(some, "llama3"), None);
        assert_eq!(cost(some, "gpt-4o-audio-preview"), None);
        assert_eq!(cost(some, "claude-fable-5-2"), None);
        assert_eq!(cost(usage(300_000, 10, None, None), "gpt-6-sol"), None);
        assert_eq!(cost(TokenUsage { output: Some(1), ..TokenUsage::default() }, "gpt-4o"), None);
        assert!(cost(some, "claude-haiku-4-5-20251001").is_some());
    }
}
