//! The outcome of a single tool call.

use std::sync::{Mutex, PoisonError};

use serde_json::Value;

use crate::agent::events::{AgentEvent, Observer, ToolView};
use crate::conversation::{ResultStatus, ToolResult};

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
}

/// An observer that keeps what the result of a call does not have.
pub(super) struct CallCapture<'a> {
    inner: &'a dyn Observer,
    captured: Mutex<(Option<Value>, Option<ToolView>)>,
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

impl<'a> CallCapture<'a> {
    pub(super) fn new(inner: &'a dyn Observer) -> Self {
        Self { inner, captured: Mutex::default() }
    }

    pub(super) fn into_outcome(self, result: ToolResult) -> CallOutcome {
        let (structured, view) = self.captured.into_inner().unwrap_or_else(PoisonError::into_inner);
        CallOutcome { result, structured, view }
    }
}

impl Observer for CallCapture<'_> {
    fn observe(&self, event: &AgentEvent<'_>) {
        if let AgentEvent::CallFinished { structured, view, .. } = event {
            let mut captured = self.captured.lock().unwrap_or_else(PoisonError::into_inner);
            *captured = (structured.cloned(), view.cloned());
        }
        self.inner.observe(event);
    }

    fn is_live(&self) -> bool {
        self.inner.is_live()
    }
}
