//! In which order calls run, and in which order the model gets their results.

use cofferdam_tests::program::ProgramOutput;
use cofferdam_tests::wire::{ProviderServer, both_providers, call_reply, text_reply};
use serde_json::{Value, json};

use super::new_home;

fn bash_call(command: &str) -> (&'static str, Value) {
    ("bash", json!({"command": command}))
}

fn read_call(path: &str) -> (&'static str, Value) {
    ("read_file", json!({"path": path}))
}

fn result_texts(server: &ProviderServer) -> Vec<String> {
    server
        .last_request()
        .tool_results()
        .into_iter()
        .map(|result| result.text.trim().to_owned())
        .collect()
}

/// Which call each event of a kind is about.
fn event_order(ran: &ProgramOutput, kind: &str) -> Vec<String> {
    let lines = ran.json_lines();
    lines
        .iter()
        .filter(|line| line["type"] == kind)
        .map(|line| {
            line["summary"].as_str().or(line["tool"].as_str()).unwrap_or_default().to_owned()
        })
        .collect()
}

#[test]
fn r015b_a_read_sees_what_the_write_before_it_did_and_not_what_the_next_one_does() {
    for provider in both_providers() {
        let home = new_home().with_file("a.txt", "old\n");
        let steps = [
            read_call("a.txt"),
            bash_call("echo new > a.txt"),
            read_call("a.txt"),
            bash_call("echo newest > a.txt"),
            read_call("a.txt"),
        ];
        let all =
            steps.into_iter().fold(text_reply("In order, please."), |reply, (tool, arguments)| {
                reply.with_call(tool, arguments)
            });
        let server = provider.serve([all, text_reply("Thanks.")]);
        home.run_task(&server, &["--mode", "auto"]).expect_answer("Thanks.");
        assert_eq!(
            result_texts(&server),
            ["1\told", "(no output)", "1\tnew", "(no output)", "1\tnewest"]
        );
    }
}

#[test]
fn r015_what_touches_no_file_does_not_wait_for_a_write() {
    for provider in both_providers() {
        let server = provider.serve([
            call_reply("bash", json!({"command": "sleep 0.2; echo slow"}))
                .with_call("submit", json!({})),
            text_reply("Done."),
        ]);
        let home = new_home();
        let ran = home
            .start(home.model_command(&server, &["--mode", "auto", "--output", "stream-json"]))
            .wait_for_exit();
        assert_eq!(event_order(&ran, "call_finished"), ["submit", "bash"], "{ran:?}");
        // whatever ends first, results come in the order of the calls.
        assert_eq!(result_texts(&server), ["slow", "Submitted."]);
    }
}

#[test]
fn r017_no_more_calls_run_at_the_same_time_than_allowed() {
    for (limit, expected) in [
        ("1", "start finish start finish start finish"),
        ("2", "start start finish start finish finish"),
        ("3", "start start start finish finish finish"),
    ] {
        let [provider, _] = both_providers();
        let home =
            new_home().with_file("a.txt", "a").with_file("b.txt", "b").with_file("c.txt", "c");
        let all = ["a.txt", "b.txt", "c.txt"].iter().fold(text_reply("Read."), |reply, path| {
            reply.with_call("read_file", json!({"path": path}))
        });
        let server = provider.serve([all, text_reply("Done.")]);
        let ran = home
            .start(
                home.model_command(&server, &["--max-parallel", limit, "--output", "stream-json"]),
            )
            .wait_for_exit();
        let events: Vec<&str> = ran
            .json_lines()
            .iter()
            .filter_map(|line| match line["type"].as_str() {
                Some("call_started") => Some("start"),
                Some("call_finished") => Some("finish"),
                _ => None,
            })
            .collect();
        assert_eq!(events.join(" "), expected, "with a limit of {limit}");
    }
}

#[test]
fn r019_r020_a_call_that_fails_hides_no_other() {
    for provider in both_providers() {
        let home = new_home().with_file("a.txt", "here\n");
        let all = call_reply("read_file", json!({"path": "missing.txt"}))
            .with_call("read_file", json!({"path": "a.txt"}))
            .with_call("grep", json!({"pattern": "(unclosed"}))
            .with_call("bash", json!({"command": "echo out; echo err >&2; exit 3"}))
            .with_call("bash", json!({"command": "echo after"}));
        let server = provider.serve([all, text_reply("Done.")]);
        home.run_task(&server, &["--mode", "auto"]).expect_answer("Done.");
        let results = server.last_request().tool_results();
        let errors: Vec<bool> = results.iter().map(|result| result.is_error).collect();
        assert_eq!(errors, [true, false, true, false, false], "{provider:?}: {results:?}");
        assert_eq!(result_texts(&server)[3..], ["out\nstderr:\nerr\nexit code 3", "after"]);
    }
}
