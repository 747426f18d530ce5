//! A response in the form of OpenAI's Responses stream.
//!
//! `response.completed` and `response.incomplete` are the terminal events: without one there is no response, and with the
//! first every item must have had its `response.output_item.done`. Deltas are for whoever watches; what an item is in the end is
//! what its last event says, for thinking in particular, which is whole only there.
//!
//! Servers number the items, or name them, or neither, and their numbers need not be places in the response as a whole. An item
//! is therefore looked for by its number, then by its name; a call that was taken for another one would run twice.

use std::collections::BTreeMap;
use std::mem::discriminant;

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
    /// By their number in the output, which is a name and nothing more: it may be huge.
    items: BTreeMap<u64, Begun>,
    /// The item that began last.
    newest: Option<u64>,
    end: Option<End>,
    refused: bool,
    usage: Usage,
}

/// How it ended.
enum End {
    Completed,
    /// For this reason.
    Incomplete(String),
}

struct Begun {
    item: Item,
    /// What the server calls it: its own id, and that of the call.
    names: Vec<String>,
    is_closed: bool,
}

enum Item {
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

impl Stream {
    pub(in crate::model) fn new(place: &Place) -> Self {
        Self { place: place.clone(), items: BTreeMap::new(), newest: None, end: None, refused: false, usage: Usage::default() }
    }

    fn begin(&mut self, data: &Value, hand: &mut Hand<'_>) -> Result<(), Failure> {
        let index = number(data).unwrap_or_else(|| self.next_number());
        if self.items.contains_key(&index) {
            return Err(self.place.malformed("two items have the same index"));
        }
        let item = Item::of(&data["item"]);
        hand.keep(item.size(), &self.place)?;
        self.add(index, item, &data["item"], hand)
    }

    fn add(&mut self, index: u64, item: Item, told: &Value, hand: &mut Hand<'_>) -> Result<(), Failure> {
        let names = names(told);
        hand.keep(PART + names.iter().map(String::len).sum::<usize>(), &self.place)?;
        if let Item::Call { name, .. } = Item::of(told) {
            hand.over(Delta::CallBegun(&name));
        }
        self.items.insert(index, Begun { item, names, is_closed: false });
        self.newest = Some(index);
        Ok(())
    }

    fn next_number(&self) -> u64 {
        self.items.last_key_value().map_or(0, |(last, _)| last.saturating_add(1))
    }

    /// The item that a piece belongs to.
    fn open(&mut self, data: &Value) -> Result<&mut Item, Failure> {
        let named = || {
            let name = data["item_id"].as_str()?;
            self.items.iter().rev().find(|(_, begun)| begun.names.iter().any(|own| own == name)).map(|(index, _)| *index)
        };
        let index = number(data).or_else(named).or(self.newest);
        let failure = self.place.malformed("a piece belongs to no item");
        index.and_then(|index| self.items.get_mut(&index)).map(|begun| &mut begun.item).ok_or(failure)
    }

    /// The item that is whole now; `None` if it has not begun.
    fn begun(&self, data: &Value) -> Option<u64> {
        let numbered = number(data);
        if let Some(index) = numbered.filter(|index| self.items.contains_key(index)) {
            return Some(index);
        }
        let item = &data["item"];
        let newest = || self.newest.filter(|index| numbered.is_none() && names(item).is_empty() && self.is_open(*index, item));
        self.open_by_name(item).or_else(newest)
    }

    /// The open item of the same kind and name as this one.
    fn open_by_name(&self, item: &Value) -> Option<u64> {
        let names = names(item);
        let is_it = |begun: &Begun| begun.names.iter().any(|name| names.contains(name));
        self.items.iter().find(|(index, begun)| is_it(begun) && self.is_open(**index, item)).map(|(index, _)| *index)
    }

    fn is_open(&self, index: u64, item: &Value) -> bool {
        let kind = discriminant(&Item::of(item));
        self.items.get(&index).is_some_and(|begun| !begun.is_closed && discriminant(&begun.item) == kind)
    }

    fn say(&mut self, data: &Value, hand: &mut Hand<'_>) -> Result<(), Failure> {
        let piece = word(data, "delta");
        hand.keep(piece.len(), &self.place)?;
        if let Item::Text(text) = self.open(data)? {
            if text.is_empty() {
                text.push_str(hand.set_apart(&piece));
            }
            text.push_str(&piece);
            hand.over(Delta::Text(&piece));
        }
        Ok(())
    }

    fn think(&mut self, data: &Value, hand: &mut Hand<'_>) -> Result<(), Failure> {
        let piece = word(data, "delta");
        hand.keep(piece.len(), &self.place)?;
        let part = data["summary_index"].as_u64().or(data["content_index"].as_u64()).unwrap_or_default();
        let place = self.place.clone();
        if let Item::Thinking { summary, .. } = self.open(data)? {
            if !summary.contains_key(&part) {
                hand.keep(PART, &place)?;
            }
            if !summary.contains_key(&part) && !summary.is_empty() {
                hand.over(Delta::Reasoning("\n\n"));
            }
            summary.entry(part).or_default().push_str(&piece);
            hand.over(Delta::Reasoning(&piece));
        }
        Ok(())
    }

    /// An item is whole. What came of it before is what was shown, and stays; what did not come in pieces comes now.
    fn close(&mut self, index: u64, whole: &Value, hand: &mut Hand<'_>) -> Result<(), Failure> {
        let last = Item::of(whole);
        if !self.items.contains_key(&index) {
            self.add(index, last.emptied(), whole, hand)?;
        }
        let Some(begun) = self.items.get_mut(&index).filter(|begun| !begun.is_closed) else { return Ok(()) };
        hand.keep(last.size().saturating_sub(begun.item.size()), &self.place)?;
        begun.is_closed = true;
        match (&mut begun.item, last) {
            (Item::Text(text), Item::Text(whole)) if text.is_empty() => {
                text.push_str(hand.set_apart(&whole));
                text.push_str(&whole);
                hand.over(Delta::Text(&whole));
            }
            (Item::Thinking { .. }, last @ Item::Thinking { .. }) => begun.item = last,
            (Item::Call { id, name, arguments }, Item::Call { id: last_id, name: last_name, arguments: last_arguments }) => {
                for (before, last) in [(id, last_id), (name, last_name), (arguments, last_arguments)] {
                    if !last.is_empty() {
                        *before = last;
                    }
                }
            }
            (Item::Text(_) | Item::Thinking { .. } | Item::Call { .. } | Item::Other, _) => {}
        }
        Ok(())
    }

    /// The response as a whole. Servers that did not send it in pieces have it here; of a kind of which there were pieces, it
    /// has nothing that is new.
    fn end(&mut self, response: &Value, end: End, hand: &mut Hand<'_>) -> Result<(), Failure> {
        let came: Vec<_> = self.items.values().map(|begun| discriminant(&begun.item)).collect();
        for item in response["output"].as_array().into_iter().flatten() {
            match self.open_by_name(item) {
                Some(index) if matches!(end, End::Completed) => self.close(index, item, hand)?,
                Some(_) => {}
                None if came.contains(&discriminant(&Item::of(item))) => {}
                None => self.close(self.next_number(), item, hand)?,
            }
        }
        self.usage = read_usage(&response["usage"]);
        self.end = Some(end);
        Ok(())
    }

    fn has_calls(&self) -> bool {
        self.items.values().any(|begun| matches!(begun.item, Item::Call { .. }))
    }

    fn stop(&self) -> StopReason {
        match &self.end {
            Some(End::Incomplete(reason)) if reason == "max_output_tokens" || reason == "max_tokens" => StopReason::Length,
            Some(End::Incomplete(reason)) if reason == "content_filter" => StopReason::Refused,
            // Whatever cut it off, its calls cannot be trusted to be whole.
            Some(End::Incomplete(_)) if self.has_calls() => StopReason::Length,
            Some(End::Incomplete(word)) => StopReason::Other(reason(word)),
            Some(End::Completed) | None if self.has_calls() => StopReason::Calls,
            Some(End::Completed) | None if self.refused => StopReason::Refused,
            Some(End::Completed) | None => StopReason::End,
        }
    }
}

impl Item {
    fn of(item: &Value) -> Self {
        let texts = |list: &Value, key: &str| -> Vec<String> {
            list.as_array().into_iter().flatten().filter_map(|part| part[key].as_str()).map(str::to_owned).collect()
        };
        match item["type"].as_str().unwrap_or_default() {
            "message" => {
                let parts = item["content"].as_array().map(Vec::as_slice).unwrap_or_default();
                Self::Text(parts.iter().filter_map(|part| part["text"].as_str().or(part["refusal"].as_str())).collect())
            }
            "reasoning" => Self::Thinking {
                id: word(item, "id"),
                summary: (0..).zip([texts(&item["summary"], "text"), texts(&item["content"], "text")].concat()).collect(),
                data: word(item, "encrypted_content"),
            },
            "function_call" => {
                let id = if item["call_id"].is_string() { word(item, "call_id") } else { word(item, "id") };
                Self::Call { id, name: word(item, "name").trim().to_owned(), arguments: word(item, "arguments") }
            }
            _ => Self::Other,
        }
    }

    /// What is kept of it, in bytes.
    fn size(&self) -> usize {
        match self {
            Self::Text(text) => text.len(),
            Self::Thinking { id, summary, data } => id.len() + data.len() + summary.values().map(|part| PART + part.len()).sum::<usize>(),
            Self::Call { id, name, arguments } => id.len() + name.len() + arguments.len(),
            Self::Other => 0,
        }
    }

    /// Of the same kind, and nothing of it here yet.
    fn emptied(&self) -> Self {
        match self {
            Self::Text(_) => Self::Text(String::new()),
            Self::Thinking { .. } => Self::Thinking { id: String::new(), summary: BTreeMap::new(), data: String::new() },
            Self::Call { .. } => Self::Call { id: String::new(), name: String::new(), arguments: String::new() },
            Self::Other => Self::Other,
        }
    }

    fn into_block(self) -> Option<ResponseBlock> {
        match self {
            Self::Text(text) => (!text.is_empty()).then_some(ResponseBlock::Text(text)),
            Self::Thinking { id, summary, data } if !id.is_empty() && !data.is_empty() => {
                Some(ResponseBlock::Reasoning(Reasoning::Sealed { id, summary: summary.into_values().collect(), data }))
            }
            // Without its sealed form nobody wants it back; it was worth seeing.
            Self::Thinking { summary, .. } => {
                let text = summary.into_values().collect::<Vec<_>>().join("\n\n");
                (!text.is_empty()).then_some(ResponseBlock::Reasoning(Reasoning::Text { text, signature: None }))
            }
            Self::Call { id, name, arguments } => Some(ResponseBlock::Call(Call { id: CallId::new(id), name, arguments })),
            Self::Other => None,
        }
    }
}

impl Wire for Stream {
    fn event(&mut self, event: &Event, hand: &mut Hand<'_>) -> Result<Progress, Failure> {
        // Some servers close with this, as in chat completions.
        if event.data.trim() == "[DONE]" {
            return Ok(Progress::Over);
        }
        let data = read_event(event, &self.place)?;
        match data["type"].as_str().unwrap_or(&event.name) {
            "response.output_item.added" => self.begin(&data, hand)?,
            "response.output_text.delta" => self.say(&data, hand)?,
            "response.refusal.delta" => {
                self.refused = true;
                self.say(&data, hand)?;
            }
            // Models that are not OpenAI's own think in the clear.
            "response.reasoning_summary_text.delta" | "response.reasoning_text.delta" => self.think(&data, hand)?,
            "response.function_call_arguments.delta" => {
                let piece = word(&data, "delta");
                hand.keep(piece.len(), &self.place)?;
                if let Item::Call { arguments, .. } = self.open(&data)? {
                    arguments.push_str(&piece);
                }
            }
            "response.output_item.done" => {
                let index = self.begun(&data).or(number(&data)).unwrap_or_else(|| self.next_number());
                self.close(index, &data["item"], hand)?;
            }
            "response.completed" => {
                self.end(&data["response"], End::Completed, hand)?;
                return Ok(Progress::Over);
            }
            "response.incomplete" => {
                let reason = word(&data["response"]["incomplete_details"], "reason");
                self.end(&data["response"], End::Incomplete(reason), hand)?;
                return Ok(Progress::Over);
            }
            "response.failed" => return Err(self.place.broke_off(&data["response"]["error"])),
            "response.cancelled" => return Err(self.place.broke_off(&Value::from("the response was cancelled"))),
            // Its fields stand in the event itself, or in an object of that name, as everywhere else.
            "error" => return Err(self.place.broke_off(data.get("error").filter(|error| error.is_object()).unwrap_or(&data))),
            // That it was created, parts of items that hold nothing new, and whatever is new.
            _ => {}
        }
        Ok(Progress::More)
    }

    fn is_whole(&self) -> bool {
        self.end.is_some()
    }

    fn finish(self) -> Result<Response, Failure> {
        if !self.is_whole() {
            return Err(self.place.damaged("the stream ended before the response did"));
        }
        let stop = self.stop();
        // The limit on output may fall into a call. That one stays open, and is not run.
        let open_call = |begun: &Begun| matches!(begun.item, Item::Call { .. }) && !begun.is_closed;
        if stop == StopReason::Calls && self.items.values().any(open_call) {
            return Err(self.place.malformed("the response ended within a call"));
        }
        let blocks = self.items.into_values().filter_map(|begun| begun.item.into_block()).collect();
        Ok(Response { blocks, stop, usage: self.usage })
    }
}

fn number(data: &Value) -> Option<u64> {
    data["output_index"].as_u64()
}

/// What an item is called.
fn names(item: &Value) -> Vec<String> {
    ["id", "call_id"].into_iter().map(|key| word(item, key)).filter(|name| !name.is_empty()).collect()
}

fn word(value: &Value, key: &str) -> String {
    value[key].as_str().unwrap_or_default().to_owned()
}

fn read_usage(usage: &Value) -> Usage {
    let number = |pointer: &str| usage.pointer(pointer).and_then(Value::as_u64);
    Usage {
        input: number("/input_tokens"),
        output: number("/output_tokens"),
        cached_input: number("/input_tokens_details/cached_tokens"),
        cache_write: number("/input_tokens_details/cache_write_tokens"),
    }
}
