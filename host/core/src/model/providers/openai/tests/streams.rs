//! Tests of responses of chat completions.

use serde_json::{Value, json};

use super::super::stream::ChatCompletionStream;
use crate::agent::ports::{ModelErrorKind, ResponseDelta};
use crate::conversation::{ModelReasoning, ModelResponse, ResponseBlock, StopReason, TokenUsage};
use crate::model::providers::failure::{AttemptFailure, ServerEndpoint};
use crate::model::providers::sse::SseEvent;
use crate::model::providers::wire::{DecodeProgress, DeltaSink, StreamDecoder as _};
use crate::model::test_server::describe_delta;

struct Read {
    outcome: Result<ModelResponse, AttemptFailure>,
    deltas: Vec<String>,
}

/// Decodes a stream of these chunks. `[DONE]` is given as a string.
fn read(chunks: &[Value]) -> Read {
    let endpoint =
        ServerEndpoint { provider: "OpenAI", host: "h".into(), key_variable: "K", key: None };
    let mut deltas = Vec::new();
    let mut on_delta = |delta: ResponseDelta<'_>| deltas.push(describe_delta(delta));
    let mut sink = DeltaSink::new(&mut on_delta, true);
    let mut stream = ChatCompletionStream::new(&endpoint);
    let mut outcome = Ok(DecodeProgress::More);
    for chunk in chunks {
        let data = chunk.as_str().map_or_else(|| chunk.to_string(), str::to_owned);
        outcome = stream
            .decode(&SseEvent { name: String::new(), data, ..SseEvent::default() }, &mut sink);
        if !matches!(outcome, Ok(DecodeProgress::More)) {
            break;
        }
    }
    Read { outcome: outcome.and_then(|_| stream.finish_reason()), deltas }
}

fn delta(delta: Value) -> Value {
    json!({"choices": [{"index": 0, "delta": delta, "finish_reason": null}]})
}

fn end(reason: &str) -> Value {
    json!({"choices": [{"index": 0, "delta": {}, "finish_reason": reason}]})
}

fn calls_of(response: &ModelResponse) -> Vec<(&str, &str, &str)> {
    response
        .calls()
        .map(|call| (call.id.as_str(), call.name.as_str(), call.arguments.as_str()))
        .collect()
}

#[test]
fn r089_r091_text_is_verbatim_and_usage_comes_after_the_end() {
    let read = read(&[
        json!({"choices": [], "prompt_filter_results": []}),
        delta(json!({"role": "assistant", "content": ""})),
        delta(json!({"content": " Hel"})),
        delta(json!({"content": "lo\n"})),
        end("stop"),
        json!({
            "choices": [],
            "usage": {
                "prompt_tokens": 10, "completion_tokens": 2,
                "prompt_tokens_details": {"cached_tokens": 4},
            },
        }),
        json!("[DONE]"),
    ]);
    let usage =
        TokenUsage { input: Some(10), output: Some(2), cached_input: Some(4), cache_write: None };
    let expected = ModelResponse {
        blocks: vec![ResponseBlock::Text(" Hello\n".into())],
        stop: StopReason::End,
        usage,
    };
    assert_eq!(read.outcome, Ok(expected));
    assert_eq!(read.deltas, ["text  Hel", "text lo\n"]);
}

#[test]
fn r082_interleaved_fragments_assemble_by_index() {
    let call = |index: u64, rest: Value| {
        let mut call = json!({"index": index});
        call.as_object_mut()
            .expect("an object")
            .extend(rest.as_object().expect("an object").clone());
        call
    };
    let read = read(&[
        delta(json!({
            "content": null,
            "tool_calls": [call(
                0,
                json!({
                    "id": "a", "type": "function",
                    "function": {"name": "read", "arguments": ""},
                }),
            )],
        })),
        delta(json!({"tool_calls": [call(
            2, json!({"id": "c", "function": {"name": "grep", "arguments": "{\"q\""}}),
        )]})),
        delta(json!({"tool_calls": [
            call(0, json!({"function": {"arguments": "{\"p\":"}})),
            call(2, json!({"function": {"arguments": ":1}"}})),
        ]})),
        delta(json!({"tool_calls": [call(
            0, json!({"id": "a", "function": {"name": "read", "arguments": "2}"}}),
        )]})),
        delta(json!({"tool_calls": [call(1, json!({"id": "b", "function": {"name": "empty"}}))]})),
        end("tool_calls"),
        json!("[DONE]"),
    ]);
    let response = read.outcome.expect("a response");
    assert_eq!(
        calls_of(&response),
        [("a", "read", "{\"p\":2}"), ("b", "empty", ""), ("c", "grep", "{\"q\":1}")]
    );
    assert_eq!(response.stop, StopReason::Calls);
    assert_eq!(read.deltas, ["call read", "call grep", "call empty"]);
}

#[test]
fn r082_a_hostile_index_is_only_a_name() {
    let read = read(&[
        delta(json!({"tool_calls": [{
            "index": 2_147_483_648_u64, "id": "a", "function": {"name": "x", "arguments": "{"},
        }]})),
        delta(json!({"tool_calls": [{
            "index": u64::MAX, "id": "b", "function": {"name": "y", "arguments": "{}"},
        }]})),
        delta(
            json!({"tool_calls": [{"index": 2_147_483_648_u64, "function": {"arguments": "}"}}]}),
        ),
        delta(json!({"tool_calls": [{
            "index": -1, "id": "d", "function": {"name": "z", "arguments": "{}"},
        }]})),
        end("tool_calls"),
    ]);
    let response = read.outcome.expect("a response");
    assert_eq!(calls_of(&response), [("a", "x", "{}"), ("b", "y", "{}"), ("d", "z", "{}")]);
}

#[test]
fn r082_whole_calls_in_one_piece_under_one_index_or_none() {
    for index in [json!(0), Value::Null] {
        let call = |id: &str| {
            delta(json!({"tool_calls": [{
                "index": index, "id": id, "function": {"name": "read", "arguments": "{}"},
            }]}))
        };
        let response = read(&[call("a"), call("b"), end("stop")]).outcome.expect("a response");
        assert_eq!(calls_of(&response), [("a", "read", "{}"), ("b", "read", "{}")]);
        assert_eq!(response.stop, StopReason::Calls, "stop with calls present");
    }
    let nameless =
        delta(json!({"tool_calls": [{"function": {"name": "read", "arguments": {"p": 1}}}]}));
    let response = read(&[nameless.clone(), nameless, end("stop")]).outcome.expect("a response");
    assert_eq!(calls_of(&response), [("", "read", "{\"p\":1}"), ("", "read", "{\"p\":1}")]);
}

#[test]
fn r082_pieces_without_an_index_continue_an_incomplete_call() {
    let piece = |name: &str, arguments: &str| {
        delta(json!({"tool_calls": [{"function": {"name": name, "arguments": arguments}}]}))
    };
    let pieces = [
        piece("read", "{\"a\": [\"]}\\\""),
        piece("read", "\"], \"b\": {}"),
        piece("", "}"),
        piece("grep", "{}"),
        piece("", " "),
    ];
    let response = read(&[&pieces[..], &[end("stop")]].concat()).outcome.expect("a response");
    assert_eq!(
        calls_of(&response),
        [("", "read", "{\"a\": [\"]}\\\"\"], \"b\": {}}"), ("", "grep", "{} ")]
    );
}

#[test]
fn r082_many_named_pieces_without_an_index_are_read_in_linear_time() {
    let start = std::time::Instant::now();
    let piece = |arguments: &str| {
        delta(json!({"tool_calls": [{"function": {"name": "read", "arguments": arguments}}]}))
    };
    let mut chunks = vec![piece("[{}")];
    chunks.extend((0..100_000).map(|_| piece(",{}")));
    chunks.push(end("stop"));
    let response = read(&chunks).outcome.expect("a response");
    assert_eq!(response.calls().count(), 1);
    assert!(start.elapsed() < std::time::Duration::from_secs(20), "{:?}", start.elapsed());
}

#[test]
fn r082_a_thousand_calls_and_a_changing_name() {
    let mut chunks: Vec<Value> = (0..1_000)
        .map(|n| {
            delta(json!({"tool_calls": [{
                "index": n, "id": "same", "function": {"name": " read ", "arguments": "{}"},
            }]}))
        })
        .collect();
    chunks.push(delta(json!({"tool_calls": [{"index": 999, "function": {"name": "bash"}}]})));
    chunks.push(end("tool_calls"));
    let response = read(&chunks).outcome.expect("a response");
    assert_eq!(response.calls().count(), 1_000);
    assert!(response.calls().all(|call| call.name == "read"));
}

#[test]
fn r023_concatenated_arguments_stay_as_they_came() {
    let fragment = |text: &str| {
        delta(json!({"tool_calls": [{
            "index": 0, "id": "a", "function": {"name": "x", "arguments": text},
        }]}))
    };
    let response = read(&[fragment("{\"a\":1}"), fragment("{\"b\":2}"), end("tool_calls")])
        .outcome
        .expect("a response");
    assert_eq!(calls_of(&response), [("a", "x", "{\"a\":1}{\"b\":2}")]);
}

#[test]
fn r079_a_length_stop_inside_arguments_is_reported() {
    let call = delta(json!({"tool_calls": [{
        "index": 0, "id": "a", "function": {"name": "x", "arguments": "{\"a\":"},
    }]}));
    let response = read(&[call, end("length"), json!("[DONE]")]).outcome.expect("a response");
    assert_eq!(response.stop, StopReason::Length);
}

#[test]
fn r079_calls_are_whole_only_if_the_provider_says_so() {
    let call = || {
        delta(json!({"tool_calls": [{
            "index": 0, "id": "a", "function": {"name": "x", "arguments": "{}"},
        }]}))
    };
    let stop = |chunks: &[Value]| read(chunks).outcome.expect("a response").stop;
    for reason in ["stop", "tool_calls", "function_call"] {
        assert_eq!(stop(&[call(), end(reason)]), StopReason::Calls, "{reason}");
    }
    for reason in ["abort", "novel"] {
        assert_eq!(stop(&[call(), end(reason)]), StopReason::Other(reason.into()));
    }
    assert_eq!(stop(&[call(), end("content_filter")]), StopReason::Refused);
    assert_eq!(
        stop(&[call(), delta(json!({"refusal": "I cannot."})), end("stop")]),
        StopReason::Refused
    );
}

#[test]
fn r091_stop_reasons() {
    let cases = [
        ("stop", StopReason::End),
        ("tool_calls", StopReason::End),
        ("length", StopReason::Length),
        ("content_filter", StopReason::Refused),
        ("novel", StopReason::Other("novel".into())),
    ];
    for (reason, expected) in cases {
        let response = read(&[delta(json!({"content": "x"})), end(reason)]).outcome.expect(reason);
        assert_eq!(response.stop, expected, "{reason}");
        assert_eq!(response.usage, TokenUsage::default(), "unknown, not zero");
    }
    let refused =
        read(&[delta(json!({"refusal": "I cannot."})), end("stop")]).outcome.expect("a response");
    assert_eq!((refused.text().as_str(), refused.stop), ("I cannot.", StopReason::Refused));
}

#[test]
fn r083_a_stream_without_a_finish_reason_is_an_error() {
    let half = [
        delta(json!({"content": "half"})),
        json!({"choices": [{"delta": {}, "finish_reason": ""}]}),
    ];
    let mut done = half.to_vec();
    done.push(json!("[DONE]"));
    for chunks in [&half[..], &done, &[]] {
        let failure = read(chunks).outcome.expect_err("incomplete response");
        assert_eq!(failure.kind, ModelErrorKind::Malformed);
        assert_eq!(
            failure.message,
            "OpenAI (h): the stream ended before the response was complete"
        );
    }
    assert!(
        read(&[delta(json!({"content": "all"})), end("stop")]).outcome.is_ok(),
        "without [DONE]"
    );
}

#[test]
fn r084_errors_inside_the_stream() {
    let error = json!({"error": {
        "message": "The server had an error", "type": "server_error", "code": null,
    }});
    let failure = read(&[delta(json!({"content": "half"})), error]).outcome.expect_err("an error");
    assert_eq!(
        (failure.kind, failure.message.as_str()),
        (
            ModelErrorKind::Unavailable,
            "OpenAI (h) ended the response with an error: The server had an error"
        )
    );
    let overflow = json!({"error": {"message": "too long", "code": "context_length_exceeded"}});
    assert_eq!(read(&[overflow]).outcome.expect_err("an error").kind, ModelErrorKind::Overflow);
    for garbage in [json!("not json {"), json!("[]"), json!({"choices": 3})] {
        assert_eq!(read(&[garbage]).outcome.expect_err("an error").kind, ModelErrorKind::Malformed);
    }
}

#[test]
fn r090_thinking_has_its_own_channel() {
    let both = delta(json!({"content": "", "reasoning_content": "Hm", "reasoning": "Hm"}));
    let read = read(&[
        both,
        delta(json!({"reasoning": "."})),
        delta(json!({"content": [{"type": "text", "text": "Yes"}]})),
        end("stop"),
    ]);
    let thinking_block =
        ResponseBlock::Reasoning(ModelReasoning::Text { text: "Hm.".into(), signature: None });
    assert_eq!(
        read.outcome.expect("a response").blocks,
        [thinking_block, ResponseBlock::Text("Yes".into())]
    );
    assert_eq!(read.deltas, ["reasoning Hm", "reasoning .", "text Yes"]);
}

#[test]
fn r013_r025_markers_and_calls_in_text_are_text() {
    let text = "DONE: <tool_call>{\"name\": \"bash\"}</tool_call>";
    let response =
        read(&[delta(json!({"content": text})), end("stop")]).outcome.expect("a response");
    assert_eq!((response.text().as_str(), response.calls().count()), (text, 0));
}
