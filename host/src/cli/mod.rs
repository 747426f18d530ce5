//! The commands, one file each, and how the parts are put together for them. The only room that prints.

mod args;
mod assemble;
mod completions;
mod demo;
mod dialog;
mod doctor;
mod error;
mod exit;
mod interrupt;
mod policy;
mod print;
mod render;
mod run;
mod sessions;
mod tools;
mod trust;

use std::process::ExitCode;

use clap::Parser as _;

use args::{Args, Command};

/// The whole program: reads the command line, does what it says, and tells how that went.
pub fn run() -> ExitCode {
    let Args { command, common } = Args::parse();
    let done = match command {
        Command::Run(args) => run::run(&common, args),
        Command::Sessions(args) => sessions::run(&common, &args),
        Command::Demo(args) => demo::run(&common, &args),
        Command::Tools(args) => tools::run(&common, args),
        Command::Policy(args) => policy::run(&common, args.command),
        Command::Trust(args) => trust::run(&common, &args),
        Command::Doctor => doctor::run(&common),
        Command::Completions { shell } => completions::run(shell),
        Command::CompileComponent => return exit::of_helper(crate::sandbox::compile_from_stdin()),
        Command::SuperviseCommand => return exit::of_helper(crate::sandbox::supervise_command()),
        Command::ConfinedCommand => return exit::of_helper(crate::sandbox::turn_into_command()),
    };
    done.unwrap_or_else(|error| error.report())
}
