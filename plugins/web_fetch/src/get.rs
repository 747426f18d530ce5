//! Getting what is at an address, also if that is somewhere else by now.

use cofferdam_sdk::ToolError;
use cofferdam_sdk::http::{self, HttpError, Request, Response};

use crate::kind::Kind;
use crate::page;
use crate::url::Url;

/// More is a circle, or might as well be one.
const MOST_REDIRECTS: usize = 10;

/// What is read of a response.
pub(crate) const MOST_BYTES: usize = 5_000_000;

const ACCEPT: &str = "text/html, application/xhtml+xml, text/markdown, text/plain;q=0.9, \
    application/json;q=0.9, */*;q=0.5";
const USER_AGENT: &str = concat!("cofferdam-web-fetch/", env!("CARGO_PKG_VERSION"));

/// What was there.
pub(crate) struct Got {
    /// The address that answered.
    pub(crate) url: Url,
    /// The address that was asked for, if it is another one.
    pub(crate) asked: Option<Url>,
    /// The header, if there is one.
    pub(crate) content_type: Option<String>,
    pub(crate) kind: Kind,
    pub(crate) bytes: Vec<u8>,
    /// Whether these are all.
    pub(crate) complete: bool,
}

/// Each request is one that the host decides on, whoever asked for it: the model, or a server by a
/// redirect.
pub(crate) fn get(asked: Url) -> Result<Got, ToolError> {
    let mut url = asked.clone();
    for _ in 0..=MOST_REDIRECTS {
        let request =
            Request::get(url.to_string()).header("accept", ACCEPT).header("user-agent", USER_AGENT);
        let response = http::send(&request).map_err(|error| failed(&asked, &url, error))?;
        let Some(next) = redirect(&url, &response)? else { return read(asked, url, response) };
        url = next;
    }
    Err(ToolError::failed(format!(
        "{asked} was redirected more than {MOST_REDIRECTS} times, last to {url}. This may be a \
            redirect loop."
    )))
}

fn redirect(url: &Url, response: &Response) -> Result<Option<Url>, ToolError> {
    if !matches!(response.status, 301 | 302 | 303 | 307 | 308) {
        return Ok(None);
    }
    let Some(location) = response.header("location") else {
        return Err(ToolError::failed(format!(
            "{url} redirects (status {}) without a target.",
            response.status
        )));
    };
    let next = url.join(&location).map_err(|problem| {
        let location: String = location.chars().take(200).collect();
        ToolError::failed(format!(
            "{url} redirects to `{location}`, which cannot be followed: {problem}."
        ))
    })?;
    Ok(Some(next))
}

fn read(asked: Url, url: Url, mut response: Response) -> Result<Got, ToolError> {
    let content_type =
        response.header("content-type").map(|text| text.chars().take(200).collect::<String>());
    let status = response.status;
    let declared = Kind::declared(content_type.as_deref());
    let kept = if declared == Kind::Other { 0 } else { MOST_BYTES };
    let (bytes, complete) = response
        .read_up_to(kept)
        .map_err(|error| failed(&asked, &url, HttpError::Failed(error.to_string())))?;
    let kind = declared.or_of(&bytes);
    let asked = (asked != url).then_some(asked);
    let got = Got { url, asked, content_type, kind, bytes, complete };
    match status {
        200..=299 => Ok(got),
        404 | 410 => Err(ToolError::not_found(refused(&got, status, "the page does not exist"))),
        401 | 403 => Err(ToolError::failed(refused(
            &got,
            status,
            "the page needs a login, and this tool cannot log in",
        ))),
        429 => Err(ToolError::failed(refused(
            &got,
            status,
            "the server limits the number of requests; try again later",
        ))),
        500..=599 => {
            Err(ToolError::failed(refused(&got, status, "the server failed; try again later")))
        }
        _ => Err(ToolError::failed(refused(&got, status, "the server returned no page"))),
    }
}

/// With what the server said about it, which often tells more than the number.
fn refused(got: &Got, status: u16, what: &str) -> String {
    let said = page::excerpt(got);
    let said = if said.is_empty() { String::new() } else { format!(" It said:\n{said}") };
    format!("{}: status {status}: {what}.{said}", got.url)
}

/// A denial stays one, with the way that led to it.
fn failed(asked: &Url, url: &Url, error: HttpError) -> ToolError {
    let on_the_way =
        if asked == url { String::new() } else { format!("{asked} redirects to {url}: ") };
    match error {
        HttpError::Denied(mut denial) => {
            denial.reason = format!("{on_the_way}{}", denial.reason);
            ToolError::Denied(denial)
        }
        HttpError::InvalidRequest(problem) => {
            ToolError::invalid_input("/url", format!("{on_the_way}{problem}"))
        }
        HttpError::TimedOut(problem) => {
            ToolError::timed_out(format!("{on_the_way}cannot fetch {url}: {problem}"))
        }
        HttpError::Failed(problem) => {
            ToolError::failed(format!("{on_the_way}cannot fetch {url}: {problem}"))
        }
    }
}
