//! When changes are committed, and when none is.

use std::fs;

use cofferdam::policy::SandboxLevel;
use cofferdam_tests::program::{TestHome, find_processes, wait_for_sleep, wait_until};

use super::{describe_tree, private_host, run_ok, undo};
use crate::run_line;

const PROGRAM: &str = env!("CARGO_BIN_EXE_cofferdam-under-test");

pub(super) fn home() -> TestHome {
    let home = TestHome::new(PROGRAM, env!("CARGO_TARGET_TMPDIR"));
    let full = SandboxLevel::Full;
    home.write_file("config/cofferdam/config.toml", format!("[commands]\nminimum = \"{full}\"\n"));
    home
}

pub(super) fn call(home: &TestHome, line: &str) -> std::process::Command {
    let input = serde_json::json!({"command": line}).to_string();
    home.command(&["tools", "call", "bash", &input, "--mode", "auto"])
}

#[test]
fn nothing_of_a_command_is_visible_before_it_ends() {
    let home = home().with_file("file", "old\n");
    let line = "echo new > file; echo x > new; mkdir .vscode; echo x > .vscode/tasks.json; sleep \
        0.31415";
    let running = home.start(call(&home, line));
    wait_for_sleep("0.31415");
    assert_eq!(fs::read_to_string(home.workspace().join("file")).expect("it is read"), "old\n");
    assert!(!home.has_file("new") && !home.has_file(".vscode"));
    let ran = running.wait_for_exit();
    assert_eq!(ran.exit_code, 0, "{ran:?}");
    assert_eq!(fs::read_to_string(home.workspace().join("file")).expect("it is read"), "new\n");
    assert!(home.has_file("new") && !home.has_file(".vscode"));
}

/// A command, and what somebody else does while it runs.
type Conflict = (&'static str, fn(&TestHome));

#[test]
fn a_file_that_somebody_else_changed_meanwhile_is_a_conflict_and_nothing_is_committed() {
    let conflicts: [Conflict; 5] = [
        ("echo command > file", |home| home.write_file("workspace/file", "editor\n")),
        ("rm file", |home| home.write_file("workspace/file", "editor\n")),
        ("echo command > new", |home| home.write_file("workspace/new", "editor\n")),
        ("chmod 755 file", |home| {
            let mode = std::os::unix::fs::PermissionsExt::from_mode(0o600);
            fs::set_permissions(home.workspace().join("file"), mode).expect("it is set");
        }),
        ("rm -r d", |home| home.write_file("workspace/d/e/inner", "editor\n")),
    ];
    for (number, (line, change)) in conflicts.into_iter().enumerate() {
        let home = home().with_file("file", "old\n").with_file("d/e/inner", "old\n");
        let mark = format!("0.4{number}7");
        let running = home.start(call(&home, &format!("{line}; echo x > other; sleep {mark}")));
        wait_for_sleep(&mark);
        change(&home);
        let expected = describe_tree(&home.workspace());
        let ran = running.wait_for_exit();
        let said = format!("{}{}", ran.stdout, ran.stderr);
        assert!(said.contains("all of its changes were discarded"), "{line}: {said}");
        assert!(said.contains("changed by another process"), "{line}: {said}");
        assert_eq!(describe_tree(&home.workspace()), expected, "{line}");
    }
}

#[test]
fn other_files_may_change_meanwhile() {
    let home = home().with_file("file", "old\n").with_file("d/inner", "old\n");
    let running = home.start(call(&home, "echo new > file; echo x > d/new; sleep 0.2718"));
    wait_for_sleep("0.2718");
    home.write_file("workspace/d/inner", "editor\n");
    home.write_file("workspace/d/another", "editor\n");
    let ran = running.wait_for_exit();
    assert_eq!(ran.exit_code, 0, "{ran:?}");
    let text = |path: &str| fs::read_to_string(home.workspace().join(path)).expect("it is read");
    assert_eq!([text("file"), text("d/inner")], ["new\n", "editor\n"]);
    assert!(home.has_file("d/new") && home.has_file("d/another"));
}

#[test]
fn two_commands_run_at_the_same_time_and_commit_one_after_the_other() {
    let home = home();
    let start = |name: &str| home.start(call(&home, &format!("echo x > {name}; sleep 0.61803")));
    let (one, two) = (start("one"), start("two"));
    let is_asleep = |line: &String| line == "sleep 0.61803 ";
    wait_until("both sleep", || {
        find_processes("0.61803").iter().filter(|line| is_asleep(line)).count() == 2
    });
    for running in [one, two] {
        let ran = running.wait_for_exit();
        assert_eq!(ran.exit_code, 0, "{ran:?}");
    }
    assert!(home.has_file("one") && home.has_file("two"));
}

#[test]
fn a_command_at_its_time_limit_keeps_its_changes_and_a_cancelled_one_does_not() {
    let home = home();
    let input = serde_json::json!({"command": "echo x > file; sleep 30", "timeout": 1});
    let ran = home.run(&["tools", "call", "bash", &input.to_string(), "--mode", "auto"]);
    assert!(ran.stderr.contains("timed out after 1 s"), "{ran:?}");
    assert!(home.has_file("file"));
    let running = home.start(call(&home, "echo x > other; sleep 86207.1"));
    wait_for_sleep("86207.1");
    running.interrupt();
    wait_until("no process is left", || find_processes("86207.1").is_empty());
    assert!(!home.has_file("other"));
}

#[test]
fn commands_are_undone_one_by_one() {
    let test_host = private_host();
    test_host.write_file("file", "0\n");
    let root = test_host.workspace_dir();
    let mut states = vec![describe_tree(root)];
    for line in [
        "echo 1 > file; mkdir d; echo 1 > d/inner",
        "echo 2 > file; echo 2 > d/inner; echo 2 > d/new",
        "rm -r d; echo 3 >> file",
        "mkdir d; echo 4 > d/inner; mv file moved",
        "echo 5 > d/inner; rm moved",
    ] {
        run_ok(&test_host, line);
        states.push(describe_tree(root));
    }
    while let Some(state) = states.pop() {
        assert_eq!(describe_tree(root), state);
        if !states.is_empty() {
            undo(&test_host);
        }
    }
}

#[test]
fn an_undo_does_not_overwrite_later_changes() {
    let test_host = private_host();
    let path = |name: &str| test_host.workspace_dir().join(name);
    test_host.write_file("file", "old\n");
    run_ok(&test_host, "echo command > file; mkdir d; echo x > d/inner");
    fs::write(path("d/inner"), "editor\n").expect("it is written");
    let refused = test_host.history().undo(test_host.workspace(), false).expect_err("newer work");
    assert!(refused.to_string().contains("changed since: d"), "{refused}");
    let text = fs::read_to_string(path("file")).expect("it is read");
    assert_eq!(text, "command\n", "nothing was undone");
    test_host.history().undo(test_host.workspace(), true).expect("it is undone by force");
    assert_eq!(fs::read_to_string(path("file")).expect("it is read"), "old\n");
    assert!(!path("d").exists());
}

#[test]
fn a_command_without_changes_leaves_no_record_and_touches_nothing() {
    let test_host = private_host();
    test_host.write_file("d/file", "text\n");
    let stamp = || {
        use std::os::unix::fs::MetadataExt as _;
        let metadata = test_host.workspace_dir().join("d").metadata().expect("it is there");
        (metadata.ctime(), metadata.ctime_nsec())
    };
    let before = stamp();
    run_ok(&test_host, "cat d/file; touch d/temporary; rm d/temporary; grep -r text .");
    assert_eq!(stamp(), before);
    assert!(test_host.history().list().expect("it is listed").is_empty());
}

#[test]
fn a_rename_of_an_old_directory_fails_with_a_hint_and_mv_copies_it() {
    let test_host = private_host();
    test_host.write_file("d/file", "text\n");
    let rename = "PATH=/usr/bin:/bin python3 -c 'import os; os.rename(\"d\", \"e\")'";
    let said = run_line(&test_host, rename);
    assert!(said.contains("cross-device link") && said.contains("`mv` copies it"), "{said}");
    run_ok(&test_host, "mv d e");
    assert!(test_host.workspace_dir().join("e/file").exists());
    assert!(!test_host.workspace_dir().join("d").exists());
}

#[test]
fn the_audit_log_has_each_committed_path_with_its_digest() {
    let home = home().with_file("old", "x");
    let ran = home.start(call(&home, "echo hello > new; rm old; mkdir d; echo x > d/y"));
    assert_eq!(ran.wait_for_exit().exit_code, 0);
    let log = home.run(&["audit", "show", "--json"]).stdout;
    // The SHA-256 of "hello\n".
    let new = "{\"path\":\"new\",\"action\":\"create\",\"kind\":\"file\",\"mode\":420,\"bytes\":6,\
        \"sha256\":\"5891b5b522d5df086d0ff0b110fbd9d21bb4fc7163af34d08286a2e846f6be03\"}";
    for expected in
        [new, "{\"path\":\"old\",\"action\":\"remove\",\"kind\":\"file\"}", "\"entries\":1"]
    {
        assert!(log.contains(expected), "{expected}: {log}");
    }
    let shown = home.run(&["audit", "show"]).stdout;
    for expected in [
        "created new (mode 0644, 6 bytes, sha256:5891b5b522d5)",
        "removed old\n",
        "created d (directory, mode 0755, 1 entries, 2 bytes)",
    ] {
        assert!(shown.contains(expected), "{expected}: {shown}");
    }
    let events = home.run(&["audit", "export", "--format", "ocsf"]).json_lines();
    let of_files = events.iter().filter(|event| event["class_uid"] == 1001);
    let mut changes: Vec<_> = of_files
        .map(|event| format!("{} {}", event["activity_name"], event["file"]["path"]))
        .collect();
    changes.sort();
    assert_eq!(changes, [r#""Create" "d""#, r#""Create" "new""#, r#""Delete" "old""#]);
}

#[test]
fn a_diff_shows_what_commands_and_tools_changed() {
    let home = home().with_file("notes", "one\ntwo\n").with_file("old", "x\n");
    let change = |tool: &str, input: &str| {
        let ran = home.run(&["tools", "call", tool, input, "--mode", "auto"]);
        assert_eq!(ran.exit_code, 0, "{ran:?}");
    };
    let none = home.run(&["diff"]);
    assert!(none.exit_code == 0 && none.stdout.contains("There are no changes"), "{none:?}");
    let line =
        r#"{"command": "sed -i s/two/2/ notes; rm old; mkdir out; printf 'a\\033\\n' > out/x"}"#;
    change("bash", line);
    change("write_file", r#"{"path": "made", "content": "by a tool\n"}"#);
    let newest = home.run(&["diff"]).stdout;
    assert!(newest.contains("+by a tool") && !newest.contains("notes"), "{newest}");
    let both = home.run(&["diff", "--last", "2"]).stdout;
    for expected in [
        "change notes (8 → 6 bytes)",
        "delete old (2 bytes)",
        "create the directory out",
        "-two\n+2\n",
        "+a\\u{1b}\n",
        "+by a tool",
    ] {
        assert!(both.contains(expected), "{expected}: {both}");
    }
    let json = home.run(&["diff", "--last", "9", "--json"]).json_lines();
    assert_eq!(json[0]["changes"].as_array().map(Vec::len), Some(2), "{json:?}");
    assert_eq!(json[0]["complete"], true);
    let paths: Vec<_> = json[0]["differences"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|change| format!("{} {}", change["act"], change["path"]))
        .collect();
    let expected = [
        r#""create" "made""#,
        r#""modify" "notes""#,
        r#""delete" "old""#,
        r#""create-directory" "out""#,
        r#""create" "out/x""#,
    ];
    assert_eq!(paths, expected);
    assert_eq!(home.run(&["undo"]).exit_code, 0);
    let after = home.run(&["diff"]).stdout;
    assert!(after.contains("+2\n") && !after.contains("by a tool"), "{after}");
}

#[test]
fn a_command_cannot_create_the_policy_that_the_next_start_obeys() {
    let home = home();
    let at = home.workspace().join("cfg");
    let line = "mkdir -p cfg/cofferdam other; echo x > cfg/cofferdam/policy.toml; echo x > other/x";
    let mut command = call(&home, line);
    command.env("XDG_CONFIG_HOME", &at);
    let ran = home.start(command).wait_for_exit();
    let said = format!("{}{}", ran.stdout, ran.stderr);
    assert!(!home.has_file("cfg/cofferdam/policy.toml") && home.has_file("other/x"), "{said}");
    assert!(said.contains("a file of Cofferdam itself"), "{said}");
}

#[test]
fn a_state_directory_in_the_workspace_rules_out_a_private_view() {
    let home = home();
    let state = home.workspace().join(".state");
    let mut command = call(&home, "echo x > file");
    command.env("XDG_STATE_HOME", &state);
    let ran = home.start(command).wait_for_exit();
    assert_eq!(ran.exit_code, 0, "{ran:?}");
    assert!(home.has_file("file"), "it was written directly: {ran:?}");
}
