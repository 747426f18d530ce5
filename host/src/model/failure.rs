//! What went wrong with a request, in words for the person at the terminal.

use std::time::Duration;

use serde_json::Value;

use super::api_key::ApiKey;
use super::error_details::ErrorDetails;
use super::retry::is_transient_status;
use crate::agent::ports::{ModelError, ModelErrorKind};
use crate::terminal_escape;

/// How much of a provider's own words is repeated.
const MAX_QUOTED: usize = 600;

/// Who is asked, for messages.
#[derive(Clone, Debug)]
pub(super) struct ServerEndpoint {
    /// As people call it, such as `OpenAI`.
    pub(super) provider: &'static str,
    /// The host and, if it is not the usual one, the port.
    pub(super) host: String,
    /// Where the key comes from, such as `OPENAI_API_KEY`.
    pub(super) key_variable: &'static str,
    /// The key, to be taken out of whatever is shown.
    pub(super) key: Option<ApiKey>,
}

/// A failed attempt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct AttemptFailure {
    pub(super) kind: ModelErrorKind,
    pub(super) message: String,
    pub(super) retry: Retryable,
}

/// Whether another attempt makes sense.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Retryable {
    /// It would fail the same way.
    No,
    /// Perhaps, after the pause that the provider asks for, if it does.
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
    /// A stranger's words, without the key and fit for a terminal.
    pub(super) fn quote(&self, text: &str) -> String {
        let clean = self.key.as_ref().map_or_else(|| text.to_owned(), |key| key.redact(text));
        terminal_escape::escape_line(&clean, MAX_QUOTED)
    }

    /// For what is not in the provider's own format, and will not be so the next time.
    pub(super) fn malformed(&self, what: &str) -> AttemptFailure {
        AttemptFailure::new(
            ModelErrorKind::Malformed,
            format!("{} ({}): {what}", self.provider, self.host),
        )
    }

    /// For damage on the way: what was sent may have been fine.
    pub(super) fn corrupted(&self, what: &str) -> AttemptFailure {
        AttemptFailure::transient(
            ModelErrorKind::Malformed,
            format!("{} ({}): {what}", self.provider, self.host),
            None,
        )
    }

    /// For an answer with a status that is not a success.
    pub(super) fn http_error(
        &self,
        status: u16,
        retry_after: Option<Duration>,
        body: &str,
    ) -> AttemptFailure {
        let said = ErrorDetails::from_body(body);
        let quoted = self.quote(&said.message);
        // A sentence of its own is not ended twice.
        let quoted = quoted.trim_end_matches('.').to_owned();
        let colon = if quoted.is_empty() { String::new() } else { format!(": {quoted}") };
        let Self { provider, host, key_variable: key_name, .. } = self;
        if said.is_overflow() || status == 413 {
            return self.overflow(&quoted);
        }
        if is_transient_status(status) && !said.is_out_of_credit() {
            let what = if status == 429 { "is limiting the rate of requests" } else { "failed" };
            let message = format!("{provider} ({host}) {what} (status {status}){colon}");
            return AttemptFailure::transient(ModelErrorKind::Unavailable, message, retry_after);
        }
        if matches!(status, 401 | 403) {
            let (what, cure) = if self.key.is_some() {
                ("did not accept the key", "Check")
            } else {
                ("wants a key", "Set")
            };
            return AttemptFailure::new(
                ModelErrorKind::Rejected,
                format!("{provider} ({host}) {what} (status {status}){colon}. {cure} {key_name}."),
            );
        }
        let hint = match status {
            300..=399 => {
                " Redirects are not followed, so that the key goes nowhere else: set the final \
                    address as the base URL."
            }
            404 => " Check the model's name and the base URL.",
            429 => " Check the plan and its billing.",
            400 if said.message.contains("/v1/responses") => {
                " Say `api = \"responses\"` under [provider] in the configuration."
            }
            _ => "",
        };
        AttemptFailure::new(
            ModelErrorKind::Rejected,
            format!("{provider} ({host}) refused the request (status {status}){colon}.{hint}"),
        )
    }

    /// For an error object inside a stream that began well (R-84).
    pub(super) fn stream_error(&self, error: &Value) -> AttemptFailure {
        let said = ErrorDetails::from_error(error);
        let quoted = self.quote(&said.message);
        if said.is_overflow() {
            return self.overflow(&quoted);
        }
        let message =
            format!("{} ({}) broke off with an error: {quoted}", self.provider, self.host);
        if said.is_transient() && !said.is_out_of_credit() {
            return AttemptFailure::transient(ModelErrorKind::Unavailable, message, None);
        }
        AttemptFailure::new(ModelErrorKind::Rejected, message)
    }

    /// For a body in the wrong format.
    pub(super) fn unexpected_body(&self, what: &str) -> AttemptFailure {
        let Self { provider, host, .. } = self;
        let message = format!(
            "{provider} ({host}) answered with {what} instead of a stream of events. Check the \
                base URL: it should be the address of the API, \
             which often ends in /v1."
        );
        AttemptFailure::new(ModelErrorKind::Malformed, message)
    }

    /// For a body that was not asked for like this.
    pub(super) fn compressed(&self, how: &str) -> AttemptFailure {
        let Self { provider, host, .. } = self;
        let message = format!(
            "{provider} ({host}) answered with a body that is compressed with {how}, although it \
                was asked not to compress. Compressed \
             answers are not read: switch compression off in the server, or in the proxy in front \
             of it."
        );
        AttemptFailure::new(ModelErrorKind::Malformed, message)
    }

    fn overflow(&self, quoted: &str) -> AttemptFailure {
        let message = format!(
            "the conversation is too large for the model, says {} ({}): {quoted}",
            self.provider, self.host
        );
        AttemptFailure::new(ModelErrorKind::Overflow, message)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place() -> ServerEndpoint {
        ServerEndpoint {
            provider: "OpenAI",
            host: "api.example".into(),
            key_variable: "OPENAI_API_KEY",
            key: ApiKey::new("sk-secret"),
        }
    }

    #[test]
    fn a_sentence_of_the_provider_is_not_ended_twice() {
        for status in [400, 401, 404, 422, 429, 500] {
            for ending in ["", ".", "..."] {
                let body =
                    format!(r#"{{"error":{{"message":"The model `x` does not exist{ending}"}}}}"#);
                let message = place().http_error(status, None, &body).message;
                assert!(
                    message.contains("does not exist") && !message.contains("exist.."),
                    "{status}: {message}"
                );
            }
        }
    }

    #[test]
    fn r072_overflow_is_recognised_in_the_words_of_each_provider() {
        let bodies = [
            (
                400,
                r#"{"error":{"message":"This model's maximum context length is 8192 tokens.","code":"context_length_exceeded"}}"#,
            ),
            (
                400,
                r#"{"error":{"message":"Your input exceeds the context window of this model.","code":"context_length_exceeded"}}"#,
            ),
            (
                400,
                r#"{"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long: 215000 tokens > 200000 maximum"}}"#,
            ),
            (
                400,
                r#"{"type":"error","error":{"type":"invalid_request_error","message":"input length and `max_tokens` exceed context limit: 1 + 2 > 2"}}"#,
            ),
            (
                413,
                r#"{"type":"error","error":{"type":"request_too_large","message":"Request exceeds the maximum size"}}"#,
            ),
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
            assert_eq!(
                place().http_error(status, None, body).kind,
                ModelErrorKind::Overflow,
                "{body}"
            );
        }
        let listed =
            place().http_error(400, None, r#"[{"error":{"code":400,"message":"no such field"}}]"#);
        assert_eq!(
            listed.message,
            "OpenAI (api.example) refused the request (status 400): no such field."
        );
        let other =
            place().http_error(400, None, r#"{"error":{"message":"unknown parameter: context"}}"#);
        assert_eq!(other.kind, ModelErrorKind::Rejected);
    }

    #[test]
    fn a_web_page_in_place_of_an_error_is_reduced_to_what_it_says() {
        let page = "<html><head><title>502 Bad Gateway</title></head><body><h1>502 Bad \
            Gateway</h1><hr>nginx</body></html>";
        let nested = serde_json::json!({"error": {"message": page, "code": 502}});
        for body in [page.to_owned(), nested.to_string()] {
            let failure = place().http_error(502, None, &body);
            assert_eq!(
                failure.message,
                "OpenAI (api.example) failed (status 502): (a web page) 502 Bad Gateway nginx"
            );
        }
        assert!(
            place()
                .stream_error(&nested["error"])
                .message
                .ends_with("an error: (a web page) 502 Bad Gateway nginx")
        );
        assert!(
            place().http_error(400, None, "<html>").message.contains("(a web page without text)")
        );
    }

    #[test]
    fn r085_only_trouble_that_may_pass_is_worth_another_attempt() {
        assert_eq!(
            place().http_error(503, Some(Duration::from_secs(3)), "busy").retry,
            Retryable::Yes(Some(Duration::from_secs(3)))
        );
        assert_eq!(place().http_error(400, None, "no").retry, Retryable::No);
        assert_eq!(place().http_error(302, None, "").retry, Retryable::No);
        let broke = r#"{"error":{"message":"You exceeded your current quota","type":"insufficient_quota","code":"insufficient_quota"}}"#;
        assert_eq!(place().http_error(429, None, broke).retry, Retryable::No);
    }

    #[test]
    fn r084_an_error_inside_a_stream_is_judged_by_what_it_says() {
        let overloaded = serde_json::json!({"type": "overloaded_error", "message": "Overloaded"});
        assert_eq!(place().stream_error(&overloaded).retry, Retryable::Yes(None));
        let status = serde_json::json!({"code": 502, "message": "Provider returned error"});
        assert_eq!(place().stream_error(&status).kind, ModelErrorKind::Unavailable);
        let refused = serde_json::json!({"type": "invalid_request_error", "message": "no"});
        assert_eq!(place().stream_error(&refused).retry, Retryable::No);
        assert!(place().stream_error(&Value::from("plain words")).message.ends_with("plain words"));
    }

    #[test]
    fn r114_a_key_in_an_error_body_is_not_repeated() {
        let failure = place().http_error(
            401,
            None,
            r#"{"error":{"message":"Incorrect API key provided: sk-secret.\u001b[2J"}}"#,
        );
        assert_eq!(
            failure.message,
            "OpenAI (api.example) did not accept the key (status 401): Incorrect API key \
                provided: [key redacted].\\u{1b}[2J. Check OPENAI_API_KEY."
        );
    }
}
