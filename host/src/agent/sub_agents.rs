//! Sub-agents: the same loop on a task of its own, with a conversation that begins and ends with
//! it.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use tokio_util::sync::CancellationToken;

use super::budget::TurnLimit;
use super::events::Observer;
use super::interventions::InterventionSettings;
use super::ports::{LanguageModel, SubAgentReport, TaskDelegate, ToolRunner};
use super::request::{Agent, RequestId};
use crate::conversation::Transcript;

/// Turns with calls that a sub-agent may take, unless configured otherwise: half of what a request
/// has.
pub const SUB_AGENT_TURN_LIMIT: u32 = 20;

/// Makes a sub-agent for each task.
pub struct SubAgentMaker {
    /// Who answers.
    pub model: Arc<dyn LanguageModel>,
    /// Makes the tools of one sub-agent, which have to be such as can change nothing: nobody is
    /// asked here.
    pub tools: Box<dyn Fn() -> Box<dyn ToolRunner> + Send + Sync>,
    /// What each is told before its task.
    pub system: String,
    /// How many turns with calls each may take.
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
                // It ends with the request that it works for, which has a limit.
                time_limit: None,
                interventions: InterventionSettings::default(),
            };
            let mut transcript = Transcript::default();
            // Nobody needs to tell it from others: what it does is told as that of the call that it
            // works for.
            let outcome =
                agent.run_request(&RequestId::new(0), &mut transcript, task, cancel).await;
            let turns =
                transcript.exchanges().iter().map(|exchange| exchange.turns().len()).sum::<usize>();
            SubAgentReport { outcome, turns: u32::try_from(turns).unwrap_or(u32::MAX) }
        })
    }
}
