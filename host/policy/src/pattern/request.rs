//! Patterns for the HTTP requests that tools declare: a host pattern, optionally after a list of
//! methods.
//!
//! | pattern | covers |
//! |---|---|
//! | `example.com` | requests to `example.com` by any method |
//! | `GET example.com:8080` | `GET` requests to that port |
//! | `GET,HEAD *.example.com` | `GET` and `HEAD` requests to every host below `example.com` |

use super::{HostAddress, HostPattern, PatternError, PatternMatch};
use crate::Verdict;

/// A pattern for HTTP requests, with hosts and methods.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestPattern {
    /// The methods that the pattern covers; `None` for every method.
    methods: Option<Vec<String>>,
    hosts: HostPattern,
}

impl RequestPattern {
    /// Parses a request pattern.
    ///
    /// # Errors
    ///
    /// Returns an error if the methods or the host pattern are invalid.
    pub fn parse(text: &str) -> Result<Self, PatternError> {
        let Some((methods, hosts)) = text.split_once(' ') else {
            return Ok(Self { methods: None, hosts: HostPattern::parse(text)? });
        };
        let method = |word: &str| match !word.is_empty()
            && word.bytes().all(|byte| byte.is_ascii_uppercase())
        {
            true => Ok(word.to_owned()),
            false => Err(PatternError(format!(
                "`{text}` is not a request pattern: `{word}` is not a method such as GET"
            ))),
        };
        let methods = methods.split(',').map(method).collect::<Result<_, _>>()?;
        Ok(Self { methods: Some(methods), hosts: HostPattern::parse(hosts)? })
    }

    /// Returns whether this pattern covers a request.
    pub fn covers(&self, at: &HostAddress, method: &str) -> bool {
        let by_method = self
            .methods
            .as_ref()
            .is_none_or(|methods| methods.iter().any(|covered| covered == method));
        by_method && self.hosts.matches(at, Verdict::Allow) == PatternMatch::Yes
    }

    /// Returns whether the pattern covers a request to this host because it contains the IP address
    /// itself. A pattern such as `*` does not contain it.
    pub fn names_address(&self, at: &HostAddress, method: &str) -> bool {
        self.hosts.is_address() && self.covers(at, method)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn r122_a_request_is_covered_by_host_port_and_method() {
        let table = [
            ("example.com", "GET", "example.com", true),
            ("example.com", "DELETE", "example.com", true),
            ("GET example.com", "GET", "example.com", true),
            ("GET example.com", "POST", "example.com", false),
            ("GET example.com", "get", "example.com", false),
            ("GET example.com", "GET", "example.com:8080", false),
            ("GET,HEAD *.example.com:8080", "HEAD", "a.example.com:8080", true),
            ("GET,HEAD *.example.com:8080", "PUT", "a.example.com:8080", false),
            ("GET *", "GET", "example.com:80", false),
        ];
        for (pattern, method, host, expected) in table {
            let host = HostAddress::parse(host).expect(host);
            assert_eq!(
                RequestPattern::parse(pattern).expect(pattern).covers(&host, method),
                expected,
                "{pattern}: {method} {host}"
            );
        }
    }

    #[test]
    fn only_an_address_names_an_address() {
        let at = HostAddress::parse("127.0.0.1:8080").expect("a host");
        for (pattern, expected) in [
            ("127.0.0.1:8080", true),
            ("POST 127.0.0.1:8080", false),
            ("127.0.0.1", false),
            ("*:8080", false),
        ] {
            assert_eq!(
                RequestPattern::parse(pattern).expect(pattern).names_address(&at, "GET"),
                expected,
                "{pattern}"
            );
        }
    }

    #[test]
    fn invalid_request_patterns_name_the_reason() {
        for (pattern, expected) in [
            ("get example.com", "`get` is not a method"),
            ("GET, example.com", "`` is not a method"),
            ("GET a b", "' '"),
        ] {
            let problem = RequestPattern::parse(pattern).expect_err(pattern).to_string();
            assert!(problem.contains(expected), "{pattern}: {problem}");
        }
    }
}
