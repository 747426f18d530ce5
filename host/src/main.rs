//! The `cofferdam` program: see the library for what it is made of.

use std::process::ExitCode;

fn main() -> ExitCode {
    cofferdam::cli::run()
}
