//! The approval mode: the actions that are allowed without approval.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// The default decision for actions that no rule covers. The user chooses it; a model never does.
///
/// This enum is closed: each mode has to be offered and explained wherever the user chooses one.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize,
)]
#[serde(rename_all = "kebab-case")]
pub enum ApprovalMode {
    /// Each command, write and HTTP request needs approval.
    #[default]
    Ask,
    /// Commands and writes are denied; HTTP requests need approval.
    Plan,
    /// Writes are allowed; commands and HTTP requests need approval.
    AutoEdit,
    /// Commands and writes are allowed; HTTP requests need approval unless a rule allows them.
    Auto,
}

impl ApprovalMode {
    /// All modes, in the order of the enum.
    pub const ALL: [Self; 4] = [Self::Ask, Self::Plan, Self::AutoEdit, Self::Auto];
    /// All modes, the strictest first.
    pub const STRICTEST_FIRST: [Self; 4] = [Self::Plan, Self::Ask, Self::AutoEdit, Self::Auto];

    /// Returns the mode that the mode key switches to. The key never switches to `auto`; the user
    /// has to choose that mode explicitly.
    #[must_use]
    pub fn next(self) -> Self {
        match self {
            Self::Ask => Self::Plan,
            Self::Plan => Self::AutoEdit,
            Self::AutoEdit | Self::Auto => Self::Ask,
        }
    }

    /// Describes the actions that need approval if no rule decides.
    pub fn describe(self) -> &'static str {
        match self {
            Self::Ask => "each command, write and HTTP request needs approval",
            Self::Plan => {
                "commands and writes are denied until you accept a plan; HTTP requests need \
                    approval"
            }
            Self::AutoEdit => {
                "writes are allowed without asking; commands and HTTP requests need approval"
            }
            Self::Auto => {
                "commands and writes are allowed without asking; HTTP requests need approval \
                    unless a rule allows the host"
            }
        }
    }

    /// Returns the name on the command line.
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

/// The error for an unknown mode.
#[derive(Debug, thiserror::Error)]
#[error("unknown mode `{0}`: use ask, plan, auto-edit or auto")]
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
    fn the_mode_key_never_selects_auto() {
        assert_eq!(
            ApprovalMode::ALL.map(ApprovalMode::next),
            [ApprovalMode::Plan, ApprovalMode::AutoEdit, ApprovalMode::Ask, ApprovalMode::Ask]
        );
    }

    #[test]
    fn a_mode_is_found_by_its_exact_name() {
        for mode in ApprovalMode::ALL {
            assert_eq!(mode.to_string().parse::<ApprovalMode>().ok(), Some(mode));
        }
        for word in ["", "AUTO", "yolo", "auto edit"] {
            let problem = word.parse::<ApprovalMode>().expect_err(word).to_string();
            assert_eq!(problem, format!("unknown mode `{word}`: use ask, plan, auto-edit or auto"));
        }
    }

    #[test]
    fn the_description_of_a_mode_says_what_happens_without_approval() {
        for (mode, part) in [
            (ApprovalMode::Ask, "each command, write and HTTP request needs approval"),
            (ApprovalMode::Plan, "commands and writes are denied"),
            (ApprovalMode::AutoEdit, "writes are allowed without asking"),
            (ApprovalMode::Auto, "commands and writes are allowed without asking"),
        ] {
            assert!(mode.describe().contains(part), "{mode}");
        }
    }
}
