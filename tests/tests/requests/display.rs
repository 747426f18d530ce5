//! What is shown, and what becomes of a request whose display fails (R-34).

use std::collections::BTreeMap;
use std::fs::OpenOptions;
use std::process::Stdio;

use cofferdam_tests::program::TestHome;
use cofferdam_tests::wire::{both_providers, call_reply, empty_reply, text_reply};
use serde_json::{Value, json};

use super::new_home;

/// The calls of the newest session with their results, by their names.
fn recorded_calls(home: &TestHome) -> BTreeMap<String, (Value, Value)> {
    let list: Value = serde_json::from_str(&home.run(&["sessions", "list", "--json"]).stdout)
        .expect("it is JSON");
    assert_eq!(list["sessions"][0]["ended"]["outcome"], "answered", "{list}");
    let id = list["sessions"][0]["id"].as_str().expect("there is one").to_owned();
    let exported: Value =
        serde_json::from_str(&home.run(&["sessions", "export", &id]).stdout).expect("it is JSON");
    let turns =
        exported["transcript"]["exchanges"][0]["turns"].as_array().cloned().unwrap_or_default();
    let blocks =
        turns.into_iter().flat_map(|turn| turn["blocks"].as_array().cloned().unwrap_or_default());
    let calls = blocks.filter_map(|block| block.get("call").cloned());
    calls
        .map(|call| {
            (
                result_text(&call["call"]["id"]),
                (call["result"]["status"].clone(), call["result"]["content"].clone()),
            )
        })
        .collect()
}

fn result_text(value: &Value) -> String {
    value.as_str().expect("a text").to_owned()
}

#[test]
fn r034_each_result_that_is_shown_is_on_record_once_and_as_it_was_shown() {
    for provider in both_providers() {
        let home = new_home().with_file("a.txt", "It is there.\n");
        let several = empty_reply()
            .with_raw_call("c1", "read_file", r#"{"path":"a.txt"}"#)
            .with_raw_call("c2", "read_file", r#"{"path":"missing.txt"}"#)
            .with_raw_call("c3", "no_such_tool", "{}")
            .with_raw_call("c4", "read_file", "no JSON")
            .with_raw_call("c5", "bash", r#"{"command":"echo out; echo err >&2; exit 3"}"#);
        let server = provider.serve([several, text_reply("Done.")]);
        let ran = home
            .start(home.model_command(&server, &["--mode", "auto", "--output", "stream-json"]))
            .wait_for_exit();
        ran.expect_answer("Done.");
        let lines = ran.json_lines();
        let shown: Vec<&Value> =
            lines.iter().filter(|line| line["type"] == "call_finished").collect();
        assert_eq!(shown.len(), 5, "{shown:#?}");
        let shown: BTreeMap<_, _> = shown
            .iter()
            .map(|line| {
                (result_text(&line["id"]), (line["status"].clone(), line["content"].clone()))
            })
            .collect();
        assert_eq!(shown, recorded_calls(&home), "{provider:?}");
        // It is what the model was told, too.
        let told = server.last_request().tool_results();
        assert_eq!(told.len(), 5);
        for seen in told {
            let (status, content) = &shown[&seen.id];
            assert_eq!(seen.is_error, status != "ok", "{seen:?}");
            assert_eq!(
                seen.text.trim_end(),
                content[0]["text"].as_str().unwrap_or_default().trim_end()
            );
        }
    }
}

#[test]
fn r034_a_display_that_fails_costs_no_request() {
    let [provider, _] = both_providers();
    for output in ["text", "json", "stream-json"] {
        for is_full in [true, false] {
            let home = new_home();
            let server = provider.serve([
                call_reply("bash", json!({"command": "touch ran"})).with_text("I touch it."),
                text_reply("Touched."),
            ]);
            let mut command = home.model_command(&server, &["--mode", "auto", "--output", output]);
            let nowhere = || {
                if is_full {
                    return Stdio::from(
                        OpenOptions::new().write(true).open("/dev/full").expect("there is one"),
                    );
                }
                // A pipe whose reader went away.
                let (_, writer) = std::io::pipe().expect("there are pipes");
                Stdio::from(writer)
            };
            let status = command
                .stdin(Stdio::null())
                .stdout(nowhere())
                .stderr(nowhere())
                .status()
                .expect("it starts");
            // Lost output is an error, and a reader that had enough is none.
            assert_eq!(status.code(), Some(if is_full { 74 } else { 0 }), "{output}");
            assert!(home.has_file("ran"), "{output}");
            let on_record = recorded_calls(&home);
            assert_eq!(on_record.len(), 1, "{output}: {on_record:?}");
            assert_eq!(server.requests().len(), 2);
        }
    }
}
