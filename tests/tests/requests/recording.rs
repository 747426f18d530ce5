//! Recording a model and playing it.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use cofferdam_tests::wire::{both_providers, call_reply, empty_reply, text_reply};
use serde_json::json;

use super::new_home;

#[test]
fn a_recording_plays_the_same_request() {
    for provider in both_providers() {
        let (home, elsewhere) =
            (new_home().with_file("a.txt", "text\n"), new_home().with_file("a.txt", "text\n"));
        let server = provider.serve([
            empty_reply()
                .with_thinking("Hm.")
                .with_text("I read.")
                .with_call("read_file", json!({"path": "a.txt"})),
            call_reply("bash", json!({"command": "cat a.txt > copy.txt"}))
                .with_call("no_such_tool", json!({})),
            text_reply("Copied: Grüße."),
        ]);
        let file = home.path().join("recording.jsonl");
        let recording = file.to_str().expect("it is text");
        let recorded = home.run_task(&server, &["--mode", "auto", "--record", recording]);
        recorded.expect_answer("Copied: Grüße.");
        assert_eq!(fs::metadata(&file).expect("it is there").permissions().mode() & 0o777, 0o600);

        let model = format!("replay:{recording}");
        let played = elsewhere.run(&[
            "run",
            "The task.",
            "--model",
            &model,
            "--mode",
            "auto",
            "--output",
            "json",
        ]);
        played.expect_answer("Copied: Grüße.");
        assert!(elsewhere.has_file("copy.txt"), "its tools are live");
        for key in ["outcome", "text", "turns", "usage"] {
            assert_eq!(recorded.report()[key], played.report()[key], "{key}");
        }
    }
}

#[test]
fn a_recording_is_never_overwritten() {
    let [provider, _] = both_providers();
    let home = new_home();
    home.write_file("recording.jsonl", "precious");
    let file = home.path().join("recording.jsonl");
    let server = provider.serve([]);
    let ran = home.run_task(&server, &["--record", file.to_str().expect("it is text")]);
    assert_eq!(ran.expect_outcome("not-started", 1)["type"], "result");
    assert_eq!(fs::read_to_string(file).expect("it is there"), "precious");
}

#[test]
fn r132_a_recording_that_is_over_is_a_failure_of_the_provider() {
    let home = new_home();
    home.write_file(
        "short.jsonl",
        "{\"cofferdam_recording\": 1}\n{\"blocks\": [{\"call\": \
        {\"id\": \"c\", \"name\": \"submit\"}}]}\n",
    );
    let model = format!("replay:{}", home.path().join("short.jsonl").display());
    let report = home
        .run(&["run", "The task.", "--model", &model, "--output", "json"])
        .expect_outcome("provider-error", 7);
    assert!(
        report["error"].as_str().is_some_and(|error| error.contains("the recording has ended")),
        "{report}"
    );
}
