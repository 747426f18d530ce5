//! Records as events of the Open Cybersecurity Schema Framework, version 1.5.0.
//!
//! A call is an *API Activity* (class 6003, of category 6, *Application Activity*): an actor, the model's session, asks for
//! an operation, the tool. The class demands `activity_id`, `actor`, `api`, `category_uid`, `class_uid`, `metadata`,
//! `severity_id`, `src_endpoint`, `time` and `type_uid`; of what it demands inside of them, `metadata` has `product` and
//! `version`, and `api` has `operation`. What was decided goes into the profile `security_control`, and everything that the
//! schema has no place for stays, whole, in `unmapped`.

use serde_json::{Map, Value, json};

use super::LogName;

const SCHEMA: &str = "1.5.0";
const CATEGORY: u32 = 6;
const CLASS: u32 = 6003;

/// An event for a record about a call or a decision; none for the others, which are about the log and the session.
pub fn ocsf(log: &LogName, hash: &str, record: &Map<String, Value>) -> Option<Value> {
    let text = |key: &str| record.get(key).and_then(Value::as_str);
    let outcome = match text("kind")? {
        "decided" => decision(record),
        "ended" => ending(record),
        "refused" => json!({"status_id": 2, "status": "Failure", "status_code": "refused", "status_detail": record.get("problem")}),
        _ => return None,
    };
    let activity = activity(record);
    let time = text("at")?.parse::<jiff::Timestamp>().ok()?.as_millisecond();
    let mut event = json!({
        "category_uid": CATEGORY,
        "category_name": "Application Activity",
        "class_uid": CLASS,
        "class_name": "API Activity",
        "activity_id": activity,
        "activity_name": name(activity),
        "type_uid": CLASS * 100 + activity,
        "severity_id": 1,
        "severity": "Informational",
        "time": time,
        "actor": {"app_name": "cofferdam", "session": {"uid": text("session").unwrap_or(log.as_str())}},
        "api": {
            "operation": text("tool").unwrap_or("unknown"),
            "service": {"name": "cofferdam"},
            "request": {"uid": text("call").unwrap_or("unknown")},
        },
        // The call comes from this machine itself.
        "src_endpoint": {"name": "localhost", "ip": "127.0.0.1"},
        "metadata": {
            "version": SCHEMA,
            "product": {"name": "cofferdam", "vendor_name": "cofferdam", "version": env!("CARGO_PKG_VERSION")},
            "profiles": ["security_control"],
            "log_name": log.as_str(),
            "sequence": record.get("n"),
            "uid": hash,
            "correlation_uid": text("request"),
        },
        "unmapped": record,
    });
    let resources = resources(record);
    if !resources.is_empty() {
        event["resources"] = resources.into();
    }
    if let (Some(event), Value::Object(outcome)) = (event.as_object_mut(), outcome) {
        event.extend(outcome);
    }
    Some(event)
}

/// The paths that a call touched and the hosts that it asked.
fn resources(record: &Map<String, Value>) -> Vec<Value> {
    let list = |of: &str, key: &str| record.get(of).and_then(|of| of.get(key)).and_then(Value::as_array).into_iter().flatten();
    let paths = ["read", "written", "walked"].into_iter().flat_map(|key| list("touched", key));
    let hosts = list("contacted", "requests").filter_map(|request| request.get("host"));
    paths.map(|path| json!({"name": path, "type": "file"})).chain(hosts.map(|host| json!({"name": host, "type": "host"}))).collect()
}

/// 1 create, 2 read, 3 update, 99 other. What a tool may change is an update, whatever it does with it; a command is other.
fn activity(record: &Map<String, Value>) -> u32 {
    let effect = record.get("effect").and_then(|effect| effect.get("kind")).and_then(Value::as_str);
    match (effect, record.get("tier").and_then(Value::as_str)) {
        (Some("write"), _) => 3,
        (Some(_), _) | (None, Some("write")) => 99,
        (None, Some("read-only" | "research")) => 2,
        (None, Some(_) | None) => 0,
    }
}

fn name(activity: u32) -> &'static str {
    match activity {
        2 => "Read",
        3 => "Update",
        99 => "Other",
        _ => "Unknown",
    }
}

fn decision(record: &Map<String, Value>) -> Value {
    let by = record.get("by").map(Value::to_string).unwrap_or_default();
    match record.get("decision").and_then(Value::as_str) {
        Some("allow") => json!({"action_id": 1, "action": "Allowed", "disposition_id": 1, "disposition": "Allowed", "status_detail": by}),
        _ => json!({"action_id": 2, "action": "Denied", "disposition_id": 2, "disposition": "Blocked", "status_detail": by}),
    }
}

fn ending(record: &Map<String, Value>) -> Value {
    let status = record.get("status").and_then(Value::as_str).unwrap_or("unknown");
    let (id, word) = match status {
        "ok" => (1, "Success"),
        "interrupted" => (0, "Unknown"),
        _ => (2, "Failure"),
    };
    json!({"status_id": id, "status": word, "status_code": record.get("failure").filter(|kind| !kind.is_null()).unwrap_or(&json!(status))})
}

#[cfg(test)]
mod tests {
    use super::super::test_log::{allowed, begin, ended, store, subject};
    use super::super::{Inspected, inspect};
    use super::*;
    use crate::conversation::{Call, CallId};
    use crate::policy::{Code, Denial};
    use crate::tools::{Decided, Ledger as _, Ruled};

    fn log() -> Inspected {
        let folder = tempfile::tempdir().expect("a folder");
        let store = store(folder.path());
        let (audit, _) = begin(&store, false);
        audit.decided(&subject(), &allowed("make")).expect("recorded");
        let denial = Denial::fixed(Code::Mode, "not in this mode.");
        audit.decided(&subject(), &Decided { ruled: Ruled::Denied(denial), ..allowed("ls") }).expect("recorded");
        let mut call = ended(&[3]);
        call.touched.written.insert("src/a.rs".into());
        audit.ended(&subject(), &call);
        audit.refused(&Call { id: CallId::new("c2"), name: "nope".into(), arguments: "{}".into() }, "there is no such tool");
        inspect(&store).expect("readable").remove(0)
    }

    #[test]
    fn an_event_has_what_its_class_demands() {
        let log = log();
        let events: Vec<Value> = log.records.iter().zip(&log.hashes).filter_map(|(record, hash)| ocsf(&log.name, hash, record)).collect();
        assert_eq!(events.len(), 4);
        assert_eq!(events[2]["resources"], json!([{"name": "src/a.rs", "type": "file"}]));
        for event in &events {
            for required in ["activity_id", "category_uid", "class_uid", "severity_id", "time", "type_uid"] {
                assert!(event[required].is_u64(), "{required}: {event}");
            }
            assert_eq!(event["type_uid"], 600_300 + event["activity_id"].as_u64().expect("a number"));
            for required in
                ["/metadata/version", "/metadata/product/name", "/api/operation", "/api/request/uid", "/actor/app_name", "/src_endpoint/ip"]
            {
                assert!(event.pointer(required).is_some_and(Value::is_string), "{required}: {event}");
            }
        }
        let told: Vec<_> = events.iter().map(|e| (e["action"].as_str(), e["disposition_id"].as_u64(), e["status"].as_str())).collect();
        assert_eq!(
            told,
            [
                (Some("Allowed"), Some(1), None),
                (Some("Denied"), Some(2), None),
                (None, None, Some("Success")),
                (None, None, Some("Failure"))
            ]
        );
    }
}
