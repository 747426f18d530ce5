//! What somebody else removes or moves while a command runs.

use std::fs;

use cofferdam_tests::program::{TestHome, wait_for_sleep};

use super::commits::{call, home};
use super::describe_tree;

/// A command, what somebody else does while it runs, and the path that the result names.
type Removal = (&'static str, fn(&TestHome), &'static str);

fn remove(home: &TestHome, path: &str) {
    fs::remove_file(home.workspace().join(path)).expect("it is removed");
}

fn rename(home: &TestHome, old: &str, new: &str) {
    fs::rename(home.workspace().join(old), home.workspace().join(new)).expect("it is moved");
}

/// Runs a line, and the action while the command sleeps. Returns what the command said.
fn run_with(home: &TestHome, line: &str, mark: &str, action: impl FnOnce(&TestHome)) -> String {
    let running = home.start(call(home, &format!("{line}; echo x > other; sleep {mark}")));
    wait_for_sleep(mark);
    action(home);
    let ran = running.wait_for_exit();
    format!("{}{}", ran.stdout, ran.stderr)
}

fn home_with_files() -> TestHome {
    home()
        .with_file("notes", "old\n")
        .with_file("d/e/x", "old\n")
        .with_file("d/e/y", "old\n")
        .with_file("d/z", "old\n")
}

#[test]
fn a_changed_file_that_somebody_else_removed_is_a_conflict() {
    let removals: [Removal; 9] = [
        ("echo added >> notes", |home| remove(home, "notes"), "notes"),
        ("echo new > notes", |home| rename(home, "notes", "moved"), "notes"),
        ("chmod 755 notes", |home| remove(home, "notes"), "notes"),
        ("rm d/z; echo added >> notes", |home| remove(home, "notes"), "notes"),
        ("echo added >> notes; mv d/z z", |home| remove(home, "notes"), "notes"),
        ("echo added >> d/e/x", |home| remove(home, "d/e/x"), "d/e/x"),
        ("echo added >> d/e/x", |home| rename(home, "d", "dd"), "d"),
        ("echo new > d/e/new", |home| rename(home, "d/e", "ee"), "d/e"),
        (
            "rm d/e/x",
            |home| {
                fs::remove_dir_all(home.workspace().join("d")).expect("it is removed");
                home.write_file("workspace/d", "a file\n");
            },
            "d",
        ),
    ];
    for (number, (line, removal, named)) in removals.into_iter().enumerate() {
        let home = home_with_files();
        let mut expected = std::collections::BTreeMap::new();
        let said = run_with(&home, line, &format!("0.5{number}17"), |home| {
            removal(home);
            expected = describe_tree(&home.workspace());
        });
        let message = format!("`{named}` was changed by another process");
        assert!(said.contains(&message), "{line}: {said}");
        assert!(said.contains("all of its changes were discarded"), "{line}: {said}");
        assert_eq!(describe_tree(&home.workspace()), expected, "{line}");
    }
}

#[test]
fn a_command_moves_files_while_others_change_the_same_directory() {
    for (number, line) in [
        "mv notes moved",
        "mv notes moved; echo more >> moved",
        "echo more >> notes; mv notes moved; echo new > notes",
        "mv notes moved; cp -p moved notes",
        "mv d/z z; rm -r d",
        "mv notes tmp; mv d/z notes; mv tmp d/z",
        "sed -i.moved s/old/new/ notes",
        "rm notes; mv d/e/x notes",
    ]
    .into_iter()
    .enumerate()
    {
        let home = home_with_files();
        let said = run_with(&home, line, &format!("0.6{number}23"), |home| {
            home.write_file("workspace/theirs", "theirs\n");
            home.write_file("workspace/theirs-too", "theirs\n");
            remove(home, "theirs-too");
        });
        assert!(!said.contains("discarded"), "{line}: {said}");
        assert!(home.has_file("other") && home.has_file("theirs"), "{line}: {said}");
    }
}

#[test]
fn what_a_command_creates_is_no_conflict_with_removals_of_others() {
    let home = home_with_files();
    let line = "echo new > new; mkdir -p d/e/n; echo new > d/e/n/new; rm notes; rm -r d/e/x";
    let said = run_with(&home, line, "0.70717", |home| {
        // Both removed it.
        remove(home, "notes");
        remove(home, "d/z");
    });
    assert!(!said.contains("discarded"), "{said}");
    assert!(home.has_file("new") && home.has_file("d/e/n/new") && home.has_file("d/e/y"), "{said}");
    assert!(!home.has_file("notes") && !home.has_file("d/z") && !home.has_file("d/e/x"), "{said}");
}
