//! The summary that is sent in place of the oldest part of a conversation.

use serde::{Deserialize, Serialize};

use super::{Transcript, estimate};

/// A position between two turns of a conversation: before the turn with this number.
///
/// The prompt of the exchange always comes after the position.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize)]
pub struct TurnIndex {
    /// The number of the exchange, from 0.
    pub exchange: usize,
    /// The number of the turn within the exchange, from 0.
    pub turn: usize,
}

/// A summary of the conversation before a position, written by a model.
///
/// The summary is a field of the transcript and never one of its texts. It replaces the
/// turns only in what is sent; the transcript still contains them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RollingSummary {
    /// The text of the summary, which is not blank.
    pub text: String,
    /// The position of the first turn that is still sent.
    pub until: TurnIndex,
    /// The number of turns that it replaces, including those of the summaries that it extends.
    pub turns: usize,
    /// The size of those turns and their prompts, in estimated tokens.
    pub tokens: u64,
}

impl RollingSummary {
    /// Returns the size of the summary itself, in estimated tokens.
    pub(super) fn estimated_tokens(&self) -> u64 {
        estimate::prompt(&self.text)
    }
}

impl Transcript {
    /// Creates a summary of everything before a position in the transcript.
    pub fn summary_until(&self, until: TurnIndex, text: String) -> RollingSummary {
        let before = self.exchanges().iter().take(until.exchange);
        let partial = self
            .exchanges()
            .get(until.exchange)
            .map(|exchange| &exchange.turns()[..until.turn.min(exchange.turns().len())]);
        let partial = partial.unwrap_or_default();
        let turns =
            before.clone().map(|exchange| exchange.turns().len()).sum::<usize>() + partial.len();
        let tokens = before.map(|exchange| exchange.tokens()).sum::<u64>()
            + partial.iter().map(|turn| turn.tokens()).sum::<u64>();
        RollingSummary { text, until, turns, tokens }
    }

    /// Finds the position before which turns can be summarised.
    ///
    /// The newest turns that fit into `keep` tokens stay, and the very newest one stays if it fits
    /// into `newest_limit` tokens. Returns `None` if nothing that is still sent lies before the
    /// position.
    ///
    /// The position is between turns, so no call is separated from its result. The rest
    /// begins with a prompt or with the summary, which is sent as such. The prompt of an
    /// exchange is sent with any of its turns. So the prompt must fit as well, unless it has no
    /// answer yet.
    pub fn find_cut(&self, keep: u64, newest_limit: u64) -> Option<TurnIndex> {
        let begin = self.sent_start();
        let mut cut = self.end();
        let mut kept = 0_u64;
        'turns: for (number, exchange) in
            self.exchanges().iter().enumerate().skip(begin.exchange).rev()
        {
            let is_answered = cut.exchange > number;
            let prompt_tokens = estimate::prompt(exchange.prompt());
            // The prompt is counted with the first turn that is kept.
            let mut unkept = if is_answered { prompt_tokens } else { 0 };
            for (turn, assistant_turn) in exchange.turns().iter().enumerate().rev() {
                let here = TurnIndex { exchange: number, turn };
                let limit = if kept == 0 { newest_limit.max(keep) } else { keep };
                let more = unkept.saturating_add(assistant_turn.tokens());
                if here < begin || kept.saturating_add(more) > limit {
                    break 'turns;
                }
                (kept, unkept, cut) = (kept + more, 0, here);
            }
            // A prompt without turns is counted here.
            if unkept > keep.saturating_sub(kept) {
                break;
            }
            kept = kept.saturating_add(if is_answered { unkept } else { prompt_tokens });
            cut = TurnIndex { exchange: number, turn: 0 };
        }
        (cut > begin).then_some(cut)
    }

    /// Returns the position after all turns, before a prompt that has no answer yet.
    fn end(&self) -> TurnIndex {
        let count = self.exchanges().len();
        match self.exchanges().last() {
            Some(newest) if newest.turns().last().is_none_or(|turn| turn.has_calls()) => {
                TurnIndex { exchange: count - 1, turn: newest.turns().len() }
            }
            Some(_) | None => TurnIndex { exchange: count, turn: 0 },
        }
    }

    /// Returns whether the position exists and has something before it.
    pub(super) fn has_index(&self, index: TurnIndex) -> bool {
        let turns = self.exchanges().get(index.exchange).map(|exchange| exchange.turns().len());
        let exists = match turns {
            Some(turns) => index.turn <= turns,
            None => index == TurnIndex { exchange: self.exchanges().len(), turn: 0 },
        };
        exists && index > TurnIndex::default()
    }
}

#[cfg(test)]
mod tests {
    use super::super::test_util::{text_turn, tool_turn, transcript_of};
    use super::*;

    fn at(exchange: usize, turn: usize) -> TurnIndex {
        TurnIndex { exchange, turn }
    }

    /// Two exchanges of three tool turns and an answer each, with results of 1,000 tokens.
    fn two_exchanges() -> Transcript {
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
            let cut = two_exchanges().find_cut(keep, keep);
            assert_eq!(cut, (expected > at(0, 0)).then_some(expected), "keeping {keep}");
        }
    }

    #[test]
    fn r069_a_running_request_is_cut_between_turns_and_keeps_its_prompt() {
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
            "otherwise it is summarised too, and the prompt remains"
        );
        let just_begun = transcript_of(&[("long ago", vec![text_turn("answer")]), ("now", vec![])]);
        assert_eq!(just_begun.find_cut(0, 0), Some(at(1, 0)));
    }

    #[test]
    fn r068_prompts_over_the_budget_are_summarised_too() {
        let log = "panic at line 1\n".repeat(1_000);
        let short = || ("And this?", vec![text_turn("Fine.")]);
        // The long prompt is followed by nothing, by an answer, or by calls and an answer.
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
                "the newest turn has a larger limit"
            );
        }
        let unanswered = transcript_of(&[short(), (&log, vec![tool_turn(40)])]);
        assert_eq!(
            unanswered.find_cut(1_000, 1_000),
            Some(at(1, 0)),
            "the prompt is not answered \
            yet"
        );
    }

    #[test]
    fn a_second_cut_begins_after_the_first() {
        let mut transcript = two_exchanges();
        let cut = transcript.find_cut(1_100, 1_100).expect("a cut");
        assert!(transcript.apply_summary(transcript.summary_until(cut, "It was so.".into())));
        assert_eq!(transcript.find_cut(1_100, 1_100), None);
        assert_eq!(transcript.find_cut(5, 5), Some(at(2, 0)));
    }

    #[test]
    fn r070_a_summary_counts_all_turns_that_it_replaces() {
        let transcript = two_exchanges();
        let summary = transcript.summary_until(at(1, 2), "s".into());
        assert_eq!(summary.turns, 6);
        let all = transcript.summary_until(at(2, 0), "s".into());
        assert_eq!((all.turns, all.tokens), (8, transcript.sent_tokens()));
    }

    #[test]
    fn an_empty_or_misplaced_summary_is_refused() {
        for until in [at(0, 0), at(0, 5), at(2, 1), at(3, 0)] {
            let mut transcript = two_exchanges();
            assert!(
                !transcript.apply_summary(RollingSummary {
                    text: "s".into(),
                    until,
                    turns: 0,
                    tokens: 0
                }),
                "{until:?}"
            );
            assert_eq!(transcript, two_exchanges());
        }
        let mut transcript = two_exchanges();
        assert!(
            !transcript.apply_summary(transcript.summary_until(at(1, 0), " \n".into())),
            "a blank summary is refused"
        );
        assert!(transcript.apply_summary(transcript.summary_until(at(1, 0), "s".into())));
        assert!(
            !transcript.apply_summary(transcript.summary_until(at(0, 3), "s".into())),
            "a summary that ends earlier is refused"
        );
    }

    #[test]
    fn r068_turns_and_prompts_that_fit_exactly_stay() {
        let turn = tool_turn(400);
        let open = transcript_of(&[("one", vec![turn.clone(), turn.clone()])]);
        assert_eq!(open.find_cut(turn.tokens(), 0), Some(at(0, 1)));
        assert_eq!(open.find_cut(turn.tokens() - 1, 0), Some(at(0, 2)));
        // The second prompt has no turns.
        let answer = || vec![text_turn("done")];
        let closed = transcript_of(&[("one", answer()), ("two", vec![]), ("three", answer())]);
        let newest: u64 = closed.exchanges()[1..].iter().map(|exchange| exchange.tokens()).sum();
        assert_eq!(closed.find_cut(newest, 0), Some(at(1, 0)));
        assert_eq!(closed.find_cut(newest - 1, 0), Some(at(2, 0)));
    }
}
