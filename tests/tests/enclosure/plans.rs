//! Plans: shown in plan mode, accepted by the user, and by nobody else.

use std::sync::Arc;

use cofferdam::agent::ports::RunOutcome;
use cofferdam::conversation::ResultStatus;
use cofferdam::policy::{ApprovalMode, Capability, Effect, Tier};
use cofferdam::tools::ApprovalAnswer;
use cofferdam_tests::guests::{GuestTool, ScriptedApprover, TestGuest, TestHost, TestHostBuilder};

use crate::assert_contains;

const REQUESTED: [Capability; 1] = [Capability::PresentPlan];
const PLAN: (&str, &str) = ("present", r#"{"plan":"1. Mend it."}"#);

fn plan_guest() -> TestGuest {
    TestGuest::from_file("present").with_requested(&REQUESTED)
}

fn command_guest() -> TestGuest {
    TestGuest::from_file("command")
        .with_replacement("{{directory}}", "")
        .with_replacement("{{timeout}}", "10")
        .with_requested(&[Capability::RunCommands])
}

/// In plan mode, with these answers.
fn plan_mode_host(
    answers: impl IntoIterator<Item = ApprovalAnswer>,
) -> (TestHost, Arc<ScriptedApprover>) {
    let approver = Arc::new(ScriptedApprover::with_answers(answers));
    let test_host = TestHostBuilder::default()
        .with_guest(&plan_guest())
        .with_guest(&command_guest())
        .with_approver(&approver)
        .with_mode(ApprovalMode::Plan)
        .build();
    (test_host, approver)
}

#[test]
fn r126_an_accepted_plan_ends_plan_mode_for_what_comes_after_it() {
    let (test_host, approver) = plan_mode_host([ApprovalAnswer::Yes, ApprovalAnswer::Yes]);
    assert_eq!(test_host.tier("present"), Tier::Write);
    let touch = ("command", r#"{"line":"touch done"}"#);
    let early = ("command", r#"{"line":"touch early"}"#);
    let report = test_host.run_turn(&[early, PLAN, touch]);
    assert_contains(&report.outcomes[0].text, "denied mode");
    assert_eq!(report.outcomes[1].text, "mode ask");
    assert_contains(&report.outcomes[2].text, "ending 0");
    assert!(
        test_host.workspace_dir().join("done").exists()
            && !test_host.workspace_dir().join("early").exists()
    );
    let [plan, command] = &approver.questions()[..] else { panic!("{:?}", approver.questions()) };
    assert_eq!(plan.effect, Effect::Plan { text: "1. Mend it.".into(), then: ApprovalMode::Ask });
    assert_eq!(plan.scope, None);
    assert!(matches!(&command.effect, Effect::Command { line, .. } if line == "touch done"));
}

#[test]
fn r126_the_users_own_words_come_back_whatever_the_tool_says() {
    let (test_host, _) =
        plan_mode_host([ApprovalAnswer::No { guidance: Some("Not before Monday.".into()) }]);
    let report = test_host.run_turn(&[PLAN, ("command", r#"{"line":"touch done"}"#)]);
    assert_eq!(
        (report.outcome, report.outcomes[0].status),
        (RunOutcome::Finished, ResultStatus::Rejected)
    );
    assert_contains(
        &report.outcomes[0].text,
        "The user rejected the plan of this call of present. Plan mode stays on",
    );
    assert_contains(&report.outcomes[0].text, "Not before Monday.");
    assert!(!report.outcomes[0].text.contains("all went well"));
    assert_contains(&report.outcomes[1].text, "denied mode");
}

#[test]
fn r126_a_no_without_words_hands_back() {
    let (test_host, _) = plan_mode_host([ApprovalAnswer::No { guidance: None }]);
    assert_eq!(test_host.run_turn(&[PLAN]).outcome, RunOutcome::Rejected);
}

#[test]
fn r126_a_plan_elsewhere_is_refused_and_nobody_is_asked() {
    for mode in [ApprovalMode::Ask, ApprovalMode::AutoEdit, ApprovalMode::Auto] {
        let approver = Arc::new(ScriptedApprover::with_answers([ApprovalAnswer::Yes]));
        let test_host = TestHostBuilder::default()
            .with_guest(&plan_guest())
            .with_approver(&approver)
            .with_mode(mode)
            .build();
        assert_contains(
            &test_host.call_ok(PLAN.0, PLAN.1),
            "denied mode: plans are only accepted \
            in plan mode",
        );
        assert!(approver.questions().is_empty());
    }
}

#[test]
fn r126_a_plan_that_nobody_can_accept_is_denied_with_an_explanation() {
    let test_host =
        TestHostBuilder::default().with_guest(&plan_guest()).with_mode(ApprovalMode::Plan).build();
    assert_contains(
        &test_host.call_ok(PLAN.0, PLAN.1),
        "denied nobody-to-ask: a plan needs approval",
    );
    test_host.assert_healthy();
}

#[test]
fn r126_a_tool_that_takes_no_for_no_answer_asks_once() {
    let approver = Arc::new(ScriptedApprover::with_answers([
        ApprovalAnswer::No { guidance: Some("No.".into()) },
        ApprovalAnswer::Yes,
    ]));
    let guest = TestGuest::from_file("present-until-yes").with_requested(&REQUESTED);
    let test_host = TestHostBuilder::default()
        .with_guest(&guest)
        .with_approver(&approver)
        .with_mode(ApprovalMode::Plan)
        .build();
    assert_eq!(test_host.call("present_until_yes", "{}").status, ResultStatus::Rejected);
    assert_eq!(approver.questions().len(), 1);
}

#[test]
fn r126_a_plan_has_words_and_an_end() {
    let approver = Arc::new(ScriptedApprover::default());
    let guest = TestGuest::from_file("long-plan").with_requested(&REQUESTED);
    let test_host = TestHostBuilder::default()
        .with_guest(&guest)
        .with_approver(&approver)
        .with_mode(ApprovalMode::Plan)
        .build();
    let text = test_host.call_ok("long_plan", "{}");
    assert_eq!(
        text,
        "refused 1: the plan has 70000 bytes; the limit is 65536\nrefused 1: the plan is empty\n"
    );
    assert!(approver.questions().is_empty());
}

#[test]
fn r014_a_tool_that_was_not_granted_it_shows_nothing() {
    let tools = [GuestTool::new("able").with_requested(&REQUESTED), GuestTool::new("sibling")];
    let approver = Arc::new(ScriptedApprover::with_answers([ApprovalAnswer::Yes]));
    let test_host = TestHostBuilder::default()
        .with_guest(&plan_guest().with_tools(tools))
        .with_approver(&approver)
        .with_mode(ApprovalMode::Plan)
        .build();
    assert_contains(
        &test_host.call_ok("sibling", PLAN.1),
        "denied not-granted: this tool has no permission to present plans.",
    );
    assert!(approver.questions().is_empty());
}
