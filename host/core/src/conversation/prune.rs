//! Pruning: leaving old results out of what is sent (R-65…R-67).
//!
//! Results are left out up to a position, which only ever moves forward, and far at a time. After
//! each move the provider must process everything behind the first new placeholder again, so the
//! move has to save enough.

use super::sent::{is_prunable, prune_gain};
use super::{Transcript, TurnIndex, estimate};

/// The number of newest exchanges whose results are always sent.
const KEPT_EXCHANGES: usize = 2;

/// The limits on a move, in estimated tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PruneLimits {
    /// The size of the newest part, which is left unchanged.
    pub protected_tokens: u64,
    /// The minimum number of tokens that a move has to save.
    pub min_gain: u64,
}

/// The results that were left out by one move.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PrunedOutput {
    /// The number of results that were left out.
    pub results: usize,
    /// The size of the results less that of their placeholders, in estimated tokens.
    pub tokens: u64,
}

impl Transcript {
    /// Leaves old results out of what is sent, if that saves enough.
    ///
    /// The transcript itself still contains them. Returns `None` if nothing was changed.
    pub fn prune(&mut self, pruning: PruneLimits) -> Option<PrunedOutput> {
        let end = self.protected_start(pruning.protected_tokens);
        let (from, begin) = (self.pruned_until(), self.sent_start());
        let mut pruned = PrunedOutput { results: 0, tokens: 0 };
        for (exchange, user_exchange) in self
            .exchanges()
            .iter()
            .enumerate()
            .take(end.exchange + 1)
            .skip(from.max(begin).exchange)
        {
            for (turn, assistant_turn) in user_exchange.turns().iter().enumerate() {
                let here = TurnIndex { exchange, turn };
                if here < from || here < begin || here >= end {
                    continue;
                }
                for answered in assistant_turn.calls().filter(|answered| is_prunable(answered)) {
                    pruned.results += 1;
                    pruned.tokens += prune_gain(answered);
                }
            }
        }
        if pruned.tokens < pruning.min_gain.max(1) {
            return None;
        }
        self.prune_until(end, pruned.tokens);
        Some(pruned)
    }

    /// Returns the start of the newest part, whose results are left unchanged.
    fn protected_start(&self, protected: u64) -> TurnIndex {
        let newest = self.exchanges().len().saturating_sub(KEPT_EXCHANGES);
        let mut seen: u64 =
            self.exchanges()[newest..].iter().map(|exchange| exchange.tokens()).sum();
        for (exchange, user_exchange) in self.exchanges()[..newest].iter().enumerate().rev() {
            for (turn, assistant_turn) in user_exchange.turns().iter().enumerate().rev() {
                seen = seen.saturating_add(assistant_turn.tokens());
                if seen > protected {
                    return TurnIndex { exchange, turn: turn + 1 };
                }
            }
            seen = seen.saturating_add(estimate::prompt(user_exchange.prompt()));
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

    fn long_transcript() -> Transcript {
        transcript_of(&[
            ("one", vec![tool_turn(8_000), rejected_turn(8_000), tool_turn(40), text_turn("done")]),
            ("two", vec![tool_turn(8_000), text_turn("done")]),
            ("three", vec![tool_turn(8_000), text_turn("done")]),
            ("four", vec![tool_turn(8_000)]),
        ])
    }

    #[test]
    fn r065_old_results_become_placeholders_in_the_sent_copy_only() {
        let mut transcript = long_transcript();
        let before = transcript.sent_tokens();
        let pruned = transcript.prune(SMALL).expect("worth pruning");
        let left_out = &PRUNED_PLACEHOLDER[..8];
        assert_eq!(
            sent_results(&transcript),
            [left_out, "no: xxxx", "xxxxxxxx", left_out, "xxxxxxxx", "xxxxxxxx"]
        );
        assert_eq!(transcript.exchanges(), long_transcript().exchanges());
        assert_eq!(validate(&transcript), Ok(()));
        assert_eq!((pruned.results, before - transcript.sent_tokens()), (2, pruned.tokens));
    }

    #[test]
    fn r067_a_pruned_result_counts_as_its_placeholder() {
        let mut pruned = long_transcript();
        pruned.prune(SMALL).expect("worth pruning");
        // The same conversation, with tools that returned only the placeholder.
        let short = || tool_turn_with(PRUNED_PLACEHOLDER);
        let with_placeholders = transcript_of(&[
            ("one", vec![short(), rejected_turn(8_000), tool_turn(40), text_turn("done")]),
            ("two", vec![short(), text_turn("done")]),
            ("three", vec![tool_turn(8_000), text_turn("done")]),
            ("four", vec![tool_turn(8_000)]),
        ]);
        assert_eq!(pruned.sent_tokens(), with_placeholders.sent_tokens());
        // This holds as the conversation grows, after a recount, and in a resumed session.
        let reloaded: Transcript =
            serde_json::from_value(serde_json::to_value(&pruned).expect("valid JSON"))
                .expect("a transcript");
        assert!(
            reloaded.sent_tokens() > pruned.sent_tokens(),
            "a loaded transcript is unpruned until it is pruned again"
        );
        let mut again = reloaded;
        again.prune(SMALL).expect("worth pruning");
        assert_eq!(again.sent_tokens(), with_placeholders.sent_tokens());
        let (mut grown, mut expected) = (pruned, with_placeholders);
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
        let mut protected = long_transcript();
        assert_eq!(
            protected
                .prune(PruneLimits { protected_tokens: 6_140, ..SMALL })
                .map(|pruned| pruned.results),
            Some(1)
        );
        assert_eq!(
            protected.pruned_until(),
            TurnIndex { exchange: 0, turn: 3 },
            "the protected window reaches into the first exchange"
        );
        let limits = PruneLimits { protected_tokens: 20_000, ..SMALL };
        assert_eq!(long_transcript().prune(limits), None);
    }

    #[test]
    fn r066_small_gains_and_repeated_pruning_are_skipped() {
        assert_eq!(long_transcript().prune(PruneLimits { min_gain: 5_000, ..SMALL }), None);
        let mut transcript = long_transcript();
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
    fn a_move_that_saves_exactly_the_minimum_is_made() {
        let gain = long_transcript().prune(SMALL).expect("worth pruning").tokens;
        for (min_gain, expected) in [(gain, Some(gain)), (gain + 1, None)] {
            let pruned = long_transcript().prune(PruneLimits { min_gain, ..SMALL });
            assert_eq!(pruned.map(|pruned| pruned.tokens), expected, "a minimum of {min_gain}");
        }
    }

    #[test]
    fn r065_summarised_turns_are_not_pruned() {
        let mut transcript = long_transcript();
        let until = TurnIndex { exchange: 1, turn: 0 };
        assert!(transcript.apply_summary(transcript.summary_until(until, "It was so.".into())));
        assert_eq!(transcript.prune(SMALL).map(|pruned| pruned.results), Some(1));
        let tokens: u64 = transcript.exchanges()[1..].iter().map(UserExchange::tokens).sum();
        let placeholders = 2_000 - estimate::text(PRUNED_PLACEHOLDER);
        assert_eq!(
            transcript.sent_tokens(),
            estimate::prompt("It was so.") + tokens - placeholders
        );
    }

    #[test]
    fn r066_pruning_continues_where_it_ended_and_a_window_can_be_used_up() {
        let one = vec![tool_turn(8_000), tool_turn(8_000), tool_turn(8_000)];
        let transcript = || {
            let done = || vec![text_turn("done")];
            transcript_of(&[("one", one.clone()), ("two", done()), ("three", done())])
        };
        let newest: u64 = transcript().exchanges()[1..].iter().map(UserExchange::tokens).sum();
        let window = newest + one[2].tokens();
        for (protected_tokens, results) in [(window, 2), (window - 1, 3)] {
            let limits = PruneLimits { protected_tokens, ..SMALL };
            assert_eq!(transcript().prune(limits).map(|pruned| pruned.results), Some(results));
        }
        let mut later = transcript();
        assert!(later.prune(PruneLimits { protected_tokens: window, ..SMALL }).is_some());
        let all = PruneLimits { protected_tokens: 0, ..SMALL };
        assert_eq!(later.prune(all).map(|pruned| pruned.results), Some(1));
    }

    #[test]
    fn r067_a_summary_of_a_pruned_conversation_counts_the_placeholders() {
        let mut transcript = long_transcript();
        transcript.prune(SMALL).expect("worth pruning");
        let until = TurnIndex { exchange: 1, turn: 0 };
        assert!(transcript.apply_summary(transcript.summary_until(until, "It was so.".into())));
        let tokens: u64 = transcript.exchanges()[1..].iter().map(UserExchange::tokens).sum();
        let placeholders = 2_000 - estimate::text(PRUNED_PLACEHOLDER);
        assert_eq!(
            transcript.sent_tokens(),
            estimate::prompt("It was so.") + tokens - placeholders
        );
    }
}
