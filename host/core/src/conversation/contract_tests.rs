//! Tests of small promises of the types: texts, counts, positions, and rules that are checked.

use super::repair::UncheckedTurn;
use super::test_util::{invalid_transcript, text_turn, tool_turn, transcript_of};
use super::*;

fn call(id: &str) -> ToolCall {
    ToolCall { id: CallId::new(id), name: "name".into(), arguments: "{\"a\": 1}".into() }
}

fn answered(id: &str, content: Vec<ResultContent>) -> TurnContentBlock {
    let result = ToolResult { status: ResultStatus::Ok, content };
    TurnContentBlock::Call(AnsweredCall { call: call(id), result })
}

fn response(blocks: Vec<ResponseBlock>) -> ModelResponse {
    ModelResponse { blocks, ..ModelResponse::default() }
}

fn usage(input: u64) -> TokenUsage {
    TokenUsage { input: Some(input), ..TokenUsage::default() }
}

/// Returns a transcript with one turn of these blocks, without any repair.
fn transcript_with(blocks: Vec<TurnContentBlock>) -> Transcript {
    let mut exchange = UserExchange::new("go".into());
    let turn = AssistantTurn::with_calls(blocks, StopReason::Calls, TokenUsage::default());
    exchange.add_turns([turn]);
    let mut transcript = transcript_of(&[("before", vec![text_turn("done")])]);
    transcript.begin_exchange("go");
    let exchanges = [transcript.exchanges().first().cloned(), Some(exchange)];
    Transcript::from_exchanges(exchanges.into_iter().flatten().collect())
}

#[test]
fn the_text_of_a_response_is_its_text_blocks() {
    let blocks = vec![
        ResponseBlock::Text("one, ".into()),
        ResponseBlock::Reasoning(ModelReasoning::Opaque { data: "hidden".into() }),
        ResponseBlock::Call(call("c")),
        ResponseBlock::Text("two".into()),
    ];
    assert_eq!(response(blocks).text(), "one, two");
}

#[test]
fn a_stop_reason_has_the_name_that_is_saved() {
    for reason in [
        StopReason::End,
        StopReason::Calls,
        StopReason::Length,
        StopReason::Refused,
        StopReason::Interrupted,
    ] {
        assert_eq!(serde_json::to_value(&reason).expect("JSON"), reason.name());
    }
    assert_eq!(StopReason::Other("guardrail".into()).name(), "guardrail");
}

#[test]
fn token_counts_are_added_where_they_are_known() {
    let known = TokenUsage { output: Some(5), ..usage(10) };
    assert!(TokenUsage::default().is_unknown());
    assert!(!known.is_unknown() && !usage(0).is_unknown());
    assert_eq!(known.saturating_add(TokenUsage::default()), known);
    assert_eq!(known.saturating_add(usage(u64::MAX)).input, Some(u64::MAX));
    assert_eq!(known.saturating_add(usage(1)), TokenUsage { output: Some(5), ..usage(11) });
}

#[test]
fn every_status_but_ok_is_an_error_for_the_provider() {
    for (status, expected) in [
        (ResultStatus::Ok, false),
        (ResultStatus::Error, true),
        (ResultStatus::Rejected, true),
        (ResultStatus::NotRun, true),
        (ResultStatus::Interrupted, true),
    ] {
        assert_eq!(status.is_error(), expected, "{status:?}");
    }
}

#[test]
fn the_texts_of_a_result_are_on_separate_lines() {
    let text = |parts: &[&str]| {
        let content = parts.iter().map(|part| ResultContent::Text((*part).to_owned())).collect();
        ToolResult { status: ResultStatus::Ok, content }.text()
    };
    assert_eq!(text(&["a", "b"]), "a\nb");
    assert_eq!(text(&["a\n", "b\n"]), "a\nb\n");
    assert_eq!(text(&["", "b"]), "b");
}

#[test]
fn an_interrupted_text_is_a_turn_without_calls() {
    let turn = AssistantTurn::from_interrupted_text("half".into()).expect("has text");
    assert_eq!((turn.text().as_str(), turn.has_calls()), ("half", false));
    assert_eq!(turn.stop_reason(), &StopReason::Interrupted);
    assert!(turn.usage().is_unknown());
}

#[test]
fn a_turn_keeps_the_stop_reason_and_the_usage_of_its_response() {
    let mut open = OpenTurn::new(ModelResponse {
        blocks: vec![ResponseBlock::Call(call("a")), ResponseBlock::Call(call("b"))],
        stop: StopReason::Length,
        usage: usage(7),
    })
    .expect("has calls");
    assert_eq!(open.stop_reason(), &StopReason::Length);
    assert_eq!(open.answered(), [false, false]);
    open.answer(1, ToolResult::ok("first"));
    open.answer(1, ToolResult::ok("second"));
    assert_eq!(open.answered(), [false, true]);
    assert_eq!(open.progress(1), Some(&CallProgressSlot::Done(ToolResult::ok("first"))));
    assert_eq!(open.progress(2), None);
    let turn = open.close("the user stopped");
    assert_eq!((turn.stop_reason(), turn.usage()), (&StopReason::Length, usage(7)));
}

#[test]
fn the_size_of_a_turn_is_that_of_its_parts() {
    let overhead = estimate::prompt("");
    let text = |bytes: usize| "x".repeat(bytes);
    let image = |data: &str| ResultContent::Image {
        media_type: "image/png".into(),
        base64: data.to_owned(),
    };
    let reasoning = |reasoning| TurnContentBlock::Reasoning(reasoning);
    let table = [
        (TurnContentBlock::Text(text(40)), 10),
        (reasoning(ModelReasoning::Opaque { data: text(40) }), 10),
        (reasoning(ModelReasoning::Text { text: text(40), signature: None }), 10),
        (reasoning(ModelReasoning::Text { text: text(40), signature: Some(text(20)) }), 15),
        (
            reasoning(ModelReasoning::Sealed {
                id: "r".into(),
                summary: vec![text(8), text(12)],
                data: text(40),
            }),
            15,
        ),
        // Two messages, the name and the arguments: 4 and 8 bytes.
        (answered("c", vec![]), 2 * overhead + 1 + 2),
        (answered("c", vec![ResultContent::Text(text(40))]), 2 * overhead + 3 + 10),
        (answered("c", vec![image("A")]), 2 * overhead + 3 + 1_500),
    ];
    for (block, expected) in table {
        assert_eq!(
            estimate::blocks(std::slice::from_ref(&block)),
            overhead + expected,
            "{block:?}"
        );
    }
}

#[test]
fn an_estimate_is_corrected_only_by_a_count() {
    let mut transcript = Transcript::new();
    assert_eq!(transcript.scale().apply(100), 100);
    transcript.calibrate(100, 200);
    assert_eq!(transcript.scale().apply(100), 200);
    transcript.calibrate(100, 0);
    assert_eq!(transcript.scale().apply(100), 200, "a count of zero is no count");
}

#[test]
fn usage_in_addition_to_the_turns_belongs_to_the_newest_exchange() {
    let mut transcript = Transcript::new();
    transcript.add_usage(usage(1));
    assert!(transcript.is_empty());
    for (prompt, tokens) in [("one", 2), ("two", 3)] {
        transcript.begin_exchange(prompt);
        transcript.add_usage(usage(tokens));
    }
    assert!(!transcript.is_empty());
    let usages: Vec<Vec<TokenUsage>> =
        transcript.exchanges().iter().map(|exchange| exchange.usages().collect()).collect();
    assert_eq!(usages, [vec![usage(2)], vec![usage(3)]]);
}

#[test]
fn the_summary_is_sent_with_the_turns_behind_it_at_their_positions() {
    let mut transcript = transcript_of(&[
        ("one", vec![tool_turn(8_000), tool_turn(8_000), text_turn("done")]),
        ("two", vec![text_turn("done")]),
    ]);
    assert!(transcript.summary().is_none() && transcript.sent().summary().is_none());
    let until = TurnIndex { exchange: 0, turn: 2 };
    assert!(transcript.apply_summary(transcript.summary_until(until, "It was so.".into())));
    for summary in [transcript.summary(), transcript.sent().summary()] {
        assert_eq!(summary.map(|summary| summary.text.as_str()), Some("It was so."));
    }
    let sent: Vec<TurnIndex> =
        transcript.sent().exchanges().flat_map(|(_, turns)| turns.map(SentTurn::index)).collect();
    assert_eq!(sent, [until, TurnIndex { exchange: 1, turn: 0 }]);
}

#[test]
fn r060_a_violation_names_its_position_and_the_rule() {
    let violation = |transcript: &Transcript| validate(transcript).unwrap_err().to_string();
    assert_eq!(violation(&invalid_transcript()), "exchange 1, turn 0: the prompt is blank");
    let image = ResultContent::Image { media_type: String::new(), base64: "A".into() };
    let only_reasoning = ModelReasoning::Opaque { data: "hidden".into() };
    let table = [
        (vec![answered("c", vec![image])], "an image has no media type"),
        (vec![TurnContentBlock::Reasoning(only_reasoning)], "a turn has neither text nor a call"),
    ];
    for (blocks, rule) in table {
        assert_eq!(violation(&transcript_with(blocks)), format!("exchange 2, turn 1: {rule}"));
    }
    let right = transcript_with(vec![answered("c", vec![ResultContent::Text("x".into())])]);
    assert_eq!(validate(&right), Ok(()));
}

#[test]
fn r021_calls_of_a_repaired_transcript_are_distinct() {
    let turn = |id: &str| {
        let text = serde_json::json!({
            "blocks": [{"call": {
                "call": {"id": id, "name": "n", "arguments": ""},
                "result": {"status": "ok", "content": [{"text": "x"}]},
            }}],
            "stop": "calls",
            "usage": {},
        });
        let _: UncheckedTurn = serde_json::from_value(text.clone()).expect("a turn");
        serde_json::from_value::<AssistantTurn>(text).expect("a turn")
    };
    let message = FoundMessage {
        prompt: "go".into(),
        turns: vec![turn("c"), turn("c")],
        overhead: Vec::new(),
    };
    let transcript = Transcript::assemble([message]);
    assert_eq!(validate(&transcript), Ok(()));
    // A new response gets an ID that no earlier call has.
    let open = transcript.sent().open_turn(response(vec![ResponseBlock::Call(call("c"))]));
    let ids: Vec<String> =
        open.expect("has a call").calls().map(|(call, _)| call.id.to_string()).collect();
    assert_eq!(ids, ["c_3"]);
}

#[test]
fn a_blank_message_without_turns_is_no_exchange() {
    let message =
        |prompt: &str, turns| FoundMessage { prompt: prompt.into(), turns, overhead: Vec::new() };
    assert!(Transcript::assemble([message(" ", vec![])]).is_empty());
    let lost = Transcript::assemble([message(" ", vec![text_turn("an answer")])]);
    assert_eq!((lost.exchanges().len(), validate(&lost)), (1, Ok(())));
    let later = [message("go", vec![]), message(" ", vec![text_turn("an answer")])];
    assert_eq!(Transcript::assemble(later).exchanges().len(), 1);
}

#[test]
fn a_found_turn_without_calls_is_merged_with_the_next_one() {
    let message =
        |prompt: &str, turns| FoundMessage { prompt: prompt.into(), turns, overhead: Vec::new() };
    let transcript = Transcript::assemble([
        message("go", vec![text_turn("one, "), text_turn("two, "), tool_turn(1), tool_turn(1)]),
        message(" ", vec![text_turn("three, ")]),
        message(" ", vec![text_turn("four")]),
    ]);
    let turns: Vec<(String, bool)> = transcript.exchanges()[0]
        .turns()
        .iter()
        .map(|turn| (turn.text(), turn.has_calls()))
        .collect();
    let expected = [("one, two, ", true), ("", true), ("three, four", false)];
    assert_eq!(turns, expected.map(|(text, has_calls)| (text.to_owned(), has_calls)));
}
