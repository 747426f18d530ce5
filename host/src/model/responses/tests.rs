//! Requests and responses of OpenAI's Responses.

use serde_json::{Value, json};

use super::stream::ResponsesStream;
use super::{ResponsesDialect, request};
use crate::agent::ports::{ModelErrorKind, ModelRequest, ResponseDelta, ToolChoice};
use crate::conversation::{
    ModelReasoning, ModelResponse, OpenTurn, ResponseBlock, StopReason, TokenUsage, ToolResult,
    Transcript,
};
use crate::model::failure::{AttemptFailure, Retryable, ServerEndpoint};
use crate::model::sse::SseEvent;
use crate::model::test_server::{
    describe_delta, empty_request, full_transcript, pruned_transcript, two_tools,
};
use crate::model::wire::{DecodeProgress, DeltaSink, StreamDecoder as _};

fn thinking() -> ResponsesDialect {
    ResponsesDialect {
        is_openai: true,
        encrypts_thinking: true,
        has_phases: true,
        ..ResponsesDialect::default()
    }
}

fn input(transcript: &Transcript, dialect: &ResponsesDialect, with_thinking: bool) -> Value {
    request::body("m", &empty_request(transcript), dialect, with_thinking)["input"].clone()
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
    let picture = "[a picture, image/png: this model cannot be shown pictures]";
    let expected = json!({
        "model": "gpt-6-sol",
        "input": [
            {"type": "message", "role": "user", "content": "Are you there?\n\nWhat is in here?"},
            {"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "In short."}], "encrypted_content": "sealed"},
            {"type": "message", "role": "assistant", "content": "Let me look.", "phase": "commentary"},
            {"type": "function_call", "call_id": "c1", "name": "list_dir", "arguments": "{\"path\": \".\", \"n\": 1.0}"},
            {"type": "function_call", "call_id": "c2", "name": "todo", "arguments": "{}"},
            {"type": "function_call", "call_id": "c3", "name": "see_this", "arguments": "{\"unparsed_arguments\":\"{\\\"a\\\":1}{\\\"b\\\":2}\"}"},
            {"type": "function_call_output", "call_id": "c1", "output": format!("a.rs\n{picture}")},
            {"type": "function_call_output", "call_id": "c2", "output": "(no output)"},
            {"type": "function_call_output", "call_id": "c3", "output": format!("Error: no such \
                tool\n{picture}")},
            {"type": "message", "role": "assistant", "content": "One file.", "phase": "final_answer"},
            {"type": "message", "role": "user", "content": "Thanks.\n\nBe brief."},
        ],
        "stream": true,
        "store": false,
        "instructions": "You are careful.",
        "tools": [
            {"type": "function", "name": "list_dir", "description": "Lists a folder.", "parameters": schema, "strict": false},
            {"type": "function", "name": "bash", "description": "", "parameters": schema, "strict": false},
        ],
        "tool_choice": "none",
        "include": ["reasoning.encrypted_content"],
    });
    assert_eq!(request::body("gpt-6-sol", &request, &thinking(), true), expected);
}

#[test]
fn servers_other_than_openai_get_all_that_tells_an_answer_apart() {
    let said = |transcript: &Transcript| -> Vec<Value> {
        let items = input(transcript, &ResponsesDialect::default(), true);
        items
            .as_array()
            .into_iter()
            .flatten()
            .filter(|item| item["role"] == "assistant")
            .cloned()
            .collect()
    };
    let message = |id: &str, text: &str| {
        let content = json!([{"type": "output_text", "text": text, "annotations": []}]);
        json!({"type": "message", "role": "assistant", "id": id, "status": "completed", "content": content})
    };
    let mut transcript = full_transcript();
    let before = said(&transcript);
    assert_eq!(before, [message("msg_1_0_4", "Let me look."), message("msg_1_1_0", "One file.")]);
    let answer = ModelResponse {
        blocks: vec![ResponseBlock::Text("You are welcome.".into())],
        ..ModelResponse::default()
    };
    transcript.record(crate::conversation::AssistantTurn::without_calls(answer).expect("text"));
    assert_eq!(said(&transcript)[..2], before, "what was sent stays as it was");
}

#[test]
fn what_is_not_known_or_chosen_is_not_said() {
    let mut transcript = Transcript::new();
    transcript.begin_exchange("Hi");
    let body =
        |dialect: &ResponsesDialect| request::body("m", &empty_request(&transcript), dialect, true);
    let plain = json!({"model": "m", "input": [{"type": "message", "role": "user", "content": "Hi"}], "stream": true, "store": false});
    assert_eq!(body(&ResponsesDialect::default()), plain);
    let chosen = body(&ResponsesDialect {
        reasoning_effort: Some("high".into()),
        max_output: Some(9),
        ..ResponsesDialect::default()
    });
    assert_eq!(
        (&chosen["reasoning"], &chosen["max_output_tokens"]),
        (&json!({"effort": "high"}), &json!(9))
    );
}

#[test]
fn r090_thinking_goes_back_only_before_what_came_of_it_and_only_if_it_is_wanted() {
    let of_type = |input: Value| {
        input.as_array().into_iter().flatten().filter(|item| item["type"] == "reasoning").count()
    };
    assert_eq!(of_type(input(&full_transcript(), &thinking(), true)), 1);
    assert_eq!(of_type(input(&full_transcript(), &thinking(), false)), 0);
    assert_eq!(of_type(input(&full_transcript(), &ResponsesDialect::default(), true)), 0);
    // Nothing came of it: it broke off, and would be refused.
    let mut transcript = Transcript::new();
    transcript.begin_exchange("Hi");
    let sealed = |id: &str| {
        ResponseBlock::Reasoning(ModelReasoning::Sealed {
            id: id.into(),
            summary: vec![],
            data: "sealed".into(),
        })
    };
    let blocks = vec![sealed("rs_1"), ResponseBlock::Text("Hello.".into()), sealed("rs_2")];
    transcript.record(
        crate::conversation::AssistantTurn::without_calls(ModelResponse {
            blocks,
            ..ModelResponse::default()
        })
        .expect("text"),
    );
    let sent = input(&transcript, &thinking(), true);
    assert_eq!((sent[1]["id"].as_str(), of_type(sent.clone())), (Some("rs_1"), 1), "{sent}");
}

#[test]
fn r065_r070_a_summary_is_context_of_the_users_side_and_an_old_result_a_placeholder() {
    let sent = input(&pruned_transcript(), &ResponsesDialect::default(), true);
    let text = sent[0]["content"].as_str().expect("text");
    assert!(
        text.starts_with("[Context from the host, not a message of the user")
            && text.ends_with("One."),
        "{text}"
    );
    assert_eq!(
        (sent[1]["type"].as_str(), sent[2]["output"].as_str()),
        (Some("function_call"), Some(crate::conversation::PRUNED_PLACEHOLDER))
    );
}

#[test]
fn pictures_stand_in_their_result_where_the_server_takes_them() {
    let sent = input(
        &full_transcript(),
        &ResponsesDialect { accepts_images: true, ..ResponsesDialect::default() },
        true,
    );
    let picture = json!({"type": "input_image", "image_url": "data:image/png;base64,iVBORw0KGgo="});
    assert_eq!(sent[5]["output"], json!([{"type": "input_text", "text": "a.rs"}, picture]));
    assert_eq!(
        sent[7]["output"],
        json!([{"type": "input_text", "text": "Error: no such tool"}, picture])
    );
}

fn place() -> ServerEndpoint {
    ServerEndpoint {
        provider: "OpenAI",
        host: "api.example".into(),
        key_variable: "OPENAI_API_KEY",
        key: None,
    }
}

/// What comes of these events, and what was handed over on the way.
fn read(events: &[Value]) -> (Result<ModelResponse, AttemptFailure>, Vec<String>) {
    let mut heard = Vec::new();
    let mut on_delta = |delta: ResponseDelta<'_>| heard.push(describe_delta(delta));
    let mut hand = DeltaSink::new(&mut on_delta, true);
    let mut stream = ResponsesStream::new(&place());
    let mut outcome = Ok(());
    for event in events {
        match stream.decode(
            &SseEvent { name: String::new(), data: event.to_string(), ..SseEvent::default() },
            &mut hand,
        ) {
            Ok(DecodeProgress::More) => {}
            Ok(DecodeProgress::Done) => break,
            Err(failure) => {
                outcome = Err(failure);
                break;
            }
        }
    }
    (outcome.and_then(|()| stream.finish_reason()), heard)
}

fn added(index: u64, item: Value) -> Value {
    json!({"type": "response.output_item.added", "output_index": index, "item": item})
}

fn done(index: u64, item: Value) -> Value {
    json!({"type": "response.output_item.done", "output_index": index, "item": item})
}

fn call(id: &str, name: &str, arguments: &str) -> Value {
    json!({"type": "function_call", "id": format!("fc_{id}"), "call_id": id, "name": name, "arguments": arguments})
}

fn piece(index: u64, delta: &str) -> Value {
    json!({"type": "response.function_call_arguments.delta", "output_index": index, "item_id": "x", "delta": delta})
}

fn said(index: u64, delta: &str) -> Value {
    json!({"type": "response.output_text.delta", "output_index": index, "content_index": 0, "delta": delta})
}

fn message(text: &str) -> Value {
    json!({"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": text, "annotations": []}]})
}

fn completed() -> Value {
    let usage = json!({"input_tokens": 100, "input_tokens_details": {"cached_tokens": 60, "cache_write_tokens": 7}, "output_tokens": 9});
    json!({"type": "response.completed", "response": {"status": "completed", "output": [], "usage": usage}})
}

fn incomplete(reason: &str) -> Value {
    json!({"type": "response.incomplete", "response": {"status": "incomplete", "incomplete_details": {"reason": reason}}})
}

#[test]
fn r082_r090_r091_interleaved_calls_after_thinking_and_text() {
    let thought = |data: &str| json!({"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "So it is."}], "encrypted_content": data});
    let summary = |delta: &str| json!({"type": "response.reasoning_summary_text.delta", "output_index": 0, "summary_index": 0, "delta": delta});
    let events = [
        json!({"type": "response.created", "response": {"status": "in_progress"}}),
        added(
            0,
            json!({"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "not whole"}),
        ),
        summary("So "),
        summary("it is."),
        done(0, thought("whole")),
        added(1, message("")),
        said(1, "Let me "),
        said(1, "look."),
        done(1, message("Let me look.")),
        added(2, call("a", "read_file", "")),
        added(3, call("b", " grep ", "")),
        piece(2, "{\"path\":"),
        piece(3, "{}"),
        piece(2, "1}"),
        done(3, call("b", "grep", "{}")),
        done(2, call("a", "read_file", "{\"path\":1}")),
        added(4, json!({"type": "web_search_call", "id": "ws"})),
        done(4, json!({"type": "web_search_call", "id": "ws"})),
        json!({"type": "response.something.new"}),
        completed(),
    ];
    let (response, heard) = read(&events);
    let response = response.expect("it is whole");
    assert_eq!(
        heard,
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
    // And back again: thinking, text, calls, results.
    let mut transcript = Transcript::new();
    transcript.begin_exchange("Go.");
    let mut turn = OpenTurn::new(response).expect("it has calls");
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
    let events =
        [added(0, call("a", "bash", "")), piece(0, "{}"), done(0, call("a", "bash", "{}"))];
    let (response, _) = read(&events);
    let failure = response.expect_err("it did not end");
    assert_eq!((failure.kind, failure.retry), (ModelErrorKind::Malformed, Retryable::Yes(None)));
    // An end in the midst of a call is none either.
    let (response, _) = read(&[added(0, call("a", "bash", "")), piece(0, "{\"comm"), completed()]);
    assert!(response.expect_err("a call is open").message.contains("ended within a call"));
}

#[test]
fn r079_what_cut_it_off_is_told() {
    let open = [
        added(0, message("")),
        said(0, "I wri"),
        added(1, call("a", "bash", "")),
        piece(1, "{\"comm"),
    ];
    let (response, _) = read(&[&open[..], &[incomplete("max_output_tokens")]].concat());
    let response = response.expect("it is whole, as far as it goes");
    assert_eq!(
        (&response.stop, response.text().as_str(), response.calls().count()),
        (&StopReason::Length, "I wri", 1)
    );
    let (response, _) = read(&[&open[..2], &[incomplete("content_filter")]].concat());
    assert_eq!(response.expect("it is whole").stop, StopReason::Refused);
    // A reason that is new does not make the calls whole.
    let (response, _) = read(&[&open[..], &[incomplete("steered")]].concat());
    assert_eq!(response.expect("it is whole").stop, StopReason::Length);
    let (response, _) = read(&[&open[..2], &[incomplete("steered")]].concat());
    assert_eq!(response.expect("it is whole").stop, StopReason::Other("steered".into()));
    let refusal = json!({"type": "response.refusal.delta", "output_index": 0, "content_index": 0, "delta": "I cannot."});
    let (response, heard) =
        read(&[added(0, message("")), refusal, done(0, message("")), completed()]);
    assert_eq!(
        (response.expect("it is whole").stop, heard),
        (StopReason::Refused, vec!["text I cannot.".to_owned()])
    );
}

#[test]
fn r084_errors_inside_the_stream() {
    let failed = |code: &str| json!({"type": "response.failed", "response": {"status": "failed", "error": {"code": code, "message": "no"}}});
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
        let (response, _) = read(&[added(0, message("")), said(0, "I"), event.clone()]);
        let failure = response.expect_err("it is an error");
        assert_eq!((failure.kind, failure.retry), (kind, again), "{event}");
    }
}

#[test]
fn r082_what_came_at_once_is_as_good_as_what_came_in_pieces() {
    // Items without pieces, and a response that is only there as a whole.
    let whole = json!({"type": "response.completed", "response": {"output": [message("Hello."), call("a", "bash", "{}")]}});
    let streams = [
        vec![done(0, message("Hello.")), done(1, call("a", "bash", "{}")), completed()],
        vec![whole],
    ];
    for events in streams {
        let (response, heard) = read(&events);
        let response = response.expect("it is whole");
        assert_eq!(
            (response.text().as_str(), response.calls().count(), &response.stop),
            ("Hello.", 1, &StopReason::Calls)
        );
        assert_eq!(heard, ["text Hello.", "call bash"]);
    }
}

#[test]
fn r082_hostile_indices_and_pieces_are_no_more_than_names() {
    let (response, _) = read(&[
        added(u64::MAX, message("")),
        said(u64::MAX, "x"),
        done(u64::MAX, message("x")),
        completed(),
    ]);
    assert_eq!(response.expect("it is whole").text(), "x");
    for events in [
        vec![said(3, "x")],
        vec![added(0, message("")), added(0, message(""))],
        vec![json!({"type": "response.output_item.added"})],
    ] {
        let (response, _) = read(&events);
        assert_eq!(
            response.expect_err("it is malformed").kind,
            ModelErrorKind::Malformed,
            "{events:?}"
        );
    }
    // Pieces of one kind for an item of another are nobody's.
    let (response, heard) = read(&[
        added(0, message("")),
        piece(0, "{}"),
        said(0, "x"),
        done(0, message("x")),
        completed(),
    ]);
    assert_eq!(
        (response.expect("it is whole").text(), heard),
        ("x".to_owned(), vec!["text x".to_owned()])
    );
}

#[test]
fn r090_thinking_in_the_clear_is_shown_and_goes_nowhere() {
    let thought = json!({"type": "response.reasoning_text.delta", "output_index": 0, "content_index": 0, "delta": "Hm."});
    let item = json!({"type": "reasoning", "id": "rs_1", "summary": [], "content": [{"type": "reasoning_text", "text": "Hm."}]});
    let (response, heard) = read(&[
        added(0, item.clone()),
        thought,
        done(0, item),
        added(1, message("")),
        said(1, "x"),
        done(1, message("x")),
        completed(),
    ]);
    let response = response.expect("it is whole");
    assert_eq!(
        response.blocks[0],
        ResponseBlock::Reasoning(ModelReasoning::Text { text: "Hm.".into(), signature: None })
    );
    assert!(heard.contains(&"text x".to_owned()));
}

/// Whether the calls that came of these events are just these.
fn has_calls(events: &[Value], expected: &[(&str, &str)]) {
    let response = read(events).0.expect("it is whole");
    let calls: Vec<_> =
        response.calls().map(|call| (call.id.as_str(), call.arguments.as_str())).collect();
    assert_eq!(calls, expected, "{events:?}");
}

#[test]
fn r082_a_call_is_one_call_wherever_the_whole_response_lists_it() {
    let completed =
        |output: &[Value]| json!({"type": "response.completed", "response": {"output": output}});
    let once = call("a", "bash", "{}");
    let begun = added(1, call("a", "bash", ""));
    // Numbered from 1, and listed from 0.
    has_calls(
        &[
            begun.clone(),
            piece(1, "{}"),
            done(1, once.clone()),
            completed(std::slice::from_ref(&once)),
        ],
        &[("a", "{}")],
    );
    // In another order.
    let (first, second) = (call("a", "bash", "{\"n\":1}"), call("b", "bash", "{\"n\":2}"));
    let numbered = [done(0, first.clone()), done(1, second.clone()), completed(&[second, first])];
    has_calls(&numbered, &[("a", "{\"n\":1}"), ("b", "{\"n\":2}")]);
    // Whole only there, or under another number.
    has_calls(&[begun.clone(), completed(std::slice::from_ref(&once))], &[("a", "{}")]);
    has_calls(&[begun, done(4, once.clone()), completed(&[])], &[("a", "{}")]);
    // Words in pieces, and a call that is only there.
    has_calls(
        &[
            added(0, message("")),
            said(0, "I look."),
            done(0, message("I look.")),
            completed(&[message("I look."), once]),
        ],
        &[("a", "{}")],
    );
}

#[test]
fn r082_items_without_numbers_are_known_by_their_names() {
    let event = |kind: &str, item: Value| json!({"type": format!("response.output_item.{kind}"), "item": item});
    let delta = |kind: &str, id: &str, delta: &str| json!({"type": format!("response.{kind}.delta"), "item_id": id, "delta": delta});
    let named = |id: &str, text: &str| json!({"type": "message", "id": id, "content": [{"type": "output_text", "text": text}]});
    let call = |id: &str, arguments: &str| json!({"type": "function_call", "call_id": id, "name": "bash", "arguments": arguments});
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
        json!({"type": "response.completed", "response": {"output": [named("m", "Both."), call("fc_a", "{\"n\":1}"), call("fc_b", "{}")]}}),
    ];
    has_calls(&events, &[("fc_a", "{\"n\":1}"), ("fc_b", "{}")]);
    let (response, heard) = read(&events);
    assert_eq!((response.expect("it is whole").text().as_str(), heard.len()), ("Both.", 3));
    // Neither numbers nor names: what began last is meant.
    let (response, heard) = read(&[
        event("added", message("")),
        delta("output_text", "", "x"),
        event("done", message("x")),
        completed(),
    ]);
    assert_eq!(
        (response.expect("it is whole").text(), heard),
        ("x".to_owned(), vec!["text x".to_owned()])
    );
}

#[test]
fn r130_texts_of_one_response_stand_apart_where_they_are_shown_and_where_they_are_kept() {
    let remark = [
        added(0, message("")),
        said(0, "Let me"),
        said(0, " look."),
        done(0, message("Let me look.")),
    ];
    let answers = [
        vec![added(1, message("")), said(1, "It is 4."), done(1, message("It is 4."))],
        vec![done(1, message("It is 4."))],
    ];
    for answer in answers {
        let (response, heard) = read(&[&remark[..], &answer, &[completed()]].concat());
        assert_eq!(response.expect("it is whole").text(), "Let me look.\n\nIt is 4.");
        assert_eq!(
            heard.iter().filter_map(|heard| heard.strip_prefix("text ")).collect::<String>(),
            "Let me look.\n\nIt is 4."
        );
    }
}
