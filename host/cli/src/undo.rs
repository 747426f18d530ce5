//! `cofferdam undo`: undoes the last change of a tool.

use std::path::Path;
use std::process::ExitCode;

use serde_json::json;

use super::args::{CommonArgs, UndoArgs};
use super::error::CommandResult;
use super::json_text::json_line;
use super::print::{eprint_line, print_line};
use super::{audit, context};
use cofferdam::sandbox::{HistoryError, UndoHistory, UndoHistoryEntry, UndoOutcome, Workspace};
use cofferdam::terminal_escape;
use cofferdam::tools::AuthorityChange;

/// Maximum number of paths shown of one change.
const MAX_PATHS: usize = 5;

pub(super) fn run(common: &CommonArgs, args: &UndoArgs) -> CommandResult {
    let (settings, user_dirs) = context::load_settings(common, common.common_flags())?;
    let workspace = Workspace::open(&common.workspace, &common.environment)?;
    let history = UndoHistory::for_workspace(&user_dirs.undo(), &workspace);
    if args.list {
        for line in history.recover(&workspace)? {
            eprint_line(&terminal_escape::escape_line(&line, 1000));
        }
        report_leftovers(&history)?;
        let entries = history.list()?;
        print_line(&if args.json {
            json_line(&entries.iter().map(to_json).collect::<Vec<_>>())
        } else {
            format_entries(&entries)
        });
        return Ok(ExitCode::SUCCESS);
    }
    // The undo is recorded before it changes the workspace.
    let entries = history.list()?;
    let newest =
        entries.first().map(|entry| (entry.id.as_str(), entry.tool.as_str(), &entry.paths[..]));
    let log = audit::ChangeLog::begin(&settings, &user_dirs, common)?;
    log.record(&AuthorityChange::Undo(newest))?;
    let undone = history.undo(&workspace, args.force);
    if let Err(problem) = &undone {
        let id = newest.map(|(id, ..)| id);
        let problem = problem.to_string();
        log.record(&AuthorityChange::UndoFailed { id, problem: &problem })?;
    }
    if let Err(HistoryError::Empty) = undone {
        report_leftovers(&history)?;
    }
    match undone? {
        UndoOutcome::Change { entry, remaining } => {
            for place in remaining {
                eprint_line(&format!(
                    "Kept the directory {}, because it contains files that are not part of this \
                        change.",
                    terminal_escape::escape_name(&place, 400)
                ));
            }
            print_line(&if args.json {
                json_line(&to_json(&entry))
            } else {
                format!("Undone: {}", format_entry(&entry))
            });
        }
        UndoOutcome::Interrupted(lines) => {
            for line in &lines {
                eprint_line(&terminal_escape::escape_line(line, 1000));
            }
            let say =
                "Nothing else was undone. Run `cofferdam undo` again to undo the change before it.";
            print_line(&if args.json {
                json_line(&json!({"interrupted": lines}))
            } else {
                say.to_owned()
            });
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Reports backups that undo cannot restore and that only the user can handle.
fn report_leftovers(history: &UndoHistory) -> Result<(), HistoryError> {
    let place =
        |directory: &Path| terminal_escape::escape_name(&directory.display().to_string(), 1000);
    for (entry, directory) in history.abandoned()? {
        eprint_line(&format!(
            "Undone only in part: {}. The old files are in {}; you can delete this directory.",
            format_entry(&entry),
            place(&directory)
        ));
    }
    for entry in history.unkept()? {
        eprint_line(&format!(
            "Cannot be undone, because it replaced or removed more than undo keeps: {}.",
            format_entry(&entry)
        ));
    }
    for (directory, why) in history.unreadable()? {
        let why = terminal_escape::escape_line(&why.to_string(), 400);
        eprint_line(&format!(
            "Cannot undo a change, because its record is unreadable: {why}. The old files are in \
                {}; you can delete this directory.",
            place(&directory)
        ));
    }
    Ok(())
}

fn format_entries(entries: &[UndoHistoryEntry]) -> String {
    if entries.is_empty() {
        return "There are no changes to undo in this project.".into();
    }
    entries.iter().map(format_entry).collect::<Vec<_>>().join("\n")
}

/// Formats a change on one line, escaped.
pub(super) fn format_entry(entry: &UndoHistoryEntry) -> String {
    let paths: Vec<String> = entry
        .paths
        .iter()
        .take(MAX_PATHS)
        .map(|path| terminal_escape::escape_name(path, 200))
        .collect();
    let more = if entry.paths.len() > MAX_PATHS {
        format!(" and {} more", entry.paths.len() - MAX_PATHS)
    } else {
        String::new()
    };
    format!(
        "{}  {}  {}{more}",
        super::sessions::format_local_time(entry.time),
        terminal_escape::escape_line(&entry.tool, 64),
        paths.join(", ")
    )
}

pub(super) fn to_json(entry: &UndoHistoryEntry) -> serde_json::Value {
    let time = jiff::Timestamp::try_from(entry.time).ok().map(|time| time.to_string());
    json!({"id": entry.id, "time": time, "tool": entry.tool, "paths": entry.paths})
}
