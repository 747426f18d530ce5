//! The limit on the number of turns with tool calls in one request.
//!
//! The limit is a safety net: a correct history is what normally ends a request.

use std::fmt;
use std::num::NonZeroU32;
use std::str::FromStr;

use super::ports::ToolChoice;

/// The turn limit if none is configured.
const DEFAULT_MAX_TURNS: u32 = 40;

/// A limit on turns with tool calls, at least 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TurnLimit(NonZeroU32);

/// The error for a turn limit that is not a whole number from 1 up.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a valid limit on tool turns: use a whole number of at least 1")]
pub struct InvalidTurnLimit(String);

impl TurnLimit {
    /// Creates a limit from a number of turns.
    ///
    /// # Errors
    /// The number is zero.
    pub fn new(turns: u32) -> Result<Self, InvalidTurnLimit> {
        NonZeroU32::new(turns).map(Self).ok_or_else(|| InvalidTurnLimit(turns.to_string()))
    }
}

impl Default for TurnLimit {
    fn default() -> Self {
        Self(NonZeroU32::new(DEFAULT_MAX_TURNS).unwrap_or(NonZeroU32::MIN))
    }
}

impl FromStr for TurnLimit {
    type Err = InvalidTurnLimit;

    fn from_str(text: &str) -> Result<Self, InvalidTurnLimit> {
        let turns = text.trim().parse().map_err(|_| InvalidTurnLimit(text.to_owned()))?;
        Self::new(turns)
    }
}

impl fmt::Display for TurnLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A counter of the turns with tool calls in one request.
///
/// It starts at zero and only ever grows.
#[derive(Debug)]
pub(super) struct TurnBudget {
    limit: TurnLimit,
    used: u32,
}

impl TurnBudget {
    pub(super) fn new(limit: TurnLimit) -> Self {
        Self { limit, used: 0 }
    }

    /// Counts one turn with tool calls.
    pub(super) fn record_turn(&mut self) {
        self.used = self.used.saturating_add(1);
    }

    pub(super) fn limit(&self) -> u32 {
        self.limit.0.get()
    }

    /// Returns whether the next request may call tools.
    ///
    /// When the limit is reached, the model is asked once more without that choice.
    pub(super) fn tool_choice(&self) -> ToolChoice {
        if self.used < self.limit() { ToolChoice::Auto } else { ToolChoice::None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn r007_the_limit_is_a_number_from_one_up() {
        for text in ["0", "-1", "many", ""] {
            assert!(text.parse::<TurnLimit>().is_err(), "{text}");
        }
        assert_eq!(TurnLimit::default().to_string(), "40");
    }
}
