//! `cofferdam sessions list`: lists sessions as a table or as JSON.

use std::process::ExitCode;

use serde_json::json;

use super::{format_local_time, outcome_label, summary_json, workspace_path};
use crate::error::CommandResult;
use crate::json_text::json_page;
use crate::print::print_line;
use cofferdam::session::StoredSession;
use cofferdam::terminal_escape;

/// Maximum number of characters shown of the first prompt.
const MAX_PROMPT_CHARS: usize = 60;

pub(super) fn run(entries: &[StoredSession], with_workspace: bool, as_json: bool) -> CommandResult {
    print_line(&if as_json { format_json(entries) } else { format_table(entries, with_workspace) });
    Ok(ExitCode::SUCCESS)
}

/// Formats sessions as a table.
pub(crate) fn format_table(entries: &[StoredSession], with_workspace: bool) -> String {
    let mut rows =
        vec![["SESSION", "CHANGED", "TURNS", "OUTCOME", "FIRST PROMPT"].map(str::to_owned)];
    if entries.is_empty() {
        return "No sessions yet. `cofferdam run` starts one.".into();
    }
    for entry in entries {
        let (turns, ended, words) = match entry.load() {
            Ok(saved) => {
                let mut words = saved
                    .requests
                    .first()
                    .map(|first| terminal_escape::escape_line(&first.prompt, MAX_PROMPT_CHARS))
                    .unwrap_or_default();
                if let (true, Some(workspace)) = (with_workspace, workspace_path(&saved)) {
                    words = format!("{}: {words}", terminal_escape::escape_line(workspace, 80));
                }
                (
                    saved.turn_count().to_string(),
                    terminal_escape::escape_line(outcome_label(&saved), 20),
                    words,
                )
            }
            Err(problem) => (
                "-".into(),
                "unreadable".into(),
                terminal_escape::escape_line(&problem.to_string(), 400),
            ),
        };
        rows.push([entry.id.to_string(), format_local_time(entry.modified), turns, ended, words]);
    }
    let width = |column: usize| {
        rows.iter().map(|row| row[column].chars().count()).max().unwrap_or_default()
    };
    let (a, b, c, d) = (width(0), width(1), width(2), width(3));
    let line = |[id, changed, turns, ended, words]: &[String; 5]| {
        format!("{id:a$}  {changed:b$}  {turns:>c$}  {ended:d$}  {words}")
    };
    rows.iter().map(|row| line(row).trim_end().to_owned()).collect::<Vec<_>>().join("\n")
}

fn format_json(entries: &[StoredSession]) -> String {
    let one = |entry: &StoredSession| match entry.load() {
        Ok(saved) => summary_json(entry, &saved),
        Err(problem) => json!({"id": entry.id, "problem": problem.to_string()}),
    };
    json_page(&json!({"sessions": entries.iter().map(one).collect::<Vec<_>>()}))
}
