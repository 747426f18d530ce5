//! The registration of this program at a login server (RFC 7591).

use cofferdam::policy::HttpUrl;
use cofferdam::sandbox::HttpReach;
use serde_json::{Value, json};

use super::LoginError;
use super::fetch::{FetchBody, describe_error, fetch};

/// The longest ID or password of a client, in bytes.
const MAX_CLIENT_TEXT_LEN: usize = 2048;

/// This program at a login server.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct RegisteredClient {
    pub(super) id: String,
    /// The password, if the login server gave one.
    pub(super) secret: Option<String>,
}

/// Registers this program.
pub(super) async fn register(
    reach: &HttpReach,
    endpoint: &HttpUrl,
    redirect_uri: &str,
    scopes: &[String],
) -> Result<RegisteredClient, LoginError> {
    let mut metadata = json!({
        "client_name": "Cofferdam",
        "redirect_uris": [redirect_uri],
        "grant_types": ["authorization_code", "refresh_token"],
        "response_types": ["code"],
        "token_endpoint_auth_method": "none",
        "application_type": "native",
    });
    if !scopes.is_empty() {
        metadata["scope"] = json!(scopes.join(" "));
    }
    let fetched = fetch(reach, endpoint, FetchBody::Json(&metadata)).await?;
    let json = match (fetched.status.is_success(), &fetched.json) {
        (true, Some(json)) => json,
        _ => {
            let problem = describe_error(&fetched);
            return Err(LoginError::new(format!(
                "the login server does not register this program: {problem}\nhint: register it by \
                    hand, and set `client_id` of the server in the configuration"
            )));
        }
    };
    let text = |key: &str| json[key].as_str().map(str::to_owned);
    let is_plain = |text: &String| {
        (1..=MAX_CLIENT_TEXT_LEN).contains(&text.len())
            && text.bytes().all(|b| b.is_ascii_graphic())
    };
    let id = text("client_id").filter(is_plain);
    let id = id.ok_or_else(|| LoginError::new("the login server gave no valid client ID"))?;
    let secret = match json.get("client_secret") {
        None | Some(Value::Null) => None,
        Some(_) => Some(
            text("client_secret")
                .filter(is_plain)
                .ok_or_else(|| LoginError::new("the login server gave no valid client secret"))?,
        ),
    };
    Ok(RegisteredClient { id, secret })
}
