//! Encodes a request in the format of OpenAI's chat completions.
//!
//! Where the format leaves a choice:
//!
//! - A tool message contains only text. If the server is known to accept pictures, they follow in
//!   one user message after the results of their turn. Otherwise a line of text replaces each
//!   picture, because a refused picture would make every later request fail too.
//! - Strict servers of Mistral's models get ids in their own form, and a placeholder message of the
//!   assistant between a result and a user message.
//! - Errors have no mark in this format. Their text starts with `Error:`.
//! - `tool_choice` is sent only if it is `none`. `auto` is the default, and some servers refuse it.

use std::borrow::Cow;

use serde_json::{Map, Value, json};

use super::ChatDialect;
use crate::agent::ports::{ModelRequest, ToolChoice};
use crate::conversation::{
    AnsweredCall, AssistantTurn, CallId, ModelReasoning, SentTranscript, ToolCall, ToolResult,
    TurnContentBlock,
};
use crate::model::providers::wire::{
    image_unsupported, wire_arguments, wire_name, wire_schema, wire_summary, wire_text,
};
use crate::model::providers::wire_ids::short_id;

/// The key that requests usage at the end of a stream.
pub(super) const USAGE_KEY: &str = "stream_options";
/// The key of a message that contains the assistant's thinking.
pub(super) const THINKING_KEY: &str = "reasoning_content";

/// Returns whether a body, or one of its messages, has this key.
pub(super) fn has_key(body: &Value, key: &str) -> bool {
    body.get(key).is_some()
        || body["messages"]
            .as_array()
            .is_some_and(|messages| messages.iter().any(|message| message.get(key).is_some()))
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

/// The placeholder for servers that require an assistant message where there is none.
const NO_ANSWER: &str = "(No answer.)";

/// Returns the body of the request.
pub(super) fn body(model: &str, request: &ModelRequest<'_>, dialect: &ChatDialect) -> Value {
    let mut body = json!({
        "model": model,
        "messages": messages(request, dialect),
        "stream": true,
    });
    body[USAGE_KEY] = json!({"include_usage": true});
    if !request.tools.is_empty() {
        body["tools"] = request
            .tools
            .iter()
            .map(|tool| {
                json!({
                    "type": "function",
                    "function": {
                        "name": tool.name, "description": tool.description,
                        "parameters": wire_schema(&tool.input_schema),
                    },
                })
            })
            .collect();
        if request.tool_choice == ToolChoice::None {
            body["tool_choice"] = "none".into();
        }
    }
    if let Some(effort) = dialect.effective_effort(model, !request.tools.is_empty()) {
        body["reasoning_effort"] = effort.into();
    }
    if let Some(max) = dialect.max_output {
        body[dialect.max_output_key()] = max.into();
    }
    body
}

fn messages(request: &ModelRequest<'_>, dialect: &ChatDialect) -> Vec<Value> {
    let mut messages =
        ChatMessages { separates_results: dialect.is_mistral, ..ChatMessages::default() };
    if !request.system.trim().is_empty() {
        messages.finished.push(json!({"role": "system", "content": request.system}));
    }
    add_conversation(&mut messages, request.conversation, dialect);
    if let Some(note) = request.note {
        messages.push_user_text(note);
    }
    messages.finish()
}

fn add_conversation(
    messages: &mut ChatMessages,
    conversation: SentTranscript<'_>,
    dialect: &ChatDialect,
) {
    if let Some(summary) = conversation.summary() {
        messages.push_user_text(&wire_summary(summary));
    }
    for (prompt, turns) in conversation.exchanges() {
        messages.push_user_text(prompt);
        for turn in turns {
            messages.push(assistant_message(turn.turn(), dialect));
            let mut pictures = Vec::new();
            for (call, answer) in turn.results() {
                messages.push(result_message(call, answer, dialect, &mut pictures));
            }
            messages.pending_user.extend(pictures);
        }
    }
}

/// The finished messages, and user parts that are not in a message yet.
///
/// Adjacent user parts become one message.
#[derive(Default)]
struct ChatMessages {
    finished: Vec<Value>,
    pending_user: Vec<Value>,
    /// Whether an assistant message must separate results from a user message.
    separates_results: bool,
}

impl ChatMessages {
    fn push_user_text(&mut self, text: &str) {
        self.pending_user.push(json!({"type": "text", "text": text}));
    }

    fn push(&mut self, message: Value) {
        self.flush();
        self.finished.push(message);
    }

    fn flush(&mut self) {
        let parts = std::mem::take(&mut self.pending_user);
        if parts.is_empty() {
            return;
        }
        if self.separates_results && self.finished.last().is_some_and(|last| last["role"] == "tool")
        {
            self.finished.push(json!({"role": "assistant", "content": NO_ANSWER}));
        }
        let texts: Option<Vec<&str>> =
            parts.iter().map(|part| part.get("text").and_then(Value::as_str)).collect();
        let content = texts
            .map(|texts| Value::from(texts.join("\n\n")))
            .unwrap_or_else(|| Value::from(parts));
        self.finished.push(json!({"role": "user", "content": content}));
    }

    fn finish(mut self) -> Vec<Value> {
        self.flush();
        self.finished
    }
}

fn assistant_message(turn: &AssistantTurn, dialect: &ChatDialect) -> Value {
    let text = turn.text();
    let mut message = Map::new();
    message.insert("role".into(), "assistant".into());
    message.insert("content".into(), if text.is_empty() { Value::Null } else { text.into() });
    if dialect.requires_reasoning && turn.has_calls() {
        let thinking: String = turn.blocks().iter().filter_map(reasoning_text).collect();
        if !thinking.is_empty() {
            message.insert(THINKING_KEY.into(), thinking.into());
        }
    }
    let calls: Vec<Value> = turn
        .calls()
        .map(|AnsweredCall { call, .. }| {
            json!({
                "id": wire_id(&call.id, dialect),
                "type": "function",
                "function": {
                    "name": wire_name(&call.name), "arguments": wire_arguments(&call.arguments),
                },
            })
        })
        .collect();
    if !calls.is_empty() {
        message.insert("tool_calls".into(), calls.into());
    }
    message.into()
}

fn wire_id<'a>(id: &'a CallId, dialect: &ChatDialect) -> Cow<'a, str> {
    if dialect.is_mistral { short_id(id) } else { Cow::Borrowed(id.as_str()) }
}

fn reasoning_text(block: &TurnContentBlock) -> Option<&str> {
    match block {
        TurnContentBlock::Reasoning(ModelReasoning::Text { text, .. }) => Some(text),
        TurnContentBlock::Reasoning(
            ModelReasoning::Opaque { .. } | ModelReasoning::Sealed { .. },
        )
        | TurnContentBlock::Text(_)
        | TurnContentBlock::Call(_) => None,
    }
}

fn result_message(
    call: &ToolCall,
    result: &ToolResult,
    dialect: &ChatDialect,
    pictures: &mut Vec<Value>,
) -> Value {
    let text = wire_text(result, |media_type, base64| {
        if !dialect.accepts_images {
            return Some(image_unsupported(media_type));
        }
        if pictures.is_empty() {
            pictures
                .push(json!({"type": "text", "text": "Images from the results above, in order:"}));
        }
        pictures.push(json!({
            "type": "image_url", "image_url": {"url": format!("data:{media_type};base64,{base64}")},
        }));
        Some(format!("[image, {media_type}: see below the results]"))
    });
    json!({"role": "tool", "tool_call_id": wire_id(&call.id, dialect), "content": text})
}
