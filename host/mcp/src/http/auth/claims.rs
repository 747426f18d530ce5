//! The parts of an access token that matter here.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::Deserialize;
use serde_json::Value;

/// The header of a token. Members that occur twice are an error.
#[derive(Debug, Deserialize)]
pub(super) struct TokenHeader {
    pub(super) alg: String,
    pub(super) kid: String,
    #[serde(default)]
    typ: Option<String>,
    /// Extensions that a recipient has to understand. This one understands none.
    #[serde(default)]
    crit: Option<Value>,
}

impl TokenHeader {
    /// Parses the header of a token, before its signature is checked.
    pub(super) fn parse(token: &str) -> Result<Self, &'static str> {
        let mut parts = token.split('.');
        let (Some(header), Some(_), Some(_), None) =
            (parts.next(), parts.next(), parts.next(), parts.next())
        else {
            return Err("the token is not a signed JWT");
        };
        let bytes = URL_SAFE_NO_PAD.decode(header).map_err(|_| "the token is not a signed JWT")?;
        let header: Self = serde_json::from_slice(&bytes)
            .map_err(|_| "the header of the token needs `alg` and `kid`")?;
        if header.crit.is_some() {
            return Err("the token has unknown critical extensions");
        }
        let is_access_token = header.typ.as_deref().is_none_or(|typ| {
            let typ = typ.to_ascii_lowercase();
            matches!(typ.strip_prefix("application/").unwrap_or(&typ), "jwt" | "at+jwt")
        });
        if !is_access_token {
            return Err("the token is no access token");
        }
        Ok(header)
    }
}

/// The claims of a token. Members that occur twice are an error.
#[derive(Debug, Deserialize)]
pub(super) struct TokenClaims {
    /// A list of issuers, as some libraries accept it, is no issuer.
    #[serde(rename = "iss")]
    _issuer: String,
    pub(super) sub: String,
    #[serde(default)]
    client_id: Option<String>,
    #[serde(default)]
    azp: Option<String>,
    #[serde(default)]
    scope: Option<String>,
    #[serde(default)]
    scp: Option<ScopeList>,
}

/// Scopes in the form of some authorization servers.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum ScopeList {
    Text(String),
    List(Vec<String>),
}

impl TokenClaims {
    /// Returns the client that the token was issued to.
    pub(super) fn client(&self) -> Option<&str> {
        self.client_id.as_deref().or(self.azp.as_deref())
    }

    /// Returns whether the token has a scope.
    pub(super) fn has_scope(&self, scope: &str) -> bool {
        let is_in = |text: &str| text.split(' ').any(|known| known == scope);
        self.scope.as_deref().is_some_and(is_in)
            || match &self.scp {
                Some(ScopeList::Text(text)) => is_in(text),
                Some(ScopeList::List(list)) => list.iter().any(|known| known == scope),
                None => false,
            }
    }
}
