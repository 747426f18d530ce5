//! The transcript of a conversation, with what is needed to send it.

use serde::{Deserialize, Serialize};

use super::estimate::{self, EstimateScale};
use super::ids::CallIdAllocator;
use super::repair::UncheckedTranscript;
use super::validate::validate_from;
use super::{AssistantTurn, RollingSummary, TokenUsage, TranscriptViolation, TurnIndex};

/// A conversation: exchanges from the oldest to the newest.
///
/// It contains no system prompt, which is added to each model request (R-57). Nothing is ever
/// removed from it; [`Transcript::sent`] returns the part that is sent.
///
/// # Examples
///
/// ```
/// use cofferdam::conversation::Transcript;
/// let mut transcript = Transcript::new();
/// transcript.begin_exchange("List the files.");
/// assert_eq!(transcript.exchanges()[0].prompt(), "List the files.");
/// ```
#[derive(Clone, Debug, PartialEq, Default, Serialize, Deserialize)]
#[serde(from = "UncheckedTranscript")]
pub struct Transcript {
    exchanges: Vec<UserExchange>,
    /// The summary that replaces the oldest part in what is sent.
    #[serde(skip_serializing_if = "Option::is_none")]
    summary: Option<RollingSummary>,
    #[serde(skip)]
    send_state: TurnSendState,
}

/// State that is derived from the transcript or concerns the next request only.
///
/// It is not part of the conversation, so transcripts that differ only in it are equal.
#[derive(Clone, Debug, Default)]
struct TurnSendState {
    /// Results before this position are sent as placeholders.
    pruned_until: TurnIndex,
    /// The size of what is sent, in estimated tokens.
    tokens: u64,
    /// The ratio of the provider's count to the estimate.
    scale: EstimateScale,
    /// The turns before this position have been checked.
    checked_until: TurnIndex,
    /// The IDs of all calls.
    ids: CallIdAllocator,
}

impl PartialEq for TurnSendState {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

/// A prompt of the user, and the turns of the assistant that followed.
///
/// A turn always follows a prompt, so the types cannot express a history that begins with the
/// assistant (R-61).
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct UserExchange {
    prompt: String,
    turns: Vec<AssistantTurn>,
    /// The tokens used during the exchange in addition to its turns, each entry at its own price.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    overhead: Vec<TokenUsage>,
}

impl Transcript {
    /// Creates an empty conversation.
    pub fn new() -> Self {
        Self::default()
    }

    /// Begins an exchange with a prompt.
    ///
    /// The prompt is stored exactly. A blank prompt does not begin an exchange.
    pub fn begin_exchange(&mut self, prompt: impl Into<String>) {
        let prompt = prompt.into();
        if !prompt.trim().is_empty() {
            self.send_state.tokens += estimate::prompt(&prompt);
            self.exchanges.push(UserExchange::new(prompt));
        }
    }

    /// Adds a turn to the newest exchange.
    ///
    /// If there is no exchange, the turn is dropped. Duplicate call IDs are made distinct (R-21).
    pub fn record(&mut self, mut turn: AssistantTurn) {
        let Some(exchange) = self.exchanges.last_mut() else { return };
        self.send_state.ids.add(turn.call_ids());
        match exchange.turns.last_mut() {
            Some(last) if !last.has_calls() => {
                self.send_state.tokens = estimate::merged(self.send_state.tokens, turn.tokens());
                last.merge(turn);
            }
            Some(_) | None => {
                self.send_state.tokens += turn.tokens();
                exchange.turns.push(turn);
            }
        }
    }

    /// Creates a transcript from exchanges that satisfy the rules.
    pub(super) fn from_exchanges(mut exchanges: Vec<UserExchange>) -> Self {
        let tokens = exchanges.iter().map(UserExchange::tokens).sum();
        let mut ids = CallIdAllocator::default();
        for turn in exchanges.iter_mut().flat_map(|exchange| &mut exchange.turns) {
            ids.add(turn.call_ids());
        }
        Self {
            exchanges,
            summary: None,
            send_state: TurnSendState { tokens, ids, ..TurnSendState::default() },
        }
    }

    /// Replaces the turns before its position with a summary in what is sent.
    ///
    /// Returns `false` and changes nothing unless all of this is true:
    ///
    /// - The text is not blank, and shorter than what it replaces.
    /// - Its position exists, and lies after that of the previous summary.
    pub fn apply_summary(&mut self, summary: RollingSummary) -> bool {
        if !self.has_index(summary.until)
            || summary.until <= self.sent_start()
            || summary.text.trim().is_empty()
        {
            return false;
        }
        let (previous, tokens) = (self.summary.replace(summary), self.send_state.tokens);
        self.recount_tokens();
        if self.send_state.tokens >= tokens {
            (self.summary, self.send_state.tokens) = (previous, tokens);
            return false;
        }
        true
    }

    /// Adds tokens that were used in addition to the turns, such as those of a summary or a
    /// sub-agent.
    ///
    /// They count towards the newest exchange.
    pub fn add_usage(&mut self, usage: TokenUsage) {
        if let Some(exchange) = self.exchanges.last_mut() {
            exchange.add_usage(usage);
        }
    }

    /// Returns the IDs of all calls, including those before the summary.
    pub(super) fn call_ids(&self) -> &CallIdAllocator {
        &self.send_state.ids
    }

    /// Returns the newest summary, if there is one.
    pub fn summary(&self) -> Option<&RollingSummary> {
        self.summary.as_ref()
    }

    /// Returns the position of the first turn that is sent.
    pub(super) fn sent_start(&self) -> TurnIndex {
        self.summary.as_ref().map(|summary| summary.until).unwrap_or_default()
    }

    /// Returns the position before which results are sent as placeholders.
    pub(super) fn pruned_until(&self) -> TurnIndex {
        self.send_state.pruned_until
    }

    /// Sends the results before a position as placeholders, which saves `gained` tokens.
    pub(super) fn prune_until(&mut self, end: TurnIndex, gained: u64) {
        self.send_state.pruned_until = end;
        self.send_state.tokens = self.send_state.tokens.saturating_sub(gained);
    }

    /// Returns the size of what is sent, in estimated tokens, without system prompt and tools.
    ///
    /// [`Transcript::scale`] corrects the estimate.
    pub fn sent_tokens(&self) -> u64 {
        self.send_state.tokens
    }

    /// Returns the ratio of the provider's last count to the estimate.
    pub fn scale(&self) -> EstimateScale {
        self.send_state.scale
    }

    /// Sets the ratio from an estimate and the provider's count of the same request.
    pub fn calibrate(&mut self, estimated: u64, counted: u64) {
        self.send_state.scale.calibrate(estimated, counted);
    }

    /// Counts again the tokens of everything that is sent.
    fn recount_tokens(&mut self) {
        let summary = self.summary.as_ref().map_or(0, RollingSummary::estimated_tokens);
        let exchanges = self.sent().exchanges().map(|(prompt, turns)| {
            estimate::prompt(prompt) + turns.map(|turn| turn.tokens()).sum::<u64>()
        });
        self.send_state.tokens = summary + exchanges.sum::<u64>();
    }

    /// Checks the turns that were added since the last check (R-60).
    ///
    /// Checked turns never change, so the work does not grow with the conversation.
    ///
    /// # Errors
    /// A new turn violates a rule.
    pub fn check(&mut self) -> Result<(), TranscriptViolation> {
        validate_from(self, self.send_state.checked_until)?;
        let newest = self.exchanges.len().saturating_sub(1);
        // The newest turn is checked again: it may grow, or get an invalid successor.
        let turn =
            self.exchanges.last().map_or(0, |exchange| exchange.turns.len().saturating_sub(1));
        self.send_state.checked_until = TurnIndex { exchange: newest, turn };
        Ok(())
    }

    /// Returns the exchanges, from the oldest to the newest.
    pub fn exchanges(&self) -> &[UserExchange] {
        &self.exchanges
    }

    /// Returns the newest turn, if there is one.
    pub fn last_turn(&self) -> Option<&AssistantTurn> {
        self.exchanges.last().and_then(|exchange| exchange.turns.last())
    }

    /// Returns whether the conversation has no exchange.
    pub fn is_empty(&self) -> bool {
        self.exchanges.is_empty()
    }
}

impl UserExchange {
    /// Creates an exchange without turns from a prompt that is not blank.
    pub(super) fn new(prompt: String) -> Self {
        Self { prompt, turns: Vec::new(), overhead: Vec::new() }
    }

    /// Adds turns to the exchange.
    ///
    /// A turn without calls is merged with the next one, since providers refuse two assistant
    /// messages in a row.
    pub(super) fn add_turns(&mut self, turns: impl IntoIterator<Item = AssistantTurn>) {
        // Tracking this avoids another look at a turn that was merged from many.
        let mut last_has_no_calls = self.turns.last().is_some_and(|last| !last.has_calls());
        for turn in turns {
            let next_has_no_calls = !turn.has_calls();
            match self.turns.last_mut() {
                Some(last) if last_has_no_calls => last.merge(turn),
                Some(_) | None => self.turns.push(turn),
            }
            last_has_no_calls = next_has_no_calls;
        }
    }

    /// Adds tokens that were used in addition to those of the turns.
    pub(super) fn add_usage(&mut self, usage: TokenUsage) {
        self.overhead.push(usage);
    }

    /// Returns the prompt of the user, which is not blank.
    pub fn prompt(&self) -> &str {
        &self.prompt
    }

    /// Returns the turns that followed the prompt; all but the last have calls.
    pub fn turns(&self) -> &[AssistantTurn] {
        &self.turns
    }

    /// Returns the tokens of each response that was paid for during the exchange.
    ///
    /// These are its turns, and in addition summaries, sub-agents and discarded responses.
    pub fn usages(&self) -> impl Iterator<Item = TokenUsage> + Clone {
        self.turns.iter().map(AssistantTurn::usage).chain(self.overhead.iter().copied())
    }

    /// Returns the size of the whole exchange, in estimated tokens.
    pub(super) fn tokens(&self) -> u64 {
        estimate::prompt(&self.prompt) + self.turns.iter().map(AssistantTurn::tokens).sum::<u64>()
    }
}

#[cfg(test)]
mod tests {
    use super::super::test_util::{text_turn, tool_turn, transcript_of};
    use super::super::{CallId, ModelResponse, ResponseBlock, ToolCall, validate};
    use super::*;

    #[test]
    fn r054_a_turn_has_content() {
        let blank = ModelResponse {
            blocks: vec![ResponseBlock::Text(" \n".into())],
            ..ModelResponse::default()
        };
        assert_eq!(AssistantTurn::without_calls(blank), None);
        assert_eq!(AssistantTurn::from_interrupted_text(String::new()), None);
    }

    #[test]
    fn r055_two_turns_without_calls_become_one() {
        let mut transcript = Transcript::new();
        transcript.begin_exchange("hello");
        transcript.record(text_turn("one, "));
        transcript.record(text_turn("two"));
        assert_eq!(transcript.exchanges()[0].turns().len(), 1);
        assert_eq!(transcript.last_turn().map(AssistantTurn::text), Some("one, two".into()));
    }

    #[test]
    fn r021_a_duplicate_id_in_a_later_turn_is_changed() {
        let mut transcript = Transcript::new();
        transcript.begin_exchange("go");
        let mut proposed = Vec::new();
        for _ in 0..3 {
            let call = ToolCall {
                id: CallId::new("call_0"),
                name: "grep".into(),
                arguments: String::new(),
            };
            let response = ModelResponse {
                blocks: vec![ResponseBlock::Call(call)],
                ..ModelResponse::default()
            };
            let open = transcript.sent().open_turn(response).expect("has a call");
            proposed.extend(open.calls().map(|(call, _)| call.id.clone()));
            transcript.record(open.close("unused"));
        }
        let ids = |transcript: &Transcript| -> Vec<CallId> {
            let turns = transcript.exchanges().iter().flat_map(UserExchange::turns);
            turns.flat_map(AssistantTurn::calls).map(|answered| answered.call.id.clone()).collect()
        };
        assert_eq!(ids(&transcript), proposed, "the observer sees the ids that are kept");
        assert_eq!(
            proposed.iter().map(CallId::as_str).collect::<Vec<_>>(),
            ["call_0", "call_0_2", "call_0_3"]
        );
        // A saved session that has one ID for all of the calls.
        let text = serde_json::to_string(&transcript)
            .expect("valid JSON")
            .replace("call_0_2", "call_0")
            .replace("call_0_3", "call_0");
        let read: Transcript = serde_json::from_str(&text).expect("a transcript");
        assert_eq!((ids(&read), validate(&read)), (proposed, Ok(())));
    }

    #[test]
    fn r061_nothing_precedes_the_first_prompt() {
        let mut transcript = Transcript::new();
        transcript.record(text_turn("out of nowhere"));
        transcript.begin_exchange("  ");
        assert!(transcript.is_empty());
    }
    #[test]
    fn r060_an_incremental_check_finds_what_a_full_check_finds() {
        let mut transcript = transcript_of(&[
            ("one", vec![tool_turn(1), text_turn("done")]),
            ("two", vec![tool_turn(1)]),
        ]);
        assert_eq!(transcript.check(), Ok(()));
        assert_eq!(transcript.send_state.checked_until, TurnIndex { exchange: 1, turn: 0 });
        // Broken by direct access to the fields: an answer is followed by another turn.
        transcript.exchanges[1].turns.extend([text_turn("a"), text_turn("b")]);
        assert_eq!(transcript.check(), validate(&transcript));
        assert!(
            transcript
                .check()
                .is_err_and(|violation| (violation.exchange, violation.turn) == (2, 2))
        );
    }

    #[test]
    fn sent_tokens_stay_correct_as_the_transcript_grows() {
        let mut transcript = transcript_of(&[
            ("one", vec![tool_turn(400), text_turn("a"), text_turn("b")]),
            ("two", vec![tool_turn(40)]),
        ]);
        let counted = transcript.sent_tokens();
        transcript.recount_tokens();
        assert_eq!(transcript.sent_tokens(), counted);
        let read: Transcript =
            serde_json::from_value(serde_json::to_value(&transcript).expect("valid JSON"))
                .expect("a transcript");
        assert_eq!(read.sent_tokens(), counted);
    }

    #[test]
    fn r060_an_invalid_summary_and_a_turn_behind_an_answer_are_found() {
        let valid = || transcript_of(&[("one", vec![tool_turn(1), text_turn("done")])]);
        let violation = |change: fn(&mut Transcript)| {
            let mut transcript = valid();
            change(&mut transcript);
            validate(&transcript).map_err(|violation| violation.to_string())
        };
        fn summary(text: &str, exchange: usize, turn: usize) -> Option<RollingSummary> {
            let until = TurnIndex { exchange, turn };
            Some(RollingSummary { text: text.into(), until, turns: 1, tokens: 1 })
        }
        assert_eq!(violation(|transcript| transcript.summary = summary("s", 0, 1)), Ok(()));
        assert_eq!(
            violation(|transcript| transcript.summary = summary(" ", 0, 1)),
            Err("exchange 1, turn 0: the summary is blank".into())
        );
        assert_eq!(
            violation(|transcript| transcript.summary = summary("s", 1, 1)),
            Err("exchange 2, turn 1: the summary ends at a turn that does not exist".into())
        );
        assert_eq!(
            violation(|transcript| transcript.summary = summary("s", 0, 0)),
            Err("exchange 1, turn 0: the summary ends at a turn that does not exist".into())
        );
        assert_eq!(
            violation(|transcript| transcript.exchanges[0].turns.push(text_turn("more"))),
            Err("exchange 1, turn 2: a turn without calls is followed by another turn".into())
        );
        assert_eq!(
            violation(|transcript| {
                let turn = transcript.exchanges[0].turns[0].clone();
                transcript.exchanges[0].turns.insert(0, turn);
            }),
            Err("exchange 1, turn 2: a call has the id of an earlier one".into())
        );
    }

    #[test]
    fn r060_an_incremental_check_begins_at_the_first_turn_of_a_later_exchange() {
        let mut transcript =
            transcript_of(&[("one", vec![tool_turn(1), tool_turn(1), text_turn("done")])]);
        assert_eq!(transcript.check(), Ok(()));
        transcript.begin_exchange("two");
        transcript.exchanges[1].turns.extend([text_turn("a"), text_turn("b")]);
        assert!(
            transcript
                .check()
                .is_err_and(|violation| (violation.exchange, violation.turn) == (2, 1))
        );
    }
}
