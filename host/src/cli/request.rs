//! One request put together, for whoever makes requests: who records it, who is told of it, and
//! with which tools it works.

use std::sync::Arc;

use super::context::AppContext;
use super::run::build_system_prompt;
use super::sessions;
use crate::agent::events::Observer;
use crate::agent::ports::LanguageModel;
use crate::agent::{Agent, RequestId};
use crate::audit::AuditWriter;
use crate::random;
use crate::sandbox::Workspace;
use crate::session::{SessionJournal, SessionRecorder, ShutdownRecorder};
use crate::tools::{Dispatcher, OutputFiles, SessionApprovals, SessionState};

/// A request of a conversation, before it begins.
pub(super) struct PreparedRequest<'a> {
    context: &'a AppContext,
    model: &'a dyn LanguageModel,
    system_prompt: String,
    dispatcher: Dispatcher,
    audit: Option<Arc<AuditWriter>>,
    recorder: Option<SessionRecorder<'a>>,
    observer: &'a dyn Observer,
}

/// What a conversation has beside what was said in it.
pub(super) struct ConversationContext {
    pub(super) approvals: Arc<SessionApprovals>,
    /// What calls leave to later ones.
    pub(super) session_state: Arc<SessionState>,
    /// `None`: there is no log.
    pub(super) audit: Option<Arc<AuditWriter>>,
    /// `None`: it is not recorded, and whole outputs are not kept.
    pub(super) journal: Option<SessionJournal>,
}

impl<'a> PreparedRequest<'a> {
    /// With the system prompt of this moment, in the mode of its approvals.
    pub(super) fn new(
        conversation: ConversationContext,
        context: &'a AppContext,
        workspace: &Arc<Workspace>,
        model: &'a Arc<dyn LanguageModel>,
        observer: &'a dyn Observer,
    ) -> Self {
        let ConversationContext { approvals, session_state: memory, audit, journal } = conversation;
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
            .with_session_state(memory);
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

    /// What the model is told before everything else.
    pub(super) fn system_prompt(&self) -> &str {
        &self.system_prompt
    }

    /// For whoever may have to end its record.
    pub(super) fn shutdown_recorder(&self) -> Option<ShutdownRecorder> {
        self.recorder.as_ref().map(SessionRecorder::shutdown_recorder)
    }

    /// Has the agent work. What happens is recorded first, then logged, then shown.
    pub(super) async fn run<T>(&self, work: impl AsyncFnOnce(&Agent<'_>) -> T) -> T {
        let recorded: &dyn Observer =
            self.recorder.as_ref().map_or(self.observer, |recording| recording);
        let watching = self.audit.as_ref().map(|audit| audit.observer(recorded));
        let settings = &self.context.settings;
        let agent = Agent {
            model: self.model,
            tools: &self.dispatcher,
            observer: watching.as_ref().map_or(recorded, |watching| watching),
            system: self.system_prompt.clone(),
            turn_limit: settings.turn_limit,
            time_limit: settings.time_limit,
            interventions: settings.interventions,
        };
        work(&agent).await
    }

    /// Gives the journal back for the next request, if it can still be written.
    pub(super) fn into_journal(self) -> Option<SessionJournal> {
        self.recorder.and_then(SessionRecorder::into_journal)
    }
}

/// A name for the next request.
pub(super) fn new_request_id() -> RequestId {
    RequestId::new(u32::try_from(random::next_u64() >> 32).unwrap_or_default())
}
