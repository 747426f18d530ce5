//! URLs of HTTP servers that the user or a server named, and their origins.
//!
//! A URL is parsed once into a form that only one server can be meant by: a scheme, a host, a port
//! and a path. What clients and servers read in different ways is refused: a user name, a fragment,
//! `..`, a backslash, blanks and characters that are not ASCII.

use core::net::IpAddr;
use std::fmt;

use crate::HostAddress;

/// The longest URL, in bytes.
const MAX_URL_LEN: usize = 2048;
const HTTP_PORT: u16 = 80;
const HTTPS_PORT: u16 = 443;

/// The scheme, host and port of a URL. Two URLs of the same origin lead to the same server.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct HttpOrigin {
    is_encrypted: bool,
    host: HostAddress,
}

/// An `http` or `https` URL in its normal form.
///
/// ```
/// use cofferdam_policy::HttpUrl;
///
/// let url = HttpUrl::parse("https://MCP.example.com:443/mcp?a=b")?;
/// assert_eq!(url.to_string(), "https://mcp.example.com/mcp?a=b");
/// assert_eq!(url.origin().to_string(), "https://mcp.example.com");
/// assert!(HttpUrl::parse("https://a.com@evil.com/").is_err());
/// # Ok::<(), cofferdam_policy::HttpUrlError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct HttpUrl {
    origin: HttpOrigin,
    /// The path with the query. It begins with `/`.
    path: String,
}

/// Why a text is not a usable URL.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct HttpUrlError(String);

impl HttpOrigin {
    /// Returns whether the connection is encrypted.
    pub fn is_encrypted(&self) -> bool {
        self.is_encrypted
    }

    /// Returns the host and the port.
    pub fn host(&self) -> &HostAddress {
        &self.host
    }

    /// Returns whether the origin is on this machine: `localhost`, or a loopback address.
    pub fn is_loopback(&self) -> bool {
        match (self.host.parse_name(), self.host.address()) {
            (Some(name), _) => name == "localhost",
            (None, address) => address.is_some_and(|address| address.is_loopback()),
        }
    }
}

impl HttpUrl {
    /// Parses a URL.
    ///
    /// # Errors
    ///
    /// The text is not a URL, or programs could read it in different ways.
    pub fn parse(text: &str) -> Result<Self, HttpUrlError> {
        let bad = |problem: &str| HttpUrlError(problem.to_owned());
        if text.len() > MAX_URL_LEN {
            return Err(bad("the URL is longer than 2048 bytes"));
        }
        let (is_encrypted, rest) = match text.split_once("://") {
            Some((scheme, rest)) if scheme.eq_ignore_ascii_case("https") => (true, rest),
            Some((scheme, rest)) if scheme.eq_ignore_ascii_case("http") => (false, rest),
            _ => return Err(bad("the URL does not begin with `https://` or `http://`")),
        };
        let is_plain = |byte: u8| byte.is_ascii_graphic() && !b"\\\"<>^`{|}#".contains(&byte);
        if !rest.bytes().all(is_plain) {
            return Err(bad(
                "the URL contains a fragment, a blank, a control character or another character \
                    that a URL has only in encoded form",
            ));
        }
        let end = rest.find(['/', '?']).unwrap_or(rest.len());
        let (authority, path) = rest.split_at(end);
        if authority.contains('@') {
            return Err(bad("the URL contains a user name or a password"));
        }
        let has_port = authority.rsplit_once(':').is_some_and(|(_, port)| !port.contains(']'));
        let authority = match (has_port, is_encrypted) {
            (false, false) => format!("{authority}:{HTTP_PORT}"),
            _ => authority.to_owned(),
        };
        let host =
            HostAddress::parse(&authority).map_err(|error| HttpUrlError(error.to_string()))?;
        let path = if path.starts_with('/') { path.to_owned() } else { format!("/{path}") };
        if has_dot_segment(path.split('?').next().unwrap_or_default()) {
            return Err(bad("the path of the URL contains `.` or `..` as a directory"));
        }
        Ok(Self { origin: HttpOrigin { is_encrypted, host }, path })
    }

    /// Returns the scheme, the host and the port.
    pub fn origin(&self) -> &HttpOrigin {
        &self.origin
    }

    /// Returns the path with the query.
    pub fn path_and_query(&self) -> &str {
        &self.path
    }

    /// Returns the path without the query.
    pub fn path(&self) -> &str {
        self.path.split('?').next().unwrap_or_default()
    }

    /// Returns a URL of the same origin.
    ///
    /// # Errors
    ///
    /// The path is not valid.
    pub fn with_path(&self, path: &str) -> Result<Self, HttpUrlError> {
        Self::parse(&format!("{}{path}", self.origin))
    }
}

/// Whether a directory of a path is `.` or `..` for a server that decodes it, or that takes what
/// comes behind `;` for a parameter.
fn has_dot_segment(path: &str) -> bool {
    let mut decoded = path.to_ascii_lowercase();
    // `%252e` is `%2e` for a server that decodes twice.
    for _ in 0..3 {
        decoded = decoded.replace("%25", "%");
    }
    let decoded = decoded.replace("%2e", ".").replace("%2f", "/").replace("%5c", "/");
    decoded.split('/').any(|part| matches!(part.split(';').next(), Some("." | "..")))
}

impl fmt::Display for HttpOrigin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (scheme, default_port) = match self.is_encrypted {
            true => ("https", HTTPS_PORT),
            false => ("http", HTTP_PORT),
        };
        write!(f, "{scheme}://")?;
        match (self.host.parse_name(), self.host.address()) {
            (Some(name), _) => f.write_str(name)?,
            (None, Some(IpAddr::V6(address))) => write!(f, "[{address}]")?,
            (None, Some(IpAddr::V4(address))) => write!(f, "{address}")?,
            (None, None) => {}
        }
        match self.host.port() {
            port if port == default_port => Ok(()),
            port => write!(f, ":{port}"),
        }
    }
}

impl fmt::Display for HttpUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.origin, self.path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_has_one_form() {
        let table = [
            ("https://Example.COM./a?b", "https://example.com/a?b"),
            ("HTTPS://example.com", "https://example.com/"),
            ("https://example.com:443/mcp", "https://example.com/mcp"),
            ("https://example.com:80/", "https://example.com:80/"),
            ("http://localhost/", "http://localhost/"),
            ("http://localhost:443?x=1", "http://localhost:443/?x=1"),
            ("http://[::1]:8000/mcp", "http://[::1]:8000/mcp"),
            ("http://[::1]/mcp", "http://[::1]/mcp"),
            ("https://[::ffff:127.0.0.1]/", "https://127.0.0.1/"),
            ("https://a.com/x?y=/../z", "https://a.com/x?y=/../z"),
            ("https://a.com/.well-known/..x/a..b", "https://a.com/.well-known/..x/a..b"),
        ];
        for (text, expected) in table {
            let url = HttpUrl::parse(text).expect(text);
            assert_eq!(url.to_string(), expected, "{text}");
            assert_eq!(HttpUrl::parse(expected).as_ref(), Ok(&url), "{text}");
        }
    }

    #[test]
    fn what_programs_read_in_different_ways_is_refused() {
        for text in [
            "",
            "example.com",
            "ftp://example.com/",
            "file:///etc/passwd",
            "//example.com/",
            "https://",
            "https:///a",
            "https://allowed.com@evil.com/",
            "https://me:secret@example.com/",
            "https://example.com\\@evil.com/",
            "https://example.com/#x",
            "https://example.com/a b",
            "https://example.com/\r\nX: y",
            "https://ex\u{e4}mple.com/",
            "https://2130706433/",
            "https://127.1/",
            "https://0x7f.1/",
            "https://a..b/",
            "https://a.com:0/",
            "https://a.com:99999/",
            "https://a.com/a/../b",
            "https://a.com/a/%2e%2e/b",
            "https://a.com/a/.%2E/b",
            "https://a.com/a/%252e%252e/b",
            "https://a.com/a/..;x/b",
            "https://a.com/a%2f..%2fb",
            "https://a.com/./b",
        ] {
            assert!(HttpUrl::parse(text).is_err(), "{text}");
        }
        assert!(HttpUrl::parse(&format!("https://a.com/{}", "x".repeat(2100))).is_err());
    }

    #[test]
    fn only_the_machine_itself_is_loopback() {
        for (text, expected) in [
            ("http://localhost:1/", true),
            ("http://127.0.0.1/", true),
            ("http://127.8.8.8/", true),
            ("http://[::1]:9/", true),
            ("http://[::ffff:127.0.0.1]/", true),
            ("http://localhost.example.com/", false),
            ("http://127.0.0.1.example.com/", false),
            ("http://10.0.0.1/", false),
            ("http://0.0.0.0/", false),
        ] {
            assert_eq!(
                HttpUrl::parse(text).expect(text).origin().is_loopback(),
                expected,
                "{text}"
            );
        }
    }

    #[test]
    fn origins_are_compared_with_scheme_and_port() {
        let origin = |text: &str| HttpUrl::parse(text).expect(text).origin().clone();
        assert_eq!(origin("https://a.com/x"), origin("https://A.com.:443/y"));
        for other in ["http://a.com/x", "https://a.com:444/x", "https://b.com/x"] {
            assert_ne!(origin("https://a.com/x"), origin(other), "{other}");
        }
    }
}
