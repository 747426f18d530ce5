//! OpenAI's Responses, the format of its newest models: whole requests, awkward streams, and going over to another provider.

use cofferdam_tests::program::Home;
use cofferdam_tests::wire::{Cut, Provider, Request, Server, Stop, all, calls, fails, nothing, says};
use serde_json::{Value, json};

use super::home;

const RESPONSES: Provider = Provider::Responses;

fn home_for(provider: Provider) -> Home {
    let home = home().with("a.txt", "hay\n").with("b.txt", "a needle\n");
    home.write("config/cofferdam/config.toml", provider.config(""));
    home
}

fn read(path: &str) -> Value {
    json!({"path": path})
}

/// The types of all items of a request, or the roles of its messages.
fn kinds(request: &Request) -> Vec<String> {
    let kind = |item: &Value| item["role"].as_str().or(item["type"].as_str()).unwrap_or_default().to_owned();
    request.body["input"].as_array().into_iter().flatten().map(kind).collect()
}

#[test]
fn r009_r081_r082_the_loop_is_the_same() {
    for cut in [Cut::Events, Cut::Bytes, Cut::InCharacters] {
        let home = home_for(RESPONSES);
        let look = nothing()
            .thinks("It could be anywhere: überall.")
            .text("I look everywhere at once. 🦀")
            .call("read_file", read("a.txt"))
            .call("read_file", read("b.txt"))
            .call("grep", json!({"pattern": "need.e"}));
        let count = calls("bash", json!({"command": "cat a.txt b.txt | wc -l"}));
        let server = RESPONSES.serve([look.cut(cut), count, says("There are **two** lines.").cut(cut)]);
        home.ask(&server, &["--mode", "auto"]).answered("There are **two** lines.");
        let last = server.last_request();
        let turn = ["user", "reasoning", "assistant", "function_call", "function_call", "function_call"];
        let results = ["function_call_output", "function_call_output", "function_call_output"];
        assert_eq!(kinds(&last), [&turn[..], &results, &["function_call", "function_call_output"]].concat());
        assert_eq!(last.body["input"][1]["encrypted_content"], "sealed-1-0");
        let content = json!([{"type": "output_text", "text": "I look everywhere at once. 🦀", "annotations": []}]);
        let said = json!({"type": "message", "role": "assistant", "id": "msg_0_0_1", "status": "completed", "content": content, "phase": "commentary"});
        assert_eq!(last.body["input"][2], said);
        assert!(last.results()[0].text.contains('2'), "{:?}", last.results());
    }
}

#[test]
fn r005_r006_at_the_limit_the_tools_stay_and_are_not_called() {
    let home = home_for(RESPONSES);
    let step = || calls("bash", json!({"command": "touch ran"}));
    let server = RESPONSES.serve([calls("read_file", read("a.txt")), step()]);
    home.ask(&server, &["--mode", "auto", "--max-tool-iterations", "1"]).ended("limit", 3);
    assert_eq!(server.requests().iter().map(Request::lets_call).collect::<Vec<_>>(), [true, false]);
    assert_eq!(server.requests()[0].tools(), server.requests()[1].tools());
    assert!(!home.has("ran"));
}

#[test]
fn r083_r084_calls_of_a_stream_that_does_not_end_well_are_not_run() {
    let write = || says("I write.").call("bash", json!({"command": "touch ran"}));
    let table = [
        ("no end", write().without_end()),
        ("a broken connection", write().breaks_off()),
        ("an error", write().then_error("invalid_prompt", "not that")),
    ];
    for (name, reply) in table {
        let home = home_for(RESPONSES);
        let server = RESPONSES.serve([reply]);
        let task = home.task(&server, &["--mode", "auto", "--output", "stream-json"]);
        home.start(task).wait().ended("provider-error", 7);
        assert!(!home.has("ran"), "{name}");
        // the text that had come is kept, once.
        let server = RESPONSES.serve([says("I go on.")]);
        home.ask(&server, &["--continue"]).answered("I go on.");
        assert_eq!(server.request().count("I write."), 1, "{name}");
    }
}

#[test]
fn r079_calls_of_a_response_that_was_cut_off_are_not_run() {
    let home = home_for(RESPONSES);
    let cut_off = calls("bash", json!({"command": "touch ran"})).stops(Stop::Length);
    let server = RESPONSES.serve([cut_off, says("Shorter, then.")]);
    home.ask(&server, &["--mode", "auto"]).answered("Shorter, then.");
    assert!(server.last_request().results()[0].is_error && !home.has("ran"));
}

#[test]
fn r085_what_may_pass_is_tried_again_and_what_stays_is_told() {
    let home = home_for(RESPONSES);
    let server = RESPONSES.serve([fails(503, "server_error", "busy").header("retry-after", 0), says("Here.")]);
    home.ask(&server, &[]).answered("Here.");
    assert_eq!(server.requests().len(), 2);
    let server = RESPONSES.serve([fails(400, "invalid_request_error", "no such thing")]);
    let report = home.ask(&server, &[]).ended("provider-error", 7);
    assert!(report["error"].as_str().is_some_and(|error| error.contains("no such thing")), "{report}");
}

fn with_thinking(provider: Provider) -> Server {
    let look = nothing().thinks("I look first.").call("read_file", read("a.txt"));
    provider.serve([look, nothing().thinks("I have it.").text("It is hay.")])
}

#[test]
fn r063_r090_a_session_goes_over_to_each_other_provider_and_thinking_goes_only_back_to_its_own() {
    for (first, second) in all().into_iter().flat_map(|first| all().map(|second| (first, second))) {
        let place = format!("{first:?}, then {second:?}");
        let home = home_for(first);
        home.ask(&with_thinking(first), &[]).answered("It is hay.");
        home.write("config/cofferdam/config.toml", second.config(""));
        let server = second.serve([calls("read_file", read("b.txt")), says("And a needle.")]);
        home.ask(&server, &["--continue"]).answered("And a needle.");
        let request = &server.requests()[0];
        assert_eq!(request.count("It is hay."), 1, "{place}: {:#}", request.body);
        let sealed = ["sealed-1-0", "sealed-2-0"].map(|sealed| request.count(sealed));
        let expected = usize::from(first == Provider::Responses && second == Provider::Responses);
        assert_eq!(sealed, [expected; 2], "{place}: {:#}", request.body);
        let signed = ["signature-1", "signature-2"].map(|signature| request.count(signature));
        assert_eq!(signed, [usize::from(first == Provider::Anthropic && second == Provider::Anthropic); 2], "{place}");
        // And back again, with what the other one did.
        home.write("config/cofferdam/config.toml", first.config(""));
        let server = first.serve([says("Yes.")]);
        home.ask(&server, &["--continue"]).answered("Yes.");
        let request = server.request();
        assert_eq!((request.count("It is hay."), request.count("And a needle.")), (1, 1), "{place}: {:#}", request.body);
    }
}

#[test]
fn the_format_can_be_chosen_and_a_wrong_word_is_an_error() {
    // Another server than OpenAI's own is spoken to in chat completions, whatever its model is called.
    let home = home();
    let server = Provider::OpenAi.serve([says("Hello.")]);
    let mut command = home.command(&["run", "Hi.", "--model", "openai:gpt-6-sol", "--base-url", &server.base_url(), "--output", "json"]);
    command.env("OPENAI_API_KEY", server.key());
    home.start(command).wait().answered("Hello.");
    home.write("config/cofferdam/config.toml", "[provider]\napi = \"chat\"\n");
    let ran = home.run(&["run", "Hi.", "--model", "openai:m"]);
    assert!(ran.code == 78 && ran.stderr.contains("config.toml:2:") && ran.stderr.contains("chat-completions"), "{ran:?}");
    // The whole address says it, too.
    let home = super::home();
    let server = RESPONSES.serve([says("Hello.")]);
    let address = format!("{}/responses", server.base_url());
    let mut command = home.command(&["run", "Hi.", "--model", "openai:gpt-6-sol", "--base-url", &address, "--output", "json"]);
    command.env("OPENAI_API_KEY", server.key());
    home.start(command).wait().answered("Hello.");
}
