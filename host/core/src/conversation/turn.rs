//! A complete turn of the assistant: text, reasoning, and calls with their results.

use serde::{Deserialize, Serialize};

use super::repair::UncheckedTurn;
use super::{
    CallId, ModelReasoning, ModelResponse, ResponseBlock, StopReason, TokenUsage, ToolCall,
    ToolResult, estimate,
};

/// One response of the model with the results of its calls.
///
/// It has content: text that is not blank, or at least one call.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "UncheckedTurn")]
pub struct AssistantTurn {
    blocks: Vec<TurnContentBlock>,
    stop: StopReason,
    usage: TokenUsage,
    /// The size of the turn with its results, as estimated when it was created.
    #[serde(skip)]
    tokens: u64,
}

/// A part of a turn.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TurnContentBlock {
    /// Text for the user, which is not blank.
    Text(String),
    /// Reasoning of the model.
    Reasoning(ModelReasoning),
    /// A call and its result.
    Call(AnsweredCall),
}

/// A call together with its one result.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AnsweredCall {
    /// The call that the model requested.
    pub call: ToolCall,
    /// The result that the model receives.
    pub result: ToolResult,
}

impl AssistantTurn {
    /// Creates a turn from blocks, without the blank ones.
    ///
    /// Returns `None` if only reasoning or nothing remains.
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

    /// Creates a turn from blocks of which at least one is a call.
    ///
    /// Blank blocks are left out. The call is enough content.
    pub(super) fn with_calls(
        blocks: Vec<TurnContentBlock>,
        stop: StopReason,
        usage: TokenUsage,
    ) -> Self {
        let blocks: Vec<TurnContentBlock> =
            blocks.into_iter().filter(|block| !is_blank(block)).collect();
        Self { tokens: estimate::blocks(&blocks), blocks, stop, usage }
    }

    /// Creates a turn from a response without calls.
    ///
    /// Returns `None` if the response has calls, or no visible content.
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

    /// Creates a turn from the text of a response that broke off.
    ///
    /// The turn is marked as interrupted. It has no reasoning, since a provider accepts only
    /// complete reasoning.
    pub fn from_interrupted_text(text: String) -> Option<Self> {
        Self::from_blocks(
            vec![TurnContentBlock::Text(text)],
            StopReason::Interrupted,
            TokenUsage::default(),
        )
    }

    /// Returns the parts of the turn, in the model's order.
    pub fn blocks(&self) -> &[TurnContentBlock] {
        &self.blocks
    }

    /// Returns the calls with their results, in the model's order.
    pub fn calls(&self) -> impl Iterator<Item = &AnsweredCall> {
        self.blocks.iter().filter_map(|block| match block {
            TurnContentBlock::Call(answered) => Some(answered),
            TurnContentBlock::Text(_) | TurnContentBlock::Reasoning(_) => None,
        })
    }

    /// Returns whether the turn contains a call.
    pub fn has_calls(&self) -> bool {
        self.calls().next().is_some()
    }

    /// Returns the text blocks, concatenated without a separator.
    pub fn text(&self) -> String {
        self.blocks
            .iter()
            .filter_map(|block| match block {
                TurnContentBlock::Text(text) => Some(text.as_str()),
                TurnContentBlock::Call(_) | TurnContentBlock::Reasoning(_) => None,
            })
            .collect()
    }

    /// Returns the reason why the model stopped.
    pub fn stop_reason(&self) -> &StopReason {
        &self.stop
    }

    /// Returns the tokens that the response took.
    pub fn usage(&self) -> TokenUsage {
        self.usage
    }

    /// Returns the size of the turn with its results, in estimated tokens.
    pub fn tokens(&self) -> u64 {
        self.tokens
    }

    /// Returns the IDs of the calls, so that they can be made distinct.
    pub(super) fn call_ids(&mut self) -> impl Iterator<Item = &mut CallId> {
        call_ids(&mut self.blocks)
    }

    /// Appends a turn that follows without a prompt or a result in between.
    pub(super) fn merge(&mut self, next: Self) {
        self.blocks.extend(next.blocks);
        self.stop = next.stop;
        self.usage = self.usage.saturating_add(next.usage);
        self.tokens = estimate::merged(self.tokens, next.tokens);
    }
}

/// Returns the IDs of the calls among these blocks.
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
