//! The tools `bash` and `jobs`: command lines, and those that run in the background. The host
//! approves each line and runs it in a sandbox.
//!
//! Both are in one component, because background commands belong to the component that started
//! them.

pub mod jobs;
mod report;

use std::time::Duration;

use cofferdam_sdk::commands::{self, Command};
use cofferdam_sdk::{Capability, Output, Tool, ToolError, WorkspacePath, export_tools};
use schemars::JsonSchema;
use serde::Deserialize;

/// The tool.
pub struct Bash;

/// The command and its directory.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// The command line for `sh -c`.
    command: String,
    /// The working directory, relative to the workspace. Default: the workspace.
    #[serde(default)]
    directory: Option<WorkspacePath>,
    /// The time limit in seconds. After it, the command and all its processes are killed.
    #[serde(default = "default_timeout")]
    #[schemars(range(min = 1, max = 600))]
    timeout: u64,
    /// Runs the command in the background: the call returns after a second, and the command
    /// continues until it exits, the tool `jobs` stops it, or the session ends. `timeout` does not
    /// apply.
    #[serde(default)]
    background: bool,
    /// Gives a background command a pseudo-terminal, for programs that need one.
    #[serde(default)]
    terminal: bool,
}

fn default_timeout() -> u64 {
    Command::DEFAULT_TIMEOUT.as_secs()
}

impl Tool for Bash {
    const NAME: &'static str = "bash";
    const TITLE: Option<&'static str> = Some("Run a command");
    const DESCRIPTION: &'static str = "Runs a command line with `sh -c` in the workspace. Returns \
        standard output, standard error, and the exit code if it is not 0. Use it to build, test \
        and run programs. To read or search files, use the tools for that.\n- Each call starts a \
        new shell: directories and variables do not carry over. Chain commands with `&&`, or set \
        `directory`.\n- Standard input is empty. Pass flags that prevent interactive prompts \
        (`-y`, `--no-pager`).\n- When the call ends, all its processes are killed. For servers, \
        watchers and long builds, set `background`, and use the tool `jobs` to read their output, \
        send input, or stop them.\n- Each command line needs approval, by the user or by an \
        `allow` rule. If a command is denied, do not try to circumvent the denial.\n- Long output \
        is truncated in the middle. Filter it (`| tail -50`) if you need only a part.";
    type Input = Input;

    fn capabilities() -> Vec<Capability> {
        vec![Capability::RunCommands]
    }

    fn call(input: Input) -> Result<Output, ToolError> {
        if input.command.trim().is_empty() {
            return Err(ToolError::invalid_input("/command", "the command is empty"));
        }
        if input.terminal && !input.background {
            return Err(ToolError::invalid_input("/terminal", "only background commands have one"));
        }
        let directory =
            input.directory.as_ref().map_or("", WorkspacePath::relative_to_root).to_owned();
        if input.background {
            return jobs::start(input.command, directory, input.terminal);
        }
        let command =
            Command { line: input.command, directory, timeout: Duration::from_secs(input.timeout) };
        report::report(&commands::run(&command)?, input.timeout)
    }
}

export_tools!(Bash, jobs::Jobs);
