//! What is approved is what runs; refusals, limits, directories.

use std::os::unix::fs::symlink;
use std::sync::Arc;
use std::time::Duration;

use cofferdam::agent::ports::RunOutcome;
use cofferdam::conversation::ResultStatus;
use cofferdam::policy::{ApprovalMode, Capability, Effect};
use cofferdam::tools::ApprovalAnswer;
use cofferdam_tests::guests::{ScriptedApprover, TestGuest, TestHost, TestHostBuilder};

use crate::assert_contains;

fn command_guest(directory: &str, timeout: &str) -> TestGuest {
    TestGuest::from_file("command")
        .with_replacement("{{directory}}", directory)
        .with_replacement("{{timeout}}", timeout)
        .with_requested(&[Capability::RunCommands])
}

fn two_command_guest() -> TestGuest {
    TestGuest::from_file("two-commands").with_requested(&[Capability::RunCommands])
}

fn approved_lines(approver: &ScriptedApprover) -> Vec<String> {
    let line = |effect| match effect {
        Effect::Command { line, .. } => line,
        Effect::Input { .. }
        | Effect::Write { .. }
        | Effect::Fetch { .. }
        | Effect::Connect { .. }
        | Effect::Confirmed
        | Effect::Plan { .. } => "something else".into(),
    };
    approver.questions().into_iter().map(|question| line(question.effect)).collect()
}

fn rejection(guidance: Option<&str>) -> ApprovalAnswer {
    ApprovalAnswer::No { guidance: guidance.map(str::to_owned) }
}

#[test]
fn r042_what_runs_is_what_was_shown() {
    let approver =
        Arc::new(ScriptedApprover::with_answers([ApprovalAnswer::Yes, ApprovalAnswer::Yes]));
    let test_host = TestHostBuilder::default()
        .with_guest(&two_command_guest())
        .with_approver(&approver)
        .build();
    // The arguments talk of something else altogether.
    test_host.call_ok("two_commands", r#"{"command":"git status"}"#);
    assert_eq!(approved_lines(&approver), ["echo one > one", "echo two > two"]);
    assert!(
        approver.questions().iter().all(|question| question.scope.is_none()),
        "an opaque line is not remembered"
    );
    assert_eq!(
        std::fs::read_to_string(test_host.workspace_dir().join("one")).expect("it ran"),
        "one\n"
    );
    assert_eq!(
        std::fs::read_to_string(test_host.workspace_dir().join("two")).expect("it ran"),
        "two\n"
    );
}

#[test]
fn r044_a_rejection_with_guidance_is_the_calls_own_result_whatever_the_tool_says() {
    let approver = Arc::new(ScriptedApprover::with_answers([
        ApprovalAnswer::Yes,
        rejection(Some("not the second one")),
    ]));
    let test_host = TestHostBuilder::default()
        .with_guest(&two_command_guest())
        .with_approver(&approver)
        .build();
    let report = test_host.run_turn(&[("two_commands", "{}"), ("good", r#"{"text":"x"}"#)]);
    assert_eq!(report.outcome, RunOutcome::Finished);
    let rejected = &report.outcomes[0];
    assert_eq!(rejected.status, ResultStatus::Rejected);
    assert_contains(&rejected.text, "do not assume that it succeeded");
    assert_contains(&rejected.text, "- ran `echo one > one`");
    assert_contains(&rejected.text, "not the second one");
    assert!(!rejected.text.contains("all went well"));
    assert!(
        test_host.workspace_dir().join("one").exists()
            && !test_host.workspace_dir().join("two").exists()
    );
    assert_eq!(report.outcomes[1].status, ResultStatus::Ok);
    test_host.assert_healthy();
}

#[test]
fn r045_a_rejection_without_guidance_hands_back() {
    let approver = Arc::new(ScriptedApprover::with_answers([rejection(None)]));
    let test_host = TestHostBuilder::default()
        .with_guest(&two_command_guest())
        .with_approver(&approver)
        .build();
    let report = test_host.run_turn(&[("two_commands", "{}"), ("two_commands", "{}")]);
    assert_eq!(report.outcome, RunOutcome::Rejected);
    assert_contains(&report.outcomes[0].text, "The user rejected this call of two_commands.");
    assert_eq!(report.outcomes[1].status, ResultStatus::NotRun);
    assert!(!test_host.workspace_dir().join("one").exists());
    test_host.assert_healthy();
}

#[test]
fn r045_nothing_more_of_a_rejected_call_runs() {
    // The first line is refused, and the guest goes on to its second.
    let approver = Arc::new(ScriptedApprover::with_answers([rejection(None), ApprovalAnswer::Yes]));
    let test_host = TestHostBuilder::default()
        .with_guest(&two_command_guest())
        .with_approver(&approver)
        .build();
    let report = test_host.run_turn(&[("two_commands", "{}")]);
    assert_eq!(report.outcome, RunOutcome::Rejected);
    assert_eq!(
        approved_lines(&approver),
        ["echo one > one"],
        "a call that was rejected asks no more"
    );
    assert!(!test_host.workspace_dir().join("two").exists());
}

#[test]
fn r048_three_rejections_in_a_row_hand_back() {
    let words = Some("try something else");
    let approver = Arc::new(ScriptedApprover::with_answers([
        rejection(words),
        rejection(words),
        rejection(words),
    ]));
    let test_host = TestHostBuilder::default()
        .with_guest(&command_guest("", "10"))
        .with_approver(&approver)
        .build();
    let call = ("command", r#"{"line":"ls"}"#);
    assert_eq!(test_host.run_turn(&[call]).outcome, RunOutcome::Finished);
    assert_eq!(test_host.run_turn(&[call]).outcome, RunOutcome::Finished);
    assert_eq!(test_host.run_turn(&[call]).outcome, RunOutcome::Rejected);
}

#[test]
fn r041_nobody_to_ask_is_a_denial_and_plan_mode_too() {
    for (mode, says) in [
        (ApprovalMode::Ask, "denied nobody-to-ask"),
        (ApprovalMode::AutoEdit, "denied nobody-to-ask"),
        (ApprovalMode::Plan, "denied mode"),
    ] {
        let test_host =
            TestHostBuilder::default().with_guest(&command_guest("", "10")).with_mode(mode).build();
        assert_contains(&test_host.call_ok("command", r#"{"line":"touch x"}"#), says);
        assert!(!test_host.workspace_dir().join("x").exists());
    }
}

#[test]
fn r120_the_timeout_has_a_range_and_holds() {
    for timeout in ["0", "601", "0xffffffff"] {
        let test_host = TestHost::with_guest(&command_guest("", timeout));
        assert_contains(
            &test_host.call_ok("command", r#"{"line":"touch x"}"#),
            " is not valid: use 1 to 600 seconds",
        );
        assert!(!test_host.workspace_dir().join("x").exists());
    }
    // 2 is `timed-out`. Time in a command is not time of the call.
    let test_host = TestHostBuilder::default()
        .with_guest(&command_guest("", "1"))
        .with_timeout_millis(500)
        .build();
    assert_contains(&test_host.call_ok("command", r#"{"line":"sleep 60"}"#), "ending 2");
    test_host.assert_healthy();
}

#[test]
fn r120_long_lines_and_nul_bytes_are_refused() {
    let test_host = TestHost::with_guest(
        &TestGuest::from_file("long-command").with_requested(&[Capability::RunCommands]),
    );
    let text = test_host.call_ok("long_command", "{}");
    let refused = "refused: a command line must be at most 128 KiB and contain no NUL byte\n";
    assert_eq!(text, format!("{refused}{refused}"));
    test_host.assert_healthy();
}

#[test]
fn r123_a_command_starts_inside() {
    for directory in ["..", "/etc", "../..", "sub/../.."] {
        let test_host = TestHost::with_guest(&command_guest(directory, "10"));
        assert_contains(
            &test_host.call_ok("command", r#"{"line":"pwd"}"#),
            "denied outside-workspace",
        );
    }
    for directory in ["out", "none", "file"] {
        let test_host = TestHost::with_guest(&command_guest(directory, "10"));
        symlink("/etc", test_host.workspace_dir().join("out")).expect("a link");
        test_host.write_file("file", "");
        let text = test_host.call_ok("command", r#"{"line":"pwd"}"#);
        assert!(text.starts_with("refused: ") && !text.contains("ending"), "{directory}: {text}");
        test_host.assert_healthy();
    }
}

#[test]
fn r114_a_command_has_no_keys_of_the_users() {
    let test_host = TestHost::with_guest(&command_guest("", "10"));
    let text = test_host.call_ok("command", r#"{"line":"env"}"#);
    // Cargo sets many for a test.
    assert!(std::env::var_os("CARGO_MANIFEST_DIR").is_some());
    assert!(!text.contains("CARGO_MANIFEST_DIR"), "{text}");
}

#[test]
fn r101_a_command_ends_when_it_is_cancelled() {
    let test_host = TestHost::with_guest(&command_guest("", "100"));
    let report = test_host.run_turn_cancelled(
        &[("command", r#"{"line":"sleep 60; touch late"}"#)],
        Some(Duration::from_millis(300)),
    );
    assert_eq!(report.outcome, RunOutcome::Aborted);
    assert!(report.after_cancel.expect("it was cancelled") < Duration::from_secs(1));
    assert_eq!(report.outcomes[0].status, ResultStatus::Interrupted);
    test_host.assert_healthy();
}
