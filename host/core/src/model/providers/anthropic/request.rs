//! Encodes a request in the format of Anthropic's Messages API.
//!
//! Everything of the user's side between two assistant messages becomes one user message, with the
//! results before the text. Cache markers are on the system prompt, on the last tool,
//! and on the last block that the next request will repeat; a note comes after that block. Pictures
//! in a failed result are replaced by a text, because errors may only contain text.

use serde_json::{Value, json};

use crate::agent::ports::{ModelRequest, ToolChoice};
use crate::conversation::{
    AnsweredCall, AssistantTurn, ModelReasoning, ResultContent, ToolCall, ToolResult,
    TurnContentBlock,
};
use crate::model::providers::wire::{NO_OUTPUT, wire_input, wire_name, wire_summary};
use crate::model::providers::wire_ids::plain_id;

/// The parts of a request that depend on the model.
pub(super) struct RequestShape<'a> {
    pub(super) model: &'a str,
    pub(super) max_tokens: u64,
    /// Whether to request thinking whose length the model chooses.
    pub(super) adaptive_thinking: bool,
    /// Whether to send earlier thinking back.
    pub(super) include_thinking: bool,
}

/// Returns the body of the request.
pub(super) fn body(shape: &RequestShape<'_>, request: &ModelRequest<'_>) -> Value {
    let mut body = json!({"model": shape.model, "max_tokens": shape.max_tokens, "stream": true});
    if shape.adaptive_thinking {
        body["thinking"] = json!({"type": "adaptive", "display": "summarized"});
    }
    if !request.system.trim().is_empty() {
        body["system"] = json!([{
            "type": "text", "text": request.system, "cache_control": {"type": "ephemeral"},
        }]);
    }
    if !request.tools.is_empty() {
        let mut tools: Vec<Value> = request
            .tools
            .iter()
            .map(|tool| {
                json!({
                    "name": tool.name, "description": tool.description,
                    "input_schema": tool.input_schema,
                })
            })
            .collect();
        mark_for_cache(tools.last_mut());
        body["tools"] = tools.into();
        if request.tool_choice == ToolChoice::None {
            body["tool_choice"] = json!({"type": "none"});
        }
    }
    body["messages"] = messages(request, shape.include_thinking)
        .into_iter()
        .map(AnthropicMessage::into_json)
        .collect();
    body
}

struct AnthropicMessage {
    role: &'static str,
    content: Vec<Value>,
}

impl AnthropicMessage {
    fn into_json(self) -> Value {
        json!({"role": self.role, "content": self.content})
    }
}

fn messages(request: &ModelRequest<'_>, with_thinking: bool) -> Vec<AnthropicMessage> {
    let mut messages = Vec::new();
    let conversation = request.conversation;
    push_blocks(
        &mut messages,
        "user",
        conversation.summary().map(|summary| text_block(&wire_summary(summary))),
    );
    for (prompt, turns) in conversation.exchanges() {
        push_blocks(&mut messages, "user", [text_block(prompt)]);
        for turn in turns {
            push_blocks(&mut messages, "assistant", assistant_blocks(turn.turn(), with_thinking));
            push_blocks(
                &mut messages,
                "user",
                turn.results().map(|(call, answer)| result_block(call, answer)),
            );
        }
    }
    mark_for_cache(
        messages
            .last_mut()
            .and_then(|last| last.content.iter_mut().rev().find(|block| is_cacheable(block))),
    );
    if let Some(note) = request.note {
        push_blocks(&mut messages, "user", [text_block(note)]);
    }
    messages
}

/// Appends blocks to the last message if it has the same role, or else as a new message.
fn push_blocks(
    messages: &mut Vec<AnthropicMessage>,
    role: &'static str,
    blocks: impl IntoIterator<Item = Value>,
) {
    let mut blocks = blocks.into_iter().peekable();
    if blocks.peek().is_none() {
        return;
    }
    match messages.last_mut() {
        Some(last) if last.role == role => last.content.extend(blocks),
        _ => messages.push(AnthropicMessage { role, content: blocks.collect() }),
    }
}

fn text_block(text: &str) -> Value {
    json!({"type": "text", "text": text})
}

fn mark_for_cache(block: Option<&mut Value>) {
    if let Some(block) = block {
        block["cache_control"] = json!({"type": "ephemeral"});
    }
}

fn is_cacheable(block: &Value) -> bool {
    !matches!(block["type"].as_str(), Some("thinking" | "redacted_thinking"))
}

fn assistant_blocks(turn: &AssistantTurn, with_thinking: bool) -> Vec<Value> {
    turn.blocks()
        .iter()
        .filter_map(|block| match block {
            TurnContentBlock::Text(said) => Some(text_block(said)),
            TurnContentBlock::Reasoning(reasoning) if with_thinking => thinking_block(reasoning),
            TurnContentBlock::Reasoning(_) => None,
            TurnContentBlock::Call(AnsweredCall { call, .. }) => Some(json!({
                "type": "tool_use", "id": plain_id(&call.id), "name": wire_name(&call.name),
                "input": wire_input(&call.arguments),
            })),
        })
        .collect()
}

/// Encodes thinking. Thinking without a signature is from another provider and is not accepted.
fn thinking_block(reasoning: &ModelReasoning) -> Option<Value> {
    match reasoning {
        ModelReasoning::Text { text, signature: Some(signature) } => {
            Some(json!({"type": "thinking", "thinking": text, "signature": signature}))
        }
        ModelReasoning::Text { signature: None, .. } | ModelReasoning::Sealed { .. } => None,
        ModelReasoning::Opaque { data } => Some(json!({"type": "redacted_thinking", "data": data})),
    }
}

fn result_block(call: &ToolCall, result: &ToolResult) -> Value {
    let mut block = json!({
        "type": "tool_result", "tool_use_id": plain_id(&call.id), "content": result_content(result),
    });
    if result.status.is_error() {
        block["is_error"] = true.into();
    }
    block
}

fn result_content(result: &ToolResult) -> Vec<Value> {
    let is_error = result.status.is_error();
    let mut blocks: Vec<Value> = result
        .content
        .iter()
        .filter_map(|piece| match piece {
            ResultContent::Text(blank) if blank.trim().is_empty() => None,
            ResultContent::Text(said) => Some(text_block(said)),
            ResultContent::Image { media_type, .. } if is_error => {
                Some(text_block(&format!("[image, {media_type}, omitted from an error]")))
            }
            ResultContent::Image { media_type, base64 } => Some(json!({
                "type": "image",
                "source": {"type": "base64", "media_type": media_type, "data": base64},
            })),
        })
        .collect();
    if blocks.is_empty() {
        blocks.push(text_block(NO_OUTPUT));
    }
    blocks
}
