//! The program against scripted providers: whole requests from the command line to the wire and back, under the rules
//! that the names of the tests begin with.

#![expect(clippy::expect_used, reason = "what a test cannot set up, it cannot test")]

mod abort;
mod answers;
mod approval;
mod beside;
mod bounds;
mod changed;
mod circles;
mod command_line;
mod compaction;
mod demo;
mod dialog;
mod display;
mod endless;
mod failures;
mod history;
mod ids;
mod instructions;
mod interventions;
mod json;
mod limit;
mod lock;
mod notes;
mod order;
mod outcomes;
mod plan_mode;
mod policy;
mod recording;
mod refused;
mod research;
mod responses;
mod ripgrep;
mod soup;
mod streams;
mod submit;
mod tools;
mod trust;
mod web;

use cofferdam_tests::program::Home;

const PROGRAM: &str = env!("CARGO_BIN_EXE_cofferdam-under-test");

/// A home for one test.
fn home() -> Home {
    Home::new(PROGRAM, env!("CARGO_TARGET_TMPDIR"))
}
