//! Remarks of the host to the model: each goes out once, and is no part of the conversation (R-74,
//!

use cofferdam_tests::program::TestHome;
use cofferdam_tests::wire::{
    ProviderServer, ScriptedReply, StopReason, both_providers, call_reply, empty_reply, text_reply,
};
use serde_json::json;

use super::new_home;

/// With files to read, and with this in the configuration.
fn home_with_interventions(interventions: &str) -> TestHome {
    let home =
        new_home().with_file("a.txt", "a\n").with_file("b.txt", "b\n").with_file("c.txt", "c\n");
    home.write_file("config/cofferdam/config.toml", format!("[interventions]\n{interventions}\n"));
    home
}

fn read_call(name: &str) -> ScriptedReply {
    call_reply("read_file", json!({"path": format!("{name}.txt")}))
}

fn truncated_reply() -> ScriptedReply {
    empty_reply()
        .with_raw_call("cut", "write_file", "{\"path\": \"large")
        .with_stop_reason(StopReason::Length)
}

/// In which requests a text stands, from the first on.
fn requests_with_text(server: &ProviderServer, text: &str) -> Vec<bool> {
    server.requests().iter().map(|request| request.count_occurrences(text) > 0).collect()
}

#[test]
fn r074_every_note_goes_out_once_and_can_be_switched_off() {
    type Script = fn() -> Vec<ScriptedReply>;
    let table: [(&str, &str, Script, &[bool]); 4] = [
        (
            "empty",
            "Your last response was empty.",
            || vec![empty_reply(), read_call("a"), text_reply("Done.")],
            &[false, true, false],
        ),
        (
            "unproductive",
            "Your last 3 responses were truncated",
            || {
                vec![
                    truncated_reply(),
                    truncated_reply(),
                    truncated_reply(),
                    read_call("a"),
                    text_reply("Done."),
                ]
            },
            &[false, false, false, true, false],
        ),
        (
            "react",
            "Your last call was read_file {",
            || vec![read_call("a"), read_call("b"), read_call("c"), text_reply("Done.")],
            &[false, true, false, true],
        ),
        (
            "repetition",
            "3 times in a row",
            // This one is part of the third result, and stays there.
            || {
                vec![
                    read_call("a"),
                    read_call("a"),
                    read_call("a"),
                    read_call("b"),
                    text_reply("Done."),
                ]
            },
            &[false, false, false, true, true],
        ),
    ];
    for provider in both_providers() {
        for (key, text, script, expected) in table {
            for (on, expected) in
                [("true", expected.to_vec()), ("false", vec![false; expected.len()])]
            {
                let server = provider.serve(script());
                home_with_interventions(&format!("{key} = {on}"))
                    .run_task(&server, &[])
                    .expect_answer("Done.");
                assert_eq!(
                    requests_with_text(&server, text),
                    expected,
                    "{provider:?}: {key} = {on}"
                );
            }
        }
    }
}

#[test]
fn r004_at_the_limit_the_model_is_told_so() {
    for (on, expected) in [("true", [false, true]), ("false", [false, false])] {
        for provider in both_providers() {
            let server = provider.serve([read_call("a"), text_reply("As far as I got.")]);
            home_with_interventions(&format!("limit = {on}"))
                .run_task(&server, &["--max-tool-iterations", "1"])
                .expect_outcome("limit", 3);
            assert_eq!(
                requests_with_text(&server, "The limit of 1 turns with tools is reached"),
                expected
            );
        }
    }
}

#[test]
fn r077_the_note_is_about_the_last_call_and_off_by_default() {
    for provider in both_providers() {
        let server = provider.serve([
            read_call("a"),
            call_reply("read_file", json!({"path": "none.txt"})),
            read_call("b"),
            text_reply("Done."),
        ]);
        home_with_interventions("react = true").run_task(&server, &[]).expect_answer("Done.");
        let texts: Vec<usize> = server
            .requests()
            .iter()
            .map(|request| request.count_occurrences("Does its result bring you closer"))
            .collect();
        assert_eq!(texts, [0, 1, 0, 1]);
        let server = provider.serve([read_call("a"), read_call("b"), text_reply("Done.")]);
        home_with_interventions("").run_task(&server, &[]).expect_answer("Done.");
        assert_eq!(requests_with_text(&server, "A note from the host"), [false; 3]);
    }
}

#[test]
fn r080_two_that_are_due_become_one_note() {
    for provider in both_providers() {
        let server = provider.serve([read_call("a"), text_reply("As far as I got.")]);
        home_with_interventions("react = true")
            .run_task(&server, &["--max-tool-iterations", "1"])
            .expect_outcome("limit", 3);
        let last = server.last_request();
        let texts = last.user_texts();
        let note = texts.last().expect("there is a note");
        let (limit, react) =
            (note.find("The limit of 1 turns"), note.find("Your last call was read_file"));
        assert!(limit.is_some() && limit < react, "{note}");
        assert_eq!(last.count_occurrences("A note from the host, not a message from the user"), 1);
    }
}

#[test]
fn r078_a_note_is_not_in_the_session() {
    for provider in both_providers() {
        let home = home_with_interventions("react = true");
        let server = provider.serve([
            empty_reply(),
            read_call("a"),
            empty_reply(),
            read_call("b"),
            text_reply("Done."),
        ]);
        home.run_task(&server, &[]).expect_answer("Done.");
        let server = provider.serve([text_reply("Again.")]);
        home.run_task(&server, &["--continue"]).expect_answer("Again.");
        assert_eq!(server.request().count_occurrences("A note from the host"), 0);
    }
}

#[test]
fn an_unknown_switch_is_refused() {
    let home = home_with_interventions("telepathy = true");
    let ran = home.run(&["run", "The task."]);
    assert!(ran.exit_code == 78 && ran.stderr.contains("telepathy"), "{ran:?}");
}
