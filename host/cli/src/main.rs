//! The `cofferdam` program; the library crate contains all of its code.

use std::process::ExitCode;

fn main() -> ExitCode {
    cofferdam_cli::run()
}
