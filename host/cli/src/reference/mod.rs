//! Documentation that is generated from the definition of the command line.

mod help_text;
mod man_pages;
mod markdown;

use clap::{Command, CommandFactory as _};

use super::args::CliArgs;
pub(super) use man_pages::run as write_man_pages;
pub use markdown::cli_reference;

/// Returns the definition of the command line with the properties that commands inherit, such as
/// global options and the full name.
fn built_command() -> Command {
    let mut command = CliArgs::command().disable_help_subcommand(true);
    command.build();
    command
}
