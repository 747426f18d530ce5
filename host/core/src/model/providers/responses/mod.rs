//! The client of OpenAI's Responses API.
//!
//! OpenAI's newest models require it, because only there they think and call tools in one response.
//!
//! Nothing is stored at the provider (`store: false`). Thinking therefore stays in the
//! conversation, encrypted, and is sent back to the same provider.

mod item;
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

/// A model behind an address that implements the Responses API.
#[derive(Debug)]
pub(super) struct ResponsesModel {
    pub(super) info: ModelInfo,
    pub(super) transport: Transport,
    pub(super) dialect: ResponsesDialect,
}

/// The differences between servers and models of the Responses API.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct ResponsesDialect {
    /// Whether the server is OpenAI itself.
    pub(super) is_openai: bool,
    /// Whether the model returns encrypted thinking.
    pub(super) encrypts_thinking: bool,
    /// Whether the model marks interim remarks and answers, and expects these marks in the history.
    pub(super) has_phases: bool,
    /// Whether results may contain pictures.
    pub(super) accepts_images: bool,
    /// The configured reasoning effort, if any.
    pub(super) reasoning_effort: Option<String>,
    /// The configured output limit in tokens, if any.
    pub(super) max_output: Option<u64>,
}

impl LanguageModel for ResponsesModel {
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

impl ResponsesModel {
    async fn send(
        &self,
        request: &ModelRequest<'_>,
        with_thinking: bool,
        on_delta: &mut (dyn FnMut(ResponseDelta<'_>) + Send),
        cancel: &CancellationToken,
    ) -> Result<ModelResponse, ModelError> {
        let body = request::body(&self.info.model, request, &self.dialect, with_thinking);
        let sink = DeltaSink::new(on_delta, request.is_shown_live);
        self.transport
            .request(
                &body,
                || stream::ResponsesStream::new(self.transport.endpoint()),
                sink,
                cancel,
            )
            .await
    }
}

/// Returns whether the server refused thinking in the history.
///
/// Only its author can decrypt thinking. It is refused after a session was resumed with another
/// model, organisation or server. The request is then repeated without it.
fn is_thinking_rejected(error: &ModelError) -> bool {
    let message = error.message.to_lowercase();
    error.kind == ModelErrorKind::Rejected
        && error.partial_text.is_empty()
        && (message.contains("encrypted content")
            || message.contains("encrypted_content")
            || message.contains("of type 'reasoning'"))
}
