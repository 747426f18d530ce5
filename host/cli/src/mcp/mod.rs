//! `cofferdam mcp`: serves the tools to clients of the Model Context Protocol, and manages MCP
//! servers whose tools the model can call.

mod args;
mod http;
mod install;
mod serve;
mod servers;

pub(super) use args::McpArgs;
use args::McpCommand;
pub(super) use servers::add_sources;

use super::args::CommonArgs;
use super::error::CommandResult;

pub(super) fn run(common: &CommonArgs, args: McpArgs) -> CommandResult {
    match args.command {
        McpCommand::Serve(args) => serve::run(common, args),
        McpCommand::Install(args) => install::install(common, &args),
        McpCommand::Uninstall(args) => install::uninstall(common, &args),
        McpCommand::Add(args) => servers::add(common, args),
        McpCommand::List { json } => servers::list(common, json),
        McpCommand::Inspect { name, json } => servers::inspect(common, &name, json),
        McpCommand::Login { name } => servers::login(common, &name),
        McpCommand::Logout { name } => servers::logout(common, &name),
        McpCommand::Remove { name } => servers::remove(common, &name),
    }
}
