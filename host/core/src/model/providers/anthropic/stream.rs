//! Decodes a response in the format of Anthropic's message stream.
//!
//! `message_stop` is the terminal event. Without it the response is incomplete. Before it,
//! every call must have had its `content_block_stop`, unless the output limit cut the call off.

use std::collections::BTreeMap;

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
pub(in crate::model) struct AnthropicStream {
    endpoint: ServerEndpoint,
    blocks: BTreeMap<u64, AnthropicBlocks>,
    stop_reason: Option<String>,
    usage: SplitUsage,
    is_finished: bool,
}

struct AnthropicBlocks {
    block: PartialBlock,
    is_closed: bool,
}

enum PartialBlock {
    Text(String),
    Thinking {
        text: String,
        signature: String,
    },
    Redacted(String),
    Call {
        id: String,
        name: String,
        arguments: String,
        input: Value,
    },
    /// A block of a type that this version does not know.
    Other,
}

/// Token counts as Anthropic reports them.
#[derive(Default)]
struct SplitUsage {
    uncached: Option<u64>,
    cache_read: Option<u64>,
    cache_write: Option<u64>,
    output: Option<u64>,
}

impl AnthropicStream {
    pub(in crate::model) fn new(endpoint: &ServerEndpoint) -> Self {
        Self {
            endpoint: endpoint.clone(),
            blocks: BTreeMap::new(),
            stop_reason: None,
            usage: SplitUsage::default(),
            is_finished: false,
        }
    }

    fn start_block(
        &mut self,
        data: &Value,
        sink: &mut DeltaSink<'_>,
    ) -> Result<(), AttemptFailure> {
        let block = &data["content_block"];
        let word = |key: &str| block[key].as_str().unwrap_or_default().to_owned();
        let part = match block["type"].as_str().unwrap_or_default() {
            "text" => {
                let mut text = String::new();
                append_text(&mut text, &word("text"), sink);
                PartialBlock::Text(text)
            }
            "thinking" => {
                let text = word("thinking");
                sink.send(ResponseDelta::Reasoning(&text));
                PartialBlock::Thinking { text, signature: word("signature") }
            }
            "redacted_thinking" => PartialBlock::Redacted(word("data")),
            "tool_use" => {
                let name = word("name").trim().to_owned();
                sink.send(ResponseDelta::ToolCallStart(&name));
                PartialBlock::Call {
                    id: word("id"),
                    name,
                    arguments: String::new(),
                    input: block["input"].clone(),
                }
            }
            _ => PartialBlock::Other,
        };
        let index = data["index"]
            .as_u64()
            .ok_or_else(|| self.endpoint.malformed("a content block has no index"))?;
        match self.blocks.insert(index, AnthropicBlocks { block: part, is_closed: false }) {
            None => Ok(()),
            Some(_) => Err(self.endpoint.malformed("two content blocks have the same index")),
        }
    }

    fn append_delta(
        &mut self,
        data: &Value,
        sink: &mut DeltaSink<'_>,
    ) -> Result<(), AttemptFailure> {
        let index = data["index"].as_u64();
        let Some(entry) = index.and_then(|index| self.blocks.get_mut(&index)) else {
            return Err(self.endpoint.malformed("a delta belongs to no content block"));
        };
        let delta = &data["delta"];
        let piece = |key: &str| delta[key].as_str().unwrap_or_default();
        let new = ["text", "thinking", "signature", "partial_json"].map(|key| piece(key).len());
        sink.count_bytes(new.iter().sum(), &self.endpoint)?;
        match (&mut entry.block, delta["type"].as_str().unwrap_or_default()) {
            (PartialBlock::Text(text), "text_delta") => append_text(text, piece("text"), sink),
            (PartialBlock::Thinking { text, .. }, "thinking_delta") => {
                text.push_str(piece("thinking"));
                sink.send(ResponseDelta::Reasoning(piece("thinking")));
            }
            (PartialBlock::Thinking { signature, .. }, "signature_delta") => {
                signature.push_str(piece("signature"))
            }
            (PartialBlock::Call { arguments, .. }, "input_json_delta") => {
                arguments.push_str(piece("partial_json"))
            }
            // Citations and unknown kinds of deltas.
            _ => {}
        }
        Ok(())
    }

    fn record_usage(&mut self, usage: &Value) {
        let take = |part: &mut Option<u64>, key: &str| *part = usage[key].as_u64().or(*part);
        take(&mut self.usage.uncached, "input_tokens");
        take(&mut self.usage.cache_read, "cache_read_input_tokens");
        take(&mut self.usage.cache_write, "cache_creation_input_tokens");
        take(&mut self.usage.output, "output_tokens");
    }

    fn has_calls(&self) -> bool {
        self.blocks.values().any(|entry| matches!(entry.block, PartialBlock::Call { .. }))
    }

    fn stop_reason(&self) -> StopReason {
        match self.stop_reason.as_deref().unwrap_or_default() {
            "max_tokens" | "model_context_window_exceeded" => StopReason::Length,
            "refusal" => StopReason::Refused,
            // Some servers give no reason but do end the response.
            "end_turn" | "stop_sequence" | "tool_use" | "" if self.has_calls() => StopReason::Calls,
            "end_turn" | "stop_sequence" | "tool_use" => StopReason::End,
            other => StopReason::Other(truncate_reason(other)),
        }
    }
}

/// Appends a piece to a text block.
fn append_text(text: &mut String, piece: &str, sink: &mut DeltaSink<'_>) {
    if text.is_empty() {
        text.push_str(sink.separate(piece));
    }
    text.push_str(piece);
    sink.send(ResponseDelta::Text(piece));
}

impl SplitUsage {
    /// Returns the total input as one number, which is unknown if the uncached part is unknown.
    fn total(&self) -> TokenUsage {
        let input = self.uncached.map(|uncached| {
            uncached
                .saturating_add(self.cache_read.unwrap_or(0))
                .saturating_add(self.cache_write.unwrap_or(0))
        });
        TokenUsage {
            input,
            output: self.output,
            cached_input: self.cache_read,
            cache_write: self.cache_write,
        }
    }
}

impl PartialBlock {
    fn into_block(self) -> Option<ResponseBlock> {
        match self {
            Self::Text(text) => (!text.is_empty()).then_some(ResponseBlock::Text(text)),
            Self::Thinking { text, signature } => {
                let signature = (!signature.is_empty()).then_some(signature);
                let has_content = !text.is_empty() || signature.is_some();
                has_content
                    .then_some(ResponseBlock::Reasoning(ModelReasoning::Text { text, signature }))
            }
            Self::Redacted(data) => Some(ResponseBlock::Reasoning(ModelReasoning::Opaque { data })),
            Self::Call { id, name, arguments, input } => {
                // Servers that do not stream arguments send them at the start of the block.
                let at_once = arguments.is_empty()
                    && input.as_object().is_some_and(|input| !input.is_empty());
                let arguments = if at_once { input.to_string() } else { arguments };
                Some(ResponseBlock::Call(ToolCall { id: CallId::new(id), name, arguments }))
            }
            Self::Other => None,
        }
    }
}

impl StreamDecoder for AnthropicStream {
    fn decode(
        &mut self,
        event: &SseEvent,
        sink: &mut DeltaSink<'_>,
    ) -> Result<DecodeProgress, AttemptFailure> {
        let data = parse_event(event, &self.endpoint)?;
        match data["type"].as_str().unwrap_or(&event.name) {
            "message_start" => self.record_usage(&data["message"]["usage"]),
            "content_block_start" => {
                sink.count_bytes(PART_OVERHEAD + event.data.len(), &self.endpoint)?;
                self.start_block(&data, sink)?;
            }
            "content_block_delta" => self.append_delta(&data, sink)?,
            "content_block_stop" => {
                if let Some(entry) =
                    data["index"].as_u64().and_then(|index| self.blocks.get_mut(&index))
                {
                    entry.is_closed = true;
                }
            }
            "message_delta" => {
                if let Some(reason) = data["delta"]["stop_reason"].as_str() {
                    self.stop_reason = Some(reason.to_owned());
                }
                self.record_usage(&data["usage"]);
            }
            "message_stop" => {
                self.is_finished = true;
                return Ok(DecodeProgress::Done);
            }
            "error" => return Err(self.endpoint.stream_error(&data["error"])),
            // Pings and unknown events.
            _ => {}
        }
        Ok(DecodeProgress::More)
    }

    fn is_complete(&self) -> bool {
        self.is_finished
    }

    fn finish_reason(self) -> Result<ModelResponse, AttemptFailure> {
        if !self.is_finished {
            return Err(self
                .endpoint
                .corrupted("the stream ended before the response was complete"));
        }
        let stop = self.stop_reason();
        // The output limit or a refusal can cut off a call. That call stays open and does not run
        //
        let open_call = |entry: &AnthropicBlocks| {
            matches!(entry.block, PartialBlock::Call { .. }) && !entry.is_closed
        };
        let is_cut_off = matches!(stop, StopReason::Length | StopReason::Refused);
        if !is_cut_off && self.blocks.values().any(open_call) {
            return Err(self.endpoint.malformed("the response ended inside a tool call"));
        }
        let usage = self.usage.total();
        let blocks =
            self.blocks.into_values().filter_map(|entry| entry.block.into_block()).collect();
        Ok(ModelResponse { blocks, stop, usage })
    }
}
