//! Parses the error messages of providers and classifies them.

use serde_json::Value;

use super::retry::is_transient_status;
use super::web_page::page_text;

/// The parts of an error that a provider reported.
pub(super) struct ErrorDetails {
    pub(super) message: String,
    /// The error's type, code and status, if they are strings.
    labels: Vec<String>,
    /// The error's code, if it is an HTTP status.
    status: Option<u16>,
}

impl ErrorDetails {
    /// Parses the body of an HTTP response: one of several JSON conventions, or plain text.
    pub(super) fn from_body(body: &str) -> Self {
        // Google puts the error into an array.
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

    /// Returns whether the request was too large for the model.
    ///
    /// Recognises the messages of OpenAI, Anthropic, Google, xAI, vLLM, SGLang, llama.cpp, LM
    /// Studio and OpenRouter.
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

    /// Returns whether the account has no credit left, so that waiting does not help.
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

/// Returns a message, or the text of a web page that was sent in place of a message.
fn describe(message: &str) -> String {
    match page_text(message) {
        Some(text) if text.is_empty() => "(a web page without text)".to_owned(),
        Some(text) => format!("(a web page) {text}"),
        None => message.to_owned(),
    }
}
