//! `cofferdam audit show`: prints one line per record.

use std::process::ExitCode;

use console::style;
use serde_json::{Map, Value};

use super::{record_text, warn_errors};
use crate::error::CommandResult;
use crate::exit;
use crate::json_text::json_line;
use crate::print::print_line;
use cofferdam::audit::{AuditRecord, InspectedLog, RecordKind};
use cofferdam::terminal_escape;

pub(super) fn run(logs: &[InspectedLog], tool: Option<&str>, as_json: bool) -> CommandResult {
    for log in logs {
        let is_selected = |fields: &Map<String, Value>| {
            tool.is_none_or(|tool| fields.get("tool").is_some_and(|name| name == tool))
        };
        let selected: Vec<usize> =
            (0..log.records.len()).filter(|index| is_selected(&log.records[*index])).collect();
        if selected.is_empty() {
            continue;
        }
        if as_json {
            for index in selected {
                print_line(&json_line(&log.record_with_hash(index)));
            }
            continue;
        }
        let records: Vec<Option<AuditRecord>> =
            log.records.iter().map(AuditRecord::from_fields).collect();
        print_line(
            &style(format!("{}  {}", log.name.as_str(), format_heading(&records)))
                .bold()
                .to_string(),
        );
        for index in selected {
            let described = match &records[index] {
                Some(record) => record_text::describe_record(record, &records)
                    .map(|text| (format_time(&record.at), text)),
                // A record kind of another version is printed as JSON.
                None => Some(("?".to_owned(), json_line(&log.records[index]))),
            };
            if let Some((time, text)) = described {
                print_line(&format!(
                    "  {} {}",
                    style(time).dim(),
                    terminal_escape::escape_line(&text, 1000)
                ));
            }
            for line in records[index].iter().flat_map(record_text::describe_details) {
                print_line(&format!("      {line}"));
            }
        }
    }
    if logs.is_empty() {
        print_line("There are no records yet.");
    }
    Ok(if warn_errors(logs) { ExitCode::from(exit::FAILURE) } else { ExitCode::SUCCESS })
}

fn format_heading(records: &[Option<AuditRecord>]) -> String {
    let session = records.iter().flatten().find_map(|record| match &record.what {
        RecordKind::Session { workspace, mode, model, least_command_sandbox, .. } => {
            Some((record, workspace, mode, model, least_command_sandbox))
        }
        _ => None,
    });
    let Some((record, workspace, mode, model, least)) = session else {
        return "(no start record)".into();
    };
    let mut text =
        vec![format!("mode {mode}"), format!("commands at sandbox level `{least}` or stronger")];
    text.extend(record.session.as_ref().map(|session| format!("session {session}")));
    text.extend(model.as_ref().map(|model| format!("model {model}")));
    text.push(workspace.clone());
    terminal_escape::escape_line(&text.join(" · "), 600)
}

fn format_time(at: &str) -> String {
    at.parse::<jiff::Timestamp>().map_or_else(
        |_| "?".into(),
        |time| {
            time.to_zoned(jiff::tz::TimeZone::system()).strftime("%Y-%m-%d %H:%M:%S").to_string()
        },
    )
}
