//! What the model works on, and how.

use std::path::PathBuf;

use clap::{Args as ClapArgs, ValueEnum};

use crate::agent::TurnLimit;
use crate::config::RequestTimeout;
use crate::policy::ApprovalMode;
use crate::tools::ParallelLimit;

#[derive(Debug, ClapArgs)]
pub(in crate::cli) struct RunArgs {
    /// The task; `-` reads it from standard input
    pub(in crate::cli) prompt: String,
    #[command(flatten)]
    pub(in crate::cli) model: ModelArgs,
    #[command(flatten)]
    pub(in crate::cli) calls: ToolCallArgs,
    #[command(flatten)]
    pub(in crate::cli) session: SessionChoice,
    /// Maximum number of turns with tool calls before the model must answer [default: 40]
    #[arg(long, value_name = "N")]
    pub(in crate::cli) max_tool_iterations: Option<TurnLimit>,
    /// Stop the request after this many seconds of work; time in a dialog does not count
    #[arg(long, value_name = "SECONDS")]
    pub(in crate::cli) timeout: Option<RequestTimeout>,
    /// What standard output gets
    #[arg(long, value_enum, default_value_t = OutputFormat::Text)]
    pub(in crate::cli) output: OutputFormat,
    /// Write what the model answers to a file that `--model replay:FILE` plays
    #[arg(long, value_name = "FILE")]
    pub(in crate::cli) record: Option<PathBuf>,
}

#[derive(Debug, Default, PartialEq, Eq, ClapArgs)]
pub(in crate::cli) struct ChatArgs {
    #[command(flatten)]
    pub(in crate::cli) model: ModelArgs,
    #[command(flatten)]
    pub(in crate::cli) calls: ToolCallArgs,
    #[command(flatten)]
    pub(in crate::cli) session: SessionChoice,
    /// Maximum number of turns with tool calls in one request before the model must answer
    /// [default: 40]
    #[arg(long, value_name = "N")]
    pub(in crate::cli) max_tool_iterations: Option<TurnLimit>,
}

/// Which model.
#[derive(Clone, Debug, Default, PartialEq, Eq, ClapArgs)]
pub(in crate::cli) struct ModelArgs {
    /// Such as anthropic:NAME, openai:NAME, ollama:NAME or replay:FILE [env: COFFERDAM_MODEL]
    #[arg(long, short)]
    pub(in crate::cli) model: Option<String>,
    /// The address of the provider's API, for any server that speaks its protocol [env:
    /// COFFERDAM_BASE_URL]
    #[arg(long, value_name = "URL")]
    pub(in crate::cli) base_url: Option<String>,
}

/// Where the conversation is kept.
#[derive(Clone, Debug, Default, PartialEq, Eq, ClapArgs)]
#[group(multiple = false)]
pub(in crate::cli) struct SessionChoice {
    /// Continue the newest session of this project, with its own model and address unless they are
    /// given
    #[arg(long = "continue", short = 'c')]
    pub(in crate::cli) newest: bool,
    /// Continue the session whose ID begins with this, with its own model and address unless they
    /// are given
    #[arg(long, value_name = "ID")]
    pub(in crate::cli) resume: Option<String>,
    /// Keep no record of what is said, nor of what is typed; the audit log is kept all the same
    #[arg(long)]
    pub(in crate::cli) no_session: bool,
}

/// How calls run.
#[derive(Clone, Debug, Default, PartialEq, Eq, ClapArgs)]
pub(in crate::cli) struct ToolCallArgs {
    /// What is allowed without asking: ask (nothing), plan (nothing is changed), auto-edit (writes)
    /// or auto (writes and commands). Requests are asked in each, unless a rule allows the host
    /// [default: ask]
    #[arg(long)]
    pub(in crate::cli) mode: Option<ApprovalMode>,
    /// How many calls run at the same time, 1 to 64 [default: the number of processors] [env:
    /// COFFERDAM_MAX_PARALLEL]
    #[arg(long, value_name = "N")]
    pub(in crate::cli) max_parallel: Option<ParallelLimit>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(in crate::cli) enum OutputFormat {
    /// The answer; what happens goes to standard error
    Text,
    /// One JSON object at the end
    Json,
    /// A JSON object a line, as things happen
    StreamJson,
}
