//! The client of Anthropic's Messages API.

mod request;
pub(super) mod stream;
#[cfg(test)]
mod tests;

use futures_util::future::BoxFuture;
use tokio_util::sync::CancellationToken;

use super::http::Transport;
use super::wire::DeltaSink;
use crate::agent::ports::{
    LanguageModel, ModelError, ModelErrorKind, ModelInfo, ModelRequest, ResponseDelta,
};
use crate::conversation::ModelResponse;

/// A Claude model behind an API of Anthropic's format.
#[derive(Debug)]
pub(super) struct AnthropicModel {
    pub(super) info: ModelInfo,
    pub(super) transport: Transport,
    pub(super) max_tokens: u64,
    /// Whether the model supports adaptive thinking.
    pub(super) adaptive_thinking: bool,
}

impl LanguageModel for AnthropicModel {
    fn info(&self) -> &ModelInfo {
        &self.info
    }

    fn respond<'a>(
        &'a self,
        request: ModelRequest<'a>,
        on_delta: &'a mut (dyn FnMut(ResponseDelta<'_>) + Send),
        cancel: &'a CancellationToken,
    ) -> BoxFuture<'a, Result<ModelResponse, ModelError>> {
        Box::pin(async move {
            match self.send(&request, true, on_delta, cancel).await {
                Err(error) if is_thinking_rejected(&error) => {
                    self.send(&request, false, on_delta, cancel).await
                }
                outcome => outcome,
            }
        })
    }
}

impl AnthropicModel {
    async fn send(
        &self,
        request: &ModelRequest<'_>,
        with_thinking: bool,
        on_delta: &mut (dyn FnMut(ResponseDelta<'_>) + Send),
        cancel: &CancellationToken,
    ) -> Result<ModelResponse, ModelError> {
        let shape = request::RequestShape {
            model: &self.info.model,
            max_tokens: self.max_tokens,
            adaptive_thinking: self.adaptive_thinking,
            include_thinking: with_thinking,
        };
        let body = request::body(&shape, request);
        let sink = DeltaSink::new(on_delta, request.is_shown_live);
        self.transport
            .request(
                &body,
                || stream::AnthropicStream::new(self.transport.endpoint()),
                sink,
                cancel,
            )
            .await
    }
}

/// Returns whether the server refused thinking in the history.
///
/// Thinking is bound to the model that produced it and to the preceding conversation. It is refused
/// after a session was resumed with another model, or after the start was summarised. The request
/// is then repeated without it.
fn is_thinking_rejected(error: &ModelError) -> bool {
    let message = error.message.to_lowercase();
    error.kind == ModelErrorKind::Rejected
        && error.partial_text.is_empty()
        && message.contains("thinking")
        && (message.contains("signature")
            || message.contains("cannot be modified")
            || message.contains("different model"))
}
