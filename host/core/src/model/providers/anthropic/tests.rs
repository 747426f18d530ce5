//! Tests of requests and responses of Anthropic's Messages API.

use serde_json::{Value, json};

use super::request::{self, RequestShape};
use super::stream::AnthropicStream;
use crate::agent::ports::{ModelErrorKind, ResponseDelta};
use crate::conversation::{
    CallId, ModelReasoning, ModelResponse, OpenTurn, ResponseBlock, StopReason, TokenUsage,
    ToolCall, Transcript,
};
use crate::model::providers::failure::{AttemptFailure, Retryable, ServerEndpoint};
use crate::model::providers::sse::SseEvent;
use crate::model::providers::wire::{DecodeProgress, DeltaSink, StreamDecoder as _};
use crate::model::test_server::{
    describe_delta, empty_request, full_request, full_transcript, pruned_transcript, two_tools,
};

const SHAPE: RequestShape<'_> = RequestShape {
    model: "claude-x",
    max_tokens: 1_000,
    adaptive_thinking: false,
    include_thinking: true,
};

#[test]
fn r005_r009_r055_r081_r092_a_whole_conversation_on_the_wire() {
    let (transcript, tools) = (full_transcript(), two_tools());
    let request = full_request(&transcript, &tools);
    let schema = json!({"type": "object", "properties": {"path": {"type": "string"}}});
    let cache = json!({"type": "ephemeral"});
    let expected = json!({
        "model": "claude-x",
        "max_tokens": 1_000,
        "stream": true,
        "system": [{"type": "text", "text": "You are careful.", "cache_control": cache}],
        "tools": [
            {"name": "list_dir", "description": "Lists a folder.", "input_schema": schema},
            {"name": "bash", "description": "", "input_schema": schema, "cache_control": cache},
        ],
        "tool_choice": {"type": "none"},
        "messages": [
            {
                "role": "user",
                "content": [
                    {"type": "text", "text": "Are you there?"},
                    {"type": "text", "text": "What is in here?"},
                ],
            },
            {"role": "assistant", "content": [
                {"type": "thinking", "thinking": "I should look.", "signature": "sig"},
                {"type": "redacted_thinking", "data": "opaque"},
                {"type": "text", "text": "Let me look."},
                {
                    "type": "tool_use", "id": "c1", "name": "list_dir",
                    "input": {"path": ".", "n": 1.0},
                },
                {"type": "tool_use", "id": "c2", "name": "todo", "input": {}},
                {
                    "type": "tool_use", "id": "c3", "name": "see_this",
                    "input": {"unparsed_arguments": "{\"a\":1}{\"b\":2}"},
                },
            ]},
            {"role": "user", "content": [
                {"type": "tool_result", "tool_use_id": "c1", "content": [
                    {"type": "text", "text": "a.rs"},
                    {
                        "type": "image",
                        "source": {
                            "type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo=",
                        },
                    },
                ]},
                {
                    "type": "tool_result", "tool_use_id": "c2",
                    "content": [{"type": "text", "text": "(no output)"}],
                },
                {"type": "tool_result", "tool_use_id": "c3", "is_error": true, "content": [
                    {"type": "text", "text": "no such tool"},
                    {"type": "text", "text": "[image, image/png, omitted from an error]"},
                ]},
            ]},
            {"role": "assistant", "content": [{"type": "text", "text": "One file."}]},
            {"role": "user", "content": [
                {"type": "text", "text": "Thanks.", "cache_control": cache},
                {"type": "text", "text": "Be brief."},
            ]},
        ],
    });
    assert_eq!(request::body(&SHAPE, &request), expected);
}

#[test]
fn r055_results_stand_before_text_in_one_message() {
    let mut transcript = Transcript::new();
    for exchange in &full_transcript().exchanges()[1..2] {
        transcript.begin_exchange(exchange.prompt());
        transcript.record(exchange.turns()[0].clone());
    }
    transcript.begin_exchange("Never mind.");
    let body = request::body(&SHAPE, &empty_request(&transcript));
    let last = body["messages"][2]["content"].as_array().expect("blocks");
    let kinds: Vec<_> =
        last.iter().map(|block| block["type"].as_str().unwrap_or_default()).collect();
    assert_eq!(kinds, ["tool_result", "tool_result", "tool_result", "text"]);
    assert_eq!(last[3]["cache_control"], json!({"type": "ephemeral"}));
    assert_eq!(body.get("system"), None);
    assert_eq!(body.get("tools"), None);
}

#[test]
fn r021_ids_of_other_providers_are_converted() {
    let mut transcript = Transcript::new();
    transcript.begin_exchange("Go.");
    let call = |id: &str| {
        ResponseBlock::Call(ToolCall {
            id: CallId::new(id),
            name: "grep".into(),
            arguments: "{}".into(),
        })
    };
    let blocks = vec![call("functions.grep:0"), call("functions_grep_0"), call("c1")];
    transcript.record(
        OpenTurn::new(ModelResponse { blocks, ..ModelResponse::default() })
            .expect("has calls")
            .close("unused"),
    );
    let messages = request::body(&SHAPE, &empty_request(&transcript))["messages"].clone();
    let ids = |message: usize, key: &str| -> Vec<String> {
        let blocks = messages[message]["content"].as_array().into_iter().flatten();
        blocks.filter_map(|block| block[key].as_str()).map(str::to_owned).collect()
    };
    let written = ids(1, "id");
    assert!(
        written[0].starts_with("functions_grep_0_") && written[0] != "functions_grep_0_2",
        "{written:?}"
    );
    assert_eq!(written[1..], ["functions_grep_0", "c1"]);
    assert_eq!(ids(1, "id"), ids(2, "tool_use_id"));
}

#[test]
fn r090_thinking_is_requested_and_can_be_omitted() {
    let shape = RequestShape { adaptive_thinking: true, include_thinking: false, ..SHAPE };
    let body = request::body(&shape, &empty_request(&full_transcript()));
    assert_eq!(body["thinking"], json!({"type": "adaptive", "display": "summarized"}));
    assert!(!body["messages"].to_string().contains("thinking\""));
}

struct Read {
    outcome: Result<ModelResponse, AttemptFailure>,
    deltas: Vec<String>,
}

fn read(events: &[Value]) -> Read {
    let endpoint =
        ServerEndpoint { provider: "Anthropic", host: "h".into(), key_variable: "K", key: None };
    let mut deltas = Vec::new();
    let mut on_delta = |delta: ResponseDelta<'_>| deltas.push(describe_delta(delta));
    let mut sink = DeltaSink::new(&mut on_delta, true);
    let mut stream = AnthropicStream::new(&endpoint);
    let mut outcome = Ok(DecodeProgress::More);
    for event in events {
        let data = event.as_str().map_or_else(|| event.to_string(), str::to_owned);
        outcome = stream
            .decode(&SseEvent { name: String::new(), data, ..SseEvent::default() }, &mut sink);
        if !matches!(outcome, Ok(DecodeProgress::More)) {
            break;
        }
    }
    Read { outcome: outcome.and_then(|_| stream.finish_reason()), deltas }
}

fn start(index: u64, block: Value) -> Value {
    json!({"type": "content_block_start", "index": index, "content_block": block})
}

fn delta(index: u64, delta: Value) -> Value {
    json!({"type": "content_block_delta", "index": index, "delta": delta})
}

fn stop(index: u64) -> Value {
    json!({"type": "content_block_stop", "index": index})
}

fn call(index: u64, id: &str, name: &str) -> Value {
    start(index, json!({"type": "tool_use", "id": id, "name": name, "input": {}}))
}

fn json_piece(index: u64, text: &str) -> Value {
    delta(index, json!({"type": "input_json_delta", "partial_json": text}))
}

fn ending(reason: &str) -> [Value; 2] {
    let delta = json!({
        "type": "message_delta", "delta": {"stop_reason": reason, "stop_sequence": null},
        "usage": {"output_tokens": 9},
    });
    [delta, json!({"type": "message_stop"})]
}

#[test]
fn r082_r090_r091_a_whole_response() {
    let mut events = vec![
        json!({"type": "message_start", "message": {"usage": {
            "input_tokens": 3, "cache_creation_input_tokens": 20, "cache_read_input_tokens": 100,
            "output_tokens": 1,
        }}}),
        start(0, json!({"type": "thinking", "thinking": "", "signature": ""})),
        json!({"type": "ping"}),
        delta(0, json!({"type": "thinking_delta", "thinking": "Hm."})),
        delta(0, json!({"type": "signature_delta", "signature": "si"})),
        delta(0, json!({"type": "signature_delta", "signature": "g"})),
        stop(0),
        start(1, json!({"type": "redacted_thinking", "data": "opaque"})),
        stop(1),
        start(2, json!({"type": "text", "text": ""})),
        delta(2, json!({"type": "text_delta", "text": "Let me"})),
        delta(2, json!({"type": "text_delta", "text": " look. "})),
        delta(2, json!({"type": "citations_delta", "citation": {}})),
        stop(2),
        call(3, "a", "read"),
        json_piece(3, ""),
        call(4, "b", "todo"),
        json_piece(3, "{\"p\":"),
        json_piece(3, " 1}"),
        stop(4),
        stop(3),
        start(5, json!({"type": "something_new"})),
        stop(5),
        json!({"type": "something_new_too"}),
    ];
    events.extend(ending("tool_use"));
    let read = read(&events);
    let response = read.outcome.expect("a response");
    let calls: Vec<_> = response
        .calls()
        .map(|call| (call.id.as_str(), call.name.as_str(), call.arguments.as_str()))
        .collect();
    assert_eq!(calls, [("a", "read", "{\"p\": 1}"), ("b", "todo", "")]);
    let said = [
        ResponseBlock::Reasoning(ModelReasoning::Text {
            text: "Hm.".into(),
            signature: Some("sig".into()),
        }),
        ResponseBlock::Reasoning(ModelReasoning::Opaque { data: "opaque".into() }),
        ResponseBlock::Text("Let me look. ".into()),
    ];
    assert_eq!(response.blocks[..3], said);
    assert_eq!(response.stop, StopReason::Calls);
    assert_eq!(
        response.usage,
        TokenUsage {
            input: Some(123),
            output: Some(9),
            cached_input: Some(100),
            cache_write: Some(20)
        }
    );
    assert_eq!(
        read.deltas,
        ["reasoning Hm.", "text Let me", "text  look. ", "call read", "call todo"]
    );
}

#[test]
fn r090_thinking_that_is_not_shown_keeps_its_signature() {
    let mut events = vec![
        start(0, json!({"type": "thinking", "thinking": "", "signature": ""})),
        delta(0, json!({"type": "signature_delta", "signature": "sig"})),
        stop(0),
    ];
    events.extend(ending("end_turn"));
    let read = read(&events);
    let thinking_block = ResponseBlock::Reasoning(ModelReasoning::Text {
        text: String::new(),
        signature: Some("sig".into()),
    });
    assert_eq!(read.outcome.expect("a response").blocks, [thinking_block]);
    assert!(read.deltas.is_empty());
}

#[test]
fn r091_stop_reasons() {
    let cases = [
        ("end_turn", StopReason::End),
        ("stop_sequence", StopReason::End),
        ("tool_use", StopReason::End),
        ("max_tokens", StopReason::Length),
        ("model_context_window_exceeded", StopReason::Length),
        ("refusal", StopReason::Refused),
        ("pause_turn", StopReason::Other("pause_turn".into())),
        ("novel", StopReason::Other("novel".into())),
    ];
    for (reason, expected) in cases {
        let mut events = vec![start(0, json!({"type": "text", "text": "x"})), stop(0)];
        events.extend(ending(reason));
        let response = read(&events).outcome.expect(reason);
        assert_eq!(response.stop, expected, "{reason}");
        assert_eq!(
            response.usage,
            TokenUsage { output: Some(9), ..TokenUsage::default() },
            "unknown, not zero"
        );
    }
}

#[test]
fn r079_calls_are_whole_only_if_the_provider_says_so() {
    for (reason, expected) in [
        ("tool_use", StopReason::Calls),
        ("end_turn", StopReason::Calls),
        ("refusal", StopReason::Refused),
        ("novel", StopReason::Other("novel".into())),
    ] {
        let mut events = vec![call(0, "a", "read"), json_piece(0, "{}"), stop(0)];
        events.extend(ending(reason));
        assert_eq!(read(&events).outcome.expect(reason).stop, expected, "{reason}");
    }
    let mut within = vec![call(0, "a", "read"), json_piece(0, "{\"p\":")];
    within.extend(ending("refusal"));
    assert_eq!(read(&within).outcome.expect("a response").stop, StopReason::Refused);
}

#[test]
fn r079_a_length_stop_inside_arguments_is_reported() {
    let mut events = vec![call(0, "a", "read"), json_piece(0, "{\"p\":"), stop(0)];
    events.extend(ending("max_tokens"));
    assert_eq!(read(&events).outcome.expect("a response").stop, StopReason::Length);
}

#[test]
fn r083_a_response_that_does_not_end_is_an_error() {
    let call_events = vec![call(0, "a", "read"), json_piece(0, "{}")];
    let mut without_stop = call_events.clone();
    without_stop.push(stop(0));
    without_stop.push(ending("tool_use")[0].clone());
    let mut within_call = call_events;
    within_call.extend(ending("tool_use"));
    for (events, message) in [
        (without_stop, "Anthropic (h): the stream ended before the response was complete"),
        (within_call, "Anthropic (h): the response ended inside a tool call"),
    ] {
        let failure = read(&events).outcome.expect_err("incomplete response");
        assert_eq!((failure.kind, failure.message.as_str()), (ModelErrorKind::Malformed, message));
    }
}

#[test]
fn r084_errors_inside_the_stream() {
    let error =
        json!({"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}});
    let failure = read(&[error]).outcome.expect_err("an error");
    assert_eq!((failure.kind, failure.retry), (ModelErrorKind::Unavailable, Retryable::Yes(None)));
    let orphan = delta(7, json!({"type": "text_delta", "text": "x"}));
    let twins = [start(0, json!({"type": "text"})), start(0, json!({"type": "text"}))];
    for events in
        [&[json!("not json")][..], &[orphan], &twins, &[json!({"type": "content_block_start"})]]
    {
        assert_eq!(read(events).outcome.expect_err("an error").kind, ModelErrorKind::Malformed);
    }
}

#[test]
fn r082_arguments_that_come_at_once() {
    let mut events = vec![
        start(0, json!({"type": "tool_use", "id": "a", "name": "read", "input": {"p": 1}})),
        stop(0),
    ];
    events.extend(ending("tool_use"));
    let response = read(&events).outcome.expect("a response");
    assert_eq!(response.calls().next().map(|call| call.arguments.as_str()), Some("{\"p\":1}"));
}

#[test]
fn r065_r070_a_summary_is_context_and_an_old_result_is_a_placeholder() {
    let body = request::body(&SHAPE, &empty_request(&pruned_transcript()));
    let messages = body["messages"].as_array().expect("messages");
    let roles: Vec<_> =
        messages.iter().map(|message| message["role"].as_str().unwrap_or_default()).collect();
    assert_eq!(roles, ["user", "assistant", "user", "assistant", "user"]);
    let first = messages[0]["content"].as_array().expect("blocks");
    assert!(first[0]["text"].as_str().is_some_and(
        |text| text.starts_with("[Context from the host") && text.contains("\n\nIt began.\n\n")
    ));
    assert_eq!((first.len(), &first[1]["text"]), (2, &json!("One.")));
    let left_out = json!([{"type": "text", "text": crate::conversation::PRUNED_PLACEHOLDER}]);
    assert_eq!(
        messages[2]["content"][0],
        json!({"type": "tool_result", "tool_use_id": "c_2", "content": left_out})
    );
    assert_eq!(messages[2]["content"][1], json!({"type": "text", "text": "Two."}));
}

#[test]
fn r130_texts_of_one_response_are_separated_on_screen_and_in_the_response() {
    let text = |index: u64, begins: &str| start(index, json!({"type": "text", "text": begins}));
    let piece = |index: u64, text: &str| delta(index, json!({"type": "text_delta", "text": text}));
    let thinking_block =
        start(1, json!({"type": "thinking", "thinking": "Hm.", "signature": "sig"}));
    let mut events = vec![
        text(0, ""),
        piece(0, "Let me"),
        piece(0, " look."),
        stop(0),
        thinking_block,
        stop(1),
        text(2, ""),
        piece(2, "It is 4.\n"),
    ];
    events.extend([stop(2), text(3, "Done."), stop(3), text(4, ""), stop(4)]);
    events.extend(ending("end_turn"));
    let read = read(&events);
    assert_eq!(read.outcome.expect("complete").text(), "Let me look.\n\nIt is 4.\nDone.");
    assert_eq!(
        read.deltas.iter().filter_map(|delta| delta.strip_prefix("text ")).collect::<String>(),
        "Let me look.\n\nIt is 4.\nDone."
    );
}
