//! The writer of the audit log of one run.

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
use crate::tools::{JobStage, RanCommand};

/// The audit log of this run.
///
/// If a record cannot be written, for example because the disk is full, the user gets one notice
/// and the request continues. As soon as writing works again, the log records how many records it
/// lost. If the log is required, the request continues too, but every effect is denied until the
/// log can be written.
pub struct AuditWriter {
    name: AuditLogName,
    required: bool,
    redact: RedactSecrets,
    notify: NotifyUser,
    state: Mutex<WriterState>,
}

/// Shows a notice to the user.
pub type NotifyUser = Box<dyn Fn(&str) + Send + Sync>;

struct WriterState {
    log: AuditLogWriter,
    session: Option<String>,
    request: Option<String>,
    /// The number of records lost since the last one that was written.
    lost_records: u64,
    /// Whether the user was notified of the loss.
    user_notified: bool,
}

/// The properties of a run that its log starts with.
pub struct AuditRunStart<'a> {
    /// The user who runs the program, and the machine it runs on.
    pub principal: Principal,
    /// The session, if there is one.
    pub session: Option<&'a SessionId>,
    /// The absolute path of the workspace.
    pub workspace: String,
    /// The approval mode at the start.
    pub mode: ApprovalMode,
    /// The digest of all rules in force.
    pub policy: Option<String>,
    /// The model, such as `anthropic:claude-…`. `None` if the run uses no model.
    pub model: Option<String>,
    /// The weakest sandbox in which commands may run.
    pub least_command_sandbox: SandboxLevel,
    /// Whether effects are denied while the log cannot be written.
    pub required: bool,
}

impl AuditWriter {
    /// Starts a new log.
    ///
    /// # Errors
    ///
    /// Returns an error if the directory is accessible to other users, or if the files cannot be
    /// created or written.
    pub fn begin(
        store: &AuditStore,
        begin: &AuditRunStart<'_>,
        redact: RedactSecrets,
        notify: NotifyUser,
    ) -> Result<Self, AuditError> {
        let start_lock = store.lock_start()?;
        let name = start_lock.name.clone();
        let after = start_lock.previous.as_ref().map(|(name, end)| PreviousLogEnd::new(name, end));
        let program = concat!("cofferdam ", env!("CARGO_PKG_VERSION")).to_owned();
        let first = RecordKind::Log {
            version: FORMAT_VERSION,
            log: name.as_str().to_owned(),
            program,
            whose: begin.principal.clone(),
            after,
        };
        let log = AuditLogWriter::create(store.log_files(&name), build_record(&first, None, None))
            .map_err(AuditError::io(&store.log_path(&name)))?;
        // From here on, the next log finds this one.
        drop(start_lock);
        let session = begin.session.map(SessionId::to_string);
        let state = Mutex::new(WriterState {
            log,
            session,
            request: None,
            lost_records: 0,
            user_notified: false,
        });
        let audit = Self { name, required: begin.required, redact, notify, state };
        let session_record = RecordKind::Session {
            workspace: begin.workspace.clone(),
            mode: begin.mode,
            policy: begin.policy.clone(),
            model: begin.model.clone(),
            least_command_sandbox: begin.least_command_sandbox,
            required: begin.required,
        };
        audit.append(&session_record).map_err(AuditError::io(&store.log_path(&audit.name)))?;
        Ok(audit)
    }

    /// Returns the name of the log.
    pub fn name(&self) -> &AuditLogName {
        &self.name
    }

    /// Returns an observer that records requests and passes every event on.
    pub fn observer<'a>(&'a self, then: &'a dyn Observer) -> AuditObserver<'a> {
        AuditObserver { audit: self, inner: then }
    }

    /// Appends a record and returns its number.
    ///
    /// # Errors
    ///
    /// Returns an error only if the log is required. Otherwise a failure returns `Ok(None)`.
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
                "actions that need a record are denied until it can be written"
            } else {
                "the request continues without it"
            };
            (self.notify)(&format!("cannot write the audit log ({error}); {meanwhile}"));
        }
        written
    }

    fn lock_state(&self) -> MutexGuard<'_, WriterState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Replaces the head file, for tests.
    #[cfg(test)]
    pub(super) fn replace_head(&self, file: std::fs::File) -> std::fs::File {
        self.lock_state().log.replace_head(file)
    }

    /// Replaces the log file, for tests.
    #[cfg(test)]
    pub(super) fn replace_file(&self, file: std::fs::File) -> std::fs::File {
        self.lock_state().log.replace_file(file)
    }
}

impl WriterState {
    /// Records how many records were lost, before any other record follows.
    fn record_gap(&mut self) -> io::Result<()> {
        if self.lost_records > 0 {
            let gap = RecordKind::Gap { lost: self.lost_records };
            self.log.append(build_record(&gap, None, None), gap.sync_policy())?;
            self.lost_records = 0;
        }
        Ok(())
    }
}

/// Builds the fields of a record: kind, time, session and request, then those of its kind.
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

/// Returns the current UTC time, to the millisecond.
fn timestamp_now() -> String {
    let now = jiff::Timestamp::now();
    jiff::Timestamp::from_millisecond(now.as_millisecond()).unwrap_or(now).to_string()
}

/// Passes every text in a record through `redact`.
///
/// This happens before the record becomes JSON, because escaping can change how a secret looks.
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
        // A call that only reads is recorded when it is over. After a lost record, it must not
        // start.
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
        if let RecordedOutcome::Allowed(
            DecisionBasis::UserForScope(Some(scope)) | DecisionBasis::UserAlways(Some(scope)),
        ) = &decided.outcome
        {
            self.record_change(&AuthorityChange::ScopeApproved(scope))?;
        }
        Ok(number)
    }

    fn record_change(&self, change: &AuthorityChange<'_>) -> Result<(), RecordFailure> {
        self.record(&encode::encode_authority_change(change, &*self.redact)).map(drop)
    }

    fn record_end(&self, subject: &CallIdentity, ended: &FinishedCallRecord) {
        let _ = self.append(&encode::encode_call_end(subject, ended, &*self.redact));
    }

    fn record_background_command(&self, subject: &CallIdentity, stage: JobStage, ran: &RanCommand) {
        let record = encode::encode_background_command(subject, stage, ran, &*self.redact);
        let _ = self.append(&record);
    }

    fn record_refusal(&self, call: &ToolCall, problem: &str) {
        let _ = self.append(&encode::encode_refusal(call, problem, &*self.redact));
    }
}

/// An observer that records the requests of a run.
pub struct AuditObserver<'a> {
    audit: &'a AuditWriter,
    inner: &'a dyn Observer,
}

impl Observer for AuditObserver<'_> {
    fn observe(&self, event: &AgentEvent<'_>) {
        match event {
            // Each request names its model, because the model can change within a conversation.
            AgentEvent::RequestStarted { request, model, .. } => {
                self.audit.lock_state().request = Some((*request).to_owned());
                let _ = self.audit.append(&RecordKind::Request { model: (*model).to_owned() });
            }
            AgentEvent::RequestFinished { outcome } => {
                let record = RecordKind::Outcome { outcome: outcome.kind().to_owned() };
                let _ = self.audit.append(&record);
                self.audit.lock_state().request = None;
            }
            // The dispatcher reports the tool calls.
            _ => {}
        }
        self.inner.observe(event);
    }

    fn is_live(&self) -> bool {
        self.inner.is_live()
    }
}

#[cfg(test)]
mod tests;
