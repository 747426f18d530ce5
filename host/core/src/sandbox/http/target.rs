//! The target of a request, parsed once into a normal form. The approved target is the one that is
//! dialled.

use http::request::Parts;
use http::uri::Scheme;

use crate::policy::{Denial, DenialCode, Effect, HostAddress};

/// The longest path, in bytes. Servers accept less, and a dialog can show it.
const MAX_PATH_LEN: usize = 8 << 10;

/// How often a path is decoded to find out what servers may read in it.
const MAX_DECODINGS: usize = 5;

/// The method and the address of a request.
pub(super) struct RequestTarget {
    method: http::Method,
    encrypted: bool,
    host: HostAddress,
    /// The path with the query, as it is sent: without `..` in any encoding.
    path: String,
}

impl RequestTarget {
    /// Parses the target of a guest's request.
    pub(super) fn from_request(head: &Parts) -> Result<Self, Denial> {
        let refuse = |reason: String| Denial::without_remedy(DenialCode::BadRequest, reason);
        let encrypted = head.uri.scheme() == Some(&Scheme::HTTPS);
        let authority = head
            .uri
            .authority()
            .ok_or_else(|| refuse("the URL of the request has no host.".into()))?;
        // The default port depends on the scheme. `HostAddress` alone would assume the port of
        // HTTPS.
        let text = match (authority.port(), encrypted) {
            (None, false) => format!("{authority}:80"),
            (Some(_), _) | (None, true) => authority.to_string(),
        };
        let host = HostAddress::parse(&text).map_err(|problem| refuse(format!("{problem}.")))?;
        if matches!(head.method, http::Method::CONNECT | http::Method::TRACE) {
            return Err(refuse(format!("tools cannot use the method {}.", head.method)));
        }
        // Rules name methods in upper case, but some servers accept `delete` as `DELETE`.
        if head.method.as_str().bytes().any(|byte| byte.is_ascii_lowercase()) {
            return Err(refuse(format!(
                "the method {} must be written in capital letters.",
                head.method
            )));
        }
        let path = head.uri.path_and_query().map_or("/", |path| path.as_str()).to_owned();
        let mut target = Self { method: head.method.clone(), encrypted, host, path };
        // The client resolves `..` and its encodings, and the approved URL must be the one that is
        // sent.
        let sent = target
            .client_url()
            .ok_or_else(|| refuse("the URL of the request is ambiguous.".into()))?;
        target.path = path_and_query(&sent);
        if has_hidden_parent_dir(sent.path()) {
            return Err(refuse(
                "the path of the request contains `..` in a form that servers may resolve.".into(),
            ));
        }
        if target.path.len() > MAX_PATH_LEN {
            return Err(refuse(format!(
                "the path of the request is longer than {MAX_PATH_LEN} bytes."
            )));
        }
        Ok(target)
    }

    /// Returns the URL as the client parses it; `None` if the client reads another host or port.
    pub(super) fn client_url(&self) -> Option<reqwest::Url> {
        let sent = reqwest::Url::parse(&self.url()).ok()?;
        let read = sent.host_str().unwrap_or_default();
        let is_same_host = match self.host.address() {
            Some(address) => read.trim_matches(['[', ']']).parse() == Ok(address),
            None => self.host.parse_name() == Some(read),
        };
        (is_same_host && sent.port_or_known_default() == Some(self.host.port())).then_some(sent)
    }

    /// Returns the URL of the client if it has exactly this path.
    pub(super) fn exact_client_url(&self) -> Option<reqwest::Url> {
        self.client_url().filter(|sent| path_and_query(sent) == self.path)
    }

    pub(super) fn host(&self) -> &HostAddress {
        &self.host
    }

    pub(super) fn method(&self) -> &http::Method {
        &self.method
    }

    pub(super) fn is_encrypted(&self) -> bool {
        self.encrypted
    }

    /// Returns the effect for the gate.
    pub(super) fn effect(&self) -> Effect {
        Effect::Fetch { method: self.method.to_string(), host: self.host.clone(), url: self.url() }
    }

    /// Returns the complete URL.
    pub(super) fn url(&self) -> String {
        let scheme = if self.encrypted { "https" } else { "http" };
        let slash = if self.path.starts_with('/') { "" } else { "/" };
        // `HostAddress` omits the port of HTTPS, which plain HTTP would read as its own default.
        let port = if !self.encrypted && self.host.port() == 443 { ":443" } else { "" };
        format!("{scheme}://{}{port}{slash}{}", self.host, self.path)
    }
}

/// Whether a part of a path is `..` for a server that decodes more of it than a client does, takes
/// `%2f` or `\\` for `/`, or leaves out what comes behind `;`.
fn has_hidden_parent_dir(path: &str) -> bool {
    let mut path = path.as_bytes().to_vec();
    for _ in 0..MAX_DECODINGS {
        let decoded = decode_percent(&path);
        let mut parts = decoded.split(|byte| matches!(byte, b'/' | b'\\'));
        if parts.any(|part| part.split(|byte| *byte == b';').next() == Some(b"..")) {
            return true;
        }
        if decoded == path {
            return false;
        }
        path = decoded;
    }
    // Nobody encodes so often.
    true
}

fn decode_percent(text: &[u8]) -> Vec<u8> {
    let digit = |at: usize| char::from(*text.get(at)?).to_digit(16);
    let mut decoded = Vec::with_capacity(text.len());
    let mut at = 0;
    while let Some(byte) = text.get(at) {
        let value = digit(at + 1).zip(digit(at + 2)).filter(|_| *byte == b'%');
        match value.and_then(|(high, low)| u8::try_from(high * 16 + low).ok()) {
            Some(value) => {
                decoded.push(value);
                at += 3;
            }
            None => {
                decoded.push(*byte);
                at += 1;
            }
        }
    }
    decoded
}

fn path_and_query(url: &reqwest::Url) -> String {
    match url.query() {
        Some(query) => format!("{}?{query}", url.path()),
        None => url.path().to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn target(method: &str, uri: &str) -> Result<String, String> {
        let (head, ()) =
            http::Request::builder().method(method).uri(uri).body(()).expect(uri).into_parts();
        RequestTarget::from_request(&head)
            .map(|target| format!("{} {}", target.method(), target.url()))
            .map_err(|denial| denial.to_string())
    }

    #[test]
    fn r122_a_request_is_parsed_into_the_form_that_is_sent() {
        let table = [
            ("https://Example.COM./a?b", "GET https://example.com/a?b"),
            ("https://example.com:443", "GET https://example.com/"),
            ("http://example.com/", "GET http://example.com:80/"),
            ("http://example.com:443/", "GET http://example.com:443/"),
            ("https://example.com:8443?x", "GET https://example.com:8443/?x"),
            ("https://[::ffff:127.0.0.1]/", "GET https://127.0.0.1/"),
            ("https://[2001:DB8::1]:80/", "GET https://[2001:db8::1]:80/"),
            (
                "https://a.com/repos/me/%2e%2e/%2E%2e/.%2e/user/keys?a=/../b",
                "GET https://a.com/user/keys?a=/../b",
            ),
            ("https://a.com/safe\\..\\..\\admin", "GET https://a.com/admin"),
            ("https://a.com/a/../../b/./c", "GET https://a.com/b/c"),
            ("https://a.com//b?", "GET https://a.com//b?"),
        ];
        for (uri, read) in table {
            assert_eq!(target("GET", uri).as_deref(), Ok(read), "{uri}");
            let (head, ()) = http::Request::get(uri).body(()).expect(uri).into_parts();
            let target = RequestTarget::from_request(&head).expect(uri);
            let sent = target.exact_client_url().map(|sent| path_and_query(&sent));
            assert_eq!(sent.as_deref(), Some(target.path.as_str()), "{uri}");
        }
    }

    #[test]
    fn a_path_that_servers_may_resolve_again_is_refused() {
        for path in [
            "/me/..%2fadmin",
            "/me/%2e%2e%2Fadmin",
            "/me/..%5cadmin",
            "/me/%2e%2e;/admin",
            "/me/..;a=b/admin",
            "/me%2f..%2fadmin",
            "/me/%252e%252e/admin",
            "/me/..%252fadmin",
            "/me%5c..",
            "/%25252525252e",
        ] {
            let refused = target("GET", &format!("https://a.com{path}"));
            let refused = refused.expect_err(path);
            assert!(refused.contains("`..`"), "{path}: {refused}");
        }
        for path in ["/a%2fb", "/a...b", "/..a/b", "/a..%2fb", "/100%", "/a;..", "/x?y=..%2f"] {
            target("GET", &format!("https://a.com{path}")).expect(path);
        }
    }

    #[test]
    fn an_ambiguous_url_is_denied() {
        for uri in [
            "https://allowed.com@evil.com/",
            "https://0x7f.1/",
            "https://2130706433/",
            "https://127.1/",
            "https://a..b/",
            "/x",
        ] {
            let refused = target("GET", uri).expect_err(uri);
            assert!(refused.starts_with("denied (bad-request): "), "{uri}: {refused}");
        }
        for method in ["CONNECT", "TRACE", "connect", "delete", "Get"] {
            assert!(target(method, "https://example.com/").is_err(), "{method}");
        }
        assert!(target("GET", &format!("https://example.com/{}", "x".repeat(9000))).is_err());
    }
}
