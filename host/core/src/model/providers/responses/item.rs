//! The output items of a response of the Responses API.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::conversation::{CallId, ModelReasoning, ResponseBlock, ToolCall};
use crate::model::providers::wire::PART_OVERHEAD;

/// An output item of a response, as far as it was received.
pub(super) enum ResponseOutputItem {
    Text(String),
    Thinking {
        id: String,
        /// The parts of the summary by index.
        summary: BTreeMap<u64, String>,
        data: String,
    },
    Call {
        id: String,
        name: String,
        arguments: String,
    },
    /// An item of a type that this version does not know.
    Other,
}

impl ResponseOutputItem {
    pub(super) fn from_json(item: &Value) -> Self {
        let texts = |list: &Value, key: &str| -> Vec<String> {
            list.as_array()
                .into_iter()
                .flatten()
                .filter_map(|part| part[key].as_str())
                .map(str::to_owned)
                .collect()
        };
        match item["type"].as_str().unwrap_or_default() {
            "message" => {
                let parts = item["content"].as_array().map(Vec::as_slice).unwrap_or_default();
                Self::Text(
                    parts
                        .iter()
                        .filter_map(|part| part["text"].as_str().or(part["refusal"].as_str()))
                        .collect(),
                )
            }
            "reasoning" => Self::Thinking {
                id: string_field(item, "id"),
                summary: (0..)
                    .zip(
                        [texts(&item["summary"], "text"), texts(&item["content"], "text")].concat(),
                    )
                    .collect(),
                data: string_field(item, "encrypted_content"),
            },
            "function_call" => {
                let id = if item["call_id"].is_string() {
                    string_field(item, "call_id")
                } else {
                    string_field(item, "id")
                };
                Self::Call {
                    id,
                    name: string_field(item, "name").trim().to_owned(),
                    arguments: string_field(item, "arguments"),
                }
            }
            _ => Self::Other,
        }
    }

    /// Returns the size of the stored content in bytes.
    pub(super) fn size(&self) -> usize {
        match self {
            Self::Text(text) => text.len(),
            Self::Thinking { id, summary, data } => {
                id.len()
                    + data.len()
                    + summary.values().map(|part| PART_OVERHEAD + part.len()).sum::<usize>()
            }
            Self::Call { id, name, arguments } => id.len() + name.len() + arguments.len(),
            Self::Other => 0,
        }
    }

    /// Returns an empty item of the same type.
    pub(super) fn to_empty(&self) -> Self {
        match self {
            Self::Text(_) => Self::Text(String::new()),
            Self::Thinking { .. } => {
                Self::Thinking { id: String::new(), summary: BTreeMap::new(), data: String::new() }
            }
            Self::Call { .. } => {
                Self::Call { id: String::new(), name: String::new(), arguments: String::new() }
            }
            Self::Other => Self::Other,
        }
    }

    pub(super) fn into_block(self) -> Option<ResponseBlock> {
        match self {
            Self::Text(text) => (!text.is_empty()).then_some(ResponseBlock::Text(text)),
            Self::Thinking { id, summary, data } if !id.is_empty() && !data.is_empty() => {
                Some(ResponseBlock::Reasoning(ModelReasoning::Sealed {
                    id,
                    summary: summary.into_values().collect(),
                    data,
                }))
            }
            // Without its encrypted form, thinking cannot be sent back. It is kept for display.
            Self::Thinking { summary, .. } => {
                let text = summary.into_values().collect::<Vec<_>>().join("\n\n");
                (!text.is_empty()).then_some(ResponseBlock::Reasoning(ModelReasoning::Text {
                    text,
                    signature: None,
                }))
            }
            Self::Call { id, name, arguments } => {
                Some(ResponseBlock::Call(ToolCall { id: CallId::new(id), name, arguments }))
            }
            Self::Other => None,
        }
    }
}

/// Returns the ids of an item.
pub(super) fn item_ids(item: &Value) -> Vec<String> {
    ["id", "call_id"]
        .into_iter()
        .map(|key| string_field(item, key))
        .filter(|name| !name.is_empty())
        .collect()
}

pub(super) fn string_field(value: &Value, key: &str) -> String {
    value[key].as_str().unwrap_or_default().to_owned()
}
