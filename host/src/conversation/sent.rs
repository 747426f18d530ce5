//! The conversation as a provider is sent it: from the summary on, with old results as placeholders.

use std::sync::LazyLock;

use super::{AnsweredCall, Call, OpenTurn, Place, Response, ResultStatus, Summary, ToolResult, Transcript, Turn, estimate};

/// Stands for a result that was left out. It never changes, so what is sent before it stays the same.
pub const PLACEHOLDER: &str = "[This old result was left out to save room. Call the tool again if you need it.]";

/// What of a transcript is sent. Who has one of these cannot send anything else.
#[derive(Clone, Copy, Debug)]
pub struct Sent<'a> {
    transcript: &'a Transcript,
}

/// A turn as it is sent.
#[derive(Clone, Copy, Debug)]
pub struct SentTurn<'a> {
    turn: &'a Turn,
    place: Place,
    is_pruned: bool,
}

impl Transcript {
    /// What is sent of it.
    pub fn sent(&self) -> Sent<'_> {
        Sent { transcript: self }
    }
}

impl<'a> Sent<'a> {
    /// Stands for all that came before; it goes first, on the user's side, as context and not as the user's words.
    pub fn summary(self) -> Option<&'a Summary> {
        self.transcript.summary()
    }

    /// A response to it with calls, whose ids become distinct within the conversation; gives back one without any.
    pub fn open(self, mut response: Response) -> Result<OpenTurn, Response> {
        self.transcript.call_ids().make_distinct(response.call_ids());
        OpenTurn::new(response)
    }

    /// What the user said and the turns that followed, as far as they are sent.
    pub fn exchanges(self) -> impl Iterator<Item = (&'a str, impl Iterator<Item = SentTurn<'a>>)> {
        let (begin, pruned) = (self.transcript.sent_from(), self.transcript.pruned_until());
        self.transcript.exchanges().iter().enumerate().skip(begin.exchange).map(move |(number, exchange)| {
            let skipped = if number == begin.exchange { begin.turn } else { 0 };
            let turns = exchange.turns().iter().enumerate().skip(skipped);
            let turns = turns.map(move |(turn, said)| {
                let place = Place { exchange: number, turn };
                SentTurn { turn: said, place, is_pruned: place < pruned }
            });
            (exchange.prompt(), turns)
        })
    }
}

impl<'a> SentTurn<'a> {
    /// The assistant's side of it, whose own results are not what is sent.
    pub fn turn(self) -> &'a Turn {
        self.turn
    }

    /// Where it is in the whole conversation, which never changes.
    pub fn place(self) -> Place {
        self.place
    }

    /// The calls, each with the result that is sent.
    pub fn results(self) -> impl Iterator<Item = (&'a Call, &'a ToolResult)> {
        self.turn.calls().map(move |answered| {
            let result = if self.is_pruned && can_be_pruned(answered) { placeholder(answered.result.status) } else { &answered.result };
            (&answered.call, result)
        })
    }
}

impl SentTurn<'_> {
    /// As it is sent, in estimated tokens.
    pub(super) fn tokens(self) -> u64 {
        let gained: u64 = if self.is_pruned { self.turn.calls().filter(|answered| can_be_pruned(answered)).map(gain).sum() } else { 0 };
        self.turn.tokens() - gained
    }
}

/// Whether leaving a result out gains anything and loses no word of the user: they stand in results of rejected calls.
pub(super) fn can_be_pruned(answered: &AnsweredCall) -> bool {
    match answered.result.status {
        ResultStatus::Ok | ResultStatus::Error => gain(answered) > 0,
        ResultStatus::Rejected | ResultStatus::NotRun | ResultStatus::Interrupted => false,
    }
}

/// How many tokens a placeholder in the place of this result saves.
pub(super) fn gain(answered: &AnsweredCall) -> u64 {
    estimate::result(&answered.result).saturating_sub(estimate::text(PLACEHOLDER))
}

fn placeholder(status: ResultStatus) -> &'static ToolResult {
    static OK: LazyLock<ToolResult> = LazyLock::new(|| ToolResult::ok(PLACEHOLDER));
    static ERROR: LazyLock<ToolResult> = LazyLock::new(|| ToolResult::error(PLACEHOLDER));
    if status.is_error() { &ERROR } else { &OK }
}
