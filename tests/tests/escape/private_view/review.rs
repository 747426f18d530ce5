//! The setting `review_changes`: the user sees everything that a command changed before it is
//! committed.

use std::sync::Arc;

use cofferdam::policy::{ApprovalMode, ChangeSet, CommandRules, Effect, SandboxLevel};
use cofferdam::tools::ApprovalAnswer;
use cofferdam_tests::guests::{ScriptedApprover, TestHost};

use super::{describe_tree, undo};
use crate::{host_builder, rules_for_level, run_line};

const LINE: &str = "echo new > file; rm gone; chmod 700 run; rm -r tree; mkdir -p out/d; echo x > \
    out/d/y; ln -s y out/d/link; mkfifo pipe; echo new > script; chmod +x script; echo \
    obey > AGENTS.md; mkdir .vscode; echo x > .vscode/tasks.json";

fn reviewing_rules() -> CommandRules {
    CommandRules { review_changes: true, ..rules_for_level(SandboxLevel::Full) }
}

fn fill(test_host: &TestHost) {
    for (path, text) in
        [("file", "old\n"), ("gone", "gone\n"), ("run", "run\n"), ("tree/a/b", "deep\n")]
    {
        test_host.write_file(path, text);
    }
}

fn host_with_answers(answers: &[ApprovalAnswer]) -> (TestHost, Arc<ScriptedApprover>) {
    let approver = Arc::new(ScriptedApprover::with_answers(answers.iter().cloned()));
    let test_host = host_builder(reviewing_rules()).with_approver(&approver).build();
    fill(&test_host);
    (test_host, approver)
}

fn reviewed_changes(approver: &ScriptedApprover) -> ChangeSet {
    let questions = approver.questions();
    let [_, question] = questions.as_slice() else { panic!("two questions: {questions:?}") };
    assert!(question.scope.is_none(), "it is asked for each command: {question:?}");
    let Effect::Write { changes, .. } = &question.effect else { panic!("{question:?}") };
    changes.clone()
}

#[test]
fn the_review_shows_every_change_with_its_diff() {
    let (test_host, approver) = host_with_answers(&[ApprovalAnswer::Yes, ApprovalAnswer::Yes]);
    let said = run_line(&test_host, LINE);
    assert!(said.starts_with("ending 0 code 0:"), "{said}");
    let changes = reviewed_changes(&approver);
    let shown: String = changes.iter().map(|change| format!("{change}\n")).collect();
    insta::assert_snapshot!(shown, @r"
    create AGENTS.md (5 bytes)
    change file (4 → 4 bytes)
    delete gone (5 bytes)
    create the directory out
    create the directory out/d
    make out/d/link a symbolic link to y
    create out/d/y (2 bytes)
    create pipe (0 bytes)
    set permissions of run (0644 → 0700)
    create script (4 bytes)
    set permissions of script (0755)
    remove the directory tree
    remove the directory tree/a
    delete tree/a/b (5 bytes)
    ");
    let diffs = changes.diff();
    for expected in ["-old\n+new\n", "-gone", "-deep", "+x", "+obey", "a FIFO"] {
        assert!(diffs.contains(expected), "{expected}: {diffs}");
    }
    let tree = describe_tree(test_host.workspace_dir());
    assert!(tree.contains_key("out/d/y") && tree.contains_key("AGENTS.md"), "{tree:?}");
    assert!(!tree.contains_key(".vscode/tasks.json"), "{tree:?}");
    undo(&test_host);
}

#[test]
fn a_rejected_review_discards_everything() {
    let no = ApprovalAnswer::No { guidance: Some("not that".to_owned()) };
    let (test_host, _) = host_with_answers(&[ApprovalAnswer::Yes, no]);
    let before = describe_tree(test_host.workspace_dir());
    let said = run_line(&test_host, LINE);
    assert!(said.contains("not that"), "{said}");
    assert_eq!(describe_tree(test_host.workspace_dir()), before);
    assert!(test_host.history().list().expect("it is listed").is_empty());
}

#[test]
fn a_command_without_changes_needs_no_review() {
    let (test_host, approver) = host_with_answers(&[ApprovalAnswer::Yes]);
    let said = run_line(&test_host, "cat file; : > /tmp/x");
    assert!(said.contains("old"), "{said}");
    assert_eq!(approver.questions().len(), 1);
}

#[test]
fn a_large_new_directory_is_shown_as_a_whole() {
    let (test_host, approver) = host_with_answers(&[ApprovalAnswer::Yes, ApprovalAnswer::Yes]);
    run_line(
        &test_host,
        "mkdir big; cd big; i=0; while [ $i -lt 2100 ]; do : > $i; i=$((i+1)); done",
    );
    let changes = reviewed_changes(&approver);
    let shown: Vec<String> = changes.iter().map(ToString::to_string).collect();
    assert!(
        shown.len() <= 2 && shown.iter().all(|line| line.ends_with("directory big")),
        "{shown:?}"
    );
    assert!(changes.diff().contains("2100 entries with 0 bytes"), "{}", changes.diff());
    assert!(test_host.workspace_dir().join("big/2099").exists());
}

#[test]
fn mode_auto_needs_no_review() {
    let test_host = host_builder(reviewing_rules()).with_mode(ApprovalMode::Auto).build();
    fill(&test_host);
    let said = run_line(&test_host, "echo new > file");
    assert!(said.starts_with("ending 0 code 0:"), "{said}");
}

#[test]
fn without_a_terminal_all_changes_are_discarded_and_the_output_is_kept() {
    let home = super::commits::home().with_file("file", "old\n");
    let config = "[commands]\nminimum = \"full\"\nreview_changes = true\n";
    home.write_file("config/cofferdam/config.toml", config);
    home.write_file("config/cofferdam/policy.toml", "[commands]\nallow = [\"sh *\", \"cat *\"]\n");
    home.write_file("workspace/script", "echo said; echo new > file\n");
    let run = |line: &str| {
        let input = serde_json::json!({"command": line}).to_string();
        home.run(&["tools", "call", "bash", &input])
    };
    let ran = run("sh script");
    let said = format!("{}{}", ran.stdout, ran.stderr);
    for expected in ["all of its changes were discarded", "nobody-to-ask", "said"] {
        assert!(said.contains(expected), "{expected}: {said}");
    }
    let text = std::fs::read_to_string(home.workspace().join("file")).expect("it is read");
    assert_eq!(text, "old\n");
    let ran = run("cat file");
    assert!(ran.exit_code == 0 && ran.stdout.contains("old"), "{ran:?}");
}

#[test]
fn without_a_private_view_such_commands_are_denied() {
    let rules = CommandRules { review_changes: true, ..rules_for_level(SandboxLevel::Kernel) };
    let approver = Arc::new(ScriptedApprover::with_answers([ApprovalAnswer::Yes]));
    let test_host = host_builder(rules).with_approver(&approver).build();
    let said = run_line(&test_host, "echo x > file");
    assert!(said.contains("`review_changes`") && said.contains("level `full`"), "{said}");
    assert!(!test_host.workspace_dir().join("file").exists());
}
