//! Servers over streamable HTTP.
//!
//! The SDK speaks the protocol; [`HttpServerClient`] sends its requests. It connects only to the
//! origin of the server, through the address checks of the host. Everything that the server sends
//! is limited before the SDK sees it, and the secrets of its requests are taken out of it.

mod authorization;
mod client;
mod endpoint;
mod events;
mod response;

pub(super) use client::HttpServerClient;
pub use endpoint::HttpServerTarget;

use std::sync::Arc;
use std::time::Duration;

use rmcp::transport::StreamableHttpClientTransport;
use rmcp::transport::common::client_side_sse::ExponentialBackoff;
use rmcp::transport::streamable_http_client::StreamableHttpClientTransportConfig;

use super::message_guard::MAX_MESSAGE_LEN;

/// How often a broken stream is opened again before it is given up.
const MAX_STREAM_RETRIES: usize = 4;
/// The longest pause between two attempts.
const MAX_STREAM_PAUSE: Duration = Duration::from_secs(10);
/// The number of requests at once.
const MAX_REQUESTS: usize = 16;
/// The number of messages that wait to be handled.
const MAX_WAITING_MESSAGES: usize = 4;
/// How long a notification or an answer may take to be sent.
const CONTROL_TIMEOUT: Duration = Duration::from_secs(5);

/// Creates the transport of a connection.
pub(super) fn transport(
    client: HttpServerClient,
) -> StreamableHttpClientTransport<HttpServerClient> {
    let url = client.url().to_string();
    let mut config = StreamableHttpClientTransportConfig::with_uri(url)
        .max_concurrent_requests(MAX_REQUESTS)
        .control_request_timeout(CONTROL_TIMEOUT);
    let mut retries = ExponentialBackoff::default();
    retries.max_times = Some(MAX_STREAM_RETRIES);
    retries.max_delay = Some(MAX_STREAM_PAUSE);
    config.retry_config = Arc::new(retries);
    config.channel_buffer_capacity = MAX_WAITING_MESSAGES;
    config.max_sse_event_size = MAX_MESSAGE_LEN;
    config.max_json_response_size = MAX_MESSAGE_LEN;
    StreamableHttpClientTransport::with_client(client, config)
}
