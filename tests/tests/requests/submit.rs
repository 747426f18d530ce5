//! `submit` says that the work is done, and ends nothing.

use cofferdam_tests::wire::{ScriptedReply, both_providers, call_reply, empty_reply, text_reply};
use serde_json::json;

use super::new_home;

fn submit_call(summary: &str) -> ScriptedReply {
    call_reply("submit", json!({"summary": summary}))
}

#[test]
fn r028_r029_after_submit_the_model_is_asked_for_the_answer() {
    for provider in both_providers() {
        let server = provider.serve([submit_call("  All done.\n"), text_reply("The answer.")]);
        new_home().run_task(&server, &[]).expect_answer("The answer.");
        let [result] =
            server.last_request().tool_results().try_into().expect("there is one result");
        assert_eq!((result.text.as_str(), result.is_error), ("Submitted: All done.", false));
    }
}

#[test]
fn r003_r030_beside_other_calls_all_run_and_the_loop_goes_on() {
    for provider in both_providers() {
        let home = new_home().with_file("a.txt", "text\n");
        let all = submit_call("Done.")
            .with_call("read_file", json!({"path": "a.txt"}))
            .with_call("bash", json!({"command": "echo ran"}));
        let server = provider.serve([
            all,
            call_reply("read_file", json!({"path": "a.txt"})),
            text_reply("Now it is over."),
        ]);
        home.run_task(&server, &["--mode", "auto"]).expect_answer("Now it is over.");
        let texts: Vec<String> = server.requests()[1]
            .tool_results()
            .into_iter()
            .map(|result| result.text.trim().to_owned())
            .collect();
        assert_eq!(texts, ["Submitted: Done.", "1\ttext", "ran"]);
    }
}

#[test]
fn r031_twice_in_a_response_and_twice_in_a_request() {
    for provider in both_providers() {
        let twice = submit_call("Once.").with_call("submit", json!({"summary": "Twice."}));
        let server = provider.serve([twice, submit_call("Again."), text_reply("Over.")]);
        new_home().run_task(&server, &[]).expect_answer("Over.");
        assert_eq!(server.requests()[1].tool_results().len(), 2);
        assert_eq!(server.requests()[2].tool_results().len(), 1);
    }
}

#[test]
fn r031_the_same_in_plan_mode() {
    for provider in both_providers() {
        let server = provider.serve([submit_call("Planned."), text_reply("The plan.")]);
        new_home().run_task(&server, &["--mode", "plan"]).expect_answer("The plan.");
        let [result] =
            server.last_request().tool_results().try_into().expect("there is one result");
        assert_eq!((result.text.as_str(), result.is_error), ("Submitted: Planned.", false));
    }
}

#[test]
fn r032_if_nothing_follows_the_summary_is_the_answer() {
    for provider in both_providers() {
        // A third request would find the script over.
        let server = provider.serve([submit_call(" It works now. "), empty_reply()]);
        new_home().run_task(&server, &[]).expect_answer("It works now.");
    }
}

#[test]
fn r032_without_a_summary_the_model_is_reminded() {
    for provider in both_providers() {
        let server = provider.serve([
            call_reply("submit", json!({})),
            empty_reply(),
            text_reply("It works."),
        ]);
        new_home().run_task(&server, &[]).expect_answer("It works.");
    }
}
