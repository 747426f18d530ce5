//! The audit log of the real program: what is in it, who notices when it was changed, and what
//! happens when it cannot be written.

#![expect(clippy::expect_used, reason = "what a test cannot set up, it cannot test")]

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::process::Command;

use serde_json::{Value, json};

use cofferdam_tests::guests::{GuestTool, TestGuest};
use cofferdam_tests::program::{ProgramOutput, TestHome, wait_for_sleep, wait_until};

mod export;
const PROGRAM: &str = env!("CARGO_BIN_EXE_cofferdam-under-test");

/// A user with one project.
struct TestUser {
    home: TestHome,
}

impl TestUser {
    fn new() -> Self {
        Self { home: TestHome::new(PROGRAM, env!("CARGO_TARGET_TMPDIR")) }
    }

    fn run(&self, args: &[&str]) -> ProgramOutput {
        self.home.run(args)
    }

    /// Calls a tool by itself.
    fn call_tool(&self, tool: &str, input: &Value) -> ProgramOutput {
        self.run(&["tools", "call", tool, &input.to_string(), "--mode", "auto"])
    }

    /// A model that makes these calls of `bash` one turn after the other, for `--model`.
    fn replay_model(&self, commands: &[String]) -> String {
        let turn = |command: &String| {
            let call = json!({"id": "c", "name": "bash", "arguments": {"command": command}});
            json!({"blocks": [{"call": call}]})
        };
        let answer = json!({"blocks": [{"text": "Done."}]});
        let lines = commands.iter().map(turn).chain([answer]).map(|line| format!("{line}\n"));
        let text: String = ["{\"cofferdam_recording\": 1, \"model\": \"m\"}\n".to_owned()]
            .into_iter()
            .chain(lines)
            .collect();
        self.home.write_file("model.jsonl", text);
        format!("replay:{}", self.home.path().join("model.jsonl").display())
    }

    fn log_directory(&self) -> PathBuf {
        self.home.path().join("state/cofferdam/audit")
    }

    /// The files of all logs, from the oldest to the newest.
    fn log_files(&self) -> Vec<PathBuf> {
        let entries = fs::read_dir(self.log_directory()).into_iter().flatten().flatten();
        let mut logs: Vec<PathBuf> = entries
            .map(|entry| entry.path())
            .filter(|path| path.extension().is_some_and(|e| e == "jsonl"))
            .collect();
        logs.sort();
        logs
    }

    fn show_records(&self, args: &[&str]) -> Vec<Value> {
        let all: Vec<&str> =
            ["audit", "show", "--json"].into_iter().chain(args.iter().copied()).collect();
        let ran = self.run(&all);
        assert_eq!(ran.exit_code, 0, "{ran:?}");
        ran.json_lines()
    }
}

fn record_kinds(records: &[Value]) -> Vec<&str> {
    records.iter().map(|record| record["kind"].as_str().expect("a word")).collect()
}

#[test]
fn a_run_leaves_what_was_decided_and_done() {
    let user = TestUser::new();
    let model = user.replay_model(&["echo one\necho two".to_owned()]);
    let report = user
        .run(&["run", "--mode", "auto", "--output", "json", "--model", &model, "Do it."])
        .expect_outcome("answered", 0);
    let records = user.show_records(&[]);
    assert_eq!(
        record_kinds(&records),
        ["log", "session", "request", "decided", "ended", "outcome"]
    );
    assert_eq!(records[1]["model"], "replay:m");
    let [decided, ended] = &records[3..5] else { panic!("two records") };
    assert_eq!(
        decided["effect"],
        json!({"kind": "command", "line": "echo one\necho two", "directory": ""})
    );
    assert_eq!((&decided["decision"], &decided["by"]), (&json!("allow"), &json!({"mode": "auto"})));
    assert_eq!(
        (&ended["status"], &ended["decided"], &ended["grants"]["commands"]),
        (&json!("ok"), &json!([4]), &json!(true))
    );
    let [command] = &ended["commands"].as_array().expect("a list")[..] else {
        panic!("not one command: {ended}")
    };
    assert_eq!(
        command["line_sha256"],
        "875c6527e63909c82a818bf4a7d6cd860da1d58642fd6b8677d61b8c29b3ef9c"
    );
    assert_eq!((&command["level"], &command["ending"]), (&json!("full"), &json!({"exited": 0})));
    assert!(
        ended["memory_bytes"].as_u64().expect("a number") > 0
            && ended["output_bytes"].as_u64().expect("a number") > 0,
        "{ended}"
    );
    for record in &records[2..] {
        assert_eq!(
            (&record["request"], &record["session"]),
            (&report["request"], &report["session"])
        );
    }
    let shown =
        user.run(&["audit", "show", "--session", report["session"].as_str().expect("a name")]);
    assert!(
        shown.stdout.contains("bash: allow the command `echo one echo two` (mode auto)"),
        "{shown:?}"
    );
}

#[test]
fn a_write_is_shown_by_path_and_kept_without_its_content() {
    let user = TestUser::new();
    assert_eq!(
        user.call_tool("write_file", &json!({"path": "a/b.txt", "content": "the content"}))
            .exit_code,
        0
    );
    user.run(&[
        "tools",
        "call",
        "write_file",
        &json!({"path": "c.txt", "content": "x".repeat(100_000)}).to_string(),
    ]);
    let shown = user.run(&["audit", "show"]).stdout;
    assert!(
        shown.contains(
            "write_file: allow writing: make the directory a, create a/b.txt (11 bytes) (mode auto)"
        ),
        "{shown}"
    );
    assert!(
        shown.contains("write_file: deny writing: create c.txt (100000 bytes) (nobody-to-ask)"),
        "{shown}"
    );
    let text: String =
        user.log_files().iter().map(|log| fs::read_to_string(log).expect("readable")).collect();
    assert!(!text.contains("the content") && text.len() < 20_000, "{} bytes", text.len());
}

#[test]
fn r108_what_is_taken_back_or_accepted_is_on_record_before_it_is() {
    let user = TestUser::new();
    assert_eq!(
        user.call_tool("write_file", &json!({"path": "a.txt", "content": "x"})).exit_code,
        0
    );
    let bundle = user.home.path().join("added.wasm");
    fs::write(&bundle, echo_plugin()).expect("writable");
    let add = ["plugin", "add", bundle.to_str().expect("text"), "--yes"];
    user.home.write_file("config/cofferdam/config.toml", "[audit]\nrequired = true\n");
    fs::set_permissions(user.log_directory(), fs::Permissions::from_mode(0o755))
        .expect("it is ours");
    for args in [&["undo"][..], &add] {
        let ran = user.run(args);
        assert!(ran.exit_code == 1 && ran.stderr.contains("audit.required"), "{ran:?}");
    }
    assert!(
        user.home.has_file("a.txt")
            && !user.home.path().join("config/cofferdam/cofferdam.lock").exists()
    );
    fs::set_permissions(user.log_directory(), fs::Permissions::from_mode(0o700))
        .expect("it is ours");
    for args in [&["undo"][..], &add, &["plugin", "remove", "added"]] {
        assert_eq!(user.run(args).exit_code, 0);
    }
    assert!(!user.home.has_file("a.txt"));
    let shown = user.run(&["audit", "show"]).stdout;
    for expected in [
        "undo: the change by write_file to a.txt",
        "accepted: the plugin ",
        "removed: the plugin added, ",
    ] {
        assert!(shown.contains(expected), "{expected}: {shown}");
    }
    let ran = user.run(&[&add[..], &["--locked"]].concat());
    assert!(
        ran.exit_code == 78 && ran.stderr.contains("which `--locked` does not allow"),
        "{ran:?}"
    );
}

#[test]
fn an_undo_that_fails_is_recorded_as_failed() {
    let user = TestUser::new();
    let write = json!({"path": "a.txt", "content": "x"});
    assert_eq!(user.call_tool("write_file", &write).exit_code, 0);
    user.home.write_file("workspace/a.txt", "mine");
    let refused = user.run(&["undo"]);
    assert!(refused.exit_code == 1 && refused.stderr.contains("changed since"), "{refused:?}");
    let shown = user.run(&["audit", "show"]).stdout;
    let begun = shown.find("undo: the change by write_file to a.txt").expect("it is recorded");
    let failed = "the undo failed or was not complete: nothing was undone, because";
    assert!(shown[begun..].contains(failed), "{shown}");
    // A successful undo has no such record.
    assert_eq!(user.run(&["undo", "--force"]).exit_code, 0);
    let shown = user.run(&["audit", "show"]).stdout;
    assert_eq!(shown.matches("the undo failed").count(), 1, "{shown}");
}

/// A component with one tool that requests no permissions.
fn echo_plugin() -> Vec<u8> {
    TestGuest::from_file("good").with_tools([GuestTool::new("echo")]).component()
}

#[test]
fn old_logs_go_and_the_others_still_hold() {
    let user = TestUser::new();
    for name in ["a", "b"] {
        assert_eq!(
            user.call_tool("bash", &json!({"command": format!("echo {name}")})).exit_code,
            0
        );
    }
    assert_eq!(
        user.run(&["audit", "prune", "--keep-days", "1"]).stdout,
        "Removed 0 logs with 0 records.\n"
    );
    let ran = user.run(&["audit", "prune", "--before", "2999-01-01"]);
    assert!(
        ran.exit_code == 0 && ran.stdout.starts_with("Removed 3 logs with 10 records."),
        "{ran:?}"
    );
    assert_eq!(user.log_files().len(), 1);
    assert_eq!(user.call_tool("bash", &json!({"command": "echo c"})).exit_code, 0);
    assert_eq!(user.run(&["audit", "verify"]).exit_code, 0);
    assert!(
        user.run(&["audit", "show"]).stdout.contains("removed 3 logs with 10 records: all up to ")
    );
    assert_eq!(user.run(&["audit", "prune"]).exit_code, 2, "it has to be said which");
    assert_eq!(
        user.run(&["audit", "prune", "--keep-days", "0", "--session", "5f"]).exit_code,
        1,
        "not those of a session"
    );
}

#[test]
fn what_was_refused_is_on_record_too() {
    let user = TestUser::new();
    user.run(&["tools", "call", "bash", r#"{"command":"touch x"}"#, "--mode", "plan"]);
    user.run(&["tools", "call", "bash", r#"{"command":"touch x"}"#]);
    user.run(&["tools", "call", "nope"]);
    let records = user.show_records(&[]);
    let decided: Vec<_> = records
        .iter()
        .filter(|record| record["kind"] == "decided")
        .map(|record| (&record["decision"], &record["by"]["code"]))
        .collect();
    assert_eq!(
        decided,
        [(&json!("deny"), &json!("mode")), (&json!("deny"), &json!("nobody-to-ask"))]
    );
    assert_eq!(record_kinds(&records).iter().filter(|kind| **kind == "refused").count(), 1);
    assert!(user.show_records(&["--tool", "nope"]).iter().all(|record| record["tool"] == "nope"));
}

#[test]
fn r036_the_rule_that_decided_is_on_record_with_its_place() {
    let user = TestUser::new();
    user.home.write_file(
        "config/cofferdam/policy.toml",
        "[commands]\ndeny = [\"touch *\"]\nallow = [\"echo *\"]\n",
    );
    for command in ["touch x", "echo y"] {
        user.run(&["tools", "call", "bash", &json!({"command": command}).to_string()]);
    }
    let records = user.show_records(&["--tool", "bash"]);
    let decided: Vec<_> = records.iter().filter(|record| record["kind"] == "decided").collect();
    let told = |n: usize| {
        (
            decided[n]["decision"].as_str().expect("a word"),
            decided[n]["by"]["place"].as_str().expect("a place"),
        )
    };
    assert!(
        matches!(told(0), ("deny", place) if place.ends_with("policy.toml:2:9")),
        "{decided:?}"
    );
    assert!(
        matches!(told(1), ("allow", place) if place.ends_with("policy.toml:3:10")),
        "{decided:?}"
    );
    assert_eq!(decided[1]["by"]["rule"], "echo *");
}

#[test]
fn verify_names_the_first_record_that_was_changed() {
    let user = TestUser::new();
    for name in ["a", "b"] {
        assert_eq!(
            user.call_tool("bash", &json!({"command": format!("echo {name}")})).exit_code,
            0
        );
    }
    let verified = user.run(&["audit", "verify"]);
    assert_eq!(verified.exit_code, 0, "{verified:?}");
    let hash = verified
        .stdout
        .lines()
        .next()
        .and_then(|line| line.rsplit(' ').next())
        .expect("a hash")
        .to_owned();
    assert_eq!(user.run(&["audit", "verify", "--contains", &hash]).exit_code, 0);

    let [first, _] = user.log_files().try_into().expect("two logs");
    let text = fs::read_to_string(&first).expect("readable");
    fs::write(&first, text.replacen("echo a", "echo b", 1)).expect("writable");
    let verified = user.run(&["audit", "verify"]);
    assert!(
        verified.exit_code == 1 && verified.stdout.contains("line 3 was changed"),
        "{verified:?}"
    );
    assert_eq!(user.run(&["audit", "export"]).exit_code, 1);

    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    fs::write(&first, lines[..3].concat()).expect("writable");
    let verified = user.run(&["audit", "verify", "--contains", &hash]);
    assert!(
        verified.exit_code == 1 && verified.stdout.contains("it has 3 of 4 written lines"),
        "{verified:?}"
    );
    assert!(
        verified.stdout.contains(&format!("no log contains a record with the hash {hash}")),
        "{verified:?}"
    );
}

#[test]
fn r108_killed_at_any_moment_no_effect_is_without_its_record() {
    for round in 0..4 {
        let user = TestUser::new();
        let effects = user.home.workspace().join("effects");
        let commands: Vec<String> = (0..40).map(|n| format!("echo {n} >> effects")).collect();
        let model = user.replay_model(&commands);
        let running = user
            .home
            .start(user.home.command(&["run", "--mode", "auto", "--model", &model, "Work."]));
        wait_until("a call has an effect", || effects.exists());
        std::thread::sleep(std::time::Duration::from_millis(round * 13));
        // SIGKILL.
        drop(running);
        let verified = user.run(&["audit", "verify"]);
        assert_eq!(verified.exit_code, 0, "a crash is no fault: {verified:?}");
        let records = user.show_records(&[]);
        let count = |kind: &str| record_kinds(&records).iter().filter(|k| **k == kind).count();
        assert!(count("decided") - count("ended") <= 1, "{:?}", record_kinds(&records));
        // A command that was running may outlive its host for a moment, so this is read last.
        let done = fs::read_to_string(&effects).expect("readable").lines().count();
        assert!(done <= count("decided"), "{done} effects, and {} on record", count("decided"));
    }
}

#[test]
fn a_call_that_a_crash_cut_off_is_shown_as_such() {
    let user = TestUser::new();
    let running = user.home.start(user.home.command(&[
        "tools",
        "call",
        "bash",
        r#"{"command":"sleep 30.125"}"#,
        "--mode",
        "auto",
    ]));
    wait_for_sleep("30.125");
    drop(running);
    let shown = user.run(&["audit", "show"]);
    assert!(shown.stdout.contains("its outcome is unknown"), "{shown:?}");
}

#[test]
fn r114_the_key_in_the_environment_never_reaches_the_log() {
    let user = TestUser::new();
    let model = user.replay_model(&["echo sk-very-secret".to_owned()]);
    let mut command = user.home.command(&[
        "run",
        "--mode",
        "auto",
        "--no-session",
        "--model",
        &model,
        "Is it sk-very-secret?",
    ]);
    command.env("ANTHROPIC_API_KEY", "sk-very-secret");
    assert_eq!(user.home.start(command).wait_for_exit().exit_code, 0);
    let text: String =
        user.log_files().iter().map(|log| fs::read_to_string(log).expect("readable")).collect();
    assert!(text.contains("echo [key redacted]") && !text.contains("sk-very-secret"), "{text}");
}

#[test]
fn two_at_once_have_a_log_each() {
    let user = TestUser::new();
    let start = || {
        user.home.start(user.home.command(&[
            "tools",
            "call",
            "bash",
            r#"{"command":"sleep 0.3"}"#,
            "--mode",
            "auto",
        ]))
    };
    let both = [start(), start()];
    both.into_iter().for_each(|running| assert_eq!(running.wait_for_exit().exit_code, 0));
    assert_eq!(user.log_files().len(), 2);
    assert_eq!(user.run(&["audit", "verify"]).exit_code, 0);
}

#[test]
fn a_full_disk_costs_a_notice_or_the_effect() {
    for required in [false, true] {
        let user = TestUser::new();
        user.home.write_file(
            "config/cofferdam/config.toml",
            format!("[audit]\nrequired = {required}\n"),
        );
        // Each record of these calls is longer than eight thousand bytes.
        let commands: Vec<String> =
            (0..12).map(|n| format!("touch did-{n} {}", "#".repeat(8_000))).collect();
        let model = user.replay_model(&commands);
        let mut command = Command::new("sh");
        // No file may grow past 64 KiB, which is enough for what the memory of a tool begins with.
        let script = "trap '' XFSZ; ulimit -f 128; exec \"$0\" \"$@\"";
        command.args([
            "-c",
            script,
            PROGRAM,
            "run",
            "--no-session",
            "--mode",
            "auto",
            "--model",
            &model,
            "Go.",
        ]);
        user.home.configure(&mut command);
        let ran = user.home.start(command).wait_for_exit();
        assert_eq!((ran.exit_code, ran.stdout.trim()), (0, "Done."), "{ran:?}");
        assert_eq!(ran.stderr.matches("cannot write the audit log").count(), 1, "{ran:?}");
        let done = (0..12).filter(|n| user.home.has_file(&format!("did-{n}"))).count();
        let recorded =
            user.show_records(&[]).iter().filter(|record| record["kind"] == "decided").count();
        assert!(recorded > 1 && recorded < 12, "{recorded} on record");
        assert_eq!(done, if required { recorded } else { 12 }, "required: {required}");
        assert_eq!(user.run(&["audit", "verify"]).exit_code, 0);
    }
}

#[test]
fn where_the_log_is_required_and_cannot_be_begun_nothing_starts() {
    let user = TestUser::new();
    fs::create_dir_all(user.log_directory()).expect("it can be made");
    fs::set_permissions(user.log_directory(), fs::Permissions::from_mode(0o755))
        .expect("it is ours");
    let ran = user.call_tool("bash", &json!({"command": "touch did-1"}));
    assert!(
        ran.exit_code == 0
            && ran.stderr.contains("has no audit log")
            && ran.stderr.contains("chmod 700"),
        "{ran:?}"
    );
    user.home.write_file("config/cofferdam/config.toml", "[audit]\nrequired = true\n");
    let ran = user.call_tool("bash", &json!({"command": "touch did-2"}));
    assert!(
        ran.exit_code == 1 && ran.stderr.contains("audit.required") && !user.home.has_file("did-2"),
        "{ran:?}"
    );
}

#[test]
fn an_export_for_others_is_an_event_a_line() {
    let user = TestUser::new();
    user.call_tool("bash", &json!({"command": "true"}));
    user.call_tool("list_dir", &json!({}));
    let events = user.run(&["audit", "export", "--format", "ocsf"]).json_lines();
    let told: Vec<_> = events
        .iter()
        .map(|e| {
            (e["api"]["operation"].as_str(), e["activity_id"].as_u64(), e["class_uid"].as_u64())
        })
        .collect();
    assert_eq!(
        told,
        [
            (Some("bash"), Some(99), Some(6003)),
            (Some("bash"), Some(99), Some(6003)),
            (Some("list_dir"), Some(2), Some(6003))
        ]
    );
    assert_eq!(
        user.run(&["audit", "export"]).json_lines().len(),
        7,
        "two beginnings of two records each, and three of calls"
    );
}
