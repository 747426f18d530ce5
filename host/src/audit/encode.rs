//! From what the ledger is told to what is written down.
//!
//! Keys are taken out of a text before it is cut: of one that the cut goes through the beginning
//! would stay.

use super::record::{
    ApprovedScope, CallActor, CallEndRecord, ChangeAct, CommandEnd, CommandRun, ContactRecord,
    ContactsRecord, DecisionAuthority, EffectRecord, PathChangeRecord, RecordKind, SettingChange,
    TouchedRecord,
};
use crate::conversation::ToolCall;
use crate::policy::{
    self, AllowBasis, ChangeKind, CommandScope, Denial, ReasonedVerdict, SourceLocation, Verdict,
    VerdictReason,
};
use crate::tools::{
    self, CallIdentity, CommandEnding, DecisionBasis, DecisionRecord, HttpContacts, RecordedOutcome,
};

/// Of a command, an address or a plan that was denied, bytes that are kept: nobody ran the rest.
const MAX_DENIED_BYTES: usize = 4 << 10;
/// Of a name or a problem that a model wrote.
const MAX_TEXT_BYTES: usize = 1 << 10;
/// Of each kind of paths; the others are counted. A record has to stay small enough to be written
/// at once.
const MAX_PATHS: usize = 50;
const MAX_PATH_BYTES: usize = 400;

/// Takes keys out of a text.
pub(super) type RedactText<'a> = &'a dyn Fn(&str) -> String;

/// An effect was decided on.
pub(super) fn encode_decision(
    subject: &CallIdentity,
    decided: &DecisionRecord,
    clean: RedactText<'_>,
) -> RecordKind {
    let (decision, by) = match &decided.outcome {
        RecordedOutcome::Allowed(ground) => (Verdict::Allow, self::encode_basis(ground)),
        RecordedOutcome::Denied(denial) => (Verdict::Deny, self::encode_denial(denial, clean)),
    };
    // What happens is on record as a whole.
    let most = if decision == Verdict::Allow { usize::MAX } else { MAX_DENIED_BYTES };
    let effect = encode_effect(&decided.effect, &|text| truncate(&clean(text), most), clean);
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
    whole: RedactText<'_>,
    clean: RedactText<'_>,
) -> EffectRecord {
    match effect {
        policy::Effect::Command { line, directory } => {
            EffectRecord::Command { line: whole(line), directory: directory.as_str().to_owned() }
        }
        policy::Effect::Write { changes, confirm } => EffectRecord::Write {
            changes: changes
                .iter()
                .take(MAX_PATHS)
                .map(|one| encode_path_change(one, clean))
                .collect(),
            more: changes.len().saturating_sub(MAX_PATHS),
            confirm: *confirm,
        },
        policy::Effect::Fetch { method, host, url } => {
            EffectRecord::Fetch { method: whole(method), host: host.to_string(), url: whole(url) }
        }
        policy::Effect::Confirmed => EffectRecord::Confirmed,
        policy::Effect::Plan { text, then } => {
            EffectRecord::Plan { text: whole(text), then: *then }
        }
    }
}

fn encode_path_change(change: &policy::FileChange, clean: RedactText<'_>) -> PathChangeRecord {
    let path = |path: &str| truncate(&clean(path), MAX_PATH_BYTES);
    let plain = |act| PathChangeRecord {
        act,
        path: path(change.path.as_str()),
        from: None,
        to: None,
        before: None,
        size: None,
        sha256: None,
    };
    let with = |act, before: Option<u64>, after: &policy::ContentDigest| PathChangeRecord {
        before,
        size: Some(after.size),
        sha256: Some(after.digest.clone()),
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
    }
}

fn encode_denial(denial: &Denial, clean: RedactText<'_>) -> DecisionAuthority {
    DecisionAuthority::Denial {
        code: denial.code.name().to_owned(),
        place: denial.place.as_ref().map(SourceLocation::to_string),
        reason: truncate(&clean(&denial.reason), MAX_TEXT_BYTES),
    }
}

fn encode_basis(ground: &DecisionBasis) -> DecisionAuthority {
    match ground {
        DecisionBasis::Policy(AllowBasis::Rules(finding)) => encode_reason(finding),
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
        DecisionBasis::UserForScope(scope) => DecisionAuthority::User {
            user: "scope".into(),
            scope: scope.as_ref().map(self::encode_scope),
            asked: None,
        },
    }
}

/// The rule or the mode that allows or asks.
fn encode_reason(finding: &ReasonedVerdict) -> DecisionAuthority {
    match &finding.reason {
        VerdictReason::Rule(rule) | VerdictReason::Perhaps(rule) => {
            DecisionAuthority::Rule { rule: rule.text.clone(), place: rule.place.to_string() }
        }
        VerdictReason::NotListed(kind, place, _) => DecisionAuthority::NotListed {
            not_listed: kind.section().to_owned(),
            place: place.to_string(),
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
        policy::Scope::Command { tool, directory, lines } => {
            let (words, open) = match lines {
                CommandScope::BeginsWith(words) => (words, true),
                CommandScope::Exactly(words) => (words, false),
            };
            ApprovedScope::Command {
                tool: tool.clone(),
                directory: directory.as_str().to_owned(),
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
    }
}

/// A call that ran is over.
pub(super) fn encode_call_end(
    subject: &CallIdentity,
    ended: &tools::FinishedCallRecord,
    clean: RedactText<'_>,
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
    let commands = commands.iter().map(|ran| CommandRun {
        line_sha256: ran.line_sha256.to_string(),
        level: ran.level,
        ending: ran.ending.map(encode_command_end),
        remarks: ran.remarks.clone(),
    });
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
        touched: self::encode_touched(touched, clean),
        contacted: encode_contacts(contacts),
    }))
}

fn encode_command_end(ending: CommandEnding) -> CommandEnd {
    match ending {
        CommandEnding::Exited(code) => CommandEnd::Exited(code),
        CommandEnding::Killed(signal) => CommandEnd::Killed(signal),
        CommandEnding::TimedOut => CommandEnd::TimedOut,
    }
}

/// None if there is nothing to tell, as of a tool that can touch nothing.
fn encode_touched(touched: &tools::TouchedPaths, clean: RedactText<'_>) -> Option<TouchedRecord> {
    if *touched == tools::TouchedPaths::default() {
        return None;
    }
    let mut more = touched.omitted;
    let mut list = |places: Vec<&String>| -> Vec<String> {
        more += places.len().saturating_sub(MAX_PATHS);
        let path = |place: &String| {
            if place.is_empty() { ".".to_owned() } else { truncate(&clean(place), MAX_PATH_BYTES) }
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
    let contacted = ContactsRecord {
        requests: contacts.requests.iter().map(request).collect(),
        more: contacts.more,
    };
    (*contacts != HttpContacts::default()).then_some(contacted)
}

/// A call that did not run.
pub(super) fn encode_refusal(call: &ToolCall, problem: &str, clean: RedactText<'_>) -> RecordKind {
    let words = |text: &str| truncate(&clean(text), MAX_TEXT_BYTES);
    RecordKind::Refused {
        call: words(call.id.as_str()),
        tool: words(call.name.trim()),
        problem: words(problem),
        input_bytes: call.arguments.len(),
    }
}

/// Something else is allowed from now on, or something was taken back.
pub(super) fn encode_authority_change(
    change: &tools::AuthorityChange<'_>,
    clean: RedactText<'_>,
) -> RecordKind {
    let owned = |text: &&str| (*text).to_owned();
    let words = |text: &String| truncate(&clean(text), MAX_TEXT_BYTES);
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
            let path = |path: &String| truncate(&clean(path), MAX_PATH_BYTES);
            SettingChange::Undo {
                id,
                tool,
                paths: paths.iter().take(MAX_PATHS).map(path).collect(),
                more: paths.len().saturating_sub(MAX_PATHS),
            }
        }
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

fn truncate(text: &str, most: usize) -> String {
    match text.len() <= most {
        true => text.to_owned(),
        false => format!("{}… ({} bytes)", &text[..text.floor_char_boundary(most)], text.len()),
    }
}

fn to_millis(duration: std::time::Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::super::test_log::{call_end, call_identity, write_effect};
    use super::*;
    use crate::policy::{DenialCode, HostAddress};

    fn clean(text: &str) -> String {
        text.replace("sk-secret-of-many-characters", "[key redacted]")
    }

    #[test]
    fn what_a_call_has_touched_is_on_record_and_what_is_left_out_is_counted() {
        let mut call = call_end(&[]);
        let fields = |call: &tools::FinishedCallRecord| {
            super::encode_call_end(&call_identity(), call, &clean).to_fields()
        };
        assert_eq!(
            (&fields(&call)["touched"], &fields(&call)["contacted"]),
            (&Value::Null, &Value::Null)
        );
        call.touched.walked.insert(String::new());
        call.touched.written.extend((0..MAX_PATHS + 5).map(|n| format!("{n:03}")));
        call.touched.omitted = 2;
        let host = HostAddress::parse("docs.rs").expect("a host");
        let address = "192.0.2.7:443".parse().ok();
        call.contacts.requests.push(tools::HttpContact {
            method: "GET".into(),
            host,
            address,
            status: Some(200),
        });
        let fields = fields(&call);
        assert_eq!(fields["touched"]["written"].as_array().map(Vec::len), Some(MAX_PATHS));
        assert_eq!(fields["touched"]["read"], json!([]));
        assert_eq!(fields["touched"]["walked"], json!(["."]));
        assert_eq!(fields["touched"]["more"], 7);
        let contact =
            json!({"method": "GET", "host": "docs.rs", "address": "192.0.2.7:443", "status": 200});
        assert_eq!(fields["contacted"], json!({"requests": [contact], "more": 0}));
    }

    #[test]
    fn r114_a_key_that_the_cut_goes_through_is_taken_out_whole() {
        for before in MAX_DENIED_BYTES - 40..MAX_DENIED_BYTES + 5 {
            let line = format!("echo {}sk-secret-of-many-characters", "x".repeat(before - 5));
            let effect = policy::Effect::Command {
                line,
                directory: policy::WorkspacePath::parse("", None).expect("a path"),
            };
            let ruled = RecordedOutcome::Denied(Denial::without_remedy(
                DenialCode::Mode,
                "not in this mode.",
            ));
            let text = format!(
                "{:?}",
                encode_decision(
                    &call_identity(),
                    &DecisionRecord { effect, outcome: ruled, waited: std::time::Duration::ZERO },
                    &clean
                )
            );
            assert!(!text.contains("sk-sec"), "{before}: {text}");
        }
        let name = format!("{}sk-secret-of-many-characters", "x".repeat(MAX_TEXT_BYTES - 10));
        let call =
            ToolCall { id: crate::conversation::CallId::new("c"), name, arguments: String::new() };
        assert!(!format!("{:?}", encode_refusal(&call, "no such tool", &clean)).contains("sk-"));
    }

    #[test]
    fn a_write_is_on_record_by_what_it_does_and_never_by_content() {
        let long = "d/".repeat(600) + "a";
        let mut paths = vec![long.clone(), "b".to_owned()];
        paths.extend((0..MAX_PATHS).map(|n| format!("c/{n:03}")));
        let decided = DecisionRecord {
            effect: write_effect(&paths),
            ..super::super::test_log::allowed_command("")
        };
        let fields = super::encode_decision(&call_identity(), &decided, &clean).to_fields();
        assert_eq!(fields["effect"]["more"], 2);
        let changes = fields["effect"]["changes"].as_array().expect("a list");
        assert_eq!(
            changes[0],
            json!({"act": "modify", "path": "b", "before": 1, "size": 2, "sha256": "0".repeat(64)})
        );
        let text = serde_json::to_string(&fields).expect("it is JSON");
        assert!(!text.contains("the content") && text.len() < 100 << 10, "{} bytes", text.len());
        assert!(changes.iter().all(|change| {
            change["path"].as_str().is_some_and(|path| path.len() < MAX_PATH_BYTES + 30)
        }));
    }
}
