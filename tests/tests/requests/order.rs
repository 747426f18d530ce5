//! In which order calls run, and in which order the model gets their results.

use cofferdam_tests::program::Ran;
use cofferdam_tests::wire::{Server, both, calls, says};
use serde_json::{Value, json};

use super::home;

fn bash(command: &str) -> (&'static str, Value) {
    ("bash", json!({"command": command}))
}

fn read(path: &str) -> (&'static str, Value) {
    ("read_file", json!({"path": path}))
}

fn texts(server: &Server) -> Vec<String> {
    server.last_request().results().into_iter().map(|result| result.text.trim().to_owned()).collect()
}

/// Which call each event of a kind is about.
fn order(ran: &Ran, kind: &str) -> Vec<String> {
    let lines = ran.lines();
    lines
        .iter()
        .filter(|line| line["type"] == kind)
        .map(|line| line["summary"].as_str().or(line["tool"].as_str()).unwrap_or_default().to_owned())
        .collect()
}

#[test]
fn r015b_a_read_sees_what_the_write_before_it_did_and_not_what_the_next_one_does() {
    for provider in both() {
        let home = home().with("a.txt", "old\n");
        let steps = [read("a.txt"), bash("echo new > a.txt"), read("a.txt"), bash("echo newest > a.txt"), read("a.txt")];
        let all = steps.into_iter().fold(says("In order, please."), |reply, (tool, arguments)| reply.call(tool, arguments));
        let server = provider.serve([all, says("Thanks.")]);
        home.ask(&server, &["--mode", "auto"]).answered("Thanks.");
        assert_eq!(texts(&server), ["1\told", "(no output)", "1\tnew", "(no output)", "1\tnewest"]);
    }
}

#[test]
fn r015_what_touches_no_file_does_not_wait_for_a_write() {
    for provider in both() {
        let server = provider.serve([calls("bash", json!({"command": "sleep 0.2; echo slow"})).call("submit", json!({})), says("Done.")]);
        let home = home();
        let ran = home.start(home.task(&server, &["--mode", "auto", "--output", "stream-json"])).wait();
        assert_eq!(order(&ran, "call_finished"), ["submit", "bash"], "{ran:?}");
        // whatever ends first, results come in the order of the calls.
        assert_eq!(texts(&server), ["slow", "Submitted."]);
    }
}

#[test]
fn r017_no_more_calls_run_at_the_same_time_than_allowed() {
    for (limit, expected) in [
        ("1", "start finish start finish start finish"),
        ("2", "start start finish start finish finish"),
        ("3", "start start start finish finish finish"),
    ] {
        let [provider, _] = both();
        let home = home().with("a.txt", "a").with("b.txt", "b").with("c.txt", "c");
        let all = ["a.txt", "b.txt", "c.txt"].iter().fold(says("Read."), |reply, path| reply.call("read_file", json!({"path": path})));
        let server = provider.serve([all, says("Done.")]);
        let ran = home.start(home.task(&server, &["--max-parallel", limit, "--output", "stream-json"])).wait();
        let events: Vec<&str> = ran
            .lines()
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
    for provider in both() {
        let home = home().with("a.txt", "here\n");
        let all = calls("read_file", json!({"path": "missing.txt"}))
            .call("read_file", json!({"path": "a.txt"}))
            .call("grep", json!({"pattern": "(unclosed"}))
            .call("bash", json!({"command": "echo out; echo err >&2; exit 3"}))
            .call("bash", json!({"command": "echo after"}));
        let server = provider.serve([all, says("Done.")]);
        home.ask(&server, &["--mode", "auto"]).answered("Done.");
        let results = server.last_request().results();
        let errors: Vec<bool> = results.iter().map(|result| result.is_error).collect();
        assert_eq!(errors, [true, false, true, false, false], "{provider:?}: {results:?}");
        assert_eq!(texts(&server)[3..], ["out\nstderr:\nerr\nexit code 3", "after"]);
    }
}
