//! The command-line program: one module per command. This is the only crate that prints.

mod args;
mod audit;
mod authoring;
mod background;
mod changes;
mod chat;
mod completions;
mod confirm;
mod connect;
mod contents;
mod context;
mod credentials;
mod demo;
mod diagnostics;
mod dialog;
mod diff;
mod doctor;
mod environment;
mod error;
mod exit;
mod interrupt;
mod json_text;
mod lock;
mod mcp;
mod pages;
mod paging;
mod plugin;
mod plugin_dialog;
mod policy;
mod policy_checks;
mod print;
mod reference;
mod render;
mod run;
mod secret_file;
mod sessions;
mod settle;
mod spending;
mod stdin;
mod tools;
mod trust;
mod undo;
mod usage;
mod user_dirs;
mod wrap;

use std::process::ExitCode;

use clap::CommandFactory as _;

use args::{CliArgs, CliCommand};
use cofferdam::HelperProcesses;
pub use environment::host_environment;
#[doc(hidden)]
pub use reference::cli_reference;

/// Runs the program: parses the command line, runs the command and reports errors.
pub fn run() -> ExitCode {
    let code = run_command();
    match print::output_error() {
        Some(problem) if code == ExitCode::SUCCESS => exit::report_lost_output(problem),
        Some(_) | None => code,
    }
}

fn run_command() -> ExitCode {
    HelperProcesses::init();
    let CliArgs { command, common, log, chat } = match CliArgs::try_parse_with_sources() {
        Ok(args) => args,
        Err(error) => return usage::report(&error),
    };
    let has_chat_options = chat != args::ChatArgs::default();
    if command.is_some() && has_chat_options {
        return usage::report(&args::misplaced_options_error());
    }
    if let Err(error) =
        diagnostics::init(&log, &common.environment, draws_on_terminal(command.as_ref()))
    {
        return error.report();
    }
    let result = match command {
        None if has_chat_options || chat::is_available() => chat::run(&common, chat),
        None => return exit::print_help(args::CliArgs::command()),
        Some(CliCommand::Chat(args)) => chat::run(&common, args),
        Some(CliCommand::Run(args)) => run::run(&common, args),
        Some(CliCommand::Sessions(args)) => sessions::run(&common, &args),
        Some(CliCommand::Undo(args)) => undo::run(&common, &args),
        Some(CliCommand::Diff(args)) => diff::run(&common, &args),
        Some(CliCommand::Audit(args)) => audit::run(&common, &args),
        Some(CliCommand::Demo(args)) => demo::run(&common, &args),
        Some(CliCommand::Tools(args)) => tools::run(&common, args),
        Some(CliCommand::Plugin(args)) => plugin::run(&common, args),
        Some(CliCommand::Policy(args)) => policy::run(&common, args.command),
        Some(CliCommand::Mcp(args)) => mcp::run(&common, args),
        Some(CliCommand::Lock(args)) => lock::run(&common, &args),
        Some(CliCommand::Trust(args)) => trust::run(&common, &args),
        Some(CliCommand::Doctor) => doctor::run(&common),
        Some(CliCommand::Completions { shell }) => completions::run(shell),
        Some(CliCommand::Man { directory }) => reference::write_man_pages(directory.as_deref()),
    };
    result.unwrap_or_else(|error| error.report())
}

/// Returns whether a command shows a chat that is redrawn on the terminal.
fn draws_on_terminal(command: Option<&CliCommand>) -> bool {
    let is_chat = match command {
        None | Some(CliCommand::Chat(_)) => true,
        Some(CliCommand::Sessions(args)) => {
            matches!(args.command, args::SessionsCommand::Resume { .. })
        }
        Some(_) => false,
    };
    is_chat && chat::draws_on_terminal()
}
