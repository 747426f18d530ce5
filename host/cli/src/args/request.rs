//! Arguments of `cofferdam run` and `cofferdam chat`.

use std::path::PathBuf;

use clap::{Args as ClapArgs, ValueEnum};

use cofferdam::agent::ParallelLimit;
use cofferdam::agent::TurnLimit;
use cofferdam::config::RequestTimeout;
use cofferdam::policy::ApprovalMode;

#[derive(Debug, ClapArgs)]
pub(crate) struct RunArgs {
    /// Prompt for the model; `-` reads it from standard input
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
    /// Time limit of the request, in seconds; time in approval dialogs does not count
    #[arg(long, value_name = "SECONDS")]
    pub(crate) timeout: Option<RequestTimeout>,
    /// Format of standard output
    #[arg(long, value_enum, default_value_t = OutputFormat::Text)]
    pub(crate) output: OutputFormat,
    /// Record the responses of the model to a file, for `--model replay:FILE`
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
    /// Maximum number of turns with tool calls before the model must answer a prompt [default: 40]
    #[arg(long, value_name = "N")]
    pub(crate) max_tool_iterations: Option<TurnLimit>,
}

/// Options that select the model and its server.
#[derive(Clone, Debug, Default, PartialEq, Eq, ClapArgs)]
pub(crate) struct ModelArgs {
    /// Model, such as anthropic:NAME, openai:NAME, ollama:NAME or replay:FILE [env:
    /// COFFERDAM_MODEL]
    #[arg(long, short)]
    pub(crate) model: Option<String>,
    /// Base URL of the API, for any server that is compatible with the provider [env:
    /// COFFERDAM_BASE_URL]
    #[arg(long, value_name = "URL")]
    pub(crate) base_url: Option<String>,
}

/// Options that select the session to continue, or that disable recording.
#[derive(Clone, Debug, Default, PartialEq, Eq, ClapArgs)]
#[group(multiple = false)]
pub(crate) struct SessionChoice {
    /// Continue the newest session of this project, with its model and base URL unless others are
    /// given
    #[arg(long = "continue", short = 'c')]
    pub(crate) newest: bool,
    /// Continue the session whose ID has this prefix, with its model and base URL unless others are
    /// given
    #[arg(long, value_name = "ID")]
    pub(crate) resume: Option<String>,
    /// Record neither the session nor the prompt history; the audit log is still written
    #[arg(long)]
    pub(crate) no_session: bool,
}

/// Options that control tool calls.
#[derive(Clone, Debug, Default, PartialEq, Eq, ClapArgs)]
pub(crate) struct ToolCallArgs {
    /// Approval mode: `ask` asks before file changes and commands, `plan` denies both until you
    /// accept a plan, `auto-edit` allows file changes, `auto` allows both. HTTP requests of tools
    /// need approval in every mode unless a rule allows the host [default: ask]
    #[arg(long)]
    pub(crate) mode: Option<ApprovalMode>,
    /// Maximum number of tool calls that run at the same time, 1 to 64 [default: number of
    /// processors] [env: COFFERDAM_MAX_PARALLEL]
    #[arg(long, value_name = "N")]
    pub(crate) max_parallel: Option<ParallelLimit>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum OutputFormat {
    /// Print only the answer; progress goes to standard error
    Text,
    /// Print one JSON object when the request ends
    Json,
    /// Print one JSON object per line for each event
    StreamJson,
}
