//! Where something stands in a file, for errors and for everybody who asks why.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::PolicyLevel;

/// A place in a file, counted from 1.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct SourceLocation {
    /// The file as people know it: a path, or the name of a profile.
    pub file: String,
    /// From 1.
    pub line: usize,
    /// From 1, in characters.
    pub column: usize,
}

impl SourceLocation {
    /// Of the byte at `offset` of a text.
    pub fn at_offset(file: &str, text: &str, offset: usize) -> Self {
        let before = text.get(..offset).unwrap_or(text);
        let line = before.matches('\n').count() + 1;
        let column = before.rsplit('\n').next().map_or(0, |rest| rest.chars().count()) + 1;
        Self { file: file.to_owned(), line, column }
    }
}

impl fmt::Display for SourceLocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}", self.file, self.line, self.column)
    }
}

/// Where a policy comes from, and on whose word it is in force.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RuleOrigin {
    /// A file of this level.
    File(PolicyLevel),
    /// A profile, part of the program, that somebody at this level has chosen.
    Profile(PolicyLevel),
}

impl RuleOrigin {
    /// The level on whose word it is in force.
    pub fn level(self) -> PolicyLevel {
        match self {
            Self::File(level) | Self::Profile(level) => level,
        }
    }
}

/// Something in a policy is not understood. Nothing runs on the rest of it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{location}: {problem}")]
pub struct PolicyError {
    /// Where.
    pub location: SourceLocation,
    /// What is wrong.
    pub problem: String,
}
