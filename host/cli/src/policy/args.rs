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
    /// Show all rules in force and the files they come from; with --profile NAME, that profile as
    /// it is written
    #[command(after_help = "Examples:\n  \
        cofferdam policy show\n  \
        cofferdam policy show --lists                 the built-in lists of paths, with a reason \
        for each\n  \
        cofferdam policy show --profile locked-down")]
    Show {
        /// The built-in lists of paths: hidden, protected, instructions, files that run code
        #[arg(long)]
        lists: bool,
    },
    /// Check policy files, with the tests that rules bring along
    #[command(after_help = "Examples:\n  \
        cofferdam policy check              all files of this system, user and project\n  \
        cofferdam policy check policy.toml  one file, wherever it is\n\n\
        Exit code: 0 if they are understood, 78 if one is not.")]
    Check {
        /// A file, in place of those in force
        file: Option<PathBuf>,
    },
    /// Tell what would become of something that a tool might do, and by which rule
    #[command(after_help = "Examples:\n  \
        cofferdam policy explain bash --command \"git push\"\n  \
        cofferdam policy explain write_file --write src/x.rs\n  \
        cofferdam policy explain grep --read .env\n  \
        cofferdam policy explain web_fetch --fetch docs.rs --mode auto\n\n\
        Exit code: 0 if all of it is allowed, 1 if something is asked or denied.")]
    Explain(ExplainArgs),
}

#[derive(Debug, ClapArgs)]
pub(crate) struct ExplainArgs {
    /// The tool
    pub(crate) tool: String,
    /// It runs this command line
    #[arg(long, value_name = "LINE")]
    pub(crate) command: Vec<String>,
    /// It reads this file or folder
    #[arg(long, value_name = "PATH")]
    pub(crate) read: Vec<String>,
    /// It changes this file or folder
    #[arg(long, value_name = "PATH")]
    pub(crate) write: Vec<String>,
    /// It sends a request there: HOST, or HOST:PORT
    #[arg(long, value_name = "HOST")]
    pub(crate) fetch: Vec<String>,
    /// By which method
    #[arg(long, value_name = "METHOD", default_value = "GET")]
    pub(crate) method: String,
    /// In this mode
    #[arg(long)]
    pub(crate) mode: Option<ApprovalMode>,
    /// As JSON
    #[arg(long)]
    pub(crate) json: bool,
}
