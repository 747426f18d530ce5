//! Reads the headers of a response.

use std::time::{Duration, SystemTime};

use reqwest::header::{CONTENT_ENCODING, HeaderMap, RETRY_AFTER, TRANSFER_ENCODING};

use crate::model::providers::retry::parse_retry_after;
use crate::terminal_escape;

/// Returns the pause that a refusal asks for.
///
/// Both providers also send it in milliseconds, which takes precedence because it is more exact.
pub(super) fn requested_pause(headers: &HeaderMap) -> Option<Duration> {
    let value = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    let exact = value("retry-after-ms")
        .and_then(|value| value.trim().parse().ok())
        .map(Duration::from_millis);
    exact.or_else(|| parse_retry_after(value(RETRY_AFTER.as_str())?, SystemTime::now()))
}

/// Returns the compression of a body, if there is any.
pub(super) fn compression(headers: &HeaderMap) -> Option<String> {
    let all = headers.get_all(CONTENT_ENCODING).iter().chain(headers.get_all(TRANSFER_ENCODING));
    let words = all
        .flat_map(|value| value.as_bytes().split(|byte| *byte == b','))
        .map(|word| String::from_utf8_lossy(word.trim_ascii()));
    words
        .map(|word| word.to_ascii_lowercase())
        .find(|word| !matches!(word.as_str(), "" | "identity" | "chunked"))
        .map(|word| terminal_escape::escape_line(&word, 40))
}
