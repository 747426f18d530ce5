//! The checks of `Host` and `Origin`, against pages of browsers that reach this server by a name
//! that they control (DNS rebinding).

use std::net::{IpAddr, SocketAddr};

use http::uri::Authority;
use http::{HeaderMap, StatusCode, Uri, header};

use super::response::HttpRefusal;

/// The names under which clients may reach the server.
#[derive(Debug)]
pub(crate) struct AccessRules {
    /// Names, each with the only port that it may have.
    hosts: Vec<(RequestHost, Option<u16>)>,
    origins: Vec<String>,
}

/// A host as it is compared: an address, or a name in lower case.
#[derive(Clone, Debug, PartialEq, Eq)]
enum RequestHost {
    Address(IpAddr),
    Name(String),
}

impl RequestHost {
    /// Parses a host. Only the usual form of an address is one: no decimal or octal numbers.
    fn parse(host: &str) -> Option<Self> {
        let bare = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
        if let Some(address) = bare {
            return address.parse().ok().map(|address| Self::Address(IpAddr::V6(address)));
        }
        if let Ok(address) = host.parse() {
            return Some(Self::Address(IpAddr::V4(address)));
        }
        let is_name = !host.is_empty()
            && host.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-._".contains(&byte));
        is_name.then(|| Self::Name(host.to_ascii_lowercase()))
    }
}

/// Parses `name` or `name:port`.
fn parse_authority(text: &str) -> Option<(RequestHost, Option<u16>)> {
    if text.contains('@') {
        return None;
    }
    let authority = text.parse::<Authority>().ok()?;
    let port = match authority.port() {
        Some(port) => Some(port.as_str().parse().ok()?),
        None if text.ends_with(':') => return None,
        None => None,
    };
    Some((RequestHost::parse(authority.host())?, port))
}

/// Returns an origin as it is compared, or `None` if it is not `scheme://host` with an optional
/// port.
fn normalize_origin(origin: &str) -> Option<String> {
    let (scheme, rest) = origin.split_once("://")?;
    let is_scheme = !scheme.is_empty() && scheme.bytes().all(|byte| byte.is_ascii_alphanumeric());
    parse_authority(rest)?;
    is_scheme.then(|| origin.to_ascii_lowercase())
}

impl AccessRules {
    /// Creates the rules of a server that listens on an address.
    ///
    /// # Errors
    ///
    /// Returns the text that is neither a host nor an origin.
    pub(crate) fn new(
        address: SocketAddr,
        allowed_hosts: &[String],
        allowed_origins: &[String],
    ) -> Result<Self, String> {
        let port = address.port();
        let mut hosts = Vec::new();
        let mut origins = Vec::new();
        if !address.ip().is_unspecified() {
            hosts.push((RequestHost::Address(address.ip()), Some(port)));
        }
        if address.ip().is_loopback() {
            for name in ["localhost", "127.0.0.1", "[::1]"] {
                hosts.extend(RequestHost::parse(name).map(|name| (name, Some(port))));
                origins.push(format!("http://{name}:{port}"));
            }
        }
        for host in allowed_hosts {
            hosts.push(parse_authority(host).ok_or_else(|| host.clone())?);
        }
        for origin in allowed_origins {
            origins.push(normalize_origin(origin).ok_or_else(|| origin.clone())?);
        }
        Ok(Self { hosts, origins })
    }

    /// Returns whether no name leads to the server.
    pub(crate) fn is_empty(&self) -> bool {
        self.hosts.is_empty()
    }

    /// Checks that a request was sent to this server, and not by a page of somebody else.
    pub(crate) fn check(&self, uri: &Uri, headers: &HeaderMap) -> Result<(), HttpRefusal> {
        let bad = |problem| HttpRefusal::new(StatusCode::BAD_REQUEST, problem);
        // Proxies get other forms, and this server is none.
        if uri.authority().is_some() || !uri.path().starts_with('/') {
            return Err(bad("the request target must be a path"));
        }
        let mut values = headers.get_all(header::HOST).iter();
        let (Some(host), None) = (values.next(), values.next()) else {
            return Err(bad("the request must have exactly one Host header"));
        };
        let host = host.to_str().ok().and_then(parse_authority);
        let Some((name, port)) = host else { return Err(bad("the Host header is not valid")) };
        let is_known = |(known, of): &(RequestHost, Option<u16>)| {
            *known == name && (of.is_none() || *of == Some(port.unwrap_or(80)))
        };
        if !self.hosts.iter().any(is_known) {
            let problem = "the Host header names another server; `--allow-host` allows a name";
            return Err(HttpRefusal::new(StatusCode::FORBIDDEN, problem));
        }
        let mut values = headers.get_all(header::ORIGIN).iter();
        let Some(origin) = values.next() else { return Ok(()) };
        let origin = origin.to_str().ok().and_then(normalize_origin);
        let is_allowed = origin.is_some_and(|origin| self.origins.contains(&origin));
        if !is_allowed || values.next().is_some() {
            let problem =
                "pages of this origin may not use the server; `--allow-origin` allows one";
            return Err(HttpRefusal::new(StatusCode::FORBIDDEN, problem));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    fn status(rules: &AccessRules, host: &str, origin: Option<&str>) -> u16 {
        let mut headers = HeaderMap::new();
        headers.insert(header::HOST, HeaderValue::from_bytes(host.as_bytes()).expect("a value"));
        if let Some(origin) = origin {
            headers.insert(header::ORIGIN, HeaderValue::from_str(origin).expect("a value"));
        }
        let checked = rules.check(&Uri::from_static("/mcp"), &headers);
        checked.map_or_else(|refusal| refusal.status.as_u16(), |()| 200)
    }

    #[test]
    fn only_the_own_names_with_the_own_port_lead_to_a_local_server() {
        let address = "127.0.0.1:8000".parse().expect("an address");
        let rules = AccessRules::new(address, &[], &[]).expect("rules");
        for host in ["127.0.0.1:8000", "localhost:8000", "LOCALHOST:8000", "[::1]:8000"] {
            assert_eq!(status(&rules, host, None), 200, "{host}");
        }
        for host in [
            "evil.example:8000",
            "localhost",
            "localhost:80",
            "localhost.:8000",
            "localhost.evil.example:8000",
            "127.0.0.1.evil.example:8000",
            "2130706433:8000",
            "0x7f000001:8000",
            "127.1:8000",
            "127.0.0.2:8000",
            "0.0.0.0:8000",
            "[::ffff:127.0.0.1]:8000",
            "[::]:8000",
        ] {
            assert_eq!(status(&rules, host, None), 403, "{host}");
        }
        for host in [
            "",
            "a b",
            "localhost:8000@evil",
            "evil@localhost:8000",
            "localhost:",
            ":8000",
            "localhost:8000:8000",
            "localhost:99999",
            "localhost:8000/",
            "localh\u{f6}st:8000",
        ] {
            assert!([400, 403].contains(&status(&rules, host, None)), "{host}");
        }
    }

    #[test]
    fn only_the_own_origin_and_allowed_ones_may_send_requests() {
        let address = "127.0.0.1:8000".parse().expect("an address");
        let allowed = ["https://app.example.com".to_owned(), "http://b.example:3000".to_owned()];
        let rules = AccessRules::new(address, &["tools.example.com".to_owned()], &allowed);
        let rules = rules.expect("rules");
        for (host, origin) in [
            ("localhost:8000", "http://localhost:8000"),
            ("localhost:8000", "http://127.0.0.1:8000"),
            ("tools.example.com", "https://app.example.com"),
            ("tools.example.com:8443", "HTTPS://APP.example.com"),
            ("localhost:8000", "http://b.example:3000"),
        ] {
            assert_eq!(status(&rules, host, Some(origin)), 200, "{host} {origin}");
        }
        for origin in [
            "null",
            "",
            "http://localhost",
            "http://localhost:3000",
            "https://localhost:8000",
            "http://localhost:8000.evil.example",
            "http://evil.example",
            "https://app.example.com.evil.example",
            "https://evil@app.example.com",
            "https://app.example.com:8443",
            "https://app.example.com/",
            "file://",
        ] {
            assert_eq!(status(&rules, "localhost:8000", Some(origin)), 403, "{origin}");
        }
    }

    #[test]
    fn an_entry_that_is_no_host_or_origin_is_an_error() {
        let address = "0.0.0.0:8000".parse().expect("an address");
        assert!(AccessRules::new(address, &[], &[]).is_ok_and(|rules| rules.is_empty()));
        for host in ["", "https://a.example", "a b", "a@b", "a/b", "*"] {
            assert!(AccessRules::new(address, &[host.to_owned()], &[]).is_err(), "{host}");
        }
        for origin in ["*", "a.example", "https://a.example/path", "://a", "null"] {
            assert!(AccessRules::new(address, &[], &[origin.to_owned()]).is_err(), "{origin}");
        }
    }
}
