//! `cofferdam policy`: what is allowed, and why.

mod check;
mod explain;
mod show;

use super::args::{Common, PolicyCommand};
use super::error::Done;

pub(super) fn run(common: &Common, command: PolicyCommand) -> Done {
    match command {
        PolicyCommand::Show => show::run(common),
        PolicyCommand::Check { file } => check::run(common, file.as_deref()),
        PolicyCommand::Explain(args) => explain::run(common, &args),
    }
}
