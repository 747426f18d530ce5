//! The command line of the program, as `clap` types. Doc comments on fields are the help texts.

mod maintenance;
mod request;
mod sessions;
mod tools;

use std::path::PathBuf;

use clap::{Args as ClapArgs, CommandFactory as _, Parser, Subcommand};

use super::audit::AuditArgs;
use super::plugin::PluginArgs;
use super::policy::PolicyArgs;
use cofferdam::agent::TurnLimit;
use cofferdam::config::SettingsFlags;
use cofferdam::policy::PolicyProfile;
use cofferdam::sandbox::HostEnvironment;
pub(super) use maintenance::{DemoArgs, LockArgs, TrustArgs, UndoArgs};
pub(super) use request::{ChatArgs, ModelArgs, OutputFormat, RunArgs, SessionChoice, ToolCallArgs};
pub(super) use sessions::{SessionsArgs, SessionsCommand};
pub(super) use tools::{ToolsArgs, ToolsCommand};

/// Runs a coding agent whose every tool is a WebAssembly component with exactly the files, commands
/// and hosts it was granted.
#[derive(Debug, Parser)]
#[command(
    name = "cofferdam",
    version,
    after_help = "Examples:\n  \
        cofferdam                                     a conversation about the current folder, at \
        a terminal\n  \
        cofferdam --continue                          continues the last one\n  \
        cofferdam demo                                a recorded conversation with live tools; \
        needs nothing\n  \
        cofferdam run \"Why does the test fail?\"       works on the current folder\n  \
        cofferdam tools call grep '{\"pattern\":\"TODO\"}'  one tool in its sandbox, without a \
        model\n  \
        cofferdam doctor                              what this machine can enforce, and which \
        model answers"
)]
pub(super) struct CliArgs {
    /// What to do; at a terminal, without any, a conversation
    #[command(subcommand)]
    pub(super) command: Option<CliCommand>,
    #[command(flatten)]
    pub(super) common: CommonArgs,
    #[command(flatten, next_help_heading = "Options of a conversation")]
    pub(super) chat: ChatArgs,
}

#[derive(Debug, Subcommand)]
pub(super) enum CliCommand {
    /// Work on a task
    #[command(after_help = "Examples:\n  \
        cofferdam run \"Fix the failing test in src/parser.rs\"\n  \
        cofferdam run --model ollama:qwen3-coder \"Explain this project\"\n  \
        cofferdam run --base-url http://localhost:8000/v1 --model openai:my-model \"…\"\n  \
        (echo 'Review this change:'; git diff) | cofferdam run - --output json\n  \
        cofferdam run --continue \"Now add a test for it\"\n  \
        cofferdam run --resume 5f0c \"…\"                  `cofferdam sessions list` shows the \
        IDs\n  \
        cofferdam run --record session.jsonl \"…\"      then: cofferdam run --model \
        replay:session.jsonl \"…\"\n\n\
        JSON: the last line is an object of the type `result` with outcome, exit_code, text, \
        stop_reason, error, session, turns, usage, cost (null if it is not known) and calls; each \
        call has id, tool, status, duration_ms, denied (null, or code, reason and remedy) and \
        exit_code (of its last command, 128 plus the signal if a signal ended it, or null). A \
        request that does not start has the outcome `not-started` and the same fields. With \
        stream-json the first line names the session, too, and a line call_finished holds what \
        each call came to.\n\n\
        Exit codes: 0 answered, 1 could not start, 2 wrong usage, 3 limit of turns, 4 empty, 5 \
        rejected, 6 timed out, 7 provider error, 8 overflow, 70 internal error, 78 configuration, \
        workspace or a named plugin, 130 aborted.")]
    Run(RunArgs),
    /// Hold a conversation (the default at a terminal)
    #[command(after_help = "Examples:\n  \
        cofferdam chat --continue                     continues the last session of this \
        project\n  \
        cofferdam chat --mode plan                    looks and talks, and changes nothing\n  \
        cofferdam chat --model ollama:qwen3-coder\n  \
        cofferdam chat < questions.txt                one request a line; nobody can be asked\n\n\
        /help at the prompt lists the commands. Exit codes: 0 left, 130 left by Ctrl-C during a \
        request; where the lines come from a pipe, that of the last request, or 1 if a line was \
        refused; 78 configuration, workspace or plugin. With TERM=dumb it is all plain lines.")]
    Chat(ChatArgs),
    /// List, show, resume, export and delete what was said and done
    #[command(after_help = "Examples:\n  \
        cofferdam sessions list                  those of this project, newest first\n  \
        cofferdam sessions list --all --json     those of all projects, for a program\n  \
        cofferdam sessions show 5f0c             any unique prefix of its ID names a session\n  \
        cofferdam sessions resume 5f0c           the same as: cofferdam chat --resume 5f0c\n  \
        cofferdam sessions export 5f0c > said.json\n  \
        cofferdam sessions delete 5f0c\n\n\
        A request is recorded unless --no-session is given. Sessions are in \
        $XDG_STATE_HOME/cofferdam/sessions, readable only by you.")]
    Sessions(SessionsArgs),
    /// Undo the last change that a tool made to files of this project
    #[command(after_help = "Examples:\n  \
        cofferdam undo --list       what can be undone, the newest first\n  \
        cofferdam undo              undoes the newest change; once more for the one before it\n  \
        cofferdam undo --force      even if the files were changed since\n\n\
        The last 20 changes of each project are kept, in $XDG_STATE_HOME/cofferdam/undo, readable \
        only by you. What commands changed is not among them.\n\n\
        Exit code: 0 if it was undone, 1 if there is nothing to undo, or files were changed \
        since.")]
    Undo(UndoArgs),
    /// Show, check and export what was decided and done
    Audit(AuditArgs),
    /// Play a recorded conversation on a sample project, with live sandboxed tools
    #[command(after_help = "Examples:\n  \
        cofferdam demo              needs neither a key nor a network, and changes only a sample \
        project of its own\n  \
        cofferdam demo --fast\n  \
        cofferdam demo --keep       leaves the sample project there to be looked at")]
    Demo(DemoArgs),
    /// See the tools, and call one without a model
    Tools(ToolsArgs),
    /// Write, build, test and inspect plugins; add, update and remove them
    Plugin(PluginArgs),
    /// Show what is allowed, needs approval or is denied, and why
    Policy(PolicyArgs),
    /// Trust the policy file of this project, with exactly its present content
    #[command(after_help = "Examples:\n  \
        cofferdam trust                     shows the file and asks\n  \
        cofferdam trust --show              tells whether it is trusted\n  \
        cofferdam trust --revoke\n  \
        cofferdam trust --digest sha256:…   without a terminal: for a file that you have read \
        elsewhere\n\n\
        The file of a project is .cofferdam/policy.toml. Until it is trusted it can tighten and \
        not loosen.")]
    Trust(TrustArgs),
    /// Accept the plugins of the configuration, and of --plugin, as they are now
    #[command(after_help = "Examples:\n  \
        cofferdam lock                      shows what each plugin asks for, and asks\n  \
        cofferdam lock --check              tells which are not what was accepted; exit code 1 if \
        any\n  \
        cofferdam lock --yes --plugin FILE  without a terminal\n\n\
        What was accepted is kept in cofferdam.lock beside the configuration. A plugin that is \
        missing from it, or whose content differs, needs your approval at a terminal and is \
        refused elsewhere; with --locked nothing runs at all.")]
    Lock(LockArgs),
    /// Tell what this machine can enforce, which model is used, and where things are kept
    Doctor,
    /// Print completions for a shell
    #[command(after_help = "Example:\n  cofferdam completions bash > \
            ~/.local/share/bash-completion/completions/cofferdam")]
    Completions {
        /// Which shell
        shell: clap_complete::Shell,
    },
    /// Compile a component from standard input; the program starts itself so
    #[command(hide = true)]
    CompileComponent,
    /// Wait for the process around a command, and end the command if that is killed; the program
    /// starts itself so
    #[command(hide = true, name = "guard-command")]
    Guard {
        /// Where records of unfinished commands are
        set_aside: PathBuf,
    },
    /// Run a command in a sandbox and look after it; the program starts itself so
    #[command(hide = true, name = "supervise-command")]
    Supervise,
    /// Confine itself and become a command; the program starts itself so
    #[command(hide = true, name = "confined-command")]
    Confined,
}

/// Options that every command accepts.
#[derive(Clone, Debug, ClapArgs)]
pub(super) struct CommonArgs {
    /// The folder that tools can see; they see nothing outside it
    #[arg(long, short = 'C', global = true, value_name = "DIR", default_value = ".")]
    pub(super) workspace: PathBuf,
    /// Load a plugin besides the built-in ones (may be given more than once)
    #[arg(long = "plugin", global = true, value_name = "FILE.wasm")]
    pub(super) plugins: Vec<PathBuf>,
    /// Never ask about plugins: run only if each is exactly as accepted
    #[arg(long, global = true)]
    pub(super) locked: bool,
    /// The ready-made policy to build on, in place of the one that your own policy file names:
    /// read-only, develop or locked-down [default: develop]
    #[arg(long, global = true, value_name = "NAME")]
    pub(super) profile: Option<PolicyProfile>,
    /// The configuration file, in place of $XDG_CONFIG_HOME/cofferdam/config.toml
    #[arg(long, global = true, value_name = "FILE")]
    pub(super) config: Option<PathBuf>,
    // The environment of this process, which is read here only.
    #[arg(skip = crate::host_environment())]
    pub(super) environment: HostEnvironment,
}

impl CommonArgs {
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
    let problem = "options such as --model and --mode stand after the command: cofferdam run \
        --mode plan \"…\"";
    CliArgs::command().error(clap::error::ErrorKind::ArgumentConflict, problem)
}
