//! The client of chat completions: OpenAI itself and compatible servers (Ollama, vLLM, llama.cpp,
//! LM Studio, OpenRouter).

mod request;
pub(super) mod stream;
#[cfg(test)]
mod tests;

use std::sync::atomic::{AtomicBool, Ordering};

use futures_util::future::BoxFuture;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use super::http::Transport;
use super::wire::DeltaSink;
use crate::agent::ports::{
    LanguageModel, ModelError, ModelErrorKind, ModelInfo, ModelRequest, ResponseDelta,
};
use crate::conversation::ModelResponse;

/// A model behind an address that implements chat completions.
#[derive(Debug)]
pub(super) struct ChatModel {
    pub(super) info: ModelInfo,
    pub(super) transport: Transport,
    pub(super) dialect: ChatDialect,
    pub(super) rejected_keys: RefusedKeys,
}

/// Optional request keys that this server refused and that are not sent again.
///
/// These keys are useful but not essential, so a request is repeated without them.
#[derive(Debug, Default)]
pub(super) struct RefusedKeys {
    /// Whether the key that requests usage was refused. Mistral's API and older Azure APIs do not
    /// know it.
    usage: AtomicBool,
    /// Whether the key that sends thinking back was refused.
    ///
    /// Another server with the same model may not know it.
    thinking: AtomicBool,
}

impl RefusedKeys {
    /// Records a refused key. Returns whether the key is new, so that a retry without it makes
    /// sense.
    fn record(&self, error: &ModelError, sent: &Value) -> bool {
        let is_refused = |key: &str| {
            error.kind == ModelErrorKind::Rejected
                && error.partial_text.is_empty()
                && error.message.contains(key)
                && request::has_key(sent, key)
        };
        if is_refused(request::USAGE_KEY) {
            return !self.usage.swap(true, Ordering::Relaxed);
        }
        is_refused(request::THINKING_KEY) && !self.thinking.swap(true, Ordering::Relaxed)
    }

    fn remove_from(&self, body: &mut Value) {
        if self.usage.load(Ordering::Relaxed) {
            request::remove_key(body, request::USAGE_KEY);
        }
        if self.thinking.load(Ordering::Relaxed) {
            request::remove_key(body, request::THINKING_KEY);
        }
    }
}

/// The differences between servers of chat completions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct ChatDialect {
    /// Whether the server is OpenAI itself.
    pub(super) is_openai: bool,
    /// Whether user messages may contain pictures.
    pub(super) accepts_images: bool,
    /// Whether the output limit has its new name, `max_completion_tokens`.
    pub(super) uses_max_completion_tokens: bool,
    /// Whether the model is one of Mistral's.
    ///
    /// Its servers and chat templates are strict: an id has nine letters or digits, and a user
    /// message must not directly follow a result.
    pub(super) is_mistral: bool,
    /// Whether turns with calls must be sent back with their thinking.
    pub(super) requires_reasoning: bool,
    /// The configured reasoning effort, if any.
    pub(super) reasoning_effort: Option<String>,
    /// The configured output limit in tokens, if any.
    pub(super) max_output: Option<u64>,
}

impl ChatDialect {
    pub(super) fn for_model(model: &str, is_openai: bool) -> Self {
        // DeepSeek and Kimi require it. Their models have recognisable names on every server.
        let name = model.to_lowercase();
        let is_of =
            |families: &[&str]| !is_openai && families.iter().any(|family| name.contains(family));
        Self {
            is_openai,
            accepts_images: is_openai,
            uses_max_completion_tokens: is_openai,
            is_mistral: is_of(&[
                "mistral",
                "mixtral",
                "ministral",
                "magistral",
                "devstral",
                "codestral",
                "pixtral",
                "voxtral",
            ]),
            requires_reasoning: is_of(&["deepseek", "kimi"]),
            reasoning_effort: None,
            max_output: None,
        }
    }

    /// Returns the reasoning effort to request.
    ///
    /// OpenAI's newer models think by default, but over chat completions they can call tools only
    /// without thinking (<https://developers.openai.com/api/docs/models/gpt-6-sol>, November 2026).
    fn effective_effort(&self, model: &str, has_tools: bool) -> Option<&str> {
        const TOOLS_WITHOUT_THINKING: [&str; 6] =
            ["gpt-5.4", "gpt-5.5", "gpt-5.6", "gpt-6-sol", "gpt-6-luna", "gpt-6-astra"];
        let must_not_think = self.is_openai
            && has_tools
            && TOOLS_WITHOUT_THINKING.iter().any(|prefix| model.starts_with(prefix));
        self.reasoning_effort.as_deref().or(must_not_think.then_some("none"))
    }

    /// Returns the key of the output limit.
    ///
    /// OpenAI's newer models refuse the old key, and other servers know only the old one.
    fn max_output_key(&self) -> &'static str {
        if self.uses_max_completion_tokens { "max_completion_tokens" } else { "max_tokens" }
    }
}

impl LanguageModel for ChatModel {
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
            loop {
                let mut body = request::body(&self.info.model, &request, &self.dialect);
                self.rejected_keys.remove_from(&mut body);
                let sink = DeltaSink::new(on_delta, request.is_shown_live);
                match self
                    .transport
                    .request(
                        &body,
                        || stream::ChatCompletionStream::new(self.transport.endpoint()),
                        sink,
                        cancel,
                    )
                    .await
                {
                    Err(error) if self.rejected_keys.record(&error, &body) => {}
                    outcome => return outcome,
                }
            }
        })
    }
}
