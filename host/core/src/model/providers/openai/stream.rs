//! Decodes a response in the format of OpenAI's chat completions, as real servers send it.
//!
//! The terminal event is the chunk with `finish_reason`. `[DONE]` only closes the stream and
//! does not complete a response. A stream that breaks off after `finish_reason` loses only its
//! usage.

use std::collections::HashMap;

use serde::Deserialize;
use serde_json::Value;

use crate::agent::ports::ResponseDelta;
use crate::conversation::{
    CallId, ModelReasoning, ModelResponse, ResponseBlock, StopReason, TokenUsage, ToolCall,
};
use crate::model::providers::event_data::parse_event;
use crate::model::providers::failure::{AttemptFailure, ServerEndpoint};
use crate::model::providers::sse::SseEvent;
use crate::model::providers::wire::{
    DecodeProgress, DeltaSink, PART_OVERHEAD, StreamDecoder, truncate_reason,
};

/// A response that is being received.
pub(in crate::model) struct ChatCompletionStream {
    endpoint: ServerEndpoint,
    text: String,
    reasoning: String,
    is_refused: bool,
    calls: Vec<PartialCall>,
    /// The position in `calls` for each index. An index is only a name and may be huge.
    by_index: HashMap<u64, usize>,
    finish: Option<String>,
    usage: TokenUsage,
}

#[derive(Default)]
struct PartialCall {
    index: Option<u64>,
    id: String,
    name: String,
    arguments: String,
    balance: JsonBalance,
}

/// An incremental check whether the arguments of a call may be complete.
///
/// Parsing all arguments again for each piece could take hours for a hostile stream.
#[derive(Default)]
struct JsonBalance {
    depth: usize,
    in_string: bool,
    is_escaped: bool,
    is_started: bool,
}

impl JsonBalance {
    fn push(&mut self, piece: &str) {
        for byte in piece.bytes() {
            match byte {
                _ if self.is_escaped => self.is_escaped = false,
                b'\\' => self.is_escaped = self.in_string,
                b'"' => self.in_string = !self.in_string,
                b'{' | b'[' if !self.in_string => self.depth += 1,
                b'}' | b']' if !self.in_string => self.depth = self.depth.saturating_sub(1),
                _ => {}
            }
            self.is_started |= !byte.is_ascii_whitespace();
        }
    }

    fn is_balanced(&self) -> bool {
        self.is_started && self.depth == 0 && !self.in_string
    }
}

#[derive(Deserialize)]
struct ChatCompletionChunk {
    #[serde(default)]
    choices: Option<Vec<ChunkChoice>>,
    #[serde(default)]
    usage: Option<Value>,
    #[serde(default)]
    error: Option<Value>,
}

#[derive(Deserialize)]
struct ChunkChoice {
    #[serde(default)]
    delta: Option<ChatDeltaBody>,
    #[serde(default)]
    finish_reason: Option<String>,
}

#[derive(Deserialize)]
struct ChatDeltaBody {
    #[serde(default)]
    content: Option<Value>,
    #[serde(default)]
    reasoning_content: Option<Value>,
    #[serde(default)]
    reasoning: Option<Value>,
    #[serde(default)]
    refusal: Option<String>,
    #[serde(default)]
    tool_calls: Option<Vec<ToolCallDelta>>,
}

#[derive(Deserialize)]
struct ToolCallDelta {
    #[serde(default)]
    index: Option<Value>,
    #[serde(default)]
    id: Option<String>,
    #[serde(default)]
    function: Option<FunctionDelta>,
}

#[derive(Default, Deserialize)]
struct FunctionDelta {
    #[serde(default)]
    name: Option<String>,
    #[serde(default)]
    arguments: Option<Value>,
}

impl ChatCompletionStream {
    pub(in crate::model) fn new(endpoint: &ServerEndpoint) -> Self {
        Self {
            endpoint: endpoint.clone(),
            text: String::new(),
            reasoning: String::new(),
            is_refused: false,
            calls: Vec::new(),
            by_index: HashMap::new(),
            finish: None,
            usage: TokenUsage::default(),
        }
    }

    fn apply_delta(
        &mut self,
        delta: ChatDeltaBody,
        sink: &mut DeltaSink<'_>,
    ) -> Result<(), AttemptFailure> {
        // Some servers send the same thinking under both names.
        let reasoning = [delta.reasoning_content, delta.reasoning]
            .into_iter()
            .flatten()
            .map(|value| plain_text(&value))
            .find(|text| !text.is_empty());
        if let Some(reasoning) = reasoning {
            sink.count_bytes(reasoning.len(), &self.endpoint)?;
            self.reasoning.push_str(&reasoning);
            sink.send(ResponseDelta::Reasoning(&reasoning));
        }
        if let Some(content) = delta.content {
            self.append_text(&plain_text(&content), sink)?;
        }
        if let Some(refusal) = delta.refusal.filter(|refusal| !refusal.is_empty()) {
            self.is_refused = true;
            self.append_text(&refusal, sink)?;
        }
        for call in delta.tool_calls.into_iter().flatten() {
            self.apply_call_delta(call, sink)?;
        }
        Ok(())
    }

    fn append_text(&mut self, text: &str, sink: &mut DeltaSink<'_>) -> Result<(), AttemptFailure> {
        sink.count_bytes(text.len(), &self.endpoint)?;
        self.text.push_str(text);
        sink.send(ResponseDelta::Text(text));
        Ok(())
    }

    fn apply_call_delta(
        &mut self,
        delta: ToolCallDelta,
        sink: &mut DeltaSink<'_>,
    ) -> Result<(), AttemptFailure> {
        let index = delta.index.as_ref().and_then(Value::as_u64);
        let id = delta.id.unwrap_or_default();
        let function = delta.function.unwrap_or_default();
        let name = function.name.unwrap_or_default();
        let position = match self.find_continued(index, &id, &name) {
            Some(position) => position,
            None => {
                sink.count_bytes(PART_OVERHEAD, &self.endpoint)?;
                self.calls.push(PartialCall { index, ..PartialCall::default() });
                self.calls.len() - 1
            }
        };
        if let Some(index) = index {
            self.by_index.insert(index, position);
        }
        let fragment = match function.arguments {
            Some(Value::String(fragment)) => fragment,
            Some(Value::Null) | None => String::new(),
            // The format requires text, but some servers send JSON.
            Some(whole) => whole.to_string(),
        };
        sink.count_bytes(id.len() + name.len() + fragment.len(), &self.endpoint)?;
        let call = &mut self.calls[position];
        if call.id.is_empty() {
            call.id = id;
        }
        // The first name counts. Servers that repeat it mean the same call.
        if call.name.is_empty() && !name.trim().is_empty() {
            name.trim().clone_into(&mut call.name);
            sink.send(ResponseDelta::ToolCallStart(&call.name));
        }
        call.balance.push(&fragment);
        call.arguments.push_str(&fragment);
        Ok(())
    }

    /// Returns the call that this fragment continues, or `None` if it starts a new call.
    ///
    /// Normally the index identifies the call. But some servers send several whole calls under one
    /// index, each with its own id, or without any index.
    fn find_continued(&self, index: Option<u64>, id: &str, name: &str) -> Option<usize> {
        let position = match index {
            Some(index) => *self.by_index.get(&index)?,
            None => self.calls.len().checked_sub(1)?,
        };
        let call = &self.calls[position];
        let other_id = !id.is_empty() && !call.id.is_empty() && id != call.id;
        let next_whole = index.is_none() && !name.is_empty() && call.balance.is_balanced();
        (!other_id && !next_whole).then_some(position)
    }

    fn stop_reason(&self) -> StopReason {
        match self.finish.as_deref().unwrap_or_default() {
            "length" => StopReason::Length,
            "content_filter" => StopReason::Refused,
            "stop" | "tool_calls" | "function_call" | "eos" => {
                match (self.is_refused, self.calls.is_empty()) {
                    (true, _) => StopReason::Refused,
                    (false, false) => StopReason::Calls,
                    (false, true) => StopReason::End,
                }
            }
            other => StopReason::Other(truncate_reason(other)),
        }
    }
}

impl StreamDecoder for ChatCompletionStream {
    fn decode(
        &mut self,
        event: &SseEvent,
        sink: &mut DeltaSink<'_>,
    ) -> Result<DecodeProgress, AttemptFailure> {
        if event.data.trim() == "[DONE]" {
            return Ok(DecodeProgress::Done);
        }
        // Invalid JSON was truncated or damaged in transit. Valid JSON of another form is
        // permanent.
        let chunk = ChatCompletionChunk::deserialize(parse_event(event, &self.endpoint)?).map_err(
            |error| {
                self.endpoint.malformed(&format!(
                    "an event is not a response chunk ({error}): {}",
                    self.endpoint.quote(&event.data)
                ))
            },
        )?;
        if let Some(error) = chunk.error.filter(|error| !error.is_null()) {
            return Err(self.endpoint.stream_error(&error));
        }
        if let Some(usage) = chunk.usage {
            self.usage = parse_usage(&usage, self.usage);
        }
        if let Some(choice) = chunk.choices.unwrap_or_default().into_iter().next() {
            if let Some(delta) = choice.delta {
                self.apply_delta(delta, sink)?;
            }
            if let Some(reason) = choice.finish_reason.filter(|reason| !reason.is_empty()) {
                if reason == "error" {
                    return Err(self.endpoint.stream_error(&Value::from("no reason given")));
                }
                self.finish = Some(reason);
            }
        }
        Ok(DecodeProgress::More)
    }

    fn is_complete(&self) -> bool {
        self.finish.is_some()
    }

    fn finish_reason(mut self) -> Result<ModelResponse, AttemptFailure> {
        if !self.is_complete() {
            return Err(self
                .endpoint
                .corrupted("the stream ended before the response was complete"));
        }
        let stop = self.stop_reason();
        let mut blocks = Vec::new();
        if !self.reasoning.is_empty() {
            blocks.push(ResponseBlock::Reasoning(ModelReasoning::Text {
                text: self.reasoning,
                signature: None,
            }));
        }
        if !self.text.is_empty() {
            blocks.push(ResponseBlock::Text(self.text));
        }
        // Sort by the model's index. Calls with the same index, or without one, keep their order.
        self.calls.sort_by_key(|call| call.index.unwrap_or(u64::MAX));
        blocks.extend(self.calls.into_iter().map(|call| {
            ResponseBlock::Call(ToolCall {
                id: CallId::new(call.id),
                name: call.name,
                arguments: call.arguments,
            })
        }));
        Ok(ModelResponse { blocks, stop, usage: self.usage })
    }
}

/// Returns text that is a string or a list of parts.
fn plain_text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(parts) => {
            parts.iter().filter_map(|part| part.get("text")).filter_map(Value::as_str).collect()
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => String::new(),
    }
}

fn parse_usage(usage: &Value, before: TokenUsage) -> TokenUsage {
    let number = |pointer: &str| usage.pointer(pointer).and_then(Value::as_u64);
    TokenUsage {
        input: number("/prompt_tokens").or(before.input),
        output: number("/completion_tokens").or(before.output),
        cached_input: number("/prompt_tokens_details/cached_tokens").or(before.cached_input),
        cache_write: number("/prompt_tokens_details/cache_write_tokens").or(before.cache_write),
    }
}
