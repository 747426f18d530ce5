//! A login from its beginning to the stored tokens.

use std::time::Duration;

use cofferdam::config::LoginSettings;
use cofferdam::policy::HttpUrl;
use cofferdam::sandbox::HttpReach;

use super::LoginError;
use super::callback::{CallbackPage, ExpectedAnswer};
use super::encoding::{code_challenge, encode_form, random_text};
use super::metadata::{IssuerMetadata, ResourceMetadata, find_issuer, find_resource};
use super::registration::{RegisteredClient, register};
use super::store::StoredLogin;
use super::token::{TokenFailure, TokenSource};

/// How a login is done.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct LoginRequest {
    /// The URL of the server.
    pub server: HttpUrl,
    /// The settings of the user.
    pub settings: LoginSettings,
    /// The time for the user to log in.
    pub timeout: Duration,
}

impl LoginRequest {
    /// Creates the login to a server, for which the user has five minutes.
    pub fn new(server: HttpUrl, settings: LoginSettings) -> Self {
        Self { server, settings, timeout: Duration::from_secs(300) }
    }
}

/// Logs the user in to a server. `show` gets the URL that the user has to open, and the origin of
/// the login server.
///
/// # Errors
///
/// The server or its login server is not usable, or the user did not log in.
pub async fn log_in(
    request: &LoginRequest,
    reach: &HttpReach,
    show: impl FnOnce(&str, &str),
) -> Result<StoredLogin, LoginError> {
    let resource = find_resource(reach, &request.server).await?;
    let issuer = find_issuer(reach, &resource.issuer).await?;
    let scopes = match request.settings.scopes.as_slice() {
        [] => resource.scopes.clone(),
        chosen => chosen.to_vec(),
    };
    let page = CallbackPage::bind(request.settings.callback_port).await?;
    let redirect_uri = page.redirect_uri();
    let client = match (&request.settings.client_id, &issuer.registration_endpoint) {
        (Some(id), _) => RegisteredClient { id: id.clone(), secret: None },
        (None, Some(endpoint)) => register(reach, endpoint, &redirect_uri, &scopes).await?,
        (None, None) => {
            return Err(LoginError::new(
                "the login server does not register programs\nhint: register this program by hand, \
                    and set `client_id` of the server in the configuration",
            ));
        }
    };
    let (state, verifier) = (random_text()?, random_text()?);
    let texts = (redirect_uri.as_str(), state.as_str(), verifier.as_str());
    let url = authorization_url(&issuer, &resource, &client, texts, &scopes);
    show(&url, &issuer.authorization_endpoint.origin().to_string());
    let expected =
        ExpectedAnswer { state, issuer: issuer.issuer.clone(), names_issuer: issuer.names_issuer };
    let code = match tokio::time::timeout(request.timeout, page.wait_for_code(expected)).await {
        Ok(code) => code?,
        Err(_) => {
            let seconds = request.timeout.as_secs();
            return Err(LoginError::new(format!("nobody logged in within {seconds} seconds")));
        }
    };
    let source = TokenSource {
        endpoint: &issuer.token_endpoint,
        client: &client,
        resource: &resource.resource,
        password_in_form: issuer.takes_password_in_form,
    };
    let grant = [
        ("grant_type", "authorization_code"),
        ("code", code.as_str()),
        ("redirect_uri", redirect_uri.as_str()),
        ("code_verifier", verifier.as_str()),
    ];
    let tokens = source.request(reach, &grant).await.map_err(TokenFailure::into_error)?;
    let granted = tokens
        .scope
        .as_deref()
        .map(|scope| scope.split(' ').filter(|word| !word.is_empty()).map(str::to_owned).collect());
    Ok(StoredLogin::new(
        &request.server,
        &resource.resource,
        &issuer,
        client,
        tokens,
        granted.unwrap_or(scopes),
    ))
}

fn authorization_url(
    issuer: &IssuerMetadata,
    resource: &ResourceMetadata,
    client: &RegisteredClient,
    (redirect_uri, state, verifier): (&str, &str, &str),
    scopes: &[String],
) -> String {
    let (challenge, scope) = (code_challenge(verifier), scopes.join(" "));
    let mut parameters = vec![
        ("response_type", "code"),
        ("client_id", client.id.as_str()),
        ("redirect_uri", redirect_uri),
        ("state", state),
        ("code_challenge", challenge.as_str()),
        ("code_challenge_method", "S256"),
        ("resource", resource.resource.as_str()),
    ];
    if !scope.is_empty() {
        parameters.push(("scope", scope.as_str()));
    }
    let endpoint = issuer.authorization_endpoint.to_string();
    let separator = if endpoint.contains('?') { '&' } else { '?' };
    format!("{endpoint}{separator}{}", encode_form(&parameters))
}
