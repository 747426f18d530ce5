//! Fetching a component: into memory, never more than a component may have, and nothing of it runs.

use std::time::Duration;

use reqwest::{Url, redirect};

use super::source::{PluginSource, allows_redirect, is_loopback_url};
use crate::sandbox::{ComponentBytes, LoadError, MAX_COMPONENT_SIZE};

/// Until a server is there at all.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// Without any byte.
const IDLE_TIMEOUT: Duration = Duration::from_secs(60);
const MAX_REDIRECTS: usize = 5;

/// How far it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FetchProgress {
    /// Bytes that are there.
    pub fetched: u64,
    /// Bytes in all, if the server has said so.
    pub total: Option<u64>,
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
    Status(String),
    /// It is larger than any honest one.
    #[error("it has more than {} MiB, and no component may have more", MAX_COMPONENT_SIZE >> 20)]
    TooLarge,
}

/// Brings the component. `progress` hears of each piece of one that comes from a server.
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
    let of = response.content_length();
    // So that nothing is fetched in vain; what really comes is counted all the same.
    if of.is_some_and(|of| of > MAX_COMPONENT_SIZE as u64) {
        return Err(FetchError::TooLarge);
    }
    let mut bytes = Vec::new();
    while let Some(piece) = response.chunk().await.map_err(failed)? {
        if bytes.len() + piece.len() > MAX_COMPONENT_SIZE {
            return Err(FetchError::TooLarge);
        }
        bytes.extend_from_slice(&piece);
        progress(FetchProgress { fetched: bytes.len() as u64, total: of });
    }
    Ok(bytes.into())
}

fn build_client(url: &Url) -> reqwest::Result<reqwest::Client> {
    let follow = |attempt: redirect::Attempt<'_>| {
        let safe =
            attempt.previous().last().is_some_and(|from| allows_redirect(from, attempt.url()));
        match (safe, attempt.previous().len() > MAX_REDIRECTS) {
            (true, false) => attempt.follow(),
            (true, true) => attempt.error(format!(
                "the server sends on to elsewhere more than \
                {MAX_REDIRECTS} times"
            )),
            (false, _) => attempt.error(
                "the server sends on to an address that is not fetched \
                from: it is not https, or of this machine",
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

/// What lies at the bottom is what helps.
fn root_cause(error: &dyn std::error::Error) -> String {
    let mut cause = error;
    while let Some(deeper) = cause.source() {
        cause = deeper;
    }
    cause.to_string()
}
