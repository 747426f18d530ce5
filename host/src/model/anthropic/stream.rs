//! A response in the form of Anthropic's message stream.
//!
//! `message_stop` is the terminal event: without it there is no response, and with it every call must have had
//! its `content_block_stop`, unless the limit on output cut it off.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::agent::ports::Delta;
use crate::conversation::{Call, CallId, Reasoning, Response, ResponseBlock, StopReason, Usage};
use crate::model::event_data::read_event;
use crate::model::failure::{Failure, Place};
use crate::model::sse::Event;
use crate::model::wire::{Hand, PART, Progress, Wire, reason};

/// A response on its way.
pub(in crate::model) struct Stream {
    place: Place,
    blocks: BTreeMap<u64, Begun>,
    stop: Option<String>,
    usage: Parts,
    is_over: bool,
}

struct Begun {
    block: Part,
    is_closed: bool,
}

enum Part {
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
    /// Something this version does not know.
    Other,
}

/// Usage as the provider splits it.
#[derive(Default)]
struct Parts {
    uncached: Option<u64>,
    cache_read: Option<u64>,
    cache_write: Option<u64>,
    output: Option<u64>,
}

impl Stream {
    pub(in crate::model) fn new(place: &Place) -> Self {
        Self { place: place.clone(), blocks: BTreeMap::new(), stop: None, usage: Parts::default(), is_over: false }
    }

    fn begin(&mut self, data: &Value, hand: &mut Hand<'_>) -> Result<(), Failure> {
        let block = &data["content_block"];
        let word = |key: &str| block[key].as_str().unwrap_or_default().to_owned();
        let part = match block["type"].as_str().unwrap_or_default() {
            "text" => {
                let mut text = String::new();
                say(&mut text, &word("text"), hand);
                Part::Text(text)
            }
            "thinking" => {
                let text = word("thinking");
                hand.over(Delta::Reasoning(&text));
                Part::Thinking { text, signature: word("signature") }
            }
            "redacted_thinking" => Part::Redacted(word("data")),
            "tool_use" => {
                let name = word("name").trim().to_owned();
                hand.over(Delta::CallBegun(&name));
                Part::Call { id: word("id"), name, arguments: String::new(), input: block["input"].clone() }
            }
            _ => Part::Other,
        };
        let index = data["index"].as_u64().ok_or_else(|| self.place.malformed("a content block has no index"))?;
        match self.blocks.insert(index, Begun { block: part, is_closed: false }) {
            None => Ok(()),
            Some(_) => Err(self.place.malformed("two content blocks have the same index")),
        }
    }

    fn add(&mut self, data: &Value, hand: &mut Hand<'_>) -> Result<(), Failure> {
        let index = data["index"].as_u64();
        let Some(begun) = index.and_then(|index| self.blocks.get_mut(&index)) else {
            return Err(self.place.malformed("a piece belongs to no content block"));
        };
        let delta = &data["delta"];
        let piece = |key: &str| delta[key].as_str().unwrap_or_default();
        let new = ["text", "thinking", "signature", "partial_json"].map(|key| piece(key).len());
        hand.keep(new.iter().sum(), &self.place)?;
        match (&mut begun.block, delta["type"].as_str().unwrap_or_default()) {
            (Part::Text(text), "text_delta") => say(text, piece("text"), hand),
            (Part::Thinking { text, .. }, "thinking_delta") => {
                text.push_str(piece("thinking"));
                hand.over(Delta::Reasoning(piece("thinking")));
            }
            (Part::Thinking { signature, .. }, "signature_delta") => signature.push_str(piece("signature")),
            (Part::Call { arguments, .. }, "input_json_delta") => arguments.push_str(piece("partial_json")),
            // Citations and whatever else is new.
            _ => {}
        }
        Ok(())
    }

    fn count(&mut self, usage: &Value) {
        let take = |part: &mut Option<u64>, key: &str| *part = usage[key].as_u64().or(*part);
        take(&mut self.usage.uncached, "input_tokens");
        take(&mut self.usage.cache_read, "cache_read_input_tokens");
        take(&mut self.usage.cache_write, "cache_creation_input_tokens");
        take(&mut self.usage.output, "output_tokens");
    }

    fn has_calls(&self) -> bool {
        self.blocks.values().any(|begun| matches!(begun.block, Part::Call { .. }))
    }

    fn stop(&self) -> StopReason {
        match self.stop.as_deref().unwrap_or_default() {
            "max_tokens" | "model_context_window_exceeded" => StopReason::Length,
            "refusal" => StopReason::Refused,
            // A server that gives no reason has at least said that it is done.
            "end_turn" | "stop_sequence" | "tool_use" | "" if self.has_calls() => StopReason::Calls,
            "end_turn" | "stop_sequence" | "tool_use" => StopReason::End,
            other => StopReason::Other(reason(other)),
        }
    }
}

/// More of a block of text.
fn say(text: &mut String, piece: &str, hand: &mut Hand<'_>) {
    if text.is_empty() {
        text.push_str(hand.set_apart(piece));
    }
    text.push_str(piece);
    hand.over(Delta::Text(piece));
}

impl Parts {
    /// All input as one number, which is unknown if its largest part is.
    fn sum(&self) -> Usage {
        let input = self
            .uncached
            .map(|uncached| uncached.saturating_add(self.cache_read.unwrap_or(0)).saturating_add(self.cache_write.unwrap_or(0)));
        Usage { input, output: self.output, cached_input: self.cache_read, cache_write: self.cache_write }
    }
}

impl Part {
    fn into_block(self) -> Option<ResponseBlock> {
        match self {
            Self::Text(text) => (!text.is_empty()).then_some(ResponseBlock::Text(text)),
            Self::Thinking { text, signature } => {
                let signature = (!signature.is_empty()).then_some(signature);
                let has_content = !text.is_empty() || signature.is_some();
                has_content.then_some(ResponseBlock::Reasoning(Reasoning::Text { text, signature }))
            }
            Self::Redacted(data) => Some(ResponseBlock::Reasoning(Reasoning::Opaque { data })),
            Self::Call { id, name, arguments, input } => {
                // Servers that do not stream arguments send them at once, in the block's beginning.
                let at_once = arguments.is_empty() && input.as_object().is_some_and(|input| !input.is_empty());
                let arguments = if at_once { input.to_string() } else { arguments };
                Some(ResponseBlock::Call(Call { id: CallId::new(id), name, arguments }))
            }
            Self::Other => None,
        }
    }
}

impl Wire for Stream {
    fn event(&mut self, event: &Event, hand: &mut Hand<'_>) -> Result<Progress, Failure> {
        let data = read_event(event, &self.place)?;
        match data["type"].as_str().unwrap_or(&event.name) {
            "message_start" => self.count(&data["message"]["usage"]),
            "content_block_start" => {
                hand.keep(PART + event.data.len(), &self.place)?;
                self.begin(&data, hand)?;
            }
            "content_block_delta" => self.add(&data, hand)?,
            "content_block_stop" => {
                if let Some(begun) = data["index"].as_u64().and_then(|index| self.blocks.get_mut(&index)) {
                    begun.is_closed = true;
                }
            }
            "message_delta" => {
                if let Some(reason) = data["delta"]["stop_reason"].as_str() {
                    self.stop = Some(reason.to_owned());
                }
                self.count(&data["usage"]);
            }
            "message_stop" => {
                self.is_over = true;
                return Ok(Progress::Over);
            }
            "error" => return Err(self.place.broke_off(&data["error"])),
            // Pings, and whatever is new.
            _ => {}
        }
        Ok(Progress::More)
    }

    fn is_whole(&self) -> bool {
        self.is_over
    }

    fn finish(self) -> Result<Response, Failure> {
        if !self.is_over {
            return Err(self.place.damaged("the stream ended before the response did"));
        }
        let stop = self.stop();
        // The limit on output, or the provider's, may fall into a call. That one stays open, and is not run.
        let open_call = |begun: &Begun| matches!(begun.block, Part::Call { .. }) && !begun.is_closed;
        let is_cut_off = matches!(stop, StopReason::Length | StopReason::Refused);
        if !is_cut_off && self.blocks.values().any(open_call) {
            return Err(self.place.malformed("the response ended within a call"));
        }
        let usage = self.usage.sum();
        let blocks = self.blocks.into_values().filter_map(|begun| begun.block.into_block()).collect();
        Ok(Response { blocks, stop, usage })
    }
}
