//! Built-in policies, each a TOML file compiled into the program.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::{PolicyError, PolicyLayer, PolicyLevel};

/// A built-in policy that the user or a policy file chooses by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum PolicyProfile {
    /// Allows tools to read everything and to change nothing.
    ReadOnly,
    /// Suits work on a project with a user at the terminal.
    #[default]
    Develop,
    /// Suits projects, plugins and models that the user does not trust.
    LockedDown,
}

/// The error for an unknown profile.
#[derive(Debug, thiserror::Error)]
#[error("unknown profile `{0}`: use read-only, develop or locked-down")]
pub struct UnknownProfile(String);

impl PolicyProfile {
    /// All profiles, in the order of the enum.
    pub const ALL: [Self; 3] = [Self::ReadOnly, Self::Develop, Self::LockedDown];

    /// Returns the name in configuration and policy files.
    pub fn name(self) -> &'static str {
        match self {
            Self::ReadOnly => "read-only",
            Self::Develop => "develop",
            Self::LockedDown => "locked-down",
        }
    }

    /// Returns the TOML text of this profile.
    pub fn text(self) -> &'static str {
        match self {
            Self::ReadOnly => include_str!("../profiles/read-only.toml"),
            Self::Develop => include_str!("../profiles/develop.toml"),
            Self::LockedDown => include_str!("../profiles/locked-down.toml"),
        }
    }

    /// Parses this profile into a layer of the level that chose it.
    ///
    /// # Errors
    ///
    /// Returns an error if the built-in file does not parse; a test excludes this.
    pub fn to_layer(self, level: PolicyLevel) -> Result<PolicyLayer, PolicyError> {
        PolicyLayer::from_profile(level, &format!("profile {self}"), self.text())
    }
}

impl fmt::Display for PolicyProfile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for PolicyProfile {
    type Err = UnknownProfile;

    fn from_str(word: &str) -> Result<Self, UnknownProfile> {
        Self::ALL
            .into_iter()
            .find(|profile| profile.name() == word)
            .ok_or_else(|| UnknownProfile(word.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_profile_parses() {
        for profile in PolicyProfile::ALL {
            profile.to_layer(PolicyLevel::User).unwrap_or_else(|error| panic!("{error}"));
            assert_eq!(profile.name().parse::<PolicyProfile>().unwrap(), profile);
        }
    }

    #[test]
    fn the_layer_of_a_profile_names_the_profile() {
        let layer = PolicyProfile::LockedDown.to_layer(PolicyLevel::User).unwrap();
        assert_eq!(layer.file, "profile locked-down");
        let problem = "locked".parse::<PolicyProfile>().unwrap_err().to_string();
        assert_eq!(problem, "unknown profile `locked`: use read-only, develop or locked-down");
    }
}
