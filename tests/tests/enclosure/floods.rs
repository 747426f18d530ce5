//! Progress, output, handles and timers without end.

use cofferdam::policy::Capability;
use cofferdam_tests::guests::{TestGuest, TestHost, TestHostBuilder};

use crate::assert_contains;

#[test]
fn r098_a_million_reports_are_a_few_lines() {
    let test_host = TestHost::with_guest(&TestGuest::from_file("many-progress-calls"));
    let report = test_host.run_turn(&[("many_progress_calls", "{}")]);
    assert_eq!(report.outcomes[0].text, "reported");
    let lines = report.events.iter().filter(|line| line.starts_with("progress")).count();
    assert!((1..200).contains(&lines), "{lines}");
    assert!(report.events.iter().all(|line| !line.contains("and more")), "a report is one line");
    test_host.assert_healthy();
}

#[test]
fn r098_a_report_is_cut() {
    let test_host = TestHost::with_guest(&TestGuest::from_file("long-progress"));
    let report = test_host.run_turn(&[("long_progress", "{}")]);
    assert_eq!(report.outcomes[0].text, "reported");
    assert!(report.events.iter().all(|line| line.len() < 300));
    test_host.assert_healthy();
}

#[test]
fn r098_a_flood_of_output_goes_nowhere() {
    for stream in ["stdout.get-stdout", "stderr.get-stderr"] {
        let test_host = TestHostBuilder::default()
            .with_guest(&TestGuest::from_file("flood").with_replacement("{{stream}}", stream))
            .build();
        assert_eq!(test_host.call_ok("flood", "{}"), "written");
        test_host.assert_healthy();
    }
}

#[test]
fn r098_handles_to_files_are_counted() {
    let guest = TestGuest::from_file("many-handles").with_requested(&[Capability::ReadFiles]);
    let test_host = TestHostBuilder::default()
        .with_guest(&guest)
        .with_limits(|limits| limits.handles = 100)
        .build();
    let text = test_host.call_error("many_handles", "{}");
    assert_contains(&text, "the tool was stopped: the call exceeded the limit of 100 open handles");
    test_host.assert_healthy();
    let test_host = TestHost::with_guest(&guest);
    // More files than these, whatever else it holds, would be missing elsewhere in the process.
    assert_contains(
        &test_host.call_ok("many_handles", "{}"),
        "denied (too-much): one call can have at most 128 files and directories open",
    );
    test_host.assert_healthy();
}

#[test]
fn r098_timers_are_counted() {
    let test_host = TestHost::with_guest(&TestGuest::from_file("many-timers"));
    assert_contains(
        &test_host.call_error("many_timers", "{}"),
        "the tool was stopped: the call exceeded the limit of 4096 open handles",
    );
    test_host.assert_healthy();
}

#[test]
fn r098_random_bytes_are_counted() {
    let test_host = TestHost::with_guest(&TestGuest::from_file("huge-random"));
    let text = test_host.call_error("huge_random", "{}");
    assert_contains(&text, "requested len 1099511627776 exceeds limit 1048576");
    test_host.assert_healthy();
}
