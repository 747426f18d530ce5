//! Sessions of the real program: killed, out of space, two at once, and looked at from outside.

#![expect(clippy::expect_used, reason = "what a test cannot set up, it cannot test")]

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use cofferdam::conversation::{ResultStatus, Transcript, validate};

/// The folders of a user, with one cache of compiled tools for all users of this test.
fn own_folders(home: &Path) -> [(&'static str, PathBuf); 4] {
    [
        ("HOME", home.to_owned()),
        ("XDG_CONFIG_HOME", home.join("config")),
        ("XDG_STATE_HOME", home.join("state")),
        ("XDG_CACHE_HOME", Path::new(env!("CARGO_TARGET_TMPDIR")).join("sessions-cache")),
    ]
}

/// A user with folders of their own and one project.
struct User {
    home: tempfile::TempDir,
}

impl User {
    fn new() -> Self {
        let home = tempfile::tempdir().expect("a folder");
        std::fs::create_dir(home.path().join("project")).expect("it is made");
        Self { home }
    }

    fn project(&self) -> PathBuf {
        self.home.path().join("project")
    }

    fn set_up(&self, command: &mut Command) {
        command.current_dir(self.project()).envs(own_folders(self.home.path()));
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_cofferdam-under-test"));
        self.set_up(&mut command);
        command.args(arguments);
        command
    }

    fn output(&self, arguments: &[&str]) -> Output {
        self.command(arguments).output().expect("it starts")
    }

    /// What a command that succeeds prints, as JSON.
    fn json(&self, arguments: &[&str]) -> Value {
        let output = self.output(arguments);
        assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        serde_json::from_slice(&output.stdout).expect("it prints JSON")
    }

    /// A recording of responses, for `--model`.
    fn recording(&self, name: &str, responses: &[Value]) -> String {
        let mut text = String::from("{\"cofferdam_recording\": 1, \"model\": \"m\"}\n");
        for response in responses {
            writeln!(text, "{}", json!({"blocks": response})).expect("into a string");
        }
        let path = self.home.path().join(name);
        std::fs::write(&path, text).expect("writable");
        format!("replay:{}", path.display())
    }

    fn answer(&self, text: &str) -> String {
        self.recording("answer.jsonl", &[json!([{"text": text}])])
    }

    fn journals(&self) -> Vec<PathBuf> {
        let root = self.home.path().join("state/cofferdam/sessions");
        let folders = std::fs::read_dir(root).into_iter().flatten().flatten();
        folders.flat_map(|folder| std::fs::read_dir(folder.path()).expect("readable").flatten().map(|file| file.path())).collect()
    }

    fn journal(&self) -> String {
        std::fs::read_to_string(self.journals().pop().expect("there is one")).expect("readable")
    }

    /// The one session, as it reads.
    fn transcript(&self) -> Transcript {
        let id = self.json(&["sessions", "list", "--json"])["sessions"][0]["id"].as_str().expect("a name").to_owned();
        serde_json::from_value(self.json(&["sessions", "export", &id])["transcript"].clone()).expect("a transcript")
    }
}

fn bash(command: &str) -> Value {
    json!({"call": {"id": "c", "name": "bash", "arguments": {"command": command}}})
}

fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    let started = Instant::now();
    while !is_so() {
        assert!(started.elapsed() < Duration::from_secs(60), "it never came to this: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn kill(mut child: Child) {
    child.kill().expect("SIGKILL is sent");
    child.wait().expect("it is gone");
}

fn lines(path: &Path) -> usize {
    std::fs::read_to_string(path).unwrap_or_default().lines().count()
}

#[test]
fn r108_killed_at_any_moment_a_session_goes_on_and_nothing_is_run_again() {
    // Different numbers each time, and each a moment of its own after the first call began.
    let random = std::process::id() as usize;
    let mut interrupted = 0;
    for round in 0..8 {
        let user = User::new();
        let effects = user.project().join("effects");
        let turn = json!([{"text": "More."}, bash("echo one >> effects; sleep 0.02"), bash("echo two >> effects")]);
        let model = user.recording("long.jsonl", &vec![turn; 30]);
        let child = user.command(&["run", "--mode", "auto", "--model", &model, "Work."]).spawn().expect("it starts");
        wait_until("a call has an effect", || effects.exists());
        std::thread::sleep(Duration::from_millis(((round * 37 + random) % 120) as u64));
        kill(child);
        let started = || user.journal().matches("{\"started\":").count();
        let started_before = started();
        let model = user.answer("I go on.");
        let report = user.json(&["run", "--continue", "--output", "json", "--model", &model, "Go on."]);
        assert_eq!(report["outcome"], "answered");
        assert_eq!(started(), started_before, "something was run again");
        // A command that was running may outlive its host for a moment, so this is read last.
        let done = lines(&effects);
        assert!(done <= started_before, "{done} effects and only {started_before} calls on record");

        let transcript = user.transcript();
        assert_eq!(validate(&transcript), Ok(()));
        let prompts: Vec<&str> = transcript.exchanges().iter().map(|exchange| exchange.prompt()).collect();
        assert_eq!(prompts, ["Work.", "Go on."]);
        let calls = || transcript.exchanges()[0].turns().iter().flat_map(|turn| turn.calls());
        let ok = calls().filter(|answered| answered.result.status == ResultStatus::Ok).count();
        let unknown = calls().filter(|answered| answered.result.status == ResultStatus::Interrupted).count();
        assert!(ok <= done && done <= ok + unknown, "{ok} ok, {unknown} unknown, {done} done");
        interrupted += unknown;
    }
    assert!(interrupted > 0, "no kill hit a running call");
}

#[test]
fn r109_a_second_process_is_told_that_the_session_is_in_use() {
    let user = User::new();
    let model = user.recording("slow.jsonl", &[json!([bash("touch begun; sleep 30")])]);
    let child = user.command(&["run", "--mode", "auto", "--model", &model, "Take your time."]).spawn().expect("it starts");
    wait_until("the call runs", || user.project().join("begun").exists());
    let refused = user.output(&["run", "--continue", "--output", "json", "--model", &user.answer("Hello."), "Me too."]);
    let listed = user.json(&["sessions", "list", "--json"]);
    let id = listed["sessions"][0]["id"].as_str().expect("a name").to_owned();
    let deleted = user.output(&["sessions", "delete", &id, "--yes"]);
    kill(child);

    assert_eq!(refused.status.code(), Some(1));
    let report: Value = serde_json::from_slice(&refused.stdout).expect("JSON on failure too");
    let error = report["error"].as_str().expect("a message");
    assert!(error.contains("in use") && error.contains(&id), "{error}");
    assert!(!deleted.status.success());
    assert_eq!(listed["sessions"][0]["ended"], Value::Null);
    assert_eq!(user.journals().len(), 1);
}

#[test]
fn a_disk_that_fills_up_in_the_middle_of_a_record_costs_a_notice_and_no_request() {
    let user = User::new();
    let long = "long ".repeat(4000);
    let model = user.recording("long.jsonl", &[json!([{"text": "I say."}, bash("true")]), json!([{"text": long}])]);
    let mut command = Command::new("sh");
    // No file may grow past 8 KiB: the record that does is written in part.
    let script = "trap '' XFSZ; ulimit -f 16; exec \"$0\" \"$@\"";
    command.args(["-c", script, env!("CARGO_BIN_EXE_cofferdam-under-test"), "run", "--mode", "auto", "--model", &model, "Say much."]);
    user.set_up(&mut command);
    let output = command.output().expect("it starts");
    let (said, told) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{told}");
    assert_eq!(said.trim(), long.trim());
    assert_eq!(told.matches("could not be written").count(), 1, "{told}");

    assert!(user.journal().ends_with("{\"closed\":{\"rest\":[]}}\n"), "{}", user.journal());
    assert_eq!(user.transcript().exchanges()[0].turns().len(), 1);
    let report = user.json(&["run", "--continue", "--output", "json", "--model", &user.answer("Shorter."), "Again?"]);
    assert_eq!(report["outcome"], "answered");
}

#[test]
fn r114_the_key_in_the_environment_never_reaches_a_session() {
    let user = User::new();
    let model = user.recording("leak.jsonl", &[json!([{"text": "The key is sk-very-secret."}])]);
    let mut command = user.command(&["run", "--model", &model, "Is it sk-very-secret?"]);
    assert!(command.env("ANTHROPIC_API_KEY", "sk-very-secret").output().expect("it starts").status.success());
    let journal = user.journal();
    assert!(journal.contains("[key redacted]") && !journal.contains("sk-very-secret"), "{journal}");
}

#[test]
fn r113_sessions_are_found_by_a_unique_prefix_in_their_project() {
    let user = User::new();
    let model = user.answer("Hello \u{202e}there.");
    let run = |arguments: &[&str]| {
        let all: Vec<&str> = ["run", "--output", "json", "--model", &model].into_iter().chain(arguments.iter().copied()).collect();
        user.json(&all)
    };
    assert_eq!(run(&["--no-session", "Unheard."])["session"], Value::Null);
    assert!(user.journals().is_empty());
    assert!(!user.output(&["run", "--continue", "--model", &model, "What?"]).status.success());

    let first = run(&["First\u{1b}[2J words."])["session"].as_str().expect("a name").to_owned();
    let second = run(&["Second words."])["session"].as_str().expect("a name").to_owned();
    assert_ne!(first, second);
    assert_eq!(run(&["--continue", "More."])["session"], second);
    assert_eq!(run(&["--resume", &first[..8], "More."])["session"], first);
    assert_eq!(run(&["--continue", "Even more."])["session"], first, "the newest is the one that was last spoken in");

    let listed = user.json(&["sessions", "list", "--json"]);
    let brief: Vec<_> = listed["sessions"].as_array().expect("a list").iter().map(|one| (&one["id"], &one["turns"])).collect();
    assert_eq!(brief, [(&json!(first), &json!(3)), (&json!(second), &json!(2))]);
    for arguments in [&["sessions", "list"][..], &["sessions", "show", &first], &["sessions", "export", &first]] {
        let text = String::from_utf8(user.output(arguments).stdout).expect("text");
        assert!(text.contains("words") && !text.contains(['\u{1b}', '\u{202e}']), "{text}");
    }

    let elsewhere = user.home.path().to_str().expect("text");
    assert_eq!(user.json(&["sessions", "list", "--json", "-C", elsewhere])["sessions"], json!([]));
    assert!(!user.output(&["sessions", "show", &first, "-C", elsewhere]).status.success());
    assert_eq!(user.json(&["sessions", "show", &first, "--json", "--all", "-C", elsewhere])["requests"][0]["ended"]["outcome"], "answered");

    assert!(!user.output(&["sessions", "delete", &first]).status.success(), "nobody was asked");
    assert!(user.output(&["sessions", "delete", &first, "--yes"]).status.success());
    assert_eq!(user.journals().len(), 1);
}
