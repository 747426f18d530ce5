//! `cofferdam undo`.

use std::process::ExitCode;

use serde_json::json;

use super::args::{Common, UndoArgs};
use super::error::Done;
use super::print::{stderr_line, stdout_line};
use crate::config::Folders;
use crate::sandbox::{Entry, History, Workspace};
use crate::shown;

/// Paths of one change that are shown.
const MOST_PATHS: usize = 5;

pub(super) fn run(common: &Common, args: &UndoArgs) -> Done {
    let workspace = Workspace::open(&common.workspace)?;
    let history = History::of(&Folders::of_this_user()?.undo(), &workspace);
    for line in history.recover(&workspace)? {
        stderr_line(&shown::line(&line, 1000));
    }
    if args.list {
        let entries = history.list()?;
        stdout_line(&if args.json { json!(entries.iter().map(as_json).collect::<Vec<_>>()).to_string() } else { text(&entries) });
        return Ok(ExitCode::SUCCESS);
    }
    let entry = history.undo(&workspace, args.force)?;
    stdout_line(&if args.json { as_json(&entry).to_string() } else { format!("Taken back: {}", line(&entry)) });
    Ok(ExitCode::SUCCESS)
}

fn text(entries: &[Entry]) -> String {
    if entries.is_empty() {
        return "No change of a tool is kept for this project.".into();
    }
    entries.iter().map(line).collect::<Vec<_>>().join("\n")
}

/// A change on one line.
fn line(entry: &Entry) -> String {
    let paths: Vec<String> = entry.paths.iter().take(MOST_PATHS).map(|path| shown::line(path, 200)).collect();
    let more = if entry.paths.len() > MOST_PATHS { format!(" and {} more", entry.paths.len() - MOST_PATHS) } else { String::new() };
    format!("{}  {}  {}{more}", super::sessions::local_time(entry.time), shown::line(&entry.tool, 64), paths.join(", "))
}

fn as_json(entry: &Entry) -> serde_json::Value {
    let time = jiff::Timestamp::try_from(entry.time).ok().map(|time| time.to_string());
    json!({"id": entry.id, "time": time, "tool": entry.tool, "paths": entry.paths})
}
