//! The diagnostic log: `-v`, `COFFERDAM_LOG` and `--log-file`.

use serde_json::json;

use super::new_home;
use cofferdam_tests::wire::{Provider, call_reply, empty_reply, text_reply};

/// Texts that go through a request and must never be in a log.
const CONTENT: [&str; 6] =
    ["The task.", "zircon-file", "zircon-answer", "zircon-argument", "zircon-command", "a.txt"];

/// Runs a request whose parts all have content, and returns its log and standard output.
fn run_logged(variable: Option<&str>, args: &[&str]) -> (String, String) {
    let home = new_home().with_file("a.txt", "zircon-file\n");
    let server = Provider::Anthropic.serve([
        call_reply("read_file", json!({"path": "a.txt"})),
        call_reply("grep", json!({"pattern": "zircon-argument"})),
        call_reply("bash", json!({"command": "echo zircon-command"})),
        text_reply("zircon-answer"),
    ]);
    let key = server.key().to_owned();
    let all: Vec<&str> =
        ["--mode", "auto", "--output", "json"].iter().chain(args).copied().collect();
    let mut command = home.model_command(&server, &all);
    if let Some(variable) = variable {
        command.env("COFFERDAM_LOG", variable);
    }
    let ran = home.start(command).wait_for_exit();
    let report = ran.expect_outcome("answered", 0);
    assert_eq!(report["text"], "zircon-answer");
    assert!(!ran.stderr.contains(&key), "{}", ran.stderr);
    for content in CONTENT {
        assert!(!ran.stderr.contains(content), "{content}: {}", ran.stderr);
    }
    (ran.stderr, ran.stdout)
}

#[test]
fn without_a_flag_nothing_is_logged() {
    let (log, _) = run_logged(None, &[]);
    assert_eq!(log, "");
}

#[test]
fn the_log_has_requests_turns_and_calls_without_their_content() {
    let (log, _) = run_logged(None, &["-v"]);
    for expected in [
        "request{id=",
        "provider=\"anthropic\"",
        "turn{number=1}",
        "call{tool=\"read_file\"",
        "tier=\"read-only\"",
        "status=Ok",
        "outcome=\"answered\"",
    ] {
        assert!(log.contains(expected), "{expected}: {log}");
    }
    assert!(!log.contains("DEBUG"), "{log}");
    let (log, _) = run_logged(None, &["-vv"]);
    for expected in
        ["sending a model request", "effect allowed", "effect=\"command\"", "command ended"]
    {
        assert!(log.contains(expected), "{expected}: {log}");
    }
}

#[test]
fn a_filter_logs_nothing_of_other_libraries_and_no_content_at_any_level() {
    let (log, _) = run_logged(Some("trace"), &[]);
    assert!(log.contains("sending a model request"), "{log}");
    for library in [" hyper", " reqwest", " h2::", " rustls", " wasmtime", " wasi"] {
        assert!(!log.contains(library), "{library}: {log}");
    }
    let (log, _) = run_logged(Some("cofferdam::model=debug"), &[]);
    assert!(log.contains("sending a model request") && !log.contains("call finished"), "{log}");
}

#[test]
fn a_log_file_is_appended_to_and_belongs_to_the_user_alone() {
    use std::os::unix::fs::PermissionsExt as _;
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("log.txt");
    let text = path.display().to_string();
    for count in 1..=2 {
        let (log, _) = run_logged(None, &["-v", "--log-file", &text]);
        assert_eq!(log, "");
        let written = std::fs::read_to_string(&path).expect("the log");
        assert_eq!(written.matches("request finished").count(), count, "{written}");
        assert!(!written.contains('\u{1b}'), "{written}");
        for content in CONTENT {
            assert!(!written.contains(content), "{content}: {written}");
        }
    }
    let mode = std::fs::metadata(&path).expect("the log").permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
}

#[test]
fn an_invalid_filter_is_an_error_with_a_hint() {
    let home = new_home();
    let mut command = home.command(&["tools", "list"]);
    command.env("COFFERDAM_LOG", "cofferdam=loud");
    let ran = home.start(command).wait_for_exit();
    assert!(
        ran.exit_code == 78
            && ran.stderr.contains("cannot parse the log filter `cofferdam=loud`")
            && ran.stderr.contains("hint: use a level"),
        "{ran:?}"
    );
}

#[test]
fn the_log_has_no_text_of_the_provider() {
    let home = new_home();
    let id = "zircon-id";
    let call = empty_reply().with_raw_call(id, "read_file", r#"{"path":"a"}"#);
    let server = Provider::Anthropic.serve([call, text_reply("done")]);
    let args = ["--mode", "auto", "--output", "json", "-vv"];
    let ran = home.start(home.model_command(&server, &args)).wait_for_exit();
    ran.expect_outcome("answered", 0);
    assert!(ran.stderr.contains("call{tool=\"read_file\" number=1"), "{}", ran.stderr);
    assert!(!ran.stderr.contains(id), "{}", ran.stderr);
}
