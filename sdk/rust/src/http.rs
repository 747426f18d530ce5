//! Requests over HTTP. Needs [`Capability::Fetch`](crate::Capability::Fetch) with patterns that
//! cover them, such as `docs.rs`, `GET *` or `GET,POST api.example.com:8443`.
//!
//! The host decides on each request by itself and resolves names itself; addresses of the machine
//! and of private networks have to be asked for by themselves. [`send`] follows no redirect:
//! whoever follows one sends another request, and that is decided too. A header that says where a
//! request goes, such as `Host`, cannot be set, and a secret that the user lends to a host is added
//! where no tool sees it.
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
    /// Such as `GET`.
    pub method: String,
    /// The whole address, which begins with `https://` or `http://`. What comes after a `#` is not
    /// sent.
    pub url: String,
    /// Names and values.
    pub headers: Vec<(String, String)>,
    /// Up to 4 MiB.
    pub body: Vec<u8>,
    /// How long the server may be silent. The host's own limit is 30 seconds, and this can only be
    /// less.
    pub patience: Option<Duration>,
}

/// What a server answered. The body is read from it, up to 8 MiB.
pub struct Response {
    /// Such as 200. An error of the server is a response like any other.
    pub status: u16,
    /// Names and values. The same name can be there more than once.
    pub headers: Vec<(String, Vec<u8>)>,
    body: Box<dyn Read>,
}

/// Why there is no response.
#[derive(Clone, Debug, PartialEq)]
pub enum HttpError {
    /// The host or the user refused. Hand it on unchanged.
    Denied(Denial),
    /// It is no request that could be sent.
    InvalidRequest(String),
    /// The server took too long.
    TimedOut(String),
    /// It did not work.
    Failed(String),
}

/// Sends a request, and returns once the head of the response is there.
pub fn send(request: &Request) -> Result<Response, HttpError> {
    host::send(request)
}

impl Request {
    /// A request without a body.
    pub fn new(method: impl Into<String>, url: impl Into<String>) -> Self {
        Self {
            method: method.into(),
            url: url.into(),
            headers: Vec::new(),
            body: Vec::new(),
            patience: None,
        }
    }

    /// A `GET` request.
    pub fn get(url: impl Into<String>) -> Self {
        Self::new("GET", url)
    }

    /// With a header.
    #[must_use]
    pub fn header(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.headers.push((name.into(), value.into()));
        self
    }

    /// With a body. Say in a header what it is.
    #[must_use]
    pub fn body(self, body: impl Into<Vec<u8>>) -> Self {
        Self { body: body.into(), ..self }
    }
}

impl Response {
    /// A response, for tests.
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

    /// The first header of a name, in whatever case.
    pub fn header(&self, name: &str) -> Option<String> {
        let found = self.headers.iter().find(|(known, _)| known.eq_ignore_ascii_case(name));
        found.map(|(_, value)| String::from_utf8_lossy(value).into_owned())
    }

    /// The rest of the body, or as much of it, and whether that is all.
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
