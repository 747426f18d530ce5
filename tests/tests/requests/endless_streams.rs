//! Streams without end: whatever of a response goes on and on, it is given up, and takes little
//! memory until then.

use cofferdam_tests::wire::{Provider, ScriptedReply, endless_reply, text_reply};
use serde_json::{Value, json};

use super::new_home;

/// A stream of events, and an error.
const STREAM_HEAD: &str = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n";
const ERROR_HEAD: &str = "HTTP/1.1 400 Bad\r\ncontent-type: application/json\r\n\r\n";

/// How much memory such a response may cost beyond what any takes: a few copies of the 4 MiB of it
/// that are kept. It is 14 MiB at most (November 2026); without limits it was 1.7 GB.
const MEMORY_ALLOWANCE: u64 = 32 << 20;

fn format_event(data: &Value) -> String {
    format!("data: {data}\n\n")
}

/// What has no end: the events before it, and the one that comes again and again.
fn endless_streams() -> Vec<(&'static str, Provider, String, String)> {
    let x = "x".repeat(2_000);
    let chunk = |delta: Value| format_event(&json!({"choices": [{"index": 0, "delta": delta}]}));
    let anthropic = |block: Value| {
        format_event(&json!({"type": "content_block_start", "index": 0, "content_block": block}))
    };
    let delta = |delta: Value| {
        format_event(&json!({"type": "content_block_delta", "index": 0, "delta": delta}))
    };
    let item = |item: Value| {
        format_event(
            &json!({"type": "response.output_item.added", "output_index": 0, "item": item}),
        )
    };
    let fragment = |arguments: &str| {
        chunk(json!({"tool_calls": [{"index": 0, "function": {"arguments": arguments}}]}))
    };
    let (openai, claude, responses) = (Provider::OpenAi, Provider::Anthropic, Provider::Responses);
    let none = String::new;
    vec![
        ("text", openai, none(), chunk(json!({"content": x}))),
        (
            "small pieces of text",
            openai,
            none(),
            chunk(json!({"content": "A few words at a time. ".repeat(4)})),
        ),
        ("thinking", openai, none(), chunk(json!({"reasoning_content": x}))),
        (
            "arguments",
            openai,
            chunk(json!({"tool_calls": [{"index": 0, "id": "a", "function": {"name": "bash"}}]})),
            fragment(&x),
        ),
        (
            "calls",
            openai,
            none(),
            chunk(json!({"tool_calls": [{"function": {"name": "a", "arguments": "{}"}}]})),
        ),
        ("comments", openai, none(), ": ping\n\n".into()),
        ("a line", openai, "data: ".into(), x.clone()),
        ("data over many lines", openai, none(), format!("data: {x}\n")),
        (
            "text",
            claude,
            anthropic(json!({"type": "text", "text": ""})),
            delta(json!({"type": "text_delta", "text": x})),
        ),
        (
            "a signature",
            claude,
            anthropic(json!({"type": "thinking"})),
            delta(json!({"type": "signature_delta", "signature": x})),
        ),
        (
            "arguments",
            claude,
            anthropic(json!({"type": "tool_use", "id": "a", "name": "bash", "input": {}})),
            delta(json!({"type": "input_json_delta", "partial_json": x})),
        ),
        (
            "text",
            responses,
            item(json!({"type": "message"})),
            format_event(
                &json!({"type": "response.output_text.delta", "output_index": 0, "delta": x}),
            ),
        ),
        (
            "items",
            responses,
            none(),
            format_event(
                &json!({"type": "response.output_item.added", "item": {"type": "web_search_call"}}),
            ),
        ),
    ]
}

/// Asks with the text shown as it comes, so that nothing is tried again; the error, and the memory
/// that it took.
fn request_error(provider: Provider, reply: ScriptedReply) -> (Value, u64) {
    let home = new_home();
    home.write_file("config/cofferdam/config.toml", provider.config(""));
    let server = provider.serve([reply]);
    let (ran, memory) = home
        .start(home.model_command(&server, &["--output", "stream-json"]))
        .wait_with_peak_memory();
    assert!(memory > 1 << 20, "it is measured: {memory}");
    let report = if ran.stdout.len() > 1 << 20 {
        ran.stdout.lines().last().map(str::to_owned)
    } else {
        None
    };
    let report = report
        .map_or_else(|| ran.report(), |line| serde_json::from_str(&line).expect("it is JSON"));
    (report, memory)
}

#[test]
fn r088_what_has_no_end_is_given_up_and_takes_little_memory() {
    let (report, usual) = request_error(Provider::OpenAi, text_reply("Hello."));
    assert_eq!(report["outcome"], "answered");
    for (what, provider, begin, again) in endless_streams() {
        let (report, memory) = request_error(
            provider,
            endless_reply(format!("{STREAM_HEAD}{begin}").as_bytes(), again.as_bytes()),
        );
        let error = report["error"].as_str().unwrap_or_default();
        assert!(
            report["outcome"] == "provider-error" && error.contains("is longer than"),
            "{provider:?}, {what}: {error}"
        );
        let more = memory.saturating_sub(usual);
        assert!(
            more < MEMORY_ALLOWANCE,
            "{provider:?}, {what}: {} MiB more than the usual {} MiB",
            more >> 20,
            usual >> 20
        );
    }
}

#[test]
fn an_error_without_end_is_told_by_its_beginning() {
    let (_, usual) = request_error(Provider::OpenAi, text_reply("Hello."));
    let (report, memory) = request_error(
        Provider::OpenAi,
        endless_reply(format!("{ERROR_HEAD}no such model").as_bytes(), b" and on"),
    );
    let error = report["error"].as_str().unwrap_or_default();
    assert!(
        error.contains("rejected the request (status 400): no such model and on")
            && error.len() < 1_000,
        "{error}"
    );
    assert!(memory.saturating_sub(usual) < MEMORY_ALLOWANCE, "{} MiB", memory >> 20);
}

#[test]
fn headers_without_end_are_an_error() {
    let (report, memory) = retried_request_error(&endless_reply(
        b"HTTP/1.1 200 OK\r\n",
        b"x-more: and more of it\r\n",
    ));
    assert_eq!(report["outcome"], "provider-error", "{report}");
    assert!(memory < 128 << 20, "{} MiB", memory >> 20);
}

/// A broken connection is tried again, twice.
fn retried_request_error(reply: &ScriptedReply) -> (Value, u64) {
    let home = new_home();
    let server = Provider::OpenAi.serve([reply.clone(), reply.clone(), reply.clone()]);
    let (ran, memory) =
        home.start(home.model_command(&server, &["--output", "json"])).wait_with_peak_memory();
    (ran.report(), memory)
}
