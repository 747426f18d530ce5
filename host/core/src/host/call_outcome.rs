//! The outcome of a single tool call.

use std::sync::{Mutex, PoisonError};

use serde_json::Value;

use super::HostError;
use crate::agent::events::{AgentEvent, DeniedCallSummary, Observer, ToolView};
use crate::conversation::{
    ModelResponse, OpenTurn, ResponseBlock, ResultStatus, ToolCall, ToolResult,
};

/// The outcome of a tool call that no model made.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct CallOutcome {
    /// The result that a model would get: a status and content.
    pub result: ToolResult,
    /// The structured result, for a tool with an output schema that succeeded.
    pub structured: Option<Value>,
    /// What a user would see instead of the content, such as the diff of a change.
    pub view: Option<ToolView>,
    /// The reason why the call was denied, if it was.
    pub denied: Option<DeniedCallSummary>,
    /// The exit code of the last command that the call ran. `None` if it ran no command, or if that
    /// command did not exit by itself.
    pub exit_code: Option<i32>,
}

/// What the events of a call say about its end.
#[derive(Default)]
struct CapturedEnd {
    structured: Option<Value>,
    view: Option<ToolView>,
    denied: Option<DeniedCallSummary>,
    exit_code: Option<i32>,
}

/// An observer that keeps what the result of a call does not have.
pub(super) struct CallCapture<'a> {
    inner: &'a dyn Observer,
    captured: Mutex<CapturedEnd>,
}

impl CallOutcome {
    /// Returns the text of the result.
    pub fn text(&self) -> String {
        self.result.text()
    }

    /// Returns the way in which the call ended.
    pub fn status(&self) -> ResultStatus {
        self.result.status
    }
}

/// Opens a turn with one call, as if a model had made it.
pub(super) fn open_turn(call: ToolCall) -> Result<OpenTurn, HostError> {
    let blocks = vec![ResponseBlock::Call(call)];
    OpenTurn::new(ModelResponse { blocks, ..ModelResponse::default() })
        .map_err(|_| HostError::NoCall)
}

impl<'a> CallCapture<'a> {
    pub(super) fn new(inner: &'a dyn Observer) -> Self {
        Self { inner, captured: Mutex::default() }
    }

    /// Closes the turn of the call, and returns the outcome.
    pub(super) fn close(self, turn: OpenTurn) -> Result<CallOutcome, HostError> {
        let turn = turn.close("the call was cancelled");
        let result = turn.calls().next().ok_or(HostError::NoCall)?.result.clone();
        let CapturedEnd { structured, view, denied, exit_code } =
            self.captured.into_inner().unwrap_or_else(PoisonError::into_inner);
        Ok(CallOutcome { result, structured, view, denied, exit_code })
    }
}

impl Observer for CallCapture<'_> {
    fn observe(&self, event: &AgentEvent<'_>) {
        if let AgentEvent::CallFinished { structured, view, denied, exit_code, .. } = event {
            let mut captured = self.captured.lock().unwrap_or_else(PoisonError::into_inner);
            *captured = CapturedEnd {
                structured: structured.cloned(),
                view: view.cloned(),
                denied: denied.cloned(),
                exit_code: *exit_code,
            };
        }
        self.inner.observe(event);
    }

    fn is_live(&self) -> bool {
        self.inner.is_live()
    }
}
