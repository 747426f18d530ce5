//! One request put together, for whoever makes requests: who records it, who is told of it, and with which tools it works.

use std::sync::Arc;

use super::assemble::Parts;
use super::run::system_prompt;
use super::sessions;
use crate::agent::events::Observer;
use crate::agent::ports::Model;
use crate::agent::{Agent, RequestId};
use crate::audit::Audit;
use crate::chance;
use crate::sandbox::Workspace;
use crate::session::{Journal, LastWords, Recording};
use crate::tools::{Approvals, Dispatcher, Memory, Outputs};

/// A request of a conversation, before it begins.
pub(super) struct Request<'a> {
    parts: &'a Parts,
    model: &'a dyn Model,
    system: String,
    dispatcher: Dispatcher,
    audit: Option<Arc<Audit>>,
    recording: Option<Recording<'a>>,
    view: &'a dyn Observer,
}

/// What a conversation has beside what was said in it.
pub(super) struct Conversation {
    pub(super) approvals: Arc<Approvals>,
    /// What calls leave to later ones.
    pub(super) memory: Arc<Memory>,
    /// `None`: there is no log.
    pub(super) audit: Option<Arc<Audit>>,
    /// `None`: it is not recorded, and whole outputs are not kept.
    pub(super) journal: Option<Journal>,
}

impl<'a> Request<'a> {
    /// With the system prompt of this moment, in the mode of its approvals.
    pub(super) fn of(
        conversation: Conversation,
        parts: &'a Parts,
        workspace: &Arc<Workspace>,
        model: &'a Arc<dyn Model>,
        view: &'a dyn Observer,
    ) -> Self {
        let Conversation { approvals, memory, audit, journal } = conversation;
        let prompt = system_prompt(parts, workspace, approvals.mode());
        let outputs =
            journal.as_ref().map(|journal| Outputs { folder: journal.outputs().to_owned(), redact: Arc::from(sessions::redact(parts)) });
        let sub_agents = parts.sub_agents(workspace, &approvals, model, prompt.render_for_sub_agent(), outputs.clone());
        let dispatcher = parts.dispatcher(workspace, approvals, outputs).with_sub_agents(sub_agents).with_memory(memory);
        let recording = journal.map(|journal| Recording::new(journal, model.info(), view));
        Self { parts, model: model.as_ref(), system: prompt.render(), dispatcher, audit, recording, view }
    }

    /// What the model is told before everything else.
    pub(super) fn system(&self) -> &str {
        &self.system
    }

    /// For whoever may have to end its record.
    pub(super) fn last_words(&self) -> Option<LastWords> {
        self.recording.as_ref().map(Recording::last_words)
    }

    /// Has the agent work. What happens is recorded first, then logged, then shown.
    pub(super) async fn work<T>(&self, work: impl AsyncFnOnce(&Agent<'_>) -> T) -> T {
        let recorded: &dyn Observer = self.recording.as_ref().map_or(self.view, |recording| recording);
        let watching = self.audit.as_ref().map(|audit| audit.watching(recorded));
        let settings = &self.parts.settings;
        let agent = Agent {
            model: self.model,
            tools: &self.dispatcher,
            observer: watching.as_ref().map_or(recorded, |watching| watching),
            system: self.system.clone(),
            turn_limit: settings.turn_limit,
            time_limit: settings.time_limit,
            interventions: settings.interventions,
        };
        work(&agent).await
    }

    /// Gives the journal back for the next request, if it can still be written.
    pub(super) fn into_journal(self) -> Option<Journal> {
        self.recording.and_then(Recording::into_journal)
    }
}

/// A name for the next request.
pub(super) fn next_id() -> RequestId {
    RequestId::new(u32::try_from(chance::bits() >> 32).unwrap_or_default())
}
