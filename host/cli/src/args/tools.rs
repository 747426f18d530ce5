//! Arguments of `cofferdam tools`.

use clap::{Args as ClapArgs, Subcommand};

use super::ToolCallArgs;

#[derive(Debug, ClapArgs)]
pub(crate) struct ToolsArgs {
    #[command(subcommand)]
    pub(crate) command: ToolsCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ToolsCommand {
    /// List all tools with their tiers (scheduling classes) and permissions
    #[command(after_help = "Examples:\n  \
        cofferdam tools list\n  \
        cofferdam tools list --plugin my_tool.wasm")]
    List {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Show the requested and effective permissions, limits, imports and schema of a tool
    #[command(after_help = "Examples:\n  \
        cofferdam tools show bash\n  \
        cofferdam tools show my_tool.wasm     # also works for a plugin that is not accepted")]
    Show {
        /// Name of a tool, or path of a plugin file
        name: String,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Call one tool in its sandbox, without a model
    #[command(after_help = "Examples:\n  \
        cofferdam tools call read_file '{\"path\":\"README.md\"}'\n  \
        cofferdam tools call bash '{\"command\":\"make test\"}' --mode auto\n  \
        cofferdam tools call my_tool '{}' --plugin my_tool.wasm\n\n\
        Control characters of the result are escaped at a terminal, and unchanged in a pipe or a \
        file.\n\n\
        Exit codes: 0 the tool succeeded, 1 the result is an error.")]
    Call {
        /// Name of the tool
        name: String,
        /// Input of the tool, a JSON object; `-` reads it from standard input
        #[arg(default_value = "{}")]
        input: String,
        #[command(flatten)]
        calls: ToolCallArgs,
        /// Print the whole result as JSON
        #[arg(long)]
        json: bool,
    },
}
