//! Events of a request, for the terminal, the JSON stream and the session log.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::RequestOutcome;
use super::ports::ResponseDelta;
use crate::conversation::{
    AssistantTurn, OpenTurn, PrunedOutput, RollingSummary, TokenUsage, ToolCall, ToolResult,
};
use crate::policy::Tier;

/// A receiver of the events of a request.
///
/// An observer cannot fail and cannot change what happens (R-34).
///
/// ```
/// use std::sync::atomic::{AtomicUsize, Ordering};
///
/// use cofferdam::agent::events::{AgentEvent, Observer};
///
/// /// Counts the calls that were denied.
/// #[derive(Default)]
/// struct DenialCounter(AtomicUsize);
///
/// impl Observer for DenialCounter {
///     fn observe(&self, event: &AgentEvent<'_>) {
///         if let AgentEvent::CallFinished { denied: Some(_), .. } = event {
///             self.0.fetch_add(1, Ordering::Relaxed);
///         }
///     }
/// }
///
/// let counter = DenialCounter::default();
/// counter.observe(&AgentEvent::Notice("The policy file was changed."));
/// assert_eq!(counter.0.into_inner(), 0);
/// ```
pub trait Observer: Send + Sync {
    /// Receives one event.
    ///
    /// Events arrive in order, from the task that causes them. An observer must return soon.
    fn observe(&self, event: &AgentEvent<'_>);

    /// Returns whether a response is shown to somebody before it is complete.
    ///
    /// A response that nobody has seen may be requested again (R-85).
    fn is_live(&self) -> bool {
        true
    }
}

/// An event of a request.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum AgentEvent<'a> {
    /// A request begins with the user's prompt.
    RequestStarted {
        /// The request ID: eight characters, new for each request.
        request: &'a str,
        /// The text of the user.
        prompt: &'a str,
        /// The model that answers, as its provider names it.
        model: &'a str,
    },
    /// The model is about to be asked, for the nth time in this request.
    TurnStarted {
        /// The number of the turn, from 1.
        turn: u32,
    },
    /// The part of the conversation that is sent becomes shorter.
    ContextFitting(ContextFitting<'a>),
    /// A piece of the response has arrived.
    Delta(ResponseDelta<'a>),
    /// A turn without calls is complete, and its text is final.
    Answered(&'a AssistantTurn),
    /// The model requests calls, none of which has started.
    CallsRequested(&'a OpenTurn),
    /// A call is about to run.
    ///
    /// An observer that records events has written this one before the call can have any effect
    /// (R-108).
    CallStarted {
        /// The call that is about to run.
        call: &'a ToolCall,
        /// The scheduling tier of the call.
        tier: Tier,
        /// A short description of the call, such as a path or a command line.
        summary: &'a str,
    },
    /// A running call reports its progress.
    CallProgress {
        /// The call that is running.
        call: &'a ToolCall,
        /// One line of text.
        message: &'a str,
    },
    /// A sub-agent that works for a running call has finished a turn.
    SubAgentTurn {
        /// The call that the sub-agent works for.
        call: &'a ToolCall,
        /// The tokens that the turn took.
        usage: TokenUsage,
    },
    /// The model was paid for a response that is not part of the conversation.
    ///
    /// The response is empty, or a summary that cannot be used.
    Discarded {
        /// The tokens that the response took.
        usage: TokenUsage,
    },
    /// A call has its result.
    CallFinished {
        /// The call that is finished.
        call: &'a ToolCall,
        /// The scheduling tier; `None` if the call was refused before the tier was known.
        tier: Option<Tier>,
        /// A short description of the call.
        summary: &'a str,
        /// The result that the model receives.
        result: &'a ToolResult,
        /// A view for the user in place of the result, if the tool gave one.
        view: Option<&'a ToolView>,
        /// The structured result, which is valid under the tool's output schema.
        structured: Option<&'a Value>,
        /// The running time, without the time spent waiting for approval.
        duration: Duration,
        /// The tool state that the call changed for later calls of the session, if any.
        state_delta: Option<&'a ToolStateDelta>,
        /// The reason why the call was denied, if it was.
        denied: Option<&'a DeniedCallSummary>,
        /// The exit code of the last command that the call ran.
        ///
        /// `None` if it ran no command, or if that command did not exit by itself.
        exit_code: Option<i32>,
    },
    /// A turn is complete and goes into the transcript.
    ///
    /// The turn has calls, is an answer, or holds the text that arrived before a failure.
    TurnFinished(&'a AssistantTurn),
    /// A message for the user.
    Notice(&'a str),
    /// The request has ended.
    RequestFinished {
        /// The way in which the request ended.
        outcome: &'a RequestOutcome,
    },
}

/// The reason why a call was denied.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct DeniedCallSummary {
    /// A short and stable code, such as `policy`, `mode` or `rejected-by-user`.
    pub code: String,
    /// The permission or call that was denied, and the reason.
    pub reason: String,
    /// The change that would allow it, if there is one.
    pub remedy: Option<String>,
}

/// The tool state that one call changes for later calls of the session.
///
/// The state is restored when the session is resumed. Only the tool runner interprets it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ToolStateDelta {
    /// The component that the tool belongs to.
    pub component: String,
    /// The name of the tool.
    pub tool: String,
    /// The keys that the tool has set, with their values, or deleted (`None`).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<(String, Option<StateValue>)>,
    /// The file versions that the model has seen, by path; `None` if the file no longer exists.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<(String, Option<String>)>,
}

/// A value that a tool keeps for later calls of the session.
///
/// In JSON it is a string if it is UTF-8 text, and otherwise an object with its Base64 form. Older
/// versions wrote strings only.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "EncodedStateValue", into = "EncodedStateValue")]
pub struct StateValue(pub Vec<u8>);

#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum EncodedStateValue {
    Text(String),
    Bytes(Base64Bytes),
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Base64Bytes {
    #[serde(with = "base64_text")]
    base64: Vec<u8>,
}

impl From<EncodedStateValue> for StateValue {
    fn from(encoded: EncodedStateValue) -> Self {
        match encoded {
            EncodedStateValue::Text(text) => Self(text.into_bytes()),
            EncodedStateValue::Bytes(Base64Bytes { base64 }) => Self(base64),
        }
    }
}

impl From<StateValue> for EncodedStateValue {
    fn from(StateValue(bytes): StateValue) -> Self {
        match String::from_utf8(bytes) {
            Ok(text) => Self::Text(text),
            Err(error) => Self::Bytes(Base64Bytes { base64: error.into_bytes() }),
        }
    }
}

/// Bytes as Base64 text in JSON.
mod base64_text {
    use base64::Engine as _;
    use base64::engine::general_purpose::STANDARD;
    use serde::{Deserialize as _, Deserializer, Serializer, de};

    pub(super) fn serialize<S: Serializer>(bytes: &[u8], out: S) -> Result<S::Ok, S::Error> {
        out.serialize_str(&STANDARD.encode(bytes))
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<u8>, D::Error> {
        STANDARD.decode(String::deserialize(from)?).map_err(de::Error::custom)
    }
}

/// A step that makes the conversation fit into the model's context window.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum ContextFitting<'a> {
    /// Old results are no longer sent.
    Pruned(PrunedOutput),
    /// The model is asked for a summary of the oldest part, which can take a while.
    Summarising,
    /// The summary replaces the oldest part from now on.
    ///
    /// A record of the conversation needs this event to be complete.
    Summarised {
        /// The summary and the range of turns that it replaces.
        summary: &'a RollingSummary,
        /// The size of what was sent before and of what is sent now, in estimated tokens.
        tokens: (u64, u64),
        /// The tokens that the summary took.
        usage: TokenUsage,
    },
}

/// A view that a tool shows to the user in place of its result.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum ToolView {
    /// Plain text, shown as it is.
    Text(String),
    /// A change to files, as a unified diff.
    Diff(String),
    /// A table of text cells under a header.
    Table {
        /// The titles of the columns.
        header: Vec<String>,
        /// The rows, each as long as the header.
        rows: Vec<Vec<String>>,
    },
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn state_values_are_kept_exactly_and_old_sessions_load() {
        let table = [
            (&b"[]"[..], json!("[]")),
            ("\u{e4}\0\n".as_bytes(), json!("\u{e4}\0\n")),
            (b"", json!("")),
            (b"\xff\x00a", json!({"base64": "/wBh"})),
        ];
        for (bytes, expected) in table {
            let value = StateValue(bytes.to_vec());
            let encoded = serde_json::to_value(&value).expect("it is data");
            assert_eq!(encoded, expected);
            assert_eq!(serde_json::from_value::<StateValue>(encoded).ok(), Some(value));
        }
        let old = json!({"component": "c", "tool": "t", "notes": [["a", "1"], ["b", null]]});
        let delta: ToolStateDelta = serde_json::from_value(old).expect("it is an old delta");
        let expected = [("a".into(), Some(StateValue(b"1".to_vec()))), ("b".into(), None)];
        assert_eq!(delta.notes, expected);
        assert!(serde_json::from_value::<StateValue>(json!({"base64": "?"})).is_err());
    }
}
