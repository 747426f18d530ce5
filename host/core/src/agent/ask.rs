//! A single request to the model, and the classification of its response.

use tokio_util::sync::CancellationToken;

use super::events::{AgentEvent, Observer};
use super::outcome::RequestOutcome;
use super::ports::{LanguageModel, ModelError, ModelErrorKind, ModelRequest};
use crate::conversation::{
    AssistantTurn, ModelResponse, OpenTurn, SentTranscript, StopReason, TokenUsage,
};

/// The outcome of a single request to the model.
pub(super) enum ModelRequestOutcome {
    /// A response, and the input tokens that the provider counted, if it reported them.
    Turn(ModelTurn, Option<u64>),
    /// The conversation is too large for the model, and no text had arrived.
    TooLarge { message: String },
    /// There is no complete response. Text that had arrived is in `partial`.
    Failed { partial: Option<AssistantTurn>, outcome: RequestOutcome },
}

/// A response, classified by the step that follows it.
pub(super) enum ModelTurn {
    /// Text without a call: the answer.
    Answer(AssistantTurn),
    /// Calls that are ready to run.
    Calls(OpenTurn),
    /// Calls of a response that the output limit or the provider cut off.
    ///
    /// They may not be what the model meant, so they are not run.
    Truncated(OpenTurn),
    /// A response with no text and no call, possibly with reasoning.
    ///
    /// Holds the stop reason and the tokens, which are billed all the same.
    Empty(StopReason, TokenUsage),
}

/// Sends one request to the model and classifies its response.
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
