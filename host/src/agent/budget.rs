//! How many turns with calls a request may take: a safety net, since correct history is what ends
//! loops.

use std::fmt;
use std::num::NonZeroU32;
use std::str::FromStr;

use super::ports::ToolChoice;

/// Unless configured otherwise.
pub const DEFAULT_MAX_TURNS: u32 = 40;

/// A number of turns, at least one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TurnLimit(NonZeroU32);

/// No such number.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("'{0}' is not a limit on tool turns: use a whole number from 1 up")]
pub struct InvalidTurnLimit(String);

impl TurnLimit {
    /// Checks a number.
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

/// Counts the turns of one request, from zero, and never gives any back.
#[derive(Debug)]
pub(super) struct TurnBudget {
    limit: TurnLimit,
    used: u32,
}

impl TurnBudget {
    pub(super) fn new(limit: TurnLimit) -> Self {
        Self { limit, used: 0 }
    }

    /// One turn with calls was taken.
    pub(super) fn record_turn(&mut self) {
        self.used = self.used.saturating_add(1);
    }

    pub(super) fn limit(&self) -> u32 {
        self.limit.0.get()
    }

    /// After the last turn the model is asked once more, without the choice of calling anything.
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
