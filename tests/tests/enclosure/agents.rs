//! Tasks that are handed over: who gets them, how many, and what comes back.

use std::sync::Arc;
use std::time::Duration;

use cofferdam::agent::Outcome;
use cofferdam::agent::events::Tier;
use cofferdam::agent::ports::Ran;
use cofferdam::conversation::ResultStatus;
use cofferdam::policy::Capability;
use cofferdam::tools::SubAgents;
use cofferdam_tests::guests::{Guest, House, Plan, Tool, Worker};

use crate::assert_says;

const DELEGATING: [Capability; 1] = [Capability::Delegate];

fn delegate(times: u32) -> Guest {
    Guest::named("delegate").with("{{times}}", &times.to_string()).asking(&DELEGATING)
}

fn house(worker: &Arc<Worker>, times: u32) -> House {
    Plan::default().guest(&delegate(times)).sub_agents(SubAgents::By(worker.clone())).build()
}

#[test]
fn r124_a_task_comes_back_answered_or_with_a_structured_failure() {
    let table = [
        (Outcome::Answered { text: "Here.".into() }, "complete 1 turns 3: Here.\n"),
        (Outcome::Limit { text: "So far.".into(), turns: 20 }, "complete 0 turns 3: So far.\n"),
        (Outcome::Limit { text: " ".into(), turns: 20 }, "failed limit: it took all of its 20 turns and gave no answer\n"),
        (Outcome::ProviderError { message: "HTTP 401".into() }, "failed provider-error: HTTP 401\n"),
        (Outcome::Empty, "failed empty: the model gave no answer, twice in a row\n"),
    ];
    for (outcome, says) in table {
        let worker = Arc::new(Worker::with([outcome]));
        let house = house(&worker, 1);
        assert_eq!(house.tier("delegate"), Tier::Research);
        assert_eq!(house.answers("delegate", r#"{"task":"Look."}"#), says);
        assert_eq!(worker.tasks(), ["Look."]);
        house.assert_is_fine();
    }
}

#[test]
fn r124_a_call_hands_over_a_few_tasks_and_no_more() {
    let worker = Arc::new(Worker::default());
    let house = house(&worker, 6);
    let text = house.answers("delegate", r#"{"task":"Look."}"#);
    assert_eq!(text.matches("complete 1").count(), 4, "{text}");
    assert_eq!(text.matches("denied too-many: this call has handed over 4 tasks").count(), 2, "{text}");
    assert_eq!(worker.tasks().len(), 4);
    // The next call begins anew.
    assert_says(&house.answers("delegate", r#"{"task":"Look."}"#), "complete 1");
}

#[test]
fn r124_a_task_has_words_and_an_end() {
    let worker = Arc::new(Worker::default());
    let long = Guest::named("long-task").with("{{bytes}}", "70000").asking(&DELEGATING);
    let house = Plan::default().guest(&long).guest(&delegate(1)).sub_agents(SubAgents::By(worker.clone())).build();
    assert_says(&house.answers("long_task", "{}"), "refused 1: the task has 70000 bytes; at most 65536 are taken");
    assert_says(&house.answers("delegate", r#"{"task":" "}"#), "refused 1: the task is empty");
    assert_eq!(worker.tasks().len(), 0);
}

#[test]
fn r124_where_there_is_no_sub_agent_that_is_said() {
    for (nobody, says) in [
        (SubAgents::NoModel, "denied no-sub-agent: there is no model here"),
        (SubAgents::TooDeep, "denied no-sub-agent: this is a sub-agent, and a sub-agent has none of its own."),
    ] {
        let house = Plan::default().guest(&delegate(1)).sub_agents(nobody).build();
        assert_says(&house.answers("delegate", r#"{"task":"Look."}"#), says);
        house.assert_is_fine();
    }
}

#[test]
fn r014_a_tool_that_was_not_granted_it_hands_nothing_over() {
    let worker = Arc::new(Worker::default());
    let tools = [Tool::named("able").asking(&DELEGATING), Tool::named("sibling")];
    let house = Plan::default().guest(&delegate(1).tools(tools)).sub_agents(SubAgents::By(worker.clone())).build();
    assert_says(&house.answers("sibling", r#"{"task":"Look."}"#), "denied not-granted: this tool may not hand tasks to sub-agents.");
    assert_eq!(worker.tasks().len(), 0);
    house.assert_is_fine();
}

#[test]
fn r014_nothing_is_lent_to_list_tools() {
    let all = [Capability::Delegate, Capability::PresentPlan, Capability::KeepState];
    let worker = Arc::new(Worker::default());
    let guest = Guest::named("lent-in-list-tools").asking(&all);
    let house = Plan::default().guest(&guest).sub_agents(SubAgents::By(worker.clone())).build();
    assert!(house.refusals().is_empty(), "{:?}", house.refusals());
    assert_eq!(worker.tasks().len(), 0);
}

#[test]
fn r124_a_sub_agent_has_the_tools_that_can_only_read() {
    let tools = [
        Tool::named("reader").asking(&[Capability::ReadFiles]),
        Tool::named("writer").asking(&[Capability::WriteFiles]),
        Tool::named("runner").asking(&[Capability::RunCommands]),
        Tool::named("planner").asking(&[Capability::PresentPlan]),
        Tool::named("delegator").asking(&[Capability::Delegate, Capability::ReadFiles]),
        Tool::named("strict").exclusive(),
    ];
    let house = House::with(&Guest::named("good").tools(tools));
    let reading = house.catalog().reading();
    let names: Vec<&str> = reading.definitions().iter().map(|definition| definition.name.as_str()).collect();
    assert_eq!(names, ["reader", "good"]);
    assert!(reading.tools().iter().all(|tool| !tool.grants.can_change_anything() && !tool.grants.agents));
}

#[test]
fn r101_a_sub_agent_ends_when_the_request_is_cancelled() {
    let worker = Arc::new(Worker::that_waits_to_be_cancelled());
    let house = house(&worker, 1);
    let call = ("delegate", r#"{"task":"Wait."}"#);
    let report = house.turn_cancelled(&[call, call], Some(Duration::from_millis(300)));
    assert_eq!(report.ran, Ran::Aborted);
    assert!(report.answers.iter().all(|answer| answer.status == ResultStatus::Interrupted), "{report:?}");
    // Both were under way at the same time, and both came to an end before the turn did.
    assert_eq!((worker.tasks().len(), worker.ended()), (2, 2));
    house.assert_is_fine();
}

#[test]
fn r098_the_time_of_a_sub_agent_is_not_the_calls() {
    let worker = Arc::new(Worker::that_takes(Duration::from_millis(900)));
    let house = Plan::default().guest(&delegate(1)).sub_agents(SubAgents::By(worker)).millis(400).build();
    assert_says(&house.answers("delegate", r#"{"task":"Take long."}"#), "complete 1");
}
