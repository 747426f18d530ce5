//! Which old results are no longer worth their room (R-65…R-67).
//!
//! Results are left out up to a place, and that place only ever moves forward, by much at a time: each move makes the
//! provider read everything after the first new placeholder anew, so it has to pay.

use super::sent::{can_be_pruned, gain};
use super::{Place, Transcript, estimate};

/// The newest exchanges whose results are never left out.
const EXCHANGES_KEPT: usize = 2;

/// What a move has to respect, in estimated tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pruning {
    /// Of the newest, so many are left as they are.
    pub protected: u64,
    /// Less is not worth it.
    pub least_gain: u64,
}

/// What was left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pruned {
    /// How many results.
    pub results: usize,
    /// What they were, less their placeholders, in estimated tokens.
    pub tokens: u64,
}

impl Transcript {
    /// Leaves results out of what is sent, if that pays. The transcript keeps them.
    pub fn prune(&mut self, pruning: Pruning) -> Option<Pruned> {
        let place = self.protected_from(pruning.protected);
        let (from, begin) = (self.pruned_until(), self.sent_from());
        let mut pruned = Pruned { results: 0, tokens: 0 };
        for (exchange, said) in self.exchanges().iter().enumerate().take(place.exchange + 1).skip(from.max(begin).exchange) {
            for (turn, said) in said.turns().iter().enumerate() {
                let here = Place { exchange, turn };
                if here < from || here < begin || here >= place {
                    continue;
                }
                for answered in said.calls().filter(|answered| can_be_pruned(answered)) {
                    pruned.results += 1;
                    pruned.tokens += gain(answered);
                }
            }
        }
        if pruned.tokens < pruning.least_gain.max(1) {
            return None;
        }
        self.prune_until(place, pruned.tokens);
        Some(pruned)
    }

    /// Where the newest part begins that is left as it is.
    fn protected_from(&self, protected: u64) -> Place {
        let newest = self.exchanges().len().saturating_sub(EXCHANGES_KEPT);
        let mut seen: u64 = self.exchanges()[newest..].iter().map(|exchange| exchange.tokens()).sum();
        for (exchange, said) in self.exchanges()[..newest].iter().enumerate().rev() {
            for (turn, answer) in said.turns().iter().enumerate().rev() {
                seen = seen.saturating_add(answer.tokens());
                if seen > protected {
                    return Place { exchange, turn: turn + 1 };
                }
            }
            seen = seen.saturating_add(estimate::prompt(said.prompt()));
        }
        Place::default()
    }
}

#[cfg(test)]
mod tests {
    use super::super::test_kit::{answered_with, conversation, rejected, said, worked};
    use super::super::{Exchange, PLACEHOLDER, validate};
    use super::*;

    const SMALL: Pruning = Pruning { protected: 2_000, least_gain: 500 };

    fn sent_results(transcript: &Transcript) -> Vec<String> {
        let turns = transcript.sent().exchanges().flat_map(|(_, turns)| turns);
        turns.flat_map(|turn| turn.results().map(|(_, result)| result.text().chars().take(8).collect()).collect::<Vec<_>>()).collect()
    }

    fn eventful() -> Transcript {
        conversation(&[
            ("one", vec![worked(8_000), rejected(8_000), worked(40), said("done")]),
            ("two", vec![worked(8_000), said("done")]),
            ("three", vec![worked(8_000), said("done")]),
            ("four", vec![worked(8_000)]),
        ])
    }

    #[test]
    fn r065_old_results_become_placeholders_in_the_sent_copy_only() {
        let mut transcript = eventful();
        let before = transcript.sent_tokens();
        let pruned = transcript.prune(SMALL).expect("it pays");
        let left_out = &PLACEHOLDER[..8];
        assert_eq!(sent_results(&transcript), [left_out, "no: xxxx", "xxxxxxxx", left_out, "xxxxxxxx", "xxxxxxxx"]);
        assert_eq!(transcript.exchanges(), eventful().exchanges());
        assert_eq!(validate(&transcript), Ok(()));
        assert_eq!((pruned.results, before - transcript.sent_tokens()), (2, pruned.tokens));
    }

    #[test]
    fn r067_what_was_left_out_counts_as_its_placeholder() {
        let mut pruned = eventful();
        pruned.prune(SMALL).expect("it pays");
        // The same conversation, in which the tools said no more than that.
        let short = || answered_with(PLACEHOLDER);
        let said_so = conversation(&[
            ("one", vec![short(), rejected(8_000), worked(40), said("done")]),
            ("two", vec![short(), said("done")]),
            ("three", vec![worked(8_000), said("done")]),
            ("four", vec![worked(8_000)]),
        ]);
        assert_eq!(pruned.sent_tokens(), said_so.sent_tokens());
        // It stays so while the conversation grows, when it is counted anew, and in a session that goes on.
        let counted_anew: Transcript = serde_json::from_value(serde_json::to_value(&pruned).expect("data")).expect("a transcript");
        assert!(counted_anew.sent_tokens() > pruned.sent_tokens(), "what is sent anew is whole again, until it is pruned again");
        let mut again = counted_anew;
        again.prune(SMALL).expect("it pays");
        assert_eq!(again.sent_tokens(), said_so.sent_tokens());
        let (mut grown, mut expected) = (pruned, said_so);
        for transcript in [&mut grown, &mut expected] {
            transcript.record(worked(400));
            transcript.record(said("well"));
            transcript.begin("five");
        }
        assert_eq!(grown.sent_tokens(), expected.sent_tokens());
    }

    #[test]
    fn r066_the_newest_two_exchanges_and_the_protected_window_stay() {
        let long = conversation(&[("one", vec![worked(80_000)]), ("two", vec![worked(80_000), worked(80_000)])]);
        assert_eq!(long.clone().prune(SMALL), None, "there is no older exchange");
        let mut protected = eventful();
        assert_eq!(protected.prune(Pruning { protected: 6_140, ..SMALL }).map(|pruned| pruned.results), Some(1));
        assert_eq!(protected.pruned_until(), Place { exchange: 0, turn: 3 }, "the window reaches into the first exchange");
        assert_eq!(eventful().prune(Pruning { protected: 20_000, ..SMALL }), None);
    }

    #[test]
    fn r066_what_gains_little_is_not_done_and_nothing_is_pruned_twice() {
        assert_eq!(eventful().prune(Pruning { least_gain: 5_000, ..SMALL }), None);
        let mut transcript = eventful();
        assert!(transcript.prune(SMALL).is_some());
        assert_eq!(transcript.prune(SMALL), None);
        transcript.begin("five");
        assert_eq!(transcript.prune(SMALL).map(|pruned| pruned.results), Some(1), "the third is old now");
    }

    #[test]
    fn r065_what_a_summary_stands_for_is_not_pruned_as_well() {
        let mut transcript = eventful();
        let place = Place { exchange: 1, turn: 0 };
        assert!(transcript.summarise(transcript.summary_until(place, "It was so.".into())));
        assert_eq!(transcript.prune(SMALL).map(|pruned| pruned.results), Some(1));
        let tokens: u64 = transcript.exchanges()[1..].iter().map(Exchange::tokens).sum();
        let placeholders = 2_000 - estimate::text(PLACEHOLDER);
        assert_eq!(transcript.sent_tokens(), estimate::prompt("It was so.") + tokens - placeholders);
    }
}
