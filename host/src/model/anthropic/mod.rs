//! Anthropic's messages.

mod request;
pub(super) mod stream;
#[cfg(test)]
mod tests;

use futures_util::future::BoxFuture;
use tokio_util::sync::CancellationToken;

use super::http::Line;
use super::wire::Hand;
use crate::agent::ports::{Delta, Model, ModelError, ModelErrorKind, ModelInfo, ModelRequest};
use crate::conversation::Response;

/// A Claude model.
#[derive(Debug)]
pub(super) struct Anthropic {
    pub(super) info: ModelInfo,
    pub(super) line: Line,
    pub(super) max_tokens: u64,
    /// Whether the model takes adaptive thinking.
    pub(super) thinks: bool,
}

impl Model for Anthropic {
    fn info(&self) -> &ModelInfo {
        &self.info
    }

    fn respond<'a>(
        &'a self,
        request: ModelRequest<'a>,
        on_delta: &'a mut (dyn FnMut(Delta<'_>) + Send),
        cancel: &'a CancellationToken,
    ) -> BoxFuture<'a, Result<Response, ModelError>> {
        Box::pin(async move {
            match self.ask(&request, true, on_delta, cancel).await {
                Err(error) if refuses_thinking(&error) => self.ask(&request, false, on_delta, cancel).await,
                outcome => outcome,
            }
        })
    }
}

impl Anthropic {
    async fn ask(
        &self,
        request: &ModelRequest<'_>,
        with_thinking: bool,
        on_delta: &mut (dyn FnMut(Delta<'_>) + Send),
        cancel: &CancellationToken,
    ) -> Result<Response, ModelError> {
        let shape = request::Shape { model: &self.info.model, max_tokens: self.max_tokens, thinks: self.thinks, with_thinking };
        let body = request::body(&shape, request);
        let hand = Hand::new(on_delta, request.is_shown_live);
        self.line.ask(&body, || stream::Stream::new(self.line.place()), hand, cancel).await
    }
}

/// Thinking is bound to the model that produced it and to what came before it. A session that is resumed with another
/// model, or whose beginning was summarised, holds thinking that is refused; the conversation goes on without it.
fn refuses_thinking(error: &ModelError) -> bool {
    let message = error.message.to_lowercase();
    error.kind == ModelErrorKind::Rejected
        && error.partial_text.is_empty()
        && message.contains("thinking")
        && (message.contains("signature") || message.contains("cannot be modified") || message.contains("different model"))
}
