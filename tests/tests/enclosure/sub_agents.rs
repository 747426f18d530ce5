//! Tasks that are handed over: who gets them, how many, and what comes back.

use std::sync::Arc;
use std::time::Duration;

use cofferdam::agent::RequestOutcome;
use cofferdam::agent::ports::RunOutcome;
use cofferdam::conversation::ResultStatus;
use cofferdam::policy::{Capability, Tier};
use cofferdam::tools::SubAgentRunner;
use cofferdam_tests::guests::{GuestTool, ScriptedDelegate, TestGuest, TestHost, TestHostBuilder};

use crate::assert_contains;

const REQUESTED: [Capability; 1] = [Capability::Delegate];

fn delegating_guest(times: u32) -> TestGuest {
    TestGuest::from_file("delegate")
        .with_replacement("{{times}}", &times.to_string())
        .with_requested(&REQUESTED)
}

fn new_host(worker: &Arc<ScriptedDelegate>, times: u32) -> TestHost {
    TestHostBuilder::default()
        .with_guest(&delegating_guest(times))
        .with_sub_agents(SubAgentRunner::Available(worker.clone()))
        .build()
}

#[test]
fn r124_a_task_comes_back_answered_or_with_a_structured_failure() {
    let table = [
        (RequestOutcome::Answered { text: "Here.".into() }, "complete 1 turns 3: Here.\n"),
        (
            RequestOutcome::Limit { text: "So far.".into(), turns: 20 },
            "complete 0 turns 3: So far.\n",
        ),
        (
            RequestOutcome::Limit { text: " ".into(), turns: 20 },
            "failed empty: the sub-agent used all of its 20 turns and gave no answer\n",
        ),
        (
            RequestOutcome::ProviderError { message: "HTTP 401".into() },
            "failed provider-error: HTTP 401\n",
        ),
        (RequestOutcome::Empty, "failed empty: the model gave two empty answers in a row\n"),
    ];
    for (outcome, says) in table {
        let worker = Arc::new(ScriptedDelegate::with_outcomes([outcome]));
        let test_host = new_host(&worker, 1);
        assert_eq!(test_host.tier("delegate"), Tier::Research);
        assert_eq!(test_host.call_ok("delegate", r#"{"task":"Look."}"#), says);
        assert_eq!(worker.tasks(), ["Look."]);
        test_host.assert_healthy();
    }
}

#[test]
fn r124_a_call_hands_over_a_few_tasks_and_no_more() {
    let worker = Arc::new(ScriptedDelegate::default());
    let test_host = new_host(&worker, 6);
    let text = test_host.call_ok("delegate", r#"{"task":"Look."}"#);
    assert_eq!(text.matches("complete 1").count(), 4, "{text}");
    assert_eq!(
        text.matches("denied too-many: one call can delegate at most 4 tasks").count(),
        2,
        "{text}"
    );
    assert_eq!(worker.tasks().len(), 4);
    // The next call begins anew.
    assert_contains(&test_host.call_ok("delegate", r#"{"task":"Look."}"#), "complete 1");
}

#[test]
fn r124_a_task_has_words_and_an_end() {
    let worker = Arc::new(ScriptedDelegate::default());
    let long = TestGuest::from_file("long-task")
        .with_replacement("{{bytes}}", "70000")
        .with_requested(&REQUESTED);
    let test_host = TestHostBuilder::default()
        .with_guest(&long)
        .with_guest(&delegating_guest(1))
        .with_sub_agents(SubAgentRunner::Available(worker.clone()))
        .build();
    assert_contains(
        &test_host.call_ok("long_task", "{}"),
        "refused 1: the task has 70000 bytes; the limit is 65536",
    );
    assert_contains(
        &test_host.call_ok("delegate", r#"{"task":" "}"#),
        "refused 1: the task is empty",
    );
    assert_eq!(worker.tasks().len(), 0);
}

#[test]
fn r124_where_there_is_no_sub_agent_that_is_said() {
    for (nobody, says) in [
        (SubAgentRunner::NoModel, "denied no-sub-agent: no model is available for a sub-agent."),
        (
            SubAgentRunner::NotNested,
            "denied no-sub-agent: a sub-agent cannot start another sub-agent.",
        ),
    ] {
        let test_host = TestHostBuilder::default()
            .with_guest(&delegating_guest(1))
            .with_sub_agents(nobody)
            .build();
        assert_contains(&test_host.call_ok("delegate", r#"{"task":"Look."}"#), says);
        test_host.assert_healthy();
    }
}

#[test]
fn r014_a_tool_that_was_not_granted_it_hands_nothing_over() {
    let worker = Arc::new(ScriptedDelegate::default());
    let tools = [GuestTool::new("able").with_requested(&REQUESTED), GuestTool::new("sibling")];
    let test_host = TestHostBuilder::default()
        .with_guest(&delegating_guest(1).with_tools(tools))
        .with_sub_agents(SubAgentRunner::Available(worker.clone()))
        .build();
    assert_contains(
        &test_host.call_ok("sibling", r#"{"task":"Look."}"#),
        "denied not-granted: this tool has no permission to delegate tasks to sub-agents.",
    );
    assert_eq!(worker.tasks().len(), 0);
    test_host.assert_healthy();
}

#[test]
fn r014_nothing_is_lent_to_list_tools() {
    let all = [Capability::Delegate, Capability::PresentPlan, Capability::KeepState];
    let worker = Arc::new(ScriptedDelegate::default());
    let guest = TestGuest::from_file("lent-in-list-tools").with_requested(&all);
    let test_host = TestHostBuilder::default()
        .with_guest(&guest)
        .with_sub_agents(SubAgentRunner::Available(worker.clone()))
        .build();
    assert!(test_host.refusal_reasons().is_empty(), "{:?}", test_host.refusal_reasons());
    assert_eq!(worker.tasks().len(), 0);
}

#[test]
fn r124_a_sub_agent_has_the_tools_that_can_only_read() {
    let tools = [
        GuestTool::new("reader").with_requested(&[Capability::ReadFiles]),
        GuestTool::new("writer").with_requested(&[Capability::WriteFiles]),
        GuestTool::new("runner").with_requested(&[Capability::RunCommands]),
        GuestTool::new("planner").with_requested(&[Capability::PresentPlan]),
        GuestTool::new("delegator").with_requested(&[Capability::Delegate, Capability::ReadFiles]),
        GuestTool::new("strict").with_exclusive(),
    ];
    let test_host = TestHost::with_guest(&TestGuest::from_file("good").with_tools(tools));
    let reading = test_host.catalog().read_only();
    let names: Vec<&str> =
        reading.definitions().iter().map(|definition| definition.name.as_str()).collect();
    assert_eq!(names, ["reader", "good"]);
    assert!(
        reading.tools().iter().all(|tool| !tool.grants.has_side_effects() && !tool.grants.agents)
    );
}

#[test]
fn r101_a_sub_agent_ends_when_the_request_is_cancelled() {
    let worker = Arc::new(ScriptedDelegate::until_cancelled());
    let test_host = new_host(&worker, 1);
    let call = ("delegate", r#"{"task":"Wait."}"#);
    let report = test_host.run_turn_cancelled(&[call, call], Some(Duration::from_millis(300)));
    assert_eq!(report.outcome, RunOutcome::Aborted);
    assert!(
        report.outcomes.iter().all(|answer| answer.status == ResultStatus::Interrupted),
        "{report:?}"
    );
    // Both were under way at the same time, and both came to an end before the turn did.
    assert_eq!((worker.tasks().len(), worker.finished_count()), (2, 2));
    test_host.assert_healthy();
}

#[test]
fn r098_the_time_of_a_sub_agent_is_not_the_calls() {
    let worker = Arc::new(ScriptedDelegate::with_delay(Duration::from_millis(900)));
    let test_host = TestHostBuilder::default()
        .with_guest(&delegating_guest(1))
        .with_sub_agents(SubAgentRunner::Available(worker))
        .with_timeout_millis(400)
        .build();
    assert_contains(&test_host.call_ok("delegate", r#"{"task":"Take long."}"#), "complete 1");
}
