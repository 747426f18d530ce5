//! Streams in every shape in which they may arrive.

use cofferdam_tests::wire::{Cut, Provider, all, both, calls, nothing, raw, says};
use serde_json::{Value, json};

use super::home;

const ANSWER: &str = "Grüße!\n\n- 日本語 \u{1f30a}\r\n- \"quoted\" \\ back\tslash\n";

#[test]
fn r088_however_the_bytes_are_cut_the_text_and_the_arguments_are_whole() {
    let shapes = [Cut::Events, Cut::Nowhere, Cut::Bytes, Cut::InCharacters].into_iter().flat_map(|cut| [(cut, false), (cut, true)]);
    for (provider, (cut, crlf)) in both().into_iter().flat_map(|provider| shapes.clone().map(move |shape| (provider, shape))) {
        let home = home().with("Äpfel/日本.txt", "süß\n").with("b.txt", "second\n");
        let shape = |reply: cofferdam_tests::wire::Reply| if crlf { reply.cut(cut).crlf() } else { reply.cut(cut) };
        let read =
            says("Ich lese „alles“.").call("read_file", json!({"path": "Äpfel/日本.txt"})).call("read_file", json!({"path": "b.txt"}));
        let server = provider.serve([shape(read), shape(says(ANSWER))]);
        home.ask(&server, &[]).answered(ANSWER);
        let texts: Vec<String> = server.last_request().results().into_iter().map(|result| result.text).collect();
        assert!(
            texts.len() == 2 && texts[0].contains("süß") && texts[1].contains("second"),
            "{provider:?}, {cut:?}, crlf {crlf}: {texts:?}"
        );
        assert_eq!(server.last_request().count("Ich lese „alles“."), 1, "{provider:?}, {cut:?}, crlf {crlf}");
    }
}

/// A call of `bash` whose arguments hold a byte that is no text, in the provider's own form.
fn damaged(provider: Provider) -> Vec<u8> {
    let arguments = json!({"command": "touch ran; : %"}).to_string();
    let events = match provider {
        Provider::OpenAi => {
            let call = json!({"index": 0, "id": "a", "type": "function", "function": {"name": "bash", "arguments": arguments}});
            let choice = |delta: Value, finish: Value| json!({"choices": [{"index": 0, "delta": delta, "finish_reason": finish}]});
            vec![choice(json!({"tool_calls": [call]}), Value::Null), choice(json!({}), json!("tool_calls"))]
        }
        Provider::Anthropic => vec![
            json!({"type": "message_start", "message": {}}),
            json!({"type": "content_block_start", "index": 0, "content_block": {"type": "tool_use", "id": "a", "name": "bash", "input": {}}}),
            json!({"type": "content_block_delta", "index": 0, "delta": {"type": "input_json_delta", "partial_json": arguments}}),
            json!({"type": "content_block_stop", "index": 0}),
            json!({"type": "message_delta", "delta": {"stop_reason": "tool_use"}}),
            json!({"type": "message_stop"}),
        ],
        Provider::Responses => {
            let call =
                |arguments: &str| json!({"type": "function_call", "id": "fc_a", "call_id": "a", "name": "bash", "arguments": arguments});
            vec![
                json!({"type": "response.output_item.added", "output_index": 0, "item": call("")}),
                json!({"type": "response.function_call_arguments.delta", "output_index": 0, "delta": arguments}),
                json!({"type": "response.output_item.done", "output_index": 0, "item": call(&arguments)}),
                json!({"type": "response.completed", "response": {"output": [call(&arguments)]}}),
            ]
        }
    };
    let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n".to_owned();
    let stream = head + &events.iter().map(|event| format!("data: {event}\n\n")).collect::<String>();
    stream.bytes().map(|byte| if byte == b'%' { 0xFF } else { byte }).collect()
}

#[test]
fn r023_a_call_whose_arguments_are_no_text_is_not_run() {
    for provider in all() {
        let home = home();
        home.write("config/cofferdam/config.toml", provider.config(""));
        let server = provider.serve([raw(&damaged(provider)), says("Once more, then.")]);
        home.ask(&server, &["--mode", "auto"]).answered("Once more, then.");
        let results = server.last_request().results();
        let is_named = results[0].text.contains("they hold bytes that are not UTF-8. Nothing was run");
        assert!(results.len() == 1 && results[0].is_error && is_named, "{provider:?}: {results:?}");
        assert!(!home.has("ran"), "{provider:?}");
    }
}

#[test]
fn r090_thinking_is_not_part_of_the_answer() {
    for provider in both() {
        let home = home();
        let server = provider.serve([nothing().thinks("Let me think.").text("The answer.")]);
        let ran = home.start(home.task(&server, &["--output", "stream-json"])).wait();
        ran.answered("The answer.");
        let thought: String = ran
            .lines()
            .iter()
            .filter(|line| line["type"] == "reasoning")
            .filter_map(|line| line["text"].as_str().map(str::to_owned))
            .collect();
        assert_eq!(thought, "Let me think.");
    }
}

#[test]
fn r091_usage_is_summed_and_what_is_unknown_is_not_zero() {
    for provider in both() {
        let server = provider.serve([nothing().call("submit", json!({})).usage(Some((1_000, 20))), says("Done.").usage(Some((1_100, 7)))]);
        let report = home().ask(&server, &[]).ended("answered", 0);
        assert_eq!((&report["usage"]["input"], &report["usage"]["output"]), (&json!(2_100), &json!(27)), "{provider:?}");
        let server = provider.serve([says("Done.").usage(None)]);
        let report = home().ask(&server, &[]).ended("answered", 0);
        assert_eq!((&report["usage"]["input"], &report["cost"]), (&json!(null), &json!(null)), "{provider:?}");
    }
}

#[test]
fn r082_a_thousand_calls_in_one_response() {
    for provider in both() {
        let many = (0..1_000)
            .fold(nothing(), |reply, n| reply.raw_call(&format!("c{n}"), "submit", &json!({"summary": n.to_string()}).to_string()));
        let server = provider.serve([many, says("All of them.")]);
        home().ask(&server, &[]).answered("All of them.");
        let ids: Vec<String> = server.last_request().results().into_iter().map(|result| result.id).collect();
        assert_eq!(ids, (0..1_000).map(|n| format!("c{n}")).collect::<Vec<_>>());
    }
}

#[test]
fn what_is_marked_for_the_cache_stays_within_the_limit_of_four() {
    let server =
        Provider::Anthropic.serve([calls("submit", json!({})).call("submit", json!({})), calls("submit", json!({})), says("Done.")]);
    home().ask(&server, &[]).answered("Done.");
    for request in server.requests() {
        let body = &request.body;
        let marks = body.to_string().matches("\"cache_control\"").count();
        let last = |list: &Value| list.as_array().and_then(|list| list.last()).expect("it is not empty").clone();
        let newest = last(&last(&body["messages"])["content"]);
        assert_eq!((marks, &newest["cache_control"]["type"]), (3, &json!("ephemeral")), "{body:#}");
        assert_eq!(last(&body["system"])["cache_control"], last(&body["tools"])["cache_control"]);
    }
}
