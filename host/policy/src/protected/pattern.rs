//! Patterns of protected paths, compared like names on the most lenient file systems.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::fold_name;
use crate::layer::SourceLocated;
use crate::pattern::{PathPattern, PatternReach, glob, match_components};
use crate::{TrustLevel, WorkspacePath};

/// The maximum number of components in a pattern of a policy. Directories are rarely so deep, and
/// every path is compared with the pattern.
const MAX_PARTS: usize = 32;

/// The error for a text that is not a valid pattern.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{pattern}` is not a pattern of protected paths: {problem}")]
pub struct ProtectedPatternError {
    pattern: String,
    problem: &'static str,
}

/// A pattern of normalized components, relative to the workspace. `**` matches any number of
/// components.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "Vec<String>", from = "Vec<String>")]
pub(super) struct ProtectedPattern(Vec<Vec<char>>);

// A request to a supervisor has hundreds of patterns. Text is a third of the size of a list of
// characters.
impl From<ProtectedPattern> for Vec<String> {
    fn from(pattern: ProtectedPattern) -> Self {
        pattern.0.into_iter().map(|part| part.into_iter().collect()).collect()
    }
}

impl From<Vec<String>> for ProtectedPattern {
    fn from(parts: Vec<String>) -> Self {
        Self(parts.into_iter().map(|part| part.chars().collect()).collect())
    }
}

/// The author of a pattern.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum PatternAuthor {
    /// Cofferdam itself, to protect its own files.
    Program,
    /// A policy file of this authority.
    File(TrustLevel, SourceLocated),
    /// The built-in lists.
    BuiltIn,
}

/// A pattern with its author.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct AuthoredPattern {
    pub(super) pattern: ProtectedPattern,
    pub(super) author: PatternAuthor,
}

impl PatternAuthor {
    /// Returns whether an exception of this author lifts the protection of another author. An
    /// exception lifts the built-in lists and patterns of the same authority, so no level lifts the
    /// protection of another one.
    pub(super) fn can_override(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::File(ours, _), Self::File(theirs, _)) => ours == theirs,
            (Self::BuiltIn | Self::File(..), Self::BuiltIn) => true,
            (Self::Program, _) | (_, Self::Program) | (Self::BuiltIn, Self::File(..)) => false,
        }
    }

    /// Returns the priority among several reasons; the smallest one is reported.
    pub(super) fn rank(&self) -> (u8, Option<TrustLevel>) {
        match self {
            Self::Program => (0, None),
            Self::File(voice, _) => (1, Some(*voice)),
            Self::BuiltIn => (2, None),
        }
    }
}

impl fmt::Display for PatternAuthor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Program => f.write_str("cofferdam, which keeps its own files there"),
            Self::File(_, pattern) => {
                write!(f, "the pattern `{}` at {}", pattern.text, pattern.place)
            }
            Self::BuiltIn => f.write_str("the built-in list of protected paths"),
        }
    }
}

impl ProtectedPattern {
    /// Parses a pattern that matches at any depth.
    ///
    /// # Errors
    ///
    /// Returns an error if the text is not a pattern.
    pub(super) fn parse(text: &str) -> Result<Self, ProtectedPatternError> {
        let bad = |problem| ProtectedPatternError { pattern: text.to_owned(), problem };
        if text.starts_with('/') {
            return Err(bad("it begins with `/`; patterns match at any depth of the workspace"));
        }
        let parts = text.strip_suffix('/').unwrap_or(text).split('/').map(|part| match part {
            "" => Err(bad("a component is empty")),
            "." | ".." => Err(bad("it contains `.` or `..`")),
            "**" => Ok(part.chars().collect()),
            name if name.contains("**") => Err(bad("`**` must be a whole component")),
            name if name.contains(['[', ']', '{', '}', '!', '\\']) => {
                Err(bad("the wildcards are `*`, `?` and `**`"))
            }
            name => Ok(fold_name(name).chars().collect()),
        });
        let parts: Vec<Vec<char>> = parts.collect::<Result<_, _>>()?;
        if parts.iter().all(|part| part[..] == ['*', '*']) {
            return Err(bad("it covers everything"));
        }
        if parts.len() > MAX_PARTS {
            return Err(bad("it has more than 32 components"));
        }
        Ok(Self([vec!['*', '*']].into_iter().chain(parts).collect()))
    }

    /// Creates a pattern from a rule, which matches relative to the workspace.
    pub(super) fn from_rule(pattern: &PathPattern) -> Self {
        Self(pattern.folded_components())
    }

    /// Creates a pattern for one path. A star in its name matches more than that path, which is
    /// safe.
    pub(super) fn from_path(path: &WorkspacePath) -> Self {
        Self(fold_parts(path.as_str().split('/')))
    }

    /// Returns whether the pattern matches exactly this path.
    pub(super) fn matches(&self, parts: &[Vec<char>]) -> bool {
        // Most patterns end with a name, and most paths end with a different one.
        let ends_alike = match (self.0.last(), parts.last()) {
            (Some(name), Some(part)) => name[..] == ['*', '*'] || matches_part(name, part),
            (None, _) | (_, None) => true,
        };
        ends_alike && match_components(&self.0, parts, matches_part, PatternReach::Exact)
    }

    /// Matches an exception: short names of Windows do not count.
    pub(super) fn matches_literally(&self, parts: &[Vec<char>]) -> bool {
        match_components(&self.0, parts, glob, PatternReach::Exact)
    }

    /// Returns whether the pattern matches this path or a directory above it.
    pub(super) fn covers(&self, parts: &[Vec<char>]) -> bool {
        match_components(&self.0, parts, matches_part, PatternReach::Subtree)
    }

    /// Returns the rest of the pattern after the components that match a path. The rest ends before
    /// the first star.
    pub(super) fn rest_below(&self, parts: &[Vec<char>]) -> Option<String> {
        let has_star = |part: &&Vec<char>| part.iter().any(|c| matches!(c, '*' | '?'));
        let is_name = |part: &&Vec<char>| part.iter().any(|c| !matches!(c, '*' | '?'));
        let end = (1..self.0.len())
            .filter(|end| self.0.get(end - 1).as_ref().is_some_and(is_name))
            .find(|end| {
                match_components(&self.0[..*end], parts, matches_part, PatternReach::Exact)
            })?;
        let rest = self.0[end..].iter().take_while(|part| !has_star(part));
        Some(rest.map(|part| part.iter().collect::<String>()).collect::<Vec<_>>().join("/"))
    }

    /// Returns the names of the directories above the last component.
    pub(super) fn names_above(&self) -> impl Iterator<Item = String> {
        let above = self.0.len().saturating_sub(1);
        self.0[..above]
            .iter()
            .filter(|part| part.iter().any(|c| !matches!(c, '*' | '?')))
            .map(|part| part.iter().collect())
    }

    /// Returns a POSIX extended regular expression. It does not match characters that some file
    /// systems ignore.
    pub(super) fn to_regex(&self) -> String {
        let mut text = String::new();
        for (index, part) in self.0.iter().enumerate() {
            let is_last = index + 1 == self.0.len();
            match (part[..] == ['*', '*'], is_last) {
                (true, false) => text.push_str("(.*/)?"),
                (true, true) => text.push_str(".*"),
                (false, _) => {
                    part.iter().for_each(|c| text.push_str(&char_regex(*c)));
                    text.push_str(if is_last { "" } else { "/" });
                }
            }
        }
        text
    }

    /// Returns the last name that occurs in every matching path: `modules` for `.git/modules/*`,
    /// because a star matches every name. Returns `None` if the pattern has no name.
    pub(super) fn distinctive_name(&self) -> Option<String> {
        let mut names = self.0.iter().rev().filter(|part| part[..] != ['*', '*']);
        let tells = |name: &&Vec<char>| name.iter().any(|c| !matches!(c, '*' | '?'));
        let last = names.next()?;
        let name = if tells(&last) { last } else { names.find(tells).unwrap_or(last) };
        Some(name.iter().collect())
    }
}

fn char_regex(c: char) -> String {
    match c {
        '*' => "[^/]*".to_owned(),
        '?' => "[^/]".to_owned(),
        '^' | '\\' => format!("\\{c}"),
        c if c.is_alphabetic() => format!("[{c}{}]", c.to_uppercase()),
        c if c.is_numeric() || matches!(c, '-' | '_') => c.to_string(),
        c => format!("[{c}]"),
    }
}

fn matches_part(name: &[char], part: &[char]) -> bool {
    glob(name, part) || is_short_name(name, part)
}

/// Returns whether a component is the short form of a long name on Windows: six letters, `~` and a
/// number. `GIT~1` is `.git`.
fn is_short_name(name: &[char], part: &[char]) -> bool {
    let Some(tilde) = part.iter().position(|c| *c == '~') else { return false };
    if !part.get(tilde + 1).is_some_and(char::is_ascii_digit) {
        return false;
    }
    let from = name.iter().position(|c| *c != '.').unwrap_or(name.len());
    let name = &name[from..];
    let until = name.iter().rposition(|c| *c == '.').unwrap_or(name.len());
    let until =
        name.iter().position(|c| matches!(c, '*' | '?')).map_or(until, |star| star.min(until));
    let stem: Vec<char> =
        name[..until].iter().copied().filter(|c| !matches!(c, '.' | ' ')).take(6).collect();
    !stem.is_empty() && stem == part[..tilde]
}

/// Normalizes the components of a path for patterns.
pub(super) fn fold_parts<'a>(parts: impl Iterator<Item = &'a str>) -> Vec<Vec<char>> {
    parts.filter(|part| !part.is_empty()).map(|part| fold_name(part).chars().collect()).collect()
}
