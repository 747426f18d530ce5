//! A client that sends requests to one origin, whose addresses were checked.

use std::net::SocketAddr;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, StatusCode, header};

use crate::policy::{HttpOrigin, HttpUrl};

/// How long a connection may take.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// The number of headers of a response. Their size is limited by the HTTP implementation.
const MAX_HEADERS: usize = 100;
/// The number of connections that wait for the next request.
const MAX_IDLE_CONNECTIONS: usize = 4;

/// A client that sends requests to one origin alone. Clones share their connections.
#[derive(Clone, Debug)]
pub struct OriginClient {
    origin: HttpOrigin,
    addresses: Vec<SocketAddr>,
    client: reqwest::Client,
}

/// A request to an origin.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct OriginRequest {
    /// The method.
    pub method: Method,
    /// The URL, which has to be of the origin of the client.
    pub url: HttpUrl,
    /// The headers.
    pub headers: HeaderMap,
    /// The body.
    pub body: Bytes,
    /// The time until the headers of the response.
    pub head_timeout: Duration,
    /// The time between two pieces of the body of the response. `None` if the caller limits it.
    pub idle_timeout: Option<Duration>,
}

/// A response whose body is not read yet.
#[derive(Debug)]
#[non_exhaustive]
pub struct OriginResponse {
    /// The status.
    pub status: StatusCode,
    /// The headers.
    pub headers: HeaderMap,
    /// The body.
    pub body: OriginBody,
}

/// The body of a response.
#[derive(Debug)]
pub struct OriginBody {
    response: reqwest::Response,
    idle_timeout: Option<Duration>,
}

/// Why there is no response, or no complete one. The texts are ends of sentences about a server.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum OriginError {
    /// The URL is not of the origin of the client.
    #[error("the request is for another server")]
    OtherOrigin,
    /// The server cannot be reached, or it broke the connection.
    #[error("{0}")]
    Failed(String),
    /// The server is too slow.
    #[error("it {what} within {} seconds", limit.as_secs_f32())]
    TooSlow {
        /// What the server did not do.
        what: &'static str,
        /// The limit.
        limit: Duration,
    },
    /// The body is compressed, although the request did not allow it.
    #[error("it compressed its response, although the request did not allow that")]
    Compressed,
    /// The body is too large.
    #[error("it sent a response of more than {0} bytes")]
    TooLarge(usize),
}

impl OriginRequest {
    /// Creates a request with default time limits.
    pub fn new(method: Method, url: HttpUrl) -> Self {
        Self {
            method,
            url,
            headers: HeaderMap::new(),
            body: Bytes::new(),
            head_timeout: Duration::from_secs(30),
            idle_timeout: Some(Duration::from_secs(30)),
        }
    }
}

impl OriginClient {
    /// Creates a client that connects to these addresses.
    pub(super) fn new(origin: HttpOrigin, addresses: &[SocketAddr]) -> Result<Self, String> {
        let mut builder = reqwest::Client::builder()
            .redirect(reqwest::redirect::Policy::none())
            .retry(reqwest::retry::never())
            .referer(false)
            .no_proxy()
            .http1_only()
            .http1_max_headers(MAX_HEADERS)
            .pool_max_idle_per_host(MAX_IDLE_CONNECTIONS)
            .connect_timeout(CONNECT_TIMEOUT)
            .user_agent(concat!("cofferdam/", env!("CARGO_PKG_VERSION")));
        if let Some(name) = origin.host().parse_name() {
            builder = builder.resolve_to_addrs(name, addresses);
        }
        let client = builder.build();
        let client = client.map_err(|error| format!("cannot create the HTTP client: {error}"))?;
        Ok(Self { origin, addresses: addresses.to_vec(), client })
    }

    /// Returns the addresses that the client connects to.
    pub fn addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }

    /// Sends a request, and waits for the headers of the response.
    ///
    /// # Errors
    ///
    /// The server cannot be reached, is too slow, or compresses its response.
    pub async fn send(&self, request: OriginRequest) -> Result<OriginResponse, OriginError> {
        let OriginRequest { method, url, mut headers, body, head_timeout, idle_timeout } = request;
        if *url.origin() != self.origin {
            return Err(OriginError::OtherOrigin);
        }
        let text = url.to_string();
        // Both parsers have to read the same URL.
        let parsed = reqwest::Url::parse(&text).ok().filter(|parsed| parsed.as_str() == text);
        let parsed =
            parsed.ok_or_else(|| OriginError::Failed("its URL is ambiguous".to_owned()))?;
        headers.insert(header::ACCEPT_ENCODING, HeaderValue::from_static("identity"));
        let sending = self.client.request(method, parsed).headers(headers).body(body).send();
        let response = match tokio::time::timeout(head_timeout, sending).await {
            Ok(Ok(response)) => response,
            Ok(Err(error)) => return Err(OriginError::Failed(describe(&error))),
            Err(_) => {
                return Err(OriginError::TooSlow { what: "does not respond", limit: head_timeout });
            }
        };
        let (status, headers) = (response.status(), response.headers().clone());
        let is_plain = headers
            .get_all(header::CONTENT_ENCODING)
            .iter()
            .all(|value| value.as_bytes().trim_ascii().eq_ignore_ascii_case(b"identity"));
        if !is_plain {
            return Err(OriginError::Compressed);
        }
        Ok(OriginResponse { status, headers, body: OriginBody { response, idle_timeout } })
    }
}

impl OriginBody {
    /// Returns the length that the server announced.
    pub fn announced_length(&self) -> Option<u64> {
        self.response.content_length()
    }

    /// Reads the next piece; `None` at the end.
    ///
    /// # Errors
    ///
    /// The connection broke, or nothing came in time.
    pub async fn chunk(&mut self) -> Result<Option<Bytes>, OriginError> {
        let reading = self.response.chunk();
        let read = match self.idle_timeout {
            None => reading.await,
            Some(limit) => match tokio::time::timeout(limit, reading).await {
                Ok(read) => read,
                Err(_) => {
                    let what = "does not send the rest of its response";
                    return Err(OriginError::TooSlow { what, limit });
                }
            },
        };
        read.map_err(|error| OriginError::Failed(describe(&error)))
    }

    /// Reads the whole body, within a limit on its size and on the time.
    ///
    /// # Errors
    ///
    /// The body is too large or too slow, or the connection broke.
    pub async fn read_all(&mut self, most: usize, limit: Duration) -> Result<Vec<u8>, OriginError> {
        if self.announced_length().is_some_and(|length| length > most as u64) {
            return Err(OriginError::TooLarge(most));
        }
        let reading = async {
            let mut bytes = Vec::new();
            while let Some(piece) = self.chunk().await? {
                if bytes.len() + piece.len() > most {
                    return Err(OriginError::TooLarge(most));
                }
                bytes.extend_from_slice(&piece);
            }
            Ok(bytes)
        };
        match tokio::time::timeout(limit, reading).await {
            Ok(read) => read,
            Err(_) => Err(OriginError::TooSlow { what: "does not send its whole response", limit }),
        }
    }
}

/// Describes an error by its innermost cause. The outer ones repeat the URL.
fn describe(error: &reqwest::Error) -> String {
    let mut cause: &dyn std::error::Error = error;
    while let Some(inner) = cause.source() {
        cause = inner;
    }
    match (error.is_connect(), error.is_timeout()) {
        (true, true) => "it cannot be connected to in time".to_owned(),
        (true, false) => format!("it cannot be connected to: {cause}"),
        (false, _) => format!("the connection to it failed: {cause}"),
    }
}
