//! The limits of what is recorded, reported and asked about the changes of one command.

use std::sync::Arc;

use cofferdam::policy::{Effect, SandboxLevel};
use cofferdam::tools::ApprovalAnswer;
use cofferdam_tests::guests::ScriptedApprover;

use super::commits::{call, home};
use crate::{host_builder, rules_for_level, run_line};

#[test]
fn the_record_of_a_command_lists_a_thousand_changes_and_counts_the_rest() {
    let home = home();
    let ran = home.start(call(&home, "i=0; while [ $i -lt 1017 ]; do : > f$i; i=$((i+1)); done"));
    assert_eq!(ran.wait_for_exit().exit_code, 0);
    let records = home.run(&["audit", "show", "--json"]).json_lines();
    let command = records.iter().find_map(|record| record["commands"].get(0)).expect("a command");
    assert_eq!(command["changes"].as_array().map(Vec::len), Some(1000));
    assert_eq!(command["more_changes"], 17);
    let shown = home.run(&["audit", "show"]).stdout;
    assert!(shown.contains("and 997 more changes"), "{shown}");
    assert!(shown.lines().count() < 60, "{shown}");
    let events = home.run(&["audit", "export", "--format", "ocsf"]).json_lines();
    assert_eq!(events.iter().filter(|event| event["class_uid"] == 1001).count(), 1000);
}

#[test]
fn a_dialog_shows_two_hundred_files_that_need_approval() {
    let approver =
        Arc::new(ScriptedApprover::with_answers([ApprovalAnswer::Yes, ApprovalAnswer::Yes]));
    let test_host =
        host_builder(rules_for_level(SandboxLevel::Full)).with_approver(&approver).build();
    let line = "i=0; while [ $i -lt 250 ]; do mkdir d$i; echo x > d$i/AGENTS.md; i=$((i+1)); done";
    let said = run_line(&test_host, line);
    let questions = approver.questions();
    let Effect::Write { changes, .. } = &questions[1].effect else { panic!("{questions:?}") };
    assert_eq!(changes.len(), 200);
    assert!(said.contains("10 more were discarded: "), "{said}");
    assert!(said.contains("at most 200 files that need approval"), "{said}");
    let kept = std::fs::read_dir(test_host.workspace_dir()).expect("it is listed").flatten();
    let kept = kept.filter(|entry| entry.path().join("AGENTS.md").exists()).count();
    assert_eq!(kept, 200);
}

#[test]
fn names_that_are_not_utf_8_are_named_up_to_a_limit() {
    let test_host = super::private_host();
    let line = "i=10; while [ $i -lt 90 ]; do : > \"$(printf \"f$i\\\\377\")\"; i=$((i+1)); done";
    let said = run_line(&test_host, line);
    let named = said.matches("was discarded, because its name is not UTF-8").count();
    assert_eq!(named, 40, "{said}");
    assert!(said.contains("40 more changes of such names were discarded"), "{said}");
    assert_eq!(std::fs::read_dir(test_host.workspace_dir()).expect("it is listed").count(), 0);
}
