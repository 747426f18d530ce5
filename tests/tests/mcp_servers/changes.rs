//! Changes of a server that may write files: each is judged, committed and can be undone.

use std::time::Duration;

use cofferdam_tests::program::{find_processes, wait_until};
use serde_json::json;

use crate::client::error_text;
use crate::scripted::ScriptedUser;

fn writing_user() -> ScriptedUser {
    ScriptedUser::with_server(&["--files", "read-write"])
}

#[test]
fn changes_are_committed_with_their_call_and_can_be_undone() {
    let user = writing_user();
    user.home.write_file("workspace/old.txt", "old\n");
    let mut session = user.begin("auto");
    assert_eq!(session.text("write_path", json!({"path": "new/a.txt", "text": "a\n"})), "written");
    assert_eq!(user.read("new/a.txt").as_deref(), Some("a\n"));
    session.text("write_path", json!({"path": "old.txt", "text": "changed\n"}));
    assert_eq!(user.read("old.txt").as_deref(), Some("changed\n"));
    session.text("remove_path", json!({"path": "old.txt"}));
    assert_eq!(user.read("old.txt"), None);
    drop(session);
    for expected in ["changed\n", "old\n"] {
        let undone = user.home.run(&["undo"]);
        assert_eq!(undone.exit_code, 0, "{undone:?}");
        assert_eq!(user.read("old.txt").as_deref(), Some(expected));
    }
    let undone = user.home.run(&["undo"]);
    assert_eq!((undone.exit_code, user.read("new/a.txt")), (0, None), "{undone:?}");
}

#[test]
fn changes_of_a_call_that_fails_are_judged_too() {
    let user = writing_user();
    let mut session = user.begin("auto");
    let arguments = json!({"path": "a.txt", "text": "half\n", "fail": true});
    let problem = session.error("write_path", arguments);
    assert!(problem.contains("written"), "{problem}");
    assert_eq!(user.read("a.txt").as_deref(), Some("half\n"));
    let problem = session.error("write_and_crash", json!({"path": "b.txt"}));
    assert!(problem.contains("it exited with code 1"), "{problem}");
    assert_eq!(user.read("b.txt").as_deref(), Some("from a crash\n"));
    session.assert_usable();
}

#[test]
fn what_runs_code_or_steers_agents_never_becomes_real() {
    let user = writing_user();
    let git = |args: &[&str]| {
        let mut command = std::process::Command::new("git");
        command.args(args).current_dir(user.home.workspace());
        assert!(command.output().expect("git runs").status.success());
    };
    git(&["init", "-q"]);
    let mut session = user.begin("auto");
    let text = session.text("plant", json!({}));
    assert_eq!(user.read("plain.txt").as_deref(), Some("harmless\n"));
    for path in [".git/hooks/pre-commit", "sub/.git/config", "AGENTS.md", ".envrc"] {
        assert_eq!(user.read(path), None, "{path}");
    }
    assert!(text.contains("[host: ") && text.contains("AGENTS.md"), "{text}");
}

#[test]
fn a_rule_of_the_policy_covers_the_changes_of_a_server() {
    let user = writing_user();
    user.home.write_file("config/cofferdam/policy.toml", "[write]\ndeny = [\"src/**\"]\n");
    let mut session = user.begin("auto");
    let text = session.text("write_path", json!({"path": "src/main.c", "text": "x"}));
    assert_eq!(user.read("src/main.c"), None);
    assert!(text.contains("the change of src was not committed: denied (policy)"), "{text}");
    // What was refused stays in the view of the server, and is refused again.
    let text = session.text("write_path", json!({"path": "other.c"}));
    assert!(text.starts_with("written") && text.contains("the change of src was not"), "{text}");
    assert_eq!(user.read("other.c").as_deref(), Some("written\n"));
}

#[test]
fn a_cancelled_call_leaves_nothing_behind() {
    let user = writing_user();
    let mut session = user.begin("auto");
    let id = session.client.start_call("s__write_and_hang", json!({"path": "a.txt"}));
    std::thread::sleep(Duration::from_millis(700));
    session.client.notify("notifications/cancelled", json!({"requestId": id}));
    session.assert_usable();
    assert_eq!(user.read("a.txt"), None);
}

#[test]
fn a_kill_at_any_moment_leaves_whole_files_and_no_process() {
    let user = writing_user();
    let script = user.script().display().to_string();
    for round in 0..8_u64 {
        let path = format!("{round}.txt");
        let text = "line\n".repeat(20_000);
        let mut session = user.begin("auto");
        // The server runs before the call that is interrupted.
        session.assert_usable();
        session.client.start_call("s__write_path", json!({"path": path, "text": text}));
        std::thread::sleep(Duration::from_millis(round * 15));
        session.client.kill();
        wait_until("all processes have ended", || find_processes(&script).is_empty());
        let written = user.read(&path);
        assert!(written.is_none() || written.as_deref() == Some(&text), "{round}");
    }
    // The next session goes on as if nothing had happened.
    let mut session = user.begin("auto");
    assert_eq!(session.text("write_path", json!({"path": "last.txt"})), "written");
    assert_eq!(user.read("last.txt").as_deref(), Some("written\n"));
}

#[test]
fn an_annotation_gives_no_permission() {
    let user = ScriptedUser::with_server(&["--files", "read"]);
    let mut session = user.begin("auto");
    let problem = session.error("lying", json!({"path": "a.txt"}));
    assert!(problem.contains("Read-only file system"), "{problem}");
    let user = writing_user();
    let mut client =
        crate::client::McpClient::begin_with(&user.home, &["--mode", "ask"], json!({}));
    let result = client.call("s__lying", json!({"path": "a.txt"}));
    assert!(error_text(&result).contains("needs approval"), "{result}");
    assert_eq!(user.read("a.txt"), None);
}

#[test]
fn each_call_is_recorded_with_its_changes() {
    let user = writing_user();
    let mut session = user.begin("auto");
    session.text("write_path", json!({"path": "a.txt"}));
    session.client.close_input();
    session.client.wait_for_exit(Duration::from_secs(10));
    let shown = user.home.run(&["audit", "show"]);
    assert!(shown.stdout.contains("s/write_path") && shown.stdout.contains("a.txt"), "{shown:?}");
    let verified = user.home.run(&["audit", "verify"]);
    assert_eq!(verified.exit_code, 0, "{verified:?}");
}
