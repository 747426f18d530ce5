//! Estimates of the number of tokens, before a provider has counted them.
//!
//! A token is taken as four bytes, which is close for English and code. [`EstimateScale`] corrects
//! the estimate by the provider's last count.

use super::{AnsweredCall, ModelReasoning, ResultContent, ToolResult, TurnContentBlock};

/// The tokens of a message in addition to its text.
const MESSAGE_OVERHEAD: u64 = 8;

/// The approximate tokens of an image, at the sizes that tools produce.
const IMAGE_TOKENS: u64 = 1_500;

/// Returns the estimated tokens of a text.
pub fn text(text: &str) -> u64 {
    u64::try_from(text.len()).unwrap_or(u64::MAX).div_ceil(4)
}

/// Returns the estimated tokens of a user message.
pub fn prompt(prompt: &str) -> u64 {
    MESSAGE_OVERHEAD + text(prompt)
}

/// Returns the estimated tokens of a turn with its results.
pub(super) fn blocks(blocks: &[TurnContentBlock]) -> u64 {
    MESSAGE_OVERHEAD + blocks.iter().map(block).sum::<u64>()
}

/// Returns the estimated tokens of two messages that are merged into one.
pub(super) fn merged(first: u64, second: u64) -> u64 {
    (first + second).saturating_sub(MESSAGE_OVERHEAD)
}

fn block(block: &TurnContentBlock) -> u64 {
    match block {
        TurnContentBlock::Text(content)
        | TurnContentBlock::Reasoning(ModelReasoning::Opaque { data: content }) => text(content),
        TurnContentBlock::Reasoning(ModelReasoning::Sealed { summary, data, .. }) => {
            text(data) + summary.iter().map(|part| text(part)).sum::<u64>()
        }
        TurnContentBlock::Reasoning(ModelReasoning::Text { text: thought, signature }) => {
            text(thought) + signature.as_deref().map_or(0, text)
        }
        TurnContentBlock::Call(AnsweredCall { call, result: call_result }) => {
            2 * MESSAGE_OVERHEAD + text(&call.name) + text(&call.arguments) + result(call_result)
        }
    }
}

/// Returns the estimated tokens of the content of a result.
pub(super) fn result(result: &ToolResult) -> u64 {
    result.content.iter().map(content).sum()
}

fn content(content: &ResultContent) -> u64 {
    match content {
        ResultContent::Text(content) => text(content),
        ResultContent::Image { .. } => IMAGE_TOKENS,
    }
}

/// The ratio of the provider's count to the estimate.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct EstimateScale(f64);

impl Default for EstimateScale {
    fn default() -> Self {
        Self(1.0)
    }
}

impl EstimateScale {
    /// Sets the ratio from the estimate of one request and the provider's count.
    ///
    /// The ratio is clamped to 0.25..=4, so that one wrong figure does limited harm.
    pub fn calibrate(&mut self, estimated: u64, counted: u64) {
        if estimated > 0 && counted > 0 {
            #[expect(clippy::cast_precision_loss, reason = "an estimate of an estimate")]
            let ratio = counted as f64 / estimated as f64;
            self.0 = ratio.clamp(0.25, 4.0);
        }
    }

    /// Returns the corrected value of an estimate.
    pub fn apply(self, estimated: u64) -> u64 {
        multiply(estimated, self.0)
    }

    /// Returns the estimate whose corrected value is `corrected`.
    pub fn invert(self, corrected: u64) -> u64 {
        multiply(corrected, self.0.recip())
    }
}

fn multiply(tokens: u64, factor: f64) -> u64 {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_precision_loss,
        clippy::cast_sign_loss,
        reason = "positive, and saturating is right for an estimate"
    )]
    let scaled = (tokens as f64 * factor).round() as u64;
    scaled
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_four_bytes_until_the_provider_counts() {
        assert_eq!(text(""), 0);
        assert_eq!(text("abcde"), 2);
        assert_eq!(prompt(&"x".repeat(400)), 108);
        let mut scale = EstimateScale::default();
        assert_eq!(scale.apply(100), 100);
        scale.calibrate(100, 150);
        assert_eq!((scale.apply(200), scale.invert(300)), (300, 200));
        scale.calibrate(0, 7);
        assert_eq!(scale.apply(200), 300);
        scale.calibrate(1, 1_000_000);
        assert_eq!(scale.apply(200), 800, "the correction is at most a factor of four");
    }
}
