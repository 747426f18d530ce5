//! Requests over HTTP. Needs [`Capability::Fetch`](crate::Capability::Fetch) with patterns that
//! cover them, such as `docs.rs`, `GET *` or `GET,POST api.example.com:8443`.
//!
//! The host checks each request and resolves host names. Patterns with wildcards do not cover this
//! machine and private networks. [`send`] does not follow redirects; to follow one, send another
//! request. Headers that change the destination, such as `Host`, cannot be set. The host adds
//! secrets that the user configured; the tool never sees them.
//!
//! ```
//! use cofferdam_sdk::http::{self, Request};
//! use cofferdam_sdk::ToolError;
//!
//! fn latest_version() -> Result<String, ToolError> {
//!     let request =
//!         Request::get("https://example.com/version.txt").header("accept", "text/plain");
//!     let mut response = http::send(&request)?;
//!     let (bytes, _) = response.read_up_to(1 << 10)?;
//!     Ok(String::from_utf8_lossy(&bytes).into_owned())
//! }
//! ```

#[cfg(target_family = "wasm")]
pub(crate) mod wasi;

use std::fmt;
use std::io::{self, Read};
use std::time::Duration;

use crate::imports::http as host;
use crate::{Denial, ToolError};

/// A request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// The method, such as `GET`.
    pub method: String,
    /// The complete URL, which begins with `https://` or `http://`. The fragment after `#` is not
    /// sent.
    pub url: String,
    /// Names and values.
    pub headers: Vec<(String, String)>,
    /// Up to 4 MiB.
    pub body: Vec<u8>,
    /// The maximum time without data from the server. It cannot exceed the host's limit of 30
    /// seconds.
    pub patience: Option<Duration>,
}

/// The response of a server. The body has at most 8 MiB.
pub struct Response {
    /// The status, such as 200. Error statuses are normal responses.
    pub status: u16,
    /// Names and values. A name can occur more than once.
    pub headers: Vec<(String, Vec<u8>)>,
    body: Box<dyn Read>,
}

/// The reason why there is no response.
#[derive(Clone, Debug, PartialEq)]
pub enum HttpError {
    /// The host denied the request, or the user rejected it. Return the denial unchanged.
    Denied(Denial),
    /// The request is not valid.
    InvalidRequest(String),
    /// The server did not respond in time.
    TimedOut(String),
    /// Any other failure.
    Failed(String),
}

/// Sends a request, and returns when the status and headers of the response have arrived.
pub fn send(request: &Request) -> Result<Response, HttpError> {
    host::send(request)
}

impl Request {
    /// Creates a request without a body.
    pub fn new(method: impl Into<String>, url: impl Into<String>) -> Self {
        Self {
            method: method.into(),
            url: url.into(),
            headers: Vec::new(),
            body: Vec::new(),
            patience: None,
        }
    }

    /// Creates a `GET` request.
    pub fn get(url: impl Into<String>) -> Self {
        Self::new("GET", url)
    }

    /// Adds a header.
    #[must_use]
    pub fn header(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.headers.push((name.into(), value.into()));
        self
    }

    /// Sets the body. Set its media type with a header.
    #[must_use]
    pub fn body(self, body: impl Into<Vec<u8>>) -> Self {
        Self { body: body.into(), ..self }
    }
}

impl Response {
    /// Creates a response, for tests.
    pub fn new<'h>(
        status: u16,
        headers: impl IntoIterator<Item = (&'h str, &'h str)>,
        body: impl Into<Vec<u8>>,
    ) -> Self {
        let headers = headers
            .into_iter()
            .map(|(name, value)| (name.to_owned(), value.as_bytes().to_vec()))
            .collect();
        Self { status, headers, body: Box::new(io::Cursor::new(body.into())) }
    }

    /// Returns the first header with a name, ignoring case.
    pub fn header(&self, name: &str) -> Option<String> {
        let found = self.headers.iter().find(|(known, _)| known.eq_ignore_ascii_case(name));
        found.map(|(_, value)| String::from_utf8_lossy(value).into_owned())
    }

    /// Reads the rest of the body, up to a limit, and returns whether it is complete.
    pub fn read_up_to(&mut self, most: usize) -> io::Result<(Vec<u8>, bool)> {
        let mut bytes = Vec::new();
        self.by_ref().take(most as u64).read_to_end(&mut bytes)?;
        let complete =
            bytes.len() < most || self.by_ref().take(1).read_to_end(&mut Vec::new())? == 0;
        Ok((bytes, complete))
    }
}

impl Read for Response {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.body.read(buffer)
    }
}

impl fmt::Debug for Response {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Response")
            .field("status", &self.status)
            .field("headers", &self.headers)
            .finish_non_exhaustive()
    }
}

impl From<HttpError> for ToolError {
    fn from(error: HttpError) -> Self {
        match error {
            HttpError::Denied(denial) => Self::Denied(denial),
            HttpError::InvalidRequest(message) => Self::invalid_input("", message),
            HttpError::TimedOut(message) => Self::TimedOut(message),
            HttpError::Failed(message) => Self::Failed(message),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_body_is_read_up_to_a_length() {
        for (most, read, complete) in
            [(0, "", false), (3, "tex", false), (4, "text", true), (5, "text", true)]
        {
            let mut response = Response::new(200, [("Content-Type", "text/plain")], "text");
            assert_eq!(response.header("content-type").as_deref(), Some("text/plain"));
            assert_eq!(
                response.read_up_to(most).expect("it is there"),
                (read.as_bytes().to_vec(), complete),
                "{most}"
            );
        }
    }
}
