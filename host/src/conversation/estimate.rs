//! How many tokens something will be, before anyone has counted.
//!
//! A token is taken as four bytes, which is near the truth for English and code. [`Scale`] corrects that by what the
//! provider counted last.

use super::{AnsweredCall, Block, Content, Reasoning, ToolResult};

/// What a message costs beside its text.
const PER_MESSAGE: u64 = 8;

/// What a picture costs, roughly, at the sizes that tools produce.
const PER_PICTURE: u64 = 1_500;

/// The tokens of a text.
pub fn text(text: &str) -> u64 {
    u64::try_from(text.len()).unwrap_or(u64::MAX).div_ceil(4)
}

/// The tokens of what the user said.
pub fn prompt(prompt: &str) -> u64 {
    PER_MESSAGE + text(prompt)
}

/// The tokens of a turn with its results.
pub(super) fn blocks(blocks: &[Block]) -> u64 {
    PER_MESSAGE + blocks.iter().map(block).sum::<u64>()
}

/// Two messages that become one.
pub(super) fn joined(first: u64, second: u64) -> u64 {
    (first + second).saturating_sub(PER_MESSAGE)
}

fn block(block: &Block) -> u64 {
    match block {
        Block::Text(said) | Block::Reasoning(Reasoning::Opaque { data: said }) => text(said),
        Block::Reasoning(Reasoning::Sealed { summary, data, .. }) => text(data) + summary.iter().map(|part| text(part)).sum::<u64>(),
        Block::Reasoning(Reasoning::Text { text: thought, signature }) => text(thought) + signature.as_deref().map_or(0, text),
        Block::Call(AnsweredCall { call, result: answer }) => 2 * PER_MESSAGE + text(&call.name) + text(&call.arguments) + result(answer),
    }
}

/// The tokens of what a result holds.
pub(super) fn result(result: &ToolResult) -> u64 {
    result.content.iter().map(content).sum()
}

fn content(content: &Content) -> u64 {
    match content {
        Content::Text(said) => text(said),
        Content::Image { .. } => PER_PICTURE,
    }
}

/// How estimates compare with what was counted.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Scale(f64);

impl Default for Scale {
    fn default() -> Self {
        Self(1.0)
    }
}

impl Scale {
    /// Learns from one request: what was estimated for it and what the provider counted. Neither may mislead by more
    /// than a factor of four.
    pub fn learn(&mut self, estimated: u64, counted: u64) {
        if estimated > 0 && counted > 0 {
            #[expect(clippy::cast_precision_loss, reason = "an estimate of an estimate")]
            let ratio = counted as f64 / estimated as f64;
            self.0 = ratio.clamp(0.25, 4.0);
        }
    }

    /// An estimate, corrected.
    pub fn apply(self, estimated: u64) -> u64 {
        times(estimated, self.0)
    }

    /// The estimate that comes to this when it is corrected.
    pub fn undo(self, corrected: u64) -> u64 {
        times(corrected, self.0.recip())
    }
}

fn times(tokens: u64, factor: f64) -> u64 {
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
    fn a_token_is_four_bytes_until_someone_counts() {
        assert_eq!(text(""), 0);
        assert_eq!(text("abcde"), 2);
        assert_eq!(prompt(&"x".repeat(400)), 108);
        let mut scale = Scale::default();
        assert_eq!(scale.apply(100), 100);
        scale.learn(100, 150);
        assert_eq!((scale.apply(200), scale.undo(300)), (300, 200));
        scale.learn(0, 7);
        assert_eq!(scale.apply(200), 300);
        scale.learn(1, 1_000_000);
        assert_eq!(scale.apply(200), 800, "nobody miscounts by more than four times");
    }
}
