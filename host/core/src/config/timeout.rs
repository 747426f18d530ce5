//! The limit on the active time of a request.

use std::num::NonZeroU64;
use std::str::FromStr;
use std::time::Duration;

/// A time limit of at least one second.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestTimeout(NonZeroU64);

/// The error for a time limit that is not a whole number of seconds from 1 up.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("invalid time limit `{0}`: use a whole number of seconds, 1 or more")]
pub struct InvalidTimeout(String);

impl RequestTimeout {
    /// Creates a time limit from a number of seconds.
    ///
    /// # Errors
    /// The number is zero.
    pub fn new(seconds: u64) -> Result<Self, InvalidTimeout> {
        NonZeroU64::new(seconds).map(Self).ok_or_else(|| InvalidTimeout(seconds.to_string()))
    }

    /// Returns the time limit as a duration.
    pub fn get(self) -> Duration {
        Duration::from_secs(self.0.get())
    }
}

impl FromStr for RequestTimeout {
    type Err = InvalidTimeout;

    fn from_str(text: &str) -> Result<Self, InvalidTimeout> {
        let seconds = text.trim().parse().map_err(|_| InvalidTimeout(text.to_owned()))?;
        Self::new(seconds)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn r104_a_limit_is_a_number_of_seconds_from_one_up() {
        for text in ["0", "-1", "soon", "", "1.5"] {
            assert!(text.parse::<RequestTimeout>().is_err(), "{text}");
        }
        assert_eq!(
            "90".parse::<RequestTimeout>().map(RequestTimeout::get),
            Ok(Duration::from_secs(90))
        );
    }
}
