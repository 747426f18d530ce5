//! Counts the lines of a file.

use cofferdam_sdk::{Capability, Output, Tool, ToolError, WorkspacePath, export_tools};
use schemars::JsonSchema;
use serde::Deserialize;

struct CountLines;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Input {
    /// The file, relative to the workspace.
    path: WorkspacePath,
    /// Count only lines with this string.
    #[serde(default)]
    containing: String,
}

impl Tool for CountLines {
    const NAME: &'static str = "count_lines";
    const TITLE: Option<&'static str> = Some("Count lines");
    const DESCRIPTION: &'static str = "Counts the lines of a text file, or the lines that contain \
        a string.";
    type Input = Input;

    fn capabilities() -> Vec<Capability> {
        vec![Capability::ReadFiles]
    }

    fn call(input: Input) -> Result<Output, ToolError> {
        let bytes = std::fs::read(&input.path).map_err(ToolError::io("read", &input.path))?;
        let text = String::from_utf8(bytes)
            .map_err(|_| ToolError::Failed(format!("{} is not text", input.path)))?;
        Ok(Output::text(
            text.lines().filter(|line| line.contains(&input.containing)).count().to_string(),
        ))
    }
}

export_tools!(CountLines);
