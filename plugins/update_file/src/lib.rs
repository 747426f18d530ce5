//! The `update_file` tool: replaces a text in a file.
//!
//! WASI knows no permissions, owners or extended attributes, so that the file that takes the old
//! one's place has those of a new file.

mod diff;
mod edit;
mod endings;
mod exact;
mod indent;
mod lines;
mod missing;
mod replace;
mod source;

use cofferdam_sdk::{Capability, Output, Tool, ToolError, View, WorkspacePath, export_tools};
use schemars::JsonSchema;
use serde::Deserialize;

use edit::{Change, Edit};

/// The tool.
pub struct UpdateFile;

/// What to replace by what, and where.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// The file, relative to the workspace.
    path: WorkspacePath,
    /// The text to replace, exactly as it is in the file, with enough around it to be there once.
    /// Empty only to fill an empty file.
    old_text: String,
    /// What to put in its place; empty to delete it.
    new_text: String,
    /// Replace every occurrence, not just the only one.
    #[serde(default)]
    replace_all: bool,
}

impl Tool for UpdateFile {
    const NAME: &'static str = "update_file";
    const DESCRIPTION: &'static str = "Replaces `old_text` by `new_text` in a text file of the \
        workspace. Read the part of the file first.\n\
        - `old_text` must be in the file exactly once: with all of its spaces and line breaks, \
        without the line numbers that read_file puts in front. \
        Add lines around it until it is unique, or set `replace_all`.\n\
        - If it is not there as it stands, whole lines that differ only in their indentation or \
        in spaces at their ends are taken, if there is one \
        such place; `new_text` is then indented in the same way.\n\
        - The file's kind of line endings and the line break at its end are kept. Either the \
        whole change is made or nothing.\n\
        - Files of up to 10 MB in UTF-8. To create a file use write_file. Permissions stay as \
        they are.";
    type Input = Input;

    fn capabilities() -> Vec<Capability> {
        vec![Capability::WriteFiles]
    }

    fn call(input: Input) -> Result<Output, ToolError> {
        let path = &input.path;
        let before = source::read(path)?;
        let change = Change {
            path: path.as_str(),
            old: &input.old_text,
            new: &input.new_text,
            all: input.replace_all,
        };
        let edit = edit::apply(&before, &change)?;
        replace::replace(path.as_ref(), edit.text.as_bytes())
            .map_err(ToolError::io("update", path))?;
        Ok(Output::text(summary(path, &before, &edit)).with_view(View::Diff(diff::of_change(
            path.as_str(),
            &before,
            &edit.text,
        ))))
    }
}

export_tools!(UpdateFile);

fn summary(path: &WorkspacePath, before: &str, edit: &Edit) -> String {
    let mut summary = match edit.lines.as_slice() {
        [line] => {
            let (removed, added) = diff::changed_lines(before, &edit.text);
            format!("updated {path} at line {line} (+{added} -{removed} lines)")
        }
        lines => format!(
            "updated {path}: replaced {} occurrences, at lines {}",
            lines.len(),
            lines::numbers(lines)
        ),
    };
    if edit.loosely {
        summary.push_str(
            "; old_text differed from the file in spaces at the beginnings or ends of lines, and \
                new_text was indented as the file is",
        );
    }
    summary
}

#[cfg(test)]
mod tests {
    use cofferdam_sdk::declare;

    use super::*;

    #[test]
    fn it_asks_for_writing_and_nothing_else() {
        assert_eq!(declare::<UpdateFile>().capabilities, [Capability::WriteFiles]);
    }

    #[test]
    fn the_summary_says_where_and_how_much() {
        let edit = |text: &str, lines: &[usize], loosely| Edit {
            text: text.to_owned(),
            lines: lines.to_vec(),
            loosely,
        };
        assert_eq!(
            summary(&"f".into(), "a\nb\n", &edit("a\nc\nd\n", &[2], false)),
            "updated f at line 2 (+2 -1 lines)"
        );
        let many = summary(&"f".into(), "a\na\n", &edit("b\nb\n", &[1, 2], false));
        assert_eq!(many, "updated f: replaced 2 occurrences, at lines 1 and 2");
        assert!(
            summary(&"f".into(), "a\n", &edit("b\n", &[1], true))
                .ends_with("indented as the file is")
        );
    }
}
