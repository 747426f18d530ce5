//! The `write_file` tool: creates a file.

mod create;
mod diff;

use cofferdam_sdk::{Capability, Output, Tool, ToolError, View, WorkspacePath, export_tools};
use schemars::JsonSchema;
use serde::Deserialize;

/// The tool.
pub struct WriteFile;

/// The file and its content.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// The new file, relative to the workspace.
    path: WorkspacePath,
    /// The complete text of the file.
    content: String,
}

impl Tool for WriteFile {
    const NAME: &'static str = "write_file";
    const TITLE: Option<&'static str> = Some("Create a file");
    const DESCRIPTION: &'static str = "Creates a text file in the workspace with the given \
        content, and missing parent directories. It never overwrites a file: to change an existing \
        file, use `update_file`. The content is written unchanged, so end it with a line break.";
    type Input = Input;

    fn capabilities() -> Vec<Capability> {
        vec![Capability::WriteFiles]
    }

    fn call(input: Input) -> Result<Output, ToolError> {
        let Input { path, content } = input;
        create::create(&path, content.as_bytes())?;
        let lines = content.lines().count();
        let summary = format!(
            "wrote {} ({}) to {path}",
            counted(lines, "line"),
            counted(content.len(), "byte")
        );
        Ok(Output::text(summary).with_view(View::Diff(diff::of_new(path.as_str(), &content))))
    }
}

export_tools!(WriteFile);

fn counted(count: usize, what: &str) -> String {
    if count == 1 { format!("1 {what}") } else { format!("{count} {what}s") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_is_counted_as_one() {
        assert_eq!(
            (counted(1, "line"), counted(0, "byte")),
            ("1 line".to_owned(), "0 bytes".to_owned())
        );
    }

    #[test]
    fn it_requests_writing_only() {
        assert_eq!(WriteFile::capabilities(), [Capability::WriteFiles]);
    }
}
