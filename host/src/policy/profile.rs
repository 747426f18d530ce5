//! Ready-made policies, each a file that is part of the program.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::{PolicyError, PolicyLayer, PolicyLevel};

/// A ready-made policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PolicyProfile {
    /// Looks at everything and changes nothing.
    ReadOnly,
    /// For work on a project with somebody at the terminal.
    #[default]
    Develop,
    /// For projects, plugins and models that one knows little of.
    LockedDown,
}

/// The word is no profile.
#[derive(Debug, thiserror::Error)]
#[error("'{0}' is not a profile: use read-only, develop or locked-down")]
pub struct UnknownProfile(String);

impl PolicyProfile {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::ReadOnly, Self::Develop, Self::LockedDown];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::ReadOnly => "read-only",
            Self::Develop => "develop",
            Self::LockedDown => "locked-down",
        }
    }

    /// Its file.
    pub fn text(self) -> &'static str {
        match self {
            Self::ReadOnly => include_str!("../../profiles/read-only.toml"),
            Self::Develop => include_str!("../../profiles/develop.toml"),
            Self::LockedDown => include_str!("../../profiles/locked-down.toml"),
        }
    }

    /// As a layer for whoever chose it.
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
    fn every_profile_is_a_policy() {
        for profile in PolicyProfile::ALL {
            profile.to_layer(PolicyLevel::User).unwrap_or_else(|error| panic!("{error}"));
            assert_eq!(profile.name().parse::<PolicyProfile>().unwrap(), profile);
        }
    }
}
