//! Audit records as text for `cofferdam audit show`.

use super::command_text;
use crate::json_text::json_line;
use cofferdam::audit::{
    ApprovedScope, AuditRecord, CallEndRecord, CommandEnd, CommandRun, ContactsRecord,
    DecisionAuthority, EffectRecord, PathChangeRecord, RecordKind, SettingChange, TouchedRecord,
};
use cofferdam::conversation::ResultStatus;
use cofferdam::policy::Verdict;
use serde::Serialize;

/// Maximum number of changes of one write that are listed.
const MAX_CHANGES: usize = 5;

/// Describes a record in one line, or returns `None` for records that the heading already covers.
/// `all` are the records of the same log.
pub(super) fn describe_record(record: &AuditRecord, all: &[Option<AuditRecord>]) -> Option<String> {
    let request = record.request.as_deref().unwrap_or("?");
    Some(match &record.what {
        RecordKind::Log { .. } | RecordKind::Session { .. } => return None,
        RecordKind::Request { model } => format!("request {request} started with {model}"),
        RecordKind::Outcome { outcome } => format!("request {request} ended: {outcome}"),
        RecordKind::Decided { actor, effect, decision, by, .. } => {
            let is_open = *decision == Verdict::Allow && !has_end_record(record, &actor.call, all);
            let unknown =
                if is_open { "; no record of its end, so its outcome is unknown" } else { "" };
            format!(
                "{}: {decision} {} ({}){unknown}",
                actor.tool,
                self::describe_effect(effect),
                self::describe_authority(by)
            )
        }
        RecordKind::Ended(ended) => self::describe_call_end(ended),
        RecordKind::BackgroundCheckpoint(reached) => {
            let CommandRun { line_sha256: digest, changes, more_changes, .. } = &reached.command;
            let count = u64::try_from(changes.len()).unwrap_or(u64::MAX);
            format!(
                "{}: checkpoint of a background command; command {}: {} changes committed",
                reached.actor.tool,
                digest.get(..12).unwrap_or(digest),
                count.saturating_add(*more_changes)
            )
        }
        RecordKind::BackgroundEnded(ended) => {
            format!(
                "{}: background command ended{}",
                ended.actor.tool,
                describe_command(&ended.command)
            )
        }
        RecordKind::Refused { tool, problem, .. } => format!("{tool}: refused: {problem}"),
        RecordKind::Changed(changed) => self::describe_setting_change(changed),
        RecordKind::Gap { lost } => {
            format!("{lost} records are missing here, because they could not be written")
        }
        RecordKind::Pruned { logs, records, bad, newest, .. } => {
            let bad = if *bad == 0 {
                String::new()
            } else {
                format!(", {bad} of which failed verification")
            };
            format!(
                "removed {logs} logs with {records} records{bad}: all up to {}, which ended with \
                    hash {}",
                newest.log, newest.hash
            )
        }
        other => self::describe_as_json(other),
    })
}

/// Describes what the commands of a record changed and which connections they asked for, one line
/// each, escaped.
pub(super) fn describe_details(record: &AuditRecord) -> Vec<String> {
    let commands = record.what.commands().map(|(_, commands)| commands).unwrap_or_default();
    commands.iter().flat_map(command_text::describe_activity).collect()
}

/// Returns whether a later record ends the call that `decided` allowed.
fn has_end_record(decided: &AuditRecord, call: &str, all: &[Option<AuditRecord>]) -> bool {
    all.iter().flatten().any(|record| match &record.what {
        RecordKind::Ended(ended) => {
            record.n > decided.n && record.request == decided.request && ended.actor.call == call
        }
        _ => false,
    })
}

fn describe_effect(effect: &EffectRecord) -> String {
    match effect {
        EffectRecord::Command { line, directory, background, .. } => {
            let kind = if *background { "background command" } else { "command" };
            match directory.as_str() {
                "" => format!("the {kind} `{line}`"),
                directory => format!("the {kind} `{line}` in {directory}"),
            }
        }
        EffectRecord::Input { line, text } => {
            format!("the input {text:?} to the background command `{line}`")
        }
        EffectRecord::Write { changes, more, .. } => {
            let mut listed: Vec<String> =
                changes.iter().take(MAX_CHANGES).map(describe_path_change).collect();
            let rest = changes.len().saturating_sub(MAX_CHANGES) + more;
            listed.extend((rest > 0).then(|| format!("and {rest} more")));
            format!("writing: {}", listed.join(", "))
        }
        EffectRecord::Fetch { method, url, .. } => format!("{method} {url}"),
        EffectRecord::Connect { host, line } => format!("connecting to {host} from `{line}`"),
        EffectRecord::Confirmed => "running".to_owned(),
        EffectRecord::Plan { then, .. } => format!("the plan, followed by mode {then}"),
        other => self::describe_as_json(other),
    }
}

/// Describes a part of a record that has no text of its own, so that no record is hidden.
fn describe_as_json(part: &impl Serialize) -> String {
    json_line(part)
}

fn describe_path_change(change: &PathChangeRecord) -> String {
    let act = change.act.name();
    let mut text = match (&change.from, &change.to) {
        (Some(from), _) => format!("{act} {from} to {}", change.path),
        (None, Some(to)) => format!("{act} {} to {to}", change.path),
        (None, None) => format!("{act} {}", change.path),
    };
    if let Some(size) = change.size {
        text.push_str(&format!(" ({size} bytes)"));
    }
    match (change.mode_before, change.mode) {
        (Some(before), Some(after)) => text.push_str(&format!(" ({before:04o} → {after:04o})")),
        (None, Some(after)) => text.push_str(&format!(" ({after:04o})")),
        (_, None) => {}
    }
    text
}

fn describe_authority(by: &DecisionAuthority) -> String {
    match by {
        DecisionAuthority::Denial { code, place: Some(place), .. } => format!("{code}, {place}"),
        DecisionAuthority::Denial { code, place: None, .. } => code.clone(),
        DecisionAuthority::User { asked: Some(asked), scope: Some(scope), .. } => {
            format!(
                "approved earlier by the user, for {}; approval required by {}",
                self::describe_scope(scope),
                self::describe_authority(asked)
            )
        }
        DecisionAuthority::User { asked: Some(asked), scope: None, .. } => {
            format!(
                "approved earlier by the user; approval required by {}",
                self::describe_authority(asked)
            )
        }
        DecisionAuthority::User { scope: Some(scope), .. } => {
            format!("the user, also for {}", self::describe_scope(scope))
        }
        DecisionAuthority::User { user, scope: None, asked: None } => format!("the user, {user}"),
        DecisionAuthority::Rule { rule, place } => format!("rule {rule}, {place}"),
        DecisionAuthority::NotListed { not_listed, place } => {
            format!("not in the `allow` list of [{not_listed}], {place}")
        }
        DecisionAuthority::Mode { mode } => format!("mode {mode}"),
        DecisionAuthority::Reading { .. } => "reading".to_owned(),
        other => self::describe_as_json(other),
    }
}

fn describe_scope(scope: &ApprovedScope) -> String {
    match scope {
        ApprovedScope::Command { tool, directory, background, words, open } => {
            let place =
                if directory.is_empty() { String::new() } else { format!(" in {directory}") };
            let kind = if *background { "background commands" } else { "commands" };
            format!(
                "{tool} {kind}{place} that {} `{}`",
                if *open { "begin with" } else { "are exactly" },
                words.join(" ")
            )
        }
        ApprovedScope::Write { tool, path } => format!("{tool} writing {path}"),
        ApprovedScope::Fetch { tool, method, host } => {
            format!("{method} requests of {tool} to {host}")
        }
        ApprovedScope::Connect { host } => format!("connections of commands to {host}"),
        other => self::describe_as_json(other),
    }
}

fn describe_setting_change(changed: &SettingChange) -> String {
    match changed {
        SettingChange::Mode { mode } => format!("changed to mode {mode}"),
        SettingChange::Approved { scope } => {
            format!("approved for the session: {}", self::describe_scope(scope))
        }
        SettingChange::Trusted { path, sha256 } => {
            format!("trusted: {path} with sha256:{sha256}")
        }
        SettingChange::NoLongerTrusted { path } => format!("no longer trusted: {path}"),
        SettingChange::PluginAccepted { path, sha256, wider } => {
            let wider = if wider.is_empty() {
                String::new()
            } else {
                format!("; new permissions: {}", wider.join("; "))
            };
            format!("accepted: the plugin {path} with sha256:{sha256}{wider}")
        }
        SettingChange::PluginRemoved { name, path } => {
            format!("removed: the plugin {name}, {path}")
        }
        SettingChange::Undo { tool: Some(tool), paths, more, .. } => {
            let more = if *more == 0 { String::new() } else { format!(" and {more} more") };
            format!("undo: the change by {tool} to {}{more}", paths.join(", "))
        }
        SettingChange::Undo { tool: None, .. } => {
            "undo: the interrupted change, if there was one".to_owned()
        }
        SettingChange::UndoFailed { problem, .. } => {
            format!("the undo failed or was not complete: {problem}")
        }
        other => self::describe_as_json(other),
    }
}

fn describe_call_end(ended: &CallEndRecord) -> String {
    let status = match ended.status {
        ResultStatus::Ok => "ok",
        ResultStatus::Error => "error",
        ResultStatus::Rejected => "rejected",
        ResultStatus::NotRun => "not run",
        ResultStatus::Interrupted => "interrupted",
    };
    let dialog = match ended.waited_ms {
        0 => String::new(),
        waited => format!(" ({waited} ms of that in a dialog)"),
    };
    let mut text = format!(
        "{}: {} after {} ms{dialog}, {} bytes in, {} bytes out",
        ended.actor.tool,
        ended.failure.as_deref().unwrap_or(status),
        ended.wall_ms,
        ended.input_bytes,
        ended.output_bytes
    );
    text.extend(ended.commands.iter().map(describe_command));
    text.extend(ended.touched.as_ref().map(describe_touched));
    text.extend(ended.contacted.as_ref().map(describe_contacts));
    text
}

/// Describes a command: digest of its line, sandbox level, and how it ended.
fn describe_command(command: &CommandRun) -> String {
    let ending = match command.ending {
        Some(CommandEnd::Exited(code)) => format!("exited {code}"),
        Some(CommandEnd::Killed(signal)) => format!("killed by signal {signal}"),
        Some(CommandEnd::TimedOut) => "timed out".to_owned(),
        Some(other) => self::describe_as_json(&other),
        None => "stopped".to_owned(),
    };
    let digest = &command.line_sha256;
    format!("; command {} in `{}`: {ending}", digest.get(..12).unwrap_or(digest), command.level)
}

fn describe_touched(touched: &TouchedRecord) -> String {
    let mut text = String::new();
    for (paths, word) in
        [(&touched.read, "read"), (&touched.written, "wrote"), (&touched.walked, "listed")]
    {
        if !paths.is_empty() {
            text.push_str(&format!("; {word} {}", paths.join(", ")));
        }
    }
    if touched.more > 0 {
        text.push_str(&format!("; touched {} more paths", touched.more));
    }
    text
}

fn describe_contacts(contacted: &ContactsRecord) -> String {
    let mut text = String::new();
    for request in &contacted.requests {
        let at =
            request.address.as_ref().map(|address| format!(" at {address}")).unwrap_or_default();
        let status = request.status.map_or("no response".to_owned(), |status| status.to_string());
        text.push_str(&format!("; sent {} to {}{at}: {status}", request.method, request.host));
    }
    if contacted.more > 0 {
        text.push_str(&format!("; sent {} more requests", contacted.more));
    }
    text
}
