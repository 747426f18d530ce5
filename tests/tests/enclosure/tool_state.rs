//! State that a tool keeps: between its calls, for nobody else, and never much of it.

use cofferdam::conversation::ResultStatus;
use cofferdam::policy::Capability;
use cofferdam_tests::guests::{GuestTool, TestGuest, TestHost, TestHostBuilder};

use crate::assert_contains;

const REQUESTED: [Capability; 1] = [Capability::KeepState];

#[test]
fn a_tool_finds_again_what_it_kept() {
    let test_host = TestHost::with_guest(&TestGuest::from_file("keep").with_requested(&REQUESTED));
    assert_eq!(test_host.call_ok("keep", r#"{"text":"one"}"#), "nothing\n");
    assert_eq!(test_host.call_ok("keep", r#"{"text":"two"}"#), "kept one\n");
    test_host.assert_healthy();
    // Another session knows nothing of it.
    let test_host = TestHost::with_guest(&TestGuest::from_file("keep").with_requested(&REQUESTED));
    assert_eq!(test_host.call_ok("keep", r#"{"text":"three"}"#), "nothing\n");
}

#[test]
fn what_a_tool_keeps_crosses_to_no_other() {
    let tools = [
        GuestTool::new("one").with_requested(&REQUESTED),
        GuestTool::new("two").with_requested(&REQUESTED),
        GuestTool::new("three"),
    ];
    let other = TestGuest::from_file("keep")
        .with_requested(&REQUESTED)
        .with_replacement("nothing", "NOTHING");
    let test_host = TestHostBuilder::default()
        .with_guest(&TestGuest::from_file("keep").with_tools(tools))
        .with_guest(&other)
        .build();
    assert_eq!(test_host.call_ok("one", r#"{"text":"secret"}"#), "nothing\n");
    assert_eq!(test_host.call_ok("two", r#"{"text":"x"}"#), "nothing\n");
    assert_eq!(test_host.call_ok("keep", r#"{"text":"x"}"#), "NOTHING\n");
    assert_contains(
        &test_host.call_ok("three", r#"{"text":"x"}"#),
        "denied not-granted: this tool has no permission to keep state.",
    );
    assert_eq!(test_host.call_ok("one", r#"{"text":"x"}"#), "kept secret\n");
}

#[test]
fn calls_of_a_tool_that_keeps_state_come_one_after_the_other() {
    let test_host = TestHost::with_guest(&TestGuest::from_file("keep").with_requested(&REQUESTED));
    let calls: Vec<String> = (0..8).map(|n| format!(r#"{{"text":"{n}"}}"#)).collect();
    let calls: Vec<_> = calls.iter().map(|input| ("keep", input.as_str())).collect();
    let texts: Vec<_> =
        test_host.run_turn(&calls).outcomes.into_iter().map(|answer| answer.text).collect();
    let expected = [
        "nothing\n",
        "kept 0\n",
        "kept 1\n",
        "kept 2\n",
        "kept 3\n",
        "kept 4\n",
        "kept 5\n",
        "kept 6\n",
    ];
    assert_eq!(texts, expected);
}

#[test]
fn r098_a_million_texts_are_a_few() {
    let test_host = TestHostBuilder::default()
        .with_guest(&TestGuest::from_file("many-sets").with_requested(&REQUESTED))
        .with_limits(|limits| limits.time *= 6)
        .build();
    assert_eq!(test_host.call_ok("many_sets", "{}"), "taken 256, again 500000, keys 256");
    test_host.assert_healthy();
}

#[test]
fn r098_a_huge_text_is_not_kept() {
    let table = [
        ("65536", ResultStatus::Ok, "kept"),
        ("65537", ResultStatus::Ok, "refused 2: the value has 65537 bytes; the limit is 65536"),
        (
            "5000000",
            ResultStatus::Error,
            "the tool was stopped: one transfer of the call exceeded 4 MiB",
        ),
        ("0xfffffff0", ResultStatus::Error, "the tool crashed"),
    ];
    for (bytes, status, says) in table {
        let test_host = TestHost::with_guest(
            &TestGuest::from_file("huge-value")
                .with_replacement("{{bytes}}", bytes)
                .with_requested(&REQUESTED),
        );
        let answered = test_host.call("huge_value", "{}");
        assert_eq!(answered.status, status, "{bytes}: {}", answered.text);
        assert_contains(&answered.text, says);
        test_host.assert_healthy();
    }
}

#[test]
fn r098_a_key_is_a_plain_word() {
    let test_host =
        TestHost::with_guest(&TestGuest::from_file("odd-keys").with_requested(&REQUESTED));
    // Refused, as `invalid-key`, by all three; the last one is a plain word, and nothing like a
    // path.
    assert_eq!(test_host.call_ok("odd_keys", "{}"), "1111 1111 1111 1111 1111 1111 0000 ");
    test_host.assert_healthy();
}

#[test]
fn bytes_that_are_no_text_are_kept() {
    let guest = TestGuest::from_file("keep-bytes").with_requested(&REQUESTED);
    let test_host = TestHost::with_guest(&guest);
    assert_eq!(test_host.call_ok("keep_bytes", "{}"), "nothing");
    assert_eq!(test_host.call_ok("keep_bytes", "{}"), "3 bytes, sum 521");
}
