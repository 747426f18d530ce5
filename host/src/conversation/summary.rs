//! The summary that is sent in place of the oldest part of a conversation.

use serde::{Deserialize, Serialize};

use super::{Transcript, estimate};

/// A place between two turns: before the turn with this number, in the exchange with this number.
/// The words of the user with which that exchange began come after it in any case.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize)]
pub struct TurnIndex {
    /// Counted from 0.
    pub exchange: usize,
    /// Counted from 0 within the exchange.
    pub turn: usize,
}

/// What was said up to a place, in a model's words. It is a field of the transcript, never one of
/// its texts: nothing that was said is replaced by it, it only stands for that where the
/// conversation is sent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RollingSummary {
    /// In the model's words; not blank.
    pub text: String,
    /// Where what is still sent begins.
    pub until: TurnIndex,
    /// How many turns it stands for, those of the summaries that it extends among them.
    pub turns: usize,
    /// What those turns and the words before them were, in estimated tokens.
    pub tokens: u64,
}

impl RollingSummary {
    /// What it takes itself, in estimated tokens.
    pub(super) fn estimated_tokens(&self) -> u64 {
        estimate::prompt(&self.text)
    }
}

impl Transcript {
    /// A summary of everything before a place that the transcript has.
    pub fn summary_until(&self, until: TurnIndex, text: String) -> RollingSummary {
        let whole = self.exchanges().iter().take(until.exchange);
        let cut = self
            .exchanges()
            .get(until.exchange)
            .map(|exchange| &exchange.turns()[..until.turn.min(exchange.turns().len())]);
        let cut = cut.unwrap_or_default();
        let turns = whole.clone().map(|exchange| exchange.turns().len()).sum::<usize>() + cut.len();
        let tokens = whole.map(|exchange| exchange.tokens()).sum::<u64>()
            + cut.iter().map(|turn| turn.tokens()).sum::<u64>();
        RollingSummary { text, until, turns, tokens }
    }

    /// Where to cut so that of the newest turns as many remain as have room in `keep` tokens
    /// . The newest one remains if it has room in `most`. `None` if there would be nothing
    /// before the cut that is still sent.
    ///
    /// A cut is between turns, so no call is parted from its result, and what remains begins
    /// with words of the user or with the summary, which is sent as such. Those words are
    /// sent with the last of their turns as with the first, so they have to have room too, unless
    /// they are not answered yet.
    pub fn find_cut(&self, keep: u64, most: u64) -> Option<TurnIndex> {
        let begin = self.sent_start();
        let mut place = self.end();
        let mut kept = 0_u64;
        'turns: for (number, exchange) in
            self.exchanges().iter().enumerate().skip(begin.exchange).rev()
        {
            let is_answered = place.exchange > number;
            let words = estimate::prompt(exchange.prompt());
            // Its words come with the first of its turns that is kept.
            let mut unkept = if is_answered { words } else { 0 };
            for (turn, said) in exchange.turns().iter().enumerate().rev() {
                let here = TurnIndex { exchange: number, turn };
                let room = if kept == 0 { most.max(keep) } else { keep };
                let more = unkept.saturating_add(said.tokens());
                if here < begin || kept.saturating_add(more) > room {
                    break 'turns;
                }
                (kept, unkept, place) = (kept + more, 0, here);
            }
            // Words of which nothing came.
            if unkept > keep.saturating_sub(kept) {
                break;
            }
            kept = kept.saturating_add(if is_answered { unkept } else { words });
            place = TurnIndex { exchange: number, turn: 0 };
            if kept > keep {
                break;
            }
        }
        let place = self.normalize_index(place);
        (place > begin).then_some(place)
    }

    /// After everything. Words of the user that are not answered yet stay.
    fn end(&self) -> TurnIndex {
        let count = self.exchanges().len();
        match self.exchanges().last() {
            Some(newest) if newest.turns().last().is_none_or(|turn| turn.has_calls()) => {
                TurnIndex { exchange: count - 1, turn: newest.turns().len() }
            }
            Some(_) | None => TurnIndex { exchange: count, turn: 0 },
        }
    }

    /// The same place, after the last turn of an exchange said as before the next exchange.
    fn normalize_index(&self, place: TurnIndex) -> TurnIndex {
        let is_after_last = |number: usize| {
            let exchange = self.exchanges().get(number);
            exchange.is_some_and(|exchange| place.turn > 0 && place.turn == exchange.turns().len())
                && number + 1 < self.exchanges().len()
        };
        if is_after_last(place.exchange) {
            TurnIndex { exchange: place.exchange + 1, turn: 0 }
        } else {
            place
        }
    }

    /// Whether there is such a place, and something before it.
    pub(super) fn has_index(&self, place: TurnIndex) -> bool {
        let turns = self.exchanges().get(place.exchange).map(|exchange| exchange.turns().len());
        let is_there = match turns {
            Some(turns) => place.turn <= turns,
            None => place == TurnIndex { exchange: self.exchanges().len(), turn: 0 },
        };
        is_there && place > TurnIndex::default()
    }
}

#[cfg(test)]
mod tests {
    use super::super::test_util::{text_turn, tool_turn, transcript_of};
    use super::*;

    fn at(exchange: usize, turn: usize) -> TurnIndex {
        TurnIndex { exchange, turn }
    }

    /// Two exchanges of three turns and an answer each, every turn with a result of 1,000 tokens.
    fn two() -> Transcript {
        let exchange = || {
            ("first", vec![tool_turn(4000), tool_turn(4000), tool_turn(4000), text_turn("done")])
        };
        transcript_of(&[exchange(), exchange()])
    }

    #[test]
    fn r068_the_newest_tokens_are_kept() {
        let table = [
            (5, at(2, 0)),
            (100, at(1, 3)),
            (1_100, at(1, 2)),
            (3_100, at(1, 0)),
            (4_300, at(0, 2)),
            (6_300, at(0, 0)),
        ];
        for (keep, expected) in table {
            let cut = two().find_cut(keep, keep);
            assert_eq!(cut, (expected > at(0, 0)).then_some(expected), "keeping {keep}");
        }
    }

    #[test]
    fn r069_a_request_under_way_is_cut_between_its_turns_and_keeps_its_prompt() {
        let transcript = transcript_of(&[
            ("long ago", vec![text_turn("answer")]),
            ("now", vec![tool_turn(4000), tool_turn(4000), tool_turn(4000)]),
        ]);
        assert_eq!(transcript.find_cut(1_100, 1_100), Some(at(1, 2)));
        assert_eq!(
            transcript.find_cut(10, 1_100),
            Some(at(1, 2)),
            "the newest turn is kept if it may be that large"
        );
        assert_eq!(
            transcript.find_cut(10, 10),
            Some(at(1, 3)),
            "and else it is summarised too, and the prompt remains"
        );
        let just_begun = transcript_of(&[("long ago", vec![text_turn("answer")]), ("now", vec![])]);
        assert_eq!(just_begun.find_cut(0, 0), Some(at(1, 0)));
    }

    #[test]
    fn r068_words_that_have_no_room_are_summarised_like_everything_else() {
        let log = "panic at line 1\n".repeat(1_000);
        let short = || ("And this?", vec![text_turn("Fine.")]);
        // Nothing came of it, or an answer, or work.
        for turns in [
            vec![],
            vec![text_turn("I see.")],
            vec![tool_turn(40), tool_turn(40), text_turn("Done.")],
        ] {
            let transcript =
                transcript_of(&[(&log, turns.clone()), short(), short(), ("Now?", vec![])]);
            assert_eq!(transcript.find_cut(1_000, 1_000), Some(at(1, 0)), "{turns:?}");
            let mut newest = transcript_of(&[short(), (&log, turns)]);
            newest.record(text_turn("So much for that."));
            assert_eq!(newest.find_cut(1_000, 1_000), Some(at(2, 0)));
            assert_eq!(
                newest.find_cut(1_000, 10_000),
                Some(at(1, newest.exchanges()[1].turns().len() - 1)),
                "the newest has more room"
            );
        }
        let unanswered = transcript_of(&[short(), (&log, vec![tool_turn(40)])]);
        assert_eq!(unanswered.find_cut(1_000, 1_000), Some(at(1, 0)), "it is still to be answered");
    }

    #[test]
    fn nothing_is_cut_twice() {
        let mut transcript = two();
        let place = transcript.find_cut(1_100, 1_100).expect("there is something");
        assert!(transcript.apply_summary(transcript.summary_until(place, "It was so.".into())));
        assert_eq!(transcript.find_cut(1_100, 1_100), None);
        assert_eq!(transcript.find_cut(5, 5), Some(at(2, 0)));
    }

    #[test]
    fn r070_a_summary_counts_all_that_it_stands_for() {
        let transcript = two();
        let summary = transcript.summary_until(at(1, 2), "s".into());
        assert_eq!(summary.turns, 6);
        let all = transcript.summary_until(at(2, 0), "s".into());
        assert_eq!((all.turns, all.tokens), (8, transcript.sent_tokens()));
    }

    #[test]
    fn a_summary_of_nothing_or_of_what_is_not_there_is_refused() {
        for until in [at(0, 0), at(0, 5), at(2, 1), at(3, 0)] {
            let mut transcript = two();
            assert!(
                !transcript.apply_summary(RollingSummary {
                    text: "s".into(),
                    until,
                    turns: 0,
                    tokens: 0
                }),
                "{until:?}"
            );
            assert_eq!(transcript, two());
        }
        let mut transcript = two();
        assert!(
            !transcript.apply_summary(transcript.summary_until(at(1, 0), " \n".into())),
            "a blank one says nothing"
        );
        assert!(transcript.apply_summary(transcript.summary_until(at(1, 0), "s".into())));
        assert!(
            !transcript.apply_summary(transcript.summary_until(at(0, 3), "s".into())),
            "an earlier one extends nothing"
        );
    }
}
