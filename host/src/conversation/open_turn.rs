//! A turn whose calls are being answered.

use super::ids::CallIdAllocator;
use super::repair::fix_media_types;
use super::turn::{AnsweredCall, TurnContentBlock};
use super::{
    AssistantTurn, ModelResponse, ResponseBlock, StopReason, TokenUsage, ToolCall, ToolResult,
};

/// A response with calls on its way into the transcript. It leaves by [`close`](Self::close) only,
/// and from there every call has its result: this is what makes an unanswered call impossible.
///
/// What must not happen has no words (R-12). A turn whose calls are not answered is no part of a
/// conversation:
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
    blocks: Vec<OpenContentBlock>,
    /// Where among the blocks each call is.
    call_positions: Vec<usize>,
    stop_reason: StopReason,
    usage: TokenUsage,
}

#[derive(Debug)]
enum OpenContentBlock {
    Complete(TurnContentBlock),
    Call(ToolCall, CallProgressSlot),
}

/// How far a call is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CallProgressSlot {
    /// Not begun.
    Waiting,
    /// Begun; it may have had effects.
    Started,
    /// Answered.
    Done(ToolResult),
}

impl CallProgressSlot {
    /// What the call came to: its result, or the truth about a call that has none. This is the one
    /// place that answers what nobody answered, for every way in which a turn can end (R-50, R-59).
    fn into_result(self, reason: &str) -> ToolResult {
        match self {
            Self::Waiting => ToolResult::not_run(reason),
            Self::Started => ToolResult::interrupted(),
            Self::Done(result) => result,
        }
    }
}

impl OpenTurn {
    /// Takes a response that has calls; gives back the response if it has none. Ids become distinct
    /// within the turn here (R-21); [`Sent::open`](super::Sent::open) makes them distinct within
    /// the conversation, so that history and wire agree on them.
    pub fn new(mut response: ModelResponse) -> Result<Self, ModelResponse> {
        if response.calls().next().is_none() {
            return Err(response);
        }
        CallIdAllocator::default().make_distinct(response.call_ids());
        let blocks: Vec<OpenContentBlock> = response
            .blocks
            .into_iter()
            .map(|block| match block {
                ResponseBlock::Text(text) => {
                    OpenContentBlock::Complete(TurnContentBlock::Text(text))
                }
                ResponseBlock::Reasoning(reasoning) => {
                    OpenContentBlock::Complete(TurnContentBlock::Reasoning(reasoning))
                }
                ResponseBlock::Call(call) => {
                    OpenContentBlock::Call(call, CallProgressSlot::Waiting)
                }
            })
            .collect();
        let is_call =
            |(place, block)| matches!(block, &OpenContentBlock::Call(..)).then_some(place);
        let places = blocks.iter().enumerate().filter_map(is_call).collect();
        Ok(Self {
            blocks,
            call_positions: places,
            stop_reason: response.stop,
            usage: response.usage,
        })
    }

    /// The response that it came from, with the ids as they are now.
    pub fn response(&self) -> ModelResponse {
        let blocks = self
            .blocks
            .iter()
            .map(|block| match block {
                OpenContentBlock::Complete(TurnContentBlock::Text(text)) => {
                    ResponseBlock::Text(text.clone())
                }
                OpenContentBlock::Complete(TurnContentBlock::Reasoning(reasoning)) => {
                    ResponseBlock::Reasoning(reasoning.clone())
                }
                OpenContentBlock::Complete(TurnContentBlock::Call(AnsweredCall {
                    call, ..
                }))
                | OpenContentBlock::Call(call, _) => ResponseBlock::Call(call.clone()),
            })
            .collect();
        ModelResponse { blocks, stop: self.stop_reason.clone(), usage: self.usage }
    }

    /// Why the model stopped.
    pub fn stop_reason(&self) -> &StopReason {
        &self.stop_reason
    }

    /// The calls in the model's order; a call's place in this order is what [`start`](Self::start)
    /// and [`answer`](Self::answer) take.
    pub fn calls(&self) -> impl Iterator<Item = (&ToolCall, &CallProgressSlot)> {
        self.blocks.iter().filter_map(|block| match block {
            OpenContentBlock::Call(call, slot) => Some((call, slot)),
            OpenContentBlock::Complete(_) => None,
        })
    }

    /// For each call, whether it has its result.
    pub fn answered(&self) -> Vec<bool> {
        self.calls().map(|(_, slot)| matches!(slot, CallProgressSlot::Done(_))).collect()
    }

    /// Records that a call begins. Does nothing for a call that is answered or that is not there.
    pub fn start(&mut self, index: usize) {
        if let Some(slot @ CallProgressSlot::Waiting) = self.progress_mut(index) {
            *slot = CallProgressSlot::Started;
        }
    }

    /// Records a call's result. The first result stands: a later one is dropped.
    pub fn answer(&mut self, index: usize, mut result: ToolResult) {
        if let Some(slot) = self.progress_mut(index)
            && !matches!(slot, CallProgressSlot::Done(_))
        {
            fix_media_types(&mut result);
            *slot = CallProgressSlot::Done(result);
        }
    }

    /// The finished turn. What is not answered yet gets an answer that tells the truth: *not run*
    /// for the given reason if it never started, *interrupted* if it did (R-50).
    pub fn close(self, reason: &str) -> AssistantTurn {
        let blocks = self
            .blocks
            .into_iter()
            .map(|block| match block {
                OpenContentBlock::Complete(block) => block,
                OpenContentBlock::Call(call, slot) => {
                    TurnContentBlock::Call(AnsweredCall { call, result: slot.into_result(reason) })
                }
            })
            .collect();
        AssistantTurn::with_calls(blocks, self.stop_reason, self.usage)
    }

    /// How far a call is; `None` if there is no such call.
    pub fn progress(&self, index: usize) -> Option<&CallProgressSlot> {
        match self.blocks.get(*self.call_positions.get(index)?)? {
            OpenContentBlock::Call(_, slot) => Some(slot),
            OpenContentBlock::Complete(_) => None,
        }
    }

    fn progress_mut(&mut self, index: usize) -> Option<&mut CallProgressSlot> {
        match self.blocks.get_mut(*self.call_positions.get(index)?)? {
            OpenContentBlock::Call(_, slot) => Some(slot),
            OpenContentBlock::Complete(_) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{CallId, ResultStatus};
    use super::*;

    fn response_with_calls(count: usize) -> ModelResponse {
        let call = |n: usize| ToolCall {
            id: CallId::new(format!("c{n}")),
            name: "read_file".into(),
            arguments: "{}".into(),
        };
        ModelResponse {
            blocks: (0..count).map(|n| ResponseBlock::Call(call(n))).collect(),
            ..ModelResponse::default()
        }
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
        assert_eq!(
            turn.calls().next().map(|answered| answered.result.text()),
            Some("no such file".into())
        );
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
        let response = ModelResponse {
            blocks: vec![ResponseBlock::Text("hello".into())],
            ..ModelResponse::default()
        };
        assert_eq!(OpenTurn::new(response.clone()).map(|_| ()), Err(response));
    }
}
