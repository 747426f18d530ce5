//! The history of a conversation, in a form in which a broken one cannot be written down.
//!
//! A [`Transcript`] is a list of [`Exchange`]s: what the user said, and the assistant's turns that
//! followed. A [`Turn`] holds each call *together with* its result, so a call without a result, a result
//! without a call and a result in the wrong place have no representation. While its calls run, a turn is
//! an [`OpenTurn`]; the only way from there into the transcript is [`OpenTurn::close`], which answers
//! whatever is still unanswered.
//!
//! What was said stays in the transcript for good. What of it is sent is [`Sent`]: a [`Summary`] can stand for its oldest
//! part, and old results are left out where that pays ([`Pruning`]).
//!
//! A transcript that is read from somewhere comes in through [`Transcript::assemble`], which mends what a file can say and a
//! transcript cannot.
//!
//! This room is pure: no I/O, no clock, no provider. How a transcript looks on the wire of a provider is
//! the business of the `model` room.

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
pub(crate) mod test_kit;
mod transcript;
mod turn;
mod validate;

pub use ids::CallId;
pub use open_turn::{OpenTurn, Slot};
pub use prune::{Pruned, Pruning};
pub use repair::Part;
pub use response::{Call, NOT_UTF8, Reasoning, Response, ResponseBlock, StopReason, Usage};
pub use result::{Content, ResultStatus, ToolResult};
pub use sent::{PLACEHOLDER, Sent, SentTurn};
pub use summary::{Place, Summary};
pub use transcript::{Exchange, Transcript};
pub use turn::{AnsweredCall, Block, Turn};
pub use validate::{Violation, validate};
