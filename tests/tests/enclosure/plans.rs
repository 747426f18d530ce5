//! Plans: shown in plan mode, accepted by the user, and by nobody else.

use std::sync::Arc;

use cofferdam::agent::events::Tier;
use cofferdam::agent::ports::Ran;
use cofferdam::conversation::ResultStatus;
use cofferdam::policy::{Capability, Effect, Mode};
use cofferdam::tools::Answer;
use cofferdam_tests::guests::{Guest, House, Plan, Scripted, Tool};

use crate::assert_says;

const PLANNING: [Capability; 1] = [Capability::PresentPlan];
const PLAN: (&str, &str) = ("present", r#"{"plan":"1. Mend it."}"#);

fn present() -> Guest {
    Guest::named("present").asking(&PLANNING)
}

fn command() -> Guest {
    Guest::named("command").with("{{directory}}", "").with("{{timeout}}", "10").asking(&[Capability::RunCommands])
}

/// In plan mode, with these answers.
fn house(answers: impl IntoIterator<Item = Answer>) -> (House, Arc<Scripted>) {
    let approver = Arc::new(Scripted::with(answers));
    let house = Plan::default().guest(&present()).guest(&command()).asking(&approver).mode(Mode::Plan).build();
    (house, approver)
}

#[test]
fn r126_an_accepted_plan_ends_plan_mode_for_what_comes_after_it() {
    let (house, approver) = house([Answer::Yes, Answer::Yes]);
    assert_eq!(house.tier("present"), Tier::Write);
    let touch = ("command", r#"{"line":"touch done"}"#);
    let early = ("command", r#"{"line":"touch early"}"#);
    let report = house.turn(&[early, PLAN, touch]);
    assert_says(&report.answers[0].text, "denied mode");
    assert_eq!(report.answers[1].text, "mode ask");
    assert_says(&report.answers[2].text, "ending 0");
    assert!(house.folder().join("done").exists() && !house.folder().join("early").exists());
    let [plan, command] = &approver.asked()[..] else { panic!("{:?}", approver.asked()) };
    assert_eq!(plan.effect, Effect::Plan { text: "1. Mend it.".into(), then: Mode::Ask });
    assert_eq!(plan.scope, None);
    assert!(matches!(&command.effect, Effect::Command { line, .. } if line == "touch done"));
}

#[test]
fn r126_the_users_own_words_come_back_whatever_the_tool_says() {
    let (house, _) = house([Answer::No { guidance: Some("Not before Monday.".into()) }]);
    let report = house.turn(&[PLAN, ("command", r#"{"line":"touch done"}"#)]);
    assert_eq!((report.ran, report.answers[0].status), (Ran::Finished, ResultStatus::Rejected));
    assert_says(&report.answers[0].text, "The user did not accept the plan of this call of present. Plan mode goes on");
    assert_says(&report.answers[0].text, "Not before Monday.");
    assert!(!report.answers[0].text.contains("all went well"));
    assert_says(&report.answers[1].text, "denied mode");
}

#[test]
fn r126_a_no_without_words_hands_back() {
    let (house, _) = house([Answer::No { guidance: None }]);
    assert_eq!(house.turn(&[PLAN]).ran, Ran::HandedBack);
}

#[test]
fn r126_a_plan_elsewhere_is_refused_and_nobody_is_asked() {
    for mode in [Mode::Ask, Mode::AutoEdit, Mode::Auto] {
        let approver = Arc::new(Scripted::with([Answer::Yes]));
        let house = Plan::default().guest(&present()).asking(&approver).mode(mode).build();
        assert_says(&house.answers(PLAN.0, PLAN.1), "denied mode: the session is in mode");
        assert!(approver.asked().is_empty());
    }
}

#[test]
fn r126_a_plan_that_nobody_can_accept_is_denied_with_an_explanation() {
    let house = Plan::default().guest(&present()).mode(Mode::Plan).build();
    assert_says(&house.answers(PLAN.0, PLAN.1), "denied nobody-to-ask: a plan is accepted by the user");
    house.assert_is_fine();
}

#[test]
fn r126_a_tool_that_takes_no_for_no_answer_asks_once() {
    let approver = Arc::new(Scripted::with([Answer::No { guidance: Some("No.".into()) }, Answer::Yes]));
    let guest = Guest::named("present-until-yes").asking(&PLANNING);
    let house = Plan::default().guest(&guest).asking(&approver).mode(Mode::Plan).build();
    assert_eq!(house.call("present_until_yes", "{}").status, ResultStatus::Rejected);
    assert_eq!(approver.asked().len(), 1);
}

#[test]
fn r126_a_plan_has_words_and_an_end() {
    let approver = Arc::new(Scripted::default());
    let guest = Guest::named("long-plan").asking(&PLANNING);
    let house = Plan::default().guest(&guest).asking(&approver).mode(Mode::Plan).build();
    let text = house.answers("long_plan", "{}");
    assert_eq!(text, "refused 1: the plan has 70000 bytes; at most 65536 are shown\nrefused 1: the plan is empty\n");
    assert!(approver.asked().is_empty());
}

#[test]
fn r014_a_tool_that_was_not_granted_it_shows_nothing() {
    let tools = [Tool::named("able").asking(&PLANNING), Tool::named("sibling")];
    let approver = Arc::new(Scripted::with([Answer::Yes]));
    let house = Plan::default().guest(&present().tools(tools)).asking(&approver).mode(Mode::Plan).build();
    assert_says(&house.answers("sibling", PLAN.1), "denied not-granted: this tool may not present plans.");
    assert!(approver.asked().is_empty());
}
