//! A resource server of OAuth 2.1: access tokens that an authorization server has signed.

use std::path::PathBuf;

use jsonwebtoken::errors::ErrorKind;
use jsonwebtoken::{Validation, decode};
use serde::Deserialize;
use serde_json::json;

use super::claims::{TokenClaims, TokenHeader};
use super::jwks::KeySet;
use super::{AuthFailure, ClientPrincipal, TokenSetupError};
use crate::http::options::ENDPOINT_PATH;

/// The difference between clocks that is accepted, in seconds.
const CLOCK_LEEWAY: u64 = 30;
/// The path of the metadata of this resource (RFC 9728).
const METADATA_PATH: &str = "/.well-known/oauth-protected-resource";

/// A resource server: whose tokens are accepted, and for what.
#[derive(Debug)]
pub struct ResourceServer {
    settings: ResourceSettings,
    keys: KeySet,
}

/// The configuration as it is written.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ResourceSettings {
    /// The issuer of the tokens, as in their claim `iss`.
    issuer: String,
    /// The URL of this server, as clients see it.
    resource: Option<String>,
    /// The audience of the tokens; the default is the resource.
    audience: Option<String>,
    /// The authorization servers that clients use; the default is the issuer.
    authorization_servers: Option<Vec<String>>,
    /// The scopes that a token must have.
    #[serde(default)]
    scopes: Vec<String>,
    /// The file with the keys.
    jwks_file: Option<PathBuf>,
    /// The keys themselves, as JSON.
    jwks: Option<String>,
}

impl ResourceServer {
    /// Parses a configuration in TOML. `read_file` reads the file with the keys, whose path may be
    /// relative to the configuration.
    ///
    /// # Errors
    ///
    /// Returns an error if the configuration or the keys are not valid.
    pub fn parse(
        text: &str,
        read_file: impl FnOnce(PathBuf) -> Result<String, String>,
    ) -> Result<Self, TokenSetupError> {
        let mut settings: ResourceSettings =
            toml::from_str(text).map_err(|error| TokenSetupError(error.to_string()))?;
        let keys = match (settings.jwks.take(), settings.jwks_file.take()) {
            (Some(keys), None) => keys,
            (None, Some(file)) => read_file(file).map_err(TokenSetupError)?,
            _ => {
                let problem = "give the keys either as `jwks` or as `jwks_file`";
                return Err(TokenSetupError(problem.to_owned()));
            }
        };
        let is_url = |url: &str| {
            let rest = url.strip_prefix("https://").or_else(|| url.strip_prefix("http://"));
            rest.is_some_and(|rest| !rest.is_empty())
                && url.bytes().all(|byte| byte.is_ascii_graphic() && !b"\"\\".contains(&byte))
        };
        let urls = [Some(&settings.issuer), settings.resource.as_ref()];
        let more = settings.authorization_servers.iter().flatten();
        if let Some(wrong) = urls.into_iter().flatten().chain(more).find(|url| !is_url(url)) {
            return Err(TokenSetupError(format!("`{}` is not a URL", wrong.escape_debug())));
        }
        let is_scope = |scope: &String| {
            !scope.is_empty()
                && scope.bytes().all(|byte| byte.is_ascii_graphic() && !b"\"\\".contains(&byte))
        };
        if let Some(wrong) = settings.scopes.iter().find(|scope| !is_scope(scope)) {
            return Err(TokenSetupError(format!("`{}` is not a scope", wrong.escape_debug())));
        }
        if settings.audience.is_none() && settings.resource.is_none() {
            let problem = "`resource` is missing: the URL of this server as clients see it";
            return Err(TokenSetupError(problem.to_owned()));
        }
        Ok(Self { settings, keys: KeySet::parse(&keys)? })
    }

    /// Returns the issuer of the tokens.
    pub fn issuer(&self) -> &str {
        &self.settings.issuer
    }

    /// Returns the required scopes, separated by spaces.
    pub(super) fn scope_text(&self) -> Option<String> {
        (!self.settings.scopes.is_empty()).then(|| self.settings.scopes.join(" "))
    }

    /// Returns whether a path is that of the metadata.
    pub(crate) fn is_metadata_path(path: &str) -> bool {
        path.strip_prefix(METADATA_PATH)
            .is_some_and(|rest| rest.is_empty() || rest == ENDPOINT_PATH)
    }

    /// Returns the URL of the metadata. `endpoint` is the URL of this server if the configuration
    /// does not say it.
    pub(super) fn metadata_url(&self, endpoint: &str) -> String {
        let resource = self.settings.resource.as_deref().unwrap_or(endpoint);
        let host = resource.find("://").map_or(0, |at| at + 3);
        let path = resource[host..].find('/').map_or(resource.len(), |at| host + at);
        let (origin, path) = resource.split_at(path);
        format!("{origin}{METADATA_PATH}{}", path.trim_end_matches('/'))
    }

    /// Returns the metadata (RFC 9728).
    pub(crate) fn metadata(&self, endpoint: &str) -> String {
        let settings = &self.settings;
        let issuer = std::slice::from_ref(&settings.issuer);
        let mut metadata = json!({
            "resource": settings.resource.as_deref().unwrap_or(endpoint),
            "authorization_servers": settings.authorization_servers.as_deref().unwrap_or(issuer),
            "bearer_methods_supported": ["header"],
            "resource_name": "Cofferdam",
        });
        if !settings.scopes.is_empty() {
            metadata["scopes_supported"] = json!(settings.scopes);
        }
        metadata.to_string()
    }

    /// Returns the principal of a token, if it is valid.
    pub(super) fn validate(&self, token: &str) -> Result<ClientPrincipal, AuthFailure> {
        let header = TokenHeader::parse(token).map_err(AuthFailure::Invalid)?;
        let key = self.keys.find(&header.kid);
        let (algorithm, key) = key.ok_or(AuthFailure::Invalid("the token has an unknown key"))?;
        // The key decides on the algorithm, never the token.
        if header.alg != format!("{algorithm:?}") {
            return Err(AuthFailure::Invalid("the token has another algorithm than its key"));
        }
        let mut validation = Validation::new(*algorithm);
        validation.leeway = CLOCK_LEEWAY;
        validation.validate_nbf = true;
        validation.set_issuer(&[&self.settings.issuer]);
        let audience = self.settings.audience.as_ref().or(self.settings.resource.as_ref());
        validation.set_audience(&audience.into_iter().collect::<Vec<_>>());
        validation.set_required_spec_claims(&["exp", "iss", "aud", "sub"]);
        let claims = decode::<TokenClaims>(token, key, &validation)
            .map_err(|error| AuthFailure::Invalid(describe(error.kind())))?
            .claims;
        if !self.settings.scopes.iter().all(|scope| claims.has_scope(scope)) {
            return Err(AuthFailure::Scope);
        }
        let mut parts = vec![claims.sub.clone()];
        parts.extend(claims.client().map(|client| format!("client {client}")));
        Ok(ClientPrincipal::new(parts))
    }
}

/// Returns the problem of a token, for its client. The token is not in it.
fn describe(kind: &ErrorKind) -> &'static str {
    match kind {
        ErrorKind::InvalidSignature => "the signature of the token is not valid",
        ErrorKind::ExpiredSignature => "the token has expired",
        ErrorKind::ImmatureSignature => "the token is not valid yet",
        ErrorKind::InvalidIssuer => "the token has another issuer",
        ErrorKind::InvalidAudience => "the token is for another resource",
        ErrorKind::MissingRequiredClaim(_) => "the token needs `exp`, `iss`, `aud` and `sub`",
        ErrorKind::InvalidAlgorithm => "the token has another algorithm than its key",
        _ => "the token is not valid",
    }
}
