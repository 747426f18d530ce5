//! `cofferdam completions`.

use std::process::ExitCode;

use clap::CommandFactory as _;

use super::args::Args;
use super::error::Done;

pub(super) fn run(shell: clap_complete::Shell) -> Done {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Args::command(), "cofferdam", &mut script);
    super::print::stdout_piece(&String::from_utf8_lossy(&script));
    Ok(ExitCode::SUCCESS)
}
