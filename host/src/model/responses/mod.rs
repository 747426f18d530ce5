//! OpenAI's Responses: what its newest models want to be spoken to in, since only there they think
//! and call tools in one response.
//!
//! Nothing is kept at the provider (`store: false`). So thinking travels with the conversation,
//! encrypted, and goes back to where it came from.

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

/// A model behind an address that speaks Responses.
#[derive(Debug)]
pub(super) struct ResponsesModel {
    pub(super) info: ModelInfo,
    pub(super) transport: Transport,
    pub(super) dialect: ResponsesDialect,
}

/// In what one server or model differs from another.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct ResponsesDialect {
    /// It is OpenAI itself.
    pub(super) is_openai: bool,
    /// It thinks, and hands its thinking over encrypted.
    pub(super) encrypts_thinking: bool,
    /// It tells remarks on the way from the answer, and wants that told back.
    pub(super) has_phases: bool,
    /// It takes pictures in results.
    pub(super) accepts_images: bool,
    /// How hard to think, if it was configured.
    pub(super) reasoning_effort: Option<String>,
    /// How much to write at most, if it was configured.
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
        let hand = DeltaSink::new(on_delta, request.is_shown_live);
        self.transport
            .request(
                &body,
                || stream::ResponsesStream::new(self.transport.endpoint()),
                hand,
                cancel,
            )
            .await
    }
}

/// Thinking can only be read by whoever wrote it. A session that goes on with another model,
/// another organisation or another server holds thinking that is refused; the conversation goes on
/// without it.
fn is_thinking_rejected(error: &ModelError) -> bool {
    let message = error.message.to_lowercase();
    error.kind == ModelErrorKind::Rejected
        && error.partial_text.is_empty()
        && (message.contains("encrypted content")
            || message.contains("encrypted_content")
            || message.contains("of type 'reasoning'"))
}
