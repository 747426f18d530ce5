//! The conversation as a provider is sent it: from the summary on, with old results as placeholders
//!

use std::sync::LazyLock;

use super::{
    AnsweredCall, AssistantTurn, ModelResponse, OpenTurn, ResultStatus, RollingSummary, ToolCall,
    ToolResult, Transcript, TurnIndex, estimate,
};

/// Stands for a result that was left out. It never changes, so what is sent before it stays the
/// same.
pub const PRUNED_PLACEHOLDER: &str =
    "[This old result was left out to save room. Call the tool again if you need it.]";

/// What of a transcript is sent. Who has one of these cannot send anything else.
#[derive(Clone, Copy, Debug)]
pub struct SentTranscript<'a> {
    transcript: &'a Transcript,
}

/// A turn as it is sent.
#[derive(Clone, Copy, Debug)]
pub struct SentTurn<'a> {
    turn: &'a AssistantTurn,
    index: TurnIndex,
    is_pruned: bool,
}

impl Transcript {
    /// What is sent of it.
    pub fn sent(&self) -> SentTranscript<'_> {
        SentTranscript { transcript: self }
    }
}

impl<'a> SentTranscript<'a> {
    /// Stands for all that came before; it goes first, on the user's side, as context and not as
    /// the user's words.
    pub fn summary(self) -> Option<&'a RollingSummary> {
        self.transcript.summary()
    }

    /// A response to it with calls, whose ids become distinct within the conversation; gives
    /// back one without any.
    pub fn open_turn(self, mut response: ModelResponse) -> Result<OpenTurn, ModelResponse> {
        self.transcript.call_ids().make_distinct(response.call_ids());
        OpenTurn::new(response)
    }

    /// What the user said and the turns that followed, as far as they are sent.
    pub fn exchanges(self) -> impl Iterator<Item = (&'a str, impl Iterator<Item = SentTurn<'a>>)> {
        let (begin, pruned) = (self.transcript.sent_start(), self.transcript.pruned_until());
        self.transcript.exchanges().iter().enumerate().skip(begin.exchange).map(
            move |(number, exchange)| {
                let skipped = if number == begin.exchange { begin.turn } else { 0 };
                let turns = exchange.turns().iter().enumerate().skip(skipped);
                let turns = turns.map(move |(turn, said)| {
                    let place = TurnIndex { exchange: number, turn };
                    SentTurn { turn: said, index: place, is_pruned: place < pruned }
                });
                (exchange.prompt(), turns)
            },
        )
    }
}

impl<'a> SentTurn<'a> {
    /// The assistant's side of it, whose own results are not what is sent.
    pub fn turn(self) -> &'a AssistantTurn {
        self.turn
    }

    /// Where it is in the whole conversation, which never changes.
    pub fn index(self) -> TurnIndex {
        self.index
    }

    /// The calls, each with the result that is sent.
    pub fn results(self) -> impl Iterator<Item = (&'a ToolCall, &'a ToolResult)> {
        self.turn.calls().map(move |answered| {
            let result = if self.is_pruned && is_prunable(answered) {
                placeholder(answered.result.status)
            } else {
                &answered.result
            };
            (&answered.call, result)
        })
    }
}

impl SentTurn<'_> {
    /// As it is sent, in estimated tokens.
    pub(super) fn tokens(self) -> u64 {
        let gained: u64 = if self.is_pruned {
            self.turn.calls().filter(|answered| is_prunable(answered)).map(prune_gain).sum()
        } else {
            0
        };
        self.turn.tokens() - gained
    }
}

/// Whether leaving a result out gains anything and loses no word of the user: they stand in results
/// of rejected calls.
pub(super) fn is_prunable(answered: &AnsweredCall) -> bool {
    match answered.result.status {
        ResultStatus::Ok | ResultStatus::Error => prune_gain(answered) > 0,
        ResultStatus::Rejected | ResultStatus::NotRun | ResultStatus::Interrupted => false,
    }
}

/// How many tokens a placeholder in the place of this result saves.
pub(super) fn prune_gain(answered: &AnsweredCall) -> u64 {
    estimate::result(&answered.result).saturating_sub(estimate::text(PRUNED_PLACEHOLDER))
}

fn placeholder(status: ResultStatus) -> &'static ToolResult {
    static OK: LazyLock<ToolResult> = LazyLock::new(|| ToolResult::ok(PRUNED_PLACEHOLDER));
    static ERROR: LazyLock<ToolResult> = LazyLock::new(|| ToolResult::error(PRUNED_PLACEHOLDER));
    if status.is_error() { &ERROR } else { &OK }
}
