//! Chat completions, as a server sends them and as a request holds them.

use serde_json::{Value, json};

use super::ReceivedResult;
use super::history::{HistoryItem, NOTE_PREFIX, PLACEHOLDER};
use super::script::{ContentBlock, ResponseContent, StopReason, split_text};

/// The events of a response before its end, and those of its end.
pub(super) fn events(said: &ResponseContent, number: usize) -> (Vec<String>, Vec<String>) {
    let chunk = |delta: Value, finish: Option<&str>| {
        let choice = json!({"index": 0, "delta": delta, "finish_reason": finish});
        format!(
            "data: {}\n\n",
            json!({
                "id": format!("chatcmpl-{number}"), "object": "chat.completion.chunk",
                "choices": [choice], "usage": null,
            })
        )
    };
    let mut before = vec![
        ": the stream begins\n\n".to_owned(),
        chunk(json!({"role": "assistant", "content": ""}), None),
    ];
    let mut calls = Vec::new();
    for block in &said.blocks {
        match block {
            ContentBlock::Text(text) => before.extend(
                split_text(text).iter().map(|piece| chunk(json!({"content": piece}), None)),
            ),
            ContentBlock::Thinking(text) => before.extend(
                split_text(text)
                    .iter()
                    .map(|piece| chunk(json!({"reasoning_content": piece}), None)),
            ),
            ContentBlock::Call { id, name, arguments } => {
                let id = id.clone().unwrap_or_else(|| format!("call_{number}_{}", calls.len() + 1));
                let begun = json!({
                    "index": calls.len(), "id": id, "type": "function",
                    "function": {"name": name, "arguments": ""},
                });
                before.push(chunk(json!({"tool_calls": [begun]}), None));
                calls.push(split_text(arguments));
            }
        }
    }
    // The arguments of all calls side by side: only the index tells whose a piece is.
    for round in 0..calls.iter().map(Vec::len).max().unwrap_or_default() {
        for (index, pieces) in calls.iter().enumerate() {
            if let Some(piece) = pieces.get(round) {
                before.push(chunk(
                    json!({"tool_calls": [{"index": index, "function": {"arguments": piece}}]}),
                    None,
                ));
            }
        }
    }
    let finish = match said.stop {
        Some(StopReason::Length) => "length",
        Some(StopReason::ContentFilter) => "content_filter",
        None if calls.is_empty() => "stop",
        None => "tool_calls",
    };
    let mut end = vec![chunk(json!({}), Some(finish))];
    if let Some((input, output)) = said.usage {
        let usage = json!({
            "prompt_tokens": input, "completion_tokens": output, "total_tokens": input + output,
        });
        end.push(format!(
            "data: {}\n\n",
            json!({"id": format!("chatcmpl-{number}"), "choices": [], "usage": usage})
        ));
    }
    end.push("data: [DONE]\n\n".to_owned());
    (before, end)
}

pub(super) fn error_event(kind: &str, message: &str) -> String {
    format!("data: {}\n\n", error(kind, message))
}

pub(super) fn error(kind: &str, message: &str) -> Value {
    json!({"error": {"message": message, "type": kind, "code": kind, "param": null}})
}

fn messages(body: &Value) -> &[Value] {
    body["messages"].as_array().map(Vec::as_slice).unwrap_or_default()
}

pub(super) fn system_prompt(body: &Value) -> String {
    messages(body)
        .iter()
        .find(|m| m["role"] == "system")
        .and_then(|m| m["content"].as_str())
        .unwrap_or_default()
        .to_owned()
}

pub(super) fn tool_names(body: &Value) -> Vec<String> {
    body["tools"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|tool| tool["function"]["name"].as_str())
        .map(str::to_owned)
        .collect()
}

/// The results of the newest assistant message.
pub(super) fn tool_results(body: &Value) -> Vec<ReceivedResult> {
    let messages = messages(body);
    let newest =
        messages.iter().rposition(|m| m["role"] == "assistant").map_or(messages.len(), |at| at + 1);
    let seen = |message: &Value| {
        let text = message["content"].as_str().unwrap_or_default();
        let id = message["tool_call_id"].as_str().unwrap_or_default().to_owned();
        match text.strip_prefix("Error: ") {
            Some(text) => ReceivedResult { id, text: text.to_owned(), is_error: true },
            None => ReceivedResult { id, text: text.to_owned(), is_error: false },
        }
    };
    messages[newest..].iter().filter(|m| m["role"] == "tool").map(seen).collect()
}

pub(super) fn user_texts(body: &Value) -> Vec<String> {
    messages(body)
        .iter()
        .filter(|m| m["role"] == "user")
        .filter_map(|m| m["content"].as_str())
        .map(str::to_owned)
        .collect()
}

/// All that was said, piece by piece, without what belongs to one request only: the system prompt,
/// and a note.
pub(super) fn history_items(body: &Value) -> Vec<HistoryItem> {
    let mut pieces = Vec::new();
    for message in messages(body) {
        pieces.push(match (message["role"].as_str(), message["content"].as_str()) {
            (Some("system"), _) => continue,
            (Some("user"), Some(text)) => HistoryItem::User(text.to_owned()),
            (Some("tool"), Some(text)) => {
                let mut frame = message.clone();
                frame["content"] = text.starts_with("Error: ").into();
                let is_left_out = text.strip_prefix("Error: ").unwrap_or(text) == PLACEHOLDER;
                HistoryItem::Result {
                    result: message.clone(),
                    without_text: frame,
                    is_pruned: is_left_out,
                }
            }
            _ => HistoryItem::Other(message.clone()),
        });
    }
    if let Some(HistoryItem::User(text)) = pieces.last_mut()
        && let Some(at) = text.rfind(NOTE_PREFIX)
    {
        text.truncate(text[..at].trim_end_matches("\n\n").len());
        if text.is_empty() {
            pieces.pop();
        }
    }
    pieces
}
