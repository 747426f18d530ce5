//! The whole conversation.

use serde::{Deserialize, Serialize};

use super::estimate::{self, EstimateScale};
use super::ids::CallIdAllocator;
use super::repair::UncheckedTranscript;
use super::validate::validate_from;
use super::{AssistantTurn, RollingSummary, TokenUsage, TranscriptViolation, TurnIndex};

/// A conversation: exchanges from the oldest to the newest. It holds no system prompt; that is
/// added to each request to a model. All that was said stays in it; what of that is sent is
/// [`Transcript::sent`].
#[derive(Clone, Debug, PartialEq, Default, Serialize, Deserialize)]
#[serde(from = "UncheckedTranscript")]
pub struct Transcript {
    exchanges: Vec<UserExchange>,
    /// Stands for the oldest part where the conversation is sent.
    #[serde(skip_serializing_if = "Option::is_none")]
    summary: Option<RollingSummary>,
    #[serde(skip)]
    send_state: TurnSendState,
}

/// What follows from the rest, or concerns the next request only. It says nothing about what was
/// said, so two transcripts that differ in it alone are equal.
#[derive(Clone, Debug, Default)]
struct TurnSendState {
    /// Results before this are sent as placeholders.
    pruned_until: TurnIndex,
    /// What is sent, in estimated tokens.
    tokens: u64,
    /// How far the estimate is off.
    scale: EstimateScale,
    /// The rules were checked up to the turn before this.
    checked_until: TurnIndex,
    /// The ids of all calls.
    ids: CallIdAllocator,
}

impl PartialEq for TurnSendState {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

/// What the user said, and the assistant's turns that followed. Since a turn only ever follows a
/// user's word, a history that starts with the assistant cannot be written down.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct UserExchange {
    prompt: String,
    turns: Vec<AssistantTurn>,
    /// What was taken during it beside its turns, each at its own price.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    overhead: Vec<TokenUsage>,
}

impl Transcript {
    /// A conversation in which nothing has been said.
    pub fn new() -> Self {
        Self::default()
    }

    /// Begins an exchange with what the user said. Words are kept exactly; blank ones begin
    /// nothing.
    pub fn begin_exchange(&mut self, prompt: impl Into<String>) {
        let prompt = prompt.into();
        if !prompt.trim().is_empty() {
            self.send_state.tokens += estimate::prompt(&prompt);
            self.exchanges.push(UserExchange::new(prompt));
        }
    }

    /// Adds a turn to the newest exchange. Without any exchange there is nothing it could answer,
    /// and it is dropped. Ids of calls that the conversation has already are made distinct.
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

    /// Exchanges that keep the rules.
    pub(super) fn from_exchanges(mut exchanges: Vec<UserExchange>) -> Self {
        let tokens = exchanges.iter().map(UserExchange::tokens).sum();
        let mut ids = CallIdAllocator::default();
        exchanges
            .iter_mut()
            .flat_map(|exchange| &mut exchange.turns)
            .for_each(|turn| ids.add(turn.call_ids()));
        Self {
            exchanges,
            summary: None,
            send_state: TurnSendState { tokens, ids, ..TurnSendState::default() },
        }
    }

    /// Lets a summary stand for what was said up to its place. It has to say something, and be
    /// shorter than that; its place has to be there, and it extends the one before it. Otherwise
    /// nothing happens, and this says so.
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

    /// Notes what was taken beside the turns, such as for a summary or by a sub-agent, in the
    /// exchange during or after which that was.
    pub fn add_usage(&mut self, usage: TokenUsage) {
        if let Some(exchange) = self.exchanges.last_mut() {
            exchange.add_usage(usage);
        }
    }

    /// The ids of all calls, those before the summary too.
    pub(super) fn call_ids(&self) -> &CallIdAllocator {
        &self.send_state.ids
    }

    /// The newest summary.
    pub fn summary(&self) -> Option<&RollingSummary> {
        self.summary.as_ref()
    }

    /// Where what is sent begins.
    pub(super) fn sent_start(&self) -> TurnIndex {
        self.summary.as_ref().map(|summary| summary.until).unwrap_or_default()
    }

    /// Results before this are sent as placeholders.
    pub(super) fn pruned_until(&self) -> TurnIndex {
        self.send_state.pruned_until
    }

    /// Results before this place, which were so large, are sent as placeholders from now on.
    pub(super) fn prune_until(&mut self, place: TurnIndex, gained: u64) {
        self.send_state.pruned_until = place;
        self.send_state.tokens = self.send_state.tokens.saturating_sub(gained);
    }

    /// What is sent, in estimated tokens, without system prompt and tools. To be corrected with
    /// [`Transcript::scale`].
    pub fn sent_tokens(&self) -> u64 {
        self.send_state.tokens
    }

    /// How far estimates were off when a provider last counted.
    pub fn scale(&self) -> EstimateScale {
        self.send_state.scale
    }

    /// A provider counted.
    pub fn calibrate(&mut self, estimated: u64, counted: u64) {
        self.send_state.scale.calibrate(estimated, counted);
    }

    /// Counts again what is sent.
    fn recount_tokens(&mut self) {
        let summary = self.summary.as_ref().map_or(0, RollingSummary::estimated_tokens);
        let exchanges = self.sent().exchanges().map(|(prompt, turns)| {
            estimate::prompt(prompt) + turns.map(|turn| turn.tokens()).sum::<u64>()
        });
        self.send_state.tokens = summary + exchanges.sum::<u64>();
    }

    /// Checks what was added since the last check, so that the work does not grow with the
    /// conversation: what was checked once cannot change.
    pub fn check(&mut self) -> Result<(), TranscriptViolation> {
        validate_from(self, self.send_state.checked_until)?;
        let newest = self.exchanges.len().saturating_sub(1);
        // The newest turn may yet be followed by what may not follow it, or grow.
        let turn =
            self.exchanges.last().map_or(0, |exchange| exchange.turns.len().saturating_sub(1));
        self.send_state.checked_until = TurnIndex { exchange: newest, turn };
        Ok(())
    }

    /// From the oldest to the newest.
    pub fn exchanges(&self) -> &[UserExchange] {
        &self.exchanges
    }

    /// The newest turn.
    pub fn last_turn(&self) -> Option<&AssistantTurn> {
        self.exchanges.last().and_then(|exchange| exchange.turns.last())
    }

    /// Whether nothing has been said.
    pub fn is_empty(&self) -> bool {
        self.exchanges.is_empty()
    }
}

impl UserExchange {
    /// One that begins with these words, which are not blank.
    pub(super) fn new(prompt: String) -> Self {
        Self { prompt, turns: Vec::new(), overhead: Vec::new() }
    }

    /// Adds turns. Between one without calls and the next nothing stands on the wire, where two
    /// assistant messages in a row are an error, so they become one.
    pub(super) fn add_turns(&mut self, turns: impl IntoIterator<Item = AssistantTurn>) {
        // A turn that grew from many is not looked through again for each.
        let mut is_said = self.turns.last().is_some_and(|last| !last.has_calls());
        for turn in turns {
            let next_is_said = !turn.has_calls();
            match self.turns.last_mut() {
                Some(last) if is_said => last.merge(turn),
                Some(_) | None => self.turns.push(turn),
            }
            is_said = next_is_said;
        }
    }

    /// Notes what was taken beside its turns.
    pub(super) fn add_usage(&mut self, usage: TokenUsage) {
        self.overhead.push(usage);
    }

    /// What the user said, exactly; not blank.
    pub fn prompt(&self) -> &str {
        &self.prompt
    }

    /// What the assistant did about it. All but the last have calls.
    pub fn turns(&self) -> &[AssistantTurn] {
        &self.turns
    }

    /// What each response took that was paid for during it: its turns, and beside them summaries,
    /// sub-agents, and what was of no use.
    pub fn usages(&self) -> impl Iterator<Item = TokenUsage> + Clone {
        self.turns.iter().map(AssistantTurn::usage).chain(self.overhead.iter().copied())
    }

    /// The whole of it, in estimated tokens.
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
    fn r021_an_id_that_comes_again_in_a_later_turn_gets_another_name() {
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
            let open = transcript.sent().open_turn(response).expect("it has a call");
            proposed.extend(open.calls().map(|(call, _)| call.id.clone()));
            transcript.record(open.close("unused"));
        }
        let ids = |transcript: &Transcript| -> Vec<CallId> {
            let turns = transcript.exchanges().iter().flat_map(UserExchange::turns);
            turns.flat_map(AssistantTurn::calls).map(|answered| answered.call.id.clone()).collect()
        };
        assert_eq!(ids(&transcript), proposed, "whoever watches hears of the ids that are kept");
        assert_eq!(
            proposed.iter().map(CallId::as_str).collect::<Vec<_>>(),
            ["call_0", "call_0_2", "call_0_3"]
        );
        // A session that was written down with one id for all of them.
        let text = serde_json::to_string(&transcript)
            .expect("data")
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
    fn r060_a_check_looks_at_what_is_new_and_finds_what_a_whole_one_finds() {
        let mut transcript = transcript_of(&[
            ("one", vec![tool_turn(1), text_turn("done")]),
            ("two", vec![tool_turn(1)]),
        ]);
        assert_eq!(transcript.check(), Ok(()));
        assert_eq!(transcript.send_state.checked_until, TurnIndex { exchange: 1, turn: 0 });
        // Broken by hand, since by the way of this room it cannot be: an answer is followed by
        // another turn.
        transcript.exchanges[1].turns.extend([text_turn("a"), text_turn("b")]);
        assert_eq!(transcript.check(), validate(&transcript));
        assert!(
            transcript
                .check()
                .is_err_and(|violation| (violation.exchange, violation.turn) == (2, 2))
        );
    }

    #[test]
    fn what_is_sent_is_counted_as_it_grows() {
        let mut transcript = transcript_of(&[
            ("one", vec![tool_turn(400), text_turn("a"), text_turn("b")]),
            ("two", vec![tool_turn(40)]),
        ]);
        let counted = transcript.sent_tokens();
        transcript.recount_tokens();
        assert_eq!(transcript.sent_tokens(), counted);
        let read: Transcript =
            serde_json::from_value(serde_json::to_value(&transcript).expect("data"))
                .expect("a transcript");
        assert_eq!(read.sent_tokens(), counted);
    }
}
