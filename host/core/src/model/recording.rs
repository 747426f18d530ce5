//! The format of a recording: JSON Lines with one response of a model per line.
//!
//! The first line identifies the file and may name the model:
//! ```json
//! {"cofferdam_recording": 1, "model": "claude-sonnet-5-5", "context_window": 200000}
//! ```
//! Each further line is one response: its blocks in order, the stop reason, and the usage as far as
//! it is known. If `stop` is missing, the reason is `calls` for a response with calls, and `end`
//! for any other. Arguments are the text that the model wrote; in a recording written by hand they
//! may be JSON.
//! ```json
//! {"blocks": [{"text": "Let me look."}, {"call": {"id": "c1", "name": "list_dir"}}]}
//! {"blocks": [{"text": "Two files."}], "stop": "end", "usage": {"input": 120, "output": 9}}
//! ```
//! Thinking is a block such as `{"reasoning": {"text": {"text": "Easy."}}}`, and arguments are a
//! field of the call such as `"arguments": {"path": "."}`. A line may be a failure instead:
//! ```json
//! {"error": {"kind": "overflow", "message": "the conversation is too large", "partial_text": ""}}
//! ```
//! A recorder also writes a digest and counts of the request as `request`, which a replay ignores.
//! Blank lines are ignored. Unknown keys are errors, so that misspelt keys are noticed. The version
//! in the first line changes with the format.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::agent::ports::{ModelError, ModelErrorKind};
use crate::bounded_json;
use crate::conversation::{
    CallId, ModelReasoning, ModelResponse, ResponseBlock, StopReason, TokenUsage, ToolCall,
};

/// The version that this program writes, and the only one it reads.
pub(super) const VERSION: u32 = 1;

/// An error in the text of a recording.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RecordingError {
    /// The first line is not the header of a recording.
    #[error("not a recording: the first line must be {{\"cofferdam_recording\": {VERSION}}}")]
    NotARecording,
    /// The recording has a version that this program does not read.
    #[error(
        "unsupported recording version {0}; this version of cofferdam supports version \
        {VERSION}"
    )]
    Version(u32),
    /// A line is not a valid entry.
    #[error("line {line} of the recording: {problem}")]
    Line {
        /// The line number, counted from 1.
        line: usize,
        /// The description of the error.
        problem: String,
    },
}

/// The header in the first line.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct RecordingHeader {
    pub(super) cofferdam_recording: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) provider: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) model: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) context_window: Option<u64>,
}

/// An entry, which is any line after the header.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RecordingEntry {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    request: Option<Value>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    blocks: Vec<RecordedPart>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    stop: Option<StopReason>,
    #[serde(default, skip_serializing_if = "is_unknown")]
    usage: TokenUsage,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    error: Option<RecordedFailure>,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
enum RecordedPart {
    Text(String),
    Reasoning(ModelReasoning),
    Call(RecordedRequest),
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct RecordedRequest {
    #[serde(default)]
    id: String,
    name: String,
    #[serde(default)]
    arguments: Value,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct RecordedFailure {
    kind: FailureCategory,
    message: String,
    #[serde(default)]
    partial_text: String,
}

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum FailureCategory {
    Aborted,
    Overflow,
    Transport,
    Timeout,
    Rejected,
    Unavailable,
    Malformed,
}

/// The result of a request to a model.
pub(super) type PlayedResponse = Result<ModelResponse, ModelError>;

/// Parses a complete recording.
pub(super) fn parse(text: &str) -> Result<(RecordingHeader, Vec<PlayedResponse>), RecordingError> {
    let mut lines = text
        .trim_start_matches('\u{FEFF}')
        .lines()
        .enumerate()
        .filter(|(_, line)| !line.trim().is_empty());
    let header = lines
        .next()
        .and_then(|(_, line)| serde_json::from_str::<RecordingHeader>(line).ok())
        .ok_or(RecordingError::NotARecording)?;
    if header.cofferdam_recording != VERSION {
        return Err(RecordingError::Version(header.cofferdam_recording));
    }
    let played = lines
        .map(|(n, line)| {
            let problem = |problem: String| RecordingError::Line { line: n + 1, problem };
            // Parsed values take many times the memory of their text.
            bounded_json::check(line).map_err(|error| problem(format!("its contents {error}")))?;
            let entry: RecordingEntry =
                serde_json::from_str(line).map_err(|error| problem(error.to_string()))?;
            Ok(entry.into_response())
        })
        .collect::<Result<_, _>>()?;
    Ok((header, played))
}

impl RecordingEntry {
    /// Creates the entry for the result of a request.
    pub(super) fn new(request: Value, played: &PlayedResponse) -> Self {
        let request = Some(request);
        match played {
            Ok(response) => Self {
                request,
                blocks: response.blocks.iter().map(RecordedPart::from_block).collect(),
                stop: Some(response.stop.clone()),
                usage: response.usage,
                error: None,
            },
            Err(error) => {
                let ModelError { kind, message, partial_text } = error.clone();
                Self {
                    request,
                    error: Some(RecordedFailure {
                        kind: FailureCategory::from_kind(kind),
                        message,
                        partial_text,
                    }),
                    ..Self::default()
                }
            }
        }
    }

    fn into_response(self) -> PlayedResponse {
        if let Some(RecordedFailure { kind, message, partial_text }) = self.error {
            return Err(ModelError { kind: kind.into_kind(), message, partial_text });
        }
        let blocks: Vec<ResponseBlock> =
            self.blocks.into_iter().map(RecordedPart::into_block).collect();
        let has_calls = blocks.iter().any(|block| matches!(block, ResponseBlock::Call(_)));
        let stop = self.stop.unwrap_or(if has_calls { StopReason::Calls } else { StopReason::End });
        Ok(ModelResponse { blocks, stop, usage: self.usage })
    }
}

impl RecordedPart {
    fn from_block(block: &ResponseBlock) -> Self {
        match block {
            ResponseBlock::Text(text) => Self::Text(text.clone()),
            ResponseBlock::Reasoning(reasoning) => Self::Reasoning(reasoning.clone()),
            ResponseBlock::Call(ToolCall { id, name, arguments }) => Self::Call(RecordedRequest {
                id: id.as_str().into(),
                name: name.clone(),
                arguments: arguments.clone().into(),
            }),
        }
    }

    fn into_block(self) -> ResponseBlock {
        match self {
            Self::Text(text) => ResponseBlock::Text(text),
            Self::Reasoning(reasoning) => ResponseBlock::Reasoning(reasoning),
            Self::Call(RecordedRequest { id, name, arguments }) => {
                let arguments = match arguments {
                    Value::String(text) => text,
                    Value::Null => String::new(),
                    json => json.to_string(),
                };
                ResponseBlock::Call(ToolCall { id: CallId::new(id), name, arguments })
            }
        }
    }
}

impl FailureCategory {
    fn from_kind(kind: ModelErrorKind) -> Self {
        match kind {
            ModelErrorKind::Aborted => Self::Aborted,
            ModelErrorKind::Overflow => Self::Overflow,
            ModelErrorKind::Transport => Self::Transport,
            ModelErrorKind::Timeout => Self::Timeout,
            ModelErrorKind::Rejected => Self::Rejected,
            ModelErrorKind::Unavailable => Self::Unavailable,
            ModelErrorKind::Malformed => Self::Malformed,
        }
    }

    fn into_kind(self) -> ModelErrorKind {
        match self {
            Self::Aborted => ModelErrorKind::Aborted,
            Self::Overflow => ModelErrorKind::Overflow,
            Self::Transport => ModelErrorKind::Transport,
            Self::Timeout => ModelErrorKind::Timeout,
            Self::Rejected => ModelErrorKind::Rejected,
            Self::Unavailable => ModelErrorKind::Unavailable,
            Self::Malformed => ModelErrorKind::Malformed,
        }
    }
}

fn is_unknown(usage: &TokenUsage) -> bool {
    *usage == TokenUsage::default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_recording_written_by_hand_is_parsed() {
        let text = concat!(
            "\n",
            r#"{"cofferdam_recording": 1, "model": "m"}"#,
            "\n\n",
            r#"{"blocks": [{"text": "Hi."}, "#,
            r#"{"call": {"id": "c1", "name": "list_dir", "arguments": {"path": "."}}}]}"#,
            "\n",
            r#"{"blocks": [{"reasoning": {"text": {"text": "Easy."}}}, {"text": "Two files."}], "#,
            r#""usage": {"input": 120}}"#,
            "\n",
            r#"{"error": {"kind": "overflow", "message": "too large"}}"#,
            "\n",
        );
        let (header, played) = parse(text).expect("valid");
        assert_eq!(header.model.as_deref(), Some("m"));
        let first = played[0].as_ref().expect("a response");
        assert_eq!(first.stop, StopReason::Calls);
        let call = ToolCall {
            id: CallId::new("c1"),
            name: "list_dir".into(),
            arguments: r#"{"path":"."}"#.into(),
        };
        assert_eq!(first.blocks, [ResponseBlock::Text("Hi.".into()), ResponseBlock::Call(call)]);
        let second = played[1].as_ref().expect("a response");
        assert_eq!(
            (&second.stop, second.usage.input, second.usage.output),
            (&StopReason::End, Some(120), None)
        );
        assert_eq!(played[2], Err(ModelError::new(ModelErrorKind::Overflow, "too large")));
    }

    #[test]
    fn an_error_names_its_line() {
        let problem = |text: &str| parse(text).map(|_| ()).map_err(|error| error.to_string());
        assert!(problem("").is_err_and(|e| e.starts_with("not a recording")));
        assert!(problem("{\"blocks\": []}").is_err_and(|e| e.starts_with("not a recording")));
        assert!(problem("{\"cofferdam_recording\": 2}").is_err_and(|e| e.contains("version 2")));
        let misspelt = "{\"cofferdam_recording\": 1}\n\n{\"block\": []}";
        assert!(
            problem(misspelt)
                .is_err_and(|e| e.starts_with("line 3 of the recording: unknown field `block`"))
        );
        let list = format!("[{}]", vec!["{}"; 60_000].join(","));
        let large = format!("{{\"cofferdam_recording\": 1}}\n{{\"request\": {list}}}");
        assert!(problem(&large).is_err_and(|e| {
            e.starts_with("line 2 of the recording: its contents have about 120003 JSON values")
        }));
    }
}
