//! The program as it is shipped, built where tests can find it.

use std::process::ExitCode;

fn main() -> ExitCode {
    cofferdam::cli::run()
}
