//! Arguments of `cofferdam sessions`.

use clap::{Args as ClapArgs, Subcommand};

use super::{ModelArgs, ToolCallArgs};

#[derive(Debug, ClapArgs)]
pub(crate) struct SessionsArgs {
    #[command(subcommand)]
    pub(crate) command: SessionsCommand,
    /// Those of all projects, not only this one
    #[arg(long, global = true)]
    pub(crate) all: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum SessionsCommand {
    /// List sessions, newest first
    List {
        /// As JSON
        #[arg(long)]
        json: bool,
    },
    /// Show what was said and done in a session
    Show {
        /// Its ID, or a unique prefix
        id: String,
        /// Its requests as JSON
        #[arg(long)]
        json: bool,
    },
    /// Continue a session of this project, as a conversation
    Resume {
        /// Its ID, or a unique prefix
        id: String,
        #[command(flatten)]
        model: ModelArgs,
        #[command(flatten)]
        calls: ToolCallArgs,
    },
    /// Print the whole transcript of a session as JSON
    Export {
        /// Its ID, or a unique prefix
        id: String,
    },
    /// Delete a session for good, with what was typed in it
    Delete {
        /// Its ID, or a unique prefix
        id: String,
        /// Do not ask
        #[arg(long, short)]
        yes: bool,
    },
}
