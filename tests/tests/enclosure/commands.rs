//! What is approved is what runs; refusals, limits, directories.

use std::os::unix::fs::symlink;
use std::sync::Arc;
use std::time::Duration;

use cofferdam::agent::ports::Ran;
use cofferdam::conversation::ResultStatus;
use cofferdam::policy::{Capability, Effect, Mode};
use cofferdam::tools::Answer;
use cofferdam_tests::guests::{Guest, House, Plan, Scripted};

use crate::assert_says;

fn command(directory: &str, timeout: &str) -> Guest {
    Guest::named("command").with("{{directory}}", directory).with("{{timeout}}", timeout).asking(&[Capability::RunCommands])
}

fn two_commands() -> Guest {
    Guest::named("two-commands").asking(&[Capability::RunCommands])
}

fn lines(approver: &Scripted) -> Vec<String> {
    let line = |effect| match effect {
        Effect::Command { line, .. } => line,
        Effect::Write { .. } | Effect::Fetch { .. } | Effect::Confirmed | Effect::Plan { .. } => "something else".into(),
    };
    approver.asked().into_iter().map(|question| line(question.effect)).collect()
}

fn no(guidance: Option<&str>) -> Answer {
    Answer::No { guidance: guidance.map(str::to_owned) }
}

#[test]
fn r042_what_runs_is_what_was_shown() {
    let approver = Arc::new(Scripted::with([Answer::Yes, Answer::Yes]));
    let house = Plan::default().guest(&two_commands()).asking(&approver).build();
    // The arguments talk of something else altogether.
    house.answers("two_commands", r#"{"command":"git status"}"#);
    assert_eq!(lines(&approver), ["echo one > one", "echo two > two"]);
    assert!(approver.asked().iter().all(|question| question.scope.is_none()), "an opaque line is not remembered");
    assert_eq!(std::fs::read_to_string(house.folder().join("one")).expect("it ran"), "one\n");
    assert_eq!(std::fs::read_to_string(house.folder().join("two")).expect("it ran"), "two\n");
}

#[test]
fn r044_a_rejection_with_guidance_is_the_calls_own_result_whatever_the_tool_says() {
    let approver = Arc::new(Scripted::with([Answer::Yes, no(Some("not the second one"))]));
    let house = Plan::default().guest(&two_commands()).asking(&approver).build();
    let report = house.turn(&[("two_commands", "{}"), ("good", r#"{"text":"x"}"#)]);
    assert_eq!(report.ran, Ran::Finished);
    let rejected = &report.answers[0];
    assert_eq!(rejected.status, ResultStatus::Rejected);
    assert_says(&rejected.text, "do not assume that it succeeded");
    assert_says(&rejected.text, "- ran `echo one > one`");
    assert_says(&rejected.text, "not the second one");
    assert!(!rejected.text.contains("all went well"));
    assert!(house.folder().join("one").exists() && !house.folder().join("two").exists());
    assert_eq!(report.answers[1].status, ResultStatus::Ok);
    house.assert_is_fine();
}

#[test]
fn r045_a_rejection_without_guidance_hands_back() {
    let approver = Arc::new(Scripted::with([no(None)]));
    let house = Plan::default().guest(&two_commands()).asking(&approver).build();
    let report = house.turn(&[("two_commands", "{}"), ("two_commands", "{}")]);
    assert_eq!(report.ran, Ran::HandedBack);
    assert_says(&report.answers[0].text, "cancelled by the user");
    assert_eq!(report.answers[1].status, ResultStatus::NotRun);
    assert!(!house.folder().join("one").exists());
    house.assert_is_fine();
}

#[test]
fn r045_nothing_more_of_a_rejected_call_runs() {
    // The first line is refused, and the guest goes on to its second.
    let approver = Arc::new(Scripted::with([no(None), Answer::Yes]));
    let house = Plan::default().guest(&two_commands()).asking(&approver).build();
    let report = house.turn(&[("two_commands", "{}")]);
    assert_eq!(report.ran, Ran::HandedBack);
    assert_eq!(lines(&approver), ["echo one > one"], "a call that was rejected asks no more");
    assert!(!house.folder().join("two").exists());
}

#[test]
fn r048_three_rejections_in_a_row_hand_back() {
    let words = Some("try something else");
    let approver = Arc::new(Scripted::with([no(words), no(words), no(words)]));
    let house = Plan::default().guest(&command("", "10")).asking(&approver).build();
    let call = ("command", r#"{"line":"ls"}"#);
    assert_eq!(house.turn(&[call]).ran, Ran::Finished);
    assert_eq!(house.turn(&[call]).ran, Ran::Finished);
    assert_eq!(house.turn(&[call]).ran, Ran::HandedBack);
}

#[test]
fn r041_nobody_to_ask_is_a_denial_and_plan_mode_too() {
    for (mode, says) in [(Mode::Ask, "denied nobody-to-ask"), (Mode::AutoEdit, "denied nobody-to-ask"), (Mode::Plan, "denied mode")] {
        let house = Plan::default().guest(&command("", "10")).mode(mode).build();
        assert_says(&house.answers("command", r#"{"line":"touch x"}"#), says);
        assert!(!house.folder().join("x").exists());
    }
}

#[test]
fn r120_the_timeout_has_a_range_and_holds() {
    for timeout in ["0", "601", "0xffffffff"] {
        let house = House::with(&command("", timeout));
        assert_says(&house.answers("command", r#"{"line":"touch x"}"#), "refused: the timeout is 1 to 600 seconds");
        assert!(!house.folder().join("x").exists());
    }
    // 2 is `timed-out`. Time in a command is not time of the call.
    let house = Plan::default().guest(&command("", "1")).millis(500).build();
    assert_says(&house.answers("command", r#"{"line":"sleep 60"}"#), "ending 2");
    house.assert_is_fine();
}

#[test]
fn r120_long_lines_and_nul_bytes_are_refused() {
    let house = House::with(&Guest::named("long-command").asking(&[Capability::RunCommands]));
    let text = house.answers("long_command", "{}");
    let refused = "refused: a command line has at most 128 KiB and no NUL byte\n";
    assert_eq!(text, format!("{refused}{refused}"));
    house.assert_is_fine();
}

#[test]
fn r123_a_command_starts_inside() {
    for directory in ["..", "/etc", "../..", "sub/../.."] {
        let house = House::with(&command(directory, "10"));
        assert_says(&house.answers("command", r#"{"line":"pwd"}"#), "denied outside-workspace");
    }
    for directory in ["out", "none", "file"] {
        let house = House::with(&command(directory, "10"));
        symlink("/etc", house.folder().join("out")).expect("a link");
        house.write("file", "");
        let text = house.answers("command", r#"{"line":"pwd"}"#);
        assert!(text.starts_with("refused: ") && !text.contains("ending"), "{directory}: {text}");
        house.assert_is_fine();
    }
}

#[test]
fn r114_a_command_has_no_keys_of_the_users() {
    let house = House::with(&command("", "10"));
    let text = house.answers("command", r#"{"line":"env"}"#);
    // Cargo sets many for a test.
    assert!(std::env::var_os("CARGO_MANIFEST_DIR").is_some());
    assert!(!text.contains("CARGO_MANIFEST_DIR"), "{text}");
}

#[test]
fn r101_a_command_ends_when_it_is_cancelled() {
    let house = House::with(&command("", "100"));
    let report = house.turn_cancelled(&[("command", r#"{"line":"sleep 60; touch late"}"#)], Some(Duration::from_millis(300)));
    assert_eq!(report.ran, Ran::Aborted);
    assert!(report.after_cancel.expect("it was cancelled") < Duration::from_secs(1));
    assert_eq!(report.answers[0].status, ResultStatus::Interrupted);
    house.assert_is_fine();
}
