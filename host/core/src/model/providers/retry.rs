//! Decides when to send a request again, and after which pause.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::model::RetryTiming;
use crate::random;

/// The default timeout for the first byte from a provider's own servers.
const FIRST_EVENT_TIMEOUT: Duration = Duration::from_secs(120);

/// The default timeout for the first byte from a local server.
///
/// The server may have to load the model first. It then reads a prompt of 32 Ki tokens, the assumed
/// context window, in 14 minutes at 40 tokens per second. It sends nothing in that time.
const LOCAL_FIRST_EVENT_TIMEOUT: Duration = Duration::from_secs(900);

impl RetryTiming {
    /// Returns how long to wait for the first byte of a response.
    pub(super) fn first_event_timeout(&self, is_local: bool) -> Duration {
        self.first_event_timeout.unwrap_or(if is_local {
            LOCAL_FIRST_EVENT_TIMEOUT
        } else {
            FIRST_EVENT_TIMEOUT
        })
    }

    /// Returns the pause after failed attempt number `attempt`, counted from 1.
    ///
    /// The pause is random between 75 % and 100 % of the doubled one, so that many clients do not
    /// return at the same moment.
    pub(super) fn retry_pause(&self, attempt: u32) -> Duration {
        let doubled = self
            .initial_pause
            .saturating_mul(1_u32.checked_shl(attempt.saturating_sub(1)).unwrap_or(u32::MAX));
        random::jitter(doubled.min(self.max_pause))
    }
}

/// Returns whether an HTTP status means a transient failure.
pub(super) fn is_transient_status(status: u16) -> bool {
    matches!(status, 408 | 409 | 425 | 429 | 500..=599)
}

/// Parses a `Retry-After` header: seconds or a date. Returns `None` for anything else.
pub(super) fn parse_retry_after(value: &str, now: SystemTime) -> Option<Duration> {
    let value = value.trim();
    // The standard allows only whole seconds, but some servers send fractions.
    if let Some((whole, fraction)) = value.split_once('.')
        && [whole, fraction]
            .iter()
            .all(|part| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit()))
    {
        return Some(
            value
                .parse()
                .ok()
                .and_then(|seconds| Duration::try_from_secs_f64(seconds).ok())
                .unwrap_or(Duration::MAX),
        );
    }
    if !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_digit()) {
        return Some(Duration::from_secs(value.parse().unwrap_or(u64::MAX)));
    }
    let then = parse_http_date(value)?;
    let now = now.duration_since(UNIX_EPOCH).ok()?;
    Some(Duration::from_secs(then).saturating_sub(now))
}

/// Parses a date such as `Sun, 06 Nov 1994 08:49:37 GMT` into seconds since 1970.
///
/// This is the only form that is still in use.
fn parse_http_date(text: &str) -> Option<u64> {
    let mut words = text.split_once(", ")?.1.split(' ');
    let day: u64 = words.next()?.parse().ok()?;
    let month = words.next()?;
    let month =
        ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]
            .iter()
            .position(|m| *m == month)?;
    let year: u64 = words.next()?.parse().ok()?;
    let mut time = words.next()?.splitn(3, ':').map(|part| part.parse::<u64>().ok());
    let (hour, minute, second) = (time.next()??, time.next()??, time.next()??);
    if words.next() != Some("GMT")
        || !(1970..=9999).contains(&year)
        || !(1..=31).contains(&day)
        || hour > 23
        || minute > 59
        || second > 60
    {
        return None;
    }
    // The number of days before each month of a common year.
    let before = [0_u64, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334][month];
    let leap_days_before = |year: u64| (year - 1) / 4 - (year - 1) / 100 + (year - 1) / 400;
    let is_leap = year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    let leap_day = u64::from(is_leap && month > 1);
    let days = (year - 1970) * 365 + leap_days_before(year) - leap_days_before(1970)
        + before
        + leap_day
        + day
        - 1;
    Some(days * 86_400 + hour * 3_600 + minute * 60 + second)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn r086_a_local_server_has_a_longer_default_timeout() {
        let seconds = |timing: RetryTiming| {
            [true, false].map(|is_local| timing.first_event_timeout(is_local).as_secs())
        };
        assert_eq!(seconds(RetryTiming::default()), [900, 120]);
        assert_eq!(
            seconds(RetryTiming {
                first_event_timeout: Some(Duration::from_secs(7)),
                ..RetryTiming::default()
            }),
            [7, 7]
        );
    }

    #[test]
    fn r085_the_transient_statuses() {
        let passing: Vec<u16> = (100..600).filter(|status| is_transient_status(*status)).collect();
        let expected: Vec<u16> = [408, 409, 425, 429].into_iter().chain(500..600).collect();
        assert_eq!(passing, expected);
    }

    #[test]
    fn r085_pauses_double_up_to_a_limit() {
        let timing = RetryTiming::default();
        for (attempt, millis) in
            [(1, 500), (2, 1_000), (3, 2_000), (4, 4_000), (5, 8_000), (6, 8_000), (99, 8_000)]
        {
            let whole = Duration::from_millis(millis);
            for _ in 0..20 {
                let pause = timing.retry_pause(attempt);
                assert!(
                    pause <= whole && pause >= whole.mul_f64(0.75),
                    "attempt {attempt}: {pause:?}"
                );
            }
        }
    }

    #[test]
    fn r085_retry_after_is_seconds_or_a_date() {
        let now = UNIX_EPOCH + Duration::from_secs(784_111_777);
        let cases = [
            ("7", Some(7)),
            (" 0 ", Some(0)),
            ("99999999999999999999999", Some(u64::MAX)),
            ("Sun, 06 Nov 1994 08:49:47 GMT", Some(10)),
            ("Sun, 06 Nov 1994 08:49:27 GMT", Some(0)),
            ("Thu, 29 Feb 1996 08:49:37 GMT", Some(41_472_000)),
            ("Sun, 06 Nov 1994 08:49:37 CET", None),
            ("Sun, 06 Nov", None),
            ("-1", None),
            ("1.", None),
            (".5", None),
            ("1.5.1", None),
            ("1.e9", None),
            ("", None),
        ];
        for (value, seconds) in cases {
            assert_eq!(
                parse_retry_after(value, now),
                seconds.map(Duration::from_secs),
                "{value:?}"
            );
        }
        assert_eq!(parse_retry_after("1.5", now), Some(Duration::from_millis(1_500)));
        assert_eq!(parse_retry_after(&format!("{}.0", "9".repeat(400)), now), Some(Duration::MAX));
    }
}
