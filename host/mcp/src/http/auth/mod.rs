//! Who a client is: nobody in particular, the owner of a token, or the subject of an access token.

mod bearer;
mod claims;
mod jwks;
mod resource_server;

use std::fmt;
use std::sync::Arc;

use http::{HeaderMap, StatusCode, header};

pub use bearer::BearerTokens;
pub use resource_server::ResourceServer;

use super::response::HttpRefusal;

/// The longest token, in bytes.
const MAX_TOKEN_LEN: usize = 16 << 10;

/// How clients prove who they are.
#[derive(Debug)]
#[non_exhaustive]
pub enum ClientAuthentication {
    /// They do not. All clients are the same principal.
    None,
    /// By tokens that the user has chosen.
    Tokens(BearerTokens),
    /// By access tokens of an authorization server.
    OAuth(Box<ResourceServer>),
}

/// The reason why the configuration of an authentication cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct TokenSetupError(pub(crate) String);

/// The user or program on whose behalf a client sends requests.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ClientPrincipal {
    /// The parts that make it unique, such as subject and client.
    parts: Arc<[String]>,
}

/// The reason why a request is not authenticated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AuthFailure {
    /// There is no token.
    Missing,
    /// The token is not valid; the text says why.
    Invalid(&'static str),
    /// The token is valid, but does not have the required scopes.
    Scope,
}

impl ClientPrincipal {
    pub(crate) fn new(parts: impl Into<Arc<[String]>>) -> Self {
        Self { parts: parts.into() }
    }

    /// Returns the principal of all clients of a server without authentication.
    pub(crate) fn local() -> Self {
        Self::new(["unauthenticated".to_owned()])
    }
}

impl fmt::Display for ClientPrincipal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut parts = self.parts.iter();
        f.write_str(parts.next().map_or("", String::as_str))?;
        parts.try_for_each(|part| write!(f, " ({part})"))
    }
}

impl ClientAuthentication {
    /// Returns whether every client is accepted.
    pub fn is_none(&self) -> bool {
        matches!(self, Self::None)
    }

    /// Returns a description for the user.
    pub fn describe(&self) -> String {
        match self {
            Self::None => "none".to_owned(),
            Self::Tokens(tokens) => format!("bearer token ({} known)", tokens.len()),
            Self::OAuth(server) => format!("OAuth access token of {}", server.issuer()),
        }
    }

    /// Returns the principal of a request.
    pub(crate) fn authenticate(
        &self,
        headers: &HeaderMap,
        endpoint: &str,
    ) -> Result<ClientPrincipal, HttpRefusal> {
        let authenticated = match self {
            Self::None => Ok(ClientPrincipal::local()),
            Self::Tokens(tokens) => bearer_token(headers).and_then(|token| tokens.find(token)),
            Self::OAuth(server) => bearer_token(headers).and_then(|token| server.validate(token)),
        };
        authenticated.map_err(|failure| self.refuse(failure, endpoint))
    }

    fn refuse(&self, failure: AuthFailure, endpoint: &str) -> HttpRefusal {
        let (status, problem, code) = match failure {
            AuthFailure::Missing => {
                let problem = "the request needs a token: `Authorization: Bearer …`";
                (StatusCode::UNAUTHORIZED, problem, None)
            }
            AuthFailure::Invalid(problem) => {
                (StatusCode::UNAUTHORIZED, problem, Some("invalid_token"))
            }
            AuthFailure::Scope => {
                let problem = "the token does not have the required scopes";
                (StatusCode::FORBIDDEN, problem, Some("insufficient_scope"))
            }
        };
        let mut challenge = Vec::new();
        if let Some(code) = code {
            challenge.push(format!("error=\"{code}\", error_description=\"{problem}\""));
        }
        if let Self::OAuth(server) = self {
            challenge.push(format!("resource_metadata=\"{}\"", server.metadata_url(endpoint)));
            if let Some(scopes) = server.scope_text() {
                challenge.push(format!("scope=\"{scopes}\""));
            }
        }
        let challenge = match challenge.join(", ") {
            parameters if parameters.is_empty() => "Bearer".to_owned(),
            parameters => format!("Bearer {parameters}"),
        };
        HttpRefusal::new(status, problem).with_header(header::WWW_AUTHENTICATE, challenge)
    }
}

/// Returns the token of a request.
fn bearer_token(headers: &HeaderMap) -> Result<&str, AuthFailure> {
    let mut values = headers.get_all(header::AUTHORIZATION).iter();
    let Some(value) = values.next() else { return Err(AuthFailure::Missing) };
    if values.next().is_some() {
        return Err(AuthFailure::Invalid("there is more than one Authorization header"));
    }
    if value.len() > MAX_TOKEN_LEN {
        return Err(AuthFailure::Invalid("the token is too long"));
    }
    let malformed = AuthFailure::Invalid("the Authorization header is not `Bearer TOKEN`");
    let value = value.to_str().map_err(|_| malformed)?;
    let (scheme, token) = value.split_once(' ').ok_or(malformed)?;
    if !scheme.eq_ignore_ascii_case("bearer") || token.is_empty() || token.contains(' ') {
        return Err(malformed);
    }
    Ok(token)
}
