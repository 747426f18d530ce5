//! `cofferdam audit show`: what was decided and done, a line for each record.

use std::process::ExitCode;

use console::style;
use serde_json::{Map, Value};

use super::{warn_of_problems, words};
use crate::audit::{Inspected, Record, What};
use crate::cli::error::Done;
use crate::cli::exit;
use crate::cli::print::stdout_line;
use crate::shown;

pub(super) fn run(logs: &[Inspected], tool: Option<&str>, as_json: bool) -> Done {
    for log in logs {
        let is_meant = |fields: &Map<String, Value>| tool.is_none_or(|tool| fields.get("tool").is_some_and(|name| name == tool));
        let meant: Vec<usize> = (0..log.records.len()).filter(|index| is_meant(&log.records[*index])).collect();
        if meant.is_empty() {
            continue;
        }
        if as_json {
            for index in meant {
                stdout_line(&shown::json(&Value::Object(log.whole(index)).to_string()));
            }
            continue;
        }
        let records: Vec<Option<Record>> = log.records.iter().map(Record::read).collect();
        stdout_line(&style(format!("{}  {}", log.name.as_str(), about(&records))).bold().to_string());
        for index in meant {
            let told = match &records[index] {
                Some(record) => words::of(record, &records).map(|words| (time(&record.at), words)),
                // Kinds of other versions show themselves.
                None => Some(("?".to_owned(), Value::Object(log.records[index].clone()).to_string())),
            };
            if let Some((time, words)) = told {
                stdout_line(&format!("  {} {}", style(time).dim(), shown::line(&words, 1000)));
            }
        }
    }
    if logs.is_empty() {
        stdout_line("Nothing is on record yet.");
    }
    Ok(if warn_of_problems(logs) { ExitCode::from(exit::FAILED) } else { ExitCode::SUCCESS })
}

fn about(records: &[Option<Record>]) -> String {
    let session = records.iter().flatten().find_map(|record| match &record.what {
        What::Session { workspace, mode, model, least_command_sandbox, .. } => {
            Some((record, workspace, mode, model, least_command_sandbox))
        }
        _ => None,
    });
    let Some((record, workspace, mode, model, least)) = session else { return "(no beginning)".into() };
    let mut words = vec![format!("mode {mode}"), format!("commands in a sandbox `{least}` or better")];
    words.extend(record.session.as_ref().map(|session| format!("session {session}")));
    words.extend(model.as_ref().map(|model| format!("model {model}")));
    words.push(workspace.clone());
    shown::line(&words.join(" · "), 600)
}

fn time(at: &str) -> String {
    at.parse::<jiff::Timestamp>()
        .map_or_else(|_| "?".into(), |time| time.to_zoned(jiff::tz::TimeZone::system()).strftime("%Y-%m-%d %H:%M:%S").to_string())
}
