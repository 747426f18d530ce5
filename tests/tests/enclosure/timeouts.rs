//! Guests that do not come back.

use std::time::Duration;

use cofferdam_tests::guests::{TestGuest, TestHost, TestHostBuilder};

use crate::{ALLOCATIONS, assert_contains};

#[test]
fn r098_a_loop_in_a_call_ends_at_its_time() {
    for allocation in ALLOCATIONS {
        let test_host = TestHostBuilder::default()
            .with_guest(&TestGuest::from_file("loop-in-call"))
            .with_allocation(allocation)
            .with_timeout_millis(300)
            .build();
        assert_contains(
            &test_host.call_error("loop_in_call", "{}"),
            "the tool was stopped: the call exceeded its time limit of 0.3 seconds",
        );
        test_host.assert_healthy();
    }
}

#[test]
fn r098_a_loop_in_the_allocator_ends_at_its_time() {
    let test_host = TestHostBuilder::default()
        .with_guest(&TestGuest::from_file("loop-in-realloc"))
        .with_timeout_millis(300)
        .build();
    assert_contains(
        &test_host.call_error("loop_in_realloc", "{}"),
        "the call exceeded its time limit of 0.3 seconds",
    );
    test_host.assert_healthy();
}

#[test]
fn r098_a_loop_after_the_answer_ends_at_its_time() {
    let test_host = TestHostBuilder::default()
        .with_guest(&TestGuest::from_file("loop-in-post-return"))
        .with_timeout_millis(300)
        .build();
    // Whether the answer counts is not what this is about: the call comes back.
    let report = test_host.run_turn(&[("loop_in_post_return", "{}")]);
    assert!(report.duration < Duration::from_secs(3), "{:?}", report.duration);
    test_host.assert_healthy();
}

#[test]
fn r098_a_sleep_in_the_host_ends_at_its_time() {
    for allocation in ALLOCATIONS {
        let test_host = TestHostBuilder::default()
            .with_guest(&TestGuest::from_file("sleep-an-hour"))
            .with_allocation(allocation)
            .with_timeout_millis(300)
            .build();
        assert_contains(
            &test_host.call_error("sleep_an_hour", "{}"),
            "the call exceeded its time limit of 0.3 seconds",
        );
        test_host.assert_healthy();
    }
}

#[test]
fn r098_a_loop_at_start_is_a_plugin_that_is_not_offered() {
    let test_host = TestHost::with_guest(&TestGuest::from_file("loop-in-start"));
    assert_contains(
        test_host.refusal_reason(),
        "`list-tools` failed: the tool was stopped: the call exceeded its time limit of 2 seconds",
    );
    test_host.assert_healthy();
}

#[test]
fn r098_a_loop_in_list_tools_is_a_plugin_that_is_not_offered() {
    let test_host = TestHost::with_guest(&TestGuest::from_file("loop-in-list-tools"));
    assert_contains(
        test_host.refusal_reason(),
        "`list-tools` failed: the tool was stopped: the call exceeded its time limit of 2 seconds",
    );
    test_host.assert_healthy();
}
