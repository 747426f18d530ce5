//! Requests for tokens (RFC 6749), each for one server (RFC 8707).

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use cofferdam::policy::HttpUrl;
use cofferdam::sandbox::HttpReach;
use serde_json::Value;

use super::LoginError;
use super::encoding::{encode, encode_form};
use super::fetch::{FetchBody, describe_error, fetch};
use super::registration::RegisteredClient;

/// The longest token, in bytes. It is sent in a header.
const MAX_TOKEN_LEN: usize = 16 << 10;
/// The longest lifetime that is believed.
const MAX_LIFETIME: Duration = Duration::from_secs(400 * 24 * 3600);

/// The tokens of a login server.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct TokenSet {
    pub(super) access_token: String,
    /// The end of the access token, in seconds since 1970.
    pub(super) expires_at: Option<u64>,
    pub(super) refresh_token: Option<String>,
    pub(super) scope: Option<String>,
}

/// Where tokens come from and what they are for.
pub(super) struct TokenSource<'s> {
    pub(super) endpoint: &'s HttpUrl,
    pub(super) client: &'s RegisteredClient,
    /// The server that the tokens are for.
    pub(super) resource: &'s str,
    /// Whether the password of the client is sent in the form.
    pub(super) password_in_form: bool,
}

/// Why there are no tokens.
pub(super) enum TokenFailure {
    /// The login server refuses, so the user has to log in again.
    Refused(String),
    /// It could not be asked.
    Failed(LoginError),
}

impl TokenFailure {
    pub(super) fn into_error(self) -> LoginError {
        match self {
            Self::Refused(problem) => {
                LoginError::new(format!("the login server gives no token: {problem}"))
            }
            Self::Failed(error) => error,
        }
    }
}

/// Returns the time, in seconds since 1970.
pub(super) fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs()
}

impl TokenSource<'_> {
    /// Requests tokens with a grant, such as a code.
    pub(super) async fn request(
        &self,
        reach: &HttpReach,
        grant: &[(&str, &str)],
    ) -> Result<TokenSet, TokenFailure> {
        let mut form = grant.to_vec();
        form.extend([("client_id", self.client.id.as_str()), ("resource", self.resource)]);
        let password = match &self.client.secret {
            Some(secret) if self.password_in_form => {
                form.push(("client_secret", secret.as_str()));
                None
            }
            Some(secret) => {
                let pair = format!("{}:{}", encode(&self.client.id), encode(secret));
                Some(format!("Basic {}", STANDARD.encode(pair)))
            }
            None => None,
        };
        let body = FetchBody::Form(encode_form(&form), password.as_deref());
        let fetched = fetch(reach, self.endpoint, body).await.map_err(TokenFailure::Failed)?;
        match (fetched.status.is_success(), &fetched.json) {
            (true, Some(json)) => read_tokens(json, now()).map_err(TokenFailure::Failed),
            (true, None) => {
                let problem = "the login server sent no token, but something that is not JSON";
                Err(TokenFailure::Failed(LoginError::new(problem)))
            }
            (false, _) if fetched.status.is_client_error() => {
                Err(TokenFailure::Refused(describe_error(&fetched)))
            }
            (false, _) => {
                let problem = format!("the login server failed: {}", describe_error(&fetched));
                Err(TokenFailure::Failed(LoginError::new(problem)))
            }
        }
    }
}

fn read_tokens(json: &Value, now: u64) -> Result<TokenSet, LoginError> {
    let token = |key: &str| {
        let is_token =
            |text: &&str| text.len() <= MAX_TOKEN_LEN && text.bytes().all(|b| b.is_ascii_graphic());
        json[key].as_str().filter(|text| !text.is_empty()).filter(is_token).map(str::to_owned)
    };
    let kind = json["token_type"].as_str().unwrap_or_default();
    if !kind.eq_ignore_ascii_case("bearer") {
        return Err(LoginError::new("the login server sent a token that is not a bearer token"));
    }
    let access_token = token("access_token")
        .ok_or_else(|| LoginError::new("the login server sent no valid access token"))?;
    let lifetime = json["expires_in"].as_u64().or_else(|| {
        // Some servers send a text.
        json["expires_in"].as_str().and_then(|text| text.parse().ok())
    });
    Ok(TokenSet {
        access_token,
        expires_at: lifetime.map(|seconds| now.saturating_add(seconds.min(MAX_LIFETIME.as_secs()))),
        refresh_token: token("refresh_token"),
        scope: json["scope"].as_str().map(str::to_owned),
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_bearer_tokens_that_a_header_can_have_are_taken() {
        let read = |json: Value| read_tokens(&json, 1000).map_err(|error| error.0);
        let tokens = read(json!({"access_token": "a", "token_type": "bearer", "expires_in": 60,
            "refresh_token": "r", "scope": "x"}));
        let tokens = tokens.expect("they are valid");
        assert_eq!((tokens.expires_at, tokens.refresh_token.as_deref()), (Some(1060), Some("r")));
        let huge = json!({"access_token": "a", "token_type": "Bearer", "expires_in": u64::MAX});
        assert!(read(huge).expect("it is valid").expires_at < Some(u64::MAX / 2));
        for invalid in [
            json!({"access_token": "a"}),
            json!({"access_token": "a", "token_type": "mac"}),
            json!({"access_token": "", "token_type": "Bearer"}),
            json!({"access_token": 1, "token_type": "Bearer"}),
            json!({"access_token": "a b", "token_type": "Bearer"}),
            json!({"access_token": "a\r\nX: y", "token_type": "Bearer"}),
            json!({"access_token": "x".repeat(20_000), "token_type": "Bearer"}),
            json!([]),
        ] {
            assert!(read(invalid.clone()).is_err(), "{invalid}");
        }
    }
}
