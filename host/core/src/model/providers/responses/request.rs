//! Encodes a request in the format of OpenAI's Responses API.
//!
//! Where the format leaves a choice:
//!
//! - Messages and calls of the assistant are sent without the provider's ids. An id refers to
//!   something stored at the provider, and nothing is. Only thinking must have its id.
//! - OpenAI accepts assistant messages as plain text. Other servers recognise items by the full
//!   form of an answer: llama.cpp by `type` and `output_text`, vLLM also by `id`, `status` and
//!   `annotations`. They get all of these.
//! - Thinking is sent before the output it led to. Without that output it is refused, so thinking
//!   at the end of a turn is omitted.
//! - Errors have no mark in this format. Their text starts with `Error:`, as in chat completions.
//! - Schemas are not `strict`, because that would make every argument required.

use serde_json::{Value, json};

use super::ResponsesDialect;
use crate::agent::ports::{ModelRequest, ToolChoice};
use crate::conversation::{
    AnsweredCall, AssistantTurn, ModelReasoning, SentTurn, ToolCall, ToolResult, TurnContentBlock,
    TurnIndex,
};
use crate::model::providers::wire::{
    image_unsupported, wire_arguments, wire_name, wire_schema, wire_summary, wire_text,
};

/// Returns the body of the request.
pub(super) fn body(
    model: &str,
    request: &ModelRequest<'_>,
    dialect: &ResponsesDialect,
    with_thinking: bool,
) -> Value {
    let input = ResponseInputItems {
        dialect,
        include_thinking: with_thinking,
        items: Vec::new(),
        pending_user: Vec::new(),
    }
    .build(request);
    let mut body = json!({"model": model, "input": input, "stream": true, "store": false});
    if !request.system.trim().is_empty() {
        body["instructions"] = request.system.into();
    }
    if !request.tools.is_empty() {
        let tool = |tool: &crate::agent::ports::ToolDefinition| {
            json!({
                "type": "function", "name": tool.name, "description": tool.description,
                "parameters": wire_schema(&tool.input_schema), "strict": false,
            })
        };
        body["tools"] = request.tools.iter().map(tool).collect();
        if request.tool_choice == ToolChoice::None {
            body["tool_choice"] = "none".into();
        }
    }
    if dialect.encrypts_thinking {
        body["include"] = json!(["reasoning.encrypted_content"]);
    }
    if let Some(effort) = &dialect.reasoning_effort {
        body["reasoning"] = json!({"effort": effort});
    }
    if let Some(max) = dialect.max_output {
        body["max_output_tokens"] = max.into();
    }
    body
}

/// The finished items, and user texts that are not in an item yet.
///
/// Adjacent user texts become one item.
struct ResponseInputItems<'a> {
    dialect: &'a ResponsesDialect,
    include_thinking: bool,
    items: Vec<Value>,
    pending_user: Vec<String>,
}

impl ResponseInputItems<'_> {
    fn build(mut self, request: &ModelRequest<'_>) -> Vec<Value> {
        self.pending_user.extend(request.conversation.summary().map(wire_summary));
        for (prompt, turns) in request.conversation.exchanges() {
            self.pending_user.push(prompt.to_owned());
            for turn in turns {
                self.flush();
                self.push_assistant(turn);
                self.items.extend(
                    turn.results().map(|(call, answer)| result_item(call, answer, self.dialect)),
                );
            }
        }
        self.pending_user.extend(request.note.map(str::to_owned));
        self.flush();
        self.items
    }

    fn flush(&mut self) {
        let texts = std::mem::take(&mut self.pending_user);
        if !texts.is_empty() {
            self.items
                .push(json!({"type": "message", "role": "user", "content": texts.join("\n\n")}));
        }
    }

    fn push_assistant(&mut self, sent: SentTurn<'_>) {
        let turn = sent.turn();
        let last = turn
            .blocks()
            .iter()
            .rposition(|block| !matches!(block, TurnContentBlock::Reasoning(_)))
            .unwrap_or_default();
        for (at, block) in turn.blocks().iter().enumerate() {
            match block {
                TurnContentBlock::Text(text) => {
                    self.items.push(self.message_item(text, turn, (sent.index(), at)))
                }
                TurnContentBlock::Reasoning(ModelReasoning::Sealed { id, summary, data })
                    if self.include_thinking && self.dialect.encrypts_thinking && at < last =>
                {
                    let summary: Vec<Value> = summary
                        .iter()
                        .map(|text| json!({"type": "summary_text", "text": text}))
                        .collect();
                    self.items.push(json!({
                        "type": "reasoning", "id": id, "summary": summary,
                        "encrypted_content": data,
                    }));
                }
                // Thinking of other providers is not accepted.
                TurnContentBlock::Reasoning(
                    ModelReasoning::Sealed { .. }
                    | ModelReasoning::Text { .. }
                    | ModelReasoning::Opaque { .. },
                ) => {}
                TurnContentBlock::Call(AnsweredCall { call, .. }) => {
                    let (name, arguments) =
                        (wire_name(&call.name), wire_arguments(&call.arguments));
                    self.items.push(json!({
                        "type": "function_call", "call_id": call.id, "name": name,
                        "arguments": arguments,
                    }));
                }
            }
        }
    }

    fn message_item(
        &self,
        text: &str,
        turn: &AssistantTurn,
        (turn_index, block): (TurnIndex, usize),
    ) -> Value {
        let mut item = json!({"type": "message", "role": "assistant", "content": text});
        if !self.dialect.is_openai {
            // The position of a block never changes and is unique, so the id is stable.
            item["id"] = format!("msg_{}_{}_{block}", turn_index.exchange, turn_index.turn).into();
            item["status"] = "completed".into();
            item["content"] = json!([{"type": "output_text", "text": text, "annotations": []}]);
        }
        if self.dialect.has_phases {
            item["phase"] = if turn.has_calls() { "commentary" } else { "final_answer" }.into();
        }
        item
    }
}

fn result_item(call: &ToolCall, result: &ToolResult, dialect: &ResponsesDialect) -> Value {
    let mut pictures = Vec::new();
    let text = wire_text(result, |media_type, base64| {
        if !dialect.accepts_images {
            return Some(image_unsupported(media_type));
        }
        pictures.push(json!({
            "type": "input_image", "image_url": format!("data:{media_type};base64,{base64}"),
        }));
        None
    });
    let output = if pictures.is_empty() {
        Value::from(text)
    } else {
        [json!({"type": "input_text", "text": text})].into_iter().chain(pictures).collect()
    };
    json!({"type": "function_call_output", "call_id": call.id, "output": output})
}
