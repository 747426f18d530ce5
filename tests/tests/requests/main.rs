//! The program against scripted providers: whole requests from the command line to the wire and
//! back, under the rules that the names of the tests begin with.

#![expect(clippy::expect_used, reason = "what a test cannot set up, it cannot test")]

mod abort;
mod answers;
mod approval;
mod background_checkpoints;
mod background_commands;
mod bounded_settings;
mod call_ids;
mod changed_files;
mod command_line;
mod compaction;
mod concurrent_runs;
mod demo;
mod diagnostics;
mod dialog;
mod dialog_sizes;
mod display;
mod endless_streams;
mod failures;
mod history;
mod instruction_files;
mod interventions;
mod invalid_calls;
mod json_escapes;
mod json_output;
mod openai_responses;
mod outcomes;
mod plan_mode;
mod planted_repository;
mod plugin_acceptance;
mod policy;
mod policy_advice;
mod policy_explain;
mod random_transcripts;
mod recording;
mod repetition;
mod research;
mod ripgrep;
mod scheduling;
mod streams;
mod submit;
mod todo_and_react;
mod tools_command;
mod trust;
mod turn_limit;
mod web_fetch;

use cofferdam_tests::program::TestHome;

const PROGRAM: &str = env!("CARGO_BIN_EXE_cofferdam-under-test");

/// A home for one test.
fn new_home() -> TestHome {
    TestHome::new(PROGRAM, env!("CARGO_TARGET_TMPDIR"))
}
