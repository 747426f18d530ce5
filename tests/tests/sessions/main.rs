//! Sessions of the real program: killed, out of space, two at once, and looked at from outside.

#![expect(clippy::expect_used, reason = "what a test cannot set up, it cannot test")]

mod abort;
mod cost;
mod tool_state;
mod unwritable_home;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use serde_json::{Value, json};

use cofferdam::conversation::{ResultStatus, Transcript, validate};
use cofferdam_tests::program::{ProgramOutput, TestHome, wait_for_sleep, wait_until};

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

    /// What a command that succeeds prints, as JSON.
    fn run_json(&self, args: &[&str]) -> Value {
        let ran = self.run(args);
        assert_eq!(ran.exit_code, 0, "{args:?}: {ran:?}");
        serde_json::from_str(&ran.stdout).unwrap_or_else(|error| panic!("{error}: {ran:?}"))
    }

    /// A model that says these things, for `--model`.
    fn replay_model(&self, name: &str, responses: &[Value]) -> String {
        let lines = responses.iter().map(|blocks| format!("{}\n", json!({"blocks": blocks})));
        let text: String = ["{\"cofferdam_recording\": 1, \"model\": \"m\"}\n".to_owned()]
            .into_iter()
            .chain(lines)
            .collect();
        self.home.write_file(name, text);
        format!("replay:{}", self.home.path().join(name).display())
    }

    fn run_answer(&self, text: &str) -> String {
        self.replay_model("answer.jsonl", &[json!([{"text": text}])])
    }

    fn journal_files(&self) -> Vec<PathBuf> {
        let root = self.home.path().join("state/cofferdam/sessions");
        let folders = std::fs::read_dir(root).into_iter().flatten().flatten();
        folders
            .flat_map(|folder| {
                std::fs::read_dir(folder.path())
                    .expect("readable")
                    .flatten()
                    .map(|file| file.path())
            })
            .collect()
    }

    fn read_journal(&self) -> String {
        std::fs::read_to_string(self.journal_files().pop().expect("there is one"))
            .expect("readable")
    }

    /// The one session, as it reads.
    fn read_transcript(&self) -> Transcript {
        let id = self.run_json(&["sessions", "list", "--json"])["sessions"][0]["id"]
            .as_str()
            .expect("a name")
            .to_owned();
        serde_json::from_value(self.run_json(&["sessions", "export", &id])["transcript"].clone())
            .expect("a transcript")
    }
}

fn bash_call(command: &str) -> Value {
    json!({"call": {"id": "c", "name": "bash", "arguments": {"command": command}}})
}

fn count_lines(path: &Path) -> usize {
    std::fs::read_to_string(path).unwrap_or_default().lines().count()
}

#[test]
fn r108_killed_at_any_moment_a_session_goes_on_and_nothing_is_run_again() {
    // Different numbers each time, and each a moment of its own after the first call began.
    let random = std::process::id() as usize;
    let mut interrupted = 0;
    for round in 0..8 {
        let user = TestUser::new();
        let effects = user.home.workspace().join("effects");
        let turn = |n| {
            json!([{"text": "More."}, bash_call(&format!("echo {n} >> effects; sleep \
            0.02")), bash_call(&format!("echo {n} too >> effects"))])
        };
        let model = user.replay_model("long.jsonl", &(0..30).map(turn).collect::<Vec<_>>());
        let running = user
            .home
            .start(user.home.command(&["run", "--mode", "auto", "--model", &model, "Work."]));
        wait_until("a call has an effect", || effects.exists());
        std::thread::sleep(Duration::from_millis(((round * 37 + random) % 120) as u64));
        // SIGKILL.
        drop(running);
        let started = || user.read_journal().matches("{\"started\":").count();
        let started_before = started();
        let model = user.run_answer("I go on.");
        let report =
            user.run_json(&["run", "--continue", "--output", "json", "--model", &model, "Go on."]);
        assert_eq!(report["outcome"], "answered");
        assert_eq!(started(), started_before, "something was run again");
        // A command that was running may outlive its host for a moment, so this is read last.
        let done = count_lines(&effects);
        assert!(done <= started_before, "{done} effects and only {started_before} calls on record");

        let transcript = user.read_transcript();
        assert_eq!(validate(&transcript), Ok(()));
        let prompts: Vec<&str> =
            transcript.exchanges().iter().map(|exchange| exchange.prompt()).collect();
        assert_eq!(prompts, ["Work.", "Go on."]);
        let calls = || transcript.exchanges()[0].turns().iter().flat_map(|turn| turn.calls());
        let ok = calls().filter(|answered| answered.result.status == ResultStatus::Ok).count();
        let unknown =
            calls().filter(|answered| answered.result.status == ResultStatus::Interrupted).count();
        assert!(ok <= done && done <= ok + unknown, "{ok} ok, {unknown} unknown, {done} done");
        interrupted += unknown;
    }
    assert!(interrupted > 0, "no kill hit a running call");
}

#[test]
fn r100_stopped_at_any_moment_saving_among_them_a_session_goes_on() {
    let random = std::process::id() as usize;
    for round in 0..6 {
        let user = TestUser::new();
        let effects = user.home.workspace().join("effects");
        let turn = |n| json!([{"text": "More."}, bash_call(&format!("echo {n} >> effects"))]);
        let model = user.replay_model("long.jsonl", &(0..200).map(turn).collect::<Vec<_>>());
        let mut command = user
            .home
            .command(&["run", "--mode", "auto", "--output", "json", "--model", &model, "Work."]);
        command.args(["--max-tool-iterations", "300"]);
        let running = user.home.start(command);
        wait_until("a call has an effect", || effects.exists());
        std::thread::sleep(Duration::from_millis(((round * 41 + random) % 90) as u64));
        running.interrupt();
        if round % 2 == 1 {
            // an impatient user loses nothing either.
            running.interrupt();
        }
        let ran = running.wait_for_exit();
        assert_eq!(ran.exit_code, 130, "{ran:?}");
        let model = user.run_answer("I go on.");
        let report =
            user.run_json(&["run", "--continue", "--output", "json", "--model", &model, "Go on."]);
        assert_eq!(report["outcome"], "answered");
        let transcript = user.read_transcript();
        assert_eq!(validate(&transcript), Ok(()));
        let calls = || transcript.exchanges()[0].turns().iter().flat_map(|turn| turn.calls());
        let ok = calls().filter(|answered| answered.result.status == ResultStatus::Ok).count();
        let unknown =
            calls().filter(|answered| answered.result.status == ResultStatus::Interrupted).count();
        let done = count_lines(&effects);
        assert!(ok <= done && done <= ok + unknown, "{ok} ok, {unknown} unknown, {done} done");
        assert!(
            user.read_journal().contains("{\"outcome\":{\"kind\":\"aborted\""),
            "it is on record how it ended"
        );
    }
}

#[test]
fn r109_a_second_process_is_told_that_the_session_is_in_use() {
    let user = TestUser::new();
    let model = user.replay_model("slow.jsonl", &[json!([bash_call("sleep 30.25")])]);
    let running = user.home.start(user.home.command(&[
        "run",
        "--mode",
        "auto",
        "--model",
        &model,
        "Take your time.",
    ]));
    wait_for_sleep("30.25");
    let refused = user.run(&[
        "run",
        "--continue",
        "--output",
        "json",
        "--model",
        &user.run_answer("Hello."),
        "Me too.",
    ]);
    let listed = user.run_json(&["sessions", "list", "--json"]);
    let id = listed["sessions"][0]["id"].as_str().expect("a name").to_owned();
    let deleted = user.run(&["sessions", "delete", &id, "--yes"]);
    drop(running);

    let report = refused.expect_outcome("not-started", 1);
    let error = report["error"].as_str().expect("a message");
    assert!(error.contains("in use") && error.contains(&id), "{error}");
    assert!(deleted.exit_code != 0);
    assert_eq!(listed["sessions"][0]["ended"], Value::Null);
    assert_eq!(user.journal_files().len(), 1);
}

#[test]
fn r109_the_newest_session_that_nobody_has_open_goes_on() {
    let user = TestUser::new();
    user.run_json(&["run", "--output", "json", "--model", &user.run_answer("First."), "One."]);
    let older = user.run_json(&["sessions", "list", "--json"])["sessions"][0]["id"].clone();
    let model = user.replay_model("slow.jsonl", &[json!([bash_call("sleep 30.75")])]);
    let running = user.home.start(user.home.command(&[
        "run",
        "--mode",
        "auto",
        "--model",
        &model,
        "Take your time.",
    ]));
    wait_for_sleep("30.75");
    let went_on = user.run(&[
        "run",
        "--continue",
        "--output",
        "json",
        "--model",
        &user.run_answer("Second."),
        "Two.",
    ]);
    drop(running);

    let report = went_on.expect_outcome("answered", 0);
    assert_eq!(report["session"], older);
    let older = older.as_str().expect("a name");
    assert!(
        went_on.stderr.contains("is newer, but open in another process")
            && went_on.stderr.contains(older),
        "{went_on:?}"
    );
}

#[test]
fn a_disk_that_fills_up_in_the_middle_of_a_record_costs_a_notice_and_no_request() {
    let user = TestUser::new();
    let long = "long ".repeat(4000);
    let model = user.replay_model(
        "long.jsonl",
        &[json!([{"text": "I say."}, bash_call("true")]), json!([{"text": long}])],
    );
    let mut command = Command::new("sh");
    // No file may grow past 8 KiB: the record that does is written in part.
    let script = "trap '' XFSZ; ulimit -f 16; exec \"$0\" \"$@\"";
    command.args(["-c", script, PROGRAM, "run", "--mode", "auto", "--model", &model, "Say much."]);
    user.home.configure(&mut command);
    let ran = user.home.start(command).wait_for_exit();
    assert_eq!((ran.exit_code, ran.stdout.trim()), (0, long.trim()), "{ran:?}");
    assert_eq!(ran.stderr.matches("Cannot write session").count(), 1, "{ran:?}");

    assert!(
        user.read_journal().ends_with("{\"closed\":{\"rest\":[]}}\n"),
        "{}",
        user.read_journal()
    );
    assert_eq!(user.read_transcript().exchanges()[0].turns().len(), 1);
    let report = user.run_json(&[
        "run",
        "--continue",
        "--output",
        "json",
        "--model",
        &user.run_answer("Shorter."),
        "Again?",
    ]);
    assert_eq!(report["outcome"], "answered");
}

#[test]
fn r114_the_key_in_the_environment_never_reaches_a_session() {
    let user = TestUser::new();
    let model = user.replay_model("leak.jsonl", &[json!([{"text": "The key is sk-very-secret."}])]);
    let mut command = user.home.command(&["run", "--model", &model, "Is it sk-very-secret?"]);
    command.env("ANTHROPIC_API_KEY", "sk-very-secret");
    assert_eq!(user.home.start(command).wait_for_exit().exit_code, 0);
    let journal = user.read_journal();
    assert!(journal.contains("[key redacted]") && !journal.contains("sk-very-secret"), "{journal}");
}

#[test]
fn r113_sessions_are_found_by_a_unique_prefix_in_their_project() {
    let user = TestUser::new();
    let model = user.run_answer("Hello \u{202e}there.");
    let run = |arguments: &[&str]| {
        let all: Vec<&str> = ["run", "--output", "json", "--model", &model]
            .into_iter()
            .chain(arguments.iter().copied())
            .collect();
        user.run_json(&all)
    };
    assert_eq!(run(&["--no-session", "Unheard."])["session"], Value::Null);
    assert!(user.journal_files().is_empty());
    assert!(user.run(&["run", "--continue", "--model", &model, "What?"]).exit_code != 0);

    let first = run(&["First\u{1b}[2J words."])["session"].as_str().expect("a name").to_owned();
    let second = run(&["Second words."])["session"].as_str().expect("a name").to_owned();
    assert_ne!(first, second);
    assert_eq!(run(&["--continue", "More."])["session"], second);
    assert_eq!(run(&["--resume", &first[..8], "More."])["session"], first);
    assert_eq!(
        run(&["--continue", "Even more."])["session"],
        first,
        "the newest is the one that was last spoken in"
    );

    let listed = user.run_json(&["sessions", "list", "--json"]);
    let brief: Vec<_> = listed["sessions"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|one| (&one["id"], &one["turns"]))
        .collect();
    assert_eq!(brief, [(&json!(first), &json!(3)), (&json!(second), &json!(2))]);
    for arguments in
        [&["sessions", "list"][..], &["sessions", "show", &first], &["sessions", "export", &first]]
    {
        let text = user.run(arguments).stdout;
        assert!(text.contains("words") && !text.contains(['\u{1b}', '\u{202e}']), "{text}");
    }

    let elsewhere = user.home.path().to_str().expect("text");
    assert_eq!(
        user.run_json(&["sessions", "list", "--json", "-C", elsewhere])["sessions"],
        json!([])
    );
    assert!(user.run(&["sessions", "show", &first, "-C", elsewhere]).exit_code != 0);
    assert_eq!(
        user.run_json(&["sessions", "show", &first, "--json", "--all", "-C", elsewhere])["requests"]
            [0]["ended"]["outcome"],
        "answered"
    );

    assert!(user.run(&["sessions", "delete", &first]).exit_code != 0, "nobody was asked");
    assert!(user.run(&["sessions", "delete", &first, "--yes"]).exit_code == 0);
    assert_eq!(user.journal_files().len(), 1);
}
