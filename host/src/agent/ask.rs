//! Asking the model, and sorting what it said.

use tokio_util::sync::CancellationToken;

use super::events::{AgentEvent, Observer};
use super::outcome::RequestOutcome;
use super::ports::{LanguageModel, ModelError, ModelErrorKind, ModelRequest};
use crate::conversation::{
    AssistantTurn, ModelResponse, OpenTurn, SentTranscript, StopReason, TokenUsage,
};

/// What came back.
pub(super) enum ModelRequestOutcome {
    /// A response, and how many tokens the provider counted of what it was sent.
    Turn(ModelTurn, Option<u64>),
    /// The conversation is too large for the model; nothing was said.
    TooLarge { message: String },
    /// No response. What had arrived of its text is kept.
    Failed { partial: Option<AssistantTurn>, outcome: RequestOutcome },
}

/// What a response amounts to.
pub(super) enum ModelTurn {
    /// Text and no call: the answer.
    Answer(AssistantTurn),
    /// Calls to run.
    Calls(OpenTurn),
    /// Calls of a response that was cut off, by the limit on output or by the provider, and so
    /// cannot be trusted to be what the model meant.
    Truncated(OpenTurn),
    /// Nothing at all, or nothing but thinking, and why there is no more; it is paid for all the
    /// same.
    Empty(StopReason, TokenUsage),
}

/// Asks once.
pub(super) async fn ask(
    model: &dyn LanguageModel,
    request: ModelRequest<'_>,
    observer: &dyn Observer,
    cancel: &CancellationToken,
) -> ModelRequestOutcome {
    let mut on_delta =
        |delta: super::ports::ResponseDelta<'_>| observer.observe(&AgentEvent::Delta(delta));
    let conversation = request.conversation;
    match model.respond(request, &mut on_delta, cancel).await {
        Ok(response) => {
            let counted = response.usage.input;
            ModelRequestOutcome::Turn(classify(response, conversation), counted)
        }
        Err(error) => classify_error(error),
    }
}

fn classify(response: ModelResponse, conversation: SentTranscript<'_>) -> ModelTurn {
    let cut_off = match response.stop {
        StopReason::End | StopReason::Calls => false,
        StopReason::Length
        | StopReason::Refused
        | StopReason::Interrupted
        | StopReason::Other(_) => true,
    };
    match conversation.open_turn(response) {
        Ok(turn) if cut_off => ModelTurn::Truncated(turn),
        Ok(turn) => ModelTurn::Calls(turn),
        Err(response) => {
            let (stop, usage) = (response.stop.clone(), response.usage);
            AssistantTurn::without_calls(response)
                .map_or(ModelTurn::Empty(stop, usage), ModelTurn::Answer)
        }
    }
}

fn classify_error(error: ModelError) -> ModelRequestOutcome {
    let ModelError { kind, message, partial_text } = error;
    let outcome = match kind {
        ModelErrorKind::Aborted => RequestOutcome::Aborted,
        ModelErrorKind::Overflow if partial_text.is_empty() => {
            return ModelRequestOutcome::TooLarge { message };
        }
        ModelErrorKind::Overflow => RequestOutcome::Overflow { message },
        ModelErrorKind::Transport
        | ModelErrorKind::Timeout
        | ModelErrorKind::Rejected
        | ModelErrorKind::Unavailable
        | ModelErrorKind::Malformed => RequestOutcome::ProviderError { message },
    };
    ModelRequestOutcome::Failed {
        partial: AssistantTurn::from_interrupted_text(partial_text),
        outcome,
    }
}
