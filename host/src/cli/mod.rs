//! The commands, one file each, and how the parts are put together for them. The only room that prints.

mod admission;
mod args;
mod ask;
mod assemble;
mod audit;
mod bounds;
mod changes;
mod chat;
mod completions;
mod connect;
mod credentials;
mod demo;
mod dialog;
mod doctor;
mod error;
mod exit;
mod interrupt;
mod lock;
mod pages;
mod plugin;
mod policy;
mod print;
mod render;
mod request;
mod run;
mod sessions;
mod settle;
mod spent;
mod stdin;
mod tools;
mod trust;
mod undo;
mod usage;
mod wrap;

use std::process::ExitCode;

use clap::{CommandFactory as _, Parser as _};

use args::{Args, Command};

/// The whole program: reads the command line, does what it says, and tells how that went.
pub fn run() -> ExitCode {
    let Args { command, common, chat } = match Args::try_parse() {
        Ok(args) => args,
        Err(error) => return usage::report(&error),
    };
    let is_told_how = chat != args::ChatArgs::default();
    if command.is_some() && is_told_how {
        return usage::report(&args::misplaced());
    }
    let done = match command {
        None if is_told_how || chat::is_possible() => chat::run(&common, chat),
        None => return exit::help(args::Args::command()),
        Some(Command::Chat(args)) => chat::run(&common, args),
        Some(Command::Run(args)) => run::run(&common, args),
        Some(Command::Sessions(args)) => sessions::run(&common, &args),
        Some(Command::Undo(args)) => undo::run(&common, &args),
        Some(Command::Audit(args)) => audit::run(&common, &args),
        Some(Command::Demo(args)) => demo::run(&common, &args),
        Some(Command::Tools(args)) => tools::run(&common, args),
        Some(Command::Plugin(args)) => plugin::run(&common, args),
        Some(Command::Policy(args)) => policy::run(&common, args.command),
        Some(Command::Lock(args)) => lock::run(&common, &args),
        Some(Command::Trust(args)) => trust::run(&common, &args),
        Some(Command::Doctor) => doctor::run(&common),
        Some(Command::Completions { shell }) => completions::run(shell),
        Some(Command::CompileComponent) => return exit::of_helper(crate::sandbox::compile_from_stdin()),
        Some(Command::Guard { set_aside }) => return exit::of_helper(crate::sandbox::guard_supervisor(&set_aside)),
        Some(Command::Supervise) => return exit::of_helper(crate::sandbox::supervise_command()),
        Some(Command::Confined) => return exit::of_helper(crate::sandbox::turn_into_command()),
    };
    done.unwrap_or_else(|error| error.report())
}
