//! The timeouts and retries of requests to models.

use std::time::Duration;

/// The timeouts and retries of requests.
///
/// The defaults suit normal use. Tests use shorter times.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RetryTiming {
    /// The longest time until the connection is established.
    pub connect_timeout: Duration,
    /// The longest time from sending the request to the first byte of the response body.
    ///
    /// `None` means 2 minutes, or 15 minutes for a server on this machine or in its private
    /// network.
    pub first_event_timeout: Option<Duration>,
    /// The longest time between two pieces of the response. Any byte counts.
    pub idle_timeout: Duration,
    /// The longest time in which a provider sends only heartbeats, which are comments and pings.
    ///
    /// The longer one of the other timeouts applies if it exceeds this value.
    pub heartbeats: Duration,
    /// The first pause. Each later pause is twice as long.
    pub initial_pause: Duration,
    /// The longest pause that the client chooses by itself.
    pub max_pause: Duration,
    /// The longest pause that a provider may ask for.
    pub max_retry_after: Duration,
    /// The most times that a request is sent.
    pub max_attempts: u32,
}

impl Default for RetryTiming {
    fn default() -> Self {
        Self {
            connect_timeout: Duration::from_secs(10),
            first_event_timeout: None,
            idle_timeout: Duration::from_secs(120),
            heartbeats: Duration::from_secs(1800),
            initial_pause: Duration::from_millis(500),
            max_pause: Duration::from_secs(8),
            max_retry_after: Duration::from_secs(60),
            max_attempts: 3,
        }
    }
}
