//! `cofferdam audit show`: what was decided and done, a line for each record.

use std::fmt::Write as _;
use std::process::ExitCode;

use console::style;
use serde_json::{Map, Value};

use super::warn_of_problems;
use crate::audit::Inspected;
use crate::cli::error::Done;
use crate::cli::exit;
use crate::cli::print::stdout_line;
use crate::shown;

type Record = Map<String, Value>;

pub(super) fn run(logs: &[Inspected], tool: Option<&str>, as_json: bool) -> Done {
    for log in logs {
        let is_meant = |record: &&Record| tool.is_none_or(|tool| text(record, "tool") == tool);
        let meant: Vec<&Record> = log.records.iter().filter(is_meant).collect();
        if meant.is_empty() {
            continue;
        }
        if as_json {
            for record in meant {
                stdout_line(&shown::json(&Value::Object(record.clone()).to_string()));
            }
            continue;
        }
        stdout_line(&style(format!("{}  {}", log.name.as_str(), about(log))).bold().to_string());
        for record in meant {
            if let Some(words) = in_words(record, log) {
                stdout_line(&format!("  {} {}", style(time(record)).dim(), shown::line(&words, 1000)));
            }
        }
    }
    if logs.is_empty() {
        stdout_line("Nothing is on record yet.");
    }
    Ok(if warn_of_problems(logs) { ExitCode::from(exit::FAILED) } else { ExitCode::SUCCESS })
}

fn about(log: &Inspected) -> String {
    let Some(session) = log.records.iter().find(|record| text(record, "kind") == "session") else { return "(no beginning)".into() };
    let mut words = vec![
        format!("mode {}", text(session, "mode")),
        format!("commands in a sandbox `{}` or better", text(session, "least_command_sandbox")),
    ];
    words.extend(["session", "model"].iter().filter(|key| session.get(**key).is_some_and(Value::is_string)).map(|key| {
        let value = text(session, key);
        format!("{key} {value}")
    }));
    words.push(text(session, "workspace").to_owned());
    shown::line(&words.join(" · "), 600)
}

/// None for what the heading says already.
fn in_words(record: &Record, log: &Inspected) -> Option<String> {
    let tool = text(record, "tool");
    Some(match text(record, "kind") {
        "log" | "session" => return None,
        "request" => format!("request {} begins", text(record, "request")),
        "outcome" => format!("request {} ends: {}", text(record, "request"), text(record, "outcome")),
        "decided" => {
            let unknown = if is_open(record, log) { ", and then nothing: its outcome is unknown" } else { "" };
            format!("{tool}: {} {} ({}){unknown}", text(record, "decision"), effect(record), by(record))
        }
        "ended" => format!(
            "{tool}: {} after {} ms, {} bytes in, {} bytes out{}",
            record.get("failure").and_then(Value::as_str).unwrap_or(text(record, "status")),
            number(record, "wall_ms"),
            number(record, "input_bytes"),
            number(record, "output_bytes"),
            commands(record) + &effects(record)
        ),
        "changed" if record.contains_key("trusted") => {
            format!("trusted from now on: {} with sha256:{}", text(record, "trusted"), text(record, "digest"))
        }
        "changed" if record.contains_key("no_longer_trusted") => format!("trusted no longer: {}", text(record, "no_longer_trusted")),
        "refused" => format!("{tool}: refused: {}", text(record, "problem")),
        "gap" => format!("{} records are missing here: they could not be written", number(record, "lost")),
        // Kinds of other versions show themselves.
        kind => format!("{kind} {}", rest(record)),
    })
}

/// The commands of a call: how many ran where, and how they ended.
fn commands(record: &Record) -> String {
    let told = record.get("commands").and_then(Value::as_array).into_iter().flatten().map(|command| {
        let ending = command.get("ending").and_then(Value::as_object).and_then(|ending| ending.iter().next());
        let ending = match ending {
            Some((how, number)) => format!("{how} {number}"),
            None => command.get("ending").and_then(Value::as_str).unwrap_or("stopped").to_owned(),
        };
        let text = |key| command.get(key).and_then(Value::as_str).unwrap_or_default();
        let digest = text("line_sha256");
        format!("; command {} in `{}`: {ending}", digest.get(..12).unwrap_or(digest), text("level"))
    });
    told.collect()
}

/// Whether it was allowed and no end of its call is on record.
fn is_open(decided: &Record, log: &Inspected) -> bool {
    let ends =
        |record: &Record| text(record, "kind") == "ended" && ["call", "request"].iter().all(|key| record.get(*key) == decided.get(*key));
    let number = number(decided, "n");
    text(decided, "decision") == "allow" && !log.records.iter().any(|record| self::number(record, "n") > number && ends(record))
}

fn effect(record: &Record) -> String {
    let Some(effect) = record.get("effect").and_then(Value::as_object) else { return String::new() };
    match text(effect, "kind") {
        "command" => format!("the command `{}`", text(effect, "line")),
        "write" => format!("writing {}", effect.get("paths").map(Value::to_string).unwrap_or_default()),
        "fetch" => format!("{} {}", text(effect, "method"), text(effect, "url")),
        kind => format!("{kind} {}", rest(effect)),
    }
}

/// What a call has touched, and whom it has asked.
fn effects(record: &Record) -> String {
    let mut words = String::new();
    if let Some(touched) = record.get("touched").and_then(Value::as_object) {
        for (key, word) in [("read", "read"), ("written", "wrote"), ("walked", "walked through")] {
            let paths: Vec<&str> = touched.get(key).and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str).collect();
            if !paths.is_empty() {
                let _ = write!(words, "; {word} {}", paths.join(", "));
            }
        }
        if number(touched, "more") > 0 {
            let _ = write!(words, "; touched {} more paths", number(touched, "more"));
        }
    }
    let Some(contacted) = record.get("contacted").and_then(Value::as_object) else { return words };
    for contact in contacted.get("requests").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_object) {
        let at = contact.get("address").and_then(Value::as_str).map(|address| format!(" at {address}")).unwrap_or_default();
        let status = contact.get("status").and_then(Value::as_u64).map_or("no answer".to_owned(), |status| status.to_string());
        let _ = write!(words, "; sent {} to {}{at}: {status}", text(contact, "method"), text(contact, "host"));
    }
    if number(contacted, "more") > 0 {
        let _ = write!(words, "; sent {} more requests", number(contacted, "more"));
    }
    words
}

fn by(record: &Record) -> String {
    let Some(by) = record.get("by").and_then(Value::as_object) else { return "nobody".into() };
    by.iter()
        .filter(|(_, value)| !value.is_null())
        .map(|(key, value)| format!("{key} {}", value.as_str().map_or_else(|| value.to_string(), str::to_owned)))
        .collect::<Vec<_>>()
        .join(", ")
}

fn rest(record: &Record) -> String {
    let own = |key: &str| !["n", "prev", "kind", "at", "session", "request"].contains(&key);
    Value::Object(record.iter().filter(|(key, _)| own(key)).map(|(key, value)| (key.clone(), value.clone())).collect()).to_string()
}

fn time(record: &Record) -> String {
    text(record, "at")
        .parse::<jiff::Timestamp>()
        .map_or_else(|_| "?".into(), |time| time.to_zoned(jiff::tz::TimeZone::system()).strftime("%Y-%m-%d %H:%M:%S").to_string())
}

fn text<'r>(record: &'r Record, key: &str) -> &'r str {
    record.get(key).and_then(Value::as_str).unwrap_or_default()
}

fn number(record: &Record, key: &str) -> u64 {
    record.get(key).and_then(Value::as_u64).unwrap_or_default()
}
