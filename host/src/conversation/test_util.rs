//! Conversations for tests, in a line each.

use super::{
    AssistantTurn, CallId, ModelResponse, OpenTurn, ResponseBlock, ResultStatus, ToolCall,
    ToolResult, Transcript, UserExchange,
};

/// An answer.
pub(crate) fn text_turn(text: &str) -> AssistantTurn {
    let response = ModelResponse {
        blocks: vec![ResponseBlock::Text(text.into())],
        ..ModelResponse::default()
    };
    AssistantTurn::without_calls(response).expect("it has text")
}

/// A turn with one call, whose result is of so many bytes.
pub(crate) fn tool_turn(bytes: usize) -> AssistantTurn {
    turn_with_result(ToolResult::ok("x".repeat(bytes)))
}

/// A turn with a call that the user rejected in so many words.
pub(crate) fn rejected_turn(bytes: usize) -> AssistantTurn {
    turn_with_result(ToolResult::new(ResultStatus::Rejected, format!("no: {}", "x".repeat(bytes))))
}

/// A turn with one call, whose result is this text.
pub(crate) fn tool_turn_with(text: &str) -> AssistantTurn {
    turn_with_result(ToolResult::ok(text))
}

fn turn_with_result(result: ToolResult) -> AssistantTurn {
    let call = ToolCall { id: CallId::new("c"), name: "read".into(), arguments: "{}".into() };
    let mut turn = OpenTurn::new(ModelResponse {
        blocks: vec![ResponseBlock::Call(call)],
        ..ModelResponse::default()
    })
    .expect("it has a call");
    turn.answer(0, result);
    turn.close("unused")
}

/// What the user said, and what followed.
pub(crate) fn transcript_of(exchanges: &[(&str, Vec<AssistantTurn>)]) -> Transcript {
    let mut transcript = Transcript::new();
    for (prompt, turns) in exchanges {
        transcript.begin_exchange(*prompt);
        turns.iter().cloned().for_each(|turn| transcript.record(turn));
    }
    transcript
}

/// One that breaks a rule, as only this room could make it.
pub(crate) fn invalid_transcript() -> Transcript {
    Transcript::from_exchanges(vec![UserExchange::new(" ".into())])
}
