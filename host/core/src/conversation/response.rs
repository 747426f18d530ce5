//! The response of a model, before any of its calls has a result.

use serde::{Deserialize, Serialize};

use super::CallId;

/// A single response of a model.
#[derive(Clone, Debug, PartialEq, Default, Serialize, Deserialize)]
pub struct ModelResponse {
    /// The parts of the response, in the order in which the model produced them.
    pub blocks: Vec<ResponseBlock>,
    /// The reason why the model stopped.
    pub stop: StopReason,
    /// The tokens that the response took.
    pub usage: TokenUsage,
}

impl ModelResponse {
    /// Returns the calls of the response, in the model's order.
    pub fn calls(&self) -> impl Iterator<Item = &ToolCall> {
        self.blocks.iter().filter_map(|block| match block {
            ResponseBlock::Call(call) => Some(call),
            ResponseBlock::Text(_) | ResponseBlock::Reasoning(_) => None,
        })
    }

    /// Returns the IDs of the calls, so that they can be made distinct.
    pub(super) fn call_ids(&mut self) -> impl Iterator<Item = &mut CallId> {
        self.blocks.iter_mut().filter_map(|block| match block {
            ResponseBlock::Call(call) => Some(&mut call.id),
            ResponseBlock::Text(_) | ResponseBlock::Reasoning(_) => None,
        })
    }

    /// Returns the text blocks, concatenated without a separator.
    pub fn text(&self) -> String {
        self.blocks
            .iter()
            .filter_map(|block| match block {
                ResponseBlock::Text(text) => Some(text.as_str()),
                ResponseBlock::Call(_) | ResponseBlock::Reasoning(_) => None,
            })
            .collect()
    }
}

/// A part of a model response.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ResponseBlock {
    /// Text that is meant for the user.
    Text(String),
    /// Reasoning of the model.
    Reasoning(ModelReasoning),
    /// A request of the model to call a tool.
    Call(ToolCall),
}

/// A tool call as the model wrote it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolCall {
    /// The ID that links the result to the call.
    pub id: CallId,
    /// The name of the tool as the model wrote it, trimmed.
    pub name: String,
    /// The arguments exactly as the model wrote them, normally JSON text.
    ///
    /// An empty string means no arguments. The character U+001A replaces bytes that are not UTF-8.
    pub arguments: String,
}

/// The character that replaces bytes that are not UTF-8 in the arguments of a call.
///
/// Valid JSON cannot contain this character. So such a call is refused, instead of run with
/// arguments that differ from what the model wrote.
pub(crate) const INVALID_UTF8: char = '\u{1A}';

/// The reasoning of a model, in the forms that providers want to receive again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ModelReasoning {
    /// Reasoning in plain text.
    Text {
        /// The text of the reasoning.
        text: String,
        /// The provider's signature, which proves that the model wrote the text.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        signature: Option<String>,
    },
    /// Reasoning that only the provider can read.
    Opaque {
        /// The data exactly as received.
        data: String,
    },
    /// Encrypted reasoning with an ID and possibly a readable summary.
    Sealed {
        /// The ID that the provider gave it.
        id: String,
        /// The readable summary, part by part.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        summary: Vec<String>,
        /// The encrypted data exactly as received.
        data: String,
    },
}

/// The reason why a model stopped, as the provider reports it.
#[derive(Clone, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum StopReason {
    /// The model finished its response.
    #[default]
    End,
    /// The model waits for the results of its calls.
    Calls,
    /// The response reached the output limit.
    Length,
    /// The provider withheld the rest of the response.
    Refused,
    /// The response broke off, and the text that had arrived is all there is.
    Interrupted,
    /// A reason that this version does not know, as the provider named it.
    Other(String),
}

impl StopReason {
    /// Returns the name of the reason; an unknown reason has the provider's name.
    pub fn name(&self) -> &str {
        match self {
            Self::End => "end",
            Self::Calls => "calls",
            Self::Length => "length",
            Self::Refused => "refused",
            Self::Interrupted => "interrupted",
            Self::Other(name) => name,
        }
    }
}

/// The token counts of one response.
///
/// A count that the provider did not report is `None`, never zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct TokenUsage {
    /// The input tokens, including those from a cache.
    pub input: Option<u64>,
    /// The output tokens that the model produced.
    pub output: Option<u64>,
    /// The part of `input` that came from the provider's cache.
    pub cached_input: Option<u64>,
    /// The part of `input` that was written to the provider's cache.
    pub cache_write: Option<u64>,
}

impl TokenUsage {
    /// Returns whether the provider reported no count at all.
    pub fn is_unknown(&self) -> bool {
        *self == Self::default()
    }

    /// Adds two token counts; a sum is known if either of its parts is known.
    pub fn saturating_add(self, other: Self) -> Self {
        let add = |a: Option<u64>, b: Option<u64>| match (a, b) {
            (None, None) => None,
            (a, b) => Some(a.unwrap_or(0).saturating_add(b.unwrap_or(0))),
        };
        Self {
            input: add(self.input, other.input),
            output: add(self.output, other.output),
            cached_input: add(self.cached_input, other.cached_input),
            cache_write: add(self.cache_write, other.cache_write),
        }
    }
}
