//! Remarks of the host to the model: each goes out once, and is no part of the conversation.

use cofferdam_tests::program::Home;
use cofferdam_tests::wire::{Reply, Server, Stop, both, calls, nothing, says};
use serde_json::json;

use super::home;

/// With files to read, and with this in the configuration.
fn furnished(interventions: &str) -> Home {
    let home = home().with("a.txt", "a\n").with("b.txt", "b\n").with("c.txt", "c\n");
    home.write("config/cofferdam/config.toml", format!("[interventions]\n{interventions}\n"));
    home
}

fn reads(name: &str) -> Reply {
    calls("read_file", json!({"path": format!("{name}.txt")}))
}

fn cut_off() -> Reply {
    nothing().raw_call("cut", "write_file", "{\"path\": \"large").stops(Stop::Length)
}

/// In which requests a text stands, from the first on.
fn stands(server: &Server, text: &str) -> Vec<bool> {
    server.requests().iter().map(|request| request.count(text) > 0).collect()
}

#[test]
fn r074_every_note_goes_out_once_and_can_be_switched_off() {
    type Script = fn() -> Vec<Reply>;
    let table: [(&str, &str, Script, &[bool]); 4] = [
        ("empty", "Your last response was empty.", || vec![nothing(), reads("a"), says("Done.")], &[false, true, false]),
        (
            "unproductive",
            "Your last 3 responses were cut off",
            || vec![cut_off(), cut_off(), cut_off(), reads("a"), says("Done.")],
            &[false, false, false, true, false],
        ),
        (
            "react",
            "Your last call was read_file {",
            || vec![reads("a"), reads("b"), reads("c"), says("Done.")],
            &[false, true, false, true],
        ),
        (
            "repetition",
            "3 times in a row",
            // This one is part of the third result, and stays there.
            || vec![reads("a"), reads("a"), reads("a"), reads("b"), says("Done.")],
            &[false, false, false, true, true],
        ),
    ];
    for provider in both() {
        for (key, text, script, expected) in table {
            for (on, expected) in [("true", expected.to_vec()), ("false", vec![false; expected.len()])] {
                let server = provider.serve(script());
                furnished(&format!("{key} = {on}")).ask(&server, &[]).answered("Done.");
                assert_eq!(stands(&server, text), expected, "{provider:?}: {key} = {on}");
            }
        }
    }
}

#[test]
fn r004_at_the_limit_the_model_is_told_so() {
    for (on, expected) in [("true", [false, true]), ("false", [false, false])] {
        for provider in both() {
            let server = provider.serve([reads("a"), says("As far as I got.")]);
            furnished(&format!("limit = {on}")).ask(&server, &["--max-tool-iterations", "1"]).ended("limit", 3);
            assert_eq!(stands(&server, "The limit of 1 turns with tools is reached"), expected);
        }
    }
}

#[test]
fn r077_the_note_is_about_the_last_call_and_off_by_default() {
    for provider in both() {
        let server = provider.serve([reads("a"), calls("read_file", json!({"path": "none.txt"})), reads("b"), says("Done.")]);
        furnished("react = true").ask(&server, &[]).answered("Done.");
        let texts: Vec<usize> = server.requests().iter().map(|request| request.count("Does its result bring you nearer")).collect();
        assert_eq!(texts, [0, 1, 0, 1]);
        let server = provider.serve([reads("a"), reads("b"), says("Done.")]);
        furnished("").ask(&server, &[]).answered("Done.");
        assert_eq!(stands(&server, "A note of the host"), [false; 3]);
    }
}

#[test]
fn r080_two_that_are_due_become_one_note() {
    for provider in both() {
        let server = provider.serve([reads("a"), says("As far as I got.")]);
        furnished("react = true").ask(&server, &["--max-tool-iterations", "1"]).ended("limit", 3);
        let last = server.last_request();
        let texts = last.user_texts();
        let note = texts.last().expect("there is a note");
        let (limit, react) = (note.find("The limit of 1 turns"), note.find("Your last call was read_file"));
        assert!(limit.is_some() && limit < react, "{note}");
        assert_eq!(last.count("A note of the host, not a message of the user"), 1);
    }
}

#[test]
fn r078_a_note_is_not_in_the_session() {
    for provider in both() {
        let home = furnished("react = true");
        let server = provider.serve([nothing(), reads("a"), nothing(), reads("b"), says("Done.")]);
        home.ask(&server, &[]).answered("Done.");
        let server = provider.serve([says("Again.")]);
        home.ask(&server, &["--continue"]).answered("Again.");
        assert_eq!(server.request().count("A note of the host"), 0);
    }
}

#[test]
fn an_unknown_switch_is_refused() {
    let home = furnished("telepathy = true");
    let ran = home.run(&["run", "The task."]);
    assert!(ran.code == 78 && ran.stderr.contains("telepathy"), "{ran:?}");
}
