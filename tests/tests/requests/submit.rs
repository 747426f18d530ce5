//! `submit` says that the work is done, and ends nothing.

use cofferdam_tests::wire::{Reply, both, calls, nothing, says};
use serde_json::json;

use super::home;

fn submits(summary: &str) -> Reply {
    calls("submit", json!({"summary": summary}))
}

#[test]
fn r028_r029_after_submit_the_model_is_asked_for_the_answer() {
    for provider in both() {
        let server = provider.serve([submits("  All done.\n"), says("The answer.")]);
        home().ask(&server, &[]).answered("The answer.");
        let [result] = server.last_request().results().try_into().expect("there is one result");
        assert_eq!((result.text.as_str(), result.is_error), ("Submitted: All done.", false));
    }
}

#[test]
fn r003_r030_beside_other_calls_all_run_and_the_loop_goes_on() {
    for provider in both() {
        let home = home().with("a.txt", "text\n");
        let all = submits("Done.").call("read_file", json!({"path": "a.txt"})).call("bash", json!({"command": "echo ran"}));
        let server = provider.serve([all, calls("read_file", json!({"path": "a.txt"})), says("Now it is over.")]);
        home.ask(&server, &["--mode", "auto"]).answered("Now it is over.");
        let texts: Vec<String> = server.requests()[1].results().into_iter().map(|result| result.text.trim().to_owned()).collect();
        assert_eq!(texts, ["Submitted: Done.", "1\ttext", "ran"]);
    }
}

#[test]
fn r031_twice_in_a_response_and_twice_in_a_request() {
    for provider in both() {
        let twice = submits("Once.").call("submit", json!({"summary": "Twice."}));
        let server = provider.serve([twice, submits("Again."), says("Over.")]);
        home().ask(&server, &[]).answered("Over.");
        assert_eq!(server.requests()[1].results().len(), 2);
        assert_eq!(server.requests()[2].results().len(), 1);
    }
}

#[test]
fn r031_the_same_in_plan_mode() {
    for provider in both() {
        let server = provider.serve([submits("Planned."), says("The plan.")]);
        home().ask(&server, &["--mode", "plan"]).answered("The plan.");
        let [result] = server.last_request().results().try_into().expect("there is one result");
        assert_eq!((result.text.as_str(), result.is_error), ("Submitted: Planned.", false));
    }
}

#[test]
fn r032_if_nothing_follows_the_summary_is_the_answer() {
    for provider in both() {
        // A third request would find the script over.
        let server = provider.serve([submits(" It works now. "), nothing()]);
        home().ask(&server, &[]).answered("It works now.");
    }
}

#[test]
fn r032_without_a_summary_the_model_is_reminded() {
    for provider in both() {
        let server = provider.serve([calls("submit", json!({})), nothing(), says("It works.")]);
        home().ask(&server, &[]).answered("It works.");
    }
}
