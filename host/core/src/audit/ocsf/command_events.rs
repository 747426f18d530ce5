//! The events of what a command did: a *File System Activity* (class 1001) for each changed path,
//! and a *Network Activity* (class 4001) for each connection.
//!
//! The first class requires `device` and `file`, the second one `dst_endpoint`. Both have the
//! profiles `host` and `security_control`.

use std::net::IpAddr;

use serde_json::{Map, Value, json};

use super::super::record::{CallActor, CommandRun};
use crate::tools::{CommandChange, CommandChangeAction, CommandConnection, LayerEntryKind};

const FILE_CLASS_ID: u32 = 1001;
const NETWORK_CLASS_ID: u32 = 4001;

/// The name and the port of a host, as a program asked for them.
struct HostAndPort<'a> {
    host: &'a str,
    port: u16,
}

/// Returns the events of the commands of a call. `common` has the fields that the event of the call
/// shares with them.
pub(super) fn command_events(
    actor: &CallActor,
    commands: &[CommandRun],
    machine: Option<&str>,
    common: &Map<String, Value>,
) -> Vec<Value> {
    let mut events = Vec::new();
    for command in commands {
        let fields = command.changes.iter().map(|change| file_fields(change, machine));
        let connections = command.connections.iter().filter_map(network_fields);
        for (number, mut event) in fields.chain(connections).enumerate() {
            event.extend(common.clone());
            event.insert("unmapped".into(), unmapped_fields(actor, command));
            let mut event = Value::Object(event);
            let uid = event["metadata"]["uid"].as_str().unwrap_or_default();
            // Several events come from one record.
            let uid = format!("{uid}-{}-{number}", command.line_sha256);
            event["metadata"]["uid"] = uid.into();
            event["metadata"]["profiles"] = json!(["host", "security_control"]);
            events.push(event);
        }
    }
    events
}

/// Returns what ties the event to its call.
fn unmapped_fields(actor: &CallActor, command: &CommandRun) -> Value {
    json!({"call": actor.call, "tool": actor.tool, "line_sha256": command.line_sha256})
}

fn file_fields(change: &CommandChange, machine: Option<&str>) -> Map<String, Value> {
    let (activity, name) = match change.action {
        CommandChangeAction::Create => (1, "Create"),
        CommandChangeAction::Replace => (3, "Update"),
        CommandChangeAction::Remove => (4, "Delete"),
        CommandChangeAction::SetMode => (7, "Set Security"),
    };
    let (type_id, kind) = match change.kind {
        Some(LayerEntryKind::File) => (1, "Regular File"),
        Some(LayerEntryKind::Directory) => (2, "Folder"),
        Some(LayerEntryKind::Link) => (7, "Symbolic Link"),
        Some(LayerEntryKind::Special) => (99, "Other"),
        // The enum is open for further kinds.
        Some(_) | None => (0, "Unknown"),
    };
    let hashes = change
        .sha256
        .as_ref()
        .map(|digest| json!([{"algorithm_id": 3, "algorithm": "SHA-256", "value": digest}]));
    let base_name = change.path.rsplit('/').next().unwrap_or_default();
    let mut fields = class_fields(FILE_CLASS_ID, activity, name);
    fields.extend(object(json!({
        "category_uid": 1,
        "category_name": "System Activity",
        "class_name": "File System Activity",
        "device": {"type_id": 0, "type": "Unknown", "hostname": machine},
        "file": {
            "name": base_name, "path": change.path, "type_id": type_id, "type": kind,
            "size": change.bytes, "hashes": hashes,
        },
        "status_id": 1,
        "status": "Success",
        "action_id": 1,
        "action": "Allowed",
        "disposition_id": 1,
        "disposition": "Allowed",
    })));
    fields
}

/// Returns `None` for an entry that counts the connections without an entry of their own.
fn network_fields(connection: &CommandConnection) -> Option<Map<String, Value>> {
    let HostAndPort { host, port } = HostAndPort::parse(&connection.host)?;
    let literal = host.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>().ok();
    let ip = connection.address.map(|address| address.ip()).or(literal);
    let hostname = literal.is_none().then_some(host);
    let (activity, name) = match connection.refused {
        None => (6, "Traffic"),
        Some(_) => (5, "Refuse"),
    };
    let mut fields = class_fields(NETWORK_CLASS_ID, activity, name);
    fields.extend(object(json!({
        "category_uid": 4,
        "category_name": "Network Activity",
        "class_name": "Network Activity",
        "dst_endpoint": {"hostname": hostname, "ip": ip, "port": port},
        "connection_info": {
            "protocol_name": "tcp", "protocol_num": 6,
            "direction_id": 2, "direction": "Outbound",
        },
        "traffic": {
            "bytes_out": connection.sent, "bytes_in": connection.received,
            "bytes": connection.sent.saturating_add(connection.received),
        },
    })));
    fields.extend(object(match &connection.refused {
        None => json!({
            "status_id": 1, "status": "Success", "action_id": 1, "action": "Allowed",
            "disposition_id": 1, "disposition": "Allowed",
        }),
        Some(reason) => json!({
            "status_id": 2, "status": "Failure", "status_detail": reason, "action_id": 2,
            "action": "Denied", "disposition_id": 2, "disposition": "Blocked",
        }),
    }));
    Some(fields)
}

impl<'a> HostAndPort<'a> {
    fn parse(text: &'a str) -> Option<Self> {
        let (host, port) = text.rsplit_once(':')?;
        Some(Self { host, port: port.parse().ok()? })
    }
}

fn class_fields(class: u32, activity: u32, name: &str) -> Map<String, Value> {
    object(json!({
        "class_uid": class, "activity_id": activity, "activity_name": name,
        "type_uid": class * 100 + activity,
    }))
}

fn object(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(fields) => fields,
        _ => Map::new(),
    }
}
