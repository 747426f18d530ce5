//! A turn whose calls are being answered.

use super::ids::CallIds;
use super::repair::name_types;
use super::turn::{AnsweredCall, Block};
use super::{Call, Response, ResponseBlock, StopReason, ToolResult, Turn, Usage};

/// A response with calls on its way into the transcript. It leaves by [`close`](Self::close) only, and
/// from there every call has its result: this is what makes an unanswered call impossible.
///
/// What must not happen has no words (R-12). A turn whose calls are not answered is no part of a conversation:
/// ```compile_fail,E0308
/// fn r012_an_open_turn_is_no_history(conversation: &mut cofferdam::conversation::Transcript, open: cofferdam::conversation::OpenTurn) {
///     conversation.record(open);
/// }
/// ```
/// One that is closed takes no further result:
/// ```compile_fail,E0382
/// fn r012_a_closed_turn_stays_closed(mut open: cofferdam::conversation::OpenTurn) -> cofferdam::conversation::Turn {
///     let turn = open.close("the request is over");
///     open.answer(0, cofferdam::conversation::ToolResult::ok("too late"));
///     turn
/// }
/// ```
/// And a turn cannot be put together from parts, such as a call without its result:
/// ```compile_fail,E0451
/// fn r012_a_turn_is_not_made_by_hand(blocks: Vec<cofferdam::conversation::Block>) -> cofferdam::conversation::Turn {
///     cofferdam::conversation::Turn { blocks, stop: Default::default(), usage: Default::default(), tokens: 0 }
/// }
/// ```
#[derive(Debug)]
#[must_use = "an open turn belongs into the transcript: close it"]
pub struct OpenTurn {
    blocks: Vec<OpenBlock>,
    /// Where among the blocks each call is.
    places: Vec<usize>,
    stop: StopReason,
    usage: Usage,
}

#[derive(Debug)]
enum OpenBlock {
    Said(Block),
    Asked(Call, Slot),
}

/// How far a call is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Slot {
    /// Not begun.
    Waiting,
    /// Begun; it may have had effects.
    Started,
    /// Answered.
    Done(ToolResult),
}

impl Slot {
    /// What the call came to: its result, or the truth about a call that has none. This is the one place that answers what
    /// nobody answered, for every way in which a turn can end (R-50, R-59).
    fn settled(self, reason: &str) -> ToolResult {
        match self {
            Self::Waiting => ToolResult::not_run(reason),
            Self::Started => ToolResult::interrupted(),
            Self::Done(result) => result,
        }
    }
}

impl OpenTurn {
    /// Takes a response that has calls; gives back the response if it has none. Ids become distinct within the turn here (R-21);
    /// [`Sent::open`](super::Sent::open) makes them distinct within the conversation, so that history and wire agree on them.
    pub fn new(mut response: Response) -> Result<Self, Response> {
        if response.calls().next().is_none() {
            return Err(response);
        }
        CallIds::default().make_distinct(response.call_ids());
        let blocks: Vec<OpenBlock> = response
            .blocks
            .into_iter()
            .map(|block| match block {
                ResponseBlock::Text(text) => OpenBlock::Said(Block::Text(text)),
                ResponseBlock::Reasoning(reasoning) => OpenBlock::Said(Block::Reasoning(reasoning)),
                ResponseBlock::Call(call) => OpenBlock::Asked(call, Slot::Waiting),
            })
            .collect();
        let is_call = |(place, block)| matches!(block, &OpenBlock::Asked(..)).then_some(place);
        let places = blocks.iter().enumerate().filter_map(is_call).collect();
        Ok(Self { blocks, places, stop: response.stop, usage: response.usage })
    }

    /// The response that it came from, with the ids as they are now.
    pub fn response(&self) -> Response {
        let blocks = self
            .blocks
            .iter()
            .map(|block| match block {
                OpenBlock::Said(Block::Text(text)) => ResponseBlock::Text(text.clone()),
                OpenBlock::Said(Block::Reasoning(reasoning)) => ResponseBlock::Reasoning(reasoning.clone()),
                OpenBlock::Said(Block::Call(AnsweredCall { call, .. })) | OpenBlock::Asked(call, _) => ResponseBlock::Call(call.clone()),
            })
            .collect();
        Response { blocks, stop: self.stop.clone(), usage: self.usage }
    }

    /// Why the model stopped.
    pub fn stop(&self) -> &StopReason {
        &self.stop
    }

    /// The calls in the model's order; a call's place in this order is what [`start`](Self::start) and
    /// [`answer`](Self::answer) take.
    pub fn calls(&self) -> impl Iterator<Item = (&Call, &Slot)> {
        self.blocks.iter().filter_map(|block| match block {
            OpenBlock::Asked(call, slot) => Some((call, slot)),
            OpenBlock::Said(_) => None,
        })
    }

    /// For each call, whether it has its result.
    pub fn answered(&self) -> Vec<bool> {
        self.calls().map(|(_, slot)| matches!(slot, Slot::Done(_))).collect()
    }

    /// Records that a call begins. Does nothing for a call that is answered or that is not there.
    pub fn start(&mut self, index: usize) {
        if let Some(slot @ Slot::Waiting) = self.slot(index) {
            *slot = Slot::Started;
        }
    }

    /// Records a call's result. The first result stands: a later one is dropped.
    pub fn answer(&mut self, index: usize, mut result: ToolResult) {
        if let Some(slot) = self.slot(index)
            && !matches!(slot, Slot::Done(_))
        {
            name_types(&mut result);
            *slot = Slot::Done(result);
        }
    }

    /// The finished turn. What is not answered yet gets an answer that tells the truth: *not run* for the given
    /// reason if it never started, *interrupted* if it did (R-50).
    pub fn close(self, reason: &str) -> Turn {
        let blocks = self
            .blocks
            .into_iter()
            .map(|block| match block {
                OpenBlock::Said(block) => block,
                OpenBlock::Asked(call, slot) => Block::Call(AnsweredCall { call, result: slot.settled(reason) }),
            })
            .collect();
        Turn::with_calls(blocks, self.stop, self.usage)
    }

    /// How far a call is; `None` if there is no such call.
    pub fn progress(&self, index: usize) -> Option<&Slot> {
        match self.blocks.get(*self.places.get(index)?)? {
            OpenBlock::Asked(_, slot) => Some(slot),
            OpenBlock::Said(_) => None,
        }
    }

    fn slot(&mut self, index: usize) -> Option<&mut Slot> {
        match self.blocks.get_mut(*self.places.get(index)?)? {
            OpenBlock::Asked(_, slot) => Some(slot),
            OpenBlock::Said(_) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{CallId, ResultStatus};
    use super::*;

    fn response_with_calls(count: usize) -> Response {
        let call = |n: usize| Call { id: CallId::new(format!("c{n}")), name: "read_file".into(), arguments: "{}".into() };
        Response { blocks: (0..count).map(|n| ResponseBlock::Call(call(n))).collect(), ..Response::default() }
    }

    #[test]
    fn r050_every_call_has_one_result() {
        let mut turn = OpenTurn::new(response_with_calls(3)).expect("it has calls");
        turn.start(0);
        turn.answer(0, ToolResult::ok("done"));
        turn.answer(0, ToolResult::error("a second result"));
        turn.start(1);
        let turn = turn.close("the request was aborted");
        let statuses: Vec<_> = turn.calls().map(|answered| answered.result.status).collect();
        assert_eq!(statuses, [ResultStatus::Ok, ResultStatus::Interrupted, ResultStatus::NotRun]);
    }

    #[test]
    fn r053_an_error_counts_as_the_result() {
        let mut turn = OpenTurn::new(response_with_calls(1)).expect("it has calls");
        turn.start(0);
        turn.answer(0, ToolResult::error("no such file"));
        let turn = turn.close("unused");
        assert_eq!(turn.calls().next().map(|answered| answered.result.text()), Some("no such file".into()));
    }

    #[test]
    fn a_turn_can_be_opened_again_from_its_response() {
        let mut response = response_with_calls(2);
        response.blocks.insert(0, ResponseBlock::Text("Let me look.".into()));
        let mut turn = OpenTurn::new(response.clone()).expect("it has calls");
        turn.answer(0, ToolResult::ok("done"));
        assert_eq!(turn.response(), response);
    }

    #[test]
    fn a_response_without_calls_is_given_back() {
        let response = Response { blocks: vec![ResponseBlock::Text("hello".into())], ..Response::default() };
        assert_eq!(OpenTurn::new(response.clone()).map(|_| ()), Err(response));
    }
}
