//! The cap on turns with calls.

use cofferdam_tests::wire::{Reply, Server, both, calls, nothing, says};
use serde_json::json;

use super::home;

/// A call that leaves a trace.
fn step(number: usize) -> Reply {
    calls("bash", json!({"command": format!("touch step-{number}")}))
}

#[test]
fn r004_r006_a_model_that_never_stops_is_asked_once_more_without_calls() {
    for provider in both() {
        let home = home();
        let server = provider.serve([step(1), step(2), step(3), step(4)]);
        let ran = home.ask(&server, &["--mode", "auto", "--max-tool-iterations", "3"]);
        ran.ended("limit", 3);
        assert!(ran.stderr.is_empty() || !ran.stderr.contains("step-4"), "{ran:?}");
        let lets_call: Vec<bool> = server.requests().iter().map(|request| request.lets_call()).collect();
        assert_eq!(lets_call, [true, true, true, false]);
        // what it calls even then is not run.
        assert_eq!([1, 2, 3, 4].map(|n| home.has(&format!("step-{n}"))), [true, true, true, false]);
    }
}

#[test]
fn r004_the_last_answer_is_the_answer() {
    for provider in both() {
        let server = provider.serve([step(1), says("As far as I got.")]);
        let ran = home().ask(&server, &["--mode", "auto", "--max-tool-iterations", "1"]);
        assert_eq!(ran.ended("limit", 3)["text"], "As far as I got.");
        // The results of the last turn are recorded before the model is asked for its answer.
        assert_eq!(server.last_request().results().len(), 1);
    }
}

#[test]
fn r005_the_last_request_keeps_the_tools() {
    for provider in both() {
        let server = provider.serve([step(1), says("Over.")]);
        home().ask(&server, &["--mode", "auto", "--max-tool-iterations", "1"]).ended("limit", 3);
        let tools: Vec<_> = server.requests().iter().map(|request| request.body["tools"].clone()).collect();
        assert_eq!(tools[0], tools[1]);
        assert!(!server.last_request().tools().is_empty());
    }
}

#[test]
fn r007_the_cap_counts_from_0_for_each_request_and_nothing_extends_it() {
    for provider in both() {
        let home = home();
        let args = ["--mode", "auto", "--max-tool-iterations", "2"];
        // Neither an empty response, nor a call that failed, nor a submit gives a turn more.
        let submit = calls("submit", json!({"summary": "Done."})).call("no_such_tool", json!({}));
        let server = provider.serve([nothing(), step(1), submit, says("So far.")]);
        home.ask(&server, &args).ended("limit", 3);
        let lets_call = |server: &Server| -> Vec<bool> { server.requests().iter().map(|request| request.lets_call()).collect() };
        assert_eq!(lets_call(&server), [true, true, true, false]);
        // The next request has all of it again, and no more.
        let server = provider.serve([step(2), step(3), says("So far again.")]);
        home.ask(&server, &[&args[..], &["--continue"]].concat()).ended("limit", 3);
        assert_eq!(lets_call(&server), [true, true, false]);
        assert_eq!([1, 2, 3].map(|n| home.has(&format!("step-{n}"))), [true; 3]);
    }
}

#[test]
fn r007_a_request_within_the_cap_is_not_limited() {
    for provider in both() {
        let server = provider.serve([step(1), step(2), says("Done.")]);
        home().ask(&server, &["--mode", "auto", "--max-tool-iterations", "3"]).answered("Done.");
        assert!(server.last_request().lets_call());
    }
}
