//! `cofferdam completions`: prints a completion script for a shell.

use std::process::ExitCode;

use clap::CommandFactory as _;

use super::args::CliArgs;
use super::error::CommandResult;

pub(super) fn run(shell: clap_complete::Shell) -> CommandResult {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut CliArgs::command(), "cofferdam", &mut script);
    super::print::print_text(&String::from_utf8_lossy(&script));
    Ok(ExitCode::SUCCESS)
}
