//! Fetching of a plugin component into memory, within the size limit; nothing of it is run.

use std::time::Duration;

use reqwest::{Url, redirect};

use super::source::{PluginSource, allows_redirect, is_loopback_url};
use crate::sandbox::{ComponentBytes, LoadError, MAX_COMPONENT_SIZE};

/// The longest wait for a connection to the server.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// The longest wait for the next byte.
const IDLE_TIMEOUT: Duration = Duration::from_secs(60);
const MAX_REDIRECTS: usize = 5;

/// The progress of a download.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct FetchProgress {
    /// The number of bytes that have arrived.
    pub fetched: u64,
    /// The total number of bytes, if the server reported it.
    pub total: Option<u64>,
}

/// The reason why a component was not fetched.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FetchError {
    /// The file cannot be read.
    #[error(transparent)]
    File(#[from] LoadError),
    /// The server cannot be reached, or the connection broke.
    #[error("cannot fetch it: {0}")]
    Transport(String),
    /// The server responded with a status other than 200.
    #[error("cannot fetch it: the server responded with {0}")]
    Status(String),
    /// The component is larger than the limit of 64 MiB.
    #[error("it is larger than {} MiB, the maximum for a component", MAX_COMPONENT_SIZE >> 20)]
    TooLarge,
}

/// Fetches a component from a file or a server.
///
/// `progress` is called for each piece that arrives from a server.
///
/// # Errors
/// The file or the server cannot be read, or the component is too large.
pub async fn fetch(
    source: &PluginSource,
    progress: &mut dyn FnMut(FetchProgress),
) -> Result<ComponentBytes, FetchError> {
    match source {
        PluginSource::File(path) => Ok(ComponentBytes::read(path)?),
        PluginSource::Url(url) => fetch_url(url, progress).await,
    }
}

async fn fetch_url(
    url: &Url,
    progress: &mut dyn FnMut(FetchProgress),
) -> Result<ComponentBytes, FetchError> {
    let failed = |error: reqwest::Error| FetchError::Transport(root_cause(&error.without_url()));
    let mut response =
        build_client(url).map_err(failed)?.get(url.clone()).send().await.map_err(failed)?;
    if response.status() != reqwest::StatusCode::OK {
        return Err(FetchError::Status(response.status().to_string()));
    }
    let total = response.content_length();
    // This check avoids a useless download. The bytes that arrive are counted all the same.
    if total.is_some_and(|total| total > MAX_COMPONENT_SIZE as u64) {
        return Err(FetchError::TooLarge);
    }
    let mut bytes = Vec::new();
    while let Some(piece) = response.chunk().await.map_err(failed)? {
        if bytes.len() + piece.len() > MAX_COMPONENT_SIZE {
            return Err(FetchError::TooLarge);
        }
        bytes.extend_from_slice(&piece);
        progress(FetchProgress { fetched: bytes.len() as u64, total });
    }
    Ok(bytes.into())
}

fn build_client(url: &Url) -> reqwest::Result<reqwest::Client> {
    let follow = |attempt: redirect::Attempt<'_>| {
        let is_allowed =
            attempt.previous().last().is_some_and(|from| allows_redirect(from, attempt.url()));
        match (is_allowed, attempt.previous().len() > MAX_REDIRECTS) {
            (true, false) => attempt.follow(),
            (true, true) => {
                attempt.error(format!("the server redirected more than {MAX_REDIRECTS} times"))
            }
            (false, _) => attempt.error(
                "the server redirected to a URL that is not allowed: it is not https, or it is on \
                    this machine",
            ),
        }
    };
    let mut builder = reqwest::Client::builder()
        .connect_timeout(CONNECT_TIMEOUT)
        .read_timeout(IDLE_TIMEOUT)
        .redirect(redirect::Policy::custom(follow))
        .referer(false)
        .user_agent(concat!("cofferdam/", env!("CARGO_PKG_VERSION")));
    if is_loopback_url(url) {
        builder = builder.no_proxy();
    }
    builder.build()
}

/// Returns the innermost error, which is the most useful one.
fn root_cause(error: &dyn std::error::Error) -> String {
    let mut cause = error;
    while let Some(deeper) = cause.source() {
        cause = deeper;
    }
    cause.to_string()
}
