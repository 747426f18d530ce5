//! What reaches a terminal.

use cofferdam::shown;
use cofferdam_tests::guests::{Guest, House, Plan, Tool};

/// Nothing that a terminal obeys, and nothing that turns text around.
fn is_tame(text: &str) -> bool {
    !text.chars().any(|c| (c.is_control() && c != '\n' && c != '\t') || ('\u{202a}'..='\u{202e}').contains(&c))
}

#[test]
fn what_a_guest_says_is_shown_escaped() {
    let house = House::with(&Guest::named("escapes").tools([Tool::named("say"), Tool::named("fail")]));
    for tool in ["say", "fail"] {
        let report = house.turn(&[(tool, "{}")]);
        let text = &report.answers[0].text;
        // The model sees it as it is; a person does not.
        assert!(!is_tame(text));
        assert!(is_tame(&shown::block(text)) && shown::block(text).contains("\\u{1b}[2J"));
        for line in report.log.iter().filter(|line| line.starts_with("progress")) {
            assert!(is_tame(&shown::line(line, 200)));
        }
    }
    house.assert_is_fine();
}

#[test]
fn r095_what_the_model_sees_is_cut_to_the_cap() {
    let guest = Guest::made_of(
        "long",
        "(func $call (result i32) (memory.fill (i32.const 65536) (i32.const 120) (i32.const 60000)) (call $text (i32.const 65536) (i32.const 60000)))",
    );
    let house = Plan::default().guest(&guest).output_cap(5000).build();
    let text = house.answers("long", "{}");
    assert!(text.len() <= 5000 && text.contains("of 60000 bytes left out"), "{}", text.len());
    house.assert_is_fine();
}
