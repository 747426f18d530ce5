//! `cofferdam policy`: what is allowed, and why.

mod args;
mod check;
mod explain;
mod lacking;
mod settings;
mod show;

pub(super) use args::PolicyArgs;
use args::PolicyCommand;

use super::args::Common;
use super::error::Done;

pub(super) fn run(common: &Common, command: PolicyCommand) -> Done {
    match command {
        PolicyCommand::Show { lists } => show::run(common, lists),
        PolicyCommand::Check { file } => check::run(common, file.as_deref()),
        PolicyCommand::Explain(args) => explain::run(common, &args),
    }
}
