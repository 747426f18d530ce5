//! `cofferdam tools`.

mod call;
pub(super) mod list;
mod show;

pub(super) use call::not_made;

use super::args::{Common, ToolsArgs, ToolsCommand};
use super::error::Done;

pub(super) fn run(common: &Common, args: ToolsArgs) -> Done {
    match args.command {
        ToolsCommand::List { json } => list::run(common, json),
        ToolsCommand::Show { name, json } => show::run(common, &name, json),
        ToolsCommand::Call { name, input, calls, json } => call::run(common, name, &input, calls, json),
    }
}
