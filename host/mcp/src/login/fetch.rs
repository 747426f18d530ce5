//! Requests to the addresses that servers name, within limits.

use std::time::Duration;

use cofferdam::policy::HttpUrl;
use cofferdam::sandbox::{HttpReach, OriginRequest};
use http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderValue};
use http::{Method, StatusCode};
use serde_json::Value;

use super::LoginError;
use crate::servers::shown;

/// The largest document, in bytes.
const MAX_DOCUMENT_LEN: usize = 256 << 10;
/// The time for the headers of a response, and for its body.
const HEAD_TIMEOUT: Duration = Duration::from_secs(15);
const BODY_TIMEOUT: Duration = Duration::from_secs(15);

/// A response that was read completely.
pub(super) struct FetchedDocument {
    pub(super) status: StatusCode,
    pub(super) headers: HeaderMap,
    /// The JSON of the body; `None` if it is none.
    pub(super) json: Option<Value>,
}

/// The body of a request.
pub(super) enum FetchBody<'b> {
    /// None, with the method GET.
    None,
    /// A form, with the password of the client if it has one.
    Form(String, Option<&'b str>),
    /// JSON.
    Json(&'b Value),
}

/// Sends a request to an address that a server named.
///
/// # Errors
///
/// The address must not be connected to, or the server does not respond within the limits.
pub(super) async fn fetch(
    reach: &HttpReach,
    url: &HttpUrl,
    body: FetchBody<'_>,
) -> Result<FetchedDocument, LoginError> {
    let failed = |problem: String| LoginError::new(format!("cannot fetch {url}: {problem}"));
    let client = reach.connect(url.origin()).await;
    let client = client.map_err(|error| failed(error.to_string()))?;
    let method = match body {
        FetchBody::None => Method::GET,
        FetchBody::Form(..) | FetchBody::Json(_) => Method::POST,
    };
    let mut request = OriginRequest::new(method, url.clone());
    request.head_timeout = HEAD_TIMEOUT;
    request.headers.insert(ACCEPT, HeaderValue::from_static("application/json"));
    let content_type = match body {
        FetchBody::None => None,
        FetchBody::Form(form, password) => {
            request.body = form.into();
            if let Some(password) = password {
                let mut value = HeaderValue::from_str(password)
                    .map_err(|_| failed("the client secret is not valid".to_owned()))?;
                value.set_sensitive(true);
                request.headers.insert(AUTHORIZATION, value);
            }
            Some("application/x-www-form-urlencoded")
        }
        FetchBody::Json(json) => {
            request.body = json.to_string().into();
            Some("application/json")
        }
    };
    if let Some(content_type) = content_type {
        request.headers.insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    }
    let response = client.send(request).await.map_err(|error| failed(error.to_string()))?;
    let (status, headers, mut body) = (response.status, response.headers, response.body);
    if status.is_redirection() {
        return Err(failed("the server redirects, and redirects are not followed".to_owned()));
    }
    let bytes = body.read_all(MAX_DOCUMENT_LEN, BODY_TIMEOUT).await;
    let bytes = bytes.map_err(|error| failed(error.to_string()))?;
    Ok(FetchedDocument { status, headers, json: serde_json::from_slice(&bytes).ok() })
}

/// Parses an address of a document, and checks that the host may connect to it.
pub(super) fn checked_url(
    reach: &HttpReach,
    document: &Value,
    key: &str,
) -> Result<Option<HttpUrl>, LoginError> {
    let Some(text) = document[key].as_str() else { return Ok(None) };
    let failed = |problem: String| {
        LoginError::new(format!("`{key}` of the login server is `{}`: {problem}", shown(text)))
    };
    let url = HttpUrl::parse(text).map_err(|problem| failed(problem.to_string()))?;
    reach.check(url.origin()).map_err(|problem| failed(problem.to_string()))?;
    Ok(Some(url))
}

/// Describes an error of a login server, as RFC 6749 defines it.
pub(super) fn describe_error(document: &FetchedDocument) -> String {
    let text = |key: &str| document.json.as_ref().and_then(|json| json[key].as_str());
    match (text("error"), text("error_description")) {
        (Some(error), Some(more)) => format!("{} ({})", shown(error), shown(more)),
        (Some(error), None) => shown(error),
        (None, _) => format!("HTTP {}", document.status.as_u16()),
    }
}
