//! Answers that are too large, malformed or made to be expensive; and crashes.

use cofferdam::conversation::{ResultContent, ResultStatus};
use cofferdam_tests::guests::{GuestTool, TestGuest, TestHost, TestHostBuilder};

use crate::{ALLOCATIONS, assert_contains};

#[test]
fn r098_a_result_of_48_mib_does_not_cross_over() {
    for allocation in ALLOCATIONS {
        let test_host = TestHostBuilder::default()
            .with_guest(&TestGuest::from_file("huge-result"))
            .with_allocation(allocation)
            .build();
        let text = test_host.call_error("huge_result", "{}");
        assert_contains(&text, "the tool was stopped: one transfer of the call exceeded 4 MiB");
        test_host.assert_healthy();
    }
}

#[test]
fn r098_lists_that_share_a_buffer_are_counted_by_what_they_come_to() {
    let test_host = TestHost::with_guest(&TestGuest::from_file("nested-lists"));
    assert_contains(
        &test_host.call_error("nested_lists", "{}"),
        "the tool was stopped: one transfer of the call exceeded 4 MiB",
    );
    test_host.assert_healthy();
}

#[test]
fn r098_a_result_beyond_the_output_cap_is_an_error() {
    let test_host = TestHost::with_guest(&TestGuest::from_file("long-text"));
    assert_contains(
        &test_host.call_error("long_text", "{}"),
        "the tool returned 1500010 bytes; the limit is 1048576",
    );
    test_host.assert_healthy();
}

#[test]
fn r098_what_the_user_is_shown_counts_like_what_the_model_sees() {
    let test_host = TestHost::with_guest(&TestGuest::from_file("long-view"));
    assert_contains(&test_host.call_error("long_view", "{}"), "the limit is 1048576");
    test_host.assert_healthy();
}

#[test]
fn r098_a_table_is_not_filled_up() {
    let table = [
        ("80000", "80000", "a row of 1 cells, but 80001 columns"),
        ("3", "2", "a row of 1 cells, but 4 columns"),
        ("0", "0", "a table that has no columns"),
    ];
    for (columns, rows, says) in table {
        let guest = TestGuest::from_file("table-view")
            .with_replacement("{{columns}}", columns)
            .with_replacement("{{rows}}", rows);
        let test_host = TestHost::with_guest(&guest);
        assert_contains(&test_host.call_error("table_view", "{}"), says);
        test_host.assert_healthy();
    }
}

#[test]
fn r105_bytes_that_are_no_text_are_an_error() {
    let test_host = TestHost::with_guest(&TestGuest::from_file("invalid-utf8"));
    assert_contains(&test_host.call_error("invalid_utf8", "{}"), "invalid utf-8");
    test_host.assert_healthy();
}

#[test]
fn r105_variants_that_do_not_exist_are_an_error() {
    // Of the result, and of the options of the structured result and of the view.
    for place in ["0", "12", "24"] {
        let test_host = TestHost::with_guest(
            &TestGuest::from_file("bad-discriminant").with_replacement("{{where}}", place),
        );
        let text = test_host.call_error("bad_discriminant", "{}");
        assert_contains(&text, "discriminant");
        test_host.assert_healthy();
    }
}

#[test]
fn r105_addresses_that_do_not_exist_are_an_error() {
    for (address, length) in [("0xfffffff0", "64"), ("0", "0xffffffff"), ("0x7fffffff", "1")] {
        let test_host = TestHost::with_guest(
            &TestGuest::from_file("wild-pointer")
                .with_replacement("{{address}}", address)
                .with_replacement("{{length}}", length),
        );
        let text = test_host.call_error("wild_pointer", "{}");
        assert_contains(&text, "the tool");
        test_host.assert_healthy();
    }
    for address in ["65", "0xfffffffc"] {
        let test_host = TestHost::with_guest(
            &TestGuest::from_file("odd-answer-address").with_replacement("{{address}}", address),
        );
        let text = test_host.call_error("odd_answer_address", "{}");
        assert_contains(&text, "the tool crashed: ");
        test_host.assert_healthy();
    }
}

#[test]
fn r105_json_that_is_none_is_an_error() {
    let test_host = TestHost::with_guest(&TestGuest::from_file("not-json"));
    assert_contains(&test_host.call_error("not_json", "{}"), "the tool returned invalid JSON");
    test_host.assert_healthy();
}

#[test]
fn r105_a_picture_that_is_none_is_an_error() {
    let test_host = TestHost::with_guest(&TestGuest::from_file("strange-image"));
    assert_contains(&test_host.call_error("strange_image", "{}"), "an image of type \"image/png\"");
    test_host.assert_healthy();
}

#[test]
fn r053_each_kind_of_error_arrives_as_an_error() {
    let tools: Vec<GuestTool> =
        ["invalid", "missing", "refused", "slow", "broken"].map(GuestTool::new).into();
    let test_host = TestHost::with_guest(&TestGuest::from_file("every-error").with_tools(tools));
    let table = [
        ("invalid", "invalid input at /lines/0: there are only 3"),
        ("missing", "not found: no such branch"),
        ("refused", "denied (house-rule): not on Sundays."),
        ("slow", "timed out: the other side was silent"),
        ("broken", "it broke"),
    ];
    for (tool, text) in table {
        assert_eq!(test_host.call_error(tool, "{}"), text);
    }
    test_host.assert_healthy();
}

#[test]
fn r105_a_panic_is_told_in_its_own_words_and_without_a_backtrace() {
    let test_host = TestHost::with_guest(&TestGuest::from_file("panic"));
    let text = test_host.call_error("panic", "{}");
    assert_contains(&text, "the tool crashed: it aborted");
    assert_contains(&text, "panicked at src/lib.rs:7:5:");
    assert_contains(&text, "index is 9");
    assert!(
        !text.contains("wasm function") && !text.contains("backtrace") && text.lines().count() <= 6,
        "{text}"
    );
    test_host.assert_healthy();
}

#[test]
fn r105_a_crash_leaves_the_tool_usable() {
    for allocation in ALLOCATIONS {
        let test_host = TestHostBuilder::default()
            .with_guest(&TestGuest::from_file("divide-by-zero"))
            .with_allocation(allocation)
            .build();
        for _ in 0..20 {
            assert_contains(
                &test_host.call_error("divide_by_zero", "{}"),
                "the tool crashed: wasm trap: integer divide by zero",
            );
        }
        test_host.assert_healthy();
    }
}

#[test]
fn r105_leaving_like_a_program_is_an_error() {
    for status in ["0", "1"] {
        let test_host = TestHost::with_guest(
            &TestGuest::from_file("exit").with_replacement("{{status}}", status),
        );
        let text = test_host.call_error("exit", "{}");
        assert_contains(&text, "exit");
        test_host.assert_healthy();
    }
}

#[test]
fn nothing_of_a_call_is_there_for_the_next_one() {
    for allocation in ALLOCATIONS {
        let test_host = TestHostBuilder::default()
            .with_guest(&TestGuest::from_file("remember"))
            .with_allocation(allocation)
            .build();
        for _ in 0..5 {
            let answered = test_host.call("remember", "{}");
            assert_eq!(answered.status, ResultStatus::Ok);
            assert_eq!(answered.content.first(), Some(&ResultContent::Text("1".into())));
        }
        test_host.assert_healthy();
    }
}
