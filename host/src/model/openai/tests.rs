//! Requests and responses of chat completions.

use serde_json::{Value, json};

use super::stream::ChatCompletionStream;
use super::{ChatDialect, request};
use crate::agent::ports::{ModelErrorKind, ModelRequest, ResponseDelta, ToolChoice};
use crate::conversation::{
    ModelReasoning, ModelResponse, ResponseBlock, StopReason, TokenUsage, Transcript,
};
use crate::model::failure::{AttemptFailure, ServerEndpoint};
use crate::model::sse::SseEvent;
use crate::model::test_server::{
    describe_delta, empty_request, full_transcript, pruned_transcript, two_tools,
};
use crate::model::wire::{DecodeProgress, DeltaSink, StreamDecoder as _};

fn sent(transcript: &Transcript, dialect: &ChatDialect) -> Value {
    request::body("m", &empty_request(transcript), dialect)["messages"].clone()
}

#[test]
fn r005_r009_r055_r081_r092_a_whole_conversation_on_the_wire() {
    let (transcript, tools) = (full_transcript(), two_tools());
    let request = ModelRequest {
        system: "You are careful.",
        conversation: transcript.sent(),
        note: Some("Be brief."),
        tools: &tools,
        tool_choice: ToolChoice::None,
        is_shown_live: true,
    };
    let schema = json!({"type": "object", "properties": {"path": {"type": "string"}}});
    let expected = json!({
        "model": "gpt-4.1",
        "messages": [
            {"role": "system", "content": "You are careful."},
            {"role": "user", "content": "Are you there?\n\nWhat is in here?"},
            {"role": "assistant", "content": "Let me look.", "tool_calls": [
                {"id": "c1", "type": "function", "function": {"name": "list_dir", "arguments": "{\"path\": \".\", \"n\": 1.0}"}},
                {"id": "c2", "type": "function", "function": {"name": "todo", "arguments": "{}"}},
                {"id": "c3", "type": "function", "function": {"name": "see_this", "arguments": "{\"unparsed_arguments\":\"{\\\"a\\\":1}{\\\"b\\\":2}\"}"}},
            ]},
            {"role": "tool", "tool_call_id": "c1", "content": "a.rs\n[a picture, image/png: this \
                model cannot be shown pictures]"},
            {"role": "tool", "tool_call_id": "c2", "content": "(no output)"},
            {"role": "tool", "tool_call_id": "c3", "content": "Error: no such tool\n[a picture, \
                image/png: this model cannot be shown pictures]"},
            {"role": "assistant", "content": "One file."},
            {"role": "user", "content": "Thanks.\n\nBe brief."},
        ],
        "stream": true,
        "stream_options": {"include_usage": true},
        "tools": [
            {"type": "function", "function": {"name": "list_dir", "description": "Lists a folder.", "parameters": schema}},
            {"type": "function", "function": {"name": "bash", "description": "", "parameters": schema}},
        ],
        "tool_choice": "none",
    });
    assert_eq!(request::body("gpt-4.1", &request, &ChatDialect::default()), expected);
}

#[test]
fn mistrals_models_get_ids_and_an_order_that_their_servers_take() {
    let mut transcript = Transcript::new();
    for exchange in &full_transcript().exchanges()[1..2] {
        transcript.begin_exchange(exchange.prompt());
        transcript.record(exchange.turns()[0].clone());
    }
    transcript.begin_exchange("Never mind.");
    let dialect = ChatDialect::for_model("Devstral-Small-2507", false);
    let messages = sent(&transcript, &dialect);
    let roles: Vec<_> = messages
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|message| message["role"].as_str())
        .collect();
    assert_eq!(roles, ["user", "assistant", "tool", "tool", "tool", "assistant", "user"]);
    assert_eq!(messages[5]["content"], "(No answer.)");
    for n in 0..3 {
        let id = messages[1]["tool_calls"][n]["id"].as_str().expect("an id");
        assert!(id.len() == 9 && id.bytes().all(|byte| byte.is_ascii_alphanumeric()), "{id}");
        assert_eq!(messages[2 + n]["tool_call_id"], id);
    }
    assert_eq!(
        sent(&transcript, &ChatDialect::for_model("qwen3", false))[1]["tool_calls"][0]["id"],
        "c1"
    );
}

#[test]
fn r057_a_blank_system_prompt_is_not_sent() {
    let mut transcript = Transcript::new();
    transcript.begin_exchange("Hi");
    let body = request::body("m", &empty_request(&transcript), &ChatDialect::default());
    let expected = json!({
        "model": "m", "messages": [{"role": "user", "content": "Hi"}], "stream": true, "stream_options": {"include_usage": true},
    });
    assert_eq!(body, expected);
}

#[test]
fn pictures_follow_the_results_where_the_server_takes_them() {
    let messages =
        sent(&full_transcript(), &ChatDialect { accepts_images: true, ..ChatDialect::default() });
    assert_eq!(
        messages[2]["content"],
        "a.rs\n[a picture, image/png: it follows after the results]"
    );
    let picture =
        json!({"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw0KGgo="}});
    let expected = json!({"role": "user", "content": [
        {"type": "text", "text": "Pictures from the results above, in their order:"}, picture, picture,
    ]});
    assert_eq!(messages[5], expected);
    assert_eq!(messages[6], json!({"role": "assistant", "content": "One file."}));
}

#[test]
fn r009_thinking_goes_back_to_those_who_want_it() {
    let messages = sent(&full_transcript(), &ChatDialect::for_model("deepseek-v4", false));
    assert_eq!(messages[1]["reasoning_content"], "I should look.Unsigned.");
    assert!(
        sent(&full_transcript(), &ChatDialect::for_model("gpt-4.1", true))[1]
            .get("reasoning_content")
            .is_none()
    );
}

#[test]
fn r078_a_note_is_the_users_side_and_the_last_word() {
    let mut transcript = Transcript::new();
    transcript.begin_exchange("Hi");
    let turn = ModelResponse {
        blocks: vec![ResponseBlock::Text("Hello.".into())],
        ..ModelResponse::default()
    };
    transcript.record(crate::conversation::AssistantTurn::without_calls(turn).expect("text"));
    let body = request::body(
        "m",
        &ModelRequest { note: Some("Go on."), ..empty_request(&transcript) },
        &ChatDialect::default(),
    );
    assert_eq!(body["messages"][2], json!({"role": "user", "content": "Go on."}));
}

#[test]
fn openai_itself_is_spoken_to_in_its_own_dialect() {
    let (transcript, tools) = (full_transcript(), two_tools());
    let request = ModelRequest { tools: &tools, ..empty_request(&transcript) };
    let dialect = ChatDialect { max_output: Some(9), ..ChatDialect::for_model("gpt-6-sol", true) };
    let azure = ChatDialect {
        uses_max_completion_tokens: true,
        max_output: Some(9),
        ..ChatDialect::for_model("gpt-6-sol", false)
    };
    assert_eq!(request::body("gpt-6-sol", &request, &azure)["max_completion_tokens"], 9);
    let body = request::body("gpt-6-sol", &request, &dialect);
    assert_eq!(
        (&body["reasoning_effort"], &body["max_completion_tokens"]),
        (&json!("none"), &json!(9))
    );
    assert!(body.get("tool_choice").is_none());
    let body = request::body("gpt-6-sol", &empty_request(&transcript), &dialect);
    assert!(body.get("reasoning_effort").is_none());
    let elsewhere =
        ChatDialect { max_output: Some(9), ..ChatDialect::for_model("gpt-6-sol", false) };
    let body = request::body("gpt-6-sol", &request, &elsewhere);
    assert_eq!((body.get("reasoning_effort"), &body["max_tokens"]), (None, &json!(9)));
}

struct Read {
    outcome: Result<ModelResponse, AttemptFailure>,
    deltas: Vec<String>,
}

/// Reads a stream of these chunks; `[DONE]` is written as a string.
fn read(chunks: &[Value]) -> Read {
    let place =
        ServerEndpoint { provider: "OpenAI", host: "h".into(), key_variable: "K", key: None };
    let mut deltas = Vec::new();
    let mut on_delta = |delta: ResponseDelta<'_>| deltas.push(describe_delta(delta));
    let mut hand = DeltaSink::new(&mut on_delta, true);
    let mut stream = ChatCompletionStream::new(&place);
    let mut outcome = Ok(DecodeProgress::More);
    for chunk in chunks {
        let data = chunk.as_str().map_or_else(|| chunk.to_string(), str::to_owned);
        outcome = stream
            .decode(&SseEvent { name: String::new(), data, ..SseEvent::default() }, &mut hand);
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
        json!({"choices": [], "usage": {"prompt_tokens": 10, "completion_tokens": 2, "prompt_tokens_details": {"cached_tokens": 4}}}),
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
        delta(
            json!({"content": null, "tool_calls": [call(0, json!({"id": "a", "type": "function", "function": {"name": "read", "arguments": ""}}))]}),
        ),
        delta(
            json!({"tool_calls": [call(2, json!({"id": "c", "function": {"name": "grep", "arguments": "{\"q\""}}))]}),
        ),
        delta(
            json!({"tool_calls": [call(0, json!({"function": {"arguments": "{\"p\":"}})), call(2, json!({"function": {"arguments": ":1}"}}))]}),
        ),
        delta(
            json!({"tool_calls": [call(0, json!({"id": "a", "function": {"name": "read", "arguments": "2}"}}))]}),
        ),
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
        delta(
            json!({"tool_calls": [{"index": 2_147_483_648_u64, "id": "a", "function": {"name": "x", "arguments": "{"}}]}),
        ),
        delta(
            json!({"tool_calls": [{"index": u64::MAX, "id": "b", "function": {"name": "y", "arguments": "{}"}}]}),
        ),
        delta(
            json!({"tool_calls": [{"index": 2_147_483_648_u64, "function": {"arguments": "}"}}]}),
        ),
        delta(
            json!({"tool_calls": [{"index": -1, "id": "d", "function": {"name": "z", "arguments": "{}"}}]}),
        ),
        end("tool_calls"),
    ]);
    let response = read.outcome.expect("a response");
    assert_eq!(calls_of(&response), [("a", "x", "{}"), ("b", "y", "{}"), ("d", "z", "{}")]);
}

#[test]
fn r082_whole_calls_in_one_piece_under_one_index_or_none() {
    for index in [json!(0), Value::Null] {
        let call = |id: &str| {
            delta(
                json!({"tool_calls": [{"index": index, "id": id, "function": {"name": "read", "arguments": "{}"}}]}),
            )
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
fn r082_pieces_without_an_index_go_on_with_a_call_that_is_not_whole() {
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
    let begun = std::time::Instant::now();
    let piece = |arguments: &str| {
        delta(json!({"tool_calls": [{"function": {"name": "read", "arguments": arguments}}]}))
    };
    let mut chunks = vec![piece("[{}")];
    chunks.extend((0..100_000).map(|_| piece(",{}")));
    chunks.push(end("stop"));
    let response = read(&chunks).outcome.expect("a response");
    assert_eq!(response.calls().count(), 1);
    assert!(begun.elapsed() < std::time::Duration::from_secs(20), "{:?}", begun.elapsed());
}

#[test]
fn r082_a_thousand_calls_and_a_changing_name() {
    let mut chunks: Vec<Value> = (0..1_000)
        .map(|n| delta(json!({"tool_calls": [{"index": n, "id": "same", "function": {"name": " read ", "arguments": "{}"}}]})))
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
        delta(
            json!({"tool_calls": [{"index": 0, "id": "a", "function": {"name": "x", "arguments": text}}]}),
        )
    };
    let response = read(&[fragment("{\"a\":1}"), fragment("{\"b\":2}"), end("tool_calls")])
        .outcome
        .expect("a response");
    assert_eq!(calls_of(&response), [("a", "x", "{\"a\":1}{\"b\":2}")]);
}

#[test]
fn r079_a_length_stop_inside_arguments_is_told() {
    let call = delta(
        json!({"tool_calls": [{"index": 0, "id": "a", "function": {"name": "x", "arguments": "{\"a\":"}}]}),
    );
    let response = read(&[call, end("length"), json!("[DONE]")]).outcome.expect("a response");
    assert_eq!(response.stop, StopReason::Length);
}

#[test]
fn r079_calls_are_whole_only_if_the_provider_says_so() {
    let call = || {
        delta(
            json!({"tool_calls": [{"index": 0, "id": "a", "function": {"name": "x", "arguments": "{}"}}]}),
        )
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
        let failure = read(chunks).outcome.expect_err("it did not end");
        assert_eq!(failure.kind, ModelErrorKind::Malformed);
        assert_eq!(failure.message, "OpenAI (h): the stream ended before the response did");
    }
    assert!(
        read(&[delta(json!({"content": "all"})), end("stop")]).outcome.is_ok(),
        "without [DONE]"
    );
}

#[test]
fn r084_errors_inside_the_stream() {
    let error = json!({"error": {"message": "The server had an error", "type": "server_error", "code": null}});
    let failure = read(&[delta(json!({"content": "half"})), error]).outcome.expect_err("an error");
    assert_eq!(
        (failure.kind, failure.message.as_str()),
        (
            ModelErrorKind::Unavailable,
            "OpenAI (h) broke off with an error: The server had an error"
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
    let thought =
        ResponseBlock::Reasoning(ModelReasoning::Text { text: "Hm.".into(), signature: None });
    assert_eq!(
        read.outcome.expect("a response").blocks,
        [thought, ResponseBlock::Text("Yes".into())]
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

#[test]
fn r065_r070_a_summary_is_context_of_the_users_side_and_an_old_result_a_placeholder() {
    let context = "[Context from the host, not a message of the user: what was said and done \
        before this, in summary. The user's message after it \
                   is older than its end: the summary covers part of the work on it.]\n\nIt \
                   began.\n\n[End of the summary.]";
    let call =
        json!({"id": "c_2", "type": "function", "function": {"name": "read", "arguments": "{}"}});
    let expected = json!([
        {"role": "user", "content": format!("{context}\n\nOne.")},
        {"role": "assistant", "content": null, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c_2", "content": crate::conversation::PRUNED_PLACEHOLDER},
        {"role": "user", "content": "Two."},
        {"role": "assistant", "content": "Yes."},
        {"role": "user", "content": "Three."},
    ]);
    assert_eq!(sent(&pruned_transcript(), &ChatDialect::default()), expected);
}
