//! The history of a conversation, in types that cannot represent an invalid one.
//!
//! A [`Transcript`] is a list of [`UserExchange`]s: a prompt of the user, and the turns of the
//! assistant that followed. An [`AssistantTurn`] contains each call *together with* its result. So
//! a call without a result, a result without a call and a result in the wrong place have no
//! representation. While its calls run, a turn is an [`OpenTurn`]. Only [`OpenTurn::close`] turns
//! it into a part of the transcript, and adds the missing results.
//!
//! The transcript contains the complete conversation. [`SentTranscript`] is the part of it that is
//! sent to a provider: a [`RollingSummary`] can replace the oldest turns, and old results are left
//! out where that saves enough ([`PruneLimits`]).
//!
//! A transcript from an external source is read with [`Transcript::assemble`], which repairs
//! whatever the types cannot represent.
//!
//! This module is pure: it uses no I/O, no clock and no provider. The `model` module translates a
//! transcript to the format of a provider.

#[cfg(test)]
mod contract_tests;
pub mod estimate;
mod ids;
mod open_turn;
mod prune;
mod repair;
mod response;
mod result;
mod sent;
mod summary;
#[cfg(test)]
pub(crate) mod test_util;
mod transcript;
mod turn;
mod validate;

pub use ids::CallId;
pub use open_turn::{CallProgressSlot, OpenTurn};
pub use prune::{PruneLimits, PrunedOutput};
pub use repair::FoundMessage;
pub(crate) use response::INVALID_UTF8;
pub use response::{
    ModelReasoning, ModelResponse, ResponseBlock, StopReason, TokenUsage, ToolCall,
};
pub use result::{ResultContent, ResultStatus, ToolResult};
pub use sent::{PRUNED_PLACEHOLDER, SentTranscript, SentTurn};
pub use summary::{RollingSummary, TurnIndex};
pub use transcript::{Transcript, UserExchange};
pub use turn::{AnsweredCall, AssistantTurn, TurnContentBlock};
pub use validate::{TranscriptViolation, validate};
