//! Sub-agents: the same loop, with a separate task and a separate conversation.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use tokio_util::sync::CancellationToken;

use super::budget::TurnLimit;
use super::events::Observer;
use super::interventions::InterventionSettings;
use super::ports::{LanguageModel, SubAgentReport, TaskDelegate, ToolRunner};
use super::request::{Agent, RequestId};
use crate::conversation::Transcript;

/// The default limit on turns with tool calls of a sub-agent, half of that of a request.
pub(crate) const SUB_AGENT_TURN_LIMIT: u32 = 20;

/// A factory that creates one sub-agent for each task.
pub struct SubAgentMaker {
    /// The model that answers.
    pub model: Arc<dyn LanguageModel>,
    /// Creates the tools of one sub-agent.
    ///
    /// The tools must be unable to change anything, since a sub-agent cannot ask for approval.
    pub tools: Box<dyn Fn() -> Box<dyn ToolRunner> + Send + Sync>,
    /// The system prompt of each sub-agent.
    pub system: String,
    /// The limit on turns with tool calls of each sub-agent.
    pub turn_limit: TurnLimit,
}

impl TaskDelegate for SubAgentMaker {
    fn delegate<'a>(
        &'a self,
        task: &'a str,
        observer: &'a dyn Observer,
        cancel: &'a CancellationToken,
    ) -> BoxFuture<'a, SubAgentReport> {
        Box::pin(async move {
            let tools = (self.tools)();
            let agent = Agent {
                model: self.model.as_ref(),
                tools: tools.as_ref(),
                observer,
                system: self.system.clone(),
                turn_limit: self.turn_limit,
                // It ends with the request that it works for, which has a time limit.
                time_limit: None,
                interventions: InterventionSettings::default(),
            };
            let mut transcript = Transcript::default();
            // The ID is never used: all events belong to the call that delegated the task.
            let outcome =
                agent.run_request(&RequestId::new(0), &mut transcript, task, cancel).await;
            let turns =
                transcript.exchanges().iter().map(|exchange| exchange.turns().len()).sum::<usize>();
            SubAgentReport { outcome, turns: u32::try_from(turns).unwrap_or(u32::MAX) }
        })
    }
}
