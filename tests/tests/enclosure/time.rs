//! Guests that do not come back.

use std::time::Duration;

use cofferdam_tests::guests::{Guest, House, Plan};

use crate::{ALLOCATIONS, assert_says};

#[test]
fn r098_a_loop_in_a_call_ends_at_its_time() {
    for allocation in ALLOCATIONS {
        let house = Plan::default().guest(&Guest::named("loop-in-call")).allocation(allocation).millis(300).build();
        assert_says(&house.fails("loop_in_call", "{}"), "the tool was stopped: it ran longer than its 0.3 seconds");
        house.assert_is_fine();
    }
}

#[test]
fn r098_a_loop_in_the_allocator_ends_at_its_time() {
    let house = Plan::default().guest(&Guest::named("loop-in-realloc")).millis(300).build();
    assert_says(&house.fails("loop_in_realloc", "{}"), "it ran longer than its 0.3 seconds");
    house.assert_is_fine();
}

#[test]
fn r098_a_loop_after_the_answer_ends_at_its_time() {
    let house = Plan::default().guest(&Guest::named("loop-in-post-return")).millis(300).build();
    // Whether the answer counts is not what this is about: the call comes back.
    let report = house.turn(&[("loop_in_post_return", "{}")]);
    assert!(report.took < Duration::from_secs(3), "{:?}", report.took);
    house.assert_is_fine();
}

#[test]
fn r098_a_sleep_in_the_host_ends_at_its_time() {
    for allocation in ALLOCATIONS {
        let house = Plan::default().guest(&Guest::named("sleep-an-hour")).allocation(allocation).millis(300).build();
        assert_says(&house.fails("sleep_an_hour", "{}"), "it ran longer than its 0.3 seconds");
        house.assert_is_fine();
    }
}

#[test]
fn r098_a_loop_at_start_is_a_plugin_that_is_not_offered() {
    let house = House::with(&Guest::named("loop-in-start"));
    assert_says(house.refusal(), "list-tools failed: the tool was stopped: it ran longer than its 2 seconds");
    house.assert_is_fine();
}

#[test]
fn r098_a_loop_in_list_tools_is_a_plugin_that_is_not_offered() {
    let house = House::with(&Guest::named("loop-in-list-tools"));
    assert_says(house.refusal(), "list-tools failed: the tool was stopped: it ran longer than its 2 seconds");
    house.assert_is_fine();
}
