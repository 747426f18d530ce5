//! What went wrong with a request, in words for the person at the terminal.

use std::time::Duration;

use serde_json::Value;

use super::retry::may_pass;
use super::secret::Secret;
use crate::agent::ports::{ModelError, ModelErrorKind};
use crate::shown;

/// How much of a provider's own words is repeated.
const MAX_QUOTED: usize = 600;

/// Who is asked, for messages.
#[derive(Clone, Debug)]
pub(super) struct Place {
    /// As people call it, such as `OpenAI`.
    pub(super) provider: &'static str,
    /// The host and, if it is not the usual one, the port.
    pub(super) host: String,
    /// Where the key comes from, such as `OPENAI_API_KEY`.
    pub(super) key_name: &'static str,
    /// The key, to be taken out of whatever is shown.
    pub(super) key: Option<Secret>,
}

/// A failed attempt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Failure {
    pub(super) kind: ModelErrorKind,
    pub(super) message: String,
    pub(super) again: Again,
}

/// Whether another attempt makes sense.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Again {
    /// It would fail the same way.
    No,
    /// Perhaps, after the pause that the provider asks for, if it does.
    Perhaps(Option<Duration>),
}

impl Failure {
    pub(super) fn new(kind: ModelErrorKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), again: Again::No }
    }

    pub(super) fn passing(kind: ModelErrorKind, message: impl Into<String>, after: Option<Duration>) -> Self {
        Self { kind, message: message.into(), again: Again::Perhaps(after) }
    }

    pub(super) fn into_error(self, partial_text: String) -> ModelError {
        ModelError { kind: self.kind, message: self.message, partial_text }
    }
}

impl Place {
    /// A stranger's words, without the key and fit for a terminal.
    pub(super) fn quote(&self, text: &str) -> String {
        let clean = self.key.as_ref().map_or_else(|| text.to_owned(), |key| key.redact(text));
        shown::line(&clean, MAX_QUOTED)
    }

    /// For what is not in the provider's own format, and will not be so the next time.
    pub(super) fn malformed(&self, what: &str) -> Failure {
        Failure::new(ModelErrorKind::Malformed, format!("{} ({}): {what}", self.provider, self.host))
    }

    /// For damage on the way: what was sent may have been fine.
    pub(super) fn damaged(&self, what: &str) -> Failure {
        Failure::passing(ModelErrorKind::Malformed, format!("{} ({}): {what}", self.provider, self.host), None)
    }

    /// For an answer with a status that is not a success.
    pub(super) fn refused(&self, status: u16, retry_after: Option<Duration>, body: &str) -> Failure {
        let said = Said::from_body(body);
        let quoted = self.quote(&said.message);
        // A sentence of its own is not ended twice.
        let quoted = quoted.trim_end_matches('.').to_owned();
        let colon = if quoted.is_empty() { String::new() } else { format!(": {quoted}") };
        let Self { provider, host, key_name, .. } = self;
        if said.is_overflow() || status == 413 {
            return self.overflow(&quoted);
        }
        if may_pass(status) && !said.is_out_of_credit() {
            let what = if status == 429 { "is limiting the rate of requests" } else { "failed" };
            let message = format!("{provider} ({host}) {what} (status {status}){colon}");
            return Failure::passing(ModelErrorKind::Unavailable, message, retry_after);
        }
        if matches!(status, 401 | 403) {
            let (what, cure) = if self.key.is_some() { ("did not accept the key", "Check") } else { ("wants a key", "Set") };
            return Failure::new(
                ModelErrorKind::Rejected,
                format!("{provider} ({host}) {what} (status {status}){colon}. {cure} {key_name}."),
            );
        }
        let hint = match status {
            300..=399 => " Redirects are not followed, so that the key goes nowhere else: set the final address as the base URL.",
            404 => " Check the model's name and the base URL.",
            429 => " Check the plan and its billing.",
            400 if said.message.contains("/v1/responses") => " Say `api = \"responses\"` under [provider] in the configuration.",
            _ => "",
        };
        Failure::new(ModelErrorKind::Rejected, format!("{provider} ({host}) refused the request (status {status}){colon}.{hint}"))
    }

    /// For an error object inside a stream that began well (R-84).
    pub(super) fn broke_off(&self, error: &Value) -> Failure {
        let said = Said::from_error(error);
        let quoted = self.quote(&said.message);
        if said.is_overflow() {
            return self.overflow(&quoted);
        }
        let message = format!("{} ({}) broke off with an error: {quoted}", self.provider, self.host);
        if said.may_pass() && !said.is_out_of_credit() {
            return Failure::passing(ModelErrorKind::Unavailable, message, None);
        }
        Failure::new(ModelErrorKind::Rejected, message)
    }

    /// For a body in the wrong format.
    pub(super) fn not_a_stream(&self, what: &str) -> Failure {
        let Self { provider, host, .. } = self;
        let message = format!(
            "{provider} ({host}) answered with {what} instead of a stream of events. Check the base URL: it should be the address of the API, \
             which often ends in /v1."
        );
        Failure::new(ModelErrorKind::Malformed, message)
    }

    fn overflow(&self, quoted: &str) -> Failure {
        let message = format!("the conversation is too large for the model, says {} ({}): {quoted}", self.provider, self.host);
        Failure::new(ModelErrorKind::Overflow, message)
    }
}

/// What an error says of itself.
struct Said {
    message: String,
    /// The error's type, code and status, as far as they are words.
    labels: Vec<String>,
    /// Its code, if that is a status.
    status: Option<u16>,
}

impl Said {
    /// From the body of an answer: JSON in one of several customs, or plain words.
    fn from_body(body: &str) -> Self {
        // Google's lies in a list.
        let value = serde_json::from_str::<Value>(body).map(|value| value.get(0).cloned().unwrap_or(value));
        match value {
            Ok(value) if value.is_object() => Self::from_error(value.get("error").unwrap_or(&value)),
            _ => Self { message: body.to_owned(), labels: Vec::new(), status: None },
        }
    }

    fn from_error(error: &Value) -> Self {
        let words = |key: &str| error.get(key).and_then(Value::as_str);
        let message =
            error.as_str().or_else(|| words("message")).or_else(|| words("detail")).map_or_else(|| error.to_string(), str::to_owned);
        let labels = ["type", "code", "status"].into_iter().filter_map(words).map(str::to_owned).collect();
        let status = error.get("code").and_then(Value::as_u64).and_then(|code| u16::try_from(code).ok());
        Self { message, labels, status }
    }

    /// In the words of OpenAI, Anthropic, Google, xAI, vLLM, SGLang, llama.cpp, LM Studio and OpenRouter.
    fn is_overflow(&self) -> bool {
        const LABELS: [&str; 3] = ["context_length_exceeded", "exceed_context_size_error", "request_too_large"];
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
        self.labels.iter().any(|label| LABELS.contains(&label.as_str())) || PHRASES.iter().any(|phrase| message.contains(phrase))
    }

    /// A 429 that no pause will cure.
    fn is_out_of_credit(&self) -> bool {
        self.labels.iter().any(|label| label == "insufficient_quota" || label == "billing_error")
    }

    fn may_pass(&self) -> bool {
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
        self.status.is_some_and(may_pass) || self.labels.iter().any(|label| LABELS.contains(&label.as_str()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place() -> Place {
        Place { provider: "OpenAI", host: "api.example".into(), key_name: "OPENAI_API_KEY", key: Secret::new("sk-secret") }
    }

    #[test]
    fn a_sentence_of_the_provider_is_not_ended_twice() {
        for status in [400, 401, 404, 422, 429, 500] {
            for ending in ["", ".", "..."] {
                let body = format!(r#"{{"error":{{"message":"The model `x` does not exist{ending}"}}}}"#);
                let message = place().refused(status, None, &body).message;
                assert!(message.contains("does not exist") && !message.contains("exist.."), "{status}: {message}");
            }
        }
    }

    #[test]
    fn r072_overflow_is_recognised_in_the_words_of_each_provider() {
        let bodies = [
            (400, r#"{"error":{"message":"This model's maximum context length is 8192 tokens.","code":"context_length_exceeded"}}"#),
            (400, r#"{"error":{"message":"Your input exceeds the context window of this model.","code":"context_length_exceeded"}}"#),
            (
                400,
                r#"{"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long: 215000 tokens > 200000 maximum"}}"#,
            ),
            (
                400,
                r#"{"type":"error","error":{"type":"invalid_request_error","message":"input length and `max_tokens` exceed context limit: 1 + 2 > 2"}}"#,
            ),
            (413, r#"{"type":"error","error":{"type":"request_too_large","message":"Request exceeds the maximum size"}}"#),
            (
                400,
                r#"{"error":{"code":400,"message":"the request exceeds the available context size","type":"exceed_context_size_error"}}"#,
            ),
            (
                400,
                r#"{"object":"error","message":"This model's maximum context length is 4096 tokens.","type":"BadRequestError","code":400}"#,
            ),
            (413, "nginx says no"),
            (
                400,
                r#"{"code":"Client specified an invalid argument","error":"This model's maximum prompt length is 131072 but the request contains 150000 tokens."}"#,
            ),
            (
                400,
                r#"{"object":"error","message":"The input (9000 tokens) is longer than the model's context length (8192 tokens).","code":400}"#,
            ),
            (
                400,
                r#"{"error":{"message":"The decoder prompt (length 9000) is longer than the maximum model length of 8192.","code":400}}"#,
            ),
            (
                400,
                r#"[{"error":{"code":400,"message":"The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).","status":"INVALID_ARGUMENT"}}]"#,
            ),
        ];
        for (status, body) in bodies {
            assert_eq!(place().refused(status, None, body).kind, ModelErrorKind::Overflow, "{body}");
        }
        let listed = place().refused(400, None, r#"[{"error":{"code":400,"message":"no such field"}}]"#);
        assert_eq!(listed.message, "OpenAI (api.example) refused the request (status 400): no such field.");
        let other = place().refused(400, None, r#"{"error":{"message":"unknown parameter: context"}}"#);
        assert_eq!(other.kind, ModelErrorKind::Rejected);
    }

    #[test]
    fn r085_only_trouble_that_may_pass_is_worth_another_attempt() {
        assert_eq!(place().refused(503, Some(Duration::from_secs(3)), "busy").again, Again::Perhaps(Some(Duration::from_secs(3))));
        assert_eq!(place().refused(400, None, "no").again, Again::No);
        assert_eq!(place().refused(302, None, "").again, Again::No);
        let broke = r#"{"error":{"message":"You exceeded your current quota","type":"insufficient_quota","code":"insufficient_quota"}}"#;
        assert_eq!(place().refused(429, None, broke).again, Again::No);
    }

    #[test]
    fn r084_an_error_inside_a_stream_is_judged_by_what_it_says() {
        let overloaded = serde_json::json!({"type": "overloaded_error", "message": "Overloaded"});
        assert_eq!(place().broke_off(&overloaded).again, Again::Perhaps(None));
        let status = serde_json::json!({"code": 502, "message": "Provider returned error"});
        assert_eq!(place().broke_off(&status).kind, ModelErrorKind::Unavailable);
        let refused = serde_json::json!({"type": "invalid_request_error", "message": "no"});
        assert_eq!(place().broke_off(&refused).again, Again::No);
        assert!(place().broke_off(&Value::from("plain words")).message.ends_with("plain words"));
    }

    #[test]
    fn r114_a_key_in_an_error_body_is_not_repeated() {
        let failure = place().refused(401, None, r#"{"error":{"message":"Incorrect API key provided: sk-secret.\u001b[2J"}}"#);
        assert_eq!(
            failure.message,
            "OpenAI (api.example) did not accept the key (status 401): Incorrect API key provided: [key redacted].\\u{1b}[2J. Check OPENAI_API_KEY."
        );
    }
}
