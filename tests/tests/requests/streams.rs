//! Streams in every shape in which they may arrive.

use cofferdam_tests::wire::{
    Provider, StreamChunking, all_providers, both_providers, call_reply, empty_reply, raw_reply,
    text_reply,
};
use serde_json::{Value, json};

use super::new_home;

const ANSWER: &str = "Grüße!\n\n- 日本語 \u{1f30a}\r\n- \"quoted\" \\ back\tslash\n";

#[test]
fn r088_however_the_bytes_are_cut_the_text_and_the_arguments_are_whole() {
    let shapes = [
        StreamChunking::PerEvent,
        StreamChunking::Whole,
        StreamChunking::PerByte,
        StreamChunking::WithinCharacters,
    ]
    .into_iter()
    .flat_map(|cut| [(cut, false), (cut, true)]);
    for (provider, (cut, crlf)) in both_providers()
        .into_iter()
        .flat_map(|provider| shapes.clone().map(move |shape| (provider, shape)))
    {
        let home = new_home().with_file("Äpfel/日本.txt", "süß\n").with_file("b.txt", "second\n");
        let shape = |reply: cofferdam_tests::wire::ScriptedReply| {
            if crlf { reply.with_chunking(cut).with_crlf() } else { reply.with_chunking(cut) }
        };
        let read = text_reply("Ich lese „alles“.")
            .with_call("read_file", json!({"path": "Äpfel/日本.txt"}))
            .with_call("read_file", json!({"path": "b.txt"}));
        let server = provider.serve([shape(read), shape(text_reply(ANSWER))]);
        home.run_task(&server, &[]).expect_answer(ANSWER);
        let texts: Vec<String> =
            server.last_request().tool_results().into_iter().map(|result| result.text).collect();
        assert!(
            texts.len() == 2 && texts[0].contains("süß") && texts[1].contains("second"),
            "{provider:?}, {cut:?}, crlf {crlf}: {texts:?}"
        );
        assert_eq!(
            server.last_request().count_occurrences("Ich lese „alles“."),
            1,
            "{provider:?}, {cut:?}, crlf {crlf}"
        );
    }
}

/// A call of `bash` whose arguments hold a byte that is no text, in the provider's own form.
fn invalid_utf8_call(provider: Provider) -> Vec<u8> {
    let arguments = json!({"command": "touch ran; : %"}).to_string();
    let events = match provider {
        Provider::OpenAi => {
            let function = json!({"name": "bash", "arguments": arguments});
            let call = json!({"index": 0, "id": "a", "type": "function", "function": function});
            let choice = |delta: Value, finish: Value| {
                let choice = json!({"index": 0, "delta": delta, "finish_reason": finish});
                json!({"choices": [choice]})
            };
            vec![
                choice(json!({"tool_calls": [call]}), Value::Null),
                choice(json!({}), json!("tool_calls")),
            ]
        }
        Provider::Anthropic => vec![
            json!({"type": "message_start", "message": {}}),
            json!({
                "type": "content_block_start", "index": 0,
                "content_block": {"type": "tool_use", "id": "a", "name": "bash", "input": {}},
            }),
            json!({
                "type": "content_block_delta", "index": 0,
                "delta": {"type": "input_json_delta", "partial_json": arguments},
            }),
            json!({"type": "content_block_stop", "index": 0}),
            json!({"type": "message_delta", "delta": {"stop_reason": "tool_use"}}),
            json!({"type": "message_stop"}),
        ],
        Provider::Responses => {
            let call = |arguments: &str| {
                json!({
                    "type": "function_call", "id": "fc_a", "call_id": "a", "name": "bash",
                    "arguments": arguments,
                })
            };
            vec![
                json!({"type": "response.output_item.added", "output_index": 0, "item": call("")}),
                json!({
                    "type": "response.function_call_arguments.delta", "output_index": 0,
                    "delta": arguments,
                }),
                json!({
                    "type": "response.output_item.done", "output_index": 0,
                    "item": call(&arguments),
                }),
                json!({"type": "response.completed", "response": {"output": [call(&arguments)]}}),
            ]
        }
    };
    let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n".to_owned();
    let stream =
        head + &events.iter().map(|event| format!("data: {event}\n\n")).collect::<String>();
    stream.bytes().map(|byte| if byte == b'%' { 0xFF } else { byte }).collect()
}

#[test]
fn r023_a_call_whose_arguments_are_no_text_is_not_run() {
    for provider in all_providers() {
        let home = new_home();
        home.write_file("config/cofferdam/config.toml", provider.config(""));
        let server = provider
            .serve([raw_reply(&invalid_utf8_call(provider)), text_reply("Once more, then.")]);
        home.run_task(&server, &["--mode", "auto"]).expect_answer("Once more, then.");
        let results = server.last_request().tool_results();
        let is_named = results[0].text.contains("invalid UTF-8. The call did not run");
        assert!(results.len() == 1 && results[0].is_error && is_named, "{provider:?}: {results:?}");
        assert!(!home.has_file("ran"), "{provider:?}");
    }
}

#[test]
fn r090_thinking_is_not_part_of_the_answer() {
    for provider in both_providers() {
        let home = new_home();
        let server =
            provider.serve([empty_reply().with_thinking("Let me think.").with_text("The answer.")]);
        let ran =
            home.start(home.model_command(&server, &["--output", "stream-json"])).wait_for_exit();
        ran.expect_answer("The answer.");
        let thought: String = ran
            .json_lines()
            .iter()
            .filter(|line| line["type"] == "reasoning")
            .filter_map(|line| line["text"].as_str().map(str::to_owned))
            .collect();
        assert_eq!(thought, "Let me think.");
    }
}

#[test]
fn r091_usage_is_summed_and_what_is_unknown_is_not_zero() {
    for provider in both_providers() {
        let server = provider.serve([
            empty_reply().with_call("submit", json!({})).with_usage(Some((1_000, 20))),
            text_reply("Done.").with_usage(Some((1_100, 7))),
        ]);
        let report = new_home().run_task(&server, &[]).expect_outcome("answered", 0);
        assert_eq!(
            (&report["usage"]["input"], &report["usage"]["output"]),
            (&json!(2_100), &json!(27)),
            "{provider:?}"
        );
        let server = provider.serve([text_reply("Done.").with_usage(None)]);
        let report = new_home().run_task(&server, &[]).expect_outcome("answered", 0);
        assert_eq!(
            (&report["usage"]["input"], &report["cost"]),
            (&json!(null), &json!(null)),
            "{provider:?}"
        );
    }
}

#[test]
fn r082_a_thousand_calls_in_one_response() {
    for provider in both_providers() {
        let many = (0..1_000).fold(empty_reply(), |reply, n| {
            reply.with_raw_call(
                &format!("c{n}"),
                "submit",
                &json!({"summary": n.to_string()}).to_string(),
            )
        });
        let server = provider.serve([many, text_reply("All of them.")]);
        new_home().run_task(&server, &[]).expect_answer("All of them.");
        let ids: Vec<String> =
            server.last_request().tool_results().into_iter().map(|result| result.id).collect();
        assert_eq!(ids, (0..1_000).map(|n| format!("c{n}")).collect::<Vec<_>>());
    }
}

#[test]
fn what_is_marked_for_the_cache_stays_within_the_limit_of_four() {
    let server = Provider::Anthropic.serve([
        call_reply("submit", json!({})).with_call("submit", json!({})),
        call_reply("submit", json!({})),
        text_reply("Done."),
    ]);
    new_home().run_task(&server, &[]).expect_answer("Done.");
    for request in server.requests() {
        let body = &request.body;
        let marks = body.to_string().matches("\"cache_control\"").count();
        let last = |list: &Value| {
            list.as_array().and_then(|list| list.last()).expect("it is not empty").clone()
        };
        let newest = last(&last(&body["messages"])["content"]);
        assert_eq!((marks, &newest["cache_control"]["type"]), (3, &json!("ephemeral")), "{body:#}");
        assert_eq!(last(&body["system"])["cache_control"], last(&body["tools"])["cache_control"]);
    }
}
