//! Assembly of a request: agent, tools, session record, audit log and display.

use std::sync::Arc;

use super::context::AppContext;
use super::run::build_system_prompt;
use super::sessions;
use cofferdam::agent::events::Observer;
use cofferdam::agent::ports::LanguageModel;
use cofferdam::agent::{Agent, RequestId};
use cofferdam::audit::AuditWriter;
use cofferdam::random;
use cofferdam::sandbox::Workspace;
use cofferdam::session::{SessionJournal, SessionRecorder, ShutdownRecorder};
use cofferdam::tools::{Dispatcher, OutputFiles, SessionApprovals, SessionState};

/// A request that is ready to run.
pub(super) struct PreparedRequest<'a> {
    context: &'a AppContext,
    model: &'a dyn LanguageModel,
    system_prompt: String,
    dispatcher: Dispatcher,
    audit: Option<Arc<AuditWriter>>,
    recorder: Option<SessionRecorder<'a>>,
    observer: &'a dyn Observer,
}

/// The state of a conversation besides its transcript.
pub(super) struct ConversationContext {
    pub(super) approvals: Arc<SessionApprovals>,
    /// Tool state that later calls see.
    pub(super) session_state: Arc<SessionState>,
    /// The audit log; `None` if there is none.
    pub(super) audit: Option<Arc<AuditWriter>>,
    /// The session journal; `None` if the session is not recorded, in which case full outputs are
    /// not saved either.
    pub(super) journal: Option<SessionJournal>,
}

impl<'a> PreparedRequest<'a> {
    /// Prepares a request with the current system prompt, in the mode of its approvals.
    pub(super) fn new(
        conversation: ConversationContext,
        context: &'a AppContext,
        workspace: &Arc<Workspace>,
        model: &'a Arc<dyn LanguageModel>,
        observer: &'a dyn Observer,
    ) -> Self {
        let ConversationContext { approvals, session_state, audit, journal } = conversation;
        let prompt = build_system_prompt(context, workspace, approvals.mode());
        let outputs = journal.as_ref().map(|journal| OutputFiles {
            directory: journal.outputs_directory().to_owned(),
            redact: Arc::from(sessions::secret_redactor(context)),
        });
        let sub_agents = context.new_sub_agents(
            workspace,
            &approvals,
            model,
            prompt.render_for_sub_agent(),
            outputs.clone(),
        );
        let dispatcher = context
            .new_dispatcher(workspace, approvals, outputs)
            .with_sub_agents(sub_agents)
            .with_session_state(session_state);
        let recorder = journal.map(|journal| SessionRecorder::new(journal, model.info(), observer));
        Self {
            context,
            model: model.as_ref(),
            system_prompt: prompt.render(),
            dispatcher,
            audit,
            recorder,
            observer,
        }
    }

    /// Returns the system prompt.
    pub(super) fn system_prompt(&self) -> &str {
        &self.system_prompt
    }

    /// Returns the handle that completes the session record on exit.
    pub(super) fn shutdown_recorder(&self) -> Option<ShutdownRecorder> {
        self.recorder.as_ref().map(SessionRecorder::shutdown_recorder)
    }

    /// Runs `work` with the agent. Events are recorded first, then logged, then displayed.
    pub(super) async fn run<T>(&self, work: impl AsyncFnOnce(&Agent<'_>) -> T) -> T {
        let recorded: &dyn Observer =
            self.recorder.as_ref().map_or(self.observer, |recording| recording);
        let audited = self.audit.as_ref().map(|audit| audit.observer(recorded));
        let settings = &self.context.settings;
        let agent = Agent {
            model: self.model,
            tools: &self.dispatcher,
            observer: audited.as_ref().map_or(recorded, |audited| audited),
            system: self.system_prompt.clone(),
            turn_limit: settings.turn_limit,
            time_limit: settings.time_limit,
            interventions: settings.interventions,
        };
        work(&agent).await
    }

    /// Returns the journal for the next request, if it can still be written.
    pub(super) fn into_journal(self) -> Option<SessionJournal> {
        self.recorder.and_then(SessionRecorder::into_journal)
    }
}

/// Creates a random ID for a request.
pub(super) fn new_request_id() -> RequestId {
    RequestId::new(u32::try_from(random::next_u64() >> 32).unwrap_or_default())
}
