//! A turn whose calls are still getting their results.

use super::ids::CallIdAllocator;
use super::repair::fix_media_types;
use super::turn::{AnsweredCall, TurnContentBlock};
use super::{
    AssistantTurn, ModelResponse, ResponseBlock, StopReason, TokenUsage, ToolCall, ToolResult,
};

/// A response with calls that is not yet part of the transcript.
///
/// [`close`](Self::close) is the only way to complete it, and gives every call a result. So a
/// transcript cannot contain a call without a result.
///
/// # Examples
///
/// A closed turn becomes part of the transcript:
///
/// ```
/// use cofferdam::conversation::{
///     AssistantTurn, OpenTurn, ToolResult, Transcript, TurnContentBlock,
/// };
///
/// fn record(transcript: &mut Transcript, mut open: OpenTurn) {
///     open.answer(0, ToolResult::ok("two files"));
///     let turn: AssistantTurn = open.close("the request is over");
///     let _: &[TurnContentBlock] = turn.blocks();
///     transcript.record(turn);
/// }
/// ```
///
/// The compiler rejects every other order (R-12). A turn with unfinished calls cannot enter the
/// transcript:
///
/// ```compile_fail,E0308
/// use cofferdam::conversation::{OpenTurn, Transcript};
///
/// fn r012_an_open_turn_cannot_be_recorded(transcript: &mut Transcript, open: OpenTurn) {
///     transcript.record(open);
/// }
/// ```
///
/// A closed turn takes no further result:
///
/// ```compile_fail,E0382
/// use cofferdam::conversation::{AssistantTurn, OpenTurn, ToolResult};
///
/// fn r012_a_closed_turn_stays_closed(mut open: OpenTurn) -> AssistantTurn {
///     let turn = open.close("the request is over");
///     open.answer(0, ToolResult::ok("too late"));
///     turn
/// }
/// ```
///
/// A turn cannot be assembled from parts, such as a call without its result:
///
/// ```compile_fail,E0451
/// use cofferdam::conversation::{AssistantTurn, TurnContentBlock};
///
/// fn r012_a_turn_cannot_be_built_from_parts(
///     turn: AssistantTurn,
///     blocks: Vec<TurnContentBlock>,
/// ) -> AssistantTurn {
///     AssistantTurn { blocks, ..turn }
/// }
/// ```
#[derive(Debug)]
#[must_use = "an open turn must be closed and recorded in the transcript"]
pub struct OpenTurn {
    blocks: Vec<OpenContentBlock>,
    /// The position of each call among the blocks.
    call_positions: Vec<usize>,
    stop_reason: StopReason,
    usage: TokenUsage,
}

#[derive(Debug)]
enum OpenContentBlock {
    Complete(TurnContentBlock),
    Call(ToolCall, CallProgressSlot),
}

/// The progress of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CallProgressSlot {
    /// The call has not started.
    Waiting,
    /// The call has started and may have had effects.
    Started,
    /// The call has its result.
    Done(ToolResult),
}

impl CallProgressSlot {
    /// Returns the result of the call, or a truthful one if it has none.
    ///
    /// Every way to end a turn uses this function for calls without a result (R-50, R-59).
    fn into_result(self, reason: &str) -> ToolResult {
        match self {
            Self::Waiting => ToolResult::not_run(reason),
            Self::Started => ToolResult::interrupted(),
            Self::Done(result) => result,
        }
    }
}

impl OpenTurn {
    /// Opens a turn for a response that has calls.
    ///
    /// The IDs become distinct within the turn (R-21).
    /// [`SentTranscript::open_turn`](super::SentTranscript::open_turn) makes them distinct within
    /// the conversation, so that the history and the provider use the same IDs.
    ///
    /// # Errors
    /// The response has no calls; it is returned unchanged.
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
            |(position, block)| matches!(block, &OpenContentBlock::Call(..)).then_some(position);
        let call_positions = blocks.iter().enumerate().filter_map(is_call).collect();
        Ok(Self { blocks, call_positions, stop_reason: response.stop, usage: response.usage })
    }

    /// Returns the response that the turn was opened for, with the current IDs.
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

    /// Returns the reason why the model stopped.
    pub fn stop_reason(&self) -> &StopReason {
        &self.stop_reason
    }

    /// Returns the calls in the model's order.
    ///
    /// The index in this order is the argument of [`start`](Self::start) and
    /// [`answer`](Self::answer).
    pub fn calls(&self) -> impl Iterator<Item = (&ToolCall, &CallProgressSlot)> {
        self.blocks.iter().filter_map(|block| match block {
            OpenContentBlock::Call(call, slot) => Some((call, slot)),
            OpenContentBlock::Complete(_) => None,
        })
    }

    /// Returns, for each call, whether it has its result.
    pub fn answered(&self) -> Vec<bool> {
        self.calls().map(|(_, slot)| matches!(slot, CallProgressSlot::Done(_))).collect()
    }

    /// Records that a call starts.
    ///
    /// Does nothing if the call has a result or does not exist.
    pub fn start(&mut self, index: usize) {
        if let Some(slot @ CallProgressSlot::Waiting) = self.progress_mut(index) {
            *slot = CallProgressSlot::Started;
        }
    }

    /// Records the result of a call.
    ///
    /// Only the first result counts, and any later one is ignored.
    pub fn answer(&mut self, index: usize, mut result: ToolResult) {
        if let Some(slot) = self.progress_mut(index)
            && !matches!(slot, CallProgressSlot::Done(_))
        {
            fix_media_types(&mut result);
            *slot = CallProgressSlot::Done(result);
        }
    }

    /// Completes the turn.
    ///
    /// A call without a result gets one: *not run* with the given reason if it never started, and
    /// *interrupted* if it did (R-50).
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

    /// Returns the progress of a call; `None` if there is no such call.
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
        let mut turn = OpenTurn::new(response_with_calls(3)).expect("has calls");
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
        let mut turn = OpenTurn::new(response_with_calls(1)).expect("has calls");
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
        let mut turn = OpenTurn::new(response.clone()).expect("has calls");
        turn.answer(0, ToolResult::ok("done"));
        assert_eq!(turn.response(), response);
    }

    #[test]
    fn a_response_without_calls_is_returned() {
        let response = ModelResponse {
            blocks: vec![ResponseBlock::Text("hello".into())],
            ..ModelResponse::default()
        };
        assert_eq!(OpenTurn::new(response.clone()).map(|_| ()), Err(response));
    }
}
