//! The command-line program: one module per command. This is the only crate that prints.

mod args;
mod audit;
mod authoring;
mod changes;
mod chat;
mod completions;
mod confirm;
mod connect;
mod contents;
mod context;
mod credentials;
mod demo;
mod dialog;
mod doctor;
mod environment;
mod error;
mod exit;
mod interrupt;
mod lock;
mod pages;
mod plugin;
mod plugin_gate;
mod policy;
mod policy_checks;
mod print;
mod render;
mod request;
mod run;
mod sandbox_setup;
mod sessions;
mod settle;
mod spending;
mod stdin;
mod tools;
mod trust;
mod undo;
mod usage;
mod wrap;

use std::process::ExitCode;

use clap::{CommandFactory as _, Parser as _};

use args::{CliArgs, CliCommand};
pub use environment::host_environment;

/// Runs the program: parses the command line, runs the command and reports errors.
pub fn run() -> ExitCode {
    let CliArgs { command, common, chat } = match CliArgs::try_parse() {
        Ok(args) => args,
        Err(error) => return usage::report(&error),
    };
    let has_chat_options = chat != args::ChatArgs::default();
    if command.is_some() && has_chat_options {
        return usage::report(&args::misplaced_options_error());
    }
    let result = match command {
        None if has_chat_options || chat::is_available() => chat::run(&common, chat),
        None => return exit::print_help(args::CliArgs::command()),
        Some(CliCommand::Chat(args)) => chat::run(&common, args),
        Some(CliCommand::Run(args)) => run::run(&common, args),
        Some(CliCommand::Sessions(args)) => sessions::run(&common, &args),
        Some(CliCommand::Undo(args)) => undo::run(&common, &args),
        Some(CliCommand::Audit(args)) => audit::run(&common, &args),
        Some(CliCommand::Demo(args)) => demo::run(&common, &args),
        Some(CliCommand::Tools(args)) => tools::run(&common, args),
        Some(CliCommand::Plugin(args)) => plugin::run(&common, args),
        Some(CliCommand::Policy(args)) => policy::run(&common, args.command),
        Some(CliCommand::Lock(args)) => lock::run(&common, &args),
        Some(CliCommand::Trust(args)) => trust::run(&common, &args),
        Some(CliCommand::Doctor) => doctor::run(&common),
        Some(CliCommand::Completions { shell }) => completions::run(shell),
        Some(CliCommand::CompileComponent) => {
            return exit::helper_exit_code(cofferdam::sandbox::compile_from_stdin());
        }
        Some(CliCommand::Guard { set_aside }) => {
            return exit::helper_exit_code(cofferdam::sandbox::guard_supervisor(&set_aside));
        }
        Some(CliCommand::Supervise) => {
            return exit::helper_exit_code(cofferdam::sandbox::supervise_command());
        }
        Some(CliCommand::Confined) => {
            return exit::helper_exit_code(cofferdam::sandbox::exec_confined_command());
        }
    };
    result.unwrap_or_else(|error| error.report())
}
