//! `research_codebase`: a sub-agent that reads, whose words come back and nothing else.

use std::time::Duration;

use cofferdam::policy::Capability;
use cofferdam_tests::guests::{Guest, Tool};
use cofferdam_tests::wire::{Reply, Request, Server, both, calls, fails, hangs, says};
use serde_json::{Value, json};

use super::home;

fn asks(question: &str) -> (&'static str, Value) {
    ("research_codebase", json!({"question": question}))
}

/// One response with a call for each question.
fn researches(questions: &[&str]) -> Reply {
    questions.iter().fold(says("I have it looked up."), |reply, question| {
        let (tool, arguments) = asks(question);
        reply.call(tool, arguments)
    })
}

fn read(path: &str) -> Reply {
    calls("read_file", json!({"path": path}))
}

/// The requests of the sub-agent with this question.
fn of(server: &Server, question: &str) -> Vec<Request> {
    server.requests().into_iter().filter(|request| request.user_texts()[0].contains(question)).collect()
}

#[test]
fn r124_two_sub_agents_work_side_by_side_and_their_answers_come_back_in_order() {
    for provider in both() {
        let home = home().with("a.txt", "the sea\n").with("b.txt", "the land\n");
        let server = provider.serve([
            researches(&["What is in a?", "What is in b?"]),
            // Neither ends before both have begun.
            read("a.txt").to("in a?").when_released(),
            read("b.txt").to("in b?").when_released(),
            says("In a is the sea.").to("in a?"),
            says("In b is the land.").to("in b?"),
            says("Sea and land."),
        ]);
        let running = home.start(home.task(&server, &["--max-parallel", "2", "--output", "json"]));
        server.wait_for_requests(3);
        server.release();
        let ran = running.wait();
        let report = ran.ended("answered", 0);
        let texts: Vec<String> = server.last_request().results().into_iter().map(|result| result.text).collect();
        assert_eq!(texts, ["In a is the sea.", "In b is the land."]);
        // Each turn of each of them took 100 tokens and gave 10, and all of it is in the report.
        assert_eq!((&report["usage"]["input"], &report["usage"]["output"], &report["turns"]), (&json!(600), &json!(60), &json!(2)));
        let calls: Vec<&str> = report["calls"].as_array().into_iter().flatten().filter_map(|call| call["tier"].as_str()).collect();
        assert_eq!(calls, ["research", "research"]);
    }
}

#[test]
fn r124_a_sub_agent_begins_with_its_task_and_has_the_tools_that_read() {
    for provider in both() {
        let home = home().with("a.txt", "the sea\n");
        let server = provider.serve([
            researches(&["What is in a?"]),
            calls("bash", json!({"command": "touch ran"})).call("research_codebase", json!({"question": "deeper"})).to("in a?"),
            says("Nothing.").to("in a?"),
            says("So be it."),
        ]);
        home.ask(&server, &["--mode", "auto"]).answered("So be it.");
        let [first, second] = of(&server, "in a?").try_into().expect("two requests");
        assert_eq!(first.user_texts(), ["Answer this question about the code in the workspace:\n\nWhat is in a?\n"]);
        assert!(first.system().starts_with("You are a sub-agent."), "{}", first.system());
        let tools = first.tools();
        for (tool, is_there) in [("read_file", true), ("grep", true), ("bash", false), ("write_file", false), ("research_codebase", false)]
        {
            assert_eq!(tools.iter().any(|name| name == tool), is_there, "{tool}: {tools:?}");
        }
        // What it calls all the same is refused, and the mode does not matter.
        let results = second.results();
        assert!(results.iter().all(|result| result.is_error && result.text.contains("there is no tool named")), "{results:?}");
        assert!(!home.has("ran"));
    }
}

#[test]
fn r124_a_failure_inside_is_a_result_and_no_end() {
    for provider in both() {
        let server = provider.serve([
            researches(&["What is in a?"]),
            fails(400, "invalid_request_error", "the question is too hard").to("in a?"),
            says("I look myself."),
        ]);
        home().ask(&server, &[]).answered("I look myself.");
        let [result] = server.last_request().results().try_into().expect("one result");
        assert!(result.is_error && result.text.contains("gave no answer (provider-error)"), "{result:?}");
        assert!(result.text.contains("the question is too hard"), "{result:?}");
    }
}

#[test]
fn r085_a_stream_that_breaks_off_within_begins_anew_since_nobody_has_seen_it() {
    for provider in both() {
        let server = provider.serve([
            researches(&["What is in a?"]),
            says("The s").breaks_off().to("in a?"),
            says("The sea.").to("in a?"),
            says("Done."),
        ]);
        // Who reads the events sees what the agent says, and nothing of what its sub-agent does.
        let home = home();
        home.start(home.task(&server, &["--output", "stream-json"])).wait().answered("Done.");
        let [result] = server.last_request().results().try_into().expect("one result");
        assert!(!result.is_error && result.text.starts_with("The sea."), "{result:?}");
    }
}

#[test]
fn r124_a_sub_agent_has_a_cap_of_its_own() {
    for provider in both() {
        let home = home().with("a.txt", "the sea\n");
        let mut script = vec![researches(&["What is in a?"])];
        script.extend((1..=20).map(|line| calls("read_file", json!({"path": "a.txt", "offset": 1, "limit": line})).to("in a?")));
        script.push(says("The sea, as far as I got.").to("in a?"));
        script.push(says("Done."));
        let server = provider.serve(script);
        let ran = home.ask(&server, &["--max-tool-iterations", "1"]);
        assert_eq!(ran.ended("limit", 3)["text"], "Done.");
        let [result] = server.last_request().results().try_into().expect("one result");
        assert!(
            !result.is_error && result.text.starts_with("The sea, as far as I got.\n\n[The sub-agent ran into its limit of"),
            "{result:?}"
        );
        let last = of(&server, "in a?").pop().expect("it asked");
        assert!(!last.lets_call());
    }
}

#[test]
fn r017_the_calls_of_sub_agents_count_with_all_others() {
    let [provider, _] = both();
    let home = home();
    home.write("busy.wasm", Guest::named("busy").tools([Tool::named("busy").asking(&[Capability::ReadFiles])]).component());
    let plugin = home.path().join("busy.wasm").display().to_string();
    assert_eq!(home.run(&["lock", "--yes", "--plugin", &plugin]).code, 0);
    let nap = || json!({"ms": "400"});
    let naps = || calls("busy", nap()).call("busy", nap());
    let server = provider.serve([
        researches(&["What is in a?", "What is in b?"]),
        naps().to("in a?"),
        naps().to("in b?"),
        says("A.").to("in a?"),
        says("B.").to("in b?"),
        says("Done."),
    ]);
    let ran = home.ask(&server, &["--max-parallel", "2", "--plugin", &plugin]);
    ran.answered("Done.");
    // Four naps, two at a time. Side by side with their own limits, all four would be over after one.
    assert!(ran.time >= Duration::from_millis(800), "{:?}", ran.time);
}

#[test]
fn r101_a_sub_agent_is_stopped_with_its_request() {
    for provider in both() {
        let server = provider.serve([researches(&["What is in a?", "What is in b?"]), hangs().to("in a?"), hangs().to("in b?")]);
        let home = home();
        let running = home.start(home.task(&server, &["--max-parallel", "2", "--output", "json"]));
        server.wait_for_requests(3);
        running.interrupt();
        let ran = running.wait();
        assert_eq!(ran.ended("aborted", 130)["turns"], 1);
    }
}

#[test]
fn r124_its_progress_is_shown() {
    let [provider, _] = both();
    let home = home().with("a.txt", "the sea\n");
    let server = provider.serve([researches(&["What is in a?"]), read("a.txt").to("in a?"), says("The sea.").to("in a?"), says("Done.")]);
    let ran = home.start(home.task(&server, &["--output", "stream-json"])).wait();
    let progress: Vec<Value> = ran.lines().into_iter().filter(|line| line["type"] == "call_progress").collect();
    assert_eq!(progress.iter().map(|line| &line["message"]).collect::<Vec<_>>(), [&json!("read_file a.txt")]);
    let turns = ran.lines().into_iter().filter(|line| line["type"] == "sub_agent_turn").count();
    assert_eq!(turns, 2);
}

#[test]
fn r124_without_a_model_there_is_no_sub_agent() {
    let ran = home().run(&["tools", "call", "research_codebase", r#"{"question":"Where?"}"#]);
    assert!(ran.code == 1 && ran.stderr.contains("denied (no-sub-agent): there is no model here"), "{ran:?}");
}
