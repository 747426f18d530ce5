//! Locations in policy files, for errors and explanations.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::PolicyLevel;

/// A location in a file. Lines and columns start at 1.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct SourceLocation {
    /// The path of the file, or the name of a profile.
    pub file: String,
    /// The line number, starting at 1.
    pub line: usize,
    /// The column number in characters, starting at 1.
    pub column: usize,
}

impl SourceLocation {
    /// Returns the location of the byte at `offset` of `text`.
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

/// The source of a policy, with its level.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RuleOrigin {
    /// A policy file of this level.
    File(PolicyLevel),
    /// A built-in profile that this level chose.
    Profile(PolicyLevel),
}

impl RuleOrigin {
    /// Returns the level that the policy belongs to.
    pub fn level(self) -> PolicyLevel {
        match self {
            Self::File(level) | Self::Profile(level) => level,
        }
    }
}

/// An error in a policy file. The program rejects the whole file.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{location}: {problem}")]
#[non_exhaustive]
pub struct PolicyError {
    /// The location of the error.
    pub location: SourceLocation,
    /// The description of the error.
    pub problem: String,
}
