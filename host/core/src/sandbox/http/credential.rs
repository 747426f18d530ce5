//! Credentials that the host adds to requests, so that no plugin ever has one.

use http::header::{HeaderMap, HeaderName, HeaderValue};

use crate::policy::{HostAddress, HostPattern, PatternMatch, Verdict};

/// The shortest secret, in bytes. Anything shorter is a placeholder.
const MIN_SECRET_LEN: usize = 8;

/// A header with a secret, for the requests to some hosts.
#[derive(Clone)]
pub struct HostCredential {
    hosts: HostPattern,
    name: HeaderName,
    value: HeaderValue,
    secret: String,
}

/// Why a credential cannot be sent.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CredentialError {
    /// The name is not a valid header name.
    #[error("`{0}` is not a valid header name")]
    Name(String),
    /// The value is not a valid header value. The error does not show it.
    #[error("the value contains characters that are not valid in a header")]
    Value,
}

impl HostCredential {
    /// Creates a credential for the hosts that match `hosts`. The header `name` has the value
    /// `prefix` and `secret`; a prefix is for example `Bearer `.
    ///
    /// # Errors
    ///
    /// Returns an error if the header cannot be sent.
    pub fn new(
        hosts: HostPattern,
        name: &str,
        prefix: &str,
        secret: &str,
    ) -> Result<Self, CredentialError> {
        let name = name.parse().map_err(|_| CredentialError::Name(name.to_owned()))?;
        let mut value = HeaderValue::from_str(&format!("{prefix}{secret}"))
            .map_err(|_| CredentialError::Value)?;
        value.set_sensitive(true);
        Ok(Self { hosts, name, value, secret: secret.to_owned() })
    }

    pub(super) fn matches_host(&self, host: &HostAddress) -> bool {
        self.hosts.matches(host, Verdict::Allow) == PatternMatch::Yes
    }

    /// Returns the secret to remove from responses. `None` if it is too short to be a secret: it
    /// would be found everywhere.
    pub(super) fn secret(&self) -> Option<&[u8]> {
        (self.secret.len() >= MIN_SECRET_LEN).then_some(self.secret.as_bytes())
    }

    /// Sets the header, replacing any header of the same name.
    pub(super) fn add_to(&self, headers: &mut HeaderMap) {
        headers.insert(&self.name, self.value.clone());
    }
}

impl std::fmt::Debug for HostCredential {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Credential({} …)", self.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn r114_a_credential_replaces_the_guests_header_and_is_not_printed() {
        let hosts = HostPattern::parse("api.example.com").expect("a pattern");
        let credential = HostCredential::new(hosts, "Authorization", "Bearer ", "sk-very-secret")
            .expect("it can be sent");
        let mut headers = HeaderMap::new();
        headers.append("authorization", HeaderValue::from_static("mine"));
        headers.append("authorization", HeaderValue::from_static("mine too"));
        credential.add_to(&mut headers);
        assert_eq!(
            headers.get_all("authorization").iter().collect::<Vec<_>>(),
            ["Bearer sk-very-secret"]
        );
        assert!(!format!("{credential:?} {headers:?}").contains("very-secret"));
        for (host, expected) in
            [("api.example.com", true), ("api.example.com:8443", false), ("example.com", false)]
        {
            assert_eq!(
                credential.matches_host(&HostAddress::parse(host).expect("a host")),
                expected,
                "{host}"
            );
        }
    }
}
