//! `cofferdam undo`.

use std::path::Path;
use std::process::ExitCode;

use serde_json::json;

use super::args::{CallArgs, Common, ModelArgs, UndoArgs};
use super::error::Done;
use super::print::{stderr_line, stdout_line};
use super::{assemble, audit};
use crate::sandbox::{Entry, History, HistoryError, Undone, Workspace};
use crate::shown;
use crate::tools::Change;

/// Paths of one change that are shown.
const MOST_PATHS: usize = 5;

pub(super) fn run(common: &Common, args: &UndoArgs) -> Done {
    let (settings, folders) = assemble::settings(common, common.flags(ModelArgs::default(), CallArgs::default(), None))?;
    let workspace = Workspace::open(&common.workspace)?;
    let history = History::of(&folders.undo(), &workspace);
    if args.list {
        for line in history.recover(&workspace)? {
            stderr_line(&shown::line(&line, 1000));
        }
        tell_of_leftovers(&history)?;
        let entries = history.list()?;
        stdout_line(&if args.json { json!(entries.iter().map(as_json).collect::<Vec<_>>()).to_string() } else { text(&entries) });
        return Ok(ExitCode::SUCCESS);
    }
    // What changes the workspace is on record before it does.
    let entries = history.list()?;
    let newest = entries.first().map(|entry| (entry.id.as_str(), entry.tool.as_str(), &entry.paths[..]));
    audit::record(&settings, &folders, workspace.root(), &Change::Undo(newest))?;
    let undone = history.undo(&workspace, args.force);
    if let Err(HistoryError::Empty) = undone {
        tell_of_leftovers(&history)?;
    }
    match undone? {
        Undone::Change { entry, stays } => {
            for place in stays {
                stderr_line(&format!(
                    "The directory {} stays: it holds something that is not part of this change.",
                    shown::name(&place, 400)
                ));
            }
            stdout_line(&if args.json { as_json(&entry).to_string() } else { format!("Taken back: {}", line(&entry)) });
        }
        Undone::Interrupted(lines) => {
            for line in &lines {
                stderr_line(&shown::line(line, 1000));
            }
            let say = "Nothing else was undone. Run `cofferdam undo` again to undo the change before it.";
            stdout_line(&if args.json { json!({"interrupted": lines}).to_string() } else { say.to_owned() });
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// What is kept, and nobody but the user can do anything with.
fn tell_of_leftovers(history: &History) -> Result<(), HistoryError> {
    let place = |folder: &Path| shown::name(&folder.display().to_string(), 1000);
    for (entry, folder) in history.abandoned()? {
        stderr_line(&format!("Not wholly taken back: {}; what was there is in {}, which you may delete.", line(&entry), place(&folder)));
    }
    for (folder, why) in history.unreadable()? {
        let why = shown::line(&why.to_string(), 400);
        stderr_line(&format!(
            "A change cannot be read ({why}), nor taken back; what was there is in {}, which you may delete.",
            place(&folder)
        ));
    }
    Ok(())
}

fn text(entries: &[Entry]) -> String {
    if entries.is_empty() {
        return "No change of a tool is kept for this project.".into();
    }
    entries.iter().map(line).collect::<Vec<_>>().join("\n")
}

/// A change on one line.
fn line(entry: &Entry) -> String {
    let paths: Vec<String> = entry.paths.iter().take(MOST_PATHS).map(|path| shown::name(path, 200)).collect();
    let more = if entry.paths.len() > MOST_PATHS { format!(" and {} more", entry.paths.len() - MOST_PATHS) } else { String::new() };
    format!("{}  {}  {}{more}", super::sessions::local_time(entry.time), shown::line(&entry.tool, 64), paths.join(", "))
}

fn as_json(entry: &Entry) -> serde_json::Value {
    let time = jiff::Timestamp::try_from(entry.time).ok().map(|time| time.to_string());
    json!({"id": entry.id, "time": time, "tool": entry.tool, "paths": entry.paths})
}
