//! OpenAI's Responses, as a server sends them and as a request holds them.

use serde_json::{Value, json};

use super::ReceivedResult;
use super::history::{HistoryItem, NOTE_PREFIX, PLACEHOLDER};
use super::script::{ContentBlock, ResponseContent, StopReason, split_text};

/// The events of a response before its end, and those of its end.
pub(super) fn events(said: &ResponseContent, number: usize) -> (Vec<String>, Vec<String>) {
    let mut before = vec![event(
        "response.created",
        json!({"response": {"id": format!("resp_{number}"), "status": "in_progress"}}),
    )];
    let (mut calls, mut output) = (Vec::new(), Vec::new());
    for (index, block) in said.blocks.iter().enumerate() {
        let add = |item: &Value| {
            event("response.output_item.added", json!({"output_index": index, "item": item}))
        };
        let done = |item: &Value| {
            event("response.output_item.done", json!({"output_index": index, "item": item}))
        };
        let delta = |kind: &str, key: &str, piece: &str| {
            event(
                kind,
                json!({
                    "output_index": index, "item_id": format!("item_{number}_{index}"),
                    key: 0, "delta": piece,
                }),
            )
        };
        let item = match block {
            ContentBlock::Text(text) => {
                let message = |text: &str| {
                    let content = json!([{"type": "output_text", "text": text, "annotations": []}]);
                    json!({
                        "type": "message", "id": format!("msg_{number}_{index}"),
                        "role": "assistant", "content": content,
                    })
                };
                before.push(add(&message("")));
                before.extend(
                    split_text(text)
                        .iter()
                        .map(|piece| delta("response.output_text.delta", "content_index", piece)),
                );
                before.push(done(&message(text)));
                message(text)
            }
            ContentBlock::Thinking(text) => {
                let thought = |summary: Value, sealed: &str| {
                    json!({
                        "type": "reasoning", "id": format!("rs_{number}_{index}"),
                        "summary": summary, "encrypted_content": sealed,
                    })
                };
                before.push(add(&thought(json!([]), "not whole")));
                before.extend(split_text(text).iter().map(|piece| {
                    delta("response.reasoning_summary_text.delta", "summary_index", piece)
                }));
                let whole = thought(
                    json!([{"type": "summary_text", "text": text}]),
                    &format!("sealed-{number}-{index}"),
                );
                before.push(done(&whole));
                whole
            }
            ContentBlock::Call { id, name, arguments } => {
                let id = id.clone().unwrap_or_else(|| format!("call_{number}_{}", calls.len() + 1));
                let call = |arguments: &str| {
                    let item = format!("fc_{number}_{index}");
                    json!({
                        "type": "function_call", "id": item, "call_id": id,
                        "name": name, "arguments": arguments,
                    })
                };
                before.push(add(&call("")));
                calls.push((index, split_text(arguments), done(&call(arguments))));
                call(arguments)
            }
        };
        output.push(item);
    }
    // The arguments of all calls side by side: only the index tells whose a piece is.
    for round in 0..calls.iter().map(|(_, pieces, _)| pieces.len()).max().unwrap_or_default() {
        for (index, pieces, _) in &calls {
            if let Some(piece) = pieces.get(round) {
                let data = json!({"output_index": index, "item_id": "fc", "delta": piece});
                before.push(event("response.function_call_arguments.delta", data));
            }
        }
    }
    before.extend(calls.into_iter().map(|(_, _, done)| done));
    let mut response = json!({"id": format!("resp_{number}"), "output": output});
    if let Some((input, tokens)) = said.usage {
        response["usage"] =
            json!({"input_tokens": input, "output_tokens": tokens, "total_tokens": input + tokens});
    }
    let kind = match said.stop {
        Some(StopReason::Length) => {
            response["incomplete_details"] = json!({"reason": "max_output_tokens"});
            "incomplete"
        }
        Some(StopReason::ContentFilter) => {
            response["incomplete_details"] = json!({"reason": "content_filter"});
            "incomplete"
        }
        None => "completed",
    };
    response["status"] = kind.into();
    (before, vec![event(&format!("response.{kind}"), json!({"response": response}))])
}

fn event(kind: &str, mut data: Value) -> String {
    data["type"] = kind.into();
    format!("event: {kind}\ndata: {data}\n\n")
}

pub(super) fn error_event(kind: &str, message: &str) -> String {
    event("error", json!({"code": kind, "message": message, "param": null}))
}

fn items(body: &Value) -> &[Value] {
    body["input"].as_array().map(Vec::as_slice).unwrap_or_default()
}

fn is_result(item: &Value) -> bool {
    item["type"] == "function_call_output"
}

pub(super) fn system_prompt(body: &Value) -> String {
    body["instructions"].as_str().unwrap_or_default().to_owned()
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

/// The results of the newest calls.
pub(super) fn tool_results(body: &Value) -> Vec<ReceivedResult> {
    let newest = items(body)
        .iter()
        .rposition(|item| item["type"] == "function_call")
        .map_or(items(body).len(), |at| at + 1);
    let seen = |item: &Value| {
        let text = item["output"].as_str().unwrap_or_default();
        let id = item["call_id"].as_str().unwrap_or_default().to_owned();
        match text.strip_prefix("Error: ") {
            Some(text) => ReceivedResult { id, text: text.to_owned(), is_error: true },
            None => ReceivedResult { id, text: text.to_owned(), is_error: false },
        }
    };
    items(body)[newest..].iter().filter(|item| is_result(item)).map(seen).collect()
}

pub(super) fn user_texts(body: &Value) -> Vec<String> {
    items(body)
        .iter()
        .filter(|item| item["role"] == "user")
        .filter_map(|item| item["content"].as_str())
        .map(str::to_owned)
        .collect()
}

/// All that was said, piece by piece, without what belongs to one request only: a note.
pub(super) fn history_items(body: &Value) -> Vec<HistoryItem> {
    let piece = |item: &Value| match (
        item["role"].as_str(),
        item["content"].as_str(),
        item["output"].as_str(),
    ) {
        (Some("user"), Some(text), _) => HistoryItem::User(text.to_owned()),
        (_, _, Some(text)) => {
            let mut frame = item.clone();
            frame["output"] = text.starts_with("Error: ").into();
            let is_left_out = text.strip_prefix("Error: ").unwrap_or(text) == PLACEHOLDER;
            HistoryItem::Result {
                result: item.clone(),
                without_text: frame,
                is_pruned: is_left_out,
            }
        }
        _ => HistoryItem::Other(item.clone()),
    };
    let mut pieces: Vec<HistoryItem> = items(body).iter().map(piece).collect();
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
