//! The command line.

use std::path::PathBuf;

use clap::{Args as ClapArgs, Parser, Subcommand, ValueEnum};

use super::audit::AuditArgs;
use super::plugin::PluginArgs;
use super::policy::PolicyArgs;
use crate::agent::TurnLimit;
use crate::config::{Flags, Timeout};
use crate::policy::{Mode, Profile};
use crate::tools::ParallelLimit;

/// Runs a coding agent whose every tool is a WebAssembly component with exactly the files, commands and hosts it was granted.
#[derive(Debug, Parser)]
#[command(
    name = "cofferdam",
    version,
    after_help = "Examples:\n  \
        cofferdam                                     a conversation about the current folder, at a terminal\n  \
        cofferdam demo                                a recorded conversation with live tools; needs nothing\n  \
        cofferdam run \"Why does the test fail?\"       works on the current folder\n  \
        cofferdam run --continue \"And now fix it\"     goes on where the last one ended\n  \
        cofferdam tools call grep '{\"pattern\":\"TODO\"}'  one tool in its sandbox, without a model\n  \
        cofferdam doctor                              what this machine can enforce, and which model answers"
)]
pub(super) struct Args {
    /// What to do; at a terminal, without any, a conversation
    #[command(subcommand)]
    pub(super) command: Option<Command>,
    #[command(flatten)]
    pub(super) common: Common,
}

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Work on a task
    Run(RunArgs),
    /// Talk; what `cofferdam` alone does at a terminal
    Chat(ChatArgs),
    /// List, show, export and delete what was said and done
    Sessions(SessionsArgs),
    /// Take back the last change that a tool made to files of this project
    Undo(UndoArgs),
    /// Show, check and export what was decided and done
    Audit(AuditArgs),
    /// Play a recorded conversation on a sample project, with live sandboxed tools
    Demo(DemoArgs),
    /// See the tools, and call one without a model
    Tools(ToolsArgs),
    /// Write, build, test and inspect plugins; add, update and remove them
    Plugin(PluginArgs),
    /// See what is allowed, asked and denied, and why
    Policy(PolicyArgs),
    /// Trust the policy file of this project, with exactly its present content
    #[command(after_help = "Examples:\n  \
        cofferdam trust                     shows the file and asks\n  \
        cofferdam trust --show              tells whether it is trusted\n  \
        cofferdam trust --revoke\n  \
        cofferdam trust --digest sha256:…   without a terminal: for a file that you have read elsewhere\n\n\
        The file of a project is .cofferdam/policy.toml. Until it is trusted it can tighten and not loosen.")]
    Trust(TrustArgs),
    /// Accept the plugins of the configuration, and of --plugin, as they are now
    #[command(after_help = "Examples:\n  \
        cofferdam lock                      shows what each plugin asks for, and asks\n  \
        cofferdam lock --check              tells which are not what was accepted; exit code 1 if any\n  \
        cofferdam lock --yes --plugin FILE  without a terminal\n\n\
        What was accepted is kept in cofferdam.lock beside the configuration. A plugin that is not in it, or has another\n\
        content, asks at a terminal and is refused elsewhere; with --locked nothing runs then.")]
    Lock(LockArgs),
    /// Tell what this machine can enforce, which model is reachable, and where things are kept
    Doctor,
    /// Print completions for a shell
    #[command(after_help = "Example:\n  cofferdam completions bash > ~/.local/share/bash-completion/completions/cofferdam")]
    Completions {
        /// Which shell
        shell: clap_complete::Shell,
    },
    /// Compile a component from standard input; the program starts itself so
    #[command(hide = true)]
    CompileComponent,
    /// Run a command in a sandbox and look after it; the program starts itself so
    #[command(hide = true, name = "supervise-command")]
    Supervise,
    /// Confine itself and become a command; the program starts itself so
    #[command(hide = true, name = "confined-command")]
    Confined,
}

/// What every command takes.
#[derive(Clone, Debug, ClapArgs)]
pub(super) struct Common {
    /// The folder that tools see; nothing outside of it
    #[arg(long, short = 'C', global = true, value_name = "DIR", default_value = ".")]
    pub(super) workspace: PathBuf,
    /// Load a plugin besides the built-in ones (may be given more than once)
    #[arg(long = "plugin", global = true, value_name = "FILE.wasm")]
    pub(super) plugins: Vec<PathBuf>,
    /// Ask nobody about plugins: nothing runs unless each is exactly what was accepted
    #[arg(long, global = true)]
    pub(super) locked: bool,
    /// The ready-made policy to build on: read-only, develop or locked-down [default: develop]
    #[arg(long, global = true, value_name = "NAME")]
    pub(super) profile: Option<Profile>,
    /// The configuration file, in place of $XDG_CONFIG_HOME/cofferdam/config.toml
    #[arg(long, global = true, value_name = "FILE")]
    pub(super) config: Option<PathBuf>,
}

#[derive(Debug, ClapArgs)]
#[command(after_help = "Examples:\n  \
    cofferdam run \"Fix the failing test in src/parser.rs\"\n  \
    cofferdam run --model ollama:qwen3-coder \"Explain this project\"\n  \
    cofferdam run --base-url http://localhost:8000/v1 --model openai:my-model \"…\"\n  \
    git diff | cofferdam run - --output json\n  \
    cofferdam run --continue \"Now add a test for it\"\n  \
    cofferdam run --resume 5f0c \"…\"                  `cofferdam sessions list` shows the names\n  \
    cofferdam run --record session.jsonl \"…\"      then: cofferdam run --model replay:session.jsonl \"…\"\n\n\
    Exit codes: 0 answered, 3 limit of turns, 4 empty, 5 rejected, 6 timed out, 7 provider error, 8 overflow,\n\
    70 internal error, 78 configuration, 130 aborted.")]
pub(super) struct RunArgs {
    /// The task; `-` reads it from standard input
    pub(super) prompt: String,
    #[command(flatten)]
    pub(super) model: ModelArgs,
    #[command(flatten)]
    pub(super) calls: CallArgs,
    #[command(flatten)]
    pub(super) session: SessionChoice,
    /// After so many turns with calls the model has to answer [default: 40]
    #[arg(long, value_name = "N")]
    pub(super) max_tool_iterations: Option<TurnLimit>,
    /// After so many seconds at work the request is stopped; time in a dialog does not count
    #[arg(long, value_name = "SECONDS")]
    pub(super) timeout: Option<Timeout>,
    /// What standard output gets
    #[arg(long, value_enum, default_value_t = Output::Text)]
    pub(super) output: Output,
    /// Write what the model answers to a file that `--model replay:FILE` plays
    #[arg(long, value_name = "FILE")]
    pub(super) record: Option<PathBuf>,
}

#[derive(Debug, Default, ClapArgs)]
#[command(after_help = "Examples:\n  \
    cofferdam chat --continue                     goes on where the last session of this project ended\n  \
    cofferdam chat --mode plan                    looks and talks, and changes nothing\n  \
    cofferdam chat --model ollama:qwen3-coder\n  \
    cofferdam chat < questions.txt                one request a line; nobody can be asked\n\n\
    /help at the prompt lists the commands. Exit codes: 0 left, 130 left by Ctrl-C during a request; where the\n\
    lines come from a pipe, that of the last request. With TERM=dumb it is all plain lines.")]
pub(super) struct ChatArgs {
    #[command(flatten)]
    pub(super) model: ModelArgs,
    #[command(flatten)]
    pub(super) calls: CallArgs,
    #[command(flatten)]
    pub(super) session: SessionChoice,
    /// After so many turns with calls in one request the model has to answer [default: 40]
    #[arg(long, value_name = "N")]
    pub(super) max_tool_iterations: Option<TurnLimit>,
}

/// Which model.
#[derive(Clone, Debug, Default, ClapArgs)]
pub(super) struct ModelArgs {
    /// Such as anthropic:NAME, openai:NAME, ollama:NAME or replay:FILE [env: COFFERDAM_MODEL]
    #[arg(long, short)]
    pub(super) model: Option<String>,
    /// The address of the provider's API, for any server that speaks its protocol [env: COFFERDAM_BASE_URL]
    #[arg(long, value_name = "URL")]
    pub(super) base_url: Option<String>,
}

/// Where what is said and done is kept.
#[derive(Clone, Debug, Default, ClapArgs)]
#[group(multiple = false)]
pub(super) struct SessionChoice {
    /// Go on with the newest session of this project
    #[arg(long = "continue", short = 'c')]
    pub(super) newest: bool,
    /// Go on with the session whose name begins so
    #[arg(long, value_name = "ID")]
    pub(super) resume: Option<String>,
    /// Keep no record of what is said; the audit log is kept all the same
    #[arg(long)]
    pub(super) no_session: bool,
}

/// How calls run.
#[derive(Clone, Debug, Default, ClapArgs)]
pub(super) struct CallArgs {
    /// What is allowed without asking: ask, plan (nothing is changed), auto-edit (writes) or auto [default: ask]
    #[arg(long)]
    pub(super) mode: Option<Mode>,
    /// How many calls run at the same time, 1 to 64 [default: the number of processors] [env: COFFERDAM_MAX_PARALLEL]
    #[arg(long, value_name = "N")]
    pub(super) max_parallel: Option<ParallelLimit>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum Output {
    /// The answer; what happens goes to standard error
    Text,
    /// One JSON object at the end
    Json,
    /// A JSON object a line, as things happen
    StreamJson,
}

#[derive(Debug, ClapArgs)]
#[command(after_help = "Examples:\n  \
    cofferdam undo --list       what can be taken back, the newest first\n  \
    cofferdam undo              takes the newest change back; once more for the one before it\n  \
    cofferdam undo --force      even if the files were changed since\n\n\
    The last 20 changes of each project are kept, in $XDG_STATE_HOME/cofferdam/undo, for your eyes only. What commands\n\
    changed is not among them.\n\n\
    Exit code: 0 if it was taken back, 1 if there is nothing to take back, or files were changed since.")]
pub(super) struct UndoArgs {
    /// List what can be taken back, and change nothing
    #[arg(long)]
    pub(super) list: bool,
    /// Put back what was there even where files were changed since; those changes are lost
    #[arg(long, conflicts_with = "list")]
    pub(super) force: bool,
    /// As JSON
    #[arg(long)]
    pub(super) json: bool,
}

#[derive(Debug, ClapArgs)]
pub(super) struct DemoArgs {
    /// Do not wait between the recorded words
    #[arg(long)]
    pub(super) fast: bool,
    /// Keep the sample project and say where it is
    #[arg(long)]
    pub(super) keep: bool,
}

#[derive(Debug, ClapArgs)]
pub(super) struct ToolsArgs {
    #[command(subcommand)]
    pub(super) command: ToolsCommand,
}

#[derive(Debug, Subcommand)]
pub(super) enum ToolsCommand {
    /// List all tools with their tier and what they may touch
    List {
        /// As JSON
        #[arg(long)]
        json: bool,
    },
    /// Show one tool: what it asks for, what it was granted, its imports, its schema
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
        Exit code: 0 if the tool did what was asked, 1 if its result is an error.")]
    Call {
        /// The tool
        name: String,
        /// Its input, a JSON object; `-` reads it from standard input
        #[arg(default_value = "{}")]
        input: String,
        #[command(flatten)]
        calls: CallArgs,
        /// The whole result as JSON
        #[arg(long)]
        json: bool,
    },
}

#[derive(Debug, ClapArgs)]
#[command(after_help = "Examples:\n  \
    cofferdam sessions list                  those of this project, newest first\n  \
    cofferdam sessions list --all --json     those of all projects, for a program\n  \
    cofferdam sessions show 5f0c             a session is named by any unique beginning\n  \
    cofferdam sessions resume 5f0c           the same as: cofferdam chat --resume 5f0c\n  \
    cofferdam sessions export 5f0c > said.json\n  \
    cofferdam sessions delete 5f0c\n\n\
    A request is recorded unless it says --no-session. Sessions are in $XDG_STATE_HOME/cofferdam/sessions, for your eyes only.")]
pub(super) struct SessionsArgs {
    #[command(subcommand)]
    pub(super) command: SessionsCommand,
    /// The sessions of all projects, not of this one alone
    #[arg(long, global = true)]
    pub(super) all: bool,
}

#[derive(Debug, Subcommand)]
pub(super) enum SessionsCommand {
    /// List sessions, newest first
    List {
        /// As JSON
        #[arg(long)]
        json: bool,
    },
    /// Show what was said and done in a session
    Show {
        /// The beginning of its name
        id: String,
        /// Its requests as JSON
        #[arg(long)]
        json: bool,
    },
    /// Go on with a session of this project, as a conversation
    Resume {
        /// The beginning of its name
        id: String,
        #[command(flatten)]
        model: ModelArgs,
        #[command(flatten)]
        calls: CallArgs,
    },
    /// Print the whole transcript of a session as JSON
    Export {
        /// The beginning of its name
        id: String,
    },
    /// Delete a session for good
    Delete {
        /// The beginning of its name
        id: String,
        /// Do not ask
        #[arg(long, short)]
        yes: bool,
    },
}

#[derive(Debug, ClapArgs)]
#[group(multiple = false)]
pub(super) struct LockArgs {
    /// Only tell how they stand
    #[arg(long)]
    pub(super) check: bool,
    /// Accept all of them without being asked
    #[arg(long)]
    pub(super) yes: bool,
}

#[derive(Debug, ClapArgs)]
#[group(multiple = false)]
pub(super) struct TrustArgs {
    /// Tell whether the file is trusted, and change nothing
    #[arg(long)]
    pub(super) show: bool,
    /// Trust it no more
    #[arg(long)]
    pub(super) revoke: bool,
    /// Trust it without being asked, if this is its SHA-256
    #[arg(long, value_name = "DIGEST")]
    pub(super) digest: Option<String>,
}

impl Common {
    /// What was said on the command line, for the configuration.
    pub(super) fn flags(&self, model: ModelArgs, calls: CallArgs, max_tool_iterations: Option<TurnLimit>) -> Flags {
        Flags {
            model: model.model,
            base_url: model.base_url,
            mode: calls.mode,
            max_parallel: calls.max_parallel,
            max_tool_iterations,
            timeout: None,
            profile: self.profile,
            plugins: self.plugins.clone(),
        }
    }
}
