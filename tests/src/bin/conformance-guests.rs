//! Writes the tools that the official conformance suite of MCP expects of a server, as plugins:
//!
//!     conformance-guests DIRECTORY

use std::path::Path;
use std::process::ExitCode;

use cofferdam_tests::guests::{GuestTool, TestGuest};

/// A schema with a parameter that clients repeat in a header.
const HEADER_SCHEMA: &str = r#"{"type": "object",
  "properties": {"region": {"type": "string", "x-mcp-header": "Region"}}}"#;

/// A picture of one pixel.
const IMAGE: &str = r#"
(data (i32.const 600)
  "\89\50\4e\47\0d\0a\1a\0a\00\00\00\0d\49\48\44\52\00\00\00\01\00\00\00\01"
  "\08\06\00\00\00\1f\15\c4\89\00\00\00\0d\49\44\41\54\78\9c\63\f8\cf\c0\f0"
  "\1f\00\05\00\01\ff\89\99\3d\1d\00\00\00\00\49\45\4e\44\ae\42\60\82")
(func $call (result i32) (call $bytes @"image/png" (i32.const 600) (i32.const 70)))"#;

const SIMPLE_TEXT: &str = r#"
(func $call (result i32) (call $text @"This is a simple text response for testing."))"#;

const ERROR: &str = r#"
(func $call (result i32) (call $failed @"This tool intentionally returns an error for testing"))"#;

/// The host passes on a few lines of progress a second.
const PROGRESS: &str = r#"
(func $wait (call $poll.block (call $monotonic-clock.subscribe-duration (i64.const 300000000))))
(func $call (result i32)
  (call $progress.report @"0 of 100")
  (call $wait)
  (call $progress.report @"50 of 100")
  (call $wait)
  (call $progress.report @"100 of 100")
  (call $wait)
  (call $text @"done"))"#;

/// The tools that only have to be approved before they answer.
const CONFIRMED: [&str; 5] = [
    "test_elicitation",
    "test_streaming_elicitation",
    "test_input_required_result_elicitation",
    "test_input_required_result_request_state",
    "test_input_required_result_tampered_state",
];

fn guests() -> Vec<TestGuest> {
    let mut guests = vec![
        TestGuest::from_source("test_simple_text", SIMPLE_TEXT),
        TestGuest::from_source("test_logging_tool", SIMPLE_TEXT),
        TestGuest::from_source("test_image_content", IMAGE),
        TestGuest::from_source("test_error_handling", ERROR),
        TestGuest::from_source("test_tool_with_progress", PROGRESS),
        TestGuest::from_source("test_custom_header", SIMPLE_TEXT)
            .with_tools([GuestTool::new("test_custom_header").with_schema(HEADER_SCHEMA)]),
    ];
    guests.extend(CONFIRMED.map(|name| {
        let tool = GuestTool { confirm: true, ..GuestTool::new(name) };
        TestGuest::from_source(name, r#"(func $call (result i32) (call $text @"state-ok"))"#)
            .with_tools([tool])
    }));
    guests
}

fn main() -> ExitCode {
    let Some(directory) = std::env::args_os().nth(1) else {
        return ExitCode::FAILURE;
    };
    for guest in guests() {
        let file = Path::new(&directory).join(format!("{}.wasm", guest.name()));
        if std::fs::write(file, guest.component()).is_err() {
            return ExitCode::FAILURE;
        }
    }
    ExitCode::SUCCESS
}
