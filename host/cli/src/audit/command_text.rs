//! What a command changed and which connections it asked for, as text for `cofferdam audit show`.

use cofferdam::audit::CommandRun;
use cofferdam::sandbox::{CommandChange, CommandChangeAction, CommandConnection, LayerEntryKind};
use cofferdam::terminal_escape;

/// Maximum number of changes and of connections of one command that are listed. `--json` prints
/// all that are recorded.
const MAX_LISTED: usize = 20;
/// Maximum number of characters shown of one path or host.
const MAX_NAME_CHARS: usize = 300;
/// Number of characters shown of a digest.
const DIGEST_CHARS: usize = 12;

/// Describes the changes and the connections of a command, one line each, escaped.
pub(super) fn describe_activity(command: &CommandRun) -> Vec<String> {
    let mut lines: Vec<String> =
        command.changes.iter().take(MAX_LISTED).map(describe_change).collect();
    let unlisted = count_rest(command.changes.len()).saturating_add(command.more_changes);
    if unlisted > 0 {
        lines.push(format!("and {unlisted} more changes"));
    }
    lines.extend(command.connections.iter().take(MAX_LISTED).map(describe_connection));
    let unlisted = count_rest(command.connections.len());
    if unlisted > 0 {
        lines.push(format!("and {unlisted} more connections"));
    }
    lines
}

/// Returns how many of this number of items are not listed.
fn count_rest(count: usize) -> u64 {
    u64::try_from(count.saturating_sub(MAX_LISTED)).unwrap_or(u64::MAX)
}

fn describe_change(change: &CommandChange) -> String {
    let verb = match change.action {
        CommandChangeAction::Create => "created",
        CommandChangeAction::Replace => "changed",
        CommandChangeAction::Remove => "removed",
        CommandChangeAction::SetMode => "set the permissions of",
        _ => "changed in an unknown way",
    };
    let mut facts: Vec<String> = Vec::new();
    facts.extend(change.kind.filter(|kind| *kind != LayerEntryKind::File).map(kind_name));
    facts.extend(change.mode.map(|mode| format!("mode {mode:04o}")));
    if change.entries > 0 {
        facts.push(format!("{} entries", change.entries));
    }
    facts.extend(change.bytes.map(|bytes| format!("{bytes} bytes")));
    facts.extend(change.sha256.as_ref().map(|digest| {
        let digest: String = digest.chars().take(DIGEST_CHARS).collect();
        format!("sha256:{}", terminal_escape::escape_line(&digest, DIGEST_CHARS))
    }));
    let facts = if facts.is_empty() { String::new() } else { format!(" ({})", facts.join(", ")) };
    format!("{verb} {}{facts}", terminal_escape::escape_name(&change.path, MAX_NAME_CHARS))
}

fn kind_name(kind: LayerEntryKind) -> String {
    let name = match kind {
        LayerEntryKind::File => "file",
        LayerEntryKind::Directory => "directory",
        LayerEntryKind::Link => "symbolic link",
        LayerEntryKind::Special => "FIFO, socket or device",
        _ => "unknown kind",
    };
    name.to_owned()
}

fn describe_connection(connection: &CommandConnection) -> String {
    let host = terminal_escape::escape_name(&connection.host, MAX_NAME_CHARS);
    if let Some(reason) = &connection.refused {
        let reason = terminal_escape::escape_line(reason, MAX_NAME_CHARS);
        return format!("refused the connection to {host}: {reason}");
    }
    let at = connection.address.map(|address| format!(" at {address}")).unwrap_or_default();
    let (sent, received) = (connection.sent, connection.received);
    format!("connected to {host}{at}: {sent} bytes sent, {received} bytes received")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn command(changes: serde_json::Value, connections: serde_json::Value) -> CommandRun {
        let record = json!({
            "line_sha256": "0", "level": "full", "ending": {"exited": 0}, "remarks": [],
            "changes": changes, "connections": connections, "more_changes": 5,
        });
        serde_json::from_value(record).expect("a record")
    }

    #[test]
    fn changes_and_connections_are_listed_up_to_a_limit_and_escaped() {
        let digest = "0123456789abcdef".repeat(4);
        let changes = [
            json!({"path": "a\u{1b}[2J\nb", "action": "create", "kind": "file", "mode": 0o644,
                "bytes": 3, "sha256": digest}),
            json!({"path": "out", "action": "create", "kind": "directory", "mode": 0o755,
                "bytes": 70, "entries": 12}),
            json!({"path": "old", "action": "remove", "kind": "link"}),
            json!({"path": "run", "action": "set-mode", "kind": "file", "mode": 0o755}),
        ];
        let many = (0..30).map(|n| json!({"path": format!("f{n}"), "action": "replace"}));
        let connections = [
            json!({"host": "docs.rs:443", "address": "192.0.2.1:443", "sent": 5, "received": 6}),
            json!({"host": "x\n:443", "sent": 0, "received": 0, "refused": "it is not listed"}),
        ];
        let run = command(changes.iter().cloned().chain(many).collect(), json!(connections));
        let lines = describe_activity(&run);
        insta::assert_snapshot!([&lines[..4], &lines[19..]].concat().join("\n"), @r"
        created a\u{1b}[2J\u{a}b (mode 0644, 3 bytes, sha256:0123456789ab)
        created out (directory, mode 0755, 12 entries, 70 bytes)
        removed old (symbolic link)
        set the permissions of run (mode 0755)
        changed f15
        and 19 more changes
        connected to docs.rs:443 at 192.0.2.1:443: 5 bytes sent, 6 bytes received
        refused the connection to x\u{a}:443: it is not listed
        ");
    }
}
