//! Writing down what is decided and done.

use std::io;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::log::AuditLogWriter;
use super::principal::Principal;
use super::record::{FORMAT_VERSION, JsonFields, PreviousLogEnd, RecordKind};
use super::{AuditError, AuditLogName, AuditStore, encode};
use crate::agent::events::{AgentEvent, Observer};
use crate::conversation::ToolCall;
use crate::policy::{ApprovalMode, SandboxLevel};
use crate::session::{RedactSecrets, SessionId};
use crate::tools::{
    AuditSink, AuthorityChange, CallIdentity, DecisionBasis, DecisionRecord, FinishedCallRecord,
    RecordFailure, RecordedOutcome,
};

/// The log of this run.
///
/// A failure to write, such as a full disk, is told once; the request goes on, and once there is
/// room again the log says how many records it lost. Where the log is required, it is the other way
/// round: the request goes on, and whatever would have an effect is denied until the log can be
/// written.
pub struct AuditWriter {
    name: AuditLogName,
    required: bool,
    redact: RedactSecrets,
    notify: NotifyUser,
    state: Mutex<WriterState>,
}

/// Tells the user something.
pub type NotifyUser = Box<dyn Fn(&str) + Send + Sync>;

struct WriterState {
    log: AuditLogWriter,
    session: Option<String>,
    request: Option<String>,
    /// Records that could not be written since the last one that could.
    lost_records: u64,
    /// Whether the user knows that something was lost.
    user_notified: bool,
}

/// What a run is.
pub struct AuditRunStart<'a> {
    /// Its session, if there is one.
    pub session: Option<&'a SessionId>,
    /// The absolute path of the workspace.
    pub workspace: String,
    /// What is allowed without asking.
    pub mode: ApprovalMode,
    /// All rules in force as this program understands them, by a digest.
    pub policy: Option<String>,
    /// Who answers, such as `anthropic:claude-…`; none where no model is asked.
    pub model: Option<String>,
    /// In less of a sandbox no command runs.
    pub least_command_sandbox: SandboxLevel,
    /// Whether nothing may happen without its record.
    pub required: bool,
}

impl AuditWriter {
    /// Begins a log.
    pub fn begin(
        store: &AuditStore,
        begin: &AuditRunStart<'_>,
        redact: RedactSecrets,
        notify: NotifyUser,
    ) -> Result<Self, AuditError> {
        let turn = store.lock_start()?;
        let name = turn.name.clone();
        let after = turn.previous.as_ref().map(|(name, end)| PreviousLogEnd::new(name, end));
        let program = concat!("cofferdam ", env!("CARGO_PKG_VERSION")).to_owned();
        let first = RecordKind::Log {
            version: FORMAT_VERSION,
            log: name.as_str().to_owned(),
            program,
            whose: Principal::current(),
            after,
        };
        let log = AuditLogWriter::create(store.log_files(&name), build_record(&first, None, None))
            .map_err(AuditError::io(&store.log_path(&name)))?;
        // From here on the next log finds this one.
        drop(turn);
        let session = begin.session.map(SessionId::to_string);
        let state = Mutex::new(WriterState {
            log,
            session,
            request: None,
            lost_records: 0,
            user_notified: false,
        });
        let audit = Self { name, required: begin.required, redact, notify, state };
        let about = RecordKind::Session {
            workspace: begin.workspace.clone(),
            mode: begin.mode,
            policy: begin.policy.clone(),
            model: begin.model.clone(),
            least_command_sandbox: begin.least_command_sandbox,
            required: begin.required,
        };
        audit.append(&about).map_err(AuditError::io(&store.log_path(&audit.name)))?;
        Ok(audit)
    }

    /// The log's name.
    pub fn name(&self) -> &AuditLogName {
        &self.name
    }

    /// An observer that puts requests on record and passes every event on.
    pub fn observer<'a>(&'a self, then: &'a dyn Observer) -> AuditObserver<'a> {
        AuditObserver { audit: self, inner: then }
    }

    /// The number of the record. A failure is an error only where the log is required.
    pub(super) fn record(&self, what: &RecordKind) -> Result<Option<u64>, RecordFailure> {
        match self.append(what) {
            Ok(number) => Ok(Some(number)),
            Err(error) if self.required => Err(RecordFailure(error.to_string())),
            Err(_) => Ok(None),
        }
    }

    pub(super) fn append(&self, what: &RecordKind) -> io::Result<u64> {
        let mut state = self.lock_state();
        let mut fields = build_record(what, state.session.as_deref(), state.request.as_deref());
        redact_fields(&mut fields, &*self.redact);
        let written =
            state.record_gap().and_then(|()| state.log.append(fields, what.sync_policy()));
        let Err(error) = &written else { return written };
        state.lost_records += 1;
        if !std::mem::replace(&mut state.user_notified, true) {
            drop(state);
            let meanwhile = if self.required {
                "nothing that needs a record happens until it can"
            } else {
                "the request goes on without it"
            };
            (self.notify)(&format!("The audit log could not be written ({error}); {meanwhile}."));
        }
        written
    }

    fn lock_state(&self) -> MutexGuard<'_, WriterState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// For a test.
    #[cfg(test)]
    pub(super) fn replace_head(&self, file: std::fs::File) -> std::fs::File {
        self.lock_state().log.replace_head(file)
    }

    /// For a test.
    #[cfg(test)]
    pub(super) fn replace_file(&self, file: std::fs::File) -> std::fs::File {
        self.lock_state().log.replace_file(file)
    }
}

impl WriterState {
    /// Says how much is missing, before anything follows it.
    fn record_gap(&mut self) -> io::Result<()> {
        if self.lost_records > 0 {
            let gap = RecordKind::Gap { lost: self.lost_records };
            self.log.append(build_record(&gap, None, None), gap.sync_policy())?;
            self.lost_records = 0;
        }
        Ok(())
    }
}

/// The kind first, and when it was; then what is its own.
fn build_record(what: &RecordKind, session: Option<&str>, request: Option<&str>) -> JsonFields {
    let mut fields = JsonFields::from_iter([
        ("kind".to_owned(), serde_json::Value::Null),
        ("at".to_owned(), timestamp_now().into()),
    ]);
    let names = [("session", session), ("request", request)];
    fields
        .extend(names.into_iter().filter_map(|(key, value)| Some((key.to_owned(), value?.into()))));
    fields.extend(what.to_fields());
    fields
}

/// Now, to the millisecond, in UTC.
fn timestamp_now() -> String {
    let now = jiff::Timestamp::now();
    jiff::Timestamp::from_millisecond(now.as_millisecond()).unwrap_or(now).to_string()
}

/// Every text in a record, passed through `redact`: before it becomes JSON, since there a secret
/// may look different.
fn redact_fields(fields: &mut JsonFields, redact: &dyn Fn(&str) -> String) {
    fields.values_mut().for_each(|value| for_each_text(value, redact));
}

fn for_each_text(value: &mut serde_json::Value, change: &dyn Fn(&str) -> String) {
    use serde_json::Value;
    match value {
        Value::String(text) => *text = change(text),
        Value::Array(values) => values.iter_mut().for_each(|value| for_each_text(value, change)),
        Value::Object(fields) => fields.values_mut().for_each(|value| for_each_text(value, change)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

impl AuditSink for AuditWriter {
    fn check_ready(&self) -> Result<(), RecordFailure> {
        // What reads leaves its record when it is over; so after one that was lost, it does not
        // begin.
        match self.lock_state().record_gap() {
            Err(error) if self.required => Err(RecordFailure(error.to_string())),
            Ok(()) | Err(_) => Ok(()),
        }
    }

    fn record_decision(
        &self,
        subject: &CallIdentity,
        decided: &DecisionRecord,
    ) -> Result<Option<u64>, RecordFailure> {
        let number = self.record(&encode::encode_decision(subject, decided, &*self.redact))?;
        if let RecordedOutcome::Allowed(DecisionBasis::UserForScope(Some(scope))) = &decided.outcome
        {
            self.record_change(&AuthorityChange::ScopeApproved(scope))?;
        }
        Ok(number)
    }

    fn record_change(&self, change: &AuthorityChange<'_>) -> Result<(), RecordFailure> {
        self.record(&encode::encode_authority_change(change, &*self.redact)).map(drop)
    }

    fn record_end(&self, subject: &CallIdentity, ended: &FinishedCallRecord) {
        drop(self.append(&encode::encode_call_end(subject, ended, &*self.redact)));
    }

    fn record_refusal(&self, call: &ToolCall, problem: &str) {
        drop(self.append(&encode::encode_refusal(call, problem, &*self.redact)));
    }
}

/// Watches a request for the log.
pub struct AuditObserver<'a> {
    audit: &'a AuditWriter,
    inner: &'a dyn Observer,
}

impl Observer for AuditObserver<'_> {
    fn observe(&self, event: &AgentEvent<'_>) {
        match event {
            // Each with its model: in a conversation it can be another one each time.
            AgentEvent::RequestStarted { request, model, .. } => {
                self.audit.lock_state().request = Some((*request).to_owned());
                drop(self.audit.append(&RecordKind::Request { model: (*model).to_owned() }));
            }
            AgentEvent::RequestFinished { outcome } => {
                drop(
                    self.audit.append(&RecordKind::Outcome { outcome: outcome.kind().to_owned() }),
                );
                self.audit.lock_state().request = None;
            }
            // Calls come by way of the ledger.
            _ => {}
        }
        self.inner.observe(event);
    }

    fn is_live(&self) -> bool {
        self.inner.is_live()
    }
}

#[cfg(test)]
mod tests {
    use std::fs::{self, OpenOptions};
    use std::os::unix::fs::PermissionsExt as _;

    use super::super::head::HeadContent;
    use super::super::record::AuditRecord;
    use super::super::test_log::{allowed_command, begin_log, call_end, call_identity, new_store};
    use super::super::{inspect_logs, test_log};
    use super::*;
    use crate::conversation::CallId;
    use crate::policy::{Denial, DenialCode};

    /// The records of the only log.
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

    /// What is in a record besides what is in each.
    fn own_fields(mut record: JsonFields) -> String {
        assert!(
            AuditRecord::from_fields(&record).is_some(),
            "what was written is read: {record:?}"
        );
        for key in ["n", "prev", "at"] {
            record.shift_remove(key);
        }
        serde_json::Value::Object(record).to_string()
    }

    #[test]
    fn a_call_leaves_what_was_decided_and_how_it_ended() {
        let folder = tempfile::tempdir().expect("a folder");
        let store = new_store(folder.path());
        let (audit, told) = begin_log(&store, false);
        let number = audit
            .record_decision(&call_identity(), &allowed_command("cargo test\nrm x"))
            .expect("recorded");
        audit.record_end(&call_identity(), &call_end(&[number.expect("a number")]));
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
        {"kind":"session","workspace":"/home/me/pro ject","mode":"auto","policy":null,"model":"script:script","least_command_sandbox":"kernel","required":false}
        {"kind":"decided","call":"c1","tool":"bash","component":"626d0ce33ca550dc06351c3ea7b698be557ff5d35bf25edc44221b561838594c","origin":"built-in bash","tier":"write","grants":{"files":"none","commands":true,"fetch":[],"plans":false,"state":false,"agents":false},"effect":{"kind":"command","line":"cargo test\nrm x","directory":"src"},"decision":"allow","by":{"mode":"auto"},"waited_ms":0}
        {"kind":"ended","call":"c1","tool":"bash","component":"626d0ce33ca550dc06351c3ea7b698be557ff5d35bf25edc44221b561838594c","origin":"built-in bash","tier":"write","grants":{"files":"none","commands":true,"fetch":[],"plans":false,"state":false,"agents":false},"status":"ok","failure":null,"decided":[3],"more_denials":0,"commands":[{"line_sha256":"575f624402018480c7e080c0388d75fe57bd90c8cc49e8a097c79e5c680182df","level":"full","ending":{"exited":3},"remarks":[]}],"active_ms":7,"waited_ms":0,"wall_ms":9,"input_bytes":2,"output_bytes":30,"log_bytes":0,"memory_bytes":1048576,"touched":null,"contacted":null}
        {"kind":"decided","call":"c1","tool":"bash","component":"626d0ce33ca550dc06351c3ea7b698be557ff5d35bf25edc44221b561838594c","origin":"built-in bash","tier":"write","grants":{"files":"none","commands":true,"fetch":[],"plans":false,"state":false,"agents":false},"effect":{"kind":"command","line":"ls","directory":"src"},"decision":"deny","by":{"code":"mode","reason":"not in this mode."},"waited_ms":0}
        {"kind":"refused","call":"c2","tool":"nope","problem":"there is no such tool","input_bytes":2}
        {"kind":"changed","what":"mode","mode":"plan"}
        "#);
        assert!(told.lock().expect("not poisoned").is_empty());
    }

    #[test]
    fn r108_what_may_happen_is_on_record_before_it_can() {
        let folder = tempfile::tempdir().expect("a folder");
        let store = new_store(folder.path());
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
        let folder = tempfile::tempdir().expect("a folder");
        let store = new_store(folder.path());
        let (audit, _) = begin_log(&store, false);
        audit
            .record_decision(&call_identity(), &allowed_command("curl -H 'key: sk-secret' x"))
            .expect("recorded");
        let spoken = ToolCall {
            id: CallId::new("sk-secret"),
            name: "sk-secret".into(),
            arguments: "sk-secret".into(),
        };
        audit.record_refusal(&spoken, "there is no tool named sk-secret");
        let text = fs::read_to_string(store.log_path(audit.name())).expect("readable");
        assert!(!text.contains("sk-secret"), "{text}");
        assert_eq!(text.matches("[key redacted]").count(), 4, "{text}");
    }

    #[test]
    fn the_log_is_0600_in_a_folder_of_0700() {
        let folder = tempfile::tempdir().expect("a folder");
        let store = new_store(folder.path());
        let (audit, _) = begin_log(&store, false);
        let mode = |path: &std::path::Path| {
            fs::metadata(path).expect("there").permissions().mode() & 0o777
        };
        assert_eq!(mode(store.directory()), 0o700);
        assert_eq!(
            (mode(&store.log_path(audit.name())), mode(&store.head_path(audit.name()))),
            (0o600, 0o600)
        );
        fs::set_permissions(store.directory(), fs::Permissions::from_mode(0o750))
            .expect("it is ours");
        assert!(matches!(store.lock_start(), Err(AuditError::NotPrivate { .. })));
    }

    #[test]
    fn what_could_not_be_written_is_told_once_and_counted_in_the_log() {
        let folder = tempfile::tempdir().expect("a folder");
        let store = new_store(folder.path());
        let (audit, told) = begin_log(&store, false);
        // A descriptor that cannot write, as a full disk would have it.
        let good =
            audit.replace_file(fs::File::open(store.log_path(audit.name())).expect("readable"));
        assert!(
            matches!(audit.record_decision(&call_identity(), &allowed_command("make")), Ok(None)),
            "the request goes on"
        );
        audit.record_end(&call_identity(), &call_end(&[]));
        audit.check_ready().expect("the request goes on");
        audit.replace_file(good);
        audit.record_end(&call_identity(), &call_end(&[]));
        assert_eq!(record_kinds(&store), ["log", "session", "gap", "ended"]);
        assert_eq!(read_records(&store)[2]["lost"], 2);
        assert_eq!(told.lock().expect("not poisoned").len(), 1);
    }

    #[test]
    fn where_the_log_is_required_nothing_happens_until_it_can_be_written() {
        let folder = tempfile::tempdir().expect("a folder");
        let store = new_store(folder.path());
        let (audit, _) = begin_log(&store, true);
        let good =
            audit.replace_file(fs::File::open(store.log_path(audit.name())).expect("readable"));
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
    fn a_part_of_a_line_that_cannot_be_taken_back_ends_the_log() {
        let folder = tempfile::tempdir().expect("a folder");
        let store = new_store(folder.path());
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
    fn a_request_is_in_the_records_of_its_calls() {
        struct NullObserver;
        impl Observer for NullObserver {
            fn observe(&self, _: &AgentEvent<'_>) {}
        }
        let folder = tempfile::tempdir().expect("a folder");
        let store = test_log::new_store(folder.path());
        let (audit, _) = begin_log(&store, false);
        let watching = audit.observer(&NullObserver);
        watching.observe(&AgentEvent::RequestStarted {
            request: "0a1b2c3d",
            prompt: "Do it.",
            model: "m",
        });
        audit.record_end(&call_identity(), &call_end(&[]));
        watching.observe(&AgentEvent::RequestFinished {
            outcome: &crate::agent::RequestOutcome::Aborted,
        });
        let records = read_records(&store);
        assert_eq!(record_kinds(&store)[2..], ["request", "ended", "outcome"]);
        assert!(records[2..].iter().all(|record| record["request"] == "0a1b2c3d"), "{records:?}");
        assert_eq!(
            (&records[2]["model"], &records[4]["outcome"]),
            (&"m".into(), &"aborted".into())
        );
    }
}
