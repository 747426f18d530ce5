//! The history of a conversation, in a form in which a broken one cannot be written down.
//!
//! A [`Transcript`] is a list of [`Exchange`]s: what the user said, and the assistant's turns that
//! followed. A [`Turn`] holds each call *together with* its result, so a call without a result, a result
//! without a call and a result in the wrong place have no representation. While its calls run, a turn is
//! an [`OpenTurn`]; the only way from there into the transcript is [`OpenTurn::close`], which answers
//! whatever is still unanswered.
//!
//! A transcript that is read from somewhere comes in through [`Transcript::assemble`], which mends what a file can say and a
//! transcript cannot.
//!
//! This room is pure: no I/O, no clock, no provider. How a transcript looks on the wire of a provider is
//! the business of the `model` room.

mod ids;
mod open_turn;
mod repair;
mod response;
mod result;
mod transcript;
mod turn;
mod validate;

pub use ids::{CallId, distinct_ids};
pub use open_turn::{OpenTurn, Slot};
pub use response::{Call, Reasoning, Response, ResponseBlock, StopReason, Usage};
pub use result::{Content, ResultStatus, ToolResult};
pub use transcript::{Exchange, Transcript};
pub use turn::{AnsweredCall, Block, Turn};
pub use validate::{Violation, validate};
