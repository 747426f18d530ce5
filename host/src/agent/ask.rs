//! Asking the model, and sorting what it said.

use tokio_util::sync::CancellationToken;

use super::events::{Event, Observer};
use super::outcome::Outcome;
use super::ports::{Model, ModelError, ModelErrorKind, ModelRequest};
use crate::conversation::{OpenTurn, Response, Sent, StopReason, Turn, Usage};

/// What came back.
pub(super) enum Heard {
    /// A response, and how many tokens the provider counted of what it was sent.
    Said(Said, Option<u64>),
    /// The conversation is too large for the model; nothing was said.
    TooLarge { message: String },
    /// No response. What had arrived of its text is kept.
    Failed { partial: Option<Turn>, outcome: Outcome },
}

/// What a response amounts to.
pub(super) enum Said {
    /// Text and no call: the answer.
    Answer(Turn),
    /// Calls to run.
    Calls(OpenTurn),
    /// Calls of a response that was cut off, by the limit on output or by the provider, and so cannot be trusted to be what
    /// the model meant.
    CutOff(OpenTurn),
    /// Nothing at all, or nothing but thinking, and why there is no more; it is paid for all the same.
    Nothing(StopReason, Usage),
}

/// Asks once.
pub(super) async fn ask(model: &dyn Model, request: ModelRequest<'_>, observer: &dyn Observer, cancel: &CancellationToken) -> Heard {
    let mut on_delta = |delta: super::ports::Delta<'_>| observer.observe(&Event::Delta(delta));
    let conversation = request.conversation;
    match model.respond(request, &mut on_delta, cancel).await {
        Ok(response) => {
            let counted = response.usage.input;
            Heard::Said(sort(response, conversation), counted)
        }
        Err(error) => failed(error),
    }
}

fn sort(response: Response, conversation: Sent<'_>) -> Said {
    let cut_off = match response.stop {
        StopReason::End | StopReason::Calls => false,
        StopReason::Length | StopReason::Refused | StopReason::Interrupted | StopReason::Other(_) => true,
    };
    match conversation.open(response) {
        Ok(turn) if cut_off => Said::CutOff(turn),
        Ok(turn) => Said::Calls(turn),
        Err(response) => {
            let (stop, usage) = (response.stop.clone(), response.usage);
            Turn::without_calls(response).map_or(Said::Nothing(stop, usage), Said::Answer)
        }
    }
}

fn failed(error: ModelError) -> Heard {
    let ModelError { kind, message, partial_text } = error;
    let outcome = match kind {
        ModelErrorKind::Aborted => Outcome::Aborted,
        ModelErrorKind::Overflow if partial_text.is_empty() => return Heard::TooLarge { message },
        ModelErrorKind::Overflow => Outcome::Overflow { message },
        ModelErrorKind::Transport
        | ModelErrorKind::Timeout
        | ModelErrorKind::Rejected
        | ModelErrorKind::Unavailable
        | ModelErrorKind::Malformed => Outcome::ProviderError { message },
    };
    Heard::Failed { partial: Turn::interrupted_text(partial_text), outcome }
}
