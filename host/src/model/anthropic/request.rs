//! A request in the form of Anthropic's messages.
//!
//! Everything from the user's side between two assistant messages is one user message: results first, then text
//! . Cache markers stand on the system prompt, the last tool and the last block that will still be there
//! in the next request: a note goes after it. Pictures in a failed result are named, not sent, since an error may
//! hold text only.

use serde_json::{Value, json};

use crate::agent::ports::{ModelRequest, ToolChoice};
use crate::conversation::{AnsweredCall, Block, Call, Content, Reasoning, ToolResult, Turn};
use crate::model::wire::{NO_OUTPUT, wire_input, wire_name, wire_summary};
use crate::model::wire_ids::plain_id;

/// What of a request is the model's and not the conversation's.
pub(super) struct Shape<'a> {
    pub(super) model: &'a str,
    pub(super) max_tokens: u64,
    /// Whether to ask for thinking whose length the model chooses.
    pub(super) thinks: bool,
    /// Whether earlier thinking is sent back.
    pub(super) with_thinking: bool,
}

/// The body of the request.
pub(super) fn body(shape: &Shape<'_>, request: &ModelRequest<'_>) -> Value {
    let mut body = json!({"model": shape.model, "max_tokens": shape.max_tokens, "stream": true});
    if shape.thinks {
        body["thinking"] = json!({"type": "adaptive", "display": "summarized"});
    }
    if !request.system.trim().is_empty() {
        body["system"] = json!([{"type": "text", "text": request.system, "cache_control": {"type": "ephemeral"}}]);
    }
    if !request.tools.is_empty() {
        let mut tools: Vec<Value> = request
            .tools
            .iter()
            .map(|tool| json!({"name": tool.name, "description": tool.description, "input_schema": tool.input_schema}))
            .collect();
        mark_for_cache(tools.last_mut());
        body["tools"] = tools.into();
        if request.tool_choice == ToolChoice::None {
            body["tool_choice"] = json!({"type": "none"});
        }
    }
    body["messages"] = messages(request, shape.with_thinking).into_iter().map(Message::into_json).collect();
    body
}

struct Message {
    role: &'static str,
    content: Vec<Value>,
}

impl Message {
    fn into_json(self) -> Value {
        json!({"role": self.role, "content": self.content})
    }
}

fn messages(request: &ModelRequest<'_>, with_thinking: bool) -> Vec<Message> {
    let mut messages = Vec::new();
    let conversation = request.conversation;
    add(&mut messages, "user", conversation.summary().map(|summary| text(&wire_summary(summary))));
    for (prompt, turns) in conversation.exchanges() {
        add(&mut messages, "user", [text(prompt)]);
        for turn in turns {
            add(&mut messages, "assistant", assistant(turn.turn(), with_thinking));
            add(&mut messages, "user", turn.results().map(|(call, answer)| result(call, answer)));
        }
    }
    mark_for_cache(messages.last_mut().and_then(|last| last.content.iter_mut().rev().find(|block| can_be_marked(block))));
    if let Some(note) = request.note {
        add(&mut messages, "user", [text(note)]);
    }
    messages
}

/// Adds blocks to the last message if it is of the same side, else as a message of their own.
fn add(messages: &mut Vec<Message>, role: &'static str, blocks: impl IntoIterator<Item = Value>) {
    let mut blocks = blocks.into_iter().peekable();
    if blocks.peek().is_none() {
        return;
    }
    match messages.last_mut() {
        Some(last) if last.role == role => last.content.extend(blocks),
        _ => messages.push(Message { role, content: blocks.collect() }),
    }
}

fn text(text: &str) -> Value {
    json!({"type": "text", "text": text})
}

fn mark_for_cache(block: Option<&mut Value>) {
    if let Some(block) = block {
        block["cache_control"] = json!({"type": "ephemeral"});
    }
}

fn can_be_marked(block: &Value) -> bool {
    !matches!(block["type"].as_str(), Some("thinking" | "redacted_thinking"))
}

fn assistant(turn: &Turn, with_thinking: bool) -> Vec<Value> {
    turn.blocks()
        .iter()
        .filter_map(|block| match block {
            Block::Text(said) => Some(text(said)),
            Block::Reasoning(reasoning) => with_thinking.then(|| thinking(reasoning)).flatten(),
            Block::Call(AnsweredCall { call, .. }) => Some(
                json!({"type": "tool_use", "id": plain_id(&call.id), "name": wire_name(&call.name), "input": wire_input(&call.arguments)}),
            ),
        })
        .collect()
}

/// Thinking without a signature comes from another provider, and is not accepted.
fn thinking(reasoning: &Reasoning) -> Option<Value> {
    match reasoning {
        Reasoning::Text { text, signature: Some(signature) } => Some(json!({"type": "thinking", "thinking": text, "signature": signature})),
        Reasoning::Text { signature: None, .. } | Reasoning::Sealed { .. } => None,
        Reasoning::Opaque { data } => Some(json!({"type": "redacted_thinking", "data": data})),
    }
}

fn result(call: &Call, result: &ToolResult) -> Value {
    let mut block = json!({"type": "tool_result", "tool_use_id": plain_id(&call.id), "content": content(result)});
    if result.status.is_error() {
        block["is_error"] = true.into();
    }
    block
}

fn content(result: &ToolResult) -> Vec<Value> {
    let is_error = result.status.is_error();
    let mut blocks: Vec<Value> = result
        .content
        .iter()
        .filter_map(|piece| match piece {
            Content::Text(blank) if blank.trim().is_empty() => None,
            Content::Text(said) => Some(text(said)),
            Content::Image { media_type, .. } if is_error => Some(text(&format!("[a picture, {media_type}, left out of an error]"))),
            Content::Image { media_type, base64 } => {
                Some(json!({"type": "image", "source": {"type": "base64", "media_type": media_type, "data": base64}}))
            }
        })
        .collect();
    if blocks.is_empty() {
        blocks.push(text(NO_OUTPUT));
    }
    blocks
}
