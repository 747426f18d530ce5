//! OpenAI's Responses, the format of its newest models: whole requests, awkward streams, and going
//! over to another provider.

use cofferdam_tests::program::TestHome;
use cofferdam_tests::wire::{
    Provider, ProviderServer, ReceivedRequest, StopReason, StreamChunking, all_providers,
    call_reply, empty_reply, error_reply, text_reply,
};
use serde_json::{Value, json};

use super::new_home;

const RESPONSES: Provider = Provider::Responses;

fn home_for(provider: Provider) -> TestHome {
    let home = new_home().with_file("a.txt", "hay\n").with_file("b.txt", "a needle\n");
    home.write_file("config/cofferdam/config.toml", provider.config(""));
    home
}

fn read_call(path: &str) -> Value {
    json!({"path": path})
}

/// The types of all items of a request, or the roles of its messages.
fn item_kinds(request: &ReceivedRequest) -> Vec<String> {
    let kind = |item: &Value| {
        item["role"].as_str().or(item["type"].as_str()).unwrap_or_default().to_owned()
    };
    request.body["input"].as_array().into_iter().flatten().map(kind).collect()
}

#[test]
fn r009_r081_r082_the_loop_is_the_same() {
    for cut in [StreamChunking::PerEvent, StreamChunking::PerByte, StreamChunking::WithinCharacters]
    {
        let home = home_for(RESPONSES);
        let look = empty_reply()
            .with_thinking("It could be anywhere: überall.")
            .with_text("I look everywhere at once. 🦀")
            .with_call("read_file", read_call("a.txt"))
            .with_call("read_file", read_call("b.txt"))
            .with_call("grep", json!({"pattern": "need.e"}));
        let count = call_reply("bash", json!({"command": "cat a.txt b.txt | wc -l"}));
        let server = RESPONSES.serve([
            look.with_chunking(cut),
            count,
            text_reply("There are **two** lines.").with_chunking(cut),
        ]);
        home.run_task(&server, &["--mode", "auto"]).expect_answer("There are **two** lines.");
        let last = server.last_request();
        let turn =
            ["user", "reasoning", "assistant", "function_call", "function_call", "function_call"];
        let results = ["function_call_output", "function_call_output", "function_call_output"];
        assert_eq!(
            item_kinds(&last),
            [&turn[..], &results, &["function_call", "function_call_output"]].concat()
        );
        assert_eq!(last.body["input"][1]["encrypted_content"], "sealed-1-0");
        let text = "I look everywhere at once. 🦀";
        let content = json!([{"type": "output_text", "text": text, "annotations": []}]);
        let said = json!({
            "type": "message", "role": "assistant", "id": "msg_0_0_1", "status": "completed",
            "content": content, "phase": "commentary",
        });
        assert_eq!(last.body["input"][2], said);
        assert!(last.tool_results()[0].text.contains('2'), "{:?}", last.tool_results());
    }
}

#[test]
fn r005_r006_at_the_limit_the_tools_stay_and_are_not_called() {
    let home = home_for(RESPONSES);
    let step = || call_reply("bash", json!({"command": "touch ran"}));
    let server = RESPONSES.serve([call_reply("read_file", read_call("a.txt")), step()]);
    home.run_task(&server, &["--mode", "auto", "--max-tool-iterations", "1"])
        .expect_outcome("limit", 3);
    assert_eq!(
        server.requests().iter().map(ReceivedRequest::allows_calls).collect::<Vec<_>>(),
        [true, false]
    );
    assert_eq!(server.requests()[0].tool_names(), server.requests()[1].tool_names());
    assert!(!home.has_file("ran"));
}

#[test]
fn r083_r084_calls_of_a_stream_that_does_not_end_well_are_not_run() {
    let write = || text_reply("I write.").with_call("bash", json!({"command": "touch ran"}));
    let table = [
        ("no end", write().without_final_event()),
        ("a broken connection", write().disconnecting()),
        ("an error", write().with_error("invalid_prompt", "not that")),
    ];
    for (name, reply) in table {
        let home = home_for(RESPONSES);
        let server = RESPONSES.serve([reply]);
        let task = home.model_command(&server, &["--mode", "auto", "--output", "stream-json"]);
        home.start(task).wait_for_exit().expect_outcome("provider-error", 7);
        assert!(!home.has_file("ran"), "{name}");
        // the text that had come is kept, once.
        let server = RESPONSES.serve([text_reply("I go on.")]);
        home.run_task(&server, &["--continue"]).expect_answer("I go on.");
        assert_eq!(server.request().count_occurrences("I write."), 1, "{name}");
    }
}

#[test]
fn r079_calls_of_a_response_that_was_cut_off_are_not_run() {
    let home = home_for(RESPONSES);
    let cut_off =
        call_reply("bash", json!({"command": "touch ran"})).with_stop_reason(StopReason::Length);
    let server = RESPONSES.serve([cut_off, text_reply("Shorter, then.")]);
    home.run_task(&server, &["--mode", "auto"]).expect_answer("Shorter, then.");
    assert!(server.last_request().tool_results()[0].is_error && !home.has_file("ran"));
}

#[test]
fn r085_what_may_pass_is_tried_again_and_what_stays_is_told() {
    let home = home_for(RESPONSES);
    let server = RESPONSES.serve([
        error_reply(503, "server_error", "busy").with_header("retry-after", 0),
        text_reply("Here."),
    ]);
    home.run_task(&server, &[]).expect_answer("Here.");
    assert_eq!(server.requests().len(), 2);
    let server = RESPONSES.serve([error_reply(400, "invalid_request_error", "no such thing")]);
    let report = home.run_task(&server, &[]).expect_outcome("provider-error", 7);
    assert!(
        report["error"].as_str().is_some_and(|error| error.contains("no such thing")),
        "{report}"
    );
}

fn server_with_thinking(provider: Provider) -> ProviderServer {
    let look =
        empty_reply().with_thinking("I look first.").with_call("read_file", read_call("a.txt"));
    provider.serve([look, empty_reply().with_thinking("I have it.").with_text("It is hay.")])
}

#[test]
fn r063_r090_a_session_goes_over_to_each_other_provider_and_thinking_goes_only_back_to_its_own() {
    for (first, second) in
        all_providers().into_iter().flat_map(|first| all_providers().map(|second| (first, second)))
    {
        let place = format!("{first:?}, then {second:?}");
        let home = home_for(first);
        home.run_task(&server_with_thinking(first), &[]).expect_answer("It is hay.");
        home.write_file("config/cofferdam/config.toml", second.config(""));
        let server = second
            .serve([call_reply("read_file", read_call("b.txt")), text_reply("And a needle.")]);
        home.run_task(&server, &["--continue"]).expect_answer("And a needle.");
        let request = &server.requests()[0];
        assert_eq!(request.count_occurrences("It is hay."), 1, "{place}: {:#}", request.body);
        let sealed = ["sealed-1-0", "sealed-2-0"].map(|sealed| request.count_occurrences(sealed));
        let expected = usize::from(first == Provider::Responses && second == Provider::Responses);
        assert_eq!(sealed, [expected; 2], "{place}: {:#}", request.body);
        let signed =
            ["signature-1", "signature-2"].map(|signature| request.count_occurrences(signature));
        assert_eq!(
            signed,
            [usize::from(first == Provider::Anthropic && second == Provider::Anthropic); 2],
            "{place}"
        );
        // And back again, with what the other one did.
        home.write_file("config/cofferdam/config.toml", first.config(""));
        let server = first.serve([text_reply("Yes.")]);
        home.run_task(&server, &["--continue"]).expect_answer("Yes.");
        let request = server.request();
        assert_eq!(
            (request.count_occurrences("It is hay."), request.count_occurrences("And a needle.")),
            (1, 1),
            "{place}: {:#}",
            request.body
        );
    }
}

#[test]
fn the_format_can_be_chosen_and_a_wrong_word_is_an_error() {
    // Another server than OpenAI's own is spoken to in chat completions, whatever its model is
    // called.
    let home = new_home();
    let server = Provider::OpenAi.serve([text_reply("Hello.")]);
    let mut command = home.command(&[
        "run",
        "Hi.",
        "--model",
        "openai:gpt-6-sol",
        "--base-url",
        &server.base_url(),
        "--output",
        "json",
    ]);
    command.env("OPENAI_API_KEY", server.key());
    home.start(command).wait_for_exit().expect_answer("Hello.");
    home.write_file("config/cofferdam/config.toml", "[provider]\napi = \"chat\"\n");
    let ran = home.run(&["run", "Hi.", "--model", "openai:m"]);
    assert!(
        ran.exit_code == 78
            && ran.stderr.contains("config.toml:2:")
            && ran.stderr.contains("chat-completions"),
        "{ran:?}"
    );
    // The whole address says it, too.
    let home = super::new_home();
    let server = RESPONSES.serve([text_reply("Hello.")]);
    let address = format!("{}/responses", server.base_url());
    let mut command = home.command(&[
        "run",
        "Hi.",
        "--model",
        "openai:gpt-6-sol",
        "--base-url",
        &address,
        "--output",
        "json",
    ]);
    command.env("OPENAI_API_KEY", server.key());
    home.start(command).wait_for_exit().expect_answer("Hello.");
}
