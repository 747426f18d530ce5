//! How much is allowed without asking.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// The user's general answer, chosen at the terminal and never by a model.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize,
)]
#[serde(rename_all = "kebab-case")]
pub enum ApprovalMode {
    /// Commands, writes and requests are asked, one by one.
    #[default]
    Ask,
    /// Commands and writes are denied; requests are asked.
    Plan,
    /// Writes are allowed; commands and requests are asked.
    AutoEdit,
    /// Commands and writes are allowed; requests are asked, unless a rule allows them.
    Auto,
}

impl ApprovalMode {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Ask, Self::Plan, Self::AutoEdit, Self::Auto];
    /// All of them, the strictest first.
    pub const STRICTEST_FIRST: [Self; 4] = [Self::Plan, Self::Ask, Self::AutoEdit, Self::Auto];

    /// The one that a single key changes to. It never leads into `auto`: that is said in full.
    #[must_use]
    pub fn next(self) -> Self {
        match self {
            Self::Ask => Self::Plan,
            Self::Plan => Self::AutoEdit,
            Self::AutoEdit | Self::Auto => Self::Ask,
        }
    }

    /// Says what needs approval where no rule decides.
    pub fn describe(self) -> &'static str {
        match self {
            Self::Ask => "commands, writes and requests need approval, one by one",
            Self::Plan => {
                "commands and writes are denied until you accept a plan; requests need approval"
            }
            Self::AutoEdit => {
                "writes are allowed without asking; commands and requests need approval"
            }
            Self::Auto => {
                "commands and writes are allowed without asking; requests need approval unless a \
                    rule allows the host"
            }
        }
    }

    /// The word for it on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Ask => "ask",
            Self::Plan => "plan",
            Self::AutoEdit => "auto-edit",
            Self::Auto => "auto",
        }
    }
}

impl fmt::Display for ApprovalMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The word is no mode.
#[derive(Debug, thiserror::Error)]
#[error("'{0}' is not a mode: use ask, plan, auto-edit or auto")]
pub struct UnknownMode(String);

impl FromStr for ApprovalMode {
    type Err = UnknownMode;

    fn from_str(word: &str) -> Result<Self, UnknownMode> {
        Self::ALL
            .into_iter()
            .find(|mode| mode.name() == word)
            .ok_or_else(|| UnknownMode(word.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_key_leads_into_auto() {
        assert_eq!(
            ApprovalMode::ALL.map(ApprovalMode::next),
            [ApprovalMode::Plan, ApprovalMode::AutoEdit, ApprovalMode::Ask, ApprovalMode::Ask]
        );
    }
}
