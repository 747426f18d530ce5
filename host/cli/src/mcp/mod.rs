//! `cofferdam mcp`: serves the tools to clients of the Model Context Protocol.

mod args;
mod http;
mod install;
mod serve;

pub(super) use args::McpArgs;
use args::McpCommand;

use super::args::CommonArgs;
use super::error::CommandResult;

pub(super) fn run(common: &CommonArgs, args: McpArgs) -> CommandResult {
    match args.command {
        McpCommand::Serve(args) => serve::run(common, args),
        McpCommand::Install(args) => install::install(common, &args),
        McpCommand::Uninstall(args) => install::uninstall(common, &args),
    }
}
