//! What an MCP server and its login server say about themselves.

use cofferdam::policy::HttpUrl;
use cofferdam::sandbox::HttpReach;
use serde_json::Value;

use super::LoginError;
use super::challenge::LoginChallenge;
use super::fetch::{FetchBody, checked_url, fetch};
use crate::servers::shown;

const RESOURCE_PATH: &str = "/.well-known/oauth-protected-resource";
const SERVER_PATH: &str = "/.well-known/oauth-authorization-server";
const OPENID_PATH: &str = "/.well-known/openid-configuration";
/// The number of scopes that are asked for because a server names them.
const MAX_NAMED_SCOPES: usize = 32;

/// The metadata of an MCP server (RFC 9728).
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ResourceMetadata {
    /// The server that tokens are for, exactly as it calls itself.
    pub(super) resource: String,
    /// The issuer of tokens, exactly as the server names it.
    pub(super) issuer: String,
    /// The scopes that a login asks for.
    pub(super) scopes: Vec<String>,
}

/// The metadata of a login server (RFC 8414).
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct IssuerMetadata {
    pub(super) issuer: String,
    pub(super) authorization_endpoint: HttpUrl,
    pub(super) token_endpoint: HttpUrl,
    pub(super) registration_endpoint: Option<HttpUrl>,
    /// Whether the answer of a login always names the issuer.
    pub(super) names_issuer: bool,
    /// Whether a client can send its password in the form.
    pub(super) takes_password_in_form: bool,
}

/// Returns the path of a URL without `/` at its end.
fn plain_path(url: &HttpUrl) -> &str {
    url.path().trim_end_matches('/')
}

/// Finds the metadata of a server: where its challenge says, or at the well-known addresses.
pub(super) async fn find_resource(
    reach: &HttpReach,
    server: &HttpUrl,
) -> Result<ResourceMetadata, LoginError> {
    let challenge = ask_for_challenge(reach, server).await?;
    let invalid = |problem: String| LoginError::new(problem);
    let candidates = match &challenge.resource_metadata {
        Some(text) => {
            let url = HttpUrl::parse(text).map_err(|problem| {
                invalid(format!("the server names invalid metadata: {problem}"))
            })?;
            if url.origin() != server.origin() {
                let origin = url.origin();
                let problem = format!("the server names metadata at another origin, {origin}");
                return Err(invalid(problem));
            }
            vec![url]
        }
        None => {
            let paths =
                [format!("{RESOURCE_PATH}{}", plain_path(server)), RESOURCE_PATH.to_owned()];
            paths.iter().filter_map(|path| server.with_path(path).ok()).collect()
        }
    };
    for url in &candidates {
        let fetched = fetch(reach, url, FetchBody::None).await?;
        if let (true, Some(json)) = (fetched.status.is_success(), fetched.json) {
            return read_resource(&json, server, challenge.scope.as_deref());
        }
    }
    Err(invalid(format!(
        "{server} has no metadata about a login\nhint: a server without OAuth takes a token in a \
            header; see `cofferdam mcp add --help`"
    )))
}

/// Sends a request without a token, which the server rejects with a challenge.
async fn ask_for_challenge(
    reach: &HttpReach,
    server: &HttpUrl,
) -> Result<LoginChallenge, LoginError> {
    let request = serde_json::json!({
        "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
            "protocolVersion": "2025-11-25", "capabilities": {},
            "clientInfo": {"name": "cofferdam", "version": env!("CARGO_PKG_VERSION")},
        },
    });
    let fetched = fetch(reach, server, FetchBody::Json(&request)).await?;
    Ok(LoginChallenge::read(&fetched.headers))
}

fn read_resource(
    json: &Value,
    server: &HttpUrl,
    scope: Option<&str>,
) -> Result<ResourceMetadata, LoginError> {
    let text = json["resource"].as_str().unwrap_or_default();
    let is_this = HttpUrl::parse(text).is_ok_and(|resource| covers(&resource, server));
    if !is_this {
        return Err(LoginError::new(format!(
            "the metadata of {server} is for another server, `{}`",
            shown(text)
        )));
    }
    let issuers = json["authorization_servers"].as_array();
    let issuer = issuers.and_then(|issuers| issuers.first()).and_then(Value::as_str);
    let Some(issuer) = issuer else {
        return Err(LoginError::new(format!("the metadata of {server} names no login server")));
    };
    let words = |text: &str| -> Vec<String> {
        text.split(' ').filter(|word| is_scope(word)).map(str::to_owned).collect()
    };
    let mut scopes = match scope {
        Some(scope) => words(scope),
        None => json["scopes_supported"]
            .as_array()
            .map(|scopes| scopes.iter().filter_map(Value::as_str).flat_map(words).collect())
            .unwrap_or_default(),
    };
    scopes.truncate(MAX_NAMED_SCOPES);
    Ok(ResourceMetadata { resource: text.to_owned(), issuer: issuer.to_owned(), scopes })
}

fn is_scope(word: &str) -> bool {
    (1..=200).contains(&word.len())
        && word.bytes().all(|byte| byte.is_ascii_graphic() && !b"\"\\".contains(&byte))
}

/// Whether a resource is the server itself, or a directory above it at the same origin.
fn covers(resource: &HttpUrl, server: &HttpUrl) -> bool {
    let (above, path) = (plain_path(resource), plain_path(server));
    let is_prefix =
        path.strip_prefix(above).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
    resource.origin() == server.origin() && is_prefix
}

/// Fetches the metadata of a login server.
pub(super) async fn find_issuer(
    reach: &HttpReach,
    issuer: &str,
) -> Result<IssuerMetadata, LoginError> {
    let failed = |problem: String| {
        LoginError::new(format!("cannot use the login server `{}`: {problem}", shown(issuer)))
    };
    let url = HttpUrl::parse(issuer).map_err(|problem| failed(problem.to_string()))?;
    let path = plain_path(&url);
    let mut paths = vec![format!("{SERVER_PATH}{path}"), format!("{OPENID_PATH}{path}")];
    if !path.is_empty() {
        paths.push(format!("{path}{OPENID_PATH}"));
    }
    for path in &paths {
        let Ok(candidate) = url.with_path(path) else { continue };
        let fetched = fetch(reach, &candidate, FetchBody::None).await?;
        if let (true, Some(json)) = (fetched.status.is_success(), fetched.json) {
            return read_issuer(reach, issuer, &json).map_err(|error| failed(error.0));
        }
    }
    Err(failed("it has no metadata".to_owned()))
}

fn read_issuer(
    reach: &HttpReach,
    issuer: &str,
    json: &Value,
) -> Result<IssuerMetadata, LoginError> {
    // Another issuer could otherwise get the codes of this one.
    let named = json["issuer"].as_str().unwrap_or_default();
    if named != issuer {
        let problem = format!("its metadata is for another issuer, `{}`", shown(named));
        return Err(LoginError::new(problem));
    }
    let has = |key: &str, word: &str| {
        json[key].as_array().is_some_and(|words| words.iter().any(|known| known == word))
    };
    if !has("code_challenge_methods_supported", "S256") {
        return Err(LoginError::new("it does not support PKCE with S256"));
    }
    if json.get("response_types_supported").is_some() && !has("response_types_supported", "code") {
        return Err(LoginError::new("it does not support codes"));
    }
    let required = |key: &str| {
        checked_url(reach, json, key)?
            .ok_or_else(|| LoginError::new(format!("its metadata has no `{key}`")))
    };
    Ok(IssuerMetadata {
        issuer: issuer.to_owned(),
        authorization_endpoint: required("authorization_endpoint")?,
        token_endpoint: required("token_endpoint")?,
        registration_endpoint: checked_url(reach, json, "registration_endpoint")?,
        names_issuer: json["authorization_response_iss_parameter_supported"] == true,
        takes_password_in_form: has("token_endpoint_auth_methods_supported", "client_secret_post"),
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn metadata_has_to_be_for_this_server() {
        let table = [
            ("https://a.com/x/mcp", true),
            ("https://A.com:443/x/mcp/", true),
            ("https://a.com/x", true),
            ("https://a.com", true),
            ("https://a.com/x/mc", false),
            ("https://a.com/x/mcp/more", false),
            ("https://b.com/x/mcp", false),
            ("http://a.com/x/mcp", false),
            ("https://a.com:8443/x/mcp", false),
            ("x", false),
            ("", false),
        ];
        let server = HttpUrl::parse("https://a.com/x/mcp").expect("a URL");
        for (resource, expected) in table {
            let json = json!({"resource": resource, "authorization_servers": ["https://i.com"]});
            let read = read_resource(&json, &server, None);
            assert_eq!(read.is_ok(), expected, "{resource}: {read:?}");
        }
        let nobody = json!({"resource": "https://a.com", "authorization_servers": []});
        assert!(read_resource(&nobody, &server, None).is_err());
    }

    #[test]
    fn scopes_come_from_the_challenge_or_from_the_metadata() {
        let server = HttpUrl::parse("https://a.com/").expect("a URL");
        let json = json!({"resource": "https://a.com", "authorization_servers": ["https://i.com"],
            "scopes_supported": ["read", "wri\u{1b}te", "a b", ""]});
        let scopes = |scope| read_resource(&json, &server, scope).expect("it is valid").scopes;
        assert_eq!(scopes(None), ["read", "a", "b"]);
        assert_eq!(scopes(Some("call")), ["call"]);
    }
}
