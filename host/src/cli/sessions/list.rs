//! `cofferdam sessions list`.

use std::process::ExitCode;

use serde_json::json;

use super::{ending, local_time, summary, workspace_of};
use crate::cli::error::Done;
use crate::cli::print::stdout_line;
use crate::session::Entry;
use crate::shown;

/// How many characters of a first prompt are shown.
const WORDS: usize = 60;

pub(super) fn run(entries: &[Entry], with_workspace: bool, as_json: bool) -> Done {
    stdout_line(&if as_json { json(entries) } else { text(entries, with_workspace) });
    Ok(ExitCode::SUCCESS)
}

/// A table for people.
pub(in crate::cli) fn text(entries: &[Entry], with_workspace: bool) -> String {
    let mut rows = vec![["SESSION", "CHANGED", "TURNS", "ENDED", "BEGAN WITH"].map(str::to_owned)];
    if entries.is_empty() {
        return "No session yet. `cofferdam run` begins one.".into();
    }
    for entry in entries {
        let (turns, ended, words) = match entry.look() {
            Ok(saved) => {
                let mut words = saved.requests.first().map(|first| shown::line(&first.prompt, WORDS)).unwrap_or_default();
                if let (true, Some(workspace)) = (with_workspace, workspace_of(&saved)) {
                    words = format!("{}: {words}", shown::line(workspace, 80));
                }
                (saved.turns().to_string(), shown::line(ending(&saved), 20), words)
            }
            Err(problem) => ("-".into(), "unreadable".into(), shown::line(&problem.to_string(), 400)),
        };
        rows.push([entry.id.to_string(), local_time(entry.changed), turns, ended, words]);
    }
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or_default();
    let (a, b, c, d) = (width(0), width(1), width(2), width(3));
    let line = |[id, changed, turns, ended, words]: &[String; 5]| format!("{id:a$}  {changed:b$}  {turns:>c$}  {ended:d$}  {words}");
    rows.iter().map(|row| line(row).trim_end().to_owned()).collect::<Vec<_>>().join("\n")
}

fn json(entries: &[Entry]) -> String {
    let one = |entry: &Entry| match entry.look() {
        Ok(saved) => summary(entry, &saved),
        Err(problem) => json!({"id": entry.id, "problem": problem.to_string()}),
    };
    shown::json(&format!("{:#}", json!({"sessions": entries.iter().map(one).collect::<Vec<_>>()})))
}
