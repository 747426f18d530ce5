//! Arguments of `cofferdam sessions`.

use clap::{Args as ClapArgs, Subcommand};

use super::{ModelArgs, ToolCallArgs};

#[derive(Debug, ClapArgs)]
pub(crate) struct SessionsArgs {
    #[command(subcommand)]
    pub(crate) command: SessionsCommand,
    /// Include the sessions of all projects
    #[arg(long, global = true)]
    pub(crate) all: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum SessionsCommand {
    /// List sessions, newest first
    List {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Show the prompts, tool calls and answers of a session
    Show {
        /// ID of the session, or a unique prefix
        id: String,
        /// Print the requests as JSON
        #[arg(long)]
        json: bool,
    },
    /// Continue a session of this project in a chat
    Resume {
        /// ID of the session, or a unique prefix
        id: String,
        #[command(flatten)]
        model: ModelArgs,
        #[command(flatten)]
        calls: ToolCallArgs,
    },
    /// Print the full transcript of a session as JSON
    Export {
        /// ID of the session, or a unique prefix
        id: String,
    },
    /// Delete a session and its prompt history
    Delete {
        /// ID of the session, or a unique prefix
        id: String,
        /// Delete without asking
        #[arg(long, short)]
        yes: bool,
    },
}
