//! The cap on turns with calls.

use cofferdam_tests::wire::{
    ProviderServer, ScriptedReply, both_providers, call_reply, empty_reply, text_reply,
};
use serde_json::json;

use super::new_home;

/// A call that leaves a trace.
fn step_call(number: usize) -> ScriptedReply {
    call_reply("bash", json!({"command": format!("touch step-{number}")}))
}

#[test]
fn r004_r006_a_model_that_never_stops_is_asked_once_more_without_calls() {
    for provider in both_providers() {
        let home = new_home();
        let server = provider.serve([step_call(1), step_call(2), step_call(3), step_call(4)]);
        let ran = home.run_task(&server, &["--mode", "auto", "--max-tool-iterations", "3"]);
        ran.expect_outcome("limit", 3);
        assert!(ran.stderr.is_empty() || !ran.stderr.contains("step-4"), "{ran:?}");
        let lets_call: Vec<bool> =
            server.requests().iter().map(|request| request.allows_calls()).collect();
        assert_eq!(lets_call, [true, true, true, false]);
        // what it calls even then is not run.
        assert_eq!(
            [1, 2, 3, 4].map(|n| home.has_file(&format!("step-{n}"))),
            [true, true, true, false]
        );
    }
}

#[test]
fn r004_the_last_answer_is_the_answer() {
    for provider in both_providers() {
        let server = provider.serve([step_call(1), text_reply("As far as I got.")]);
        let ran = new_home().run_task(&server, &["--mode", "auto", "--max-tool-iterations", "1"]);
        assert_eq!(ran.expect_outcome("limit", 3)["text"], "As far as I got.");
        // The results of the last turn are recorded before the model is asked for its answer.
        assert_eq!(server.last_request().tool_results().len(), 1);
    }
}

#[test]
fn r005_the_last_request_keeps_the_tools() {
    for provider in both_providers() {
        let server = provider.serve([step_call(1), text_reply("Over.")]);
        new_home()
            .run_task(&server, &["--mode", "auto", "--max-tool-iterations", "1"])
            .expect_outcome("limit", 3);
        let tools: Vec<_> =
            server.requests().iter().map(|request| request.body["tools"].clone()).collect();
        assert_eq!(tools[0], tools[1]);
        assert!(!server.last_request().tool_names().is_empty());
    }
}

#[test]
fn r007_the_cap_counts_from_0_for_each_request_and_nothing_extends_it() {
    for provider in both_providers() {
        let home = new_home();
        let args = ["--mode", "auto", "--max-tool-iterations", "2"];
        // Neither an empty response, nor a call that failed, nor a submit gives a turn more.
        let submit =
            call_reply("submit", json!({"summary": "Done."})).with_call("no_such_tool", json!({}));
        let server = provider.serve([empty_reply(), step_call(1), submit, text_reply("So far.")]);
        home.run_task(&server, &args).expect_outcome("limit", 3);
        let lets_call = |server: &ProviderServer| -> Vec<bool> {
            server.requests().iter().map(|request| request.allows_calls()).collect()
        };
        assert_eq!(lets_call(&server), [true, true, true, false]);
        // The next request has all of it again, and no more.
        let server = provider.serve([step_call(2), step_call(3), text_reply("So far again.")]);
        home.run_task(&server, &[&args[..], &["--continue"]].concat()).expect_outcome("limit", 3);
        assert_eq!(lets_call(&server), [true, true, false]);
        assert_eq!([1, 2, 3].map(|n| home.has_file(&format!("step-{n}"))), [true; 3]);
    }
}

#[test]
fn r007_a_request_within_the_cap_is_not_limited() {
    for provider in both_providers() {
        let server = provider.serve([step_call(1), step_call(2), text_reply("Done.")]);
        new_home()
            .run_task(&server, &["--mode", "auto", "--max-tool-iterations", "3"])
            .expect_answer("Done.");
        assert!(server.last_request().allows_calls());
    }
}
