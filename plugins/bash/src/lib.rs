//! The `bash` tool: runs a command line through the host, which approves it and confines it.

mod report;

use cofferdam_sdk::commands::{self, Command};
use cofferdam_sdk::{Capability, Output, Tool, ToolError, WorkspacePath, export_tools};
use schemars::JsonSchema;
use serde::Deserialize;

/// The tool.
pub struct Bash;

/// The command and where to run it.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// The command line, given to `sh -c`.
    command: String,
    /// The directory to run it in, relative to the workspace. Default: the workspace itself.
    #[serde(default)]
    directory: Option<WorkspacePath>,
    /// Seconds until the command is killed with everything it started.
    #[serde(default = "default_timeout")]
    #[schemars(range(min = 1, max = 600))]
    timeout: u32,
}

fn default_timeout() -> u32 {
    Command::DEFAULT_TIMEOUT
}

impl Tool for Bash {
    const NAME: &'static str = "bash";
    const DESCRIPTION: &'static str = "Runs a command line with `sh -c` in the workspace and \
        returns its standard output, its standard error \
        and its exit code if that is not 0. Use it to build, test and run things; to read or \
        search files, use the tools made for that.\n\
        - Each call starts a new shell: directories and variables do not carry over. Chain with \
        `&&`, or give `directory`.\n\
        - There is no standard input. Pass flags that keep programs from asking (`-y`, \
        `--no-pager`).\n\
        - When the call ends, every process that it started is killed: nothing runs on in the \
        background.\n\
        - The user or a rule approves each command line. If one is denied, do not try to get \
        around it.\n\
        - Long output loses its middle. Filter it (`| tail -50`) if you need only a part.";
    type Input = Input;

    fn capabilities() -> Vec<Capability> {
        vec![Capability::RunCommands]
    }

    fn call(input: Input) -> Result<Output, ToolError> {
        if input.command.trim().is_empty() {
            return Err(ToolError::invalid_input("/command", "the command is empty"));
        }
        let directory = input.directory.as_ref().map_or("", WorkspacePath::below_root).to_owned();
        let command = Command { line: input.command, directory, timeout: input.timeout };
        report::report(&commands::run(&command)?, command.timeout)
    }
}

export_tools!(Bash);
