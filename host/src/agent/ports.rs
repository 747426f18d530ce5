//! What the loop needs from the rest of the house, and nothing more: a model that answers and tools
//! that run.

use std::time::Duration;

use futures_util::future::BoxFuture;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use super::RequestOutcome;
use super::active_time::ActiveTime;
use super::events::Observer;
use crate::conversation::{ModelResponse, OpenTurn, SentTranscript, estimate};

/// A language model.
pub trait LanguageModel: Send + Sync {
    /// Which model this is.
    fn info(&self) -> &ModelInfo;

    /// One response to a conversation. Deltas are handed over as they arrive; the response holds
    /// the same text in full. Retries happen in here, and only as long as nothing was shown.
    /// With `cancel` it ends within a moment, as [`ModelErrorKind::Aborted`].
    fn respond<'a>(
        &'a self,
        request: ModelRequest<'a>,
        on_delta: &'a mut (dyn FnMut(ResponseDelta<'_>) + Send),
        cancel: &'a CancellationToken,
    ) -> BoxFuture<'a, Result<ModelResponse, ModelError>>;
}

/// Which model answers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModelInfo {
    /// Such as `openai`, `anthropic` or `replay`.
    pub provider: String,
    /// As the provider names it.
    pub model: String,
    /// Where it is asked, if that is not its provider's own address.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub address: Option<String>,
    /// How many tokens the model can take in and give out together.
    pub context_window: u64,
    /// How many of them are set aside for what it gives out, if that was chosen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_output: Option<u64>,
}

/// What a model is asked.
#[derive(Clone, Copy, Debug)]
pub struct ModelRequest<'a> {
    /// Added to this request alone; the transcript holds none.
    pub system: &'a str,
    /// What was said so far, as far as it is sent.
    pub conversation: SentTranscript<'a>,
    /// A remark of the host to the model for this request only, after everything else.
    pub note: Option<&'a str>,
    /// In a stable order.
    pub tools: &'a [ToolDefinition],
    /// Whether the model may call them.
    pub tool_choice: ToolChoice,
    /// Whether deltas are shown as they come. Where they are not, a response that broke off may
    /// begin anew.
    pub is_shown_live: bool,
}

/// Whether a model may call tools.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ToolChoice {
    /// As it sees fit.
    Auto,
    /// Not now; their definitions stay in the request all the same.
    None,
}

/// A tool as a model sees it.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolDefinition {
    /// 1 to 64 of `[a-zA-Z0-9_-]`.
    pub name: String,
    /// What it is for.
    pub description: String,
    /// A JSON Schema of type `object`.
    pub input_schema: Value,
}

impl ToolDefinition {
    /// All of it, in estimated tokens.
    pub fn tokens(&self) -> u64 {
        estimate::text(&self.name)
            + estimate::prompt(&self.description)
            + estimate::text(&self.input_schema.to_string())
    }
}

/// A piece of a response on its way.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ResponseDelta<'a> {
    /// More text.
    Text(&'a str),
    /// More thinking.
    Reasoning(&'a str),
    /// The model begins to write a call of this tool.
    ToolCallStart(&'a str),
    /// The request is sent again after a pause. If anything came before, nobody saw it, and it
    /// counts no more.
    Retry {
        /// The attempt that failed, from 1.
        attempt: u32,
        /// How long the pause is.
        pause: Duration,
        /// What went wrong.
        reason: &'a str,
    },
}

/// Why there is no response.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct ModelError {
    /// What sort of failure it is.
    pub kind: ModelErrorKind,
    /// For the person at the terminal: what happened, where, and what to do.
    pub message: String,
    /// Text that had been handed over before it failed.
    pub partial_text: String,
}

impl ModelError {
    /// A failure before any text arrived.
    pub fn new(kind: ModelErrorKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), partial_text: String::new() }
    }
}

/// Sorts of failure of a model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ModelErrorKind {
    /// Cancelled by the caller.
    Aborted,
    /// The conversation is larger than the model's context window.
    Overflow,
    /// The provider was not reached, or the connection broke.
    Transport,
    /// Nothing came for too long.
    Timeout,
    /// The provider refused the request: a bad key, an unknown model, a malformed body.
    Rejected,
    /// The provider failed, or asked to come back later more often than is allowed.
    Unavailable,
    /// What came was not in the provider's own format, or ended before its end.
    Malformed,
}

/// The tools of this run.
pub trait ToolRunner: Send + Sync {
    /// What the model is told, in a stable order.
    fn definitions(&self) -> &[ToolDefinition];

    /// Stands still while the user is asked something.
    fn active_time(&self) -> &ActiveTime;

    /// Runs the calls of a turn and answers them in it. It may leave calls unanswered when it ends
    /// early; closing the turn settles those. It always ends by itself, and within a second of
    /// `cancel`.
    fn run<'a>(
        &'a self,
        turn: &'a mut OpenTurn,
        observer: &'a dyn Observer,
        cancel: &'a CancellationToken,
    ) -> BoxFuture<'a, RunOutcome>;
}

/// How running the calls of a turn ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunOutcome {
    /// Each call has its result.
    Finished,
    /// The user said no and wants the request to end.
    Rejected,
    /// Cancelled.
    Aborted,
}

/// Whoever works on a task that a tool hands over.
pub trait TaskDelegate: Send + Sync {
    /// Works on a task until it is done. It always ends by itself, and within a second of `cancel`.
    fn delegate<'a>(
        &'a self,
        task: &'a str,
        observer: &'a dyn Observer,
        cancel: &'a CancellationToken,
    ) -> BoxFuture<'a, SubAgentReport>;
}

/// What became of a task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SubAgentReport {
    /// How it ended.
    pub outcome: RequestOutcome,
    /// How many turns it took.
    pub turns: u32,
}
