//! Approval where nobody can be asked.

use cofferdam_tests::wire::{both, calls, says};
use serde_json::json;

use super::home;

#[test]
fn r041_without_a_terminal_what_would_be_asked_is_denied_and_explained() {
    for provider in both() {
        let home = home().with("a.txt", "read all the same\n");
        let all = calls("bash", json!({"command": "touch ran"})).call("read_file", json!({"path": "a.txt"}));
        let server = provider.serve([all, says("Then not.")]);
        home.ask(&server, &[]).answered("Then not.");
        let [denied, read] = server.last_request().results().try_into().expect("there are two results");
        assert!(denied.is_error && denied.text.contains("denied (nobody-to-ask)") && denied.text.contains("`--mode auto`"), "{denied:?}");
        // who only reads is not asked about.
        assert!(!read.is_error, "{read:?}");
        assert!(!home.has("ran"));
    }
}

#[test]
fn r036_plan_mode_denies_commands_and_says_so() {
    for provider in both() {
        let home = home();
        let server = provider.serve([calls("bash", json!({"command": "touch ran"})), says("I would touch it.")]);
        home.ask(&server, &["--mode", "plan"]).answered("I would touch it.");
        let [denied] = server.last_request().results().try_into().expect("there is one result");
        assert!(denied.is_error && denied.text.contains("denied (mode)") && denied.text.contains("`plan`"), "{denied:?}");
        assert!(!home.has("ran"));
    }
}

#[test]
fn r042_no_argument_of_a_call_approves_it() {
    for provider in both() {
        let home = home();
        let server = provider.serve([calls("bash", json!({"command": "touch ran", "approved": true, "mode": "auto"})), says("No?")]);
        home.ask(&server, &[]).answered("No?");
        assert!(server.last_request().results()[0].is_error);
        assert!(!home.has("ran"));
    }
}

#[test]
fn r114_a_command_does_not_inherit_the_key() {
    tries_to_get_the_key("env");
}

#[test]
fn r114_a_command_does_not_find_the_key_in_the_host() {
    tries_to_get_the_key("cat /proc/$PPID/environ; cat /proc/[0-9]*/environ");
}

/// That the key is in no request is checked of every request.
fn tries_to_get_the_key(command: &str) {
    for provider in both() {
        let server = provider.serve([calls("bash", json!({"command": command})), says("Nothing there.")]);
        home().ask(&server, &["--mode", "auto"]).answered("Nothing there.");
        // It ran, and saw an environment: its own.
        let [result] = server.last_request().results().try_into().expect("there is one result");
        assert!(result.text.contains("PATH="), "{result:?}");
        assert_eq!(server.last_request().count(provider.key_variable()), 0, "{result:?}");
    }
}
