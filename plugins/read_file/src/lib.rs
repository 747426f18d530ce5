//! The `read_file` tool: reads a part of a text file, with line numbers.

mod lines;
mod slice;

use std::fs::File;

use cofferdam_sdk::{Capability, Output, Tool, ToolError, WorkspacePath, export_tools};
use schemars::JsonSchema;
use serde::Deserialize;

/// The tool.
pub struct ReadFile;

/// The file and the part to read.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// The file, relative to the workspace.
    path: WorkspacePath,
    /// The number of the first line to read. The first line of a file is 1.
    #[serde(default = "first_line")]
    #[schemars(range(min = 1))]
    offset: u64,
    /// The maximum number of lines to read.
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
    const TITLE: Option<&'static str> = Some("Read a file");
    const DESCRIPTION: &'static str = "Reads a text file of the workspace. Each line begins with \
        its number and a tab, which are not part of the file.\nReturns up to 2,000 lines from \
        `offset`, at most 256 KiB. If there are more, the result names the offset to continue \
        with. Lines longer than 2,000 characters are truncated. It works on files of any size: \
        search a large file first, then read the part around a match. It does not read directories \
        or binary files.";
    type Input = Input;

    fn capabilities() -> Vec<Capability> {
        vec![Capability::ReadFiles]
    }

    fn call(input: Input) -> Result<Output, ToolError> {
        let path = &input.path;
        let file = File::open(path).map_err(ToolError::io("read", path))?;
        if file.metadata().map_err(ToolError::io("read", path))?.is_dir() {
            return Err(ToolError::failed(format!(
                "`{path}` is a directory. List or search the directory with another tool, then \
                    read one of its files."
            )));
        }
        slice::read(file, path.as_str(), input.offset, input.limit)
    }
}

export_tools!(ReadFile);
