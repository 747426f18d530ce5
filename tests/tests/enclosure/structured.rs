//! Structured results, titles, annotations, and content by media type.

use cofferdam::conversation::ResultContent;
use cofferdam_tests::guests::{GuestTool, TestGuest, TestHost};

use crate::assert_contains;

const SCHEMA: &str = r#"{"type":"object","required":["n"],"properties":{"n":{"type":"integer"}}}"#;

fn host_with_output(output: &str, output_schema: Option<&str>) -> TestHost {
    let mut tool = GuestTool::new("output");
    tool.output_schema = output_schema.map(str::to_owned);
    let guest = TestGuest::from_file("output").with_replacement("{{output}}", output);
    TestHost::with_guest(&guest.with_tools([tool]))
}

const TEXT: &str = r#"(local.set $answer (call $text @"one"))"#;

#[test]
fn a_structured_result_is_valid_under_the_output_schema() {
    let with = |json: &str| format!(r#"{TEXT} (call $structured @"{json}")"#);
    let table = [
        (TEXT.to_owned(), "the tool has an output schema and returned no structured result"),
        (with(r#"{\"n\": \"1\"}"#), "does not match its output schema: at /n"),
        (with("{"), "the structured result of the tool is not JSON"),
    ];
    for (output, expected) in table {
        let test_host = host_with_output(&output, Some(SCHEMA));
        assert_contains(&test_host.call_error("output", "{}"), expected);
        test_host.assert_healthy();
    }
    let test_host = host_with_output(&with(r#"{\"n\": 1}"#), Some(SCHEMA));
    assert_eq!(test_host.call_ok("output", "{}"), "one");
    let test_host = host_with_output(&with("{}"), None);
    assert_contains(
        &test_host.call_error("output", "{}"),
        "the tool returned a structured result and has no output schema",
    );
}

#[test]
fn without_content_the_model_sees_the_structured_result() {
    let output = r#"(local.set $answer (call $contents (i32.const 160) (i32.const 0)))
        (call $structured @"{\"n\": 1}")"#;
    let test_host = host_with_output(output, Some(SCHEMA));
    assert_eq!(test_host.call_ok("output", "{}"), "{\"n\": 1}");
    test_host.assert_healthy();
}

#[test]
fn r098_a_costly_output_schema_is_not_offered() {
    let test_host = host_with_output(TEXT, Some(r##"{"type":"object","$ref":"#"}"##));
    assert_contains(test_host.refusal_reason(), "the output schema of `output`");
    let test_host = host_with_output(TEXT, Some(r#"{"type":"object","required":1}"#));
    assert_contains(test_host.refusal_reason(), "the output schema of `output` cannot be used");
}

#[test]
fn audio_and_unknown_bytes_are_named_and_addresses_are_in_front() {
    let bytes = |media_type: &str| {
        format!(
            r#"(local.set $answer (call $bytes @"{media_type}" (i32.const 512) (i32.const 9)))"#
        )
    };
    let table = [
        (bytes("audio/wav"), "[audio/wav, 9 bytes]"),
        (bytes("Application/PDF"), "[application/pdf, 9 bytes]"),
        (bytes("image/tiff"), "[image/tiff, 9 bytes]"),
        (format!(r#"{TEXT} (call $uri @"file:///a")"#), "file:///a\none"),
        (format!(r#"{} (call $uri @"x:y")"#, bytes("audio/ogg")), "x:y\n[audio/ogg, 9 bytes]"),
    ];
    for (output, expected) in table {
        let test_host = host_with_output(&output, None);
        let outcome = test_host.call("output", "{}");
        assert_eq!(outcome.content, [ResultContent::Text(expected.into())]);
    }
    for (output, expected) in [
        (bytes("nothing"), "invalid media type"),
        (bytes("text/plain; charset=utf-8"), "invalid media type"),
        (format!(r#"{TEXT} (call $uri @"a\nb")"#), "invalid `uri`"),
        (format!(r#"{TEXT} (call $view @"x" (i32.const 0) @"v")"#), "invalid media type"),
        (
            format!(
                r#"{TEXT} (i32.store (i32.const 136) (i32.const 512))
                (i32.store (i32.const 140) (i32.const 65))"#
            ),
            "annotations",
        ),
    ] {
        let test_host = host_with_output(&output, None);
        assert_contains(&test_host.call_error("output", "{}"), expected);
        test_host.assert_healthy();
    }
}

#[test]
fn a_title_is_one_line_and_annotations_are_bounded() {
    let offered = |change: &dyn Fn(&mut GuestTool)| {
        let mut tool = GuestTool::new("other");
        change(&mut tool);
        TestHost::with_guest(&TestGuest::from_file("good").with_tools([tool]))
    };
    let titled = |title: &str| {
        let title = title.to_owned();
        offered(&move |tool| tool.title = Some(title.clone()))
    };
    let test_host = titled("Another tool");
    let title = &test_host.catalog().find("other").expect("it is there").declaration.title;
    assert_eq!(title.as_deref(), Some("Another tool"));
    for title in ["", "a\nb", "a\u{1b}[2J", &"x".repeat(129)] {
        assert_contains(titled(title).refusal_reason(), "the title of `other`");
    }
    let annotated = |count: usize| {
        offered(&move |tool| {
            tool.annotations = vec![("x-a".to_owned(), "1".to_owned()); count];
        })
    };
    assert!(annotated(64).refusal_reasons().is_empty());
    assert_contains(annotated(65).refusal_reason(), "`other` has 65 annotations");
}
