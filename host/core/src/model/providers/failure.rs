//! Failed requests, with messages for the user.

use std::time::Duration;

use serde_json::Value;

use super::error_details::ErrorDetails;
use super::retry::is_transient_status;
use crate::agent::ports::{ModelError, ModelErrorKind};
use crate::model::api_key::ApiKey;
use crate::terminal_escape;

/// The most characters of a provider's own message that are quoted.
const MAX_QUOTED: usize = 600;

/// The server of a model, as error messages describe it.
#[derive(Clone, Debug)]
pub(super) struct ServerEndpoint {
    /// The common name of the provider, such as `OpenAI`.
    pub(super) provider: &'static str,
    /// The host, with the port unless it is the default one.
    pub(super) host: String,
    /// The name of the variable with the key, such as `OPENAI_API_KEY`.
    pub(super) key_variable: &'static str,
    /// The key, which is redacted from everything that is shown.
    pub(super) key: Option<ApiKey>,
}

/// The failure of one attempt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct AttemptFailure {
    pub(super) kind: ModelErrorKind,
    pub(super) message: String,
    pub(super) retry: Retryable,
}

/// Whether another attempt can succeed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Retryable {
    /// Another attempt would fail in the same way.
    No,
    /// Another attempt can succeed, after this pause if the provider asks for one.
    Yes(Option<Duration>),
}

impl AttemptFailure {
    pub(super) fn new(kind: ModelErrorKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), retry: Retryable::No }
    }

    pub(super) fn transient(
        kind: ModelErrorKind,
        message: impl Into<String>,
        after: Option<Duration>,
    ) -> Self {
        Self { kind, message: message.into(), retry: Retryable::Yes(after) }
    }

    pub(super) fn into_error(self, partial_text: String) -> ModelError {
        ModelError { kind: self.kind, message: self.message, partial_text }
    }
}

impl ServerEndpoint {
    /// Quotes text of a server, without the key and with control characters escaped.
    pub(super) fn quote(&self, text: &str) -> String {
        let clean = self.key.as_ref().map_or_else(|| text.to_owned(), |key| key.redact(text));
        terminal_escape::escape_line(&clean, MAX_QUOTED)
    }

    /// Returns the permanent failure for a response that violates the provider's format.
    pub(super) fn malformed(&self, problem: &str) -> AttemptFailure {
        AttemptFailure::new(
            ModelErrorKind::Malformed,
            format!("{} ({}): {problem}", self.provider, self.host),
        )
    }

    /// Returns the transient failure for a response that was damaged in transit.
    pub(super) fn corrupted(&self, problem: &str) -> AttemptFailure {
        AttemptFailure::transient(
            ModelErrorKind::Malformed,
            format!("{} ({}): {problem}", self.provider, self.host),
            None,
        )
    }

    /// Returns the failure for an HTTP response whose status is not a success.
    pub(super) fn http_error(
        &self,
        status: u16,
        retry_after: Option<Duration>,
        body: &str,
    ) -> AttemptFailure {
        let details = ErrorDetails::from_body(body);
        let quoted = self.quote(&details.message);
        // The first line of an error has no final period.
        let quoted = quoted.trim_end_matches('.').to_owned();
        let colon = if quoted.is_empty() { String::new() } else { format!(": {quoted}") };
        let Self { provider, host, key_variable: key_name, .. } = self;
        if details.is_overflow() || status == 413 {
            return self.overflow(&quoted);
        }
        if is_transient_status(status) && !details.is_out_of_credit() {
            let problem = if status == 429 { "is limiting the rate of requests" } else { "failed" };
            let message = format!("{provider} ({host}) {problem} (status {status}){colon}");
            return AttemptFailure::transient(ModelErrorKind::Unavailable, message, retry_after);
        }
        if matches!(status, 401 | 403) {
            let (problem, advice) = if self.key.is_some() {
                ("rejected the key", "check")
            } else {
                ("requires a key", "set")
            };
            return AttemptFailure::new(
                ModelErrorKind::Rejected,
                format!(
                    "{provider} ({host}) {problem} (status {status}){colon}\nhint: {advice} \
                        {key_name}"
                ),
            );
        }
        let hint = match status {
            300..=399 => {
                "\nhint: redirects are not followed, so that the key is sent nowhere else; set the \
                    final address as the base URL"
            }
            404 => "\nhint: check the model name and the base URL",
            429 => "\nhint: check the plan and billing of your account",
            400 if details.message.contains("/v1/responses") => {
                "\nhint: set `api = \"responses\"` under [provider] in the configuration"
            }
            _ => "",
        };
        AttemptFailure::new(
            ModelErrorKind::Rejected,
            format!("{provider} ({host}) rejected the request (status {status}){colon}{hint}"),
        )
    }

    /// Returns the failure for an error object within a stream (R-84).
    pub(super) fn stream_error(&self, error: &Value) -> AttemptFailure {
        let details = ErrorDetails::from_error(error);
        let quoted = self.quote(&details.message);
        if details.is_overflow() {
            return self.overflow(&quoted);
        }
        let message =
            format!("{} ({}) ended the response with an error: {quoted}", self.provider, self.host);
        if details.is_transient() && !details.is_out_of_credit() {
            return AttemptFailure::transient(ModelErrorKind::Unavailable, message, None);
        }
        AttemptFailure::new(ModelErrorKind::Rejected, message)
    }

    /// Returns the failure for a body in the wrong format.
    pub(super) fn unexpected_body(&self, problem: &str) -> AttemptFailure {
        let Self { provider, host, .. } = self;
        let message = format!(
            "{provider} ({host}) returned {problem} instead of an event stream\nhint: check the \
                base URL; it should be the address of the API, which often ends in /v1"
        );
        AttemptFailure::new(ModelErrorKind::Malformed, message)
    }

    /// Returns the failure for a compressed body, which was not requested.
    pub(super) fn compressed(&self, encoding: &str) -> AttemptFailure {
        let Self { provider, host, .. } = self;
        let message = format!(
            "{provider} ({host}) compressed its response with {encoding}, although the request did \
                not allow it\nhint: turn off compression in the server, or in the proxy before it"
        );
        AttemptFailure::new(ModelErrorKind::Malformed, message)
    }

    fn overflow(&self, quoted: &str) -> AttemptFailure {
        let message = format!(
            "the conversation is too large for the model, according to {} ({}): {quoted}",
            self.provider, self.host
        );
        AttemptFailure::new(ModelErrorKind::Overflow, message)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn endpoint() -> ServerEndpoint {
        ServerEndpoint {
            provider: "OpenAI",
            host: "api.example".into(),
            key_variable: "OPENAI_API_KEY",
            key: ApiKey::new("sk-secret"),
        }
    }

    #[test]
    fn the_final_period_of_a_quoted_message_is_removed() {
        for status in [400, 401, 404, 422, 429, 500] {
            for ending in ["", ".", "..."] {
                let body =
                    format!(r#"{{"error":{{"message":"The model `x` does not exist{ending}"}}}}"#);
                let message = endpoint().http_error(status, None, &body).message;
                assert!(
                    message.contains("does not exist") && !message.contains("exist."),
                    "{status}: {message}"
                );
            }
        }
    }

    #[test]
    fn r072_overflow_is_recognised_for_each_provider() {
        let bodies = [
            (
                400,
                concat!(
                    r#"{"error":{"message":"This model's maximum context length is 8192 "#,
                    r#"tokens.","code":"context_length_exceeded"}}"#,
                ),
            ),
            (
                400,
                concat!(
                    r#"{"error":{"message":"Your input exceeds the context window of this "#,
                    r#"model.","code":"context_length_exceeded"}}"#,
                ),
            ),
            (
                400,
                concat!(
                    r#"{"type":"error","error":{"type":"invalid_request_error","#,
                    r#""message":"prompt is too long: 215000 tokens > 200000 maximum"}}"#,
                ),
            ),
            (
                400,
                concat!(
                    r#"{"type":"error","error":{"type":"invalid_request_error","#,
                    r#""message":"input length and `max_tokens` exceed context limit: 1 + 2 > "#,
                    r#"2"}}"#,
                ),
            ),
            (
                413,
                concat!(
                    r#"{"type":"error","error":{"type":"request_too_large","message":"Request "#,
                    r#"exceeds the maximum size"}}"#,
                ),
            ),
            (
                400,
                concat!(
                    r#"{"error":{"code":400,"message":"the request exceeds the available "#,
                    r#"context size","type":"exceed_context_size_error"}}"#,
                ),
            ),
            (
                400,
                concat!(
                    r#"{"object":"error","message":"This model's maximum context length is "#,
                    r#"4096 tokens.","type":"BadRequestError","code":400}"#,
                ),
            ),
            (413, "nginx says no"),
            (
                400,
                concat!(
                    r#"{"code":"Client specified an invalid argument","error":"This model's "#,
                    r#"maximum prompt length is 131072 but the request contains 150000 "#,
                    r#"tokens."}"#,
                ),
            ),
            (
                400,
                concat!(
                    r#"{"object":"error","message":"The input (9000 tokens) is longer than "#,
                    r#"the model's context length (8192 tokens).","code":400}"#,
                ),
            ),
            (
                400,
                concat!(
                    r#"{"error":{"message":"The decoder prompt (length 9000) is longer than "#,
                    r#"the maximum model length of 8192.","code":400}}"#,
                ),
            ),
            (
                400,
                concat!(
                    r#"[{"error":{"code":400,"message":"The input token count (1200000) "#,
                    r#"exceeds the maximum number of tokens allowed "#,
                    r#"(1048576).","status":"INVALID_ARGUMENT"}}]"#,
                ),
            ),
        ];
        for (status, body) in bodies {
            assert_eq!(
                endpoint().http_error(status, None, body).kind,
                ModelErrorKind::Overflow,
                "{body}"
            );
        }
        let listed = endpoint().http_error(
            400,
            None,
            r#"[{"error":{"code":400,"message":"no such field"}}]"#,
        );
        assert_eq!(
            listed.message,
            "OpenAI (api.example) rejected the request (status 400): no such field"
        );
        let other = endpoint().http_error(
            400,
            None,
            r#"{"error":{"message":"unknown parameter: context"}}"#,
        );
        assert_eq!(other.kind, ModelErrorKind::Rejected);
    }

    #[test]
    fn a_web_page_in_place_of_an_error_is_reduced_to_its_text() {
        let page = "<html><head><title>502 Bad Gateway</title></head><body><h1>502 Bad \
            Gateway</h1><hr>nginx</body></html>";
        let nested = serde_json::json!({"error": {"message": page, "code": 502}});
        for body in [page.to_owned(), nested.to_string()] {
            let failure = endpoint().http_error(502, None, &body);
            assert_eq!(
                failure.message,
                "OpenAI (api.example) failed (status 502): (a web page) 502 Bad Gateway nginx"
            );
        }
        assert!(
            endpoint()
                .stream_error(&nested["error"])
                .message
                .ends_with("an error: (a web page) 502 Bad Gateway nginx")
        );
        assert!(
            endpoint()
                .http_error(400, None, "<html>")
                .message
                .contains("(a web page without text)")
        );
    }

    #[test]
    fn r085_only_transient_failures_are_retried() {
        assert_eq!(
            endpoint().http_error(503, Some(Duration::from_secs(3)), "busy").retry,
            Retryable::Yes(Some(Duration::from_secs(3)))
        );
        assert_eq!(endpoint().http_error(400, None, "no").retry, Retryable::No);
        assert_eq!(endpoint().http_error(302, None, "").retry, Retryable::No);
        let broke = concat!(
            r#"{"error":{"message":"You exceeded your current quota","#,
            r#""type":"insufficient_quota","code":"insufficient_quota"}}"#,
        );
        assert_eq!(endpoint().http_error(429, None, broke).retry, Retryable::No);
    }

    #[test]
    fn r084_an_error_inside_a_stream_is_classified_by_its_content() {
        let overloaded = serde_json::json!({"type": "overloaded_error", "message": "Overloaded"});
        assert_eq!(endpoint().stream_error(&overloaded).retry, Retryable::Yes(None));
        let status = serde_json::json!({"code": 502, "message": "Provider returned error"});
        assert_eq!(endpoint().stream_error(&status).kind, ModelErrorKind::Unavailable);
        let refused = serde_json::json!({"type": "invalid_request_error", "message": "no"});
        assert_eq!(endpoint().stream_error(&refused).retry, Retryable::No);
        assert!(
            endpoint().stream_error(&Value::from("plain words")).message.ends_with("plain words")
        );
    }

    #[test]
    fn r114_a_key_in_an_error_body_is_not_repeated() {
        let failure = endpoint().http_error(
            401,
            None,
            r#"{"error":{"message":"Incorrect API key provided: sk-secret.\u001b[2J"}}"#,
        );
        assert_eq!(
            failure.message,
            "OpenAI (api.example) rejected the key (status 401): Incorrect API key provided: [key \
                redacted].\\u{1b}[2J\nhint: check OPENAI_API_KEY"
        );
    }
}
