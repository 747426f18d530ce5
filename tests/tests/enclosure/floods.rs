//! Progress, output, handles and timers without end.

use cofferdam::policy::Capability;
use cofferdam_tests::guests::{Guest, House, Plan};

use crate::assert_says;

#[test]
fn r098_a_million_reports_are_a_few_lines() {
    let house = House::with(&Guest::named("many-progress-calls"));
    let report = house.turn(&[("many_progress_calls", "{}")]);
    assert_eq!(report.answers[0].text, "reported");
    let lines = report.log.iter().filter(|line| line.starts_with("progress")).count();
    assert!((1..200).contains(&lines), "{lines}");
    assert!(report.log.iter().all(|line| !line.contains("and more")), "a report is one line");
    house.assert_is_fine();
}

#[test]
fn r098_a_report_is_cut() {
    let house = House::with(&Guest::named("long-progress"));
    let report = house.turn(&[("long_progress", "{}")]);
    assert_eq!(report.answers[0].text, "reported");
    assert!(report.log.iter().all(|line| line.len() < 300));
    house.assert_is_fine();
}

#[test]
fn r098_a_flood_of_output_goes_nowhere() {
    for stream in ["stdout.get-stdout", "stderr.get-stderr"] {
        let house = Plan::default().guest(&Guest::named("flood").with("{{stream}}", stream)).build();
        assert_eq!(house.answers("flood", "{}"), "written");
        house.assert_is_fine();
    }
}

#[test]
fn r098_handles_to_files_are_counted() {
    let guest = Guest::named("many-handles").asking(&[Capability::ReadFiles]);
    let house = Plan::default().guest(&guest).limits(|limits| limits.handles = 100).build();
    let text = house.fails("many_handles", "{}");
    assert_says(&text, "the tool was stopped: it holds more than 100 handles");
    house.assert_is_fine();
    let house = House::with(&guest);
    // More files than these, whatever else it holds, would be missing elsewhere in the process.
    assert_says(&house.answers("many_handles", "{}"), "denied (too-much): this call has 128 files and directories open");
    house.assert_is_fine();
}

#[test]
fn r098_timers_are_counted() {
    let house = House::with(&Guest::named("many-timers"));
    assert_says(&house.fails("many_timers", "{}"), "the tool was stopped: it holds more than 4096 handles");
    house.assert_is_fine();
}

#[test]
fn r098_random_bytes_are_counted() {
    let house = House::with(&Guest::named("huge-random"));
    let text = house.fails("huge_random", "{}");
    assert_says(&text, "requested len 1099511627776 exceeds limit 1048576");
    house.assert_is_fine();
}
