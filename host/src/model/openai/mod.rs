//! Chat completions: OpenAI itself and the many servers that speak its format (Ollama, vLLM, llama.cpp, LM Studio,
//! OpenRouter).

mod request;
pub(super) mod stream;
#[cfg(test)]
mod tests;

use std::sync::atomic::{AtomicBool, Ordering};

use futures_util::future::BoxFuture;
use tokio_util::sync::CancellationToken;

use super::http::Line;
use super::wire::Hand;
use crate::agent::ports::{Delta, Model, ModelError, ModelErrorKind, ModelInfo, ModelRequest};
use crate::conversation::Response;

/// A model behind an address that speaks chat completions.
#[derive(Debug)]
pub(super) struct OpenAi {
    pub(super) info: ModelInfo,
    pub(super) line: Line,
    pub(super) dialect: Dialect,
    /// The server tells its usage without being asked, and refuses to be.
    pub(super) tells_usage: AtomicBool,
}

/// In what one server differs from another.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Dialect {
    /// It is OpenAI itself.
    pub(super) is_openai: bool,
    /// It takes pictures in user messages.
    pub(super) takes_pictures: bool,
    /// It knows the limit on output by its new name.
    pub(super) has_new_limit: bool,
    /// It is a model of Mistral, whose servers and chat templates are strict: an id has nine letters or digits, and no message of
    /// the user comes right after a result.
    pub(super) is_mistral: bool,
    /// It refuses turns with calls that come back without their thinking.
    pub(super) wants_reasoning_back: bool,
    /// How hard to think, if it was configured.
    pub(super) reasoning_effort: Option<String>,
    /// How much to write at most, if it was configured.
    pub(super) max_output: Option<u64>,
}

impl Dialect {
    pub(super) fn of(model: &str, is_openai: bool) -> Self {
        // DeepSeek and Kimi demand it; their names stay recognisable whoever serves them.
        let name = model.to_lowercase();
        let is_of = |families: &[&str]| !is_openai && families.iter().any(|family| name.contains(family));
        Self {
            is_openai,
            takes_pictures: is_openai,
            has_new_limit: is_openai,
            is_mistral: is_of(&["mistral", "mixtral", "ministral", "magistral", "devstral", "codestral", "pixtral", "voxtral"]),
            wants_reasoning_back: is_of(&["deepseek", "kimi"]),
            reasoning_effort: None,
            max_output: None,
        }
    }

    /// How hard to think. These models think by default, and chat completions lets them call tools only if they do
    /// not (<https://developers.openai.com/api/docs/models/gpt-6-sol>, November 2026).
    fn effort(&self, model: &str, has_tools: bool) -> Option<&str> {
        const TOOLS_WITHOUT_THINKING: [&str; 6] = ["gpt-5.4", "gpt-5.5", "gpt-5.6", "gpt-6-sol", "gpt-6-luna", "gpt-6-astra"];
        let must_not_think = self.is_openai && has_tools && TOOLS_WITHOUT_THINKING.iter().any(|prefix| model.starts_with(prefix));
        self.reasoning_effort.as_deref().or(must_not_think.then_some("none"))
    }

    /// OpenAI's newer models refuse the old key; other servers know only the old one.
    fn max_output_key(&self) -> &'static str {
        if self.has_new_limit { "max_completion_tokens" } else { "max_tokens" }
    }
}

impl Model for OpenAi {
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
            let asks_for_usage = !self.tells_usage.load(Ordering::Relaxed);
            match self.ask(&request, asks_for_usage, on_delta, cancel).await {
                Err(error) if asks_for_usage && refuses_usage(&error) => {
                    self.tells_usage.store(true, Ordering::Relaxed);
                    self.ask(&request, false, on_delta, cancel).await
                }
                outcome => outcome,
            }
        })
    }
}

impl OpenAi {
    async fn ask(
        &self,
        request: &ModelRequest<'_>,
        asks_for_usage: bool,
        on_delta: &mut (dyn FnMut(Delta<'_>) + Send),
        cancel: &CancellationToken,
    ) -> Result<Response, ModelError> {
        let mut body = request::body(&self.info.model, request, &self.dialect);
        if let Some(fields) = body.as_object_mut().filter(|_| !asks_for_usage) {
            fields.remove(request::USAGE);
        }
        let hand = Hand::new(on_delta, request.is_shown_live);
        self.line.ask(&body, || stream::Stream::new(self.line.place()), hand, cancel).await
    }
}

/// Mistral's API and older versions of Azure's know no such key, and refuse what they do not know.
fn refuses_usage(error: &ModelError) -> bool {
    error.kind == ModelErrorKind::Rejected && error.partial_text.is_empty() && error.message.contains(request::USAGE)
}
