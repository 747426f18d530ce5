//! Converts the reports of the dispatcher to audit records.
//!
//! Keys are redacted before a text is truncated. Otherwise the start of a key at the cut would stay
//!

use super::record::{
    ApprovedScope, BackgroundRecord, CallActor, CallEndRecord, ChangeAct, CommandEnd, CommandRun,
    ContactRecord, ContactsRecord, DecisionAuthority, EffectRecord, PathChangeRecord, RecordKind,
    SettingChange, TouchedRecord,
};
use crate::conversation::ToolCall;
use crate::policy::{
    self, AllowBasis, ChangeKind, CommandScope, Denial, ReasonedVerdict, SourceLocation, Verdict,
    VerdictReason,
};
use crate::tools::{
    self, CallIdentity, CommandChange, CommandEnding, DecisionBasis, DecisionRecord, HttpContacts,
    RecordedOutcome,
};
use crate::tools::{JobStage, RanCommand};

/// The most bytes that are recorded of a denied command, URL or plan. The rest never ran.
const MAX_DENIED_BYTES: usize = 4 << 10;
/// The most bytes that are recorded of a name or an error message that a model wrote.
const MAX_TEXT_BYTES: usize = 1 << 10;
/// The most paths that are listed of each kind. The others are counted.
///
/// A record must stay small enough for a single `write`.
const MAX_PATHS: usize = 50;
const MAX_PATH_BYTES: usize = 400;

/// A function that redacts keys in a text.
pub(super) type RedactText<'a> = &'a dyn Fn(&str) -> String;

/// Encodes a decision about an effect.
pub(super) fn encode_decision(
    subject: &CallIdentity,
    decided: &DecisionRecord,
    redact: RedactText<'_>,
) -> RecordKind {
    let (decision, by) = match &decided.outcome {
        RecordedOutcome::Allowed(basis) => (Verdict::Allow, self::encode_basis(basis)),
        RecordedOutcome::Denied(denial) => (Verdict::Deny, self::encode_denial(denial, redact)),
    };
    // An effect that is allowed is recorded in full.
    let max_bytes = if decision == Verdict::Allow { usize::MAX } else { MAX_DENIED_BYTES };
    let effect = encode_effect(&decided.effect, &|text| truncate(&redact(text), max_bytes), redact);
    RecordKind::Decided {
        actor: Box::new(encode_actor(subject)),
        effect,
        decision,
        by: Box::new(by),
        waited_ms: to_millis(decided.waited),
    }
}

fn encode_effect(
    effect: &policy::Effect,
    redact_and_cut: RedactText<'_>,
    redact: RedactText<'_>,
) -> EffectRecord {
    match effect {
        policy::Effect::Command { line, directory, background } => EffectRecord::Command {
            line: redact_and_cut(line),
            directory: directory.as_str().to_owned(),
            background: *background,
        },
        policy::Effect::Input { line, text, .. } => {
            EffectRecord::Input { line: redact_and_cut(line), text: redact_and_cut(text) }
        }
        policy::Effect::Write { changes, confirm } => EffectRecord::Write {
            changes: changes
                .iter()
                .take(MAX_PATHS)
                .map(|one| encode_path_change(one, redact))
                .collect(),
            more: changes.len().saturating_sub(MAX_PATHS),
            confirm: *confirm,
        },
        policy::Effect::Fetch { method, host, url } => EffectRecord::Fetch {
            method: redact_and_cut(method),
            host: host.to_string(),
            url: redact_and_cut(url),
        },
        policy::Effect::Connect { host, line } => {
            EffectRecord::Connect { host: host.to_string(), line: redact_and_cut(line) }
        }
        policy::Effect::Confirmed => EffectRecord::Confirmed,
        policy::Effect::Plan { text, then } => {
            EffectRecord::Plan { text: redact_and_cut(text), then: *then }
        }
    }
}

fn encode_path_change(change: &policy::FileChange, redact: RedactText<'_>) -> PathChangeRecord {
    let path = |path: &str| truncate(&redact(path), MAX_PATH_BYTES);
    let plain = |act| PathChangeRecord {
        act,
        path: path(change.path.as_str()),
        from: None,
        to: None,
        before: None,
        size: None,
        sha256: None,
        mode_before: None,
        mode: None,
    };
    let with = |act, before: Option<u64>, after: &policy::ContentDigest| PathChangeRecord {
        before,
        size: Some(after.size),
        // Large files of denied changes have none.
        sha256: (!after.digest.is_empty()).then(|| after.digest.clone()),
        ..plain(act)
    };
    match &change.kind {
        ChangeKind::Create { after } => with(ChangeAct::Create, None, after),
        ChangeKind::Modify { before, after } => with(ChangeAct::Modify, Some(*before), after),
        ChangeKind::Move { from, after } => PathChangeRecord {
            from: Some(path(from.as_str())),
            ..with(ChangeAct::Move, None, after)
        },
        ChangeKind::Delete { before } => {
            PathChangeRecord { before: Some(*before), ..plain(ChangeAct::Delete) }
        }
        ChangeKind::CreateDirectory => plain(ChangeAct::CreateDirectory),
        ChangeKind::RemoveDirectory => plain(ChangeAct::RemoveDirectory),
        ChangeKind::Link { to } => {
            PathChangeRecord { to: Some(path(to)), ..plain(ChangeAct::Link) }
        }
        ChangeKind::Unlink => plain(ChangeAct::Unlink),
        ChangeKind::SetMode { before, after } => PathChangeRecord {
            mode_before: *before,
            mode: Some(*after),
            ..plain(ChangeAct::SetMode)
        },
    }
}

fn encode_denial(denial: &Denial, redact: RedactText<'_>) -> DecisionAuthority {
    DecisionAuthority::Denial {
        code: denial.code.name().to_owned(),
        place: denial.place.as_ref().map(SourceLocation::to_string),
        reason: truncate(&redact(&denial.reason), MAX_TEXT_BYTES),
    }
}

fn encode_basis(basis: &DecisionBasis) -> DecisionAuthority {
    match basis {
        DecisionBasis::Policy(AllowBasis::Rules(reason)) => encode_reason(reason),
        DecisionBasis::Policy(AllowBasis::EarlierApproval { scope, verdict: asked }) => {
            DecisionAuthority::User {
                user: "earlier".into(),
                scope: Some(self::encode_scope(scope)),
                asked: Some(Box::new(encode_reason(asked))),
            }
        }
        DecisionBasis::UserOnce => {
            DecisionAuthority::User { user: "once".into(), scope: None, asked: None }
        }
        DecisionBasis::UserForScope(scope) | DecisionBasis::UserAlways(scope) => {
            let is_lasting = matches!(basis, DecisionBasis::UserAlways(_));
            DecisionAuthority::User {
                user: if is_lasting { "always" } else { "scope" }.into(),
                scope: scope.as_ref().map(self::encode_scope),
                asked: None,
            }
        }
    }
}

/// Encodes the rule, list or mode that allows an effect or requires approval.
fn encode_reason(reason: &ReasonedVerdict) -> DecisionAuthority {
    match &reason.reason {
        VerdictReason::Rule(rule) | VerdictReason::Perhaps(rule) => {
            DecisionAuthority::Rule { rule: rule.text.clone(), place: rule.place.to_string() }
        }
        VerdictReason::NotListed(kind, place, _) => DecisionAuthority::NotListed {
            not_listed: kind.section().to_owned(),
            place: place.to_string(),
        },
        VerdictReason::UnlistedHost(place, _) => DecisionAuthority::NotListed {
            not_listed: policy::ActionKind::Connect.section().to_owned(),
            place: place.to_string(),
        },
        VerdictReason::NoNetwork(place) => DecisionAuthority::Rule {
            rule: "network".to_owned(),
            place: place.as_ref().map_or("default".to_owned(), SourceLocation::to_string),
        },
        VerdictReason::Listed(listed) => DecisionAuthority::Rule {
            rule: listed.pattern.to_owned(),
            place: "built-in list".to_owned(),
        },
        VerdictReason::Mode(mode) => DecisionAuthority::Mode { mode: *mode },
        VerdictReason::Reading => DecisionAuthority::Reading { reading: Verdict::Allow },
    }
}

fn encode_scope(scope: &policy::Scope) -> ApprovedScope {
    match scope {
        policy::Scope::Command { tool, directory, background, lines } => {
            let (words, open) = match lines {
                CommandScope::BeginsWith(words) => (words, true),
                CommandScope::Exactly(words) => (words, false),
            };
            ApprovedScope::Command {
                tool: tool.clone(),
                directory: directory.as_str().to_owned(),
                background: *background,
                words: words.clone(),
                open,
            }
        }
        policy::Scope::Write { tool, path } => {
            ApprovedScope::Write { tool: tool.clone(), path: path.as_str().to_owned() }
        }
        policy::Scope::Fetch { tool, method, host } => ApprovedScope::Fetch {
            tool: tool.clone(),
            method: method.clone(),
            host: host.to_string(),
        },
        policy::Scope::Connect { host } => ApprovedScope::Connect { host: host.to_string() },
    }
}

/// Encodes the end of a call that ran.
pub(super) fn encode_call_end(
    subject: &CallIdentity,
    ended: &tools::FinishedCallRecord,
    redact: RedactText<'_>,
) -> RecordKind {
    let tools::FinishedCallRecord {
        status,
        failure_kind: failure,
        decision_records: decisions,
        unrecorded_denials: more_denials,
        commands,
        ..
    } = ended;
    let tools::FinishedCallRecord {
        active,
        waited,
        wall,
        input_bytes: input,
        output_bytes: output,
        memory_bytes: memory,
        log_bytes: log,
        touched,
        contacts,
        ..
    } = ended;
    let commands = commands.iter().map(|ran| encode_command_run(ran, redact));
    RecordKind::Ended(Box::new(CallEndRecord {
        actor: encode_actor(subject),
        status: *status,
        failure: failure.map(str::to_owned),
        decided: decisions.clone(),
        more_denials: *more_denials,
        commands: commands.collect(),
        active_ms: to_millis(*active),
        waited_ms: to_millis(*waited),
        wall_ms: to_millis(*wall),
        input_bytes: *input,
        output_bytes: *output,
        log_bytes: *log,
        memory_bytes: *memory,
        touched: self::encode_touched(touched, redact),
        contacted: encode_contacts(contacts),
    }))
}

/// Encodes a checkpoint or the end of a background command.
pub(super) fn encode_background_command(
    subject: &CallIdentity,
    stage: JobStage,
    ran: &RanCommand,
    redact: RedactText<'_>,
) -> RecordKind {
    let record = Box::new(BackgroundRecord {
        actor: encode_actor(subject),
        command: encode_command_run(ran, redact),
    });
    match stage {
        JobStage::Checkpoint => RecordKind::BackgroundCheckpoint(record),
        JobStage::End => RecordKind::BackgroundEnded(record),
    }
}

fn encode_command_run(ran: &RanCommand, redact: RedactText<'_>) -> CommandRun {
    let changes = ran.changes.iter();
    let changes =
        changes.map(|change| CommandChange { path: redact(&change.path), ..change.clone() });
    CommandRun {
        line_sha256: ran.line_sha256.to_string(),
        level: ran.level,
        ending: ran.ending.map(encode_command_end),
        remarks: ran.remarks.clone(),
        changes: changes.collect(),
        more_changes: ran.more_changes,
        connections: ran.connections.clone(),
    }
}

fn encode_command_end(ending: CommandEnding) -> CommandEnd {
    match ending {
        CommandEnding::Exited(code) => CommandEnd::Exited(code),
        CommandEnding::Killed(signal) => CommandEnd::Killed(signal),
        CommandEnding::TimedOut => CommandEnd::TimedOut,
    }
}

/// Returns `None` if the call opened no path, as for a tool without file permissions.
fn encode_touched(touched: &tools::TouchedPaths, redact: RedactText<'_>) -> Option<TouchedRecord> {
    if *touched == tools::TouchedPaths::default() {
        return None;
    }
    let mut more = touched.omitted;
    let mut list = |places: Vec<&String>| -> Vec<String> {
        more += places.len().saturating_sub(MAX_PATHS);
        let path = |place: &String| {
            if place.is_empty() { ".".to_owned() } else { truncate(&redact(place), MAX_PATH_BYTES) }
        };
        places.into_iter().take(MAX_PATHS).map(path).collect()
    };
    let read = list(touched.read.keys().collect());
    let (written, walked) =
        (list(touched.written.iter().collect()), list(touched.walked.iter().collect()));
    Some(TouchedRecord { read, written, walked, more })
}

fn encode_contacts(contacts: &HttpContacts) -> Option<ContactsRecord> {
    let request = |contact: &tools::HttpContact| ContactRecord {
        method: contact.method.clone(),
        host: contact.host.to_string(),
        address: contact.address.map(|address| address.to_string()),
        status: contact.status,
    };
    if *contacts == HttpContacts::default() {
        return None;
    }
    Some(ContactsRecord {
        requests: contacts.requests.iter().map(request).collect(),
        more: contacts.more,
    })
}

/// Encodes the refusal of a call that did not run.
pub(super) fn encode_refusal(call: &ToolCall, problem: &str, redact: RedactText<'_>) -> RecordKind {
    let words = |text: &str| truncate(&redact(text), MAX_TEXT_BYTES);
    RecordKind::Refused {
        call: words(call.id.as_str()),
        tool: words(call.name.trim()),
        problem: words(problem),
        input_bytes: call.arguments.len(),
    }
}

/// Encodes a change of what is allowed, or an undo.
pub(super) fn encode_authority_change(
    change: &tools::AuthorityChange<'_>,
    redact: RedactText<'_>,
) -> RecordKind {
    let owned = |text: &&str| (*text).to_owned();
    let words = |text: &String| truncate(&redact(text), MAX_TEXT_BYTES);
    RecordKind::Changed(match change {
        tools::AuthorityChange::ModeChanged(mode) => SettingChange::Mode { mode: *mode },
        tools::AuthorityChange::ScopeApproved(scope) => {
            SettingChange::Approved { scope: self::encode_scope(scope) }
        }
        tools::AuthorityChange::FileTrusted { path, digest } => {
            SettingChange::Trusted { path: owned(path), sha256: owned(digest) }
        }
        tools::AuthorityChange::FileDistrusted { path } => {
            SettingChange::NoLongerTrusted { path: owned(path) }
        }
        tools::AuthorityChange::PluginAccepted { path, digest, new_permissions: wider } => {
            let wider = wider.iter().take(MAX_PATHS).map(words).collect();
            SettingChange::PluginAccepted { path: owned(path), sha256: digest.to_string(), wider }
        }
        tools::AuthorityChange::PluginRemoved { name, path } => {
            SettingChange::PluginRemoved { name: owned(name), path: owned(path) }
        }
        tools::AuthorityChange::Undo(change) => {
            let (id, tool) = change.map(|(id, tool, _)| (id.to_owned(), tool.to_owned())).unzip();
            let paths = change.map_or(&[][..], |(_, _, paths)| paths);
            let path = |path: &String| truncate(&redact(path), MAX_PATH_BYTES);
            SettingChange::Undo {
                id,
                tool,
                paths: paths.iter().take(MAX_PATHS).map(path).collect(),
                more: paths.len().saturating_sub(MAX_PATHS),
            }
        }
        tools::AuthorityChange::UndoFailed { id, problem } => SettingChange::UndoFailed {
            id: id.map(str::to_owned),
            problem: truncate(&redact(problem), MAX_TEXT_BYTES),
        },
    })
}

fn encode_actor(subject: &CallIdentity) -> CallActor {
    let CallIdentity { call, tool, arguments: _, digest, origin, tier, grants } = subject;
    CallActor {
        call: call.clone(),
        tool: tool.clone(),
        component: digest.to_string(),
        origin: origin.to_string(),
        tier: tier.name().to_owned(),
        grants: grants.clone(),
    }
}

fn truncate(text: &str, max_bytes: usize) -> String {
    if text.len() <= max_bytes {
        return text.to_owned();
    }
    format!("{}… ({} bytes)", &text[..text.floor_char_boundary(max_bytes)], text.len())
}

fn to_millis(duration: std::time::Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests;
