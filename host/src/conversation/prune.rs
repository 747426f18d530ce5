//! Which old results are no longer worth their room (R-65…R-67).
//!
//! Results are left out up to a place, and that place only ever moves forward, by much at a time:
//! each move makes the provider read everything after the first new placeholder anew, so it has to
//! pay.

use super::sent::{is_prunable, prune_gain};
use super::{Transcript, TurnIndex, estimate};

/// The newest exchanges whose results are never left out.
const KEPT_EXCHANGES: usize = 2;

/// What a move has to respect, in estimated tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PruneLimits {
    /// Of the newest, so many are left as they are.
    pub protected_tokens: u64,
    /// Less is not worth it.
    pub min_gain: u64,
}

/// What was left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PrunedOutput {
    /// How many results.
    pub results: usize,
    /// What they were, less their placeholders, in estimated tokens.
    pub tokens: u64,
}

impl Transcript {
    /// Leaves results out of what is sent, if that pays. The transcript keeps them.
    pub fn prune(&mut self, pruning: PruneLimits) -> Option<PrunedOutput> {
        let place = self.protected_start(pruning.protected_tokens);
        let (from, begin) = (self.pruned_until(), self.sent_start());
        let mut pruned = PrunedOutput { results: 0, tokens: 0 };
        for (exchange, said) in self
            .exchanges()
            .iter()
            .enumerate()
            .take(place.exchange + 1)
            .skip(from.max(begin).exchange)
        {
            for (turn, said) in said.turns().iter().enumerate() {
                let here = TurnIndex { exchange, turn };
                if here < from || here < begin || here >= place {
                    continue;
                }
                for answered in said.calls().filter(|answered| is_prunable(answered)) {
                    pruned.results += 1;
                    pruned.tokens += prune_gain(answered);
                }
            }
        }
        if pruned.tokens < pruning.min_gain.max(1) {
            return None;
        }
        self.prune_until(place, pruned.tokens);
        Some(pruned)
    }

    /// Where the newest part begins that is left as it is.
    fn protected_start(&self, protected: u64) -> TurnIndex {
        let newest = self.exchanges().len().saturating_sub(KEPT_EXCHANGES);
        let mut seen: u64 =
            self.exchanges()[newest..].iter().map(|exchange| exchange.tokens()).sum();
        for (exchange, said) in self.exchanges()[..newest].iter().enumerate().rev() {
            for (turn, answer) in said.turns().iter().enumerate().rev() {
                seen = seen.saturating_add(answer.tokens());
                if seen > protected {
                    return TurnIndex { exchange, turn: turn + 1 };
                }
            }
            seen = seen.saturating_add(estimate::prompt(said.prompt()));
        }
        TurnIndex::default()
    }
}

#[cfg(test)]
mod tests {
    use super::super::test_util::{
        rejected_turn, text_turn, tool_turn, tool_turn_with, transcript_of,
    };
    use super::super::{PRUNED_PLACEHOLDER, UserExchange, validate};
    use super::*;

    const SMALL: PruneLimits = PruneLimits { protected_tokens: 2_000, min_gain: 500 };

    fn sent_results(transcript: &Transcript) -> Vec<String> {
        let turns = transcript.sent().exchanges().flat_map(|(_, turns)| turns);
        turns
            .flat_map(|turn| {
                turn.results()
                    .map(|(_, result)| result.text().chars().take(8).collect())
                    .collect::<Vec<_>>()
            })
            .collect()
    }

    fn eventful() -> Transcript {
        transcript_of(&[
            ("one", vec![tool_turn(8_000), rejected_turn(8_000), tool_turn(40), text_turn("done")]),
            ("two", vec![tool_turn(8_000), text_turn("done")]),
            ("three", vec![tool_turn(8_000), text_turn("done")]),
            ("four", vec![tool_turn(8_000)]),
        ])
    }

    #[test]
    fn r065_old_results_become_placeholders_in_the_sent_copy_only() {
        let mut transcript = eventful();
        let before = transcript.sent_tokens();
        let pruned = transcript.prune(SMALL).expect("it pays");
        let left_out = &PRUNED_PLACEHOLDER[..8];
        assert_eq!(
            sent_results(&transcript),
            [left_out, "no: xxxx", "xxxxxxxx", left_out, "xxxxxxxx", "xxxxxxxx"]
        );
        assert_eq!(transcript.exchanges(), eventful().exchanges());
        assert_eq!(validate(&transcript), Ok(()));
        assert_eq!((pruned.results, before - transcript.sent_tokens()), (2, pruned.tokens));
    }

    #[test]
    fn r067_what_was_left_out_counts_as_its_placeholder() {
        let mut pruned = eventful();
        pruned.prune(SMALL).expect("it pays");
        // The same conversation, in which the tools said no more than that.
        let short = || tool_turn_with(PRUNED_PLACEHOLDER);
        let said_so = transcript_of(&[
            ("one", vec![short(), rejected_turn(8_000), tool_turn(40), text_turn("done")]),
            ("two", vec![short(), text_turn("done")]),
            ("three", vec![tool_turn(8_000), text_turn("done")]),
            ("four", vec![tool_turn(8_000)]),
        ]);
        assert_eq!(pruned.sent_tokens(), said_so.sent_tokens());
        // It stays so while the conversation grows, when it is counted anew, and in a session that
        // goes on.
        let counted_anew: Transcript =
            serde_json::from_value(serde_json::to_value(&pruned).expect("data"))
                .expect("a transcript");
        assert!(
            counted_anew.sent_tokens() > pruned.sent_tokens(),
            "what is sent anew is whole again, until it is pruned again"
        );
        let mut again = counted_anew;
        again.prune(SMALL).expect("it pays");
        assert_eq!(again.sent_tokens(), said_so.sent_tokens());
        let (mut grown, mut expected) = (pruned, said_so);
        for transcript in [&mut grown, &mut expected] {
            transcript.record(tool_turn(400));
            transcript.record(text_turn("well"));
            transcript.begin_exchange("five");
        }
        assert_eq!(grown.sent_tokens(), expected.sent_tokens());
    }

    #[test]
    fn r066_the_newest_two_exchanges_and_the_protected_window_stay() {
        let long = transcript_of(&[
            ("one", vec![tool_turn(80_000)]),
            ("two", vec![tool_turn(80_000), tool_turn(80_000)]),
        ]);
        assert_eq!(long.clone().prune(SMALL), None, "there is no older exchange");
        let mut protected = eventful();
        assert_eq!(
            protected
                .prune(PruneLimits { protected_tokens: 6_140, ..SMALL })
                .map(|pruned| pruned.results),
            Some(1)
        );
        assert_eq!(
            protected.pruned_until(),
            TurnIndex { exchange: 0, turn: 3 },
            "the window reaches into the first exchange"
        );
        assert_eq!(eventful().prune(PruneLimits { protected_tokens: 20_000, ..SMALL }), None);
    }

    #[test]
    fn r066_what_gains_little_is_not_done_and_nothing_is_pruned_twice() {
        assert_eq!(eventful().prune(PruneLimits { min_gain: 5_000, ..SMALL }), None);
        let mut transcript = eventful();
        assert!(transcript.prune(SMALL).is_some());
        assert_eq!(transcript.prune(SMALL), None);
        transcript.begin_exchange("five");
        assert_eq!(
            transcript.prune(SMALL).map(|pruned| pruned.results),
            Some(1),
            "the third is old now"
        );
    }

    #[test]
    fn r065_what_a_summary_stands_for_is_not_pruned_as_well() {
        let mut transcript = eventful();
        let place = TurnIndex { exchange: 1, turn: 0 };
        assert!(transcript.apply_summary(transcript.summary_until(place, "It was so.".into())));
        assert_eq!(transcript.prune(SMALL).map(|pruned| pruned.results), Some(1));
        let tokens: u64 = transcript.exchanges()[1..].iter().map(UserExchange::tokens).sum();
        let placeholders = 2_000 - estimate::text(PRUNED_PLACEHOLDER);
        assert_eq!(
            transcript.sent_tokens(),
            estimate::prompt("It was so.") + tokens - placeholders
        );
    }
}
