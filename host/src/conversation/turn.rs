//! A finished turn of the assistant: text, thinking, and calls that are all answered.

use serde::{Deserialize, Serialize};

use super::repair::UncheckedTurn;
use super::{
    CallId, ModelReasoning, ModelResponse, ResponseBlock, StopReason, TokenUsage, ToolCall,
    ToolResult, estimate,
};

/// One response of the model with the results of its calls. It has content: text that is not blank,
/// or a call.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "UncheckedTurn")]
pub struct AssistantTurn {
    blocks: Vec<TurnContentBlock>,
    stop: StopReason,
    usage: TokenUsage,
    /// With its results, as estimated when it was made.
    #[serde(skip)]
    tokens: u64,
}

/// A part of a turn.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TurnContentBlock {
    /// Text for the user; not blank.
    Text(String),
    /// The model's thinking.
    Reasoning(ModelReasoning),
    /// A call and its result.
    Call(AnsweredCall),
}

/// A call and its one result.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AnsweredCall {
    /// What the model asked for.
    pub call: ToolCall,
    /// What it is told.
    pub result: ToolResult,
}

impl AssistantTurn {
    /// A turn of these blocks without the blank ones, or none if nothing but thinking remains
    ///
    pub(super) fn from_blocks(
        blocks: Vec<TurnContentBlock>,
        stop: StopReason,
        usage: TokenUsage,
    ) -> Option<Self> {
        let blocks: Vec<TurnContentBlock> =
            blocks.into_iter().filter(|block| !is_blank(block)).collect();
        let has_content = blocks
            .iter()
            .any(|block| matches!(block, TurnContentBlock::Text(_) | TurnContentBlock::Call(_)));
        has_content.then(|| Self { tokens: estimate::blocks(&blocks), blocks, stop, usage })
    }

    /// A turn of blocks with at least one call among them: it has content, whatever else is blank.
    pub(super) fn with_calls(
        blocks: Vec<TurnContentBlock>,
        stop: StopReason,
        usage: TokenUsage,
    ) -> Self {
        let blocks: Vec<TurnContentBlock> =
            blocks.into_iter().filter(|block| !is_blank(block)).collect();
        Self { tokens: estimate::blocks(&blocks), blocks, stop, usage }
    }

    /// A turn from a response that asks for nothing. `None` if the response has calls, or no
    /// visible content.
    pub fn without_calls(response: ModelResponse) -> Option<Self> {
        let mut blocks = Vec::with_capacity(response.blocks.len());
        for block in response.blocks {
            blocks.push(match block {
                ResponseBlock::Text(text) => TurnContentBlock::Text(text),
                ResponseBlock::Reasoning(reasoning) => TurnContentBlock::Reasoning(reasoning),
                ResponseBlock::Call(_) => return None,
            });
        }
        Self::from_blocks(blocks, response.stop, response.usage)
    }

    /// What was received of a response before it broke off: its text, marked as interrupted (R-83,
    /// Thinking is left out, since a provider accepts only complete thinking.
    pub fn from_interrupted_text(text: String) -> Option<Self> {
        Self::from_blocks(
            vec![TurnContentBlock::Text(text)],
            StopReason::Interrupted,
            TokenUsage::default(),
        )
    }

    /// The parts, in the model's order.
    pub fn blocks(&self) -> &[TurnContentBlock] {
        &self.blocks
    }

    /// The calls with their results, in the model's order.
    pub fn calls(&self) -> impl Iterator<Item = &AnsweredCall> {
        self.blocks.iter().filter_map(|block| match block {
            TurnContentBlock::Call(answered) => Some(answered),
            TurnContentBlock::Text(_) | TurnContentBlock::Reasoning(_) => None,
        })
    }

    /// Whether the model asked for anything.
    pub fn has_calls(&self) -> bool {
        self.calls().next().is_some()
    }

    /// The text, concatenated as it came.
    pub fn text(&self) -> String {
        self.blocks
            .iter()
            .filter_map(|block| match block {
                TurnContentBlock::Text(text) => Some(text.as_str()),
                TurnContentBlock::Call(_) | TurnContentBlock::Reasoning(_) => None,
            })
            .collect()
    }

    /// Why the model stopped.
    pub fn stop_reason(&self) -> &StopReason {
        &self.stop
    }

    /// What the response cost.
    pub fn usage(&self) -> TokenUsage {
        self.usage
    }

    /// All of it with its results, in estimated tokens.
    pub fn tokens(&self) -> u64 {
        self.tokens
    }

    /// The ids of its calls, to be made distinct.
    pub(super) fn call_ids(&mut self) -> impl Iterator<Item = &mut CallId> {
        call_ids(&mut self.blocks)
    }

    /// Two turns without a user's word or a result between them are one.
    pub(super) fn merge(&mut self, next: Self) {
        self.blocks.extend(next.blocks);
        self.stop = next.stop;
        self.usage = self.usage.saturating_add(next.usage);
        self.tokens = estimate::merged(self.tokens, next.tokens);
    }
}

/// The ids of the calls among these blocks.
pub(super) fn call_ids(blocks: &mut [TurnContentBlock]) -> impl Iterator<Item = &mut CallId> {
    blocks.iter_mut().filter_map(|block| match block {
        TurnContentBlock::Call(answered) => Some(&mut answered.call.id),
        TurnContentBlock::Text(_) | TurnContentBlock::Reasoning(_) => None,
    })
}

fn is_blank(block: &TurnContentBlock) -> bool {
    match block {
        TurnContentBlock::Text(text) => text.trim().is_empty(),
        TurnContentBlock::Reasoning(_) | TurnContentBlock::Call(_) => false,
    }
}
