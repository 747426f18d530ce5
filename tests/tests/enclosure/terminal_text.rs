//! What reaches a terminal.

use cofferdam::terminal_escape;
use cofferdam_tests::guests::{GuestTool, TestGuest, TestHost, TestHostBuilder};

/// Nothing that a terminal obeys, and nothing that turns text around.
fn is_terminal_safe(text: &str) -> bool {
    !text.chars().any(|c| {
        (c.is_control() && c != '\n' && c != '\t') || ('\u{202a}'..='\u{202e}').contains(&c)
    })
}

#[test]
fn what_a_guest_says_is_shown_escaped() {
    let test_host = TestHost::with_guest(
        &TestGuest::from_file("escapes")
            .with_tools([GuestTool::new("say"), GuestTool::new("fail")]),
    );
    for tool in ["say", "fail"] {
        let report = test_host.run_turn(&[(tool, "{}")]);
        let text = &report.outcomes[0].text;
        // The model sees it as it is; a person does not.
        assert!(!is_terminal_safe(text));
        assert!(
            is_terminal_safe(&terminal_escape::escape_text(text))
                && terminal_escape::escape_text(text).contains("\\u{1b}[2J")
        );
        for line in report.events.iter().filter(|line| line.starts_with("progress")) {
            assert!(is_terminal_safe(&terminal_escape::escape_line(line, 200)));
        }
    }
    test_host.assert_healthy();
}

#[test]
fn r095_what_the_model_sees_is_cut_to_the_cap() {
    let guest = TestGuest::from_source(
        "long",
        "(func $call (result i32) (memory.fill (i32.const 65536) (i32.const 120) (i32.const \
            60000)) (call $text (i32.const 65536) (i32.const 60000)))",
    );
    let test_host = TestHostBuilder::default().with_guest(&guest).with_output_limit(5000).build();
    let text = test_host.call_ok("long", "{}");
    assert!(text.len() <= 5000 && text.contains("of 60000 bytes omitted"), "{}", text.len());
    test_host.assert_healthy();
}
