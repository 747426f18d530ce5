//! Where nothing can be kept: without a home, with one that cannot be written, and on a disk that
//! is full. What needs to keep nothing works, with a warning.

use std::process::Command;

use cofferdam_tests::program::ProgramOutput;
use serde_json::json;

use super::{PROGRAM, TestUser, bash_call};

/// What works anywhere, with what it says.
fn assert_commands_work(user: &TestUser, run: impl Fn(&[&str]) -> ProgramOutput, warning: &str) {
    let model = user.replay_model(
        "it.jsonl",
        &[json!([bash_call("cat a.txt")]), json!([{"text": "It works."}])],
    );
    let run_it =
        ["run", "--no-session", "--mode", "auto", "--output", "json", "--model", &model, "Go."];
    for (args, says) in [
        (&["tools", "list"][..], "read_file"),
        (&["doctor"], "Enforcement"),
        (&run_it, "It works."),
    ] {
        let ran = run(args);
        assert!(ran.exit_code == 0 && ran.stdout.contains(says), "{args:?}: {ran:?}");
        assert!(
            ran.stderr.contains("warning: ") && ran.stderr.contains(warning),
            "{args:?}: {ran:?}"
        );
    }
    let report = run(&run_it).expect_outcome("answered", 0);
    assert_eq!(report["calls"][0]["status"], "ok", "{report}");
    // What tools write is written all the same.
    let arguments = r#"{"path":"new.txt","content":"new"}"#;
    let write = json!([{"call": {"id": "c1", "name": "write_file", "arguments": arguments}}]);
    let model = user.replay_model("write.jsonl", &[write, json!([{"text": "Written."}])]);
    run(&["run", "--no-session", "--mode", "auto", "--output", "json", "--model", &model, "Go."])
        .expect_answer("Written.");
}

/// With a home that is this one, or `(unset)`, and nothing else said.
fn run_with_home(user: &TestUser, home: &str) -> impl Fn(&[&str]) -> ProgramOutput {
    // The user database names a home for everybody, which is not used if there is no variable.
    let home = Some(home).filter(|home| *home != "(unset)");
    move |args: &[&str]| {
        let mut command = user.home.command(args);
        for folder in ["CONFIG", "DATA", "STATE"] {
            command.env_remove(format!("XDG_{folder}_HOME"));
        }
        match home {
            Some(home) => command.env("HOME", home),
            None => command.env_remove("HOME"),
        };
        user.home.start(command).wait_for_exit()
    }
}

#[test]
fn without_a_home_what_keeps_nothing_works_and_a_project_brings_no_home() {
    let user = TestUser::new();
    user.home.write_file("workspace/a.txt", "text");
    // With a home that is not absolute this would be the configuration of the user.
    user.home.write_file("workspace/.config/cofferdam/config.toml", "mode = \"nonsense\"\n");
    for home in [".", "home", "/dev/null", "", "(unset)"] {
        assert_commands_work(
            &user,
            run_with_home(&user, home),
            "cannot determine your home directory",
        );
        std::fs::remove_file(user.home.workspace().join("new.txt")).expect("it was written");
    }
    assert!(
        !user.home.has_file(".local") && !user.home.has_file(".cache"),
        "nothing is put into the workspace"
    );
    let model = user.run_answer("Hello.");
    let recorded =
        run_with_home(&user, ".")(&["run", "--output", "json", "--model", &model, "Hello."]);
    assert!(
        recorded.expect_outcome("answered", 0)["session"].is_null()
            && recorded.stderr.contains("the session is not recorded"),
        "{recorded:?}"
    );
    for args in [&["sessions", "list"][..], &["lock", "--yes"], &["audit", "verify"], &["trust"]] {
        let ran = run_with_home(&user, ".")(args);
        assert!(
            ran.exit_code != 0
                && ran.stderr.contains(
                    "set HOME to the absolute path of a \
                directory"
                ),
            "{args:?}: {ran:?}"
        );
    }
}

#[test]
fn with_a_home_that_cannot_be_written_what_keeps_nothing_works() {
    let user = TestUser::new();
    user.home.write_file("workspace/a.txt", "text");
    // Nobody makes a folder in a file, root included.
    user.home.write_file("house/.local", "");
    let home = user.home.path().join("house").display().to_string();
    assert_commands_work(
        &user,
        run_with_home(&user, &home),
        &format!("cannot save anything in {home}/.local/state/cofferdam"),
    );
}

#[test]
fn on_a_full_disk_what_keeps_nothing_works() {
    let user = TestUser::new();
    user.home.write_file("workspace/a.txt", "text");
    let model = user.replay_model(
        "it.jsonl",
        &[json!([bash_call("cat a.txt")]), json!([{"text": "It works."}])],
    );
    let run_it =
        ["run", "--no-session", "--mode", "auto", "--output", "json", "--model", &model, "Go."];
    for (args, says) in [
        (&["tools", "list"][..], "read_file"),
        (&["doctor"], "Enforcement"),
        (&run_it, "It works."),
    ] {
        let mut command = Command::new("sh");
        // No file may grow at all, which is what a full disk comes to.
        command
            .args(["-c", "trap '' XFSZ; ulimit -S -f 0; exec \"$0\" \"$@\"", PROGRAM])
            .args(args);
        user.home.configure(&mut command);
        let ran = user.home.start(command).wait_for_exit();
        assert!(ran.exit_code == 0 && ran.stdout.contains(says), "{args:?}: {ran:?}");
        assert!(ran.stderr.contains("warning: cannot save anything in "), "{args:?}: {ran:?}");
    }
}

#[test]
fn a_workspace_that_is_more_than_a_project_is_warned_of() {
    let user = TestUser::new();
    let home = user.home.path().display().to_string();
    let model = user.run_answer("Hello.");
    for (place, words) in [
        ("/", "is the root of the file system"),
        (
            &home[..],
            "is your home \
        directory",
        ),
    ] {
        let ran = user.run(&[
            "-C",
            place,
            "run",
            "--no-session",
            "--output",
            "json",
            "--model",
            &model,
            "Hello.",
        ]);
        ran.expect_answer("Hello.");
        assert!(
            ran.stderr.contains("warning: the workspace") && ran.stderr.contains(words),
            "{ran:?}"
        );
    }
    let ran = user.run(&["run", "--no-session", "--output", "json", "--model", &model, "Hello."]);
    assert!(!ran.stderr.contains("the workspace"), "{ran:?}");
}
