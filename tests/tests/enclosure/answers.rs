//! Answers that are too large, malformed or made to be expensive; and crashes.

use cofferdam::conversation::{Content, ResultStatus};
use cofferdam_tests::guests::{Guest, House, Plan, Tool};

use crate::{ALLOCATIONS, assert_says};

#[test]
fn r098_a_result_of_48_mib_does_not_cross_over() {
    for allocation in ALLOCATIONS {
        let house = Plan::default().guest(&Guest::named("huge-result")).allocation(allocation).build();
        let text = house.fails("huge_result", "{}");
        assert_says(&text, "the tool was stopped: it handed over more than 4 MiB at once");
        house.assert_is_fine();
    }
}

#[test]
fn r098_lists_that_share_a_buffer_are_counted_by_what_they_come_to() {
    let house = House::with(&Guest::named("nested-lists"));
    assert_says(&house.fails("nested_lists", "{}"), "the tool was stopped: it handed over more than 4 MiB at once");
    house.assert_is_fine();
}

#[test]
fn r098_a_result_beyond_the_output_cap_is_an_error() {
    let house = House::with(&Guest::named("long-text"));
    assert_says(&house.fails("long_text", "{}"), "the tool answered with 1500000 bytes; at most 1048576 are taken");
    house.assert_is_fine();
}

#[test]
fn r098_what_the_user_is_shown_counts_like_what_the_model_sees() {
    let house = House::with(&Guest::named("long-view"));
    assert_says(&house.fails("long_view", "{}"), "at most 1048576 are taken");
    house.assert_is_fine();
}

#[test]
fn r098_a_table_is_not_filled_up() {
    let table = [
        ("80000", "80000", "a row of 0 cells under 80000 columns"),
        ("3", "2", "a row of 0 cells under 3 columns"),
        ("0", "100000", "a table that has no columns"),
    ];
    for (columns, rows, says) in table {
        let guest = Guest::named("table-view").with("{{columns}}", columns).with("{{rows}}", rows);
        let house = House::with(&guest);
        assert_says(&house.fails("table_view", "{}"), says);
        house.assert_is_fine();
    }
}

#[test]
fn r105_bytes_that_are_no_text_are_an_error() {
    let house = House::with(&Guest::named("invalid-utf8"));
    assert_says(&house.fails("invalid_utf8", "{}"), "invalid utf-8");
    house.assert_is_fine();
}

#[test]
fn r105_variants_that_do_not_exist_are_an_error() {
    // Of the result, of the option, and of the view.
    for place in ["0", "12"] {
        let house = House::with(&Guest::named("bad-discriminant").with("{{where}}", place));
        let text = house.fails("bad_discriminant", "{}");
        assert_says(&text, "discriminant");
        house.assert_is_fine();
    }
}

#[test]
fn r105_addresses_that_do_not_exist_are_an_error() {
    for (address, length) in [("0xfffffff0", "64"), ("0", "0xffffffff"), ("0x7fffffff", "1")] {
        let house = House::with(&Guest::named("wild-pointer").with("{{address}}", address).with("{{length}}", length));
        let text = house.fails("wild_pointer", "{}");
        assert_says(&text, "the tool");
        house.assert_is_fine();
    }
    for address in ["65", "0xfffffffc"] {
        let house = House::with(&Guest::named("odd-answer-address").with("{{address}}", address));
        let text = house.fails("odd_answer_address", "{}");
        assert_says(&text, "the tool crashed: ");
        house.assert_is_fine();
    }
}

#[test]
fn r105_json_that_is_none_is_an_error() {
    let house = House::with(&Guest::named("not-json"));
    assert_says(&house.fails("not_json", "{}"), "the tool answered with JSON that does not parse");
    house.assert_is_fine();
}

#[test]
fn r105_a_picture_that_is_none_is_an_error() {
    let house = House::with(&Guest::named("strange-image"));
    assert_says(&house.fails("strange_image", "{}"), "an image of type \"text/html\"");
    house.assert_is_fine();
}

#[test]
fn r053_each_kind_of_error_arrives_as_an_error() {
    let tools: Vec<Tool> = ["invalid", "missing", "refused", "slow", "broken"].map(Tool::named).into();
    let house = House::with(&Guest::named("every-error").tools(tools));
    let table = [
        ("invalid", "invalid input at /lines/0: there are only 3"),
        ("missing", "not found: no such branch"),
        ("refused", "denied (house-rule): not on Sundays."),
        ("slow", "timed out: the other side was silent"),
        ("broken", "it broke"),
    ];
    for (tool, text) in table {
        assert_eq!(house.fails(tool, "{}"), text);
    }
    house.assert_is_fine();
}

#[test]
fn r105_a_panic_is_told_in_its_own_words_and_without_a_backtrace() {
    let house = House::with(&Guest::named("panic"));
    let text = house.fails("panic", "{}");
    assert_says(&text, "the tool crashed: it gave up");
    assert_says(&text, "panicked at src/lib.rs:7:5:");
    assert_says(&text, "index is 9");
    assert!(!text.contains("wasm function") && !text.contains("backtrace") && text.lines().count() <= 6, "{text}");
    house.assert_is_fine();
}

#[test]
fn r105_a_crash_leaves_the_tool_usable() {
    for allocation in ALLOCATIONS {
        let house = Plan::default().guest(&Guest::named("divide-by-zero")).allocation(allocation).build();
        for _ in 0..20 {
            assert_says(&house.fails("divide_by_zero", "{}"), "the tool crashed: wasm trap: integer divide by zero");
        }
        house.assert_is_fine();
    }
}

#[test]
fn r105_leaving_like_a_program_is_an_error() {
    for status in ["0", "1"] {
        let house = House::with(&Guest::named("exit").with("{{status}}", status));
        let text = house.fails("exit", "{}");
        assert_says(&text, "exit");
        house.assert_is_fine();
    }
}

#[test]
fn nothing_of_a_call_is_there_for_the_next_one() {
    for allocation in ALLOCATIONS {
        let house = Plan::default().guest(&Guest::named("remember")).allocation(allocation).build();
        for _ in 0..5 {
            let answered = house.call("remember", "{}");
            assert_eq!(answered.status, ResultStatus::Ok);
            assert_eq!(answered.content.first(), Some(&Content::Text("1".into())));
        }
        house.assert_is_fine();
    }
}
