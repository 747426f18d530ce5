//! The address of a server over HTTP, with the secrets of its headers.

use cofferdam::config::{HttpServer, SecretSource};
use cofferdam::model::ApiKey;
use cofferdam::policy::{HttpUrl, NetworkRules};
use cofferdam::sandbox::{HttpReach, ServerAccess};
use http::header::{AUTHORIZATION, HeaderMap, HeaderName, HeaderValue};

use crate::login::{LoginStore, LoginTokens};

/// The longest secret of a header, in bytes.
const MAX_SECRET_LEN: usize = 8 << 10;

/// The address of a server over HTTP, with everything that its requests need.
#[derive(Clone)]
pub struct HttpServerTarget {
    pub(in crate::servers) url: HttpUrl,
    addresses: NetworkRules,
    allow_plain_http: bool,
    pub(super) headers: HeaderMap,
    pub(super) secrets: Vec<ApiKey>,
    pub(super) tokens: Option<LoginTokens>,
}

impl HttpServerTarget {
    /// Creates the endpoint of a configured server. `read_secret` returns the secret of a header.
    ///
    /// # Errors
    ///
    /// A secret cannot be read, or a header cannot contain it. The error is a sentence without a
    /// full stop, and does not show the secret.
    pub fn new(
        server: &HttpServer,
        mut read_secret: impl FnMut(&SecretSource) -> Result<String, String>,
    ) -> Result<Self, String> {
        let (mut headers, mut secrets) = (HeaderMap::new(), Vec::new());
        for header in &server.headers {
            let problem = |problem: &str| format!("the header `{}`: {problem}", header.name);
            let name: HeaderName =
                header.name.parse().map_err(|_| problem("its name is invalid"))?;
            let text = read_secret(&header.source).map_err(|text| problem(&text))?;
            let secret = ApiKey::new(&text).ok_or_else(|| problem("its value is empty"))?;
            let value = format!("{}{}", header.prefix, secret.to_header());
            if value.len() > MAX_SECRET_LEN {
                return Err(problem("its value is too long"));
            }
            let mut value = HeaderValue::from_str(&value)
                .map_err(|_| problem("its value has a character that a header cannot have"))?;
            value.set_sensitive(true);
            headers.insert(name, value);
            secrets.push(secret);
        }
        Ok(Self {
            url: server.url.clone(),
            addresses: server.address_rules(),
            allow_plain_http: server.allow_plain_http,
            headers,
            secrets,
            tokens: None,
        })
    }

    /// Sends the token of a login with each request, unless a configured header already has one. A
    /// token is never sent without encryption to another machine.
    #[must_use]
    pub fn with_login(self, store: &LoginStore, name: &str) -> Self {
        let origin = self.url.origin();
        let is_safe = origin.is_encrypted() || origin.is_loopback();
        let is_free = !self.headers.contains_key(AUTHORIZATION);
        let tokens = LoginTokens::new(store.clone(), name, &self.url);
        Self { tokens: (is_safe && is_free).then_some(tokens), ..self }
    }

    /// Returns the origins that the host may connect to for this server.
    pub fn reach(&self, access: &ServerAccess) -> HttpReach {
        access.http_reach(&self.url, self.addresses.clone(), self.allow_plain_http)
    }
}

impl std::fmt::Debug for HttpServerTarget {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("HttpServerTarget")
            .field("url", &self.url.to_string())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use cofferdam::config::SecretHeader;

    use super::*;

    fn endpoint(secret: &str, prefix: &str) -> Result<HttpServerTarget, String> {
        let mut server = HttpServer::new(HttpUrl::parse("https://a.com/mcp").expect("a URL"));
        let source = SecretSource::Variable("TOKEN".to_owned());
        server.headers = vec![SecretHeader::new("Authorization", source, prefix)];
        HttpServerTarget::new(&server, |_| Ok(secret.to_owned()))
    }

    #[test]
    fn a_secret_is_sent_with_its_prefix_and_never_printed() {
        let found = endpoint(" very-secret\n", "Bearer ").expect("it is valid");
        assert_eq!(found.headers["authorization"], "Bearer very-secret");
        assert!(!format!("{found:?} {:?}", found.headers).contains("very-secret"));
    }

    #[test]
    fn a_secret_that_a_header_cannot_have_is_refused_without_showing_it() {
        for secret in ["", " \n", "secret\r\nX-Evil: 1", "secret\0", &"secret".repeat(3000)] {
            let problem = endpoint(secret, "").expect_err(secret);
            assert!(problem.starts_with("the header `authorization`: "), "{problem}");
            assert!(!problem.contains("secret"), "{problem}");
        }
    }
}
