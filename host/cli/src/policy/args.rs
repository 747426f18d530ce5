//! Arguments of `cofferdam policy`.

use std::path::PathBuf;

use clap::{Args as ClapArgs, Subcommand};

use cofferdam::policy::ApprovalMode;

#[derive(Debug, ClapArgs)]
pub(crate) struct PolicyArgs {
    #[command(subcommand)]
    pub(crate) command: PolicyCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum PolicyCommand {
    /// Show all rules in force and their files
    ///
    /// With `--profile NAME`, shows the text of that profile instead.
    #[command(after_help = "Examples:\n  \
        cofferdam policy show\n  \
        cofferdam policy show --lists                 shows the built-in lists of paths with \
        reasons\n  \
        cofferdam policy show --profile locked-down")]
    Show {
        /// Show the built-in lists of paths: hidden, protected, instructions, files that run code
        #[arg(long)]
        lists: bool,
    },
    /// Check policy files and run the tests of their rules
    #[command(after_help = "Examples:\n  \
        cofferdam policy check              checks the files of the system, the user and the \
        project\n  \
        cofferdam policy check policy.toml  checks one file\n\n\
        Exit codes: 0 if all files are valid and their tests pass, 78 otherwise.")]
    Check {
        /// Check this file instead of the files in force
        file: Option<PathBuf>,
    },
    /// Explain the decision about actions of a tool, and the rule behind it
    #[command(after_help = "Examples:\n  \
        cofferdam policy explain bash --command \"git push\"\n  \
        cofferdam policy explain write_file --write src/x.rs\n  \
        cofferdam policy explain grep --read .env\n  \
        cofferdam policy explain web_fetch --fetch docs.rs --mode auto\n  \
        cofferdam policy explain bash --connect github.com:22\n\n\
        Exit codes: 0 all actions are allowed, 1 an action needs approval or is denied.")]
    Explain(ExplainArgs),
}

#[derive(Debug, ClapArgs)]
pub(crate) struct ExplainArgs {
    /// Name of the tool
    pub(crate) tool: String,
    /// Command line to explain
    #[arg(long, value_name = "LINE")]
    pub(crate) command: Vec<String>,
    /// File or directory to read
    #[arg(long, value_name = "PATH")]
    pub(crate) read: Vec<String>,
    /// File or directory to change
    #[arg(long, value_name = "PATH")]
    pub(crate) write: Vec<String>,
    /// Explain an HTTP request to this host: HOST or HOST:PORT
    #[arg(long, value_name = "HOST")]
    pub(crate) fetch: Vec<String>,
    /// Explain a connection of a command to this host: HOST or HOST:PORT
    #[arg(long, value_name = "HOST")]
    pub(crate) connect: Vec<String>,
    /// HTTP method of the request
    #[arg(long, value_name = "METHOD", default_value = "GET")]
    pub(crate) method: String,
    /// Approval mode of the decision
    #[arg(long)]
    pub(crate) mode: Option<ApprovalMode>,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}
