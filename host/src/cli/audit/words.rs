//! A record in words.

use crate::audit::{By, Change, Changed, Command, Contacted, Effect, Ended, Ending, Record, Scope, Touched, What};
use crate::conversation::ResultStatus;
use crate::policy::Verdict;

/// Changes of one write that are told one by one.
const MOST_CHANGES: usize = 5;

/// None for what the heading says already.
pub(super) fn of(record: &Record, all: &[Option<Record>]) -> Option<String> {
    let request = record.request.as_deref().unwrap_or("?");
    Some(match &record.what {
        What::Log { .. } | What::Session { .. } => return None,
        What::Request { model } => format!("request {request} begins, of {model}"),
        What::Outcome { outcome } => format!("request {request} ends: {outcome}"),
        What::Decided { actor, effect, decision, by, .. } => {
            let is_open = *decision == Verdict::Allow && !ends(record, &actor.call, all);
            let unknown = if is_open { ", and then nothing: its outcome is unknown" } else { "" };
            format!("{}: {decision} {} ({}){unknown}", actor.tool, self::effect(effect), self::by(by))
        }
        What::Ended(ended) => self::ended(ended),
        What::Refused { tool, problem, .. } => format!("{tool}: refused: {problem}"),
        What::Changed(changed) => self::changed(changed),
        What::Gap { lost } => format!("{lost} records are missing here: they could not be written"),
        What::Pruned { logs, records, bad, newest, .. } => {
            let bad = if *bad == 0 { String::new() } else { format!(", {bad} of them not as they had been written") };
            format!("{logs} logs with {records} records are removed{bad}: all up to {}, which ended with {}", newest.log, newest.hash)
        }
    })
}

/// Whether the end of a call is on record after this.
fn ends(decided: &Record, call: &str, all: &[Option<Record>]) -> bool {
    all.iter().flatten().any(|record| match &record.what {
        What::Ended(ended) => record.n > decided.n && record.request == decided.request && ended.actor.call == call,
        _ => false,
    })
}

fn effect(effect: &Effect) -> String {
    match effect {
        Effect::Command { line, directory } if directory.is_empty() => format!("the command `{line}`"),
        Effect::Command { line, directory } => format!("the command `{line}` in {directory}"),
        Effect::Write { changes, more, .. } => {
            let mut told: Vec<String> = changes.iter().take(MOST_CHANGES).map(change).collect();
            let left = changes.len().saturating_sub(MOST_CHANGES) + more;
            told.extend((left > 0).then(|| format!("and {left} more")));
            format!("writing: {}", told.join(", "))
        }
        Effect::Fetch { method, url, .. } => format!("{method} {url}"),
        Effect::Confirmed => "running".to_owned(),
        Effect::Plan { then, .. } => format!("the plan, and mode {then} after it"),
    }
}

fn change(change: &Change) -> String {
    let act = change.act.name();
    let mut words = match (&change.from, &change.to) {
        (Some(from), _) => format!("{act} {from} to {}", change.path),
        (None, Some(to)) => format!("{act} {} to {to}", change.path),
        (None, None) => format!("{act} {}", change.path),
    };
    if let Some(size) = change.size {
        words.push_str(&format!(" ({size} bytes)"));
    }
    words
}

fn by(by: &By) -> String {
    match by {
        By::Denial { code, place: Some(place), .. } => format!("{code}, {place}"),
        By::Denial { code, place: None, .. } => code.clone(),
        By::User { asked: Some(asked), scope: Some(scope), .. } => {
            format!("approved earlier by the user, for {}; asked by {}", self::scope(scope), self::by(asked))
        }
        By::User { asked: Some(asked), scope: None, .. } => format!("approved earlier by the user; asked by {}", self::by(asked)),
        By::User { scope: Some(scope), .. } => format!("the user, also for {}", self::scope(scope)),
        By::User { user, scope: None, asked: None } => format!("the user, {user}"),
        By::Rule { rule, place } => format!("rule {rule}, {place}"),
        By::NotListed { not_listed, place } => format!("not on the list of [{not_listed}], {place}"),
        By::Mode { mode } => format!("mode {mode}"),
        By::Reading { .. } => "reading".to_owned(),
    }
}

fn scope(scope: &Scope) -> String {
    match scope {
        Scope::Command { tool, directory, words, open } => {
            let place = if directory.is_empty() { String::new() } else { format!(" in {directory}") };
            format!("commands of {tool}{place} that {} `{}`", if *open { "begin with" } else { "are" }, words.join(" "))
        }
        Scope::Write { tool, path } => format!("{tool} writing {path}"),
        Scope::Fetch { tool, method, host } => format!("{method} requests of {tool} to {host}"),
    }
}

fn changed(changed: &Changed) -> String {
    match changed {
        Changed::Mode { mode } => format!("mode {mode} from now on"),
        Changed::Approved { scope } => format!("approved for the session: {}", self::scope(scope)),
        Changed::Trusted { path, sha256 } => format!("trusted from now on: {path} with sha256:{sha256}"),
        Changed::NoLongerTrusted { path } => format!("trusted no longer: {path}"),
        Changed::PluginAccepted { path, sha256, wider } => {
            let wider = if wider.is_empty() { String::new() } else { format!("; new: {}", wider.join("; ")) };
            format!("accepted from now on: the plugin {path} with sha256:{sha256}{wider}")
        }
        Changed::PluginRemoved { name, path } => format!("removed: the plugin {name}, {path}"),
        Changed::Undo { tool: Some(tool), paths, more, .. } => {
            let more = if *more == 0 { String::new() } else { format!(" and {more} more") };
            format!("taken back: the change of {tool} to {}{more}", paths.join(", "))
        }
        Changed::Undo { tool: None, .. } => "taken back: what was interrupted, if anything".to_owned(),
    }
}

fn ended(ended: &Ended) -> String {
    let status = match ended.status {
        ResultStatus::Ok => "ok",
        ResultStatus::Error => "error",
        ResultStatus::Rejected => "rejected",
        ResultStatus::NotRun => "not run",
        ResultStatus::Interrupted => "interrupted",
    };
    let dialog = match ended.waited_ms {
        0 => String::new(),
        waited => format!(" ({waited} ms of it in a dialog)"),
    };
    let mut words = format!(
        "{}: {} after {} ms{dialog}, {} bytes in, {} bytes out",
        ended.actor.tool,
        ended.failure.as_deref().unwrap_or(status),
        ended.wall_ms,
        ended.input_bytes,
        ended.output_bytes
    );
    words.extend(ended.commands.iter().map(command));
    words.extend(ended.touched.as_ref().map(touched));
    words.extend(ended.contacted.as_ref().map(contacted));
    words
}

/// Where a command ran, and how it ended.
fn command(command: &Command) -> String {
    let ending = match command.ending {
        Some(Ending::Exited(code)) => format!("exited {code}"),
        Some(Ending::Killed(signal)) => format!("killed {signal}"),
        Some(Ending::TimedOut) => "timed out".to_owned(),
        None => "stopped".to_owned(),
    };
    let digest = &command.line_sha256;
    format!("; command {} in `{}`: {ending}", digest.get(..12).unwrap_or(digest), command.level)
}

fn touched(touched: &Touched) -> String {
    let mut words = String::new();
    for (paths, word) in [(&touched.read, "read"), (&touched.written, "wrote"), (&touched.walked, "walked through")] {
        if !paths.is_empty() {
            words.push_str(&format!("; {word} {}", paths.join(", ")));
        }
    }
    if touched.more > 0 {
        words.push_str(&format!("; touched {} more paths", touched.more));
    }
    words
}

fn contacted(contacted: &Contacted) -> String {
    let mut words = String::new();
    for request in &contacted.requests {
        let at = request.address.as_ref().map(|address| format!(" at {address}")).unwrap_or_default();
        let status = request.status.map_or("no answer".to_owned(), |status| status.to_string());
        words.push_str(&format!("; sent {} to {}{at}: {status}", request.method, request.host));
    }
    if contacted.more > 0 {
        words.push_str(&format!("; sent {} more requests", contacted.more));
    }
    words
}
