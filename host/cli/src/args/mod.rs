//! The command line of the program, as `clap` types. Doc comments on fields are the help texts.

mod maintenance;
mod request;
mod sessions;
mod tools;

use std::path::PathBuf;

use clap::parser::ValueSource;
use clap::{Args as ClapArgs, CommandFactory as _, FromArgMatches as _, Parser, Subcommand};

use super::audit::AuditArgs;
use super::mcp::McpArgs;
use super::plugin::PluginArgs;
use super::policy::PolicyArgs;
use cofferdam::agent::TurnLimit;
use cofferdam::config::SettingsFlags;
use cofferdam::policy::PolicyProfile;
use cofferdam::sandbox::HostEnvironment;
pub(super) use maintenance::{DemoArgs, DiffArgs, LockArgs, TrustArgs, UndoArgs};
pub(super) use request::{ChatArgs, ModelArgs, OutputFormat, RunArgs, SessionChoice, ToolCallArgs};
pub(super) use sessions::{SessionsArgs, SessionsCommand};
pub(super) use tools::{ToolsArgs, ToolsCommand};

/// A coding agent that runs every tool as a WebAssembly component, with only the permissions of
/// that tool.
#[derive(Debug, Parser)]
#[command(
    name = "cofferdam",
    version,
    after_help = "Examples:\n  \
        cofferdam                                starts a chat in the current directory\n  \
        cofferdam --continue                     continues the newest session of this project\n  \
        cofferdam run \"Why does the test fail?\"  sends one prompt, and prints the answer\n  \
        cofferdam undo                           undoes the last change that a tool made\n  \
        cofferdam demo                           replays a recording; needs no model and no key\n  \
        cofferdam doctor                         shows which sandbox this machine supports\n\n\
        Without a command, cofferdam starts a chat at a terminal, and prints this help elsewhere."
)]
pub(super) struct CliArgs {
    /// The command; without one, a chat at a terminal
    #[command(subcommand)]
    pub(super) command: Option<CliCommand>,
    #[command(flatten)]
    pub(super) common: CommonArgs,
    #[command(flatten)]
    pub(super) log: LogArgs,
    #[command(flatten, next_help_heading = "Chat options")]
    pub(super) chat: ChatArgs,
}

impl CliArgs {
    /// Parses the command line of this process, and notes which options it really has.
    pub(super) fn try_parse_with_sources() -> Result<Self, clap::Error> {
        let matches = Self::command().try_get_matches()?;
        let mut args = Self::from_arg_matches(&matches)?;
        args.common.has_chosen_workspace =
            matches.value_source("workspace") == Some(ValueSource::CommandLine);
        Ok(args)
    }
}

#[derive(Debug, Subcommand)]
pub(super) enum CliCommand {
    /// Send one prompt, and print the answer
    #[command(after_help = "Examples:\n  \
        cofferdam run \"Fix the failing test in src/parser.rs\"\n  \
        cofferdam run --model ollama:qwen3-coder \"Explain this project\"\n  \
        cofferdam run --base-url http://localhost:8000/v1 --model openai:my-model \"…\"\n  \
        (echo 'Review this change:'; git diff) | cofferdam run - --output json\n  \
        cofferdam run --continue \"Now add a test for it\"\n  \
        cofferdam run --resume 5f0c \"…\"  # an ID from `cofferdam sessions list`\n  \
        cofferdam run --record session.jsonl \"…\"\n  \
        cofferdam run --model replay:session.jsonl \"…\"\n\n\
        JSON: the last line is an object of type `result` with the fields outcome, exit_code, \
        text, stop_reason, error, session, turns, usage, cost (null if unknown) and calls. Each \
        call has id, tool, status, duration_ms, denied (null, or code, reason and remedy) and \
        exit_code (null, or the exit code of its last command; 128 plus the signal if a signal \
        ended it). If the request could not start, the object has the same fields and the outcome \
        `not-started`. With stream-json, the first line also contains the session, and a \
        call_finished line contains the result of each call.\n\n\
        Exit codes: 0 answered, 1 could not start, 2 wrong usage, 3 turn limit reached, 4 empty \
        answer, 5 tool call rejected, 6 timed out, 7 provider error, 8 context window exceeded, \
        70 internal error, 74 output could not be written, 78 invalid configuration, workspace or \
        plugin, 130 aborted.")]
    Run(RunArgs),
    /// Start or continue a chat (the default at a terminal)
    #[command(after_help = "Examples:\n  \
        cofferdam chat --continue                  continues the newest session of this \
        project\n  \
        cofferdam chat --mode plan                 reads and plans, but changes nothing\n  \
        cofferdam chat --model ollama:qwen3-coder\n  \
        cofferdam chat < prompts.txt               sends each line as a prompt\n\n\
        /help in a chat lists its commands. If standard input is a pipe, actions that need \
        approval are denied. With TERM=dumb the chat prints plain lines.\n\n\
        Exit codes: 0 normal exit, 130 Ctrl-C during a request, 78 invalid configuration, \
        workspace or plugin. If standard input is a pipe: the exit code of the last request, or 1 \
        if the chat refused a line.")]
    Chat(ChatArgs),
    /// List, show, resume, export and delete sessions
    #[command(after_help = "Examples:\n  \
        cofferdam sessions list\n  \
        cofferdam sessions list --all --json\n  \
        cofferdam sessions show 5f0c             # accepts a unique prefix of the ID\n  \
        cofferdam sessions resume 5f0c           # is the same as: cofferdam chat --resume 5f0c\n  \
        cofferdam sessions export 5f0c > session.json\n  \
        cofferdam sessions delete 5f0c\n\n\
        Every request is recorded unless you pass --no-session. Sessions are stored in \
        $XDG_STATE_HOME/cofferdam/sessions, readable only by you.")]
    Sessions(SessionsArgs),
    /// Undo the last change that a tool made to files of this project
    #[command(after_help = "Examples:\n  \
        cofferdam undo --list       lists the changes that can be undone, newest first\n  \
        cofferdam undo              undoes the newest change; repeat it for earlier changes\n  \
        cofferdam undo --force      restores files even if they were changed since\n\n\
        The last 20 changes of each project, up to 128 MiB, are stored in \
        $XDG_STATE_HOME/cofferdam/undo, readable only by you. They contain the changes of \
        commands, except of commands that wrote the workspace directly.\n\n\
        Exit codes: 0 the change was undone, 1 there is nothing to undo, or files were changed \
        since.")]
    Undo(UndoArgs),
    /// Show what the last changes of tools and commands did
    #[command(after_help = "Examples:\n  \
        cofferdam diff              shows the change that `cofferdam undo` would undo\n  \
        cofferdam diff --last 3     shows the last three changes together\n\n\
        The diff compares the files before these changes with the workspace, so it contains your \
        own later changes of the same files. It covers the changes that undo keeps.\n\n\
        Exit codes: 0 the differences were shown, 1 the history cannot be read.")]
    Diff(DiffArgs),
    /// Show, verify, export and prune the audit log
    Audit(AuditArgs),
    /// Play a recorded conversation on a sample project, with live sandboxed tools
    #[command(after_help = "Examples:\n  \
        cofferdam demo\n  \
        cofferdam demo --fast\n  \
        cofferdam demo --keep       keeps the sample project\n\n\
        The demo needs no key and no network, and changes only its own sample project.")]
    Demo(DemoArgs),
    /// List and show tools, and call one without a model
    Tools(ToolsArgs),
    /// Create, build, test, inspect, add, update and remove plugins
    Plugin(PluginArgs),
    /// Serve the tools to clients of the Model Context Protocol, such as other agents
    Mcp(McpArgs),
    /// Show, check and explain the policy
    Policy(PolicyArgs),
    /// Trust the current content of this project's policy file
    #[command(after_help = "Examples:\n  \
        cofferdam trust                     shows the file, and asks for confirmation\n  \
        cofferdam trust --show              reports whether the file is trusted\n  \
        cofferdam trust --revoke\n  \
        cofferdam trust --digest sha256:…   works without a terminal, for a file you have \
        read\n\n\
        The policy file of a project is .cofferdam/policy.toml. It can only tighten the rules \
        until you trust its content.")]
    Trust(TrustArgs),
    /// Accept the current content of the configured plugins
    #[command(after_help = "Examples:\n  \
        cofferdam lock                      shows the requested permissions, and asks for \
        confirmation\n  \
        cofferdam lock --check              reports plugins that are not as accepted\n  \
        cofferdam lock --yes --plugin FILE  works without a terminal\n\n\
        This applies to the plugins in the configuration file and to plugins of --plugin. \
        Accepted plugins are recorded in cofferdam.lock, next to the configuration file. If a \
        plugin is new or has changed, cofferdam asks you at a terminal to accept it, and refuses \
        it elsewhere. With --locked, cofferdam does not start in this case.\n\n\
        Exit codes of --check: 0 all plugins are as accepted, 1 a plugin is not.")]
    Lock(LockArgs),
    /// Show which sandbox this machine supports, which model is used, and where files are stored
    Doctor,
    /// Print a completion script for a shell
    #[command(after_help = "Example:\n  cofferdam completions bash > \
            ~/.local/share/bash-completion/completions/cofferdam")]
    Completions {
        /// Name of the shell
        shell: clap_complete::Shell,
    },
    /// Print the man page, or write the pages of all commands to a directory
    #[command(after_help = "Examples:\n  \
        cofferdam man | man -l -                   shows the page of cofferdam(1)\n  \
        cofferdam man ~/.local/share/man/man1      installs the pages of all commands\n  \
        man cofferdam-run                          shows an installed page")]
    Man {
        /// Directory to write the pages to; it is created if it does not exist
        #[arg(value_name = "DIR")]
        directory: Option<PathBuf>,
    },
}

/// Options of the diagnostic log.
#[derive(Clone, Debug, ClapArgs)]
pub(super) struct LogArgs {
    /// Write diagnostic logs to standard error; `-vv` logs more. The logs never contain prompts,
    /// answers or secrets. COFFERDAM_LOG sets a filter instead, such as `cofferdam::model=trace`
    #[arg(long, short, global = true, action = clap::ArgAction::Count)]
    pub(super) verbose: u8,
    /// Append the log to a file instead of standard error; needs `-v` or COFFERDAM_LOG
    #[arg(long, global = true, value_name = "FILE")]
    pub(super) log_file: Option<PathBuf>,
}

/// Options that every command accepts.
#[derive(Clone, Debug, ClapArgs)]
pub(super) struct CommonArgs {
    /// Workspace directory; tools see nothing outside it
    #[arg(long, short = 'C', global = true, value_name = "DIR", default_value = ".")]
    pub(super) workspace: PathBuf,
    /// Load a plugin in addition to the built-in tools (repeatable)
    #[arg(long = "plugin", global = true, value_name = "FILE.wasm")]
    pub(super) plugins: Vec<PathBuf>,
    /// Fail if a plugin is new or changed, instead of asking
    #[arg(long, global = true)]
    pub(super) locked: bool,
    /// Built-in policy to start from: read-only, develop or locked-down; overrides the `profile` of
    /// your policy file [default: develop]
    #[arg(long, global = true, value_name = "NAME")]
    pub(super) profile: Option<PolicyProfile>,
    /// Configuration file [default: $XDG_CONFIG_HOME/cofferdam/config.toml]
    #[arg(long, global = true, value_name = "FILE")]
    pub(super) config: Option<PathBuf>,
    /// Whether the workspace is that of `-C`, and not the default.
    #[arg(skip)]
    pub(super) has_chosen_workspace: bool,
    // The environment of this process, which is read here only.
    #[arg(skip = crate::host_environment())]
    pub(super) environment: HostEnvironment,
}

impl CommonArgs {
    /// Collects the options that override the configuration, for a command with neither the options
    /// of the model nor those of tool calls.
    pub(super) fn common_flags(&self) -> SettingsFlags {
        self.flags(ModelArgs::default(), ToolCallArgs::default(), None)
    }

    /// Collects the command-line options that override the configuration.
    pub(super) fn flags(
        &self,
        model: ModelArgs,
        calls: ToolCallArgs,
        max_tool_iterations: Option<TurnLimit>,
    ) -> SettingsFlags {
        SettingsFlags {
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

/// The usage error for chat options before a subcommand, as in `cofferdam --mode plan run`.
pub(super) fn misplaced_options_error() -> clap::Error {
    let problem = "chat options such as --model and --mode belong after the command, as in \
        `cofferdam run --mode plan \"…\"`";
    CliArgs::command().error(clap::error::ErrorKind::ArgumentConflict, problem)
}
