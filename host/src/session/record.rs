//! The format of a session: JSON Lines, written in the order in which things happen and never
//! changed.
//!
//! The first line says what the file is. Keys that this version does not know are kept and
//! exported:
//! ```json
//! {"cofferdam_session": 1, "id": "5f0c…", "created": "2026-01-31T12:00:00.123Z", "workspace": "/home/me/project"}
//! ```
//! Each further line is a record, an object with one key, its kind:
//! ```json
//! {"request": {"id": "0a1b2c3d", "prompt": "Fix the test.", "model": "claude-…", "provider": "anthropic", "at": "2026-01-31T12:00:00.124Z"}}
//! {"response": {"blocks": [{"text": "I look."}, {"call": {"id": "c1", "name": "grep", "arguments": "{…}"}}], "stop": "calls", "usage": {…}}}
//! {"started": {"call": 0}}
//! {"finished": {"call": 0, "result": {"status": "ok", "content": [{"text": "…"}]}}}
//! {"closed": {"rest": []}}
//! {"turn": {"blocks": [{"text": "Done."}], "stop": "end", "usage": {…}}}
//! {"spent": {"input": 5100, "output": 400, …}}
//! {"outcome": {"kind": "answered", "at": "2026-01-31T12:00:09.001Z"}}
//! {"compacted": {"text": "Goal: …", "until": {"exchange": 1, "turn": 0}, "turns": 2, "tokens": 5100, "usage": {…}, "at": "2026-01-31T12:01:00.000Z"}}
//! ```
//! A `request` tells whom it went to; with an `address`, that is not the provider's own. A
//! `response` asks for calls and opens a turn; `started` and `finished` name a call by its place in
//! it; a `finished` call may have left something to later ones, which is in the same line
//! (`"remembered"`), so that both are there or none. `closed` ends the turn, with the results of
//! calls that have none by then. A `turn` is one that was complete when it was written: an answer,
//! text that broke off, or calls that were not let run. `spent` is what a response took that is no
//! part of the conversation: of a sub-agent, an empty one, or a summary of no use; it stands
//! anywhere. `compacted` says that from then on a summary is sent in the place of everything before
//! a turn of an exchange, both counted from 0; it stands between turns, of a request or of none.
//! What it stands for stays in the file, and its words never become part of that.
//!
//! A line without its newline was torn by a crash, and is dropped. Any other line that cannot be
//! read, or cannot follow the one before it, makes the whole file unreadable: what is missing might
//! matter. A result whose call is not in the open turn is the exception: it goes to the call that a
//! crash left without one, if nothing else came between, and is dropped otherwise (R-51). The
//! version changes when a reader of this one would misunderstand; a kind that it does not know is a
//! misunderstanding, a key that it does not know is not.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{ModelIdentity, SessionId};
use crate::agent::RequestOutcome;
use crate::agent::events::ToolStateDelta;
use crate::conversation::{AssistantTurn, ModelResponse, RollingSummary, TokenUsage, ToolResult};

/// The version that this program writes, and the newest it reads.
pub(super) const FORMAT_VERSION: u32 = 1;

/// The first line.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct JournalHeader {
    cofferdam_session: u32,
    /// The session's name.
    pub id: SessionId,
    /// When it began.
    pub created: String,
    /// The absolute path of the workspace in which it began.
    pub workspace: String,
    /// What a later version may have added (R-110).
    #[serde(flatten)]
    unknown: Map<String, Value>,
}

impl JournalHeader {
    /// For a session that begins now.
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

/// As much of the first line as every version has.
#[derive(Debug, Deserialize)]
pub(super) struct AnyHeader {
    pub(super) cofferdam_session: u32,
}

/// Any further line.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum JournalRecord {
    /// The user said something.
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
    /// The model asks for calls.
    Response(ModelResponse),
    /// A call is about to run.
    Started { call: usize },
    /// A call has its result, and has left something to later ones.
    Finished {
        call: usize,
        result: ToolResult,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        remembered: Option<ToolStateDelta>,
    },
    /// The open turn is complete, with what its other calls came to.
    Closed { rest: Vec<(usize, ToolResult)> },
    /// A whole turn.
    Turn(AssistantTurn),
    /// Something was paid for that is no part of the conversation.
    Spent(TokenUsage),
    /// The request is over.
    Outcome {
        kind: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        message: Option<String>,
        at: String,
    },
    /// A summary stands for the oldest part.
    Compacted {
        #[serde(flatten)]
        summary: RollingSummary,
        #[serde(default)]
        usage: TokenUsage,
        at: String,
    },
}

impl JournalRecord {
    pub(super) fn from_request(id: &str, prompt: &str, held_with: &ModelIdentity) -> Self {
        let ModelIdentity { provider, model, address } = held_with.clone();
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

    /// The open turn, with the results of the calls that have none on record.
    pub(super) fn from_closed_turn(on_record: &[bool], turn: &AssistantTurn) -> Self {
        let missing =
            turn.calls().zip(on_record).enumerate().filter(|(_, (_, on_record))| !**on_record);
        Self::Closed {
            rest: missing.map(|(place, (answered, _))| (place, answered.result.clone())).collect(),
        }
    }

    /// The text of an answer is in its turn already.
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

    /// The line with its newline, with every text passed through `redact` (R-114): before it
    /// becomes JSON, since there a secret may look different, and texts only, since a key of the
    /// format is no secret.
    pub(super) fn to_line(&self, redact: &dyn Fn(&str) -> String) -> serde_json::Result<String> {
        let mut value = serde_json::to_value(self)?;
        for_each_text(&mut value, redact);
        Ok(format!("{value}\n"))
    }
}

fn for_each_text(value: &mut Value, change: &dyn Fn(&str) -> String) {
    match value {
        Value::String(text) => *text = change(text),
        Value::Array(values) => values.iter_mut().for_each(|value| for_each_text(value, change)),
        Value::Object(fields) => fields.values_mut().for_each(|value| for_each_text(value, change)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// Now, to the millisecond, in UTC.
fn timestamp_now() -> String {
    let now = jiff::Timestamp::now();
    jiff::Timestamp::from_millisecond(now.as_millisecond()).unwrap_or(now).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conversation::{CallId, ResponseBlock, ToolCall};

    #[test]
    fn r114_secrets_are_taken_out_of_texts_and_never_out_of_the_format() {
        let call = ToolCall {
            id: CallId::new("c1"),
            name: "bash".into(),
            arguments: r#"{"command":"echo a\"b"}"#.into(),
        };
        let blocks = vec![ResponseBlock::Text("the a\"b of it".into()), ResponseBlock::Call(call)];
        let record = JournalRecord::Response(ModelResponse { blocks, ..ModelResponse::default() });
        for (secret, gone) in [("a\"b", true), ("response", false), ("blocks", false)] {
            let line =
                record.to_line(&|text| text.replace(secret, "[key redacted]")).expect("it is data");
            assert_eq!(line.contains("the [key redacted] of it"), gone, "{line}");
            assert!(
                matches!(serde_json::from_str(&line), Ok(JournalRecord::Response(_))),
                "{line}"
            );
        }
    }

    #[test]
    fn a_record_is_one_line_whatever_is_in_it() {
        let held_with = ModelIdentity { provider: "p\n".into(), model: "m".into(), address: None };
        let line =
            JournalRecord::from_request("0a1b2c3d", "one\ntwo\r\n\u{2028}three\u{0}", &held_with)
                .to_line(&str::to_owned)
                .expect("it is data");
        assert_eq!(line.matches('\n').count(), 1);
        assert!(line.ends_with("}\n"));
    }

    #[test]
    fn r110_unknown_keys_of_the_header_survive() {
        let text = r#"{"cofferdam_session":1,"id":"0123456789ab","created":"then","workspace":"/w","colour":{"a":1}}"#;
        let header: JournalHeader = serde_json::from_str(text).expect("a header");
        assert_eq!(serde_json::to_string(&header).expect("it is data"), text);
    }
}
