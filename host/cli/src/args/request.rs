//! Arguments of `cofferdam run` and `cofferdam chat`.

use std::path::PathBuf;

use clap::{Args as ClapArgs, ValueEnum};

use cofferdam::agent::TurnLimit;
use cofferdam::config::RequestTimeout;
use cofferdam::policy::ApprovalMode;
use cofferdam::tools::ParallelLimit;

#[derive(Debug, ClapArgs)]
pub(crate) struct RunArgs {
    /// The task; `-` reads it from standard input
    pub(crate) prompt: String,
    #[command(flatten)]
    pub(crate) model: ModelArgs,
    #[command(flatten)]
    pub(crate) calls: ToolCallArgs,
    #[command(flatten)]
    pub(crate) session: SessionChoice,
    /// Maximum number of turns with tool calls before the model must answer [default: 40]
    #[arg(long, value_name = "N")]
    pub(crate) max_tool_iterations: Option<TurnLimit>,
    /// Stop the request after this many seconds of work; time in a dialog does not count
    #[arg(long, value_name = "SECONDS")]
    pub(crate) timeout: Option<RequestTimeout>,
    /// What standard output gets
    #[arg(long, value_enum, default_value_t = OutputFormat::Text)]
    pub(crate) output: OutputFormat,
    /// Write what the model answers to a file that `--model replay:FILE` plays
    #[arg(long, value_name = "FILE")]
    pub(crate) record: Option<PathBuf>,
}

#[derive(Debug, Default, PartialEq, Eq, ClapArgs)]
pub(crate) struct ChatArgs {
    #[command(flatten)]
    pub(crate) model: ModelArgs,
    #[command(flatten)]
    pub(crate) calls: ToolCallArgs,
    #[command(flatten)]
    pub(crate) session: SessionChoice,
    /// Maximum number of turns with tool calls in one request before the model must answer
    /// [default: 40]
    #[arg(long, value_name = "N")]
    pub(crate) max_tool_iterations: Option<TurnLimit>,
}

/// Options that select the model and its server.
#[derive(Clone, Debug, Default, PartialEq, Eq, ClapArgs)]
pub(crate) struct ModelArgs {
    /// Such as anthropic:NAME, openai:NAME, ollama:NAME or replay:FILE [env: COFFERDAM_MODEL]
    #[arg(long, short)]
    pub(crate) model: Option<String>,
    /// The address of the provider's API, for any server that speaks its protocol [env:
    /// COFFERDAM_BASE_URL]
    #[arg(long, value_name = "URL")]
    pub(crate) base_url: Option<String>,
}

/// Options that select the session to continue, or that disable recording.
#[derive(Clone, Debug, Default, PartialEq, Eq, ClapArgs)]
#[group(multiple = false)]
pub(crate) struct SessionChoice {
    /// Continue the newest session of this project, with its own model and address unless they are
    /// given
    #[arg(long = "continue", short = 'c')]
    pub(crate) newest: bool,
    /// Continue the session whose ID begins with this, with its own model and address unless they
    /// are given
    #[arg(long, value_name = "ID")]
    pub(crate) resume: Option<String>,
    /// Keep no record of what is said, nor of what is typed; the audit log is kept all the same
    #[arg(long)]
    pub(crate) no_session: bool,
}

/// Options that control tool calls.
#[derive(Clone, Debug, Default, PartialEq, Eq, ClapArgs)]
pub(crate) struct ToolCallArgs {
    /// What is allowed without asking: ask (nothing), plan (nothing is changed), auto-edit (writes)
    /// or auto (writes and commands). Requests are asked in each, unless a rule allows the host
    /// [default: ask]
    #[arg(long)]
    pub(crate) mode: Option<ApprovalMode>,
    /// How many calls run at the same time, 1 to 64 [default: the number of processors] [env:
    /// COFFERDAM_MAX_PARALLEL]
    #[arg(long, value_name = "N")]
    pub(crate) max_parallel: Option<ParallelLimit>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum OutputFormat {
    /// The answer; what happens goes to standard error
    Text,
    /// One JSON object at the end
    Json,
    /// A JSON object a line, as things happen
    StreamJson,
}
