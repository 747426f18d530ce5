//! What a model said in one response, before any of its calls is answered.

use serde::{Deserialize, Serialize};

use super::CallId;

/// One complete response of a model.
#[derive(Clone, Debug, PartialEq, Default, Serialize, Deserialize)]
pub struct ModelResponse {
    /// In the order in which the model produced them.
    pub blocks: Vec<ResponseBlock>,
    /// Why the model stopped.
    pub stop: StopReason,
    /// What it cost.
    pub usage: TokenUsage,
}

impl ModelResponse {
    /// The calls of this response, in the model's order.
    pub fn calls(&self) -> impl Iterator<Item = &ToolCall> {
        self.blocks.iter().filter_map(|block| match block {
            ResponseBlock::Call(call) => Some(call),
            ResponseBlock::Text(_) | ResponseBlock::Reasoning(_) => None,
        })
    }

    /// The ids of its calls, to be made distinct.
    pub(super) fn call_ids(&mut self) -> impl Iterator<Item = &mut CallId> {
        self.blocks.iter_mut().filter_map(|block| match block {
            ResponseBlock::Call(call) => Some(&mut call.id),
            ResponseBlock::Text(_) | ResponseBlock::Reasoning(_) => None,
        })
    }

    /// All text of this response, concatenated as it came.
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

/// A part of a response.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ResponseBlock {
    /// Text for the user.
    Text(String),
    /// The model's thinking.
    Reasoning(ModelReasoning),
    /// A tool that the model wants called.
    Call(ToolCall),
}

/// A tool call as the model asked for it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolCall {
    /// Ties the result to it.
    pub id: CallId,
    /// The tool's name as the model wrote it, trimmed.
    pub name: String,
    /// The arguments exactly as the model wrote them: JSON text if all went well. Empty text stands
    /// for a call without arguments, and [`INVALID_UTF8`] for bytes that are not text.
    pub arguments: String,
}

/// Stands in the arguments of a call for bytes that were not UTF-8. No JSON text holds this
/// character, so that such a call is refused, and never run with other arguments than the model
/// wrote.
pub const INVALID_UTF8: char = '\u{1A}';

/// The model's thinking, in the forms in which providers want it back.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ModelReasoning {
    /// Thinking in the clear.
    Text {
        /// What the model thought.
        text: String,
        /// Proves to the provider that it wrote the text.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        signature: Option<String>,
    },
    /// Thinking that only the provider can read.
    Opaque {
        /// As received.
        data: String,
    },
    /// The same where the provider has a name for it, and may say in short what it holds.
    Sealed {
        /// Its name.
        id: String,
        /// What can be read of it, part by part.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        summary: Vec<String>,
        /// As received.
        data: String,
    },
}

/// Why a model stopped, in the provider's own judgement, if it came to one.
#[derive(Clone, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StopReason {
    /// It had said all it wanted.
    #[default]
    End,
    /// It waits for the results of its calls.
    Calls,
    /// It ran into the limit on output.
    Length,
    /// The provider withheld the rest.
    Refused,
    /// It did not: the response broke off, and what had come of its text is all there is.
    Interrupted,
    /// Something this version does not know, as the provider named it.
    Other(String),
}

impl StopReason {
    /// A word for it; one that is not known here is the provider's.
    pub fn name(&self) -> &str {
        match self {
            Self::End => "end",
            Self::Calls => "calls",
            Self::Length => "length",
            Self::Refused => "refused",
            Self::Interrupted => "interrupted",
            Self::Other(word) => word,
        }
    }
}

/// Tokens of one response. What the provider did not tell is `None`, never zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct TokenUsage {
    /// Tokens read, those from a cache included.
    pub input: Option<u64>,
    /// Tokens written.
    pub output: Option<u64>,
    /// Of `input`, those that came from the provider's cache.
    pub cached_input: Option<u64>,
    /// Of `input`, those that were written to the provider's cache.
    pub cache_write: Option<u64>,
}

impl TokenUsage {
    /// Whether the provider told nothing.
    pub fn is_unknown(&self) -> bool {
        *self == Self::default()
    }

    /// The sum of two; a part is known if either side knows it.
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
