//! The `write_file` tool: creates a file.

mod create;
mod diff;

use cofferdam_sdk::{Capability, Output, Tool, ToolError, View, WorkspacePath, export_tools};
use schemars::JsonSchema;
use serde::Deserialize;

/// The tool.
pub struct WriteFile;

/// Which file, and what it holds.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// The new file, relative to the workspace.
    path: WorkspacePath,
    /// All of its text.
    content: String,
}

impl Tool for WriteFile {
    const NAME: &'static str = "write_file";
    const DESCRIPTION: &'static str = "Creates a text file in the workspace with the given \
        content, and the directories that it needs. \
        It never overwrites: to change a file that exists, use `update_file`. The content is \
        written as it is, so end it with a line break.";
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
    use cofferdam_sdk::declare;

    use super::*;

    #[test]
    fn one_is_counted_as_one() {
        assert_eq!(
            (counted(1, "line"), counted(0, "byte")),
            ("1 line".to_owned(), "0 bytes".to_owned())
        );
    }

    #[test]
    fn it_asks_for_writing_and_nothing_else() {
        assert_eq!(declare::<WriteFile>().capabilities, [Capability::WriteFiles]);
    }
}
