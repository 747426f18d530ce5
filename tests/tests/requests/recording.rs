//! Recording a model and playing it.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use cofferdam_tests::wire::{both, calls, nothing, says};
use serde_json::json;

use super::home;

#[test]
fn a_recording_plays_the_same_request() {
    for provider in both() {
        let (home, elsewhere) = (home().with("a.txt", "text\n"), home().with("a.txt", "text\n"));
        let server = provider.serve([
            nothing().thinks("Hm.").text("I read.").call("read_file", json!({"path": "a.txt"})),
            calls("bash", json!({"command": "cat a.txt > copy.txt"})).call("no_such_tool", json!({})),
            says("Copied: Grüße."),
        ]);
        let file = home.path().join("recording.jsonl");
        let recording = file.to_str().expect("it is text");
        let recorded = home.ask(&server, &["--mode", "auto", "--record", recording]);
        recorded.answered("Copied: Grüße.");
        assert_eq!(fs::metadata(&file).expect("it is there").permissions().mode() & 0o777, 0o600);

        let model = format!("replay:{recording}");
        let played = elsewhere.run(&["run", "The task.", "--model", &model, "--mode", "auto", "--output", "json"]);
        played.answered("Copied: Grüße.");
        assert!(elsewhere.has("copy.txt"), "its tools are live");
        for key in ["outcome", "text", "turns", "usage"] {
            assert_eq!(recorded.report()[key], played.report()[key], "{key}");
        }
    }
}

#[test]
fn a_recording_is_never_overwritten() {
    let [provider, _] = both();
    let home = home();
    home.write("recording.jsonl", "precious");
    let file = home.path().join("recording.jsonl");
    let server = provider.serve([]);
    let ran = home.ask(&server, &["--record", file.to_str().expect("it is text")]);
    assert_eq!(ran.ended("not-started", 1)["type"], "result");
    assert_eq!(fs::read_to_string(file).expect("it is there"), "precious");
}

#[test]
fn r132_a_recording_that_is_over_is_a_failure_of_the_provider() {
    let home = home();
    home.write("short.jsonl", "{\"cofferdam_recording\": 1}\n{\"blocks\": [{\"call\": {\"id\": \"c\", \"name\": \"submit\"}}]}\n");
    let model = format!("replay:{}", home.path().join("short.jsonl").display());
    let report = home.run(&["run", "The task.", "--model", &model, "--output", "json"]).ended("provider-error", 7);
    assert!(report["error"].as_str().is_some_and(|error| error.contains("the recording is over")), "{report}");
}
