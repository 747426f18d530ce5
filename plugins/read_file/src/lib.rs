//! The `read_file` tool: a numbered part of a text file.

mod lines;
mod slice;

use std::fs::File;

use cofferdam_sdk::{Capability, Output, Tool, ToolError, WorkspacePath, export_tools};
use schemars::JsonSchema;
use serde::Deserialize;

/// The tool.
pub struct ReadFile;

/// Which part of which file.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// The file, relative to the workspace.
    path: WorkspacePath,
    /// The first line to read; the file's first is 1.
    #[serde(default = "first_line")]
    #[schemars(range(min = 1))]
    offset: u64,
    /// How many lines to read at most.
    #[serde(default = "most_lines")]
    #[schemars(range(min = 1, max = 2000))]
    limit: u32,
}

fn first_line() -> u64 {
    1
}

fn most_lines() -> u32 {
    slice::MAX_LINES
}

impl Tool for ReadFile {
    const NAME: &'static str = "read_file";
    const DESCRIPTION: &'static str = "Reads a text file of the workspace. Each line comes with \
        its number and a tab in front, which are \
        not part of the file.\n\
        Returns up to 2,000 lines from `offset` on, at most 256 KiB; what is left is told, with \
        the offset to go on with. Lines longer than \
        2,000 characters are cut. Works on files of any size, so for a large one search first, \
        then read the part around \
        a match. It reads neither directories nor binary files.";
    type Input = Input;

    fn capabilities() -> Vec<Capability> {
        vec![Capability::ReadFiles]
    }

    fn call(input: Input) -> Result<Output, ToolError> {
        let path = &input.path;
        let file = File::open(path).map_err(ToolError::io("read", path))?;
        if file.metadata().map_err(ToolError::io("read", path))?.is_dir() {
            return Err(ToolError::failed(format!(
                "`{path}` is a directory. Use a tool that lists or searches directories, then \
                    read one of its files."
            )));
        }
        slice::read(file, path.as_str(), input.offset, input.limit)
    }
}

export_tools!(ReadFile);
