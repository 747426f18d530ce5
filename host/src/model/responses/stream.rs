//! A response in the form of OpenAI's Responses stream.
//!
//! `response.completed` and `response.incomplete` are the terminal events: without one there
//! is no response, and with the first every item must have had its `response.output_item.done`.
//! Deltas are for whoever watches; what an item is in the end is what its last event says, for
//! thinking in particular, which is whole only there.
//!
//! Servers number the items, or name them, or neither, and their numbers need not be places in the
//! response as a whole. An item is therefore looked for by its number, then by its name; a call
//! that was taken for another one would run twice.

use std::collections::BTreeMap;
use std::mem::discriminant;

use serde_json::Value;

use crate::agent::ports::ResponseDelta;
use crate::conversation::{
    CallId, ModelReasoning, ModelResponse, ResponseBlock, StopReason, TokenUsage, ToolCall,
};
use crate::model::event_data::parse_event;
use crate::model::failure::{AttemptFailure, ServerEndpoint};
use crate::model::sse::SseEvent;
use crate::model::wire::{
    DecodeProgress, DeltaSink, PART_OVERHEAD, StreamDecoder, truncate_reason,
};

/// A response on its way.
pub(in crate::model) struct ResponsesStream {
    endpoint: ServerEndpoint,
    /// By their number in the output, which is a name and nothing more: it may be huge.
    items: BTreeMap<u64, PartialItem>,
    /// The item that began last.
    newest: Option<u64>,
    end: Option<ResponseStreamEnd>,
    is_refused: bool,
    usage: TokenUsage,
}

/// How it ended.
enum ResponseStreamEnd {
    Completed,
    /// For this reason.
    Incomplete(String),
}

struct PartialItem {
    item: ResponseOutputItem,
    /// What the server calls it: its own id, and that of the call.
    ids: Vec<String>,
    is_closed: bool,
}

enum ResponseOutputItem {
    Text(String),
    Thinking {
        id: String,
        /// What came of a summary, part by part.
        summary: BTreeMap<u64, String>,
        data: String,
    },
    Call {
        id: String,
        name: String,
        arguments: String,
    },
    /// Something this version does not know.
    Other,
}

impl ResponsesStream {
    pub(in crate::model) fn new(place: &ServerEndpoint) -> Self {
        Self {
            endpoint: place.clone(),
            items: BTreeMap::new(),
            newest: None,
            end: None,
            is_refused: false,
            usage: TokenUsage::default(),
        }
    }

    fn start_item(&mut self, data: &Value, hand: &mut DeltaSink<'_>) -> Result<(), AttemptFailure> {
        let index = output_index(data).unwrap_or_else(|| self.next_index());
        if self.items.contains_key(&index) {
            return Err(self.endpoint.malformed("two items have the same index"));
        }
        let item = ResponseOutputItem::from_json(&data["item"]);
        hand.count_bytes(item.size(), &self.endpoint)?;
        self.insert_item(index, item, &data["item"], hand)
    }

    fn insert_item(
        &mut self,
        index: u64,
        item: ResponseOutputItem,
        told: &Value,
        hand: &mut DeltaSink<'_>,
    ) -> Result<(), AttemptFailure> {
        let names = item_ids(told);
        hand.count_bytes(
            PART_OVERHEAD + names.iter().map(String::len).sum::<usize>(),
            &self.endpoint,
        )?;
        if let ResponseOutputItem::Call { name, .. } = ResponseOutputItem::from_json(told) {
            hand.send(ResponseDelta::ToolCallStart(&name));
        }
        self.items.insert(index, PartialItem { item, ids: names, is_closed: false });
        self.newest = Some(index);
        Ok(())
    }

    fn next_index(&self) -> u64 {
        self.items.last_key_value().map_or(0, |(last, _)| last.saturating_add(1))
    }

    /// The item that a piece belongs to.
    fn item_mut(&mut self, data: &Value) -> Result<&mut ResponseOutputItem, AttemptFailure> {
        let named = || {
            let name = data["item_id"].as_str()?;
            self.items
                .iter()
                .rev()
                .find(|(_, begun)| begun.ids.iter().any(|own| own == name))
                .map(|(index, _)| *index)
        };
        let index = output_index(data).or_else(named).or(self.newest);
        let failure = self.endpoint.malformed("a piece belongs to no item");
        index
            .and_then(|index| self.items.get_mut(&index))
            .map(|begun| &mut begun.item)
            .ok_or(failure)
    }

    /// The item that is whole now; `None` if it has not begun.
    fn find_started(&self, data: &Value) -> Option<u64> {
        let numbered = output_index(data);
        if let Some(index) = numbered.filter(|index| self.items.contains_key(index)) {
            return Some(index);
        }
        let item = &data["item"];
        let newest = || {
            self.newest.filter(|index| {
                numbered.is_none() && item_ids(item).is_empty() && self.is_open(*index, item)
            })
        };
        self.find_open(item).or_else(newest)
    }

    /// The open item of the same kind and name as this one.
    fn find_open(&self, item: &Value) -> Option<u64> {
        let names = item_ids(item);
        let is_it = |begun: &PartialItem| begun.ids.iter().any(|name| names.contains(name));
        self.items
            .iter()
            .find(|(index, begun)| is_it(begun) && self.is_open(**index, item))
            .map(|(index, _)| *index)
    }

    fn is_open(&self, index: u64, item: &Value) -> bool {
        let kind = discriminant(&ResponseOutputItem::from_json(item));
        self.items
            .get(&index)
            .is_some_and(|begun| !begun.is_closed && discriminant(&begun.item) == kind)
    }

    fn append_text(
        &mut self,
        data: &Value,
        hand: &mut DeltaSink<'_>,
    ) -> Result<(), AttemptFailure> {
        let piece = string_field(data, "delta");
        hand.count_bytes(piece.len(), &self.endpoint)?;
        if let ResponseOutputItem::Text(text) = self.item_mut(data)? {
            if text.is_empty() {
                text.push_str(hand.separate(&piece));
            }
            text.push_str(&piece);
            hand.send(ResponseDelta::Text(&piece));
        }
        Ok(())
    }

    fn append_reasoning(
        &mut self,
        data: &Value,
        hand: &mut DeltaSink<'_>,
    ) -> Result<(), AttemptFailure> {
        let piece = string_field(data, "delta");
        hand.count_bytes(piece.len(), &self.endpoint)?;
        let part =
            data["summary_index"].as_u64().or(data["content_index"].as_u64()).unwrap_or_default();
        let place = self.endpoint.clone();
        if let ResponseOutputItem::Thinking { summary, .. } = self.item_mut(data)? {
            if !summary.contains_key(&part) {
                hand.count_bytes(PART_OVERHEAD, &place)?;
            }
            if !summary.contains_key(&part) && !summary.is_empty() {
                hand.send(ResponseDelta::Reasoning("\n\n"));
            }
            summary.entry(part).or_default().push_str(&piece);
            hand.send(ResponseDelta::Reasoning(&piece));
        }
        Ok(())
    }

    /// An item is whole. What came of it before is what was shown, and stays; what did not come in
    /// pieces comes now.
    fn finish_item(
        &mut self,
        index: u64,
        whole: &Value,
        hand: &mut DeltaSink<'_>,
    ) -> Result<(), AttemptFailure> {
        let last = ResponseOutputItem::from_json(whole);
        if !self.items.contains_key(&index) {
            self.insert_item(index, last.to_empty(), whole, hand)?;
        }
        let Some(begun) = self.items.get_mut(&index).filter(|begun| !begun.is_closed) else {
            return Ok(());
        };
        hand.count_bytes(last.size().saturating_sub(begun.item.size()), &self.endpoint)?;
        begun.is_closed = true;
        match (&mut begun.item, last) {
            (ResponseOutputItem::Text(text), ResponseOutputItem::Text(whole))
                if text.is_empty() =>
            {
                text.push_str(hand.separate(&whole));
                text.push_str(&whole);
                hand.send(ResponseDelta::Text(&whole));
            }
            (ResponseOutputItem::Thinking { .. }, last @ ResponseOutputItem::Thinking { .. }) => {
                begun.item = last
            }
            (
                ResponseOutputItem::Call { id, name, arguments },
                ResponseOutputItem::Call {
                    id: last_id,
                    name: last_name,
                    arguments: last_arguments,
                },
            ) => {
                for (before, last) in
                    [(id, last_id), (name, last_name), (arguments, last_arguments)]
                {
                    if !last.is_empty() {
                        *before = last;
                    }
                }
            }
            (
                ResponseOutputItem::Text(_)
                | ResponseOutputItem::Thinking { .. }
                | ResponseOutputItem::Call { .. }
                | ResponseOutputItem::Other,
                _,
            ) => {}
        }
        Ok(())
    }

    /// The response as a whole. Servers that did not send it in pieces have it here; of a kind of
    /// which there were pieces, it has nothing that is new.
    fn finish_response(
        &mut self,
        response: &Value,
        end: ResponseStreamEnd,
        hand: &mut DeltaSink<'_>,
    ) -> Result<(), AttemptFailure> {
        let came: Vec<_> = self.items.values().map(|begun| discriminant(&begun.item)).collect();
        for item in response["output"].as_array().into_iter().flatten() {
            match self.find_open(item) {
                Some(index) if matches!(end, ResponseStreamEnd::Completed) => {
                    self.finish_item(index, item, hand)?
                }
                Some(_) => {}
                None if came.contains(&discriminant(&ResponseOutputItem::from_json(item))) => {}
                None => self.finish_item(self.next_index(), item, hand)?,
            }
        }
        self.usage = parse_usage(&response["usage"]);
        self.end = Some(end);
        Ok(())
    }

    fn has_calls(&self) -> bool {
        self.items.values().any(|begun| matches!(begun.item, ResponseOutputItem::Call { .. }))
    }

    fn stop_reason(&self) -> StopReason {
        match &self.end {
            Some(ResponseStreamEnd::Incomplete(reason))
                if reason == "max_output_tokens" || reason == "max_tokens" =>
            {
                StopReason::Length
            }
            Some(ResponseStreamEnd::Incomplete(reason)) if reason == "content_filter" => {
                StopReason::Refused
            }
            // Whatever cut it off, its calls cannot be trusted to be whole.
            Some(ResponseStreamEnd::Incomplete(_)) if self.has_calls() => StopReason::Length,
            Some(ResponseStreamEnd::Incomplete(word)) => StopReason::Other(truncate_reason(word)),
            Some(ResponseStreamEnd::Completed) | None if self.has_calls() => StopReason::Calls,
            Some(ResponseStreamEnd::Completed) | None if self.is_refused => StopReason::Refused,
            Some(ResponseStreamEnd::Completed) | None => StopReason::End,
        }
    }
}

impl ResponseOutputItem {
    fn from_json(item: &Value) -> Self {
        let texts = |list: &Value, key: &str| -> Vec<String> {
            list.as_array()
                .into_iter()
                .flatten()
                .filter_map(|part| part[key].as_str())
                .map(str::to_owned)
                .collect()
        };
        match item["type"].as_str().unwrap_or_default() {
            "message" => {
                let parts = item["content"].as_array().map(Vec::as_slice).unwrap_or_default();
                Self::Text(
                    parts
                        .iter()
                        .filter_map(|part| part["text"].as_str().or(part["refusal"].as_str()))
                        .collect(),
                )
            }
            "reasoning" => Self::Thinking {
                id: string_field(item, "id"),
                summary: (0..)
                    .zip(
                        [texts(&item["summary"], "text"), texts(&item["content"], "text")].concat(),
                    )
                    .collect(),
                data: string_field(item, "encrypted_content"),
            },
            "function_call" => {
                let id = if item["call_id"].is_string() {
                    string_field(item, "call_id")
                } else {
                    string_field(item, "id")
                };
                Self::Call {
                    id,
                    name: string_field(item, "name").trim().to_owned(),
                    arguments: string_field(item, "arguments"),
                }
            }
            _ => Self::Other,
        }
    }

    /// What is kept of it, in bytes.
    fn size(&self) -> usize {
        match self {
            Self::Text(text) => text.len(),
            Self::Thinking { id, summary, data } => {
                id.len()
                    + data.len()
                    + summary.values().map(|part| PART_OVERHEAD + part.len()).sum::<usize>()
            }
            Self::Call { id, name, arguments } => id.len() + name.len() + arguments.len(),
            Self::Other => 0,
        }
    }

    /// Of the same kind, and nothing of it here yet.
    fn to_empty(&self) -> Self {
        match self {
            Self::Text(_) => Self::Text(String::new()),
            Self::Thinking { .. } => {
                Self::Thinking { id: String::new(), summary: BTreeMap::new(), data: String::new() }
            }
            Self::Call { .. } => {
                Self::Call { id: String::new(), name: String::new(), arguments: String::new() }
            }
            Self::Other => Self::Other,
        }
    }

    fn into_block(self) -> Option<ResponseBlock> {
        match self {
            Self::Text(text) => (!text.is_empty()).then_some(ResponseBlock::Text(text)),
            Self::Thinking { id, summary, data } if !id.is_empty() && !data.is_empty() => {
                Some(ResponseBlock::Reasoning(ModelReasoning::Sealed {
                    id,
                    summary: summary.into_values().collect(),
                    data,
                }))
            }
            // Without its sealed form nobody wants it back; it was worth seeing.
            Self::Thinking { summary, .. } => {
                let text = summary.into_values().collect::<Vec<_>>().join("\n\n");
                (!text.is_empty()).then_some(ResponseBlock::Reasoning(ModelReasoning::Text {
                    text,
                    signature: None,
                }))
            }
            Self::Call { id, name, arguments } => {
                Some(ResponseBlock::Call(ToolCall { id: CallId::new(id), name, arguments }))
            }
            Self::Other => None,
        }
    }
}

impl StreamDecoder for ResponsesStream {
    fn decode(
        &mut self,
        event: &SseEvent,
        hand: &mut DeltaSink<'_>,
    ) -> Result<DecodeProgress, AttemptFailure> {
        // Some servers close with this, as in chat completions.
        if event.data.trim() == "[DONE]" {
            return Ok(DecodeProgress::Done);
        }
        let data = parse_event(event, &self.endpoint)?;
        match data["type"].as_str().unwrap_or(&event.name) {
            "response.output_item.added" => self.start_item(&data, hand)?,
            "response.output_text.delta" => self.append_text(&data, hand)?,
            "response.refusal.delta" => {
                self.is_refused = true;
                self.append_text(&data, hand)?;
            }
            // Models that are not OpenAI's own think in the clear.
            "response.reasoning_summary_text.delta" | "response.reasoning_text.delta" => {
                self.append_reasoning(&data, hand)?
            }
            "response.function_call_arguments.delta" => {
                let piece = string_field(&data, "delta");
                hand.count_bytes(piece.len(), &self.endpoint)?;
                if let ResponseOutputItem::Call { arguments, .. } = self.item_mut(&data)? {
                    arguments.push_str(&piece);
                }
            }
            "response.output_item.done" => {
                let index = self
                    .find_started(&data)
                    .or(output_index(&data))
                    .unwrap_or_else(|| self.next_index());
                self.finish_item(index, &data["item"], hand)?;
            }
            "response.completed" => {
                self.finish_response(&data["response"], ResponseStreamEnd::Completed, hand)?;
                return Ok(DecodeProgress::Done);
            }
            "response.incomplete" => {
                let reason = string_field(&data["response"]["incomplete_details"], "reason");
                self.finish_response(
                    &data["response"],
                    ResponseStreamEnd::Incomplete(reason),
                    hand,
                )?;
                return Ok(DecodeProgress::Done);
            }
            "response.failed" => {
                return Err(self.endpoint.stream_error(&data["response"]["error"]));
            }
            "response.cancelled" => {
                return Err(self.endpoint.stream_error(&Value::from("the response was cancelled")));
            }
            // Its fields stand in the event itself, or in an object of that name, as everywhere
            // else.
            "error" => {
                return Err(self.endpoint.stream_error(
                    data.get("error").filter(|error| error.is_object()).unwrap_or(&data),
                ));
            }
            // That it was created, parts of items that hold nothing new, and whatever is new.
            _ => {}
        }
        Ok(DecodeProgress::More)
    }

    fn is_complete(&self) -> bool {
        self.end.is_some()
    }

    fn finish_reason(self) -> Result<ModelResponse, AttemptFailure> {
        if !self.is_complete() {
            return Err(self.endpoint.corrupted("the stream ended before the response did"));
        }
        let stop = self.stop_reason();
        // The limit on output may fall into a call. That one stays open, and is not run.
        let open_call = |begun: &PartialItem| {
            matches!(begun.item, ResponseOutputItem::Call { .. }) && !begun.is_closed
        };
        if stop == StopReason::Calls && self.items.values().any(open_call) {
            return Err(self.endpoint.malformed("the response ended within a call"));
        }
        let blocks = self.items.into_values().filter_map(|begun| begun.item.into_block()).collect();
        Ok(ModelResponse { blocks, stop, usage: self.usage })
    }
}

fn output_index(data: &Value) -> Option<u64> {
    data["output_index"].as_u64()
}

/// What an item is called.
fn item_ids(item: &Value) -> Vec<String> {
    ["id", "call_id"]
        .into_iter()
        .map(|key| string_field(item, key))
        .filter(|name| !name.is_empty())
        .collect()
}

fn string_field(value: &Value, key: &str) -> String {
    value[key].as_str().unwrap_or_default().to_owned()
}

fn parse_usage(usage: &Value) -> TokenUsage {
    let number = |pointer: &str| usage.pointer(pointer).and_then(Value::as_u64);
    TokenUsage {
        input: number("/input_tokens"),
        output: number("/output_tokens"),
        cached_input: number("/input_tokens_details/cached_tokens"),
        cache_write: number("/input_tokens_details/cache_write_tokens"),
    }
}
