//! Tests of responses of OpenAI's Responses API.

use serde_json::{Value, json};

use super::super::stream::ResponsesStream;
use super::{input, thinking};
use crate::agent::ports::{ModelErrorKind, ResponseDelta};
use crate::conversation::{
    ModelReasoning, ModelResponse, OpenTurn, ResponseBlock, StopReason, TokenUsage, ToolResult,
    Transcript,
};
use crate::model::providers::failure::{AttemptFailure, Retryable, ServerEndpoint};
use crate::model::providers::sse::SseEvent;
use crate::model::providers::wire::{DecodeProgress, DeltaSink, StreamDecoder as _};
use crate::model::test_server::describe_delta;

fn endpoint() -> ServerEndpoint {
    ServerEndpoint {
        provider: "OpenAI",
        host: "api.example".into(),
        key_variable: "OPENAI_API_KEY",
        key: None,
    }
}

/// Decodes a stream of these events. Returns the result and the deltas.
fn read(events: &[Value]) -> (Result<ModelResponse, AttemptFailure>, Vec<String>) {
    let mut deltas = Vec::new();
    let mut on_delta = |delta: ResponseDelta<'_>| deltas.push(describe_delta(delta));
    let mut sink = DeltaSink::new(&mut on_delta, true);
    let mut stream = ResponsesStream::new(&endpoint());
    let mut outcome = Ok(());
    for event in events {
        match stream.decode(
            &SseEvent { name: String::new(), data: event.to_string(), ..SseEvent::default() },
            &mut sink,
        ) {
            Ok(DecodeProgress::More) => {}
            Ok(DecodeProgress::Done) => break,
            Err(failure) => {
                outcome = Err(failure);
                break;
            }
        }
    }
    (outcome.and_then(|()| stream.finish_reason()), deltas)
}

fn added(index: u64, item: Value) -> Value {
    json!({"type": "response.output_item.added", "output_index": index, "item": item})
}

fn done(index: u64, item: Value) -> Value {
    json!({"type": "response.output_item.done", "output_index": index, "item": item})
}

fn call(id: &str, name: &str, arguments: &str) -> Value {
    json!({
        "type": "function_call", "id": format!("fc_{id}"), "call_id": id, "name": name,
        "arguments": arguments,
    })
}

fn arguments_delta(index: u64, delta: &str) -> Value {
    json!({
        "type": "response.function_call_arguments.delta", "output_index": index, "item_id": "x",
        "delta": delta,
    })
}

fn text_delta(index: u64, delta: &str) -> Value {
    json!({
        "type": "response.output_text.delta", "output_index": index, "content_index": 0,
        "delta": delta,
    })
}

fn message(text: &str) -> Value {
    json!({
        "type": "message", "role": "assistant",
        "content": [{"type": "output_text", "text": text, "annotations": []}],
    })
}

fn completed() -> Value {
    let usage = json!({
        "input_tokens": 100, "input_tokens_details": {"cached_tokens": 60, "cache_write_tokens": 7},
        "output_tokens": 9,
    });
    json!({
        "type": "response.completed",
        "response": {"status": "completed", "output": [], "usage": usage},
    })
}

fn incomplete(reason: &str) -> Value {
    json!({
        "type": "response.incomplete",
        "response": {"status": "incomplete", "incomplete_details": {"reason": reason}},
    })
}

#[test]
fn r082_r090_r091_interleaved_calls_after_thinking_and_text() {
    let thinking_block = |data: &str| {
        json!({
            "type": "reasoning", "id": "rs_1",
            "summary": [{"type": "summary_text", "text": "So it is."}], "encrypted_content": data,
        })
    };
    let summary = |delta: &str| {
        json!({
            "type": "response.reasoning_summary_text.delta", "output_index": 0, "summary_index": 0,
            "delta": delta,
        })
    };
    let events = [
        json!({"type": "response.created", "response": {"status": "in_progress"}}),
        added(
            0,
            json!({
                "type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "not whole",
            }),
        ),
        summary("So "),
        summary("it is."),
        done(0, thinking_block("whole")),
        added(1, message("")),
        text_delta(1, "Let me "),
        text_delta(1, "look."),
        done(1, message("Let me look.")),
        added(2, call("a", "read_file", "")),
        added(3, call("b", " grep ", "")),
        arguments_delta(2, "{\"path\":"),
        arguments_delta(3, "{}"),
        arguments_delta(2, "1}"),
        done(3, call("b", "grep", "{}")),
        done(2, call("a", "read_file", "{\"path\":1}")),
        added(4, json!({"type": "web_search_call", "id": "ws"})),
        done(4, json!({"type": "web_search_call", "id": "ws"})),
        json!({"type": "response.something.new"}),
        completed(),
    ];
    let (response, deltas) = read(&events);
    let response = response.expect("complete");
    assert_eq!(
        deltas,
        [
            "reasoning So ",
            "reasoning it is.",
            "text Let me ",
            "text look.",
            "call read_file",
            "call grep"
        ]
    );
    assert_eq!(
        response.blocks[0],
        ResponseBlock::Reasoning(ModelReasoning::Sealed {
            id: "rs_1".into(),
            summary: vec!["So it is.".into()],
            data: "whole".into()
        })
    );
    let calls: Vec<_> = response
        .calls()
        .map(|call| (call.id.to_string(), call.name.as_str(), call.arguments.as_str()))
        .collect();
    assert_eq!(
        calls,
        [("a".to_owned(), "read_file", "{\"path\":1}"), ("b".to_owned(), "grep", "{}")]
    );
    assert_eq!((response.text().as_str(), &response.stop), ("Let me look.", &StopReason::Calls));
    assert_eq!(
        response.usage,
        TokenUsage {
            input: Some(100),
            output: Some(9),
            cached_input: Some(60),
            cache_write: Some(7)
        }
    );
    // Encode the response again: thinking, text, calls, results.
    let mut transcript = Transcript::new();
    transcript.begin_exchange("Go.");
    let mut turn = OpenTurn::new(response).expect("has calls");
    (0..2).for_each(|n| turn.answer(n, ToolResult::ok("found")));
    transcript.record(turn.close("unused"));
    let types = |item: &Value| {
        item["role"].as_str().or(item["type"].as_str()).unwrap_or_default().to_owned()
    };
    let sent: Vec<String> =
        input(&transcript, &thinking(), true).as_array().into_iter().flatten().map(types).collect();
    let call_and_output =
        ["function_call", "function_call", "function_call_output", "function_call_output"];
    assert_eq!(sent, [&["user", "reasoning", "assistant"][..], &call_and_output].concat());
}

#[test]
fn r083_without_its_last_event_there_is_no_response() {
    let events = [
        added(0, call("a", "bash", "")),
        arguments_delta(0, "{}"),
        done(0, call("a", "bash", "{}")),
    ];
    let (response, _) = read(&events);
    let failure = response.expect_err("incomplete response");
    assert_eq!((failure.kind, failure.retry), (ModelErrorKind::Malformed, Retryable::Yes(None)));
    // A terminal event does not complete an open call.
    let (response, _) =
        read(&[added(0, call("a", "bash", "")), arguments_delta(0, "{\"comm"), completed()]);
    assert!(response.expect_err("open call").message.contains("ended inside a tool call"));
}

#[test]
fn r079_the_reason_for_a_cut_off_response_is_reported() {
    let open = [
        added(0, message("")),
        text_delta(0, "I wri"),
        added(1, call("a", "bash", "")),
        arguments_delta(1, "{\"comm"),
    ];
    let (response, _) = read(&[&open[..], &[incomplete("max_output_tokens")]].concat());
    let response = response.expect("complete up to the limit");
    assert_eq!(
        (&response.stop, response.text().as_str(), response.calls().count()),
        (&StopReason::Length, "I wri", 1)
    );
    let (response, _) = read(&[&open[..2], &[incomplete("content_filter")]].concat());
    assert_eq!(response.expect("complete").stop, StopReason::Refused);
    // An unknown reason does not make the calls complete.
    let (response, _) = read(&[&open[..], &[incomplete("steered")]].concat());
    assert_eq!(response.expect("complete").stop, StopReason::Length);
    let (response, _) = read(&[&open[..2], &[incomplete("steered")]].concat());
    assert_eq!(response.expect("complete").stop, StopReason::Other("steered".into()));
    let refusal = json!({
        "type": "response.refusal.delta", "output_index": 0, "content_index": 0,
        "delta": "I cannot.",
    });
    let (response, deltas) =
        read(&[added(0, message("")), refusal, done(0, message("")), completed()]);
    assert_eq!(
        (response.expect("complete").stop, deltas),
        (StopReason::Refused, vec!["text I cannot.".to_owned()])
    );
}

#[test]
fn r084_errors_inside_the_stream() {
    let failed = |code: &str| {
        json!({
            "type": "response.failed",
            "response": {"status": "failed", "error": {"code": code, "message": "no"}},
        })
    };
    let table = [
        (failed("server_error"), ModelErrorKind::Unavailable, Retryable::Yes(None)),
        (failed("rate_limit_exceeded"), ModelErrorKind::Unavailable, Retryable::Yes(None)),
        (failed("invalid_prompt"), ModelErrorKind::Rejected, Retryable::No),
        (failed("context_length_exceeded"), ModelErrorKind::Overflow, Retryable::No),
        (
            json!({"type": "error", "code": "server_error", "message": "no", "param": null}),
            ModelErrorKind::Unavailable,
            Retryable::Yes(None),
        ),
        (
            json!({"type": "error", "error": {"code": "invalid_prompt", "message": "no"}}),
            ModelErrorKind::Rejected,
            Retryable::No,
        ),
        (
            json!({"type": "response.cancelled", "response": {}}),
            ModelErrorKind::Rejected,
            Retryable::No,
        ),
    ];
    for (event, kind, again) in table {
        let (response, _) = read(&[added(0, message("")), text_delta(0, "I"), event.clone()]);
        let failure = response.expect_err("an error");
        assert_eq!((failure.kind, failure.retry), (kind, again), "{event}");
    }
}

#[test]
fn r082_complete_items_equal_items_in_pieces() {
    // Items without deltas, and a response that is only in the terminal event.
    let whole = json!({
        "type": "response.completed",
        "response": {"output": [message("Hello."), call("a", "bash", "{}")]},
    });
    let streams = [
        vec![done(0, message("Hello.")), done(1, call("a", "bash", "{}")), completed()],
        vec![whole],
    ];
    for events in streams {
        let (response, deltas) = read(&events);
        let response = response.expect("complete");
        assert_eq!(
            (response.text().as_str(), response.calls().count(), &response.stop),
            ("Hello.", 1, &StopReason::Calls)
        );
        assert_eq!(deltas, ["text Hello.", "call bash"]);
    }
}

#[test]
fn r082_hostile_indices_and_pieces_are_no_more_than_names() {
    let (response, _) = read(&[
        added(u64::MAX, message("")),
        text_delta(u64::MAX, "x"),
        done(u64::MAX, message("x")),
        completed(),
    ]);
    assert_eq!(response.expect("complete").text(), "x");
    for events in [
        vec![text_delta(3, "x")],
        vec![added(0, message("")), added(0, message(""))],
        vec![json!({"type": "response.output_item.added"})],
    ] {
        let (response, _) = read(&events);
        assert_eq!(response.expect_err("malformed").kind, ModelErrorKind::Malformed, "{events:?}");
    }
    // Deltas for an item of another type are ignored.
    let (response, deltas) = read(&[
        added(0, message("")),
        arguments_delta(0, "{}"),
        text_delta(0, "x"),
        done(0, message("x")),
        completed(),
    ]);
    assert_eq!(
        (response.expect("complete").text(), deltas),
        ("x".to_owned(), vec!["text x".to_owned()])
    );
}

#[test]
fn r090_plain_thinking_is_shown_and_not_sent_back() {
    let thinking_block = json!({
        "type": "response.reasoning_text.delta", "output_index": 0, "content_index": 0,
        "delta": "Hm.",
    });
    let item = json!({
        "type": "reasoning", "id": "rs_1", "summary": [],
        "content": [{"type": "reasoning_text", "text": "Hm."}],
    });
    let (response, deltas) = read(&[
        added(0, item.clone()),
        thinking_block,
        done(0, item),
        added(1, message("")),
        text_delta(1, "x"),
        done(1, message("x")),
        completed(),
    ]);
    let response = response.expect("complete");
    assert_eq!(
        response.blocks[0],
        ResponseBlock::Reasoning(ModelReasoning::Text { text: "Hm.".into(), signature: None })
    );
    assert!(deltas.contains(&"text x".to_owned()));
}

/// Asserts that the decoded response has exactly these calls.
fn has_calls(events: &[Value], expected: &[(&str, &str)]) {
    let response = read(events).0.expect("complete");
    let calls: Vec<_> =
        response.calls().map(|call| (call.id.as_str(), call.arguments.as_str())).collect();
    assert_eq!(calls, expected, "{events:?}");
}

#[test]
fn r082_a_call_is_one_call_wherever_the_whole_response_lists_it() {
    let completed =
        |output: &[Value]| json!({"type": "response.completed", "response": {"output": output}});
    let once = call("a", "bash", "{}");
    let start = added(1, call("a", "bash", ""));
    // Indexed from 1, but listed from 0.
    has_calls(
        &[
            start.clone(),
            arguments_delta(1, "{}"),
            done(1, once.clone()),
            completed(std::slice::from_ref(&once)),
        ],
        &[("a", "{}")],
    );
    // Listed in another order.
    let (first, second) = (call("a", "bash", "{\"n\":1}"), call("b", "bash", "{\"n\":2}"));
    let numbered = [done(0, first.clone()), done(1, second.clone()), completed(&[second, first])];
    has_calls(&numbered, &[("a", "{\"n\":1}"), ("b", "{\"n\":2}")]);
    // Complete only in the terminal event, or under another index.
    has_calls(&[start.clone(), completed(std::slice::from_ref(&once))], &[("a", "{}")]);
    has_calls(&[start, done(4, once.clone()), completed(&[])], &[("a", "{}")]);
    // Text as deltas, and a call that is only in the terminal event.
    has_calls(
        &[
            added(0, message("")),
            text_delta(0, "I look."),
            done(0, message("I look.")),
            completed(&[message("I look."), once]),
        ],
        &[("a", "{}")],
    );
}

#[test]
fn r082_items_without_numbers_are_known_by_their_names() {
    let event = |kind: &str, item: Value| {
        json!({
            "type": format!("response.output_item.{kind}"), "item": item,
        })
    };
    let delta = |kind: &str, id: &str, delta: &str| {
        json!({
            "type": format!("response.{kind}.delta"), "item_id": id, "delta": delta,
        })
    };
    let named = |id: &str, text: &str| {
        json!({
            "type": "message", "id": id, "content": [{"type": "output_text", "text": text}],
        })
    };
    let call = |id: &str, arguments: &str| {
        json!({
            "type": "function_call", "call_id": id, "name": "bash", "arguments": arguments,
        })
    };
    let events = [
        event("added", named("m", "")),
        delta("output_text", "m", "Both."),
        event("added", call("fc_a", "")),
        event("added", call("fc_b", "")),
        delta("function_call_arguments", "fc_a", "{\"n\":"),
        delta("function_call_arguments", "fc_b", "{}"),
        delta("function_call_arguments", "fc_a", "1}"),
        event("done", named("m", "Both.")),
        event("done", call("fc_a", "{\"n\":1}")),
        event("done", call("fc_b", "{}")),
        json!({
            "type": "response.completed",
            "response": {"output": [
                named("m", "Both."), call("fc_a", "{\"n\":1}"), call("fc_b", "{}"),
            ]},
        }),
    ];
    has_calls(&events, &[("fc_a", "{\"n\":1}"), ("fc_b", "{}")]);
    let (response, deltas) = read(&events);
    assert_eq!((response.expect("complete").text().as_str(), deltas.len()), ("Both.", 3));
    // Without index and id, the item that started last is meant.
    let (response, deltas) = read(&[
        event("added", message("")),
        delta("output_text", "", "x"),
        event("done", message("x")),
        completed(),
    ]);
    assert_eq!(
        (response.expect("complete").text(), deltas),
        ("x".to_owned(), vec!["text x".to_owned()])
    );
}

#[test]
fn r130_texts_of_one_response_are_separated_on_screen_and_in_the_response() {
    let remark = [
        added(0, message("")),
        text_delta(0, "Let me"),
        text_delta(0, " look."),
        done(0, message("Let me look.")),
    ];
    let answers = [
        vec![added(1, message("")), text_delta(1, "It is 4."), done(1, message("It is 4."))],
        vec![done(1, message("It is 4."))],
    ];
    for answer in answers {
        let (response, deltas) = read(&[&remark[..], &answer, &[completed()]].concat());
        assert_eq!(response.expect("complete").text(), "Let me look.\n\nIt is 4.");
        assert_eq!(
            deltas.iter().filter_map(|deltas| deltas.strip_prefix("text ")).collect::<String>(),
            "Let me look.\n\nIt is 4."
        );
    }
}
