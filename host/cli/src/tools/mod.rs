//! `cofferdam tools`: lists, shows and calls tools.

mod call;
pub(super) mod list;
mod show;

pub(super) use call::not_made;

use super::args::{CommonArgs, ToolsArgs, ToolsCommand};
use super::error::CommandResult;

pub(super) fn run(common: &CommonArgs, args: ToolsArgs) -> CommandResult {
    match args.command {
        ToolsCommand::List { json } => list::run(common, json),
        ToolsCommand::Show { name, json } => show::run(common, &name, json),
        ToolsCommand::Call { name, input, calls, json } => {
            call::run(common, name, &input, calls, json)
        }
    }
}
