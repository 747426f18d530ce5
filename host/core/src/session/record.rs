//! The format of a session log: JSON Lines, in the order of the events and never changed.
//!
//! The first line is the header. Unknown keys in it are preserved and exported. Long lines are
//! broken in these examples only:
//!
//! ```json
//! {"cofferdam_session": 1, "id": "5f0c…", "created": "2026-01-31T12:00:00.123Z",
//!     "workspace": "/home/me/project"}
//! ```
//!
//! Each further line is a record, an object whose only key is the kind of the record:
//!
//! ```json
//! {"request": {"id": "0a1b2c3d", "prompt": "Fix the test.", "model": "claude-…",
//!     "provider": "anthropic", "at": "2026-01-31T12:00:00.124Z"}}
//! {"response": {"blocks": [{"text": "I look."},
//!     {"call": {"id": "c1", "name": "grep", "arguments": "{…}"}}], "stop": "calls", "usage": {…}}}
//! {"started": {"call": 0}}
//! {"finished": {"call": 0, "result": {"status": "ok", "content": [{"text": "…"}]}}}
//! {"closed": {"rest": []}}
//! {"turn": {"blocks": [{"text": "Done."}], "stop": "end", "usage": {…}}}
//! {"spent": {"input": 5100, "output": 400, …}}
//! {"outcome": {"kind": "answered", "at": "2026-01-31T12:00:09.001Z"}}
//! {"compacted": {"text": "Goal: …", "until": {"exchange": 1, "turn": 0}, "turns": 2,
//!     "tokens": 5100, "usage": {…}, "at": "2026-01-31T12:01:00.000Z"}}
//! ```
//!
//! - `request` contains the model that the prompt was sent to. It has an `address` if that is not
//!   the provider's own.
//! - `response` contains calls and opens a turn.
//! - `started` and `finished` name a call by its index in the turn. A `finished` record also
//!   contains the tool state that the call changed (`"remembered"`). So the log has both or
//!   neither.
//! - `closed` ends the turn, with the results of the calls that have no `finished` record.
//! - `turn` is a turn that was complete when it was written: an answer, text that broke off, or
//!   calls that were not allowed to run.
//! - `spent` contains the tokens of a response that is not part of the conversation: a response of
//!   a sub-agent, an empty response, or a summary that cannot be used. It can appear anywhere.
//! - `compacted` means that from now on a summary is sent in place of everything before a turn of
//!   an exchange, both counted from 0. It can appear between turns, inside or outside of a request.
//!   The replaced turns stay in the file, and the summary never becomes a part of them.
//!
//! A line without its newline was torn by a crash and is dropped. Any other line that cannot be
//! read, or cannot follow the one before it, makes the whole file unreadable, because a missing
//! line might matter. The one exception is a result whose call is not in the open turn. It is
//! assigned to the call that a crash left without a result, if there is no other record in between.
//! Otherwise it is dropped (R-51).
//!
//! The version changes when a reader of this version would misunderstand a file. An unknown kind of
//! record is such a misunderstanding; an unknown key is not.
//! misunderstanding, a key that it does not know is not.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{ModelIdentity, SessionId};
use crate::agent::RequestOutcome;
use crate::agent::events::ToolStateDelta;
use crate::conversation::{AssistantTurn, ModelResponse, RollingSummary, TokenUsage, ToolResult};

/// The version that this program writes, and the newest that it can read.
pub(super) const FORMAT_VERSION: u32 = 1;

/// The header, which is the first line of a session log.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct JournalHeader {
    cofferdam_session: u32,
    /// The ID of the session.
    pub id: SessionId,
    /// The time at which the session was created.
    pub created: String,
    /// The absolute path of the workspace in which the session was created.
    pub workspace: String,
    /// Keys that a later version may have added (R-110).
    #[serde(flatten)]
    unknown: Map<String, Value>,
}

impl JournalHeader {
    /// Creates the header of a session that begins now.
    pub(super) fn new(id: SessionId, workspace: String) -> Self {
        Self {
            cofferdam_session: FORMAT_VERSION,
            id,
            created: timestamp_now(),
            workspace,
            unknown: Map::new(),
        }
    }
}

/// The part of the header that every version of the format has.
#[derive(Debug, Deserialize)]
pub(super) struct AnyHeader {
    pub(super) cofferdam_session: u32,
}

/// A record, which is any line after the header.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum JournalRecord {
    /// The user sent a prompt.
    Request {
        id: String,
        prompt: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        model: Option<String>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        provider: Option<String>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        address: Option<String>,
        at: String,
    },
    /// The model requests calls.
    Response(ModelResponse),
    /// A call is about to run.
    Started { call: usize },
    /// A call has its result, and may have changed tool state for later calls.
    Finished {
        call: usize,
        result: ToolResult,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        remembered: Option<ToolStateDelta>,
    },
    /// The open turn is complete, with the results of its other calls.
    Closed { rest: Vec<(usize, ToolResult)> },
    /// A turn that is complete.
    Turn(AssistantTurn),
    /// A response that is not part of the conversation was paid for.
    Spent(TokenUsage),
    /// The request has ended.
    Outcome {
        kind: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        message: Option<String>,
        at: String,
    },
    /// A summary replaces the oldest part of the conversation in what is sent.
    Compacted {
        #[serde(flatten)]
        summary: RollingSummary,
        #[serde(default)]
        usage: TokenUsage,
        at: String,
    },
}

impl JournalRecord {
    pub(super) fn from_request(id: &str, prompt: &str, model: &ModelIdentity) -> Self {
        let ModelIdentity { provider, model, address } = model.clone();
        Self::Request {
            id: id.to_owned(),
            prompt: prompt.to_owned(),
            model: Some(model),
            provider: Some(provider),
            address,
            at: timestamp_now(),
        }
    }

    pub(super) fn from_summary(summary: &RollingSummary, usage: TokenUsage) -> Self {
        Self::Compacted { summary: summary.clone(), usage, at: timestamp_now() }
    }

    /// Creates the record that closes a turn, with the results that have not been recorded yet.
    pub(super) fn from_closed_turn(on_record: &[bool], turn: &AssistantTurn) -> Self {
        let missing =
            turn.calls().zip(on_record).enumerate().filter(|(_, (_, on_record))| !**on_record);
        Self::Closed {
            rest: missing.map(|(index, (answered, _))| (index, answered.result.clone())).collect(),
        }
    }

    /// Creates the record of an outcome, without the text of an answer, which is in its turn.
    pub(super) fn from_outcome(outcome: &RequestOutcome) -> Self {
        let message = match outcome {
            RequestOutcome::ProviderError { message }
            | RequestOutcome::Overflow { message }
            | RequestOutcome::InternalError { message } => Some(message.clone()),
            RequestOutcome::Answered { .. }
            | RequestOutcome::Limit { .. }
            | RequestOutcome::Empty
            | RequestOutcome::Rejected
            | RequestOutcome::Aborted
            | RequestOutcome::TimedOut { .. } => None,
        };
        Self::Outcome { kind: outcome.kind().to_owned(), message, at: timestamp_now() }
    }

    /// Returns the line with its newline, after `redact` was applied to every string (R-114).
    ///
    /// The strings are redacted before they are encoded, since JSON may escape characters of a
    /// secret. Keys of the format are not redacted.
    pub(super) fn to_line(&self, redact: &dyn Fn(&str) -> String) -> serde_json::Result<String> {
        let mut value = serde_json::to_value(self)?;
        redact_strings(&mut value, redact);
        Ok(format!("{value}\n"))
    }
}

fn redact_strings(value: &mut Value, redact: &dyn Fn(&str) -> String) {
    match value {
        Value::String(text) => *text = redact(text),
        Value::Array(values) => {
            for value in values {
                redact_strings(value, redact);
            }
        }
        Value::Object(fields) => {
            for value in fields.values_mut() {
                redact_strings(value, redact);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// Returns the current time in UTC, to the millisecond.
fn timestamp_now() -> String {
    let now = jiff::Timestamp::now();
    jiff::Timestamp::from_millisecond(now.as_millisecond()).unwrap_or(now).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conversation::{CallId, ResponseBlock, ToolCall};

    #[test]
    fn r114_secrets_are_redacted_in_strings_and_never_in_keys() {
        let call = ToolCall {
            id: CallId::new("c1"),
            name: "bash".into(),
            arguments: r#"{"command":"echo a\"b"}"#.into(),
        };
        let blocks = vec![ResponseBlock::Text("the a\"b of it".into()), ResponseBlock::Call(call)];
        let record = JournalRecord::Response(ModelResponse { blocks, ..ModelResponse::default() });
        for (secret, is_redacted) in [("a\"b", true), ("response", false), ("blocks", false)] {
            let line =
                record.to_line(&|text| text.replace(secret, "[key redacted]")).expect("valid JSON");
            assert_eq!(line.contains("the [key redacted] of it"), is_redacted, "{line}");
            assert!(
                matches!(serde_json::from_str(&line), Ok(JournalRecord::Response(_))),
                "{line}"
            );
        }
    }

    #[test]
    fn a_record_is_always_one_line() {
        let model = ModelIdentity { provider: "p\n".into(), model: "m".into(), address: None };
        let line =
            JournalRecord::from_request("0a1b2c3d", "one\ntwo\r\n\u{2028}three\u{0}", &model)
                .to_line(&str::to_owned)
                .expect("valid JSON");
        assert_eq!(line.matches('\n').count(), 1);
        assert!(line.ends_with("}\n"));
    }

    #[test]
    fn r110_unknown_keys_of_the_header_survive() {
        let text = concat!(
            r#"{"cofferdam_session":1,"id":"0123456789ab","created":"then","workspace":"/w","#,
            r#""colour":{"a":1}}"#
        );
        let header: JournalHeader = serde_json::from_str(text).expect("a header");
        assert_eq!(serde_json::to_string(&header).expect("valid JSON"), text);
    }
}
