//! Sends requests and reads the response streams, with timeouts, retries and cancellation.
//!
//! - A request is sent again only if the failure is transient and no text of the response was shown
//!
//! - Any byte counts as activity. A provider that sends only heartbeats is given half an
//!   hour by default, and the user can cancel at any time.
//! - Every part of a response can be endless. Responses are read up to a size limit, and error
//!   bodies up to a deadline.
//! - Requests are sent uncompressed and ask for uncompressed responses
//!   (`Accept-Encoding: identity`). Compressed responses are refused, because a few bytes can
//!   expand to any size.
//! - Redirects are not followed, so a key is sent only to the host it was configured for.
//! - Dropping an attempt cancels it and closes its connection.

mod address;
mod headers;
#[cfg(test)]
mod tests;

use std::time::Duration;

use reqwest::header::{ACCEPT, ACCEPT_ENCODING, CONTENT_TYPE, HeaderMap};
use reqwest::{Response as HttpResponse, Url, redirect};
use serde_json::Value;
use tokio::time::{Instant, sleep, timeout, timeout_at};
use tokio_util::sync::CancellationToken;
use tracing::{debug, info};

use self::address::is_local;
pub(super) use self::address::is_loopback;
use self::headers::{compression, requested_pause};
use super::event_data::is_complete_json;
use super::failure::{AttemptFailure, Retryable, ServerEndpoint};
use super::sse::{SseEvent, SseParser};
use super::usage::plausible_usage;
use super::web_page::is_web_page;
use super::wire::{DecodeProgress, DeltaSink, StreamDecoder};
use crate::agent::ports::{ModelError, ModelErrorKind, ModelInfo, ResponseDelta};
use crate::conversation::ModelResponse;
use crate::model::{ProviderKind, RetryTiming};

/// The most bytes of an error body that are read: enough for any message.
const MAX_ERROR_BODY: usize = 64 << 10;

/// The longest time to wait for an error body, however slowly it arrives.
const ERROR_BODY_TIMEOUT: Duration = Duration::from_secs(10);

/// The most bytes of a stream that are read.
///
/// The longest responses have 0.5 MB of text, which OpenAI's format expands about a hundredfold.
const MAX_STREAM: usize = 256 << 20;

/// How long to wait for the rest of a stream after the response is complete.
///
/// The usage may still follow.
const TRAILER_TIMEOUT: Duration = Duration::from_secs(5);

/// The name of events that only show that the provider is alive.
const PING: &str = "ping";

/// How long a finished stream may take to close, so that its connection can be reused.
const CLOSE_TIMEOUT: Duration = Duration::from_millis(20);

/// The HTTP connection to one API of one provider.
#[derive(Debug)]
pub(super) struct Transport {
    client: reqwest::Client,
    url: Url,
    headers: HeaderMap,
    endpoint: ServerEndpoint,
    timing: RetryTiming,
    /// How long to wait for the first byte of a response.
    first_byte_timeout: Duration,
    /// The context window of the model in tokens, to check reported usage.
    context_window: u64,
}

/// The part of a response that a timeout waits for.
#[derive(Clone, Copy, Debug)]
enum AwaitedEvent {
    FirstByte,
    NextByte,
    /// Whatever follows a complete response.
    Trailer,
}

impl Transport {
    /// Creates the HTTP client. Nothing is sent yet.
    ///
    /// The caller marks header values with a key as sensitive.
    pub(super) fn new(
        url: Url,
        headers: HeaderMap,
        endpoint: ServerEndpoint,
        timing: RetryTiming,
        info: &ModelInfo,
    ) -> Result<Self, reqwest::Error> {
        let mut builder = reqwest::Client::builder()
            .connect_timeout(timing.connect_timeout)
            .redirect(redirect::Policy::none())
            .referer(false)
            .user_agent(concat!("cofferdam/", env!("CARGO_PKG_VERSION")));
        if is_loopback(&url) {
            builder = builder.no_proxy();
        }
        // Ollama runs on the user's own hardware, even if the address is public.
        let first_event = timing
            .first_event_timeout(info.provider == ProviderKind::Ollama.name() || is_local(&url));
        Ok(Self {
            client: builder.build()?,
            url,
            headers,
            endpoint,
            timing,
            first_byte_timeout: first_event,
            context_window: info.context_window,
        })
    }

    pub(super) fn endpoint(&self) -> &ServerEndpoint {
        &self.endpoint
    }

    /// Requests one response to this body, with retries.
    ///
    /// # Errors
    ///
    /// Returns the failure of the last attempt, with the text that was received.
    pub(super) async fn request<W: StreamDecoder>(
        &self,
        body: &Value,
        decoder: impl Fn() -> W + Send,
        mut sink: DeltaSink<'_>,
        cancel: &CancellationToken,
    ) -> Result<ModelResponse, ModelError> {
        let body = body.to_string();
        let mut attempt = 1;
        loop {
            let outcome = tokio::select! {
                biased;
                () = cancel.cancelled() => Err(aborted()),
                outcome = self.attempt(body.clone(), decoder(), &mut sink) => outcome,
            };
            let failure = match outcome {
                Ok(response) => {
                    let usage = plausible_usage(response.usage, body.len(), self.context_window);
                    return Ok(ModelResponse { usage, ..response });
                }
                Err(failure) => failure,
            };
            let pause = match self.retry_pause(&failure, attempt, sink.has_shown_text()) {
                Ok(pause) => pause,
                Err(failure) => return Err(failure.into_error(sink.into_text())),
            };
            info!(attempt, ?pause, kind = ?failure.kind, "retrying the model request");
            sink.send(ResponseDelta::Retry { attempt, pause, reason: &failure.message });
            tokio::select! {
                biased;
                () = cancel.cancelled() => return Err(aborted().into_error(sink.into_text())),
                () = sleep(pause) => {}
            }
            attempt += 1;
        }
    }

    /// Returns the pause before the next attempt, or the final failure.
    fn retry_pause(
        &self,
        failure: &AttemptFailure,
        attempt: u32,
        is_used: bool,
    ) -> Result<Duration, AttemptFailure> {
        let Retryable::Yes(requested) = failure.retry else { return Err(failure.clone()) };
        if is_used {
            return Err(failure.clone());
        }
        let max_pause = self.timing.max_retry_after;
        match requested {
            Some(requested) if requested > max_pause => {
                let message = format!(
                    "{}; the server asks to wait for {}, longer than the limit of {}\nhint: try \
                        again later",
                    failure.message,
                    describe_duration(requested),
                    describe_duration(max_pause)
                );
                Err(AttemptFailure::new(failure.kind, message))
            }
            _ if attempt >= self.timing.max_attempts => Err(AttemptFailure::new(
                failure.kind,
                format!("{} (given up after {attempt} attempts)", failure.message),
            )),
            requested => Ok(self.timing.retry_pause(attempt).max(requested.unwrap_or_default())),
        }
    }

    async fn attempt<W: StreamDecoder>(
        &self,
        body: String,
        decoder: W,
        sink: &mut DeltaSink<'_>,
    ) -> Result<ModelResponse, AttemptFailure> {
        let deadline = Instant::now() + self.first_byte_timeout;
        debug!(host = self.url.host_str(), bytes = body.len(), "sending a model request");
        let request = self
            .client
            .post(self.url.clone())
            .headers(self.headers.clone())
            .header(CONTENT_TYPE, "application/json")
            .header(ACCEPT, "text/event-stream")
            .header(ACCEPT_ENCODING, "identity")
            .body(body);
        let response = timeout_at(deadline, request.send())
            .await
            .map_err(|_| self.timeout_failure(AwaitedEvent::FirstByte))?
            .map_err(|error| self.transport_failure(error))?;
        let status = response.status().as_u16();
        debug!(status, "model server answered");
        let compressed = compression(response.headers());
        if status != 200 {
            let after = requested_pause(response.headers());
            let body = match compressed {
                Some(encoding) => format!(
                    "(its error message is compressed with {encoding}, although the request did \
                        not allow it)"
                ),
                None => self.read_error_body(response).await,
            };
            return Err(self.endpoint.http_error(status, after, &body));
        }
        if let Some(encoding) = compressed {
            return Err(self.endpoint.compressed(&encoding));
        }
        let content_type = response
            .headers()
            .get(CONTENT_TYPE)
            .and_then(|value| value.to_str().ok())
            .unwrap_or_default();
        match content_type
            .split(';')
            .next()
            .unwrap_or_default()
            .trim()
            .to_ascii_lowercase()
            .as_str()
        {
            "text/html" => Err(self.endpoint.unexpected_body("a web page")),
            "application/json" => Err(self.json_body_failure(response).await),
            _ => self.read_stream(response, deadline, decoder, sink).await,
        }
    }

    async fn read_stream<W: StreamDecoder>(
        &self,
        mut response: HttpResponse,
        mut deadline: Instant,
        mut decoder: W,
        sink: &mut DeltaSink<'_>,
    ) -> Result<ModelResponse, AttemptFailure> {
        let mut awaited = AwaitedEvent::FirstByte;
        let mut parser = SseParser::default();
        let mut events: Vec<SseEvent> = Vec::new();
        let mut prefix = BodyPrefix::default();
        let mut received = 0_usize;
        let mut heartbeats_until = Instant::now() + self.heartbeats();
        loop {
            let chunk = match timeout_at(deadline.min(heartbeats_until), response.chunk()).await {
                Ok(Ok(Some(chunk))) => chunk,
                _ if decoder.is_complete() => return decoder.finish_reason(),
                Ok(Ok(None)) if prefix.is_web_page() => {
                    return Err(self.endpoint.unexpected_body("a web page"));
                }
                Ok(Ok(None)) => {
                    // The last event may lack its blank line, but it must be complete.
                    if let Some(last) = parser
                        .finish()
                        .filter(|last| is_complete_json(&last.data) || last.data.trim() == "[DONE]")
                    {
                        decoder.decode(&last, sink)?;
                    }
                    return decoder.finish_reason();
                }
                Ok(Err(error)) => return Err(self.transport_failure(error)),
                Err(_) if Instant::now() >= heartbeats_until => return Err(self.only_heartbeats()),
                Err(_) => return Err(self.timeout_failure(awaited)),
            };
            received += chunk.len();
            if received > MAX_STREAM {
                return Err(self
                    .endpoint
                    .malformed(&format!("the response is longer than {} MiB", MAX_STREAM >> 20)));
            }
            prefix.push(&chunk);
            parser
                .push(&chunk, &mut events)
                .map_err(|error| self.endpoint.malformed(&error.to_string()))?;
            if events.iter().any(|event| event.name != PING) {
                heartbeats_until = Instant::now() + self.heartbeats();
            } else if Instant::now() >= heartbeats_until {
                return Err(self.only_heartbeats());
            }
            for event in events.drain(..) {
                if decoder.decode(&event, sink)? == DecodeProgress::Done {
                    // The response is complete, whether or not the connection can be reused.
                    let _ = timeout(CLOSE_TIMEOUT, async {
                        while let Ok(Some(_)) = response.chunk().await {}
                    })
                    .await;
                    return decoder.finish_reason();
                }
            }
            // Yield between pieces, so that a cancellation is noticed however fast they arrive.
            tokio::task::yield_now().await;
            // Everything after a complete response shares one deadline.
            let is_farewell = matches!(awaited, AwaitedEvent::Trailer);
            awaited =
                if decoder.is_complete() { AwaitedEvent::Trailer } else { AwaitedEvent::NextByte };
            if !is_farewell {
                deadline = Instant::now() + self.timeout_for(awaited);
            } else if Instant::now() >= deadline {
                return decoder.finish_reason();
            }
        }
    }

    async fn read_error_body(&self, mut response: HttpResponse) -> String {
        let mut body = Vec::new();
        let deadline = Instant::now() + ERROR_BODY_TIMEOUT.min(self.timing.idle_timeout);
        while body.len() < MAX_ERROR_BODY
            && let Ok(Ok(Some(chunk))) = timeout_at(deadline, response.chunk()).await
        {
            body.extend_from_slice(&chunk);
        }
        body.truncate(MAX_ERROR_BODY);
        String::from_utf8_lossy(&body).into_owned()
    }

    /// Returns the failure for a JSON body: an error, or a server that does not stream.
    async fn json_body_failure(&self, response: HttpResponse) -> AttemptFailure {
        let body = self.read_error_body(response).await;
        match serde_json::from_str::<Value>(&body) {
            Ok(value) if value.get("error").is_some_and(|error| !error.is_null()) => {
                self.endpoint.stream_error(&value["error"])
            }
            _ => self.endpoint.unexpected_body("a single JSON value"),
        }
    }

    fn timeout_for(&self, awaited: AwaitedEvent) -> Duration {
        match awaited {
            AwaitedEvent::FirstByte => self.first_byte_timeout,
            AwaitedEvent::NextByte => self.timing.idle_timeout,
            AwaitedEvent::Trailer => TRAILER_TIMEOUT.min(self.timing.idle_timeout),
        }
    }

    /// Returns how long a provider may send only heartbeats.
    fn heartbeats(&self) -> Duration {
        self.timing.heartbeats.max(self.timing.idle_timeout).max(self.first_byte_timeout)
    }

    fn only_heartbeats(&self) -> AttemptFailure {
        let ServerEndpoint { provider, host, .. } = &self.endpoint;
        let time = describe_duration(self.heartbeats());
        let message = format!(
            "{provider} ({host}) sent only heartbeats for {time}\nhint: if it needs more time, \
                raise `idle_timeout_seconds` in [provider] above this"
        );
        AttemptFailure::new(ModelErrorKind::Timeout, message)
    }

    fn timeout_failure(&self, awaited: AwaitedEvent) -> AttemptFailure {
        let ServerEndpoint { provider, host, .. } = &self.endpoint;
        let silence = describe_duration(self.timeout_for(awaited));
        let message = match awaited {
            AwaitedEvent::FirstByte => {
                format!(
                    "{provider} ({host}) sent nothing for {silence}\nhint: if it needs more time \
                        to begin, raise `first_event_timeout_seconds` in [provider]"
                )
            }
            AwaitedEvent::NextByte | AwaitedEvent::Trailer => {
                format!(
                    "{provider} ({host}) sent nothing for {silence} in the middle of a \
                        response\nhint: if it needs longer pauses, raise `idle_timeout_seconds` in \
                        [provider]"
                )
            }
        };
        AttemptFailure::new(ModelErrorKind::Timeout, message)
    }

    fn transport_failure(&self, error: reqwest::Error) -> AttemptFailure {
        let ServerEndpoint { provider, host, .. } = &self.endpoint;
        if error.is_connect() && error.is_timeout() {
            let silence = describe_duration(self.timing.connect_timeout);
            return AttemptFailure::transient(
                ModelErrorKind::Transport,
                format!("{provider} ({host}) could not be reached within {silence}"),
                None,
            );
        }
        let what =
            if error.is_connect() { "could not be reached" } else { "closed the connection" };
        let why = self.endpoint.quote(&root_cause(&error.without_url()));
        AttemptFailure::transient(
            ModelErrorKind::Transport,
            format!("{provider} ({host}) {what}: {why}"),
            None,
        )
    }
}

fn aborted() -> AttemptFailure {
    AttemptFailure::new(ModelErrorKind::Aborted, "cancelled")
}

/// Returns the innermost error, which is the helpful one: "connection refused" rather than "error
/// sending request".
fn root_cause(error: &dyn std::error::Error) -> String {
    let mut cause = error;
    while let Some(deeper) = cause.source() {
        cause = deeper;
    }
    cause.to_string()
}

fn describe_duration(duration: Duration) -> String {
    match duration.as_secs() {
        0 => format!("{} ms", duration.as_millis()),
        seconds @ 1..=119 => format!("{seconds} s"),
        seconds @ 120..=7_199 => format!("{} minutes", seconds / 60),
        seconds @ 7_200..=172_799 => format!("{} hours", seconds / 3_600),
        seconds @ 172_800..=31_535_999 => format!("{} days", seconds / 86_400),
        _ => "more than a year".to_owned(),
    }
}

/// The first bytes of a body, to recognise a web page with a wrong content type.
#[derive(Default)]
struct BodyPrefix(Vec<u8>);

impl BodyPrefix {
    fn push(&mut self, chunk: &[u8]) {
        let room = 64_usize.saturating_sub(self.0.len());
        self.0.extend_from_slice(&chunk[..chunk.len().min(room)]);
    }

    fn is_web_page(&self) -> bool {
        is_web_page(&String::from_utf8_lossy(&self.0))
    }
}
