//! What a program reads: fields of the JSON output that the README and the help of `cofferdam run`
//! name.

use cofferdam_tests::program::ProgramOutput;
use cofferdam_tests::wire::{
    Provider, ScriptedReply, call_reply, empty_reply, error_reply, text_reply,
};
use serde_json::{Value, json};

use super::new_home;

const OPENAI: Provider = Provider::OpenAi;

/// The calls of a run, from the lines as it goes on and from the report, which have to agree.
fn reported_calls(ran: &ProgramOutput) -> Vec<Value> {
    let lines: Vec<Value> =
        ran.json_lines().into_iter().filter(|line| line["type"] == "call_finished").collect();
    let report = ran.report()["calls"].as_array().cloned().unwrap_or_default();
    for (line, summary) in lines.iter().zip(&report) {
        for field in ["id", "tool", "tier", "status", "denied", "exit_code", "duration_ms"] {
            assert_eq!(line.get(field), summary.get(field), "{field}");
            assert!(line.get(field).is_some(), "{field} is always there");
        }
    }
    assert_eq!(lines.len(), report.len());
    lines
}

fn run_json(replies: Vec<ScriptedReply>, args: &[&str]) -> (Vec<Value>, ProgramOutput) {
    let home = new_home()
        .with_file("a.txt", "hay\n")
        .with_file(".env", "KEY=1\n")
        .with_file("kill.sh", "kill -9 $$\n");
    home.write_file("config/cofferdam/policy.toml", "[commands]\ndeny = [\"git push *\"]\n");
    let server = OPENAI.serve(replies);
    let ran = home
        .start(home.model_command(&server, &[&["--output", "stream-json"][..], args].concat()))
        .wait_for_exit();
    (reported_calls(&ran), ran)
}

#[test]
fn a_denied_call_says_so_with_code_and_reason() {
    let bash = |line: &str| call_reply("bash", json!({"command": line}));
    let table: [(ScriptedReply, &[&str], &str); 5] = [
        (bash("ls"), &[], "nobody-to-ask"),
        (bash("git push origin main"), &["--mode", "auto"], "policy"),
        (bash("ls"), &["--mode", "plan"], "mode"),
        (call_reply("read_file", json!({"path": "../outside"})), &[], "outside-workspace"),
        (call_reply("read_file", json!({"path": ".env"})), &[], "hidden"),
    ];
    for (call, args, code) in table {
        let (calls, ran) = run_json(vec![call, text_reply("Done.")], args);
        let denied = &calls[0]["denied"];
        assert_eq!(
            (&denied["code"], &calls[0]["status"]),
            (&json!(code), &json!("error")),
            "{calls:#?} {ran:?}"
        );
        let text: String = calls[0]["content"]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(|piece| piece["text"].as_str())
            .collect();
        let reason = denied["reason"].as_str().unwrap_or_default();
        assert!(!reason.is_empty() && text.contains(reason), "{denied} of {text}");
        assert_eq!(calls[0]["exit_code"], Value::Null);
    }
}

#[test]
fn what_is_no_denial_is_none() {
    let (calls, _) = run_json(
        vec![
            call_reply("read_file", json!({"path": "a.txt"})),
            call_reply("read_file", json!({"path": "missing"})),
            call_reply("nobody_knows", json!({})),
            call_reply("read_file", json!({"path": 7})),
            text_reply("Done."),
        ],
        &[],
    );
    let told: Vec<_> =
        calls.iter().map(|call| (call["status"].as_str(), call["denied"].is_null())).collect();
    assert_eq!(
        told,
        [(Some("ok"), true), (Some("error"), true), (Some("error"), true), (Some("error"), true)]
    );
}

#[test]
fn a_command_tells_its_exit_code() {
    let bash = |command: &str, timeout: u32| {
        call_reply("bash", json!({"command": command, "timeout": timeout}))
    };
    let replies = vec![
        bash("true", 9),
        bash("exit 3", 9),
        bash("exec sh kill.sh", 9),
        bash("sleep 30", 1),
        text_reply("Done."),
    ];
    let (calls, ran) = run_json(replies, &["--mode", "auto"]);
    let codes: Vec<_> = calls.iter().map(|call| call["exit_code"].clone()).collect();
    // A signal is 128 and its number, and what ran out of time has no code.
    assert_eq!(codes, [json!(0), json!(3), json!(128 + 9), Value::Null], "{ran:?}");
}

#[test]
fn the_first_line_names_the_session() {
    for (args, is_recorded) in [(&[][..], true), (&["--no-session"], false)] {
        let (_, ran) = run_json(vec![text_reply("Done.")], args);
        let (lines, report) = (ran.json_lines(), ran.report());
        let started =
            lines.iter().find(|line| line["type"] == "request_started").expect("it begins");
        assert_eq!(
            (lines[0].get("session"), &started["session"]),
            (report.get("session"), &report["session"]),
            "{ran:?}"
        );
        assert_eq!(report["session"].is_string(), is_recorded, "{report}");
    }
}

#[test]
fn r097_a_cost_that_is_not_known_is_null() {
    for reply in [
        error_reply(400, "invalid_request_error", "no"),
        text_reply("Hello.").with_usage(None),
        empty_reply().with_usage(Some((u64::MAX - 1, 1))).with_text("Hi."),
    ] {
        let home = new_home();
        let server = OPENAI.serve([reply]);
        // The price of this model is known; the usage is not.
        let mut command = home.command(&[
            "run",
            "Hi.",
            "--model",
            "openai:gpt-4.1",
            "--base-url",
            &server.base_url(),
            "--output",
            "json",
        ]);
        command.env("OPENAI_API_KEY", server.key());
        let ran = home.start(command).wait_for_exit();
        assert_eq!(ran.report()["cost"], Value::Null, "{ran:?}");
        assert!(!ran.stdout.contains("-0.0"), "{ran:?}");
    }
}
