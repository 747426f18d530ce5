//! `cofferdam diff` and `/diff`: what changes of the undo history did.

use std::process::ExitCode;
use std::time::SystemTime;

use console::Style;
use serde_json::json;

use super::args::{CommonArgs, DiffArgs};
use super::error::CommandResult;
use super::json_text::json_line;
use super::print::print_line;
use super::{changes, context, undo};
use cofferdam::sandbox::{DiffScope, HistoryDiff, UndoHistory, Workspace};
use cofferdam::terminal_escape;

/// Maximum number of lines of a diff in a chat.
const MAX_CHAT_LINES: usize = 400;
/// Maximum number of changes of the history that are named.
const MAX_NAMED_CHANGES: usize = 20;

/// The words for a diff without the rest.
const INCOMPLETE: &str = "There are more differences than are shown here.";

/// A line of a diff, escaped, and how it is shown.
struct DiffLine {
    text: String,
    style: Style,
}

pub(super) fn run(common: &CommonArgs, args: &DiffArgs) -> CommandResult {
    let (_, user_dirs) = context::load_settings(common, common.common_flags())?;
    let workspace = Workspace::open(&common.workspace, &common.environment)?;
    let history = UndoHistory::for_workspace(&user_dirs.undo(), &workspace);
    let count = usize::try_from(args.last).unwrap_or(usize::MAX);
    let diff = history.diff(&workspace, DiffScope::Newest(count))?;
    if args.json {
        let entries: Vec<_> = diff.entries.iter().map(undo::to_json).collect();
        let differences: Vec<_> = diff.changes.iter().collect();
        let text = json!({
            "changes": entries, "differences": differences, "complete": diff.is_complete,
        });
        print_line(&json_line(&text));
        return Ok(ExitCode::SUCCESS);
    }
    for DiffLine { text, style } in describe(&diff) {
        if !print_line(&style.apply_to(text).to_string()) {
            break;
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Describes the changes since a time for a chat: a bounded number of lines, escaped and coloured.
pub(super) fn describe_since(
    history: &UndoHistory,
    workspace: &Workspace,
    began: SystemTime,
) -> Result<String, cofferdam::sandbox::HistoryError> {
    let diff = history.diff(workspace, DiffScope::Since(began))?;
    let lines = describe(&diff);
    let mut shown: Vec<String> = lines
        .iter()
        .take(MAX_CHAT_LINES)
        .map(|line| line.style.clone().for_stderr().apply_to(&line.text).to_string())
        .collect();
    if let Some(more @ 1..) = lines.len().checked_sub(MAX_CHAT_LINES) {
        let count = diff.entries.len();
        shown.push(format!("{more} more lines; `cofferdam diff --last {count}` prints all"));
    }
    Ok(shown.join("\n"))
}

/// Describes a diff: the changes of the history, the changed paths, and the diffs of text files.
fn describe(diff: &HistoryDiff) -> Vec<DiffLine> {
    let plain = |text: String| DiffLine { text, style: Style::new() };
    let dim = |text: String| DiffLine { text, style: Style::new().dim() };
    if diff.entries.is_empty() {
        return vec![plain(
            "There are no changes of tools or commands to show. Commands without a private view \
                are not part of the undo history."
                .to_owned(),
        )];
    }
    let skipped = diff.entries.len().saturating_sub(MAX_NAMED_CHANGES);
    let mut lines: Vec<DiffLine> =
        diff.entries.iter().skip(skipped).map(|entry| dim(undo::format_entry(entry))).collect();
    lines.push(plain(String::new()));
    if diff.changes.is_empty() {
        lines.push(plain("The workspace is as it was before these changes.".to_owned()));
    }
    lines.extend(
        diff.changes
            .iter()
            .map(|change| plain(terminal_escape::escape_name(&change.to_string(), usize::MAX))),
    );
    let text = changes::full_diff(&diff.changes);
    if !text.is_empty() {
        lines.push(plain(String::new()));
    }
    lines.extend(
        text.lines()
            .map(|line| DiffLine { text: line.to_owned(), style: changes::line_style(line) }),
    );
    if !diff.is_complete {
        lines.push(plain(INCOMPLETE.to_owned()));
    }
    lines
}
