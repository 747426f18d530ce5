//! Decodes a response in the format of OpenAI's Responses stream.
//!
//! `response.completed` and `response.incomplete` are the terminal events. Without one, the
//! response is incomplete. Before `response.completed`, every call must have had its
//! `response.output_item.done`. Deltas are for live display. The final content of an item comes
//! from its last event; thinking is complete only there.
//!
//! Servers identify items by index, by id, or not at all, and an index may differ from the position
//! in the complete response. An item is therefore looked up by index, then by id. A call that is
//! mistaken for a new one would run twice.

use std::collections::BTreeMap;
use std::mem::discriminant;

use serde_json::Value;

use super::item::{ResponseOutputItem, item_ids, string_field};
use crate::agent::ports::ResponseDelta;
use crate::conversation::{ModelResponse, StopReason, TokenUsage};
use crate::model::providers::event_data::parse_event;
use crate::model::providers::failure::{AttemptFailure, ServerEndpoint};
use crate::model::providers::sse::SseEvent;
use crate::model::providers::wire::{
    DecodeProgress, DeltaSink, PART_OVERHEAD, StreamDecoder, truncate_reason,
};

/// A response that is being received.
pub(in crate::model) struct ResponsesStream {
    endpoint: ServerEndpoint,
    /// The items by output index, which is only a name and may be huge.
    items: BTreeMap<u64, PartialItem>,
    /// The index of the item that started last.
    newest: Option<u64>,
    end: Option<ResponseStreamEnd>,
    is_refused: bool,
    usage: TokenUsage,
}

/// The way in which the response ended.
enum ResponseStreamEnd {
    Completed,
    /// The response was cut off for this reason.
    Incomplete(String),
}

struct PartialItem {
    item: ResponseOutputItem,
    /// The ids of the item: its own, and that of the call.
    ids: Vec<String>,
    is_closed: bool,
}

impl ResponsesStream {
    pub(in crate::model) fn new(endpoint: &ServerEndpoint) -> Self {
        Self {
            endpoint: endpoint.clone(),
            items: BTreeMap::new(),
            newest: None,
            end: None,
            is_refused: false,
            usage: TokenUsage::default(),
        }
    }

    fn start_item(&mut self, data: &Value, sink: &mut DeltaSink<'_>) -> Result<(), AttemptFailure> {
        let index = output_index(data).unwrap_or_else(|| self.next_index());
        if self.items.contains_key(&index) {
            return Err(self.endpoint.malformed("two items have the same index"));
        }
        let item = ResponseOutputItem::from_json(&data["item"]);
        sink.count_bytes(item.size(), &self.endpoint)?;
        self.insert_item(index, item, &data["item"], sink)
    }

    fn insert_item(
        &mut self,
        index: u64,
        item: ResponseOutputItem,
        json: &Value,
        sink: &mut DeltaSink<'_>,
    ) -> Result<(), AttemptFailure> {
        let ids = item_ids(json);
        sink.count_bytes(
            PART_OVERHEAD + ids.iter().map(String::len).sum::<usize>(),
            &self.endpoint,
        )?;
        if let ResponseOutputItem::Call { name, .. } = ResponseOutputItem::from_json(json) {
            sink.send(ResponseDelta::ToolCallStart(&name));
        }
        self.items.insert(index, PartialItem { item, ids, is_closed: false });
        self.newest = Some(index);
        Ok(())
    }

    fn next_index(&self) -> u64 {
        self.items.last_key_value().map_or(0, |(last, _)| last.saturating_add(1))
    }

    /// Returns the item that a delta belongs to.
    fn item_mut(&mut self, data: &Value) -> Result<&mut ResponseOutputItem, AttemptFailure> {
        let named = || {
            let name = data["item_id"].as_str()?;
            self.items
                .iter()
                .rev()
                .find(|(_, entry)| entry.ids.iter().any(|own| own == name))
                .map(|(index, _)| *index)
        };
        let index = output_index(data).or_else(named).or(self.newest);
        let failure = self.endpoint.malformed("a delta belongs to no item");
        index
            .and_then(|index| self.items.get_mut(&index))
            .map(|entry| &mut entry.item)
            .ok_or(failure)
    }

    /// Returns the started item that a final event belongs to, or `None` if it has not started.
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

    /// Returns the open item with the same type and id.
    fn find_open(&self, item: &Value) -> Option<u64> {
        let ids = item_ids(item);
        let is_it = |entry: &PartialItem| entry.ids.iter().any(|name| ids.contains(name));
        self.items
            .iter()
            .find(|(index, entry)| is_it(entry) && self.is_open(**index, item))
            .map(|(index, _)| *index)
    }

    fn is_open(&self, index: u64, item: &Value) -> bool {
        let kind = discriminant(&ResponseOutputItem::from_json(item));
        self.items
            .get(&index)
            .is_some_and(|entry| !entry.is_closed && discriminant(&entry.item) == kind)
    }

    fn append_text(
        &mut self,
        data: &Value,
        sink: &mut DeltaSink<'_>,
    ) -> Result<(), AttemptFailure> {
        let piece = string_field(data, "delta");
        sink.count_bytes(piece.len(), &self.endpoint)?;
        if let ResponseOutputItem::Text(text) = self.item_mut(data)? {
            if text.is_empty() {
                text.push_str(sink.separate(&piece));
            }
            text.push_str(&piece);
            sink.send(ResponseDelta::Text(&piece));
        }
        Ok(())
    }

    fn append_reasoning(
        &mut self,
        data: &Value,
        sink: &mut DeltaSink<'_>,
    ) -> Result<(), AttemptFailure> {
        let piece = string_field(data, "delta");
        sink.count_bytes(piece.len(), &self.endpoint)?;
        let part =
            data["summary_index"].as_u64().or(data["content_index"].as_u64()).unwrap_or_default();
        let endpoint = self.endpoint.clone();
        if let ResponseOutputItem::Thinking { summary, .. } = self.item_mut(data)? {
            if !summary.contains_key(&part) {
                sink.count_bytes(PART_OVERHEAD, &endpoint)?;
            }
            if !summary.contains_key(&part) && !summary.is_empty() {
                sink.send(ResponseDelta::Reasoning("\n\n"));
            }
            summary.entry(part).or_default().push_str(&piece);
            sink.send(ResponseDelta::Reasoning(&piece));
        }
        Ok(())
    }

    /// Completes an item.
    ///
    /// Text that was already received as deltas stays as it was shown. Content that was not sent as
    /// deltas is added now.
    fn finish_item(
        &mut self,
        index: u64,
        whole: &Value,
        sink: &mut DeltaSink<'_>,
    ) -> Result<(), AttemptFailure> {
        let last = ResponseOutputItem::from_json(whole);
        if !self.items.contains_key(&index) {
            self.insert_item(index, last.to_empty(), whole, sink)?;
        }
        let Some(entry) = self.items.get_mut(&index).filter(|entry| !entry.is_closed) else {
            return Ok(());
        };
        sink.count_bytes(last.size().saturating_sub(entry.item.size()), &self.endpoint)?;
        entry.is_closed = true;
        match (&mut entry.item, last) {
            (ResponseOutputItem::Text(text), ResponseOutputItem::Text(whole))
                if text.is_empty() =>
            {
                text.push_str(sink.separate(&whole));
                text.push_str(&whole);
                sink.send(ResponseDelta::Text(&whole));
            }
            (ResponseOutputItem::Thinking { .. }, last @ ResponseOutputItem::Thinking { .. }) => {
                entry.item = last
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

    /// Processes the complete response in the terminal event.
    ///
    /// Servers without deltas have all items only here. For types of items that were already
    /// received, the list contains nothing new.
    fn finish_response(
        &mut self,
        response: &Value,
        end: ResponseStreamEnd,
        sink: &mut DeltaSink<'_>,
    ) -> Result<(), AttemptFailure> {
        let received_types: Vec<_> =
            self.items.values().map(|entry| discriminant(&entry.item)).collect();
        for item in response["output"].as_array().into_iter().flatten() {
            match self.find_open(item) {
                Some(index) if matches!(end, ResponseStreamEnd::Completed) => {
                    self.finish_item(index, item, sink)?
                }
                Some(_) => {}
                None if received_types
                    .contains(&discriminant(&ResponseOutputItem::from_json(item))) => {}
                None => self.finish_item(self.next_index(), item, sink)?,
            }
        }
        self.usage = parse_usage(&response["usage"]);
        self.end = Some(end);
        Ok(())
    }

    fn has_calls(&self) -> bool {
        self.items.values().any(|entry| matches!(entry.item, ResponseOutputItem::Call { .. }))
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
            // Whatever cut the response off, its calls may be incomplete.
            Some(ResponseStreamEnd::Incomplete(_)) if self.has_calls() => StopReason::Length,
            Some(ResponseStreamEnd::Incomplete(word)) => StopReason::Other(truncate_reason(word)),
            Some(ResponseStreamEnd::Completed) | None if self.has_calls() => StopReason::Calls,
            Some(ResponseStreamEnd::Completed) | None if self.is_refused => StopReason::Refused,
            Some(ResponseStreamEnd::Completed) | None => StopReason::End,
        }
    }
}

impl StreamDecoder for ResponsesStream {
    fn decode(
        &mut self,
        event: &SseEvent,
        sink: &mut DeltaSink<'_>,
    ) -> Result<DecodeProgress, AttemptFailure> {
        // Some servers end the stream with this, as in chat completions.
        if event.data.trim() == "[DONE]" {
            return Ok(DecodeProgress::Done);
        }
        let data = parse_event(event, &self.endpoint)?;
        match data["type"].as_str().unwrap_or(&event.name) {
            "response.output_item.added" => self.start_item(&data, sink)?,
            "response.output_text.delta" => self.append_text(&data, sink)?,
            "response.refusal.delta" => {
                self.is_refused = true;
                self.append_text(&data, sink)?;
            }
            // Models of other vendors send their thinking in plain text.
            "response.reasoning_summary_text.delta" | "response.reasoning_text.delta" => {
                self.append_reasoning(&data, sink)?
            }
            "response.function_call_arguments.delta" => {
                let piece = string_field(&data, "delta");
                sink.count_bytes(piece.len(), &self.endpoint)?;
                if let ResponseOutputItem::Call { arguments, .. } = self.item_mut(&data)? {
                    arguments.push_str(&piece);
                }
            }
            "response.output_item.done" => {
                let index = self
                    .find_started(&data)
                    .or(output_index(&data))
                    .unwrap_or_else(|| self.next_index());
                self.finish_item(index, &data["item"], sink)?;
            }
            "response.completed" => {
                self.finish_response(&data["response"], ResponseStreamEnd::Completed, sink)?;
                return Ok(DecodeProgress::Done);
            }
            "response.incomplete" => {
                let reason = string_field(&data["response"]["incomplete_details"], "reason");
                self.finish_response(
                    &data["response"],
                    ResponseStreamEnd::Incomplete(reason),
                    sink,
                )?;
                return Ok(DecodeProgress::Done);
            }
            "response.failed" => {
                return Err(self.endpoint.stream_error(&data["response"]["error"]));
            }
            "response.cancelled" => {
                return Err(self.endpoint.stream_error(&Value::from("the response was cancelled")));
            }
            // The fields are in the event itself, or in an object named `error` as elsewhere.
            "error" => {
                return Err(self.endpoint.stream_error(
                    data.get("error").filter(|error| error.is_object()).unwrap_or(&data),
                ));
            }
            // Creation events, events of content parts, and unknown events.
            _ => {}
        }
        Ok(DecodeProgress::More)
    }

    fn is_complete(&self) -> bool {
        self.end.is_some()
    }

    fn finish_reason(self) -> Result<ModelResponse, AttemptFailure> {
        if !self.is_complete() {
            return Err(self
                .endpoint
                .corrupted("the stream ended before the response was complete"));
        }
        let stop = self.stop_reason();
        // The output limit can cut off a call. That call stays open and does not run.
        let open_call = |entry: &PartialItem| {
            matches!(entry.item, ResponseOutputItem::Call { .. }) && !entry.is_closed
        };
        if stop == StopReason::Calls && self.items.values().any(open_call) {
            return Err(self.endpoint.malformed("the response ended inside a tool call"));
        }
        let blocks = self.items.into_values().filter_map(|entry| entry.item.into_block()).collect();
        Ok(ModelResponse { blocks, stop, usage: self.usage })
    }
}

fn output_index(data: &Value) -> Option<u64> {
    data["output_index"].as_u64()
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
