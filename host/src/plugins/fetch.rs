//! Fetching a component: into memory, never more than a component may have, and nothing of it runs.

use std::time::Duration;

use reqwest::{Url, redirect};

use super::source::{Source, is_of_this_machine, may_lead_to};
use crate::sandbox::{ComponentBytes, LARGEST_COMPONENT, LoadError};

/// Until a server is there at all.
const CONNECT: Duration = Duration::from_secs(10);
/// Without any byte.
const IDLE: Duration = Duration::from_secs(60);
const MOST_REDIRECTS: usize = 5;

/// How far it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// Bytes that are there.
    pub fetched: u64,
    /// Bytes in all, if the server has said so.
    pub of: Option<u64>,
}

/// Nothing was fetched.
#[derive(Debug, thiserror::Error)]
pub enum FetchError {
    /// The file cannot be read.
    #[error(transparent)]
    File(#[from] LoadError),
    /// The server cannot be reached, or broke off.
    #[error("it cannot be fetched: {0}")]
    Transport(String),
    /// The server has another answer.
    #[error("it cannot be fetched: the server answers {0}")]
    Refused(String),
    /// It is larger than any honest one.
    #[error("it has more than {} MiB, and no component may have more", LARGEST_COMPONENT >> 20)]
    TooLarge,
}

/// Brings the component. `progress` hears of each piece of one that comes from a server.
pub async fn fetch(source: &Source, progress: &mut dyn FnMut(Progress)) -> Result<ComponentBytes, FetchError> {
    match source {
        Source::File(path) => Ok(ComponentBytes::read(path)?),
        Source::Url(url) => from_server(url, progress).await,
    }
}

async fn from_server(url: &Url, progress: &mut dyn FnMut(Progress)) -> Result<ComponentBytes, FetchError> {
    let failed = |error: reqwest::Error| FetchError::Transport(root_cause(&error.without_url()));
    let mut response = client(url).map_err(failed)?.get(url.clone()).send().await.map_err(failed)?;
    if response.status() != reqwest::StatusCode::OK {
        return Err(FetchError::Refused(response.status().to_string()));
    }
    let of = response.content_length();
    // So that nothing is fetched in vain; what really comes is counted all the same.
    if of.is_some_and(|of| of > LARGEST_COMPONENT as u64) {
        return Err(FetchError::TooLarge);
    }
    let mut bytes = Vec::new();
    while let Some(piece) = response.chunk().await.map_err(failed)? {
        if bytes.len() + piece.len() > LARGEST_COMPONENT {
            return Err(FetchError::TooLarge);
        }
        bytes.extend_from_slice(&piece);
        progress(Progress { fetched: bytes.len() as u64, of });
    }
    Ok(bytes.into())
}

fn client(url: &Url) -> reqwest::Result<reqwest::Client> {
    let follow = |attempt: redirect::Attempt<'_>| {
        let safe = attempt.previous().last().is_some_and(|from| may_lead_to(from, attempt.url()));
        match (safe, attempt.previous().len() > MOST_REDIRECTS) {
            (true, false) => attempt.follow(),
            (true, true) => attempt.error(format!("the server sends on to elsewhere more than {MOST_REDIRECTS} times")),
            (false, _) => attempt.error("the server sends on to an address that is not fetched from: it is not https, or of this machine"),
        }
    };
    let mut builder = reqwest::Client::builder()
        .connect_timeout(CONNECT)
        .read_timeout(IDLE)
        .redirect(redirect::Policy::custom(follow))
        .referer(false)
        .user_agent(concat!("cofferdam/", env!("CARGO_PKG_VERSION")));
    if is_of_this_machine(url) {
        builder = builder.no_proxy();
    }
    builder.build()
}

/// What lies at the bottom is what helps.
fn root_cause(error: &dyn std::error::Error) -> String {
    let mut cause = error;
    while let Some(deeper) = cause.source() {
        cause = deeper;
    }
    cause.to_string()
}
