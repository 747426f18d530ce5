use std::fs::{self, OpenOptions};
use std::os::unix::fs::PermissionsExt as _;

use super::super::head::HeadContent;
use super::super::record::AuditRecord;
use super::super::test_log::{allowed_command, begin_log, call_end, call_identity, new_store};
use super::super::{inspect_logs, test_log};
use super::*;
use crate::conversation::CallId;
use crate::policy::{Denial, DenialCode};

/// Returns the records of the only log.
fn read_records(store: &AuditStore) -> Vec<JsonFields> {
    let mut logs = inspect_logs(store).expect("readable").logs;
    assert!(logs[0].is_intact(), "{:?}", logs[0]);
    logs.remove(0).records
}

fn record_kinds(store: &AuditStore) -> Vec<String> {
    read_records(store)
        .iter()
        .map(|record| record["kind"].as_str().expect("a word").to_owned())
        .collect()
}

/// Returns the fields of a record without those that every record has.
fn own_fields(mut record: JsonFields) -> String {
    assert!(AuditRecord::from_fields(&record).is_some(), "what was written is read: {record:?}");
    for key in ["n", "prev", "at"] {
        record.shift_remove(key);
    }
    wrap_json(&serde_json::Value::Object(record).to_string())
}

/// Wraps JSON at 96 columns, before keys.
fn wrap_json(json: &str) -> String {
    let mut text = String::new();
    let mut width = 0;
    for (n, part) in json.split(",\"").enumerate() {
        let quote = if n == 0 { "" } else { "\"" };
        let length = quote.len() + part.len() + 1;
        if width > 0 && width + length > 96 {
            text.push('\n');
            width = 0;
        }
        text.extend([quote, part, ","]);
        width += length;
    }
    text.pop();
    text
}

#[test]
fn a_call_is_recorded_with_its_decision_and_its_end() {
    let directory = tempfile::tempdir().expect("a directory");
    let store = new_store(directory.path());
    let (audit, notices) = begin_log(&store, false);
    let number = audit
        .record_decision(&call_identity(), &allowed_command("cargo test\nrm x"))
        .expect("recorded");
    audit.record_end(&call_identity(), &call_end(&[number.expect("a number")]));
    let denial = Denial::without_remedy(DenialCode::Mode, "not in this mode.");
    audit
        .record_decision(
            &call_identity(),
            &DecisionRecord { outcome: RecordedOutcome::Denied(denial), ..allowed_command("ls") },
        )
        .expect("recorded");
    audit.record_refusal(
        &ToolCall { id: CallId::new("c2"), name: "nope".into(), arguments: "{}".into() },
        "there is no such tool",
    );
    audit.record_change(&AuthorityChange::ModeChanged(ApprovalMode::Plan)).expect("recorded");
    assert_eq!(
        record_kinds(&store),
        ["log", "session", "decided", "ended", "decided", "refused", "changed"]
    );
    let text =
        read_records(&store).into_iter().skip(1).map(own_fields).collect::<Vec<_>>().join("\n");
    insta::assert_snapshot!(text, @r#"
    {"kind":"session","workspace":"/home/me/pro ject","mode":"auto","policy":null,
    "model":"script:script","least_command_sandbox":"kernel","required":false}
    {"kind":"decided","call":"c1","tool":"bash",
    "component":"626d0ce33ca550dc06351c3ea7b698be557ff5d35bf25edc44221b561838594c",
    "origin":"built-in bash","tier":"write","grants":{"files":"none","commands":true,"fetch":[],
    "plans":false,"state":false,"agents":false},"effect":{"kind":"command",
    "line":"cargo test\nrm x","directory":"src"},"decision":"allow","by":{"mode":"auto"},
    "waited_ms":0}
    {"kind":"ended","call":"c1","tool":"bash",
    "component":"626d0ce33ca550dc06351c3ea7b698be557ff5d35bf25edc44221b561838594c",
    "origin":"built-in bash","tier":"write","grants":{"files":"none","commands":true,"fetch":[],
    "plans":false,"state":false,"agents":false},"status":"ok","failure":null,"decided":[3],
    "more_denials":0,
    "commands":[{"line_sha256":"575f624402018480c7e080c0388d75fe57bd90c8cc49e8a097c79e5c680182df",
    "level":"full","ending":{"exited":3},"remarks":[]}],"active_ms":7,"waited_ms":0,"wall_ms":9,
    "input_bytes":2,"output_bytes":30,"log_bytes":0,"memory_bytes":1048576,"touched":null,
    "contacted":null}
    {"kind":"decided","call":"c1","tool":"bash",
    "component":"626d0ce33ca550dc06351c3ea7b698be557ff5d35bf25edc44221b561838594c",
    "origin":"built-in bash","tier":"write","grants":{"files":"none","commands":true,"fetch":[],
    "plans":false,"state":false,"agents":false},"effect":{"kind":"command","line":"ls",
    "directory":"src"},"decision":"deny","by":{"code":"mode","reason":"not in this mode."},
    "waited_ms":0}
    {"kind":"refused","call":"c2","tool":"nope","problem":"there is no such tool","input_bytes":2}
    {"kind":"changed","what":"mode","mode":"plan"}
    "#);
    assert!(notices.lock().expect("not poisoned").is_empty());
}

#[test]
fn r108_an_allowed_effect_is_on_disk_before_it_happens() {
    let directory = tempfile::tempdir().expect("a directory");
    let store = new_store(directory.path());
    let (audit, _) = begin_log(&store, true);
    let number =
        audit.record_decision(&call_identity(), &allowed_command("make")).expect("recorded");
    assert_eq!(number, Some(3));
    assert_eq!(read_records(&store)[2]["effect"]["line"], "make");
    let HeadContent::End(end) = store.read_head(audit.name()).expect("readable") else {
        panic!("no end")
    };
    assert_eq!(end.lines, 3);
}

#[test]
fn r114_a_secret_never_reaches_the_log() {
    let directory = tempfile::tempdir().expect("a directory");
    let store = new_store(directory.path());
    let (audit, _) = begin_log(&store, false);
    audit
        .record_decision(&call_identity(), &allowed_command("curl -H 'key: sk-secret' x"))
        .expect("recorded");
    let call = ToolCall {
        id: CallId::new("sk-secret"),
        name: "sk-secret".into(),
        arguments: "sk-secret".into(),
    };
    audit.record_refusal(&call, "unknown tool sk-secret");
    let text = fs::read_to_string(store.log_path(audit.name())).expect("readable");
    assert!(!text.contains("sk-secret"), "{text}");
    assert_eq!(text.matches("[key redacted]").count(), 4, "{text}");
}

#[test]
fn the_log_has_mode_0600_in_a_directory_of_mode_0700() {
    let directory = tempfile::tempdir().expect("a directory");
    let store = new_store(directory.path());
    let (audit, _) = begin_log(&store, false);
    let mode =
        |path: &std::path::Path| fs::metadata(path).expect("there").permissions().mode() & 0o777;
    assert_eq!(mode(store.directory()), 0o700);
    assert_eq!(
        (mode(&store.log_path(audit.name())), mode(&store.head_path(audit.name()))),
        (0o600, 0o600)
    );
    fs::set_permissions(store.directory(), fs::Permissions::from_mode(0o750)).expect("it is ours");
    assert!(matches!(store.lock_start(), Err(AuditError::NotPrivate { .. })));
}

#[test]
fn lost_records_are_reported_once_and_counted_in_the_log() {
    let directory = tempfile::tempdir().expect("a directory");
    let store = new_store(directory.path());
    let (audit, notices) = begin_log(&store, false);
    // A descriptor that cannot be written stands for a full disk.
    let good = audit.replace_file(fs::File::open(store.log_path(audit.name())).expect("readable"));
    assert!(
        matches!(audit.record_decision(&call_identity(), &allowed_command("make")), Ok(None)),
        "the request continues"
    );
    audit.record_end(&call_identity(), &call_end(&[]));
    audit.check_ready().expect("the request continues");
    audit.replace_file(good);
    audit.record_end(&call_identity(), &call_end(&[]));
    assert_eq!(record_kinds(&store), ["log", "session", "gap", "ended"]);
    assert_eq!(read_records(&store)[2]["lost"], 2);
    assert_eq!(notices.lock().expect("not poisoned").len(), 1);
}

#[test]
fn a_required_log_blocks_effects_until_it_can_be_written() {
    let directory = tempfile::tempdir().expect("a directory");
    let store = new_store(directory.path());
    let (audit, _) = begin_log(&store, true);
    let good = audit.replace_file(fs::File::open(store.log_path(audit.name())).expect("readable"));
    audit.check_ready().expect("nothing is lost yet");
    let refused = audit
        .record_decision(&call_identity(), &allowed_command("make"))
        .expect_err("it is not on record");
    let denial = Denial::from(refused).to_string();
    assert!(
        denial.starts_with("denied (not-recorded): the audit log cannot be written"),
        "{denial}"
    );
    audit.check_ready().expect_err("a call that reads does not begin either");
    audit.replace_file(good);
    audit.check_ready().expect("there is room again");
    audit.record_decision(&call_identity(), &allowed_command("make")).expect("recorded");
    assert_eq!(record_kinds(&store), ["log", "session", "gap", "decided"]);
}

#[test]
fn a_partial_line_that_cannot_be_removed_ends_the_log() {
    let directory = tempfile::tempdir().expect("a directory");
    let store = new_store(directory.path());
    let (audit, _) = begin_log(&store, true);
    let good = audit
        .replace_file(OpenOptions::new().append(true).open("/dev/full").expect("there is one"));
    audit
        .record_decision(&call_identity(), &allowed_command("make"))
        .expect_err("there is no room");
    audit.replace_file(good);
    audit
        .record_decision(&call_identity(), &allowed_command("make"))
        .expect_err("what came now would be read as the rest of a torn line");
    assert_eq!(record_kinds(&store), ["log", "session"]);
}

#[test]
fn the_records_of_a_call_have_the_id_of_its_request() {
    struct NullObserver;
    impl Observer for NullObserver {
        fn observe(&self, _: &AgentEvent<'_>) {}
    }
    let directory = tempfile::tempdir().expect("a directory");
    let store = test_log::new_store(directory.path());
    let (audit, _) = begin_log(&store, false);
    let watching = audit.observer(&NullObserver);
    watching.observe(&AgentEvent::RequestStarted {
        request: "0a1b2c3d",
        prompt: "Do it.",
        model: "m",
    });
    audit.record_end(&call_identity(), &call_end(&[]));
    watching
        .observe(&AgentEvent::RequestFinished { outcome: &crate::agent::RequestOutcome::Aborted });
    let records = read_records(&store);
    assert_eq!(record_kinds(&store)[2..], ["request", "ended", "outcome"]);
    assert!(records[2..].iter().all(|record| record["request"] == "0a1b2c3d"), "{records:?}");
    assert_eq!((&records[2]["model"], &records[4]["outcome"]), (&"m".into(), &"aborted".into()));
}
