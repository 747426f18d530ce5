//! Parallel reads, single writes, cancelling, guests that hold on to every core.

use std::sync::Arc;
use std::time::Duration;

use cofferdam::agent::ReorderPolicy;
use cofferdam::agent::ports::RunOutcome;
use cofferdam::conversation::ResultStatus;
use cofferdam::policy::{Capability, Tier};
use cofferdam::sandbox::{CompilerKind, InstanceAllocation, SandboxOptions, WasmSandbox};
use cofferdam_tests::guests::{GuestTool, TestGuest, TestHostBuilder, TurnReport};

use crate::{ALLOCATIONS, assert_contains};

/// Tools that sleep and answer: one that may read, one that may write.
fn busy_guest() -> TestGuest {
    let read = GuestTool::new("read").with_requested(&[Capability::ReadFiles]);
    let write = GuestTool::new("write").with_requested(&[Capability::WriteFiles]);
    TestGuest::from_file("busy").with_tools([read, write, GuestTool::new("blind")])
}

/// The most calls that were running at the same time.
fn max_concurrent_calls(report: &TurnReport) -> usize {
    let mut running = 0_usize;
    let mut most = 0;
    for line in &report.events {
        match line.split(' ').next() {
            Some("start") => running += 1,
            Some("finish") => running -= 1,
            _ => {}
        }
        most = most.max(running);
    }
    most
}

const SLEEP_CALLS: [&str; 6] = [
    r#"{"ms":"250"}"#,
    r#"{"ms":"50"}"#,
    r#"{"ms":"151"}"#,
    r#"{"ms":"52"}"#,
    r#"{"ms":"101"}"#,
    r#"{"ms":"53"}"#,
];

#[test]
fn r017_r019_reads_run_together_up_to_the_limit_and_results_stay_in_order() {
    for allocation in ALLOCATIONS {
        for limit in [1, 2, 4] {
            let test_host = TestHostBuilder::default()
                .with_guest(&busy_guest())
                .with_allocation(allocation)
                .with_parallel(limit)
                .build();
            assert_eq!(test_host.tier("read"), Tier::ReadOnly);
            let report = test_host.run_turn(&SLEEP_CALLS.map(|arguments| ("read", arguments)));
            assert_eq!(max_concurrent_calls(&report), limit, "{:?}", report.events);
            let texts: Vec<_> =
                report.outcomes.iter().map(|answered| answered.text.as_str()).collect();
            assert_eq!(texts, ["250", "50", "151", "52", "101", "53"]);
            let starts: Vec<_> =
                report.events.iter().filter(|line| line.starts_with("start")).collect();
            assert_eq!(
                starts,
                ["start 0", "start 1", "start 2", "start 3", "start 4", "start 5"],
                "first come, first served"
            );
        }
    }
}

#[test]
fn r017_a_free_slot_is_taken_at_once() {
    let test_host = TestHostBuilder::default().with_guest(&busy_guest()).with_parallel(2).build();
    let report = test_host.run_turn(&[
        ("read", r#"{"ms":"600"}"#),
        ("read", r#"{"ms":"50"}"#),
        ("read", r#"{"ms":"50"}"#),
        ("read", r#"{"ms":"50"}"#),
    ]);
    assert_eq!(report.events.last().map(String::as_str), Some("finish 0"), "{:?}", report.events);
}

#[test]
fn r015_writes_run_one_by_one_in_the_models_order() {
    let test_host = TestHostBuilder::default().with_guest(&busy_guest()).build();
    let report = test_host.run_turn(&SLEEP_CALLS.map(|arguments| ("write", arguments)));
    let expected: Vec<String> =
        (0..6).flat_map(|n| [format!("start {n}"), format!("finish {n}")]).collect();
    assert_eq!(report.events, expected);
}

#[test]
fn r015_reads_go_before_writes_only_where_nobody_can_tell() {
    let calls =
        [("write", r#"{"ms":"20"}"#), ("read", r#"{"ms":"20"}"#), ("blind", r#"{"ms":"20"}"#)];
    for (reorder, starts) in
        [(ReorderPolicy::Safe, ["2", "0", "1"]), (ReorderPolicy::Always, ["1", "2", "0"])]
    {
        let test_host =
            TestHostBuilder::default().with_guest(&busy_guest()).with_reorder(reorder).build();
        let report = test_host.run_turn(&calls);
        let order: Vec<_> =
            report.events.iter().filter_map(|line| line.strip_prefix("start ")).collect();
        assert_eq!(order, starts, "{reorder:?}");
    }
}

#[test]
fn r014_a_tool_that_wants_to_run_alone_does() {
    let test_host = TestHostBuilder::default()
        .with_guest(
            &TestGuest::from_file("busy").with_tools([GuestTool::new("busy").with_exclusive()]),
        )
        .build();
    let report = test_host.run_turn(&[("busy", r#"{"ms":"50"}"#), ("busy", r#"{"ms":"50"}"#)]);
    assert_eq!(report.events, ["start 0", "finish 0", "start 1", "finish 1"]);
}

#[test]
fn r026_a_read_waits_out_a_passing_shortage_and_a_write_is_never_tried_again() {
    let options = SandboxOptions {
        allocation: InstanceAllocation::Pooled,
        compiler: CompilerKind::InProcess,
        cache: None,
    };
    let sandbox = Arc::new(WasmSandbox::new(options).expect("the engine can be made"));
    let plan = || {
        TestHostBuilder::default()
            .with_guest(&busy_guest())
            .with_sandbox(Arc::clone(&sandbox))
            .with_allocation(InstanceAllocation::Pooled)
            .with_parallel(64)
    };
    let (crowd, more, other) = (plan().build(), plan().build(), plan().build());
    std::thread::scope(|scope| {
        // Every place in the pool is taken for a while, whoever comes first.
        scope.spawn(|| crowd.run_turn(&[("read", r#"{"ms":"1200"}"#); 64]));
        scope.spawn(|| more.run_turn(&[("read", r#"{"ms":"1200"}"#); 8]));
        let write = |_| {
            std::thread::sleep(Duration::from_millis(100));
            other.call("write", r#"{"ms":"1"}"#)
        };
        let refused = (0..20).map(write).find(|answered| answered.status == ResultStatus::Error);
        let refused = refused.expect("the pool is full for a while");
        assert_contains(&refused.text, "the limit of parallel calls is reached");
        assert_eq!(other.call_ok("read", r#"{"ms":"1"}"#), "1");
    });
}

#[test]
fn r027_what_a_tool_reports_a_crash_a_limit_and_a_stop_are_not_tried_again() {
    let tool = GuestTool::new("try_and_fail").with_requested(&[Capability::KeepState]);
    let test_host = TestHostBuilder::default()
        .with_guest(&TestGuest::from_file("try-and-fail").with_tools([tool]))
        .with_timeout_millis(700)
        .build();
    assert_eq!(
        test_host.tier("try_and_fail"),
        Tier::ReadOnly,
        "it is one of those that are tried again when something is short"
    );
    let tried = || test_host.call_ok("try_and_fail", r#"{"text":"tell"}"#).len();
    let ways = [
        ("invalid", "invalid input at /text: no"),
        ("missing", "not found: no"),
        ("refused", "denied (house-rule): no"),
        ("slow", "timed out: no"),
        ("broken", "no"),
        ("crash", "the tool crashed"),
        ("endless", "the call exceeded its time limit of 0.7 seconds"),
    ];
    for (n, (way, text)) in ways.into_iter().enumerate() {
        assert_contains(
            &test_host.call_error("try_and_fail", &format!(r#"{{"text":"{way}"}}"#)),
            text,
        );
        assert_eq!(tried(), n + 1, "{way}");
    }
    // What its schema does not allow does not get that far.
    for arguments in ["{\"text\":", "[]", "{}{}"] {
        test_host.call_error("try_and_fail", arguments);
    }
    let stopped = test_host.run_turn_cancelled(
        &[("try_and_fail", r#"{"text":"endless"}"#)],
        Some(Duration::from_millis(100)),
    );
    assert_eq!(stopped.outcome, RunOutcome::Aborted);
    assert_eq!(tried(), ways.len() + 1);
}

#[test]
fn r020_a_crash_hides_no_sibling() {
    let test_host = TestHostBuilder::default()
        .with_guest(&TestGuest::from_file("divide-by-zero"))
        .with_guest(&busy_guest())
        .build();
    let report = test_host.run_turn(&[
        ("divide_by_zero", "{}"),
        ("read", r#"{"ms":"100"}"#),
        ("divide_by_zero", "{}"),
        ("none", "{}"),
        ("good", r#"{"text":"x"}"#),
    ]);
    let statuses: Vec<_> = report.outcomes.iter().map(|answered| answered.status).collect();
    assert_eq!(
        statuses,
        [
            ResultStatus::Error,
            ResultStatus::Ok,
            ResultStatus::Error,
            ResultStatus::Error,
            ResultStatus::Ok
        ]
    );
}

#[test]
fn r101_endless_calls_on_every_core_leave_the_others_alone() {
    for allocation in ALLOCATIONS {
        let spin = TestGuest::from_file("loop-in-call");
        let test_host = TestHostBuilder::default()
            .with_guest(&spin)
            .with_allocation(allocation)
            .with_timeout_millis(1500)
            .with_parallel(8)
            .build();
        let cores = std::thread::available_parallelism().map_or(2, usize::from).min(6);
        let mut calls = vec![("loop_in_call", "{}"); cores];
        calls.push(("good", r#"{"text":"me too"}"#));
        let report = test_host.run_turn(&calls);
        let last = calls.len() - 1;
        assert_eq!(report.outcomes[last].text, "me too");
        let finished: Vec<_> =
            report.events.iter().filter_map(|line| line.strip_prefix("finish ")).collect();
        assert_eq!(finished[0], last.to_string(), "it did not wait for the others");
        for answered in &report.outcomes[..last] {
            assert_contains(&answered.text, "the call exceeded its time limit of 1.5 seconds");
        }
        test_host.assert_healthy();
    }
}

#[test]
fn r101_cancelling_is_back_within_a_second() {
    for allocation in ALLOCATIONS {
        for guest in ["loop-in-call", "sleep-an-hour", "loop-in-realloc"] {
            let test_host = TestHostBuilder::default()
                .with_guest(&TestGuest::from_file(guest))
                .with_allocation(allocation)
                .build();
            let tool = guest.replace('-', "_");
            let report = test_host.run_turn_cancelled(
                &[(&tool, "{}"), (&tool, "{}"), ("good", r#"{"text":"x"}"#)],
                Some(Duration::from_millis(200)),
            );
            assert_eq!(report.outcome, RunOutcome::Aborted);
            let after = report.after_cancel.expect("it was cancelled");
            assert!(after < Duration::from_secs(1), "{guest}: {after:?}");
            assert_eq!(report.outcomes[0].status, ResultStatus::Interrupted);
            assert_eq!(report.outcomes[2].status, ResultStatus::Ok);
            test_host.assert_healthy();
        }
    }
}

#[test]
fn r050_what_was_not_started_says_so() {
    let test_host = TestHostBuilder::default()
        .with_guest(&TestGuest::from_file("sleep-an-hour"))
        .with_parallel(1)
        .build();
    let report = test_host.run_turn_cancelled(
        &[("sleep_an_hour", "{}"), ("sleep_an_hour", "{}")],
        Some(Duration::from_millis(100)),
    );
    assert_eq!(report.outcomes[0].status, ResultStatus::Interrupted);
    assert_eq!(report.outcomes[1].status, ResultStatus::NotRun);
}

#[test]
fn r022_arguments_that_do_not_fit_run_nothing() {
    let schema = concat!(
        r#"{"type":"object","required":["text"],"additionalProperties":false,"#,
        r#""properties":{"text":{"type":"string"}}}"#,
    );
    let test_host = TestHostBuilder::default()
        .with_guest(
            &TestGuest::from_file("good")
                .with_tools([GuestTool::new("strict").with_schema(schema)]),
        )
        .build();
    let deep =
        |levels: usize| format!(r#"{{"text":{}{}}}"#, "[".repeat(levels), "]".repeat(levels));
    let table = [
        ("", "\"text\" is a required property"),
        ("{}", "\"text\" is a required property"),
        ("[]", "instead of an object"),
        ("{\"text\":\"a\"}{\"text\":\"b\"}", "more than one JSON value"),
        ("{\"text\":\"a\"", "not valid JSON"),
        (r#"{"text":7}"#, "at /text: 7 is not of type \"string\""),
        (r#"{"text":"a","more":1}"#, "'more' was unexpected"),
        (&deep(90_000), "not valid JSON"),
        (&deep(100_000), "(limit: 100000)"),
        (r#"{"text":"\ud800"}"#, "not valid JSON"),
    ];
    for (arguments, says) in table {
        let report = test_host.run_turn(&[("strict", arguments)]);
        assert_contains(&report.outcomes[0].text, says);
        assert_eq!(report.outcomes[0].status, ResultStatus::Error);
        assert_eq!(report.events, ["finish 0"], "it was started: {arguments:.80}");
    }
    assert_contains(&test_host.call_error("Strict", "{}"), "unknown tool \"Strict\"");
    assert_contains(&test_host.call_error("\u{1b}[2J", "{}"), "unknown tool \"\\u{1b}[2J\"");
    assert_eq!(test_host.call_ok(" strict\n", r#"{"text":"trimmed"}"#), "trimmed");
    test_host.assert_healthy();
}
