//! A session: a conversation with a model, and everything that it remembers.

use std::sync::Arc;

use tokio_util::sync::CancellationToken;

use super::builder::NoticeHandler;
use super::{Host, HostError, PreparedRequest, SessionRecord, policy_bounds};
use crate::agent::RequestOutcome;
use crate::agent::events::Observer;
use crate::agent::ports::LanguageModel;
use crate::audit::AuditWriter;
use crate::conversation::Transcript;
use crate::sandbox::Job;
use crate::session::{OpenSession, SessionId};
use crate::tools::{Approver, SessionApprovals, SessionState};

/// A conversation with a model that calls the tools of a [`Host`].
///
/// ```no_run
/// use cofferdam::host::Host;
/// use cofferdam::model::{ModelSettings, connect};
///
/// # async fn example(host: Host) -> Result<(), Box<dyn std::error::Error>> {
/// let settings = ModelSettings::default();
/// let model = connect(&"ollama:qwen3".parse()?, &settings)?;
/// let mut session = host.session(model);
/// let outcome = session.request("How many lines has README.md?").await?;
/// println!("{}", outcome.text().unwrap_or("no answer"));
/// # Ok(())
/// # }
/// ```
pub struct Session {
    pub(super) host: Host,
    pub(super) model: Arc<dyn LanguageModel>,
    pub(super) approver: Option<Arc<dyn Approver>>,
    pub(super) approvals: Arc<SessionApprovals>,
    pub(super) tool_state: Arc<SessionState>,
    pub(super) transcript: Transcript,
    pub(super) record: SessionRecord,
    /// The audit log, which begins with the first request.
    pub(super) audit: Option<Arc<AuditWriter>>,
    /// Shows notices about the record and the audit log.
    notify: NoticeHandler,
}

impl Session {
    pub(super) fn new(host: Host, model: Arc<dyn LanguageModel>) -> Self {
        let approver = host.prepared().approver();
        let approvals = Arc::new(host.prepared().new_approvals(approver.clone()));
        let notify = host.prepared().notice_handler();
        Self {
            host,
            model,
            approver,
            approvals,
            tool_state: Arc::new(SessionState::default().with_jobs()),
            transcript: Transcript::new(),
            record: SessionRecord::Disabled,
            audit: None,
            notify,
        }
    }

    /// Sets who sees notices about the session record and the audit log. The default is whoever
    /// sees the warnings of the host.
    #[must_use]
    pub fn on_notice(self, show: impl Fn(&str) + Send + Sync + 'static) -> Self {
        Self { notify: Arc::new(show), ..self }
    }

    /// Replaces the approver of the host.
    #[must_use]
    pub fn with_approver(mut self, approver: Option<Arc<dyn Approver>>) -> Self {
        let mode = self.approvals.mode();
        self.approvals = Arc::new(self.host.prepared().new_approvals(approver.clone()));
        self.approvals.set_mode(mode);
        Self { approver, ..self }
    }

    /// Sets how the session is recorded.
    #[must_use]
    pub fn with_record(self, record: SessionRecord) -> Self {
        Self { record, ..self }
    }

    /// Continues a recorded session in place of the current conversation. Approvals do not carry
    /// over (R-40).
    pub fn resume(&mut self, session: OpenSession) {
        let OpenSession { transcript, journal, state_deltas, .. } = session;
        self.restart(transcript, SessionRecord::Active(journal));
        self.tool_state = Arc::new(SessionState::from_deltas(&state_deltas).with_jobs());
    }

    /// Replaces the conversation by another one, with new approvals in the current mode.
    pub fn restart(&mut self, transcript: Transcript, record: SessionRecord) {
        let mode = self.approvals.mode();
        self.approvals = Arc::new(self.host.prepared().new_approvals(self.approver.clone()));
        self.approvals.set_mode(mode);
        self.audit = None;
        self.tool_state = Arc::new(SessionState::default().with_jobs());
        self.transcript = transcript;
        self.record = record;
    }

    /// Sends a prompt to the model, and runs its tool calls until it answers.
    ///
    /// # Errors
    ///
    /// Returns an error if the policy requires a session record or an audit log that cannot be
    /// written. Nothing was sent then.
    pub async fn request(&mut self, prompt: &str) -> Result<RequestOutcome, HostError> {
        let observer = Arc::clone(self.host.prepared().observer());
        let cancel = CancellationToken::new();
        let request = self.prepare(observer.as_ref())?;
        Ok(request.run(prompt, &cancel).await)
    }

    /// Prepares a request: begins the session record and the audit log, and builds the system
    /// prompt.
    ///
    /// # Errors
    ///
    /// Returns an error if the policy requires a session record or an audit log that cannot be
    /// written.
    pub fn prepare<'a>(
        &'a mut self,
        observer: &'a dyn Observer,
    ) -> Result<PreparedRequest<'a>, HostError> {
        let policy = Arc::clone(self.host.prepared().policy());
        policy_bounds::check_mode(&policy, self.approvals.mode())?;
        policy_bounds::check_model(&policy, self.model.info())?;
        if policy.session_denied_by().is_some() {
            self.record = SessionRecord::Disabled;
        }
        let (journal, warning) = self.record.take_journal(&self.host);
        if let Some(warning) = &warning {
            (self.notify)(warning);
        }
        let unrecorded = match (&journal, policy.session_required_by()) {
            (None, Some(location)) => Some(HostError::SessionRequired {
                location: location.clone(),
                problem: warning.unwrap_or_else(|| "the session cannot be recorded".to_owned()),
            }),
            (Some(_) | None, _) => None,
        };
        if let Some(error) = unrecorded.or_else(|| self.ensure_audit().err()) {
            self.record.return_journal(journal);
            return Err(error);
        }
        Ok(PreparedRequest::new(self, journal, observer))
    }

    /// Begins the audit log of this session unless it exists.
    fn ensure_audit(&mut self) -> Result<(), HostError> {
        if self.audit.is_none() {
            let info = self.model.info();
            let model = Some(format!("{}:{}", info.provider, info.model));
            let audit = self.host.begin_audit(
                self.record.session_id(),
                model,
                self.approvals.mode(),
                &self.notify,
            )?;
            if let Some(audit) = &audit {
                self.approvals.set_audit_sink(Arc::clone(audit) as Arc<_>);
            }
            self.audit = audit;
        }
        Ok(())
    }

    /// Returns the background commands of the session, oldest first.
    pub fn jobs(&self) -> Vec<Arc<Job>> {
        self.tool_state.jobs().map(|jobs| jobs.jobs()).unwrap_or_default()
    }

    /// Stops all background commands, waits until their changes are committed or discarded, and
    /// returns those that were running. No background command starts afterwards.
    ///
    /// Call it before the program exits. A session that is dropped stops them too, but the changes
    /// of commands that run at the exit of the program are discarded.
    pub async fn end_jobs(&self) -> Vec<Arc<Job>> {
        match self.tool_state.jobs() {
            Some(jobs) => jobs.close().await,
            None => Vec::new(),
        }
    }

    /// Returns the host of the tools.
    pub fn host(&self) -> &Host {
        &self.host
    }

    /// Returns the model.
    pub fn model(&self) -> &Arc<dyn LanguageModel> {
        &self.model
    }

    /// Replaces the model for the next request.
    pub fn set_model(&mut self, model: Arc<dyn LanguageModel>) {
        self.model = model;
    }

    /// Returns the conversation so far.
    pub fn transcript(&self) -> &Transcript {
        &self.transcript
    }

    /// Returns the approvals: the mode, and what the user approved for this session.
    pub fn approvals(&self) -> &Arc<SessionApprovals> {
        &self.approvals
    }

    /// Returns the state of the record.
    pub fn record(&self) -> &SessionRecord {
        &self.record
    }

    /// Returns the ID of the recorded session, once it has one.
    pub fn id(&self) -> Option<&SessionId> {
        self.record.session_id()
    }
}
