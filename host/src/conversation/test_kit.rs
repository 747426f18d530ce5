//! Conversations for tests, in a line each.

use super::{Call, CallId, Exchange, OpenTurn, Response, ResponseBlock, ResultStatus, ToolResult, Transcript, Turn};

/// An answer.
pub(crate) fn said(text: &str) -> Turn {
    let response = Response { blocks: vec![ResponseBlock::Text(text.into())], ..Response::default() };
    Turn::without_calls(response).expect("it has text")
}

/// A turn with one call, whose result is of so many bytes.
pub(crate) fn worked(bytes: usize) -> Turn {
    answered(ToolResult::ok("x".repeat(bytes)))
}

/// A turn with a call that the user rejected in so many words.
pub(crate) fn rejected(bytes: usize) -> Turn {
    answered(ToolResult::with(ResultStatus::Rejected, format!("no: {}", "x".repeat(bytes))))
}

/// A turn with one call, whose result is this text.
pub(crate) fn answered_with(text: &str) -> Turn {
    answered(ToolResult::ok(text))
}

fn answered(result: ToolResult) -> Turn {
    let call = Call { id: CallId::new("c"), name: "read".into(), arguments: "{}".into() };
    let mut turn = OpenTurn::new(Response { blocks: vec![ResponseBlock::Call(call)], ..Response::default() }).expect("it has a call");
    turn.answer(0, result);
    turn.close("unused")
}

/// What the user said, and what followed.
pub(crate) fn conversation(exchanges: &[(&str, Vec<Turn>)]) -> Transcript {
    let mut transcript = Transcript::new();
    for (prompt, turns) in exchanges {
        transcript.begin(*prompt);
        turns.iter().cloned().for_each(|turn| transcript.record(turn));
    }
    transcript
}

/// One that breaks a rule, as only this room could make it.
pub(crate) fn broken() -> Transcript {
    Transcript::of(vec![Exchange::begun(" ".into())])
}
