//! A request that is ready to run: agent, tools, session record and audit log.

use std::sync::Arc;

use tokio_util::sync::CancellationToken;

use super::Session;
use crate::agent::events::Observer;
use crate::agent::ports::ToolRunner;
use crate::agent::{
    Agent, CompactionOutcome, RequestId, RequestOutcome, SUB_AGENT_TURN_LIMIT, SubAgentMaker,
    SystemPrompt, TurnLimit,
};
use crate::conversation::Transcript;
use crate::random;
use crate::session::{SessionId, SessionJournal, SessionRecorder, ShutdownRecorder};
use crate::tools::{Dispatcher, OutputFiles, SubAgentRunner};

/// A request of a [`Session`] that is ready to run. When it is dropped, the session can prepare the
/// next one.
///
/// ```
/// use std::sync::Arc;
///
/// use cofferdam::Host;
/// use cofferdam::agent::events::{AgentEvent, Observer};
/// use cofferdam::agent::ports::LanguageModel;
/// use cofferdam::model::ReplayModel;
/// use tokio_util::sync::CancellationToken;
///
/// /// Prints the lines that a terminal would show.
/// struct EventPrinter;
///
/// impl Observer for EventPrinter {
///     fn observe(&self, event: &AgentEvent<'_>) {
///         match event {
///             AgentEvent::CallStarted { summary, .. } => println!("call: {summary}"),
///             AgentEvent::Notice(text) => println!("notice: {text}"),
///             _ => {}
///         }
///     }
/// }
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # tokio::runtime::Runtime::new()?.block_on(async {
/// # let workspace = tempfile::tempdir()?;
/// // A recorded model in place of a provider.
/// let recording = r#"{"cofferdam_recording": 1}
///     {"blocks": [{"text": "It has two lines."}]}"#;
/// let model: Arc<dyn LanguageModel> = Arc::new(ReplayModel::parse(recording)?);
/// let host = Host::builder(workspace.path()).without_built_in_tools().build()?;
/// let mut session = host.session(model);
/// let request = session.prepare(&EventPrinter)?;
/// // A clone of this token can cancel the request from another task.
/// let cancel = CancellationToken::new();
/// let outcome = request.run("How long is README.md?", &cancel).await;
/// assert_eq!(outcome.text(), Some("It has two lines."));
/// # Ok(())
/// # })
/// # }
/// ```
pub struct PreparedRequest<'a> {
    session: &'a mut Session,
    id: RequestId,
    system_prompt: String,
    dispatcher: Dispatcher,
    recorder: Option<SessionRecorder<'a>>,
    observer: &'a dyn Observer,
}

impl<'a> PreparedRequest<'a> {
    pub(super) fn new(
        session: &'a mut Session,
        journal: Option<SessionJournal>,
        observer: &'a dyn Observer,
    ) -> Self {
        let prompt = session.host.system_prompt(session.approvals.mode());
        let outputs = journal.as_ref().map(|journal| OutputFiles {
            directory: journal.outputs_directory().to_owned(),
            redact: Arc::from(session.host.prepared().redactor()),
        });
        let sub_agents = session.sub_agents(&prompt, outputs.clone());
        let dispatcher = session
            .host
            .dispatcher(Arc::clone(&session.approvals), outputs)
            .with_sub_agents(sub_agents)
            .with_session_state(Arc::clone(&session.tool_state));
        let recorder =
            journal.map(|journal| SessionRecorder::new(journal, session.model.info(), observer));
        let id = RequestId::new(u32::try_from(random::next_u64() >> 32).unwrap_or_default());
        Self { session, id, system_prompt: prompt.render(), dispatcher, recorder, observer }
    }

    /// Returns the ID of the request.
    pub fn id(&self) -> &RequestId {
        &self.id
    }

    /// Returns the ID of the recorded session, if there is a record.
    pub fn session_id(&self) -> Option<&SessionId> {
        self.session.id()
    }

    /// Returns the system prompt.
    pub fn system_prompt(&self) -> &str {
        &self.system_prompt
    }

    /// Returns the handle that completes the session record if the program must exit.
    pub fn shutdown_recorder(&self) -> Option<ShutdownRecorder> {
        self.recorder.as_ref().map(SessionRecorder::shutdown_recorder)
    }

    /// Sends a prompt, and runs tool calls until the model answers or `cancel` is cancelled.
    pub async fn run(mut self, prompt: &str, cancel: &CancellationToken) -> RequestOutcome {
        self.with_agent(async |agent, id, transcript| {
            agent.run_request(id, transcript, prompt, cancel).await
        })
        .await
    }

    /// Replaces the conversation by a summary (R-73).
    pub async fn compact(mut self, cancel: &CancellationToken) -> CompactionOutcome {
        self.with_agent(async |agent, _, transcript| agent.compact(transcript, cancel).await).await
    }

    /// Runs `work` with the agent. Events are recorded first, then logged, then shown.
    async fn with_agent<T>(
        &mut self,
        work: impl AsyncFnOnce(&Agent<'_>, &RequestId, &mut Transcript) -> T,
    ) -> T {
        let recorded: &dyn Observer =
            self.recorder.as_ref().map_or(self.observer, |recorder| recorder);
        let session = &mut *self.session;
        let audited = session.audit.as_ref().map(|audit| audit.observer(recorded));
        let settings = session.host.prepared().settings();
        let agent = Agent {
            model: session.model.as_ref(),
            tools: &self.dispatcher,
            observer: audited.as_ref().map_or(recorded, |audited| audited),
            system: self.system_prompt.clone(),
            turn_limit: settings.turn_limit,
            time_limit: settings.time_limit,
            interventions: settings.interventions,
        };
        work(&agent, &self.id, &mut session.transcript).await
    }
}

impl Drop for PreparedRequest<'_> {
    fn drop(&mut self) {
        let journal = self.recorder.take().and_then(SessionRecorder::into_journal);
        self.session.record.return_journal(journal);
    }
}

impl Session {
    /// Creates the runner of sub-agents. They use the same model and the read-only tools, so they
    /// never need an approval.
    fn sub_agents(&self, prompt: &SystemPrompt, outputs: Option<OutputFiles>) -> SubAgentRunner {
        let (host, approvals) = (self.host.clone(), Arc::clone(&self.approvals));
        let catalog = Arc::new(host.catalog().read_only());
        let tools = move || -> Box<dyn ToolRunner> {
            Box::new(host.sub_agent_dispatcher(&catalog, &approvals, outputs.clone()))
        };
        SubAgentRunner::Available(Arc::new(SubAgentMaker {
            model: Arc::clone(&self.model),
            tools: Box::new(tools),
            system: prompt.render_for_sub_agent(),
            turn_limit: TurnLimit::new(SUB_AGENT_TURN_LIMIT).unwrap_or_default(),
        }))
    }
}
