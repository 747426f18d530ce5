//! Patterns of protected paths, as the most forgiving file systems compare names.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::fold_name;
use crate::policy::layer::SourceLocated;
use crate::policy::pattern::{PathPattern, PatternReach, glob, match_components};
use crate::policy::{TrustLevel, WorkspacePath};

/// The longest pattern of a policy, in parts: nobody's folders are so deep, and every path is held
/// against it.
const MAX_PARTS: usize = 32;

/// A text is not a pattern.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("'{pattern}' is not a pattern of workspace paths: {problem}")]
pub struct ProtectedPatternError {
    pattern: String,
    problem: &'static str,
}

/// A pattern from the workspace on, in parts that are folded. `**` is any number of parts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct ProtectedPattern(Vec<Vec<char>>);

/// Whose word a pattern is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum PatternAuthor {
    /// This program's: it keeps its own files there.
    Program,
    /// A policy file's.
    File(TrustLevel, SourceLocated),
    /// The built-in list's.
    BuiltIn,
}

/// A pattern and whose word it is.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct AuthoredPattern {
    pub(super) pattern: ProtectedPattern,
    pub(super) author: PatternAuthor,
}

impl PatternAuthor {
    /// Whether this one's exception lifts what another one protects: what stands in the built-in
    /// list, and what it says itself. So no level lifts what another protects.
    pub(super) fn can_override(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::File(ours, _), Self::File(theirs, _)) => ours == theirs,
            (Self::BuiltIn | Self::File(..), Self::BuiltIn) => true,
            (Self::Program, _) | (_, Self::Program) | (Self::BuiltIn, Self::File(..)) => false,
        }
    }

    /// Of several reasons the weightiest is told.
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
            Self::Program => f.write_str("this program, which keeps its own files there"),
            Self::File(_, pattern) => {
                write!(f, "the pattern `{}` at {}", pattern.text, pattern.place)
            }
            Self::BuiltIn => f.write_str("the built-in list of protected paths"),
        }
    }
}

impl ProtectedPattern {
    /// Reads a pattern that holds at any depth.
    pub(super) fn parse(text: &str) -> Result<Self, ProtectedPatternError> {
        let bad = |problem| ProtectedPatternError { pattern: text.to_owned(), problem };
        if text.starts_with('/') {
            return Err(bad("it begins with '/'; patterns hold at any depth of the workspace"));
        }
        let parts = text.strip_suffix('/').unwrap_or(text).split('/').map(|part| match part {
            "" => Err(bad("it has an empty part")),
            "." | ".." => Err(bad("it has '.' or '..' in it")),
            "**" => Ok(part.chars().collect()),
            name if name.contains("**") => Err(bad("'**' stands for whole parts only")),
            name if name.contains(['[', ']', '{', '}', '!', '\\']) => {
                Err(bad("only '*', '?' and '**' are understood"))
            }
            name => Ok(fold_name(name).chars().collect()),
        });
        let parts: Vec<Vec<char>> = parts.collect::<Result<_, _>>()?;
        if parts.iter().all(|part| part[..] == ['*', '*']) {
            return Err(bad("it would be everything"));
        }
        if parts.len() > MAX_PARTS {
            return Err(bad("it has more than 32 parts"));
        }
        Ok(Self([vec!['*', '*']].into_iter().chain(parts).collect()))
    }

    /// A pattern of rules, which holds from the workspace on.
    pub(super) fn from_rule(pattern: &PathPattern) -> Self {
        Self(pattern.folded_components())
    }

    /// One path. A star in its name stands for more, which is on the safe side.
    pub(super) fn from_path(path: &WorkspacePath) -> Self {
        Self(fold_parts(path.as_str().split('/')))
    }

    /// Whether it is a pattern of this path.
    pub(super) fn matches(&self, parts: &[Vec<char>]) -> bool {
        // Nearly all patterns end in a name, and nearly all paths in another one.
        let ends_alike = match (self.0.last(), parts.last()) {
            (Some(name), Some(part)) => name[..] == ['*', '*'] || matches_part(name, part),
            (None, _) | (_, None) => true,
        };
        ends_alike && match_components(&self.0, parts, matches_part, PatternReach::Exact)
    }

    /// The same for an exception, which holds for what is named so and for nothing that might be.
    pub(super) fn matches_literally(&self, parts: &[Vec<char>]) -> bool {
        match_components(&self.0, parts, glob, PatternReach::Exact)
    }

    /// Whether it is a pattern of this path or of something above it.
    pub(super) fn covers(&self, parts: &[Vec<char>]) -> bool {
        match_components(&self.0, parts, matches_part, PatternReach::Subtree)
    }

    /// What the pattern names below a path that one of its beginnings names. The rest ends before
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

    /// The names of the directories that the pattern names above its last part.
    pub(super) fn names_above(&self) -> impl Iterator<Item = String> {
        let above = self.0.len().saturating_sub(1);
        self.0[..above]
            .iter()
            .filter(|part| part.iter().any(|c| !matches!(c, '*' | '?')))
            .map(|part| part.iter().collect())
    }

    /// As a POSIX extended regular expression. Characters that some file systems ignore are not in
    /// it.
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

    /// Its last name that tells something, which some part of every path has that it holds:
    /// `.git/modules/*` is told by `modules`, since a star is like every name. `None` if it has no
    /// name.
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

/// Whether a part is the short form that Windows' file systems give to a long name: six letters,
/// `~`, and a number. `GIT~1` is `.git` there.
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

/// A path as patterns see it.
pub(super) fn fold_parts<'a>(parts: impl Iterator<Item = &'a str>) -> Vec<Vec<char>> {
    parts.filter(|part| !part.is_empty()).map(|part| fold_name(part).chars().collect()).collect()
}
