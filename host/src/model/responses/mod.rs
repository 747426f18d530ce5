//! OpenAI's Responses: what its newest models want to be spoken to in, since only there they think and call tools in one
//! response.
//!
//! Nothing is kept at the provider (`store: false`). So thinking travels with the conversation, encrypted, and goes back to where
//! it came from.

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

/// A model behind an address that speaks Responses.
#[derive(Debug)]
pub(super) struct Responses {
    pub(super) info: ModelInfo,
    pub(super) line: Line,
    pub(super) dialect: Dialect,
}

/// In what one server or model differs from another.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Dialect {
    /// It is OpenAI itself.
    pub(super) is_openai: bool,
    /// It thinks, and hands its thinking over encrypted.
    pub(super) thinks: bool,
    /// It tells remarks on the way from the answer, and wants that told back.
    pub(super) has_phases: bool,
    /// It takes pictures in results.
    pub(super) takes_pictures: bool,
    /// How hard to think, if it was configured.
    pub(super) reasoning_effort: Option<String>,
    /// How much to write at most, if it was configured.
    pub(super) max_output: Option<u64>,
}

impl Model for Responses {
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

impl Responses {
    async fn ask(
        &self,
        request: &ModelRequest<'_>,
        with_thinking: bool,
        on_delta: &mut (dyn FnMut(Delta<'_>) + Send),
        cancel: &CancellationToken,
    ) -> Result<Response, ModelError> {
        let body = request::body(&self.info.model, request, &self.dialect, with_thinking);
        let hand = Hand::new(on_delta, request.is_shown_live);
        self.line.ask(&body, || stream::Stream::new(self.line.place()), hand, cancel).await
    }
}

/// Thinking can only be read by whoever wrote it. A session that goes on with another model, another organisation or another
/// server holds thinking that is refused; the conversation goes on without it.
fn refuses_thinking(error: &ModelError) -> bool {
    let message = error.message.to_lowercase();
    error.kind == ModelErrorKind::Rejected
        && error.partial_text.is_empty()
        && (message.contains("encrypted content") || message.contains("encrypted_content") || message.contains("of type 'reasoning'"))
}
