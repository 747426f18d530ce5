//! Changes that need an approval of their own, and changes that a rule denies.

use std::sync::Arc;

use cofferdam::policy::{Effect, SandboxLevel};
use cofferdam::tools::ApprovalAnswer;
use cofferdam_tests::guests::{ScriptedApprover, TestHost};

use super::commits::{call, home};
use super::{describe_tree, undo};
use crate::{host_builder, rules_for_level, run_line};

const LINE: &str = "echo x > other; echo obey > AGENTS.md; mkdir -p new/.husky; echo x > \
    new/.husky/pre-commit; echo x > new/file";

/// A host with somebody who approves the command, and then gives this answer.
fn host_with_answer(answer: ApprovalAnswer) -> (TestHost, Arc<ScriptedApprover>) {
    let approver = Arc::new(ScriptedApprover::with_answers([ApprovalAnswer::Yes, answer]));
    let rules = rules_for_level(SandboxLevel::Full);
    (host_builder(rules).with_approver(&approver).build(), approver)
}

fn paths_in(test_host: &TestHost) -> Vec<String> {
    describe_tree(test_host.workspace_dir()).into_keys().collect()
}

#[test]
fn an_approved_change_is_committed_with_the_others() {
    let (test_host, approver) = host_with_answer(ApprovalAnswer::Yes);
    let said = run_line(&test_host, LINE);
    assert!(said.starts_with("ending 0 code 0:"), "{said}");
    let questions = approver.questions();
    let [_, question] = questions.as_slice() else { panic!("two questions: {questions:?}") };
    let Effect::Write { changes, .. } = &question.effect else { panic!("{question:?}") };
    let asked: Vec<String> = changes.iter().map(|change| change.path.to_string()).collect();
    assert_eq!(asked, ["AGENTS.md", "new/.husky/pre-commit"]);
    assert!(format!("{changes:?}").contains("obey"), "the diff is shown: {changes:?}");
    let expected = ["AGENTS.md", "new", "new/.husky", "new/.husky/pre-commit", "new/file", "other"];
    assert_eq!(paths_in(&test_host), expected);
    undo(&test_host);
    assert_eq!(paths_in(&test_host), [""; 0]);
}

#[test]
fn a_rejected_change_discards_the_whole_command() {
    let no = ApprovalAnswer::No { guidance: Some("not that".to_owned()) };
    let (test_host, _) = host_with_answer(no);
    let said = run_line(&test_host, LINE);
    assert!(said.contains("not that"), "{said}");
    assert_eq!(paths_in(&test_host), [""; 0]);
    assert!(test_host.history().list().expect("it is listed").is_empty());
}

#[test]
fn without_a_terminal_only_such_changes_are_discarded() {
    let test_host = super::private_host();
    let said = run_line(&test_host, LINE);
    let notice = "the changes of AGENTS.md, new/.husky/pre-commit were discarded: ";
    assert!(said.contains(notice), "{said}");
    assert_eq!(paths_in(&test_host), ["new", "new/.husky", "new/file", "other"]);
}

#[test]
fn a_rule_that_denies_a_path_discards_its_change_only() {
    let home = home()
        .with_file(".cofferdam/policy.toml", "[write]\ndeny = [\"data/*\", \"new/secret/**\"]\n");
    let line = "mkdir -p data new/secret; echo x > data/x; echo x > new/secret/x; echo x > new/y; \
        echo x > z";
    let ran = home.start(call(&home, line)).wait_for_exit();
    for (path, is_there) in
        [("data/x", false), ("new/secret/x", false), ("new/y", true), ("z", true)]
    {
        assert_eq!(home.has_file(path), is_there, "{path}: {ran:?}");
    }
    let said = format!("{}{}", ran.stdout, ran.stderr);
    assert!(said.contains("policy.toml:2"), "{said}");
}

#[test]
fn a_directory_is_not_removed_with_what_must_not_be_removed() {
    let home = home()
        .with_file(".cofferdam/policy.toml", "[write]\ndeny = [\"data/*\", \"**/*.pem\"]\n")
        .with_file("data/x", "1")
        .with_file("keys/a.pem", "2")
        .with_file("sub/AGENTS.md", "3")
        .with_file("free/x", "4");
    for line in [
        "rm -r data; mkdir data",
        "rm -r data; mkdir data; echo other > data/x",
        "rm -r data; echo other > data",
        "rm -r keys",
        "mv keys/a.pem keys/b",
        "rm -r sub",
        "mv sub other",
    ] {
        let ran = home.start(call(&home, &format!("{line}; echo x >> log"))).wait_for_exit();
        let text = |path: &str| std::fs::read_to_string(home.workspace().join(path));
        for (path, expected) in [("data/x", "1"), ("keys/a.pem", "2"), ("sub/AGENTS.md", "3")] {
            assert_eq!(text(path).ok().as_deref(), Some(expected), "{line}: {path}: {ran:?}");
        }
        assert!(
            text("log").is_ok_and(|log| log.ends_with("x\n")),
            "the rest is committed: {ran:?}"
        );
    }
    home.start(call(&home, "rm -r free")).wait_for_exit();
    assert!(!home.has_file("free"));
}

#[test]
fn a_path_that_is_too_long_to_be_judged_is_discarded() {
    let test_host = super::private_host();
    let said = run_line(
        &test_host,
        "PATH=/usr/bin:/bin python3 -c 'import os\nos.mkdir(\"new\"); os.chdir(\"new\")\nfor n in \
            range(6):\n os.mkdir(b\"\\xff\" * 250); os.chdir(b\"\\xff\" * 250)\n\
            open(\"AGENTS.md\", \"w\").close()'",
    );
    assert!(said.contains("discarded"), "{said}");
    let tree = describe_tree(test_host.workspace_dir());
    assert!(!tree.keys().any(|path| path.ends_with("AGENTS.md")), "{said}");
}
