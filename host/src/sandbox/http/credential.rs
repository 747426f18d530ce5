//! Secrets that the host adds to requests, so that no plugin ever holds one.

use http::header::{HeaderMap, HeaderName, HeaderValue};

use crate::policy::{HostAddress, HostPattern, PatternMatch, Verdict};

/// Anything shorter is no secret but a placeholder.
const MIN_SECRET_LEN: usize = 8;

/// A header for the requests to some hosts.
#[derive(Clone)]
pub struct HostCredential {
    hosts: HostPattern,
    name: HeaderName,
    value: HeaderValue,
    secret: String,
}

/// It cannot be sent.
#[derive(Debug, thiserror::Error)]
pub enum CredentialError {
    /// The name.
    #[error("'{0}' is no name of a header")]
    Name(String),
    /// The value, which is not shown.
    #[error("its value has characters in it that no header can have")]
    Value,
}

impl HostCredential {
    /// The header `name` with this secret behind a prefix such as `Bearer `, for the hosts that
    /// match the pattern.
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

    /// What is to be taken out of answers; nothing of what is too short to be a secret, and would
    /// be found everywhere.
    pub(super) fn secret(&self) -> Option<&[u8]> {
        (self.secret.len() >= MIN_SECRET_LEN).then_some(self.secret.as_bytes())
    }

    /// In place of any header of that name.
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
    fn r114_a_credential_takes_the_place_of_what_the_guest_wrote_and_is_not_printed() {
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
        for (host, is_for) in
            [("api.example.com", true), ("api.example.com:8443", false), ("example.com", false)]
        {
            assert_eq!(
                credential.matches_host(&HostAddress::parse(host).expect("a host")),
                is_for,
                "{host}"
            );
        }
    }
}
