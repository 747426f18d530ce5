//! `cofferdam policy`: shows, checks and explains the policy.

mod args;
mod check;
mod enclosure;
mod explain;
mod missing_permission;
mod settings;
mod show;

pub(super) use args::PolicyArgs;
use args::PolicyCommand;

use super::args::CommonArgs;
use super::error::CommandResult;

pub(super) fn run(common: &CommonArgs, command: PolicyCommand) -> CommandResult {
    match command {
        PolicyCommand::Show { lists } => show::run(common, lists),
        PolicyCommand::Check { file } => check::run(common, file.as_deref()),
        PolicyCommand::Explain(args) => explain::run(common, &args),
    }
}
