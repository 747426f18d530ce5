//! Converts records to events of the Open Cybersecurity Schema Framework, version 1.5.0.
//!
//! A call is an *API Activity* (class 6003 of category 6, *Application Activity*): an actor, which
//! is the model's session, requests an operation, which is the tool. The class requires
//! `activity_id`, `actor`, `api`, `category_uid`, `class_uid`, `metadata`, `severity_id`,
//! `src_endpoint`, `time` and `type_uid`. Inside these, `metadata` requires `product` and
//! `version`, and `api` requires `operation`. Decisions use the profile `security_control`. The
//! complete record is in `unmapped`, because the schema has no place for all of it. What the
//! commands of a call did follows as events of its own ([`command_events`]).

mod command_events;

use serde_json::{Map, Value, json};

use super::AuditLogName;
use super::principal::Principal;
use super::record::{AuditRecord, CallActor, CallEndRecord, EffectRecord, RecordKind};
use crate::conversation::ResultStatus;
use crate::policy::Verdict;

const SCHEMA_VERSION: &str = "1.5.0";
const CATEGORY_ID: u32 = 6;
const CLASS_ID: u32 = 6003;

/// The parts of an event that depend on the kind of record.
struct OcsfFields<'a> {
    activity_id: u32,
    operation: &'a str,
    /// The id of the call that the record is about, if any.
    call: Option<&'a str>,
    resources: Vec<Value>,
    /// The status, or the decision.
    outcome: Value,
}

/// Converts a record to events.
///
/// Returns none for records about the log and the session. All other records become events: calls,
/// decisions, changes of settings, lost records and removed logs. The end of a call or of a
/// background command also becomes one event for each path that the commands changed, and for each
/// connection that they asked for.
pub fn to_ocsf(
    log: &AuditLogName,
    whose: &Principal,
    hash: &str,
    fields: &Map<String, Value>,
) -> Vec<Value> {
    let Some(record) = AuditRecord::from_fields(fields) else { return Vec::new() };
    let Some(event) = call_event(log, whose, hash, (&record, fields)) else { return Vec::new() };
    let Some((actor, commands)) = record.what.commands() else { return vec![event] };
    let shared = ["severity_id", "severity", "time", "actor", "metadata"];
    let common = shared
        .iter()
        .filter_map(|name| event.get(name).map(|value| ((*name).to_owned(), value.clone())));
    let common: Map<String, Value> = common.collect();
    let mut events = vec![event];
    let machine = whose.machine.as_deref();
    let mut of_commands = command_events::command_events(actor, commands, machine, &common);
    of_commands.iter_mut().for_each(remove_nulls);
    events.append(&mut of_commands);
    events
}

/// Returns the event of the call or the setting that a record is about.
fn call_event(
    log: &AuditLogName,
    whose: &Principal,
    hash: &str,
    (record, fields): (&AuditRecord, &Map<String, Value>),
) -> Option<Value> {
    let OcsfFields { activity_id: activity, operation, call, resources, outcome } =
        ocsf_fields(&record.what, fields)?;
    let time = record.at.parse::<jiff::Timestamp>().ok()?.as_millisecond();
    let session = record.session.as_deref().unwrap_or(log.as_str());
    let mut event = json!({
        "category_uid": CATEGORY_ID,
        "category_name": "Application Activity",
        "class_uid": CLASS_ID,
        "class_name": "API Activity",
        "activity_id": activity,
        "activity_name": activity_name(activity),
        "type_uid": CLASS_ID * 100 + activity,
        "severity_id": 1,
        "severity": "Informational",
        "time": time,
        "actor": {
            "app_name": "cofferdam",
            "session": {"uid": session},
            "user": {"name": whose.user, "uid": whose.uid.map(|uid| uid.to_string())},
        },
        "api": {
            "operation": operation, "service": {"name": "cofferdam"},
            "request": call.map(|call| json!({"uid": call})),
        },
        // All calls come from this machine.
        "src_endpoint": {"name": "localhost", "hostname": whose.machine, "ip": "127.0.0.1"},
        // The schema has no place for who used a server of this user.
        "unmapped": whose.client.as_ref().map(|client| json!({"client": client})),
        "metadata": {
            "version": SCHEMA_VERSION,
            "product": {
                "name": "cofferdam", "vendor_name": "cofferdam",
                "version": env!("CARGO_PKG_VERSION"),
            },
            "profiles": ["security_control"],
            "log_name": log.as_str(),
            "sequence": record.n,
            "uid": hash,
            "correlation_uid": record.request,
        },
        "resources": (!resources.is_empty()).then_some(resources),
    });
    if let (Some(event), Value::Object(outcome)) = (event.as_object_mut(), outcome) {
        event.extend(outcome);
    }
    remove_nulls(&mut event);
    event["unmapped"] = fields.clone().into();
    Some(event)
}

/// Removes unknown (null) values, because the schema allows only text and numbers there.
fn remove_nulls(value: &mut Value) {
    if let Value::Object(fields) = value {
        fields.retain(|_, value| !value.is_null());
        fields.values_mut().for_each(remove_nulls);
    }
}

fn ocsf_fields<'a>(what: &'a RecordKind, fields: &'a Map<String, Value>) -> Option<OcsfFields<'a>> {
    let about = |actor: &'a CallActor, activity, resources, outcome| {
        Some(OcsfFields {
            activity_id: activity,
            operation: &actor.tool,
            call: Some(&actor.call),
            resources,
            outcome,
        })
    };
    let other = |outcome| {
        let operation = fields.get("kind").and_then(Value::as_str).unwrap_or("unknown");
        Some(OcsfFields { activity_id: 99, operation, call: None, resources: Vec::new(), outcome })
    };
    match what {
        RecordKind::Decided { actor, effect, decision, .. } => {
            let by = fields.get("by").map(Value::to_string).unwrap_or_default();
            about(
                actor,
                activity_id(effect),
                changed_files(effect),
                self::decision_outcome(*decision, &by),
            )
        }
        RecordKind::Ended(ended) => {
            let activity = if ended.actor.tier == "write" { 99 } else { 2 };
            about(&ended.actor, activity, touched_resources(ended), call_outcome(ended))
        }
        RecordKind::BackgroundCheckpoint(ended) | RecordKind::BackgroundEnded(ended) => {
            let outcome = json!({"status_id": 1, "status": "Success"});
            about(&ended.actor, 99, Vec::new(), outcome)
        }
        RecordKind::Refused { call, tool, problem, .. } => {
            // The refusal was a denial, or the model's call was not valid.
            let mut outcome = if problem.starts_with("denied (") {
                decision_outcome(Verdict::Deny, problem)
            } else {
                json!({"status_detail": problem})
            };
            outcome["status_id"] = 2.into();
            outcome["status"] = "Failure".into();
            outcome["status_code"] = "refused".into();
            Some(OcsfFields {
                activity_id: 0,
                operation: tool,
                call: Some(call),
                resources: Vec::new(),
                outcome,
            })
        }
        RecordKind::Changed(_) | RecordKind::Pruned { .. } => {
            other(json!({"status_id": 1, "status": "Success"}))
        }
        RecordKind::Gap { lost } => {
            let detail = format!("{lost} records could not be written");
            other(json!({
                "status_id": 2, "status": "Failure", "status_code": "lost",
                "status_detail": detail,
            }))
        }
        RecordKind::Log { .. }
        | RecordKind::Session { .. }
        | RecordKind::Request { .. }
        | RecordKind::Outcome { .. } => None,
    }
}

/// Returns the paths that an effect would change, or the host that it would contact.
fn changed_files(effect: &EffectRecord) -> Vec<Value> {
    match effect {
        EffectRecord::Write { changes, .. } => {
            changes.iter().map(|change| file_resource(&change.path)).collect()
        }
        EffectRecord::Fetch { host, .. } | EffectRecord::Connect { host, .. } => {
            vec![self::host_resource(host)]
        }
        EffectRecord::Command { .. }
        | EffectRecord::Input { .. }
        | EffectRecord::Confirmed
        | EffectRecord::Plan { .. } => Vec::new(),
    }
}

/// Returns the paths that a call opened and the hosts that it contacted.
fn touched_resources(ended: &CallEndRecord) -> Vec<Value> {
    let paths = ended
        .touched
        .iter()
        .flat_map(|touched| [&touched.read, &touched.written, &touched.walked])
        .flatten();
    let hosts = ended.contacted.iter().flat_map(|contacted| &contacted.requests);
    paths
        .map(|path| file_resource(path))
        .chain(hosts.map(|request| host_resource(&request.host)))
        .collect()
}

fn file_resource(path: &str) -> Value {
    json!({"name": path, "type": "file"})
}

fn host_resource(host: &str) -> Value {
    json!({"name": host, "type": "host"})
}

/// Returns the activity: 1 is create, 2 read, 3 update and 99 other.
///
/// Every write is an update, whatever it does to the file. A command is "other".
fn activity_id(effect: &EffectRecord) -> u32 {
    match effect {
        EffectRecord::Write { .. } => 3,
        EffectRecord::Command { .. }
        | EffectRecord::Input { .. }
        | EffectRecord::Fetch { .. }
        | EffectRecord::Connect { .. }
        | EffectRecord::Confirmed
        | EffectRecord::Plan { .. } => 99,
    }
}

fn activity_name(activity: u32) -> &'static str {
    match activity {
        2 => "Read",
        3 => "Update",
        99 => "Other",
        _ => "Unknown",
    }
}

fn decision_outcome(decision: Verdict, by: &str) -> Value {
    match decision {
        Verdict::Allow => {
            json!({
                "action_id": 1, "action": "Allowed", "disposition_id": 1, "disposition": "Allowed",
                "status_detail": by,
            })
        }
        Verdict::Ask | Verdict::Deny => {
            json!({
                "action_id": 2, "action": "Denied", "disposition_id": 2, "disposition": "Blocked",
                "status_detail": by,
            })
        }
    }
}

fn call_outcome(ended: &CallEndRecord) -> Value {
    let (id, word) = match ended.status {
        ResultStatus::Ok => (1, "Success"),
        ResultStatus::Interrupted => (0, "Unknown"),
        ResultStatus::Error | ResultStatus::Rejected | ResultStatus::NotRun => (2, "Failure"),
    };
    let code = ended.failure.as_ref().map_or_else(|| json!(ended.status), |failure| json!(failure));
    json!({"status_id": id, "status": word, "status_code": code})
}

#[cfg(test)]
mod tests {
    use super::super::test_log::{allowed_command, begin_log, call_end, call_identity, new_store};
    use super::super::{InspectedLog, inspect_logs};
    use super::*;
    use crate::conversation::{CallId, ToolCall};
    use crate::policy::{Denial, DenialCode};
    use crate::tools::{AuditSink as _, AuthorityChange, DecisionRecord, RecordedOutcome};

    fn log() -> InspectedLog {
        let directory = tempfile::tempdir().expect("a directory");
        let store = new_store(directory.path());
        let (audit, _) = begin_log(&store, false);
        audit.record_decision(&call_identity(), &allowed_command("make")).expect("recorded");
        let denial = Denial::without_remedy(DenialCode::Mode, "not in this mode.");
        audit
            .record_decision(
                &call_identity(),
                &DecisionRecord {
                    outcome: RecordedOutcome::Denied(denial),
                    ..allowed_command("ls")
                },
            )
            .expect("recorded");
        let mut call = call_end(&[3]);
        call.touched.written.insert("src/a.rs".into());
        audit.record_end(&call_identity(), &call);
        audit.record_refusal(
            &ToolCall { id: CallId::new("c2"), name: "nope".into(), arguments: "{}".into() },
            "there is no such tool",
        );
        let outside = "denied (outside-workspace) at /path: it leads out";
        audit.record_refusal(
            &ToolCall { id: CallId::new("c3"), name: "grep".into(), arguments: "{}".into() },
            outside,
        );
        audit
            .record_change(&AuthorityChange::ModeChanged(crate::policy::ApprovalMode::Plan))
            .expect("recorded");
        inspect_logs(&store).expect("readable").logs.remove(0)
    }

    #[test]
    fn what_a_command_did_is_file_and_network_events() {
        let directory = tempfile::tempdir().expect("a directory");
        let store = new_store(directory.path());
        let (audit, _) = begin_log(&store, false);
        let mut call = call_end(&[]);
        let digest = "a".repeat(64);
        let change = |value| serde_json::from_value(value).expect("a change");
        let connection = |value| serde_json::from_value(value).expect("a connection");
        call.commands[0].changes = vec![
            change(json!({"path": "out/new", "action": "create", "kind": "file", "mode": 420,
                "bytes": 6, "sha256": digest})),
            change(json!({"path": "old", "action": "remove", "kind": "link"})),
        ];
        call.commands[0].connections = vec![
            connection(json!({"host": "docs.rs:443", "address": "192.0.2.1:443", "sent": 5,
                "received": 7})),
            connection(json!({"host": "[2001:db8::1]:80", "sent": 0, "received": 0,
                "refused": "it is not listed"})),
            connection(json!({"host": "2 more connections", "sent": 0, "received": 0})),
        ];
        audit.record_end(&call_identity(), &call);
        let log = inspect_logs(&store).expect("readable").logs.remove(0);
        let (record, hash) = log.records.iter().zip(&log.hashes).next_back().expect("a record");
        let events = to_ocsf(&log.name, &log.principal(), hash, record);
        let classes: Vec<_> = events
            .iter()
            .map(|event| (event["class_uid"].as_u64(), event["type_uid"].as_u64()))
            .collect();
        assert_eq!(
            classes,
            [
                (Some(6003), Some(600_399)),
                (Some(1001), Some(100_101)),
                (Some(1001), Some(100_104)),
                (Some(4001), Some(400_106)),
                (Some(4001), Some(400_105)),
            ]
        );
        let new = json!({
            "name": "new", "path": "out/new", "type_id": 1, "type": "Regular File", "size": 6,
            "hashes": [{"algorithm_id": 3, "algorithm": "SHA-256", "value": digest}],
        });
        assert_eq!(events[1]["file"], new);
        let reached = json!({"hostname": "docs.rs", "ip": "192.0.2.1", "port": 443});
        assert_eq!(events[3]["dst_endpoint"], reached);
        assert_eq!(events[3]["traffic"], json!({"bytes_out": 5, "bytes_in": 7, "bytes": 12}));
        assert_eq!(events[4]["dst_endpoint"], json!({"ip": "2001:db8::1", "port": 80}));
        assert_eq!(events[4]["status_detail"], "it is not listed");
        let uids: std::collections::BTreeSet<_> =
            events.iter().map(|event| event["metadata"]["uid"].to_string()).collect();
        assert_eq!(uids.len(), events.len(), "each event has an id of its own");
        for event in &events[1..] {
            for required in ["/actor/session/uid", "/metadata/version", "/unmapped/call"] {
                assert!(event.pointer(required).is_some_and(Value::is_string), "{required}");
            }
            assert!(event["time"].is_u64() && event["severity_id"].is_u64());
        }
        assert!(events[1]["device"]["type_id"].is_u64());
    }

    #[test]
    fn an_event_has_all_required_fields_of_its_class() {
        let log = log();
        let (whose, records) = (log.principal(), log.records.iter().zip(&log.hashes));
        let events: Vec<Value> =
            records.flat_map(|(record, hash)| to_ocsf(&log.name, &whose, hash, record)).collect();
        assert_eq!(events.len(), 6);
        let user = rustix::process::getuid().as_raw().to_string();
        assert!(events.iter().all(|event| event["actor"]["user"]["uid"].as_str() == Some(&user)));
        assert_eq!(events[2]["resources"], json!([{"name": "src/a.rs", "type": "file"}]));
        for event in &events {
            for required in
                ["activity_id", "category_uid", "class_uid", "severity_id", "time", "type_uid"]
            {
                assert!(event[required].is_u64(), "{required}: {event}");
            }
            assert_eq!(
                event["type_uid"],
                600_300 + event["activity_id"].as_u64().expect("a number")
            );
            for required in [
                "/metadata/version",
                "/metadata/product/name",
                "/api/operation",
                "/actor/app_name",
                "/src_endpoint/ip",
                "/metadata/uid",
            ] {
                assert!(
                    event.pointer(required).is_some_and(Value::is_string),
                    "{required}: {event}"
                );
            }
        }
        let statuses: Vec<_> = events
            .iter()
            .map(|e| (e["action"].as_str(), e["disposition_id"].as_u64(), e["status"].as_str()))
            .collect();
        assert_eq!(
            statuses,
            [
                (Some("Allowed"), Some(1), None),
                (Some("Denied"), Some(2), None),
                (None, None, Some("Success")),
                (None, None, Some("Failure")),
                (Some("Denied"), Some(2), Some("Failure")),
                (None, None, Some("Success"))
            ]
        );
        assert!(
            events.iter().all(|event| event["metadata"].get("correlation_uid").is_none()),
            "what is not known is left out"
        );
        assert_eq!(
            (&events[5]["api"]["operation"], &events[5]["unmapped"]["mode"]),
            (&json!("changed"), &json!("plan"))
        );
    }
}
