//! Messages, as a server sends them and as a request holds them.

use serde_json::{Value, json};

use super::ReceivedResult;
use super::history::{HistoryItem, NOTE_PREFIX, PLACEHOLDER};
use super::script::{ContentBlock, ResponseContent, StopReason, split_text};

/// The events of a response before its end, and those of its end.
pub(super) fn events(said: &ResponseContent, number: usize) -> (Vec<String>, Vec<String>) {
    let usage = said
        .usage
        .map_or(json!({}), |(input, _)| json!({"input_tokens": input, "output_tokens": 1}));
    let message = json!({
        "id": format!("msg_{number}"), "type": "message", "role": "assistant", "content": [],
        "model": "scripted", "stop_reason": null, "stop_sequence": null, "usage": usage,
    });
    let mut before =
        vec![event("message_start", json!({"message": message})), event("ping", json!({}))];
    let mut count = 0;
    for (index, block) in said.blocks.iter().enumerate() {
        let begin = |block: Value| {
            event("content_block_start", json!({"index": index, "content_block": block}))
        };
        let delta = |kind: &str, key: &str, piece: &str| {
            event(
                "content_block_delta",
                json!({"index": index, "delta": {"type": kind, key: piece}}),
            )
        };
        match block {
            ContentBlock::Text(text) => {
                before.push(begin(json!({"type": "text", "text": ""})));
                before.extend(
                    split_text(text).iter().map(|piece| delta("text_delta", "text", piece)),
                );
            }
            ContentBlock::Thinking(text) => {
                before.push(begin(json!({"type": "thinking", "thinking": "", "signature": ""})));
                before.extend(
                    split_text(text).iter().map(|piece| delta("thinking_delta", "thinking", piece)),
                );
                before.push(delta("signature_delta", "signature", &format!("signature-{number}")));
            }
            ContentBlock::Call { id, name, arguments } => {
                count += 1;
                let id = id.clone().unwrap_or_else(|| format!("toolu_{number}_{count}"));
                before
                    .push(begin(json!({"type": "tool_use", "id": id, "name": name, "input": {}})));
                before.push(delta("input_json_delta", "partial_json", ""));
                before.extend(
                    split_text(arguments)
                        .iter()
                        .map(|piece| delta("input_json_delta", "partial_json", piece)),
                );
            }
        }
        before.push(event("content_block_stop", json!({"index": index})));
    }
    let stop = match said.stop {
        Some(StopReason::Length) => "max_tokens",
        Some(StopReason::ContentFilter) => "refusal",
        None if count == 0 => "end_turn",
        None => "tool_use",
    };
    let usage = said.usage.map_or(json!({}), |(_, output)| json!({"output_tokens": output}));
    let end = vec![
        event(
            "message_delta",
            json!({"delta": {"stop_reason": stop, "stop_sequence": null}, "usage": usage}),
        ),
        event("message_stop", json!({})),
    ];
    (before, end)
}

fn event(kind: &str, mut data: Value) -> String {
    data["type"] = kind.into();
    format!("event: {kind}\ndata: {data}\n\n")
}

pub(super) fn error_event(kind: &str, message: &str) -> String {
    event("error", json!({"error": {"type": kind, "message": message}}))
}

pub(super) fn error(kind: &str, message: &str) -> Value {
    json!({"type": "error", "error": {"type": kind, "message": message}})
}

fn messages(body: &Value) -> &[Value] {
    body["messages"].as_array().map(Vec::as_slice).unwrap_or_default()
}

fn blocks(message: &Value) -> &[Value] {
    message["content"].as_array().map(Vec::as_slice).unwrap_or_default()
}

pub(super) fn system_prompt(body: &Value) -> String {
    body["system"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|block| block["text"].as_str())
        .collect()
}

pub(super) fn tool_names(body: &Value) -> Vec<String> {
    body["tools"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|tool| tool["name"].as_str())
        .map(str::to_owned)
        .collect()
}

/// The results of the newest assistant message.
pub(super) fn tool_results(body: &Value) -> Vec<ReceivedResult> {
    let seen = |block: &Value| ReceivedResult {
        id: block["tool_use_id"].as_str().unwrap_or_default().to_owned(),
        text: blocks(block)
            .iter()
            .filter_map(|part| part["text"].as_str())
            .collect::<Vec<_>>()
            .join("\n"),
        is_error: block["is_error"] == true,
    };
    messages(body)
        .last()
        .map(blocks)
        .unwrap_or_default()
        .iter()
        .filter(|block| block["type"] == "tool_result")
        .map(seen)
        .collect()
}

pub(super) fn user_texts(body: &Value) -> Vec<String> {
    let users = messages(body).iter().filter(|message| message["role"] == "user").flat_map(blocks);
    users
        .filter(|block| block["type"] == "text")
        .filter_map(|block| block["text"].as_str())
        .map(str::to_owned)
        .collect()
}

/// All that was said, piece by piece, without what belongs to one request only: a note, and the
/// marks for the cache.
pub(super) fn history_items(body: &Value) -> Vec<HistoryItem> {
    let mut pieces: Vec<HistoryItem> = Vec::new();
    for message in messages(body) {
        for block in blocks(message) {
            let mut block = block.clone();
            if let Some(fields) = block.as_object_mut() {
                fields.remove("cache_control");
            }
            let is_user = message["role"] == "user";
            let piece = match (block["type"].as_str(), is_user) {
                (Some("text"), true) => {
                    match (pieces.last_mut(), block["text"].as_str().unwrap_or_default()) {
                        (_, note) if note.starts_with(NOTE_PREFIX) => continue,
                        // What the user's side says in one go is one piece, as in the other format.
                        (Some(HistoryItem::User(before)), text) => {
                            before.push_str("\n\n");
                            before.push_str(text);
                            continue;
                        }
                        (_, text) => HistoryItem::User(text.to_owned()),
                    }
                }
                (Some("tool_result"), true) => {
                    let mut frame = block.clone();
                    frame["content"] = Value::Null;
                    let is_left_out =
                        block["content"] == json!([{"type": "text", "text": PLACEHOLDER}]);
                    HistoryItem::Result {
                        result: block,
                        without_text: frame,
                        is_pruned: is_left_out,
                    }
                }
                _ => HistoryItem::Other(json!({"role": message["role"], "block": block})),
            };
            pieces.push(piece);
        }
    }
    pieces
}
