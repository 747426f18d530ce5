//! The part of a conversation that is sent to a provider.
//!
//! It begins with the summary, and placeholders replace old results.

use std::sync::LazyLock;

use super::{
    AnsweredCall, AssistantTurn, ModelResponse, OpenTurn, ResultStatus, RollingSummary, ToolCall,
    ToolResult, Transcript, TurnIndex, estimate,
};

/// The text that replaces a result that was left out.
///
/// The text never changes, so that the provider's cache stays valid.
pub const PRUNED_PLACEHOLDER: &str =
    "[This old result was omitted to save context space. Call the tool again if you need it.]";

/// A view of the part of a transcript that is sent.
///
/// Code that has only this view cannot send anything else.
#[derive(Clone, Copy, Debug)]
pub struct SentTranscript<'a> {
    transcript: &'a Transcript,
}

/// A turn as it is sent to a provider.
#[derive(Clone, Copy, Debug)]
pub struct SentTurn<'a> {
    turn: &'a AssistantTurn,
    index: TurnIndex,
    is_pruned: bool,
}

impl Transcript {
    /// Returns the part of the transcript that is sent.
    pub fn sent(&self) -> SentTranscript<'_> {
        SentTranscript { transcript: self }
    }
}

impl<'a> SentTranscript<'a> {
    /// Returns the summary that replaces everything before the first turn that is sent.
    ///
    /// The summary is sent first, as context on the user's side and not as text of the user.
    pub fn summary(self) -> Option<&'a RollingSummary> {
        self.transcript.summary()
    }

    /// Opens a turn for a response, with call IDs that are distinct in the conversation.
    ///
    /// # Errors
    /// The response has no calls; it is returned unchanged.
    pub fn open_turn(self, mut response: ModelResponse) -> Result<OpenTurn, ModelResponse> {
        self.transcript.call_ids().make_distinct(response.call_ids());
        OpenTurn::new(response)
    }

    /// Returns the prompts and turns that are sent, for each exchange.
    pub fn exchanges(self) -> impl Iterator<Item = (&'a str, impl Iterator<Item = SentTurn<'a>>)> {
        let (begin, pruned) = (self.transcript.sent_start(), self.transcript.pruned_until());
        self.transcript.exchanges().iter().enumerate().skip(begin.exchange).map(
            move |(number, exchange)| {
                let skipped = if number == begin.exchange { begin.turn } else { 0 };
                let turns = exchange.turns().iter().enumerate().skip(skipped);
                let turns = turns.map(move |(turn, assistant_turn)| {
                    let index = TurnIndex { exchange: number, turn };
                    SentTurn { turn: assistant_turn, index, is_pruned: index < pruned }
                });
                (exchange.prompt(), turns)
            },
        )
    }
}

impl<'a> SentTurn<'a> {
    /// Returns the turn in the transcript.
    ///
    /// Its results may differ from those that are sent, which [`SentTurn::results`] returns.
    pub fn turn(self) -> &'a AssistantTurn {
        self.turn
    }

    /// Returns the position in the whole conversation, which never changes.
    pub fn index(self) -> TurnIndex {
        self.index
    }

    /// Returns the calls, each with the result that is sent.
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
    /// Returns the size of what is sent, in estimated tokens.
    pub(super) fn tokens(self) -> u64 {
        let gained: u64 = if self.is_pruned {
            self.turn.calls().filter(|answered| is_prunable(answered)).map(prune_gain).sum()
        } else {
            0
        };
        self.turn.tokens() - gained
    }
}

/// Returns whether a result can be left out.
///
/// Leaving it out must save tokens and lose no text of the user. Results of rejected calls contain
/// such text.
pub(super) fn is_prunable(answered: &AnsweredCall) -> bool {
    match answered.result.status {
        ResultStatus::Ok | ResultStatus::Error => prune_gain(answered) > 0,
        ResultStatus::Rejected | ResultStatus::NotRun | ResultStatus::Interrupted => false,
    }
}

/// Returns how many tokens a placeholder for this result saves.
pub(super) fn prune_gain(answered: &AnsweredCall) -> u64 {
    estimate::result(&answered.result).saturating_sub(estimate::text(PRUNED_PLACEHOLDER))
}

fn placeholder(status: ResultStatus) -> &'static ToolResult {
    static OK: LazyLock<ToolResult> = LazyLock::new(|| ToolResult::ok(PRUNED_PLACEHOLDER));
    static ERROR: LazyLock<ToolResult> = LazyLock::new(|| ToolResult::error(PRUNED_PLACEHOLDER));
    if status.is_error() { &ERROR } else { &OK }
}
