//! Patterns for base URLs: `https://gateway.example.com`, `https://*.example.com/v1`,
//! `http://127.0.0.1:11434`.
//!
//! A pattern covers the URLs with its scheme, host and port, at or below its path. `*.` at the
//! beginning of a host matches one or more labels. No pattern covers a URL that can be parsed in
//! different ways: one with a user, a query, a percent escape or a `..`.

use std::fmt;

/// A base URL, or a pattern for base URLs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BaseUrl {
    text: String,
    scheme: &'static str,
    host: String,
    port: u16,
    path: Vec<String>,
}

/// The error for a text that is not a valid URL.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} is not a URL such as https://gateway.example.com/v1: {problem}")]
pub struct BaseUrlError {
    text: String,
    problem: &'static str,
}

impl BaseUrl {
    /// Parses a URL pattern.
    ///
    /// # Errors
    ///
    /// Returns an error if the text is not a URL, or has a `*` other than a leading `*.` of the
    /// host.
    pub fn parse_pattern(text: &str) -> Result<Self, BaseUrlError> {
        let url = Self::parse(text)?;
        let host = url.host.strip_prefix("*.").unwrap_or(&url.host);
        if host.contains('*') {
            return Err(invalid_url(
                text,
                "`*` is only allowed at the beginning of the host, as in `*.example.com`",
            ));
        }
        Ok(url)
    }

    /// Returns whether this pattern covers a URL.
    pub fn covers(&self, address: &str) -> bool {
        let Ok(address) = Self::parse(address) else { return false };
        let host = match self.host.strip_prefix('*') {
            Some(end) => address.host.len() > end.len() && address.host.ends_with(end),
            None => address.host == self.host,
        };
        host && !address.host.contains('*')
            && (self.scheme, self.port) == (address.scheme, address.port)
            && address.path.starts_with(&self.path)
    }

    fn parse(text: &str) -> Result<Self, BaseUrlError> {
        let bad = |what| invalid_url(text, what);
        let (scheme, rest) = text
            .trim()
            .split_once("://")
            .ok_or_else(|| bad("the scheme is missing; add `https://`"))?;
        let (scheme, default_port) = match scheme.to_ascii_lowercase().as_str() {
            "https" => ("https", 443),
            "http" => ("http", 80),
            _ => return Err(bad("the scheme must be https or http")),
        };
        if !rest.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-._~:/[]*".contains(&byte)) {
            return Err(bad("only letters, digits and `-._~:/[]` are allowed"));
        }
        let (place, path) = rest.split_once('/').unwrap_or((rest, ""));
        let (host, port) = match place.rsplit_once(':') {
            // The colons of an IPv6 address are inside brackets.
            Some((host, port)) if !port.contains(']') => {
                (host, port.parse().map_err(|_| bad("the port is not a number from 0 to 65535"))?)
            }
            Some(_) | None => (place, default_port),
        };
        let inside = host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
        let is_bracketed =
            inside.is_some_and(|inside| !inside.is_empty() && !inside.contains(['[', ']']));
        if host.is_empty() || !is_bracketed && host.contains(['[', ']', ':', '~']) {
            return Err(bad("the host is missing or invalid"));
        }
        let path = path.strip_suffix('/').unwrap_or(path);
        let path: Vec<String> = match path {
            "" => Vec::new(),
            path => path.split('/').map(str::to_owned).collect(),
        };
        if path.iter().any(|part| matches!(part.as_str(), "" | "." | "..") || part.contains('*')) {
            return Err(bad("the path must not contain `//`, `.`, `..` or `*`"));
        }
        Ok(Self {
            text: text.trim().to_owned(),
            scheme,
            host: host.to_ascii_lowercase(),
            port,
            path,
        })
    }
}

fn invalid_url(text: &str, problem: &'static str) -> BaseUrlError {
    BaseUrlError { text: text.to_owned(), problem }
}

impl fmt::Display for BaseUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_covers_its_host_and_the_paths_below_its_path() {
        let table = [
            ("https://gw.example.com", "https://gw.example.com", true),
            ("https://gw.example.com", "https://GW.example.com:443/v1", true),
            ("https://gw.example.com", "http://gw.example.com", false),
            ("https://gw.example.com", "https://gw.example.com:8443", false),
            ("https://gw.example.com", "https://gw.example.com.evil.org", false),
            ("https://gw.example.com", "https://gw.example.com@evil.org", false),
            ("https://gw.example.com", "https://evil.org/https://gw.example.com", false),
            ("https://gw.example.com", "https://gw.example.com\\@evil.org", false),
            ("https://gw.example.com/v1", "https://gw.example.com/v1/", true),
            ("https://gw.example.com/v1", "https://gw.example.com/v1/chat", true),
            ("https://gw.example.com/v1", "https://gw.example.com/v10", false),
            ("https://gw.example.com/v1", "https://gw.example.com//v1", false),
            ("https://gw.example.com/v1", "https://gw.example.com/v1//", false),
            ("https://gw.example.com/v1", "https://gw.example.com/v1//chat", false),
            ("https://gw.example.com/v1", "https://gw.example.com/v1/../v2", false),
            ("https://gw.example.com/v1", "https://gw.example.com/v1/%2e%2e/v2", false),
            ("https://*.example.com", "https://eu.gw.example.com", true),
            ("https://*.example.com", "https://example.com", false),
            ("https://*.example.com", "https://evilexample.com", false),
            ("https://*.example.com", "https://*.example.com", false),
            ("http://127.0.0.1:11434", "http://127.0.0.1:11434/v1", true),
            ("http://[::1]:8000", "http://[::1]:8000", true),
            ("http://[::1]", "http://[::1]:80", true),
        ];
        for (pattern, address, expected) in table {
            assert_eq!(
                BaseUrl::parse_pattern(pattern).expect(pattern).covers(address),
                expected,
                "{pattern} and {address}"
            );
        }
    }

    #[test]
    fn invalid_url_patterns_are_errors() {
        for text in [
            "",
            "gw.example.com",
            "ftp://x",
            "https://",
            "https://a*b",
            "https://x/*",
            "https://x:y",
            "https://a@b",
            "https://x?y",
            "https://[::1",
        ] {
            assert!(BaseUrl::parse_pattern(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_pattern_covers_hosts_in_brackets_only_by_their_exact_text() {
        for (text, valid) in [
            ("https://[::1]:8080/v1", true),
            ("https://[]", false),
            ("https://[[::1]]", false),
            ("https://::1", false),
            ("https://~x", false),
            ("https://*.", true),
        ] {
            assert_eq!(BaseUrl::parse_pattern(text).is_ok(), valid, "{text}");
        }
        let below = BaseUrl::parse_pattern("https://*.example.com").expect("a pattern");
        assert!(!below.covers("https://.example.com"), "a label is missing");
    }
}
