//! Short constructors of conversations for tests.

use super::{
    AssistantTurn, CallId, ModelResponse, OpenTurn, ResponseBlock, ResultStatus, ToolCall,
    ToolResult, Transcript, UserExchange,
};

/// Creates a turn with an answer and no calls.
pub(crate) fn text_turn(text: &str) -> AssistantTurn {
    let response = ModelResponse {
        blocks: vec![ResponseBlock::Text(text.into())],
        ..ModelResponse::default()
    };
    AssistantTurn::without_calls(response).expect("has text")
}

/// Creates a turn with one call, whose result has this many bytes.
pub(crate) fn tool_turn(bytes: usize) -> AssistantTurn {
    turn_with_result(ToolResult::ok("x".repeat(bytes)))
}

/// Creates a turn with a call that the user rejected with a text of this many bytes.
pub(crate) fn rejected_turn(bytes: usize) -> AssistantTurn {
    turn_with_result(ToolResult::new(ResultStatus::Rejected, format!("no: {}", "x".repeat(bytes))))
}

/// Creates a turn with one call, whose result is this text.
pub(crate) fn tool_turn_with(text: &str) -> AssistantTurn {
    turn_with_result(ToolResult::ok(text))
}

fn turn_with_result(result: ToolResult) -> AssistantTurn {
    let call = ToolCall { id: CallId::new("c"), name: "read".into(), arguments: "{}".into() };
    let mut turn = OpenTurn::new(ModelResponse {
        blocks: vec![ResponseBlock::Call(call)],
        ..ModelResponse::default()
    })
    .expect("has a call");
    turn.answer(0, result);
    turn.close("unused")
}

/// Creates a transcript from prompts and the turns that followed each.
pub(crate) fn transcript_of(exchanges: &[(&str, Vec<AssistantTurn>)]) -> Transcript {
    let mut transcript = Transcript::new();
    for (prompt, turns) in exchanges {
        transcript.begin_exchange(*prompt);
        for turn in turns {
            transcript.record(turn.clone());
        }
    }
    transcript
}

/// Creates a transcript that breaks a rule, which only this module can do.
pub(crate) fn invalid_transcript() -> Transcript {
    Transcript::from_exchanges(vec![UserExchange::new(" ".into())])
}
