//! `research_codebase`: a sub-agent that reads, whose words come back and nothing else.

use std::time::Duration;

use cofferdam::policy::Capability;
use cofferdam_tests::guests::{GuestTool, TestGuest};
use cofferdam_tests::wire::{
    ProviderServer, ReceivedRequest, ScriptedReply, both_providers, call_reply, error_reply,
    hanging_reply, text_reply,
};
use serde_json::{Value, json};

use super::new_home;

fn question_call(question: &str) -> (&'static str, Value) {
    ("research_codebase", json!({"question": question}))
}

/// One response with a call for each question.
fn research_reply(questions: &[&str]) -> ScriptedReply {
    questions.iter().fold(text_reply("I have it looked up."), |reply, question| {
        let (tool, arguments) = question_call(question);
        reply.with_call(tool, arguments)
    })
}

fn read_call(path: &str) -> ScriptedReply {
    call_reply("read_file", json!({"path": path}))
}

/// The requests of the sub-agent with this question.
fn sub_agent_requests(server: &ProviderServer, question: &str) -> Vec<ReceivedRequest> {
    server
        .requests()
        .into_iter()
        .filter(|request| request.user_texts()[0].contains(question))
        .collect()
}

#[test]
fn r124_two_sub_agents_work_side_by_side_and_their_answers_come_back_in_order() {
    for provider in both_providers() {
        let home = new_home().with_file("a.txt", "the sea\n").with_file("b.txt", "the land\n");
        let server = provider.serve([
            research_reply(&["What is in a?", "What is in b?"]),
            // Neither ends before both have begun.
            read_call("a.txt").only_for("in a?").after_release(),
            read_call("b.txt").only_for("in b?").after_release(),
            text_reply("In a is the sea.").only_for("in a?"),
            text_reply("In b is the land.").only_for("in b?"),
            text_reply("Sea and land."),
        ]);
        let running =
            home.start(home.model_command(&server, &["--max-parallel", "2", "--output", "json"]));
        server.wait_for_requests(3);
        server.release();
        let ran = running.wait_for_exit();
        let report = ran.expect_outcome("answered", 0);
        let texts: Vec<String> =
            server.last_request().tool_results().into_iter().map(|result| result.text).collect();
        assert_eq!(texts, ["In a is the sea.", "In b is the land."]);
        // Each turn of each of them took 100 tokens and gave 10, and all of it is in the report.
        assert_eq!(
            (&report["usage"]["input"], &report["usage"]["output"], &report["turns"]),
            (&json!(600), &json!(60), &json!(2))
        );
        let calls: Vec<&str> = report["calls"]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(|call| call["tier"].as_str())
            .collect();
        assert_eq!(calls, ["research", "research"]);
    }
}

#[test]
fn r124_a_sub_agent_begins_with_its_task_and_has_the_tools_that_read() {
    for provider in both_providers() {
        let home = new_home().with_file("a.txt", "the sea\n");
        let server = provider.serve([
            research_reply(&["What is in a?"]),
            call_reply("bash", json!({"command": "touch ran"}))
                .with_call("research_codebase", json!({"question": "deeper"}))
                .only_for("in a?"),
            text_reply("Nothing.").only_for("in a?"),
            text_reply("So be it."),
        ]);
        home.run_task(&server, &["--mode", "auto"]).expect_answer("So be it.");
        let [first, second] =
            sub_agent_requests(&server, "in a?").try_into().expect("two requests");
        assert_eq!(
            first.user_texts(),
            ["Answer this question about the code in the workspace:\n\nWhat is in a?\n"]
        );
        assert!(
            first.system_prompt().starts_with("You are a sub-agent."),
            "{}",
            first.system_prompt()
        );
        let tools = first.tool_names();
        for (tool, is_there) in [
            ("read_file", true),
            ("grep", true),
            ("bash", false),
            ("write_file", false),
            ("research_codebase", false),
        ] {
            assert_eq!(tools.iter().any(|name| name == tool), is_there, "{tool}: {tools:?}");
        }
        // What it calls all the same is refused, and the mode does not matter.
        let results = second.tool_results();
        assert!(
            results.iter().all(|result| result.is_error && result.text.contains("unknown tool")),
            "{results:?}"
        );
        assert!(!home.has_file("ran"));
    }
}

#[test]
fn r124_a_failure_inside_is_a_result_and_no_end() {
    for provider in both_providers() {
        let server = provider.serve([
            research_reply(&["What is in a?"]),
            error_reply(400, "invalid_request_error", "the question is too hard").only_for("in a?"),
            text_reply("I look myself."),
        ]);
        new_home().run_task(&server, &[]).expect_answer("I look myself.");
        let [result] = server.last_request().tool_results().try_into().expect("one result");
        assert!(
            result.is_error && result.text.contains("gave no answer (provider-error)"),
            "{result:?}"
        );
        assert!(result.text.contains("the question is too hard"), "{result:?}");
    }
}

#[test]
fn r085_a_stream_that_breaks_off_within_begins_anew_since_nobody_has_seen_it() {
    for provider in both_providers() {
        let server = provider.serve([
            research_reply(&["What is in a?"]),
            text_reply("The s").disconnecting().only_for("in a?"),
            text_reply("The sea.").only_for("in a?"),
            text_reply("Done."),
        ]);
        // Who reads the events sees what the agent says, and nothing of what its sub-agent does.
        let home = new_home();
        home.start(home.model_command(&server, &["--output", "stream-json"]))
            .wait_for_exit()
            .expect_answer("Done.");
        let [result] = server.last_request().tool_results().try_into().expect("one result");
        assert!(!result.is_error && result.text.starts_with("The sea."), "{result:?}");
    }
}

#[test]
fn r124_a_sub_agent_has_a_cap_of_its_own() {
    for provider in both_providers() {
        let home = new_home().with_file("a.txt", "the sea\n");
        let mut script = vec![research_reply(&["What is in a?"])];
        script.extend((1..=20).map(|line| {
            call_reply("read_file", json!({"path": "a.txt", "offset": 1, "limit": line}))
                .only_for("in a?")
        }));
        script.push(text_reply("The sea, as far as I got.").only_for("in a?"));
        script.push(text_reply("Done."));
        let server = provider.serve(script);
        let ran = home.run_task(&server, &["--max-tool-iterations", "1"]);
        assert_eq!(ran.expect_outcome("limit", 3)["text"], "Done.");
        let [result] = server.last_request().tool_results().try_into().expect("one result");
        assert!(
            !result.is_error
                && result.text.starts_with(
                    "The sea, as far as I got.\n\n[The sub-agent reached its limit of"
                ),
            "{result:?}"
        );
        let last = sub_agent_requests(&server, "in a?").pop().expect("it asked");
        assert!(!last.allows_calls());
    }
}

#[test]
fn r017_the_calls_of_sub_agents_count_with_all_others() {
    let [provider, _] = both_providers();
    let home = new_home();
    home.write_file(
        "busy.wasm",
        TestGuest::from_file("busy")
            .with_tools([GuestTool::new("busy").with_requested(&[Capability::ReadFiles])])
            .component(),
    );
    let plugin = home.path().join("busy.wasm").display().to_string();
    assert_eq!(home.run(&["lock", "--yes", "--plugin", &plugin]).exit_code, 0);
    let nap = || json!({"ms": "400"});
    let naps = || call_reply("busy", nap()).with_call("busy", nap());
    let server = provider.serve([
        research_reply(&["What is in a?", "What is in b?"]),
        naps().only_for("in a?"),
        naps().only_for("in b?"),
        text_reply("A.").only_for("in a?"),
        text_reply("B.").only_for("in b?"),
        text_reply("Done."),
    ]);
    let ran = home.run_task(&server, &["--max-parallel", "2", "--plugin", &plugin]);
    ran.expect_answer("Done.");
    // Four naps, two at a time. Side by side with their own limits, all four would be over after
    // one.
    assert!(ran.duration >= Duration::from_millis(800), "{:?}", ran.duration);
}

#[test]
fn r101_a_sub_agent_is_stopped_with_its_request() {
    for provider in both_providers() {
        let server = provider.serve([
            research_reply(&["What is in a?", "What is in b?"]),
            hanging_reply().only_for("in a?"),
            hanging_reply().only_for("in b?"),
        ]);
        let home = new_home();
        let running =
            home.start(home.model_command(&server, &["--max-parallel", "2", "--output", "json"]));
        server.wait_for_requests(3);
        running.interrupt();
        let ran = running.wait_for_exit();
        assert_eq!(ran.expect_outcome("aborted", 130)["turns"], 1);
    }
}

#[test]
fn r124_its_progress_is_shown() {
    let [provider, _] = both_providers();
    let home = new_home().with_file("a.txt", "the sea\n");
    let server = provider.serve([
        research_reply(&["What is in a?"]),
        read_call("a.txt").only_for("in a?"),
        text_reply("The sea.").only_for("in a?"),
        text_reply("Done."),
    ]);
    let ran = home.start(home.model_command(&server, &["--output", "stream-json"])).wait_for_exit();
    let progress: Vec<Value> =
        ran.json_lines().into_iter().filter(|line| line["type"] == "call_progress").collect();
    assert_eq!(
        progress.iter().map(|line| &line["message"]).collect::<Vec<_>>(),
        [&json!("read_file a.txt")]
    );
    let turns =
        ran.json_lines().into_iter().filter(|line| line["type"] == "sub_agent_turn").count();
    assert_eq!(turns, 2);
}

#[test]
fn r124_without_a_model_there_is_no_sub_agent() {
    let ran = new_home().run(&["tools", "call", "research_codebase", r#"{"question":"Where?"}"#]);
    assert!(
        ran.exit_code == 1
            && ran.stderr.contains(
                "denied (no-sub-agent): no model is available \
            for a sub-agent."
            ),
        "{ran:?}"
    );
}
