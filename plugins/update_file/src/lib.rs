//! The `update_file` tool: replaces a text in a file.
//!
//! WASI has no permissions, owners or extended attributes, so the file that replaces the old one
//! has those of a new file.

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

/// The file, the text to replace, and its replacement.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// The file, relative to the workspace.
    path: WorkspacePath,
    /// The text to replace, exactly as in the file, with enough text around it to be unique. Empty
    /// only to fill an empty file.
    old_text: String,
    /// The replacement; empty to delete the text.
    new_text: String,
    /// Replace every occurrence.
    #[serde(default)]
    replace_all: bool,
}

impl Tool for UpdateFile {
    const NAME: &'static str = "update_file";
    const TITLE: Option<&'static str> = Some("Edit a file");
    const DESCRIPTION: &'static str = "Replaces `old_text` with `new_text` in a text file of the \
        workspace. Read that part of the file first.\n- `old_text` must occur exactly once in the \
        file, with all its spaces and line breaks, and without the line numbers of read_file. Add \
        enough surrounding lines to make it unique, or set `replace_all`.\n- If there is no exact \
        match, a unique match of whole lines that differ only in indentation or trailing spaces is \
        used. `new_text` is then indented in the same way.\n- Line endings and the line break at \
        the end of the file are kept. A failed call changes nothing.\n- Files have at most 10 MB \
        of UTF-8. To create a file, use write_file. Permissions are kept.";
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
                new_text was indented like the file",
        );
    }
    summary
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_requests_writing_only() {
        assert_eq!(UpdateFile::capabilities(), [Capability::WriteFiles]);
    }

    #[test]
    fn the_summary_names_lines_and_amount() {
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
                .ends_with("indented like the file")
        );
    }
}
