//! What a provider's error says: its words, and what kind of trouble they tell of.

use serde_json::Value;

use super::retry::is_transient_status;
use super::web_page::page_text;

/// What an error says of itself.
pub(super) struct ErrorDetails {
    pub(super) message: String,
    /// The error's type, code and status, as far as they are words.
    labels: Vec<String>,
    /// Its code, if that is a status.
    status: Option<u16>,
}

impl ErrorDetails {
    /// From the body of an answer: JSON in one of several customs, or plain words.
    pub(super) fn from_body(body: &str) -> Self {
        // Google's lies in a list.
        let value =
            serde_json::from_str::<Value>(body).map(|value| value.get(0).cloned().unwrap_or(value));
        match value {
            Ok(value) if value.is_object() => {
                Self::from_error(value.get("error").unwrap_or(&value))
            }
            _ => Self { message: describe(body), labels: Vec::new(), status: None },
        }
    }

    pub(super) fn from_error(error: &Value) -> Self {
        let words = |key: &str| error.get(key).and_then(Value::as_str);
        let message = error
            .as_str()
            .or_else(|| words("message"))
            .or_else(|| words("detail"))
            .map_or_else(|| error.to_string(), describe);
        let labels =
            ["type", "code", "status"].into_iter().filter_map(words).map(str::to_owned).collect();
        let status =
            error.get("code").and_then(Value::as_u64).and_then(|code| u16::try_from(code).ok());
        Self { message, labels, status }
    }

    /// In the words of OpenAI, Anthropic, Google, xAI, vLLM, SGLang, llama.cpp, LM Studio and
    /// OpenRouter.
    pub(super) fn is_overflow(&self) -> bool {
        const LABELS: [&str; 3] =
            ["context_length_exceeded", "exceed_context_size_error", "request_too_large"];
        const PHRASES: [&str; 13] = [
            "maximum context length",
            "prompt is too long",
            "input is too long",
            "exceeds the context window",
            "exceeds your context window",
            "exceed context limit",
            "exceeds the available context size",
            "context length exceeded",
            "greater than the context length",
            "maximum prompt length",
            "longer than the model's context length",
            "longer than the maximum model length",
            "exceeds the maximum number of tokens",
        ];
        let message = self.message.to_lowercase();
        self.labels.iter().any(|label| LABELS.contains(&label.as_str()))
            || PHRASES.iter().any(|phrase| message.contains(phrase))
    }

    /// A 429 that no pause will cure.
    pub(super) fn is_out_of_credit(&self) -> bool {
        self.labels.iter().any(|label| label == "insufficient_quota" || label == "billing_error")
    }

    pub(super) fn is_transient(&self) -> bool {
        const LABELS: [&str; 9] = [
            "api_error",
            "internal_server_error",
            "overloaded_error",
            "rate_limit_error",
            "rate_limit_exceeded",
            "server_error",
            "server_overloaded",
            "service_unavailable",
            "timeout_error",
        ];
        self.status.is_some_and(is_transient_status)
            || self.labels.iter().any(|label| LABELS.contains(&label.as_str()))
    }
}

/// A message, and what a web page says in its place.
fn describe(message: &str) -> String {
    match page_text(message) {
        Some(text) if text.is_empty() => "(a web page without text)".to_owned(),
        Some(text) => format!("(a web page) {text}"),
        None => message.to_owned(),
    }
}
