//! Approval where nobody can be asked.

use cofferdam_tests::wire::{both_providers, call_reply, text_reply};
use serde_json::json;

use super::new_home;

#[test]
fn r041_without_a_terminal_what_would_be_asked_is_denied_and_explained() {
    for provider in both_providers() {
        let home = new_home().with_file("a.txt", "read all the same\n");
        let all = call_reply("bash", json!({"command": "touch ran"}))
            .with_call("read_file", json!({"path": "a.txt"}));
        let server = provider.serve([all, text_reply("Then not.")]);
        home.run_task(&server, &[]).expect_answer("Then not.");
        let [denied, read] =
            server.last_request().tool_results().try_into().expect("there are two results");
        assert!(
            denied.is_error
                && denied.text.contains("denied (nobody-to-ask)")
                && denied.text.contains("`--mode auto`"),
            "{denied:?}"
        );
        // who only reads is not asked about.
        assert!(!read.is_error, "{read:?}");
        assert!(!home.has_file("ran"));
    }
}

#[test]
fn r036_plan_mode_denies_commands_and_says_so() {
    for provider in both_providers() {
        let home = new_home();
        let server = provider.serve([
            call_reply("bash", json!({"command": "touch ran"})),
            text_reply("I would touch it."),
        ]);
        home.run_task(&server, &["--mode", "plan"]).expect_answer("I would touch it.");
        let [denied] =
            server.last_request().tool_results().try_into().expect("there is one result");
        assert!(
            denied.is_error
                && denied.text.contains("denied (mode)")
                && denied.text.contains("`plan`"),
            "{denied:?}"
        );
        assert!(!home.has_file("ran"));
    }
}

#[test]
fn r042_no_argument_of_a_call_approves_it() {
    for provider in both_providers() {
        let home = new_home();
        let server = provider.serve([
            call_reply("bash", json!({"command": "touch ran", "approved": true, "mode": "auto"})),
            text_reply("No?"),
        ]);
        home.run_task(&server, &[]).expect_answer("No?");
        assert!(server.last_request().tool_results()[0].is_error);
        assert!(!home.has_file("ran"));
    }
}

#[test]
fn r114_a_command_does_not_inherit_the_key() {
    assert_key_unreachable("env");
}

#[test]
fn r114_a_command_does_not_find_the_key_in_the_host() {
    assert_key_unreachable("cat /proc/$PPID/environ; cat /proc/[0-9]*/environ");
}

/// That the key is in no request is checked of every request.
fn assert_key_unreachable(command: &str) {
    for provider in both_providers() {
        let server = provider
            .serve([call_reply("bash", json!({"command": command})), text_reply("Nothing there.")]);
        new_home().run_task(&server, &["--mode", "auto"]).expect_answer("Nothing there.");
        // It ran, and saw an environment: its own.
        let [result] =
            server.last_request().tool_results().try_into().expect("there is one result");
        assert!(result.text.contains("PATH="), "{result:?}");
        assert_eq!(
            server.last_request().count_occurrences(provider.key_variable()),
            0,
            "{result:?}"
        );
    }
}
