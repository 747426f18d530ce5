//! Patterns for hosts.
//!
//! | pattern | covers | does not cover |
//! |---|---|---|
//! | `example.com` | `example.com`, `EXAMPLE.com.` | `www.example.com`, `example.com.evil.com` |
//! | `*.example.com` | `a.example.com`, `a.b.example.com` | `example.com`, `evilexample.com` |
//! | `example.com:8443` | only that port | port 443 |
//! | `192.0.2.7`, `[2001:db8::1]:8080` | the IP address in any form | a host name of the address |
//! | `*` | every host | – |
//!
//! Without a port, `allow` covers only 443, while `ask` and `deny` cover every port. A pattern has
//! no scheme, path or user. A star cannot be inside a name or directly before a top-level domain.

use core::net::{IpAddr, SocketAddr};
use std::fmt;

use serde::{Serialize, Serializer};

use super::{PatternError, PatternMatch, matches_strictly};
use crate::Verdict;

const HTTPS_PORT: u16 = 443;

/// A pattern for hosts and their ports.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostPattern {
    host: HostName,
    port: Option<u16>,
}

/// The destination of an HTTP request: a host name or an IP address, and a port.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct HostAddress {
    host: ExactHost,
    port: u16,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum HostName {
    Any,
    Subdomain(String),
    Exact(ExactHost),
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum ExactHost {
    Name(String),
    Address(IpAddr),
}

impl HostPattern {
    /// Parses a host pattern.
    ///
    /// # Errors
    ///
    /// Returns an error if the text is outside the grammar of this module.
    pub fn parse(text: &str) -> Result<Self, PatternError> {
        let bad =
            |reason: String| PatternError(format!("`{text}` is not a host pattern: {reason}"));
        let (host, port) = split_host_port(text).map_err(bad)?;
        if host == "*" {
            return Ok(Self { host: HostName::Any, port });
        }
        if let Some(parent) = host.strip_prefix("*.") {
            let parent = name(parent).map_err(bad)?;
            if !parent.contains('.') {
                return Err(bad(format!(
                    "it covers every host of `{parent}`; add a domain, such as `*.example.{parent}`"
                )));
            }
            return Ok(Self { host: HostName::Subdomain(parent), port });
        }
        if host.contains('*') {
            return Err(bad("`*` must be the whole first label, as in `*.example.com`".into()));
        }
        Ok(Self { host: HostName::Exact(parse_host(host).map_err(bad)?), port })
    }

    /// Returns whether the pattern is a single IP address.
    pub fn is_address(&self) -> bool {
        matches!(self.host, HostName::Exact(ExactHost::Address(_)))
    }

    /// Returns how far a host matches this pattern, in a rule with this verdict.
    pub fn matches(&self, at: &HostAddress, verdict: Verdict) -> PatternMatch {
        let port = match self.port {
            Some(port) => at.port == port,
            None => !matches_strictly(verdict) || at.port == HTTPS_PORT,
        };
        let host = match (&self.host, &at.host) {
            (HostName::Any, ExactHost::Name(_) | ExactHost::Address(_)) => true,
            (HostName::Subdomain(parent), ExactHost::Name(name)) => name
                .strip_suffix(parent)
                .is_some_and(|front| front.len() > 1 && front.ends_with('.')),
            (HostName::Subdomain(_), ExactHost::Address(_)) => false,
            (HostName::Exact(ours), theirs) => ours == theirs,
        };
        PatternMatch::from_bool(port && host)
    }
}

impl HostAddress {
    /// Parses `host` or `host:port`. The default port is 443.
    ///
    /// # Errors
    ///
    /// Returns an error if the text is not a host with an optional port.
    pub fn parse(text: &str) -> Result<Self, PatternError> {
        let bad = |reason: String| PatternError(format!("`{text}` is not a host: {reason}"));
        let (host, port) = split_host_port(text).map_err(bad)?;
        Ok(Self { host: parse_host(host).map_err(bad)?, port: port.unwrap_or(HTTPS_PORT) })
    }

    /// Creates a host from an IP address and a port.
    pub fn from_socket_addr(address: SocketAddr) -> Self {
        Self { host: ExactHost::Address(address.ip().to_canonical()), port: address.port() }
    }

    /// Returns the host name; `None` for an IP address.
    pub fn parse_name(&self) -> Option<&str> {
        match &self.host {
            ExactHost::Name(name) => Some(name),
            ExactHost::Address(_) => None,
        }
    }

    /// Returns the IP address; `None` for a host name.
    pub fn address(&self) -> Option<IpAddr> {
        match &self.host {
            ExactHost::Name(_) => None,
            ExactHost::Address(address) => Some(*address),
        }
    }

    /// Returns the port of the destination.
    pub fn port(&self) -> u16 {
        self.port
    }
}

impl Serialize for HostAddress {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl fmt::Display for HostAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.host {
            ExactHost::Name(name) => f.write_str(name)?,
            ExactHost::Address(IpAddr::V4(address)) => write!(f, "{address}")?,
            ExactHost::Address(IpAddr::V6(address)) => write!(f, "[{address}]")?,
        }
        if self.port == HTTPS_PORT { Ok(()) } else { write!(f, ":{}", self.port) }
    }
}

/// Splits a text into host and port, without the brackets of an IPv6 address.
fn split_host_port(text: &str) -> Result<(&str, Option<u16>), String> {
    if text.contains("://") {
        return Err("remove the scheme".into());
    }
    if let Some(c) =
        text.chars().find(|c| "/@?#".contains(*c) || c.is_whitespace() || c.is_control())
    {
        return Err(format!("{c:?} is not allowed in a host"));
    }
    let (host, port) = match text.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((host, rest)) => (host, rest.strip_prefix(':').or((!rest.is_empty()).then_some(rest))),
        None => match text.rsplit_once(':') {
            Some((host, _)) if host.contains(':') => {
                return Err("put an IPv6 address in brackets".into());
            }
            Some((host, port)) => (host, Some(port)),
            None => (text, None),
        },
    };
    let port = port.map(|port| match port.parse::<u16>() {
        Ok(number @ 1..) if port.bytes().all(|b| b.is_ascii_digit()) => Ok(number),
        _ => Err(format!("port `{port}` is not a number from 1 to 65535")),
    });
    Ok((host, port.transpose()?))
}

fn parse_host(host: &str) -> Result<ExactHost, String> {
    if let Ok(address) = host.parse::<IpAddr>() {
        return Ok(ExactHost::Address(address.to_canonical()));
    }
    name(host).map(ExactHost::Name)
}

/// Normalizes a DNS name: lower case, without a trailing dot.
fn name(host: &str) -> Result<String, String> {
    let host = host.strip_suffix('.').unwrap_or(host).to_ascii_lowercase();
    if !host.is_ascii() {
        return Err("write an internationalized name in its ASCII form (`xn--…`)".into());
    }
    let label = |label: &str| {
        let letters = label.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_');
        letters
            && (1..=63).contains(&label.len())
            && !label.starts_with('-')
            && !label.ends_with('-')
    };
    if host.len() > 253 || !host.split('.').all(label) {
        return Err(
            "a host consists of labels of 1 to 63 letters, digits and hyphens, separated by dots"
                .into(),
        );
    }
    // Some resolvers accept `127.1`, `0x7f.1` and similar forms as IP addresses.
    let last = host.rsplit('.').next().unwrap_or_default();
    if last.starts_with("0x") || last.bytes().all(|b| b.is_ascii_digit()) {
        return Err("it is an IP address in a non-standard form; write four decimal numbers".into());
    }
    Ok(host)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn allows(pattern: &str, host: &str) -> bool {
        HostPattern::parse(pattern)
            .expect(pattern)
            .matches(&HostAddress::parse(host).expect(host), Verdict::Allow)
            == PatternMatch::Yes
    }

    #[test]
    fn hosts_match_whole_and_by_labels() {
        let table = [
            ("example.com", "example.com", true),
            ("example.com", "EXAMPLE.com.", true),
            ("example.com", "www.example.com", false),
            ("example.com", "example.com.evil.com", false),
            ("example.com", "example.com:80", false),
            ("example.com:8443", "example.com:8443", true),
            ("example.com:8443", "example.com", false),
            ("*.example.com", "a.b.example.com", true),
            ("*.example.com", "example.com", false),
            ("*.example.com", "evilexample.com", false),
            ("192.0.2.7", "192.0.2.7", true),
            ("127.0.0.1", "[::ffff:127.0.0.1]", true),
            ("[2001:db8::1]:8080", "[2001:DB8:0::1]:8080", true),
            ("*", "example.com", true),
            ("*", "example.com:22", false),
        ];
        for (pattern, host, expected) in table {
            assert_eq!(allows(pattern, host), expected, "{pattern} on {host}");
        }
    }

    #[test]
    fn a_deny_without_a_port_covers_every_port() {
        let deny = HostPattern::parse("example.com").unwrap();
        assert_eq!(
            deny.matches(&HostAddress::parse("example.com:22").unwrap(), Verdict::Deny),
            PatternMatch::Yes
        );
    }

    #[test]
    fn each_rejected_form_says_why() {
        let table = [
            ("https://example.com", "scheme"),
            ("example.com/path", "'/'"),
            ("allowed.com@evil.com", "'@'"),
            ("example.com:99999", "port"),
            ("example.com:+80", "port"),
            ("a*.example.com", "whole first label"),
            ("*.com", "every host"),
            ("::1", "brackets"),
            ("2130706433", "non-standard form"),
            ("0x7f.1", "non-standard form"),
            ("127.1", "non-standard form"),
            ("b\u{fc}cher.example", "xn--"),
            ("a b", "' '"),
            ("", "labels of 1 to 63"),
            ("a\nb", "'\\n'"),
        ];
        for (pattern, expected) in table {
            let problem = HostPattern::parse(pattern).unwrap_err().to_string();
            assert!(problem.contains(expected), "{pattern:?}: {problem}");
        }
    }

    #[test]
    fn the_parts_of_a_destination_are_its_name_or_its_address_and_its_port() {
        let table = [
            ("Example.com.", Some("example.com"), None, 443),
            ("example.com:8080", Some("example.com"), None, 8080),
            ("127.0.0.1:1", None, Some("127.0.0.1"), 1),
            ("[2001:db8::1]", None, Some("2001:db8::1"), 443),
        ];
        for (text, name, address, port) in table {
            let host = HostAddress::parse(text).expect(text);
            assert_eq!(host.parse_name(), name, "{text}");
            assert_eq!(host.address().map(|ip| ip.to_string()).as_deref(), address, "{text}");
            assert_eq!(host.port(), port, "{text}");
        }
    }

    #[test]
    fn a_name_has_at_most_253_characters_in_labels_of_at_most_63() {
        let label = "a".repeat(63);
        let longest = format!("{label}.{label}.{label}.{}", "a".repeat(61));
        assert_eq!(longest.len(), 253);
        assert!(HostPattern::parse(&longest).is_ok());
        for text in [format!("{longest}a"), format!("{label}a.com"), "a_b-.com".into()] {
            assert!(HostPattern::parse(&text).is_err(), "{text}");
        }
        assert!(HostPattern::parse("a_b.com").is_ok());
    }

    #[test]
    fn a_pattern_for_subdomains_covers_no_address() {
        assert!(!allows("*.0.0.1.example", "127.0.0.1"));
        assert!(!HostPattern::parse("example.com").expect("a host").is_address());
    }
}
