//! The interfaces that the loop needs from other modules: a model that responds and tools that run.

use std::time::Duration;

use futures_util::future::BoxFuture;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use super::RequestOutcome;
use super::active_time::ActiveTime;
use super::events::Observer;
use crate::conversation::{ModelResponse, OpenTurn, SentTranscript, estimate};

/// A language model that responds to a conversation.
pub trait LanguageModel: Send + Sync {
    /// Returns the provider, the name and the limits of this model.
    fn info(&self) -> &ModelInfo;

    /// Requests one response to a conversation.
    ///
    /// Deltas are passed to `on_delta` as they arrive, and the response contains the same text in
    /// full. The implementation retries only while nothing was shown.
    ///
    /// # Errors
    /// There is no complete response. After `cancel`, it returns [`ModelErrorKind::Aborted`] almost
    /// immediately.
    fn respond<'a>(
        &'a self,
        request: ModelRequest<'a>,
        on_delta: &'a mut (dyn FnMut(ResponseDelta<'_>) + Send),
        cancel: &'a CancellationToken,
    ) -> BoxFuture<'a, Result<ModelResponse, ModelError>>;
}

/// The identity and the limits of a model.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModelInfo {
    /// The provider, such as `openai`, `anthropic` or `replay`.
    pub provider: String,
    /// The model, as its provider names it.
    pub model: String,
    /// The address of the API, if it is not the provider's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub address: Option<String>,
    /// The limit on input and output tokens together.
    pub context_window: u64,
    /// The configured limit on output tokens, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_output: Option<u64>,
}

/// A single request to a model.
#[derive(Clone, Copy, Debug)]
pub struct ModelRequest<'a> {
    /// The system prompt, which is not part of the transcript.
    pub system: &'a str,
    /// The part of the conversation that is sent.
    pub conversation: SentTranscript<'a>,
    /// A note from the host to the model, placed last and sent only in this request.
    pub note: Option<&'a str>,
    /// The tools that the model sees, in a stable order.
    pub tools: &'a [ToolDefinition],
    /// The permission of the model to call tools.
    pub tool_choice: ToolChoice,
    /// Whether deltas are shown to the user as they arrive.
    ///
    /// If not, a response that broke off may be requested again.
    pub is_shown_live: bool,
}

/// The permission of a model to call tools in one response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ToolChoice {
    /// The model decides whether to call tools.
    Auto,
    /// The model must not call tools; the request still contains their definitions.
    None,
}

/// A tool as a model sees it.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolDefinition {
    /// The name: 1 to 64 characters of `[a-zA-Z0-9_-]`.
    pub name: String,
    /// The purpose and the use of the tool.
    pub description: String,
    /// A JSON Schema of type `object` for the arguments.
    pub input_schema: Value,
}

impl ToolDefinition {
    /// Returns the size of the definition, in estimated tokens.
    pub fn tokens(&self) -> u64 {
        estimate::text(&self.name)
            + estimate::prompt(&self.description)
            + estimate::text(&self.input_schema.to_string())
    }
}

/// A piece of a response that is still arriving.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum ResponseDelta<'a> {
    /// A further piece of text.
    Text(&'a str),
    /// A further piece of reasoning.
    Reasoning(&'a str),
    /// The start of a call of the named tool.
    ToolCallStart(&'a str),
    /// The request will be sent again after a pause.
    ///
    /// Pieces of the failed attempt no longer count. Nobody saw them.
    Retry {
        /// The number of the attempt that failed, from 1.
        attempt: u32,
        /// The length of the pause.
        pause: Duration,
        /// The reason for the retry.
        reason: &'a str,
    },
}

/// The reason why there is no response from a model.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct ModelError {
    /// The category of the failure.
    pub kind: ModelErrorKind,
    /// The failure, its location and a remedy, written for the user.
    pub message: String,
    /// The text that was passed on as deltas before the failure.
    pub partial_text: String,
}

impl ModelError {
    /// Creates an error for a failure before any text arrived.
    pub fn new(kind: ModelErrorKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), partial_text: String::new() }
    }
}

/// The category of a failed model request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ModelErrorKind {
    /// The caller cancelled the request.
    Aborted,
    /// The conversation is larger than the model's context window.
    Overflow,
    /// The provider could not be reached, or the connection broke.
    Transport,
    /// No data arrived for too long.
    Timeout,
    /// The provider refused the request: a bad key, an unknown model, a malformed body.
    Rejected,
    /// The provider failed, or deferred the request more often than the retry limit allows.
    Unavailable,
    /// The response was not in the provider's format, or broke off.
    Malformed,
}

/// A runner for the tools of an agent.
pub trait ToolRunner: Send + Sync {
    /// Returns the definitions that the model sees, in a stable order.
    fn definitions(&self) -> &[ToolDefinition];

    /// Returns the clock that stops while a question to the user is open.
    fn active_time(&self) -> &ActiveTime;

    /// Runs the calls of a turn and records their results in it.
    ///
    /// It may leave calls without a result if it ends early. [`OpenTurn::close`] then adds those
    /// results. It always ends by itself, and within a second after `cancel`.
    fn run<'a>(
        &'a self,
        turn: &'a mut OpenTurn,
        observer: &'a dyn Observer,
        cancel: &'a CancellationToken,
    ) -> BoxFuture<'a, RunOutcome>;
}

/// The way in which running the calls of a turn ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunOutcome {
    /// Each call has its result.
    Finished,
    /// The user rejected a call and wants the request to end.
    Rejected,
    /// The user cancelled the request.
    Aborted,
}

/// A worker for the tasks that a tool delegates.
pub trait TaskDelegate: Send + Sync {
    /// Works on a task until it is done.
    ///
    /// It always ends by itself, and within a second after `cancel`.
    fn delegate<'a>(
        &'a self,
        task: &'a str,
        observer: &'a dyn Observer,
        cancel: &'a CancellationToken,
    ) -> BoxFuture<'a, SubAgentReport>;
}

/// The outcome of a delegated task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SubAgentReport {
    /// The way in which the work ended.
    pub outcome: RequestOutcome,
    /// The number of turns that the work took.
    pub turns: u32,
}
