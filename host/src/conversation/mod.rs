//! The history of a conversation, in a form in which a broken one cannot be written down.
//!
//! A [`Transcript`] is a list of [`UserExchange`]s: what the user said, and the assistant's turns
//! that followed. A [`AssistantTurn`] holds each call *together with* its result, so a call without
//! a result, a result without a call and a result in the wrong place have no representation. While
//! its calls run, a turn is an [`OpenTurn`]; the only way from there into the transcript is
//! [`OpenTurn::close`], which answers whatever is still unanswered.
//!
//! What was said stays in the transcript for good. What of it is sent is [`SentTranscript`]: a
//! [`RollingSummary`] can stand for its oldest part, and old results are left out where that pays
//! ([`PruneLimits`]).
//!
//! A transcript that is read from somewhere comes in through [`Transcript::assemble`], which mends
//! what a file can say and a transcript cannot.
//!
//! This room is pure: no I/O, no clock, no provider. How a transcript looks on the wire of a
//! provider is the business of the `model` room.

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
pub use response::{
    INVALID_UTF8, ModelReasoning, ModelResponse, ResponseBlock, StopReason, TokenUsage, ToolCall,
};
pub use result::{ResultContent, ResultStatus, ToolResult};
pub use sent::{PRUNED_PLACEHOLDER, SentTranscript, SentTurn};
pub use summary::{RollingSummary, TurnIndex};
pub use transcript::{Transcript, UserExchange};
pub use turn::{AnsweredCall, AssistantTurn, TurnContentBlock};
pub use validate::{TranscriptViolation, validate};
