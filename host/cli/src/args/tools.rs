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
    /// List all tools with their tier and what they may touch
    #[command(after_help = "Examples:\n  \
        cofferdam tools list\n  \
        cofferdam tools list --plugin my_tool.wasm")]
    List {
        /// As JSON
        #[arg(long)]
        json: bool,
    },
    /// Show one tool: what it asks for, what it was granted, its imports, its schema
    #[command(after_help = "Examples:\n  \
        cofferdam tools show bash\n  \
        cofferdam tools show my_tool.wasm        all tools of a file, without accepting it")]
    Show {
        /// The tool, or the file of a plugin
        name: String,
        /// As JSON
        #[arg(long)]
        json: bool,
    },
    /// Run one tool in its sandbox, without any model
    #[command(after_help = "Examples:\n  \
        cofferdam tools call read_file '{\"path\":\"README.md\"}'\n  \
        cofferdam tools call bash '{\"command\":\"make test\"}' --mode auto\n  \
        cofferdam tools call my_tool '{}' --plugin my_tool.wasm\n\n\
        A result goes to a pipe or a file as it is; at a terminal its control characters are \
        escaped.\n\n\
        Exit code: 0 if the tool did what was asked, 1 if its result is an error.")]
    Call {
        /// The tool
        name: String,
        /// Its input, a JSON object; `-` reads it from standard input
        #[arg(default_value = "{}")]
        input: String,
        #[command(flatten)]
        calls: ToolCallArgs,
        /// The whole result as JSON
        #[arg(long)]
        json: bool,
    },
}
