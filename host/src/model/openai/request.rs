//! A request in the form of OpenAI's chat completions, which many servers understand.
//!
//! Choices where the format leaves some:
//! - A tool message holds text only. Pictures follow as one user message after the results of their turn, where the
//!   server is known to take pictures; elsewhere a line of text says what was left out, since a picture that a server
//!   refuses would make every later request fail too.
//! - Strict servers of Mistral's models get ids in their own form, and a placeholder of the assistant between a result and the user.
//! - There is no mark for an error: the text of one begins with `Error:`.
//! - `tool_choice` is left out unless it is `none`: `auto` is the default, and some servers refuse to be told.

use std::borrow::Cow;

use serde_json::{Map, Value, json};

use super::Dialect;
use crate::agent::ports::{ModelRequest, ToolChoice};
use crate::conversation::{AnsweredCall, Block, Call, CallId, Reasoning, Sent, ToolResult, Turn};
use crate::model::wire::{no_pictures, wire_arguments, wire_name, wire_schema, wire_summary, wire_text};
use crate::model::wire_ids::short_id;

/// The key that asks for usage at the end of a stream.
pub(super) const USAGE: &str = "stream_options";
/// The key of a message that holds what the assistant thought.
pub(super) const THINKING: &str = "reasoning_content";

/// Whether a body, or one of its messages, has this key.
pub(super) fn has_key(body: &Value, key: &str) -> bool {
    body.get(key).is_some() || body["messages"].as_array().is_some_and(|messages| messages.iter().any(|message| message.get(key).is_some()))
}

/// Removes a key from a body and from its messages.
pub(super) fn remove_key(body: &mut Value, key: &str) {
    let remove = |value: &mut Value| {
        if let Some(fields) = value.as_object_mut() {
            fields.remove(key);
        }
    };
    remove(body);
    if let Some(messages) = body.get_mut("messages").and_then(Value::as_array_mut) {
        messages.iter_mut().for_each(remove);
    }
}

/// Stands where the assistant said nothing, for servers that want it to have said something.
const NO_ANSWER: &str = "(No answer.)";

/// The body of the request.
pub(super) fn body(model: &str, request: &ModelRequest<'_>, dialect: &Dialect) -> Value {
    let mut body = json!({
        "model": model,
        "messages": messages(request, dialect),
        "stream": true,
    });
    body[USAGE] = json!({"include_usage": true});
    if !request.tools.is_empty() {
        body["tools"] = request
            .tools
            .iter()
            .map(|tool| {
                json!({
                    "type": "function",
                    "function": {"name": tool.name, "description": tool.description, "parameters": wire_schema(&tool.input_schema)},
                })
            })
            .collect();
        if request.tool_choice == ToolChoice::None {
            body["tool_choice"] = "none".into();
        }
    }
    if let Some(effort) = dialect.effort(model, !request.tools.is_empty()) {
        body["reasoning_effort"] = effort.into();
    }
    if let Some(max) = dialect.max_output {
        body[dialect.max_output_key()] = max.into();
    }
    body
}

fn messages(request: &ModelRequest<'_>, dialect: &Dialect) -> Vec<Value> {
    let mut messages = Messages { parts_results: dialect.is_mistral, ..Messages::default() };
    if !request.system.trim().is_empty() {
        messages.all.push(json!({"role": "system", "content": request.system}));
    }
    add_conversation(&mut messages, request.conversation, dialect);
    if let Some(note) = request.note {
        messages.say(note);
    }
    messages.finish()
}

fn add_conversation(messages: &mut Messages, conversation: Sent<'_>, dialect: &Dialect) {
    if let Some(summary) = conversation.summary() {
        messages.say(&wire_summary(summary));
    }
    for (prompt, turns) in conversation.exchanges() {
        messages.say(prompt);
        for turn in turns {
            messages.add(assistant(turn.turn(), dialect));
            let mut pictures = Vec::new();
            for (call, answer) in turn.results() {
                messages.add(result(call, answer, dialect, &mut pictures));
            }
            messages.user.extend(pictures);
        }
    }
}

/// The messages so far, and the user's words that are not a message yet: adjacent ones become one.
#[derive(Default)]
struct Messages {
    all: Vec<Value>,
    user: Vec<Value>,
    /// Whether a message of the assistant parts results from what the user says next.
    parts_results: bool,
}

impl Messages {
    fn say(&mut self, text: &str) {
        self.user.push(json!({"type": "text", "text": text}));
    }

    fn add(&mut self, message: Value) {
        self.flush();
        self.all.push(message);
    }

    fn flush(&mut self) {
        let parts = std::mem::take(&mut self.user);
        if parts.is_empty() {
            return;
        }
        if self.parts_results && self.all.last().is_some_and(|last| last["role"] == "tool") {
            self.all.push(json!({"role": "assistant", "content": NO_ANSWER}));
        }
        let texts: Option<Vec<&str>> = parts.iter().map(|part| part.get("text").and_then(Value::as_str)).collect();
        let content = texts.map(|texts| Value::from(texts.join("\n\n"))).unwrap_or_else(|| Value::from(parts));
        self.all.push(json!({"role": "user", "content": content}));
    }

    fn finish(mut self) -> Vec<Value> {
        self.flush();
        self.all
    }
}

fn assistant(turn: &Turn, dialect: &Dialect) -> Value {
    let text = turn.text();
    let mut message = Map::new();
    message.insert("role".into(), "assistant".into());
    message.insert("content".into(), if text.is_empty() { Value::Null } else { text.into() });
    if dialect.wants_reasoning_back && turn.has_calls() {
        let thought: String = turn.blocks().iter().filter_map(thought).collect();
        if !thought.is_empty() {
            message.insert(THINKING.into(), thought.into());
        }
    }
    let calls: Vec<Value> = turn
        .calls()
        .map(|AnsweredCall { call, .. }| {
            json!({
                "id": id(&call.id, dialect),
                "type": "function",
                "function": {"name": wire_name(&call.name), "arguments": wire_arguments(&call.arguments)},
            })
        })
        .collect();
    if !calls.is_empty() {
        message.insert("tool_calls".into(), calls.into());
    }
    message.into()
}

fn id<'a>(id: &'a CallId, dialect: &Dialect) -> Cow<'a, str> {
    if dialect.is_mistral { short_id(id) } else { Cow::Borrowed(id.as_str()) }
}

fn thought(block: &Block) -> Option<&str> {
    match block {
        Block::Reasoning(Reasoning::Text { text, .. }) => Some(text),
        Block::Reasoning(Reasoning::Opaque { .. } | Reasoning::Sealed { .. }) | Block::Text(_) | Block::Call(_) => None,
    }
}

fn result(call: &Call, result: &ToolResult, dialect: &Dialect, pictures: &mut Vec<Value>) -> Value {
    let text = wire_text(result, |media_type, base64| {
        if !dialect.takes_pictures {
            return Some(no_pictures(media_type));
        }
        if pictures.is_empty() {
            pictures.push(json!({"type": "text", "text": "Pictures from the results above, in their order:"}));
        }
        pictures.push(json!({"type": "image_url", "image_url": {"url": format!("data:{media_type};base64,{base64}")}}));
        Some(format!("[a picture, {media_type}: it follows after the results]"))
    });
    json!({"role": "tool", "tool_call_id": id(&call.id, dialect), "content": text})
}
