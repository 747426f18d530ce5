//! The rules that the types alone cannot enforce, checked before every model request.

use std::collections::HashSet;

use super::{AssistantTurn, ResultContent, Transcript, TurnContentBlock, TurnIndex};

/// A rule that a transcript breaks, and the position of the violation.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("exchange {exchange}, turn {turn}: {rule}")]
#[non_exhaustive]
pub struct TranscriptViolation {
    /// The number of the exchange, from 1.
    pub exchange: usize,
    /// The number of the turn within the exchange, from 1; 0 means the prompt.
    pub turn: usize,
    /// A description of what is wrong.
    pub rule: &'static str,
}

/// Checks a whole transcript, which may come from an external file.
///
/// # Errors
/// The transcript breaks a rule; the first violation is returned.
pub fn validate(transcript: &Transcript) -> Result<(), TranscriptViolation> {
    validate_from(transcript, TurnIndex::default())?;
    let mut ids = HashSet::new();
    for (e, exchange) in transcript.exchanges().iter().enumerate() {
        for (t, turn) in exchange.turns().iter().enumerate() {
            if !turn.calls().all(|answered| ids.insert(answered.call.id.as_str())) {
                return Err(TranscriptViolation {
                    exchange: e + 1,
                    turn: t + 1,
                    rule: "a call has the id of an earlier one",
                });
            }
        }
    }
    Ok(())
}

/// Checks the turns of a transcript from a position on.
///
/// Call IDs are compared only within a turn. [`Transcript::record`] makes them distinct in the
/// whole conversation.
pub(super) fn validate_from(
    transcript: &Transcript,
    begin: TurnIndex,
) -> Result<(), TranscriptViolation> {
    for (e, exchange) in transcript.exchanges().iter().enumerate().skip(begin.exchange) {
        let at = |turn: usize, rule| TranscriptViolation { exchange: e + 1, turn, rule };
        if exchange.prompt().trim().is_empty() {
            return Err(at(0, "the prompt is blank"));
        }
        let last = exchange.turns().len();
        let skipped = if e == begin.exchange { begin.turn } else { 0 };
        for (t, turn) in exchange.turns().iter().enumerate().skip(skipped) {
            check_turn(turn).map_err(|rule| at(t + 1, rule))?;
            if t + 1 < last && !turn.has_calls() {
                return Err(at(t + 1, "a turn without calls is followed by another turn"));
            }
        }
    }
    match transcript.summary() {
        Some(summary) if summary.text.trim().is_empty() => {
            Err(TranscriptViolation { exchange: 1, turn: 0, rule: "the summary is blank" })
        }
        Some(summary) if !transcript.has_index(summary.until) => Err(TranscriptViolation {
            exchange: summary.until.exchange + 1,
            turn: summary.until.turn,
            rule: "the summary ends at a turn that does not exist",
        }),
        Some(_) | None => Ok(()),
    }
}

fn check_turn(turn: &AssistantTurn) -> Result<(), &'static str> {
    let mut ids = HashSet::new();
    let mut has_content = false;
    for block in turn.blocks() {
        match block {
            TurnContentBlock::Text(text) if text.trim().is_empty() => {
                return Err("a text block is blank");
            }
            TurnContentBlock::Text(_) => has_content = true,
            TurnContentBlock::Reasoning(_) => {}
            TurnContentBlock::Call(answered) => {
                has_content = true;
                if answered.call.id.as_str().is_empty() {
                    return Err("a call has no id");
                }
                if !ids.insert(answered.call.id.as_str()) {
                    return Err("two calls share an id");
                }
                let has_untyped_image = answered.result.content.iter().any(|content| {
                    matches!(
                        content,
                        ResultContent::Image { media_type, .. } if media_type.is_empty()
                    )
                });
                if has_untyped_image {
                    return Err("an image has no media type");
                }
            }
        }
    }
    if has_content { Ok(()) } else { Err("a turn has neither text nor a call") }
}
