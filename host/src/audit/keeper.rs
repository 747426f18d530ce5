//! Writing down what is decided and done.

use std::io;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::log::Log;
use super::record::{EndOf, Fields, VERSION, What};
use super::whose::Whose;
use super::{AuditError, LogName, Store, told};
use crate::agent::events::{Event, Observer};
use crate::conversation::Call;
use crate::policy::{Mode, SandboxLevel};
use crate::session::{Redact, SessionId};
use crate::tools::{Change, Decided, Ended, Ground, Ledger, Ruled, Subject, Unrecorded};

/// The log of this run.
///
/// A failure to write, such as a full disk, is told once; the request goes on, and once there is room again the log says how
/// many records it lost. Where the log is required, it is the other way round: the request goes on, and whatever would have
/// an effect is denied until the log can be written.
pub struct Audit {
    name: LogName,
    required: bool,
    redact: Redact,
    notify: Notify,
    state: Mutex<State>,
}

/// Tells the user something.
pub type Notify = Box<dyn Fn(&str) + Send + Sync>;

struct State {
    log: Log,
    session: Option<String>,
    request: Option<String>,
    /// Records that could not be written since the last one that could.
    lost: u64,
    /// Whether the user knows that something was lost.
    told: bool,
}

/// What a run is.
pub struct Begin<'a> {
    /// Its session, if there is one.
    pub session: Option<&'a SessionId>,
    /// The absolute path of the workspace.
    pub workspace: String,
    /// What is allowed without asking.
    pub mode: Mode,
    /// All rules in force as this program understands them, by a digest.
    pub policy: Option<String>,
    /// Who answers, such as `anthropic:claude-…`; none where no model is asked.
    pub model: Option<String>,
    /// In less of a sandbox no command runs.
    pub least_command_sandbox: SandboxLevel,
    /// Whether nothing may happen without its record.
    pub required: bool,
}

impl Audit {
    /// Begins a log.
    pub fn begin(store: &Store, begin: &Begin<'_>, redact: Redact, notify: Notify) -> Result<Self, AuditError> {
        let turn = store.next()?;
        let name = turn.name.clone();
        let after = turn.before.as_ref().map(|(name, end)| EndOf::new(name, end));
        let program = concat!("cofferdam ", env!("CARGO_PKG_VERSION")).to_owned();
        let first = What::Log { version: VERSION, log: name.as_str().to_owned(), program, whose: Whose::of_this_process(), after };
        let log = Log::create(store.files(&name), record(&first, None, None)).map_err(AuditError::io(&store.log_path(&name)))?;
        // From here on the next log finds this one.
        drop(turn);
        let session = begin.session.map(SessionId::to_string);
        let state = Mutex::new(State { log, session, request: None, lost: 0, told: false });
        let audit = Self { name, required: begin.required, redact, notify, state };
        let about = What::Session {
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
    pub fn name(&self) -> &LogName {
        &self.name
    }

    /// An observer that puts requests on record and passes every event on.
    pub fn watching<'a>(&'a self, then: &'a dyn Observer) -> Watching<'a> {
        Watching { audit: self, then }
    }

    /// The number of the record. A failure is an error only where the log is required.
    pub(super) fn write(&self, what: &What) -> Result<Option<u64>, Unrecorded> {
        match self.append(what) {
            Ok(number) => Ok(Some(number)),
            Err(error) if self.required => Err(Unrecorded(error.to_string())),
            Err(_) => Ok(None),
        }
    }

    pub(super) fn append(&self, what: &What) -> io::Result<u64> {
        let mut state = self.lock();
        let mut fields = record(what, state.session.as_deref(), state.request.as_deref());
        redacted(&mut fields, &*self.redact);
        let written = state.close_gap().and_then(|()| state.log.append(fields, what.durable()));
        let Err(error) = &written else { return written };
        state.lost += 1;
        if !std::mem::replace(&mut state.told, true) {
            drop(state);
            let meanwhile =
                if self.required { "nothing that needs a record happens until it can" } else { "the request goes on without it" };
            (self.notify)(&format!("The audit log could not be written ({error}); {meanwhile}."));
        }
        written
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// For a test.
    #[cfg(test)]
    pub(super) fn replace_head(&self, file: std::fs::File) -> std::fs::File {
        self.lock().log.replace_head(file)
    }

    /// For a test.
    #[cfg(test)]
    pub(super) fn replace_file(&self, file: std::fs::File) -> std::fs::File {
        self.lock().log.replace_file(file)
    }
}

impl State {
    /// Says how much is missing, before anything follows it.
    fn close_gap(&mut self) -> io::Result<()> {
        if self.lost > 0 {
            let gap = What::Gap { lost: self.lost };
            self.log.append(record(&gap, None, None), gap.durable())?;
            self.lost = 0;
        }
        Ok(())
    }
}

/// The kind first, and when it was; then what is its own.
fn record(what: &What, session: Option<&str>, request: Option<&str>) -> Fields {
    let mut fields = Fields::from_iter([("kind".to_owned(), serde_json::Value::Null), ("at".to_owned(), now().into())]);
    let names = [("session", session), ("request", request)];
    fields.extend(names.into_iter().filter_map(|(key, value)| Some((key.to_owned(), value?.into()))));
    fields.extend(what.fields());
    fields
}

/// Now, to the millisecond, in UTC.
fn now() -> String {
    let now = jiff::Timestamp::now();
    jiff::Timestamp::from_millisecond(now.as_millisecond()).unwrap_or(now).to_string()
}

/// Every text in a record, passed through `redact`: before it becomes JSON, since there a secret may look different.
fn redacted(fields: &mut Fields, redact: &dyn Fn(&str) -> String) {
    fields.values_mut().for_each(|value| each_text(value, redact));
}

fn each_text(value: &mut serde_json::Value, change: &dyn Fn(&str) -> String) {
    use serde_json::Value;
    match value {
        Value::String(text) => *text = change(text),
        Value::Array(values) => values.iter_mut().for_each(|value| each_text(value, change)),
        Value::Object(fields) => fields.values_mut().for_each(|value| each_text(value, change)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

impl Ledger for Audit {
    fn ready(&self) -> Result<(), Unrecorded> {
        // What reads leaves its record when it is over; so after one that was lost, it does not begin.
        match self.lock().close_gap() {
            Err(error) if self.required => Err(Unrecorded(error.to_string())),
            Ok(()) | Err(_) => Ok(()),
        }
    }

    fn decided(&self, subject: &Subject, decided: &Decided) -> Result<Option<u64>, Unrecorded> {
        let number = self.write(&told::decided(subject, decided, &*self.redact))?;
        if let Ruled::Allowed(Ground::UserForScope(Some(scope))) = &decided.ruled {
            self.changed(&Change::Scope(scope))?;
        }
        Ok(number)
    }

    fn changed(&self, change: &Change<'_>) -> Result<(), Unrecorded> {
        self.write(&told::changed(change, &*self.redact)).map(drop)
    }

    fn ended(&self, subject: &Subject, ended: &Ended) {
        drop(self.append(&told::ended(subject, ended, &*self.redact)));
    }

    fn refused(&self, call: &Call, problem: &str) {
        drop(self.append(&told::refused(call, problem, &*self.redact)));
    }
}

/// Watches a request for the log.
pub struct Watching<'a> {
    audit: &'a Audit,
    then: &'a dyn Observer,
}

impl Observer for Watching<'_> {
    fn observe(&self, event: &Event<'_>) {
        match event {
            // Each with its model: in a conversation it can be another one each time.
            Event::RequestStarted { request, model, .. } => {
                self.audit.lock().request = Some((*request).to_owned());
                drop(self.audit.append(&What::Request { model: (*model).to_owned() }));
            }
            Event::RequestFinished { outcome } => {
                drop(self.audit.append(&What::Outcome { outcome: outcome.kind().to_owned() }));
                self.audit.lock().request = None;
            }
            // Calls come by way of the ledger.
            _ => {}
        }
        self.then.observe(event);
    }

    fn is_live(&self) -> bool {
        self.then.is_live()
    }
}

#[cfg(test)]
mod tests {
    use std::fs::{self, OpenOptions};
    use std::os::unix::fs::PermissionsExt as _;

    use super::super::head::Kept;
    use super::super::record::Record;
    use super::super::test_log::{allowed, begin, ended, store, subject};
    use super::super::{inspect, test_log};
    use super::*;
    use crate::conversation::CallId;
    use crate::policy::{Code, Denial};

    /// The records of the only log.
    fn records(store: &Store) -> Vec<Fields> {
        let mut logs = inspect(store).expect("readable").logs;
        assert!(logs[0].is_good(), "{:?}", logs[0]);
        logs.remove(0).records
    }

    fn kinds(store: &Store) -> Vec<String> {
        records(store).iter().map(|record| record["kind"].as_str().expect("a word").to_owned()).collect()
    }

    /// What is in a record besides what is in each.
    fn own(mut record: Fields) -> String {
        assert!(Record::read(&record).is_some(), "what was written is read: {record:?}");
        for key in ["n", "prev", "at"] {
            record.shift_remove(key);
        }
        serde_json::Value::Object(record).to_string()
    }

    #[test]
    fn a_call_leaves_what_was_decided_and_how_it_ended() {
        let folder = tempfile::tempdir().expect("a folder");
        let store = store(folder.path());
        let (audit, told) = begin(&store, false);
        let number = audit.decided(&subject(), &allowed("cargo test\nrm x")).expect("recorded");
        audit.ended(&subject(), &ended(&[number.expect("a number")]));
        let denial = Denial::fixed(Code::Mode, "not in this mode.");
        audit.decided(&subject(), &Decided { ruled: Ruled::Denied(denial), ..allowed("ls") }).expect("recorded");
        audit.refused(&Call { id: CallId::new("c2"), name: "nope".into(), arguments: "{}".into() }, "there is no such tool");
        audit.changed(&Change::Mode(Mode::Plan)).expect("recorded");
        assert_eq!(kinds(&store), ["log", "session", "decided", "ended", "decided", "refused", "changed"]);
        let text = records(&store).into_iter().skip(1).map(own).collect::<Vec<_>>().join("\n");
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
        let store = store(folder.path());
        let (audit, _) = begin(&store, true);
        let number = audit.decided(&subject(), &allowed("make")).expect("recorded");
        assert_eq!(number, Some(3));
        assert_eq!(records(&store)[2]["effect"]["line"], "make");
        let Kept::End(end) = store.head(audit.name()).expect("readable") else { panic!("no end") };
        assert_eq!(end.lines, 3);
    }

    #[test]
    fn r114_a_secret_never_reaches_the_log() {
        let folder = tempfile::tempdir().expect("a folder");
        let store = store(folder.path());
        let (audit, _) = begin(&store, false);
        audit.decided(&subject(), &allowed("curl -H 'key: sk-secret' x")).expect("recorded");
        let spoken = Call { id: CallId::new("sk-secret"), name: "sk-secret".into(), arguments: "sk-secret".into() };
        audit.refused(&spoken, "there is no tool named sk-secret");
        let text = fs::read_to_string(store.log_path(audit.name())).expect("readable");
        assert!(!text.contains("sk-secret"), "{text}");
        assert_eq!(text.matches("[key redacted]").count(), 4, "{text}");
    }

    #[test]
    fn the_log_is_0600_in_a_folder_of_0700() {
        let folder = tempfile::tempdir().expect("a folder");
        let store = store(folder.path());
        let (audit, _) = begin(&store, false);
        let mode = |path: &std::path::Path| fs::metadata(path).expect("there").permissions().mode() & 0o777;
        assert_eq!(mode(store.folder()), 0o700);
        assert_eq!((mode(&store.log_path(audit.name())), mode(&store.head_path(audit.name()))), (0o600, 0o600));
        fs::set_permissions(store.folder(), fs::Permissions::from_mode(0o750)).expect("it is ours");
        assert!(matches!(store.next(), Err(AuditError::NotPrivate { .. })));
    }

    #[test]
    fn what_could_not_be_written_is_told_once_and_counted_in_the_log() {
        let folder = tempfile::tempdir().expect("a folder");
        let store = store(folder.path());
        let (audit, told) = begin(&store, false);
        // A descriptor that cannot write, as a full disk would have it.
        let good = audit.replace_file(fs::File::open(store.log_path(audit.name())).expect("readable"));
        assert!(matches!(audit.decided(&subject(), &allowed("make")), Ok(None)), "the request goes on");
        audit.ended(&subject(), &ended(&[]));
        audit.ready().expect("the request goes on");
        audit.replace_file(good);
        audit.ended(&subject(), &ended(&[]));
        assert_eq!(kinds(&store), ["log", "session", "gap", "ended"]);
        assert_eq!(records(&store)[2]["lost"], 2);
        assert_eq!(told.lock().expect("not poisoned").len(), 1);
    }

    #[test]
    fn where_the_log_is_required_nothing_happens_until_it_can_be_written() {
        let folder = tempfile::tempdir().expect("a folder");
        let store = store(folder.path());
        let (audit, _) = begin(&store, true);
        let good = audit.replace_file(fs::File::open(store.log_path(audit.name())).expect("readable"));
        audit.ready().expect("nothing is lost yet");
        let refused = audit.decided(&subject(), &allowed("make")).expect_err("it is not on record");
        let denial = Denial::from(refused).to_string();
        assert!(denial.starts_with("denied (not-recorded): the audit log cannot be written"), "{denial}");
        audit.ready().expect_err("a call that reads does not begin either");
        audit.replace_file(good);
        audit.ready().expect("there is room again");
        audit.decided(&subject(), &allowed("make")).expect("recorded");
        assert_eq!(kinds(&store), ["log", "session", "gap", "decided"]);
    }

    #[test]
    fn a_part_of_a_line_that_cannot_be_taken_back_ends_the_log() {
        let folder = tempfile::tempdir().expect("a folder");
        let store = store(folder.path());
        let (audit, _) = begin(&store, true);
        let good = audit.replace_file(OpenOptions::new().append(true).open("/dev/full").expect("there is one"));
        audit.decided(&subject(), &allowed("make")).expect_err("there is no room");
        audit.replace_file(good);
        audit.decided(&subject(), &allowed("make")).expect_err("what came now would be read as the rest of a torn line");
        assert_eq!(kinds(&store), ["log", "session"]);
    }

    #[test]
    fn a_request_is_in_the_records_of_its_calls() {
        struct Nobody;
        impl Observer for Nobody {
            fn observe(&self, _: &Event<'_>) {}
        }
        let folder = tempfile::tempdir().expect("a folder");
        let store = test_log::store(folder.path());
        let (audit, _) = begin(&store, false);
        let watching = audit.watching(&Nobody);
        watching.observe(&Event::RequestStarted { request: "0a1b2c3d", prompt: "Do it.", model: "m" });
        audit.ended(&subject(), &ended(&[]));
        watching.observe(&Event::RequestFinished { outcome: &crate::agent::Outcome::Aborted });
        let records = records(&store);
        assert_eq!(kinds(&store)[2..], ["request", "ended", "outcome"]);
        assert!(records[2..].iter().all(|record| record["request"] == "0a1b2c3d"), "{records:?}");
        assert_eq!((&records[2]["model"], &records[4]["outcome"]), (&"m".into(), &"aborted".into()));
    }
}
