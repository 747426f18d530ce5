//! Patterns of protected paths, as the most forgiving file systems compare names.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::folded;
use crate::policy::layer::Placed;
use crate::policy::pattern::{PathPattern, Reach, glob, walk};
use crate::policy::{Voice, WorkspacePath};

/// The longest pattern of a policy, in parts: nobody's folders are so deep, and every path is held against it.
const MOST_PARTS: usize = 32;

/// A text is not a pattern.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("'{pattern}' is not a pattern of workspace paths: {problem}")]
pub struct BadPattern {
    pattern: String,
    problem: &'static str,
}

/// A pattern from the workspace on, in parts that are folded. `**` is any number of parts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Pattern(Vec<Vec<char>>);

/// Whose word a pattern is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Author {
    /// This program's: it keeps its own files there.
    Program,
    /// A policy file's.
    File(Voice, Placed),
    /// The built-in list's.
    BuiltIn,
}

/// A pattern and whose word it is.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Entry {
    pub(super) pattern: Pattern,
    pub(super) author: Author,
}

impl Author {
    /// Whether this one's exception lifts what another one protects: what stands in the built-in list, and what it says
    /// itself. So no level lifts what another protects.
    pub(super) fn lifts(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::File(ours, _), Self::File(theirs, _)) => ours == theirs,
            (Self::BuiltIn | Self::File(..), Self::BuiltIn) => true,
            (Self::Program, _) | (_, Self::Program) | (Self::BuiltIn, Self::File(..)) => false,
        }
    }

    /// Of several reasons the weightiest is told.
    pub(super) fn rank(&self) -> (u8, Option<Voice>) {
        match self {
            Self::Program => (0, None),
            Self::File(voice, _) => (1, Some(*voice)),
            Self::BuiltIn => (2, None),
        }
    }
}

impl fmt::Display for Author {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Program => f.write_str("this program, which keeps its own files there"),
            Self::File(_, pattern) => write!(f, "the pattern `{}` at {}", pattern.text, pattern.place),
            Self::BuiltIn => f.write_str("the built-in list of protected paths"),
        }
    }
}

impl Pattern {
    /// Reads a pattern that holds at any depth.
    pub(super) fn parse(text: &str) -> Result<Self, BadPattern> {
        let bad = |problem| BadPattern { pattern: text.to_owned(), problem };
        if text.starts_with('/') {
            return Err(bad("it begins with '/'; patterns hold at any depth of the workspace"));
        }
        let parts = text.strip_suffix('/').unwrap_or(text).split('/').map(|part| match part {
            "" => Err(bad("it has an empty part")),
            "." | ".." => Err(bad("it has '.' or '..' in it")),
            "**" => Ok(part.chars().collect()),
            name if name.contains("**") => Err(bad("'**' stands for whole parts only")),
            name if name.contains(['[', ']', '{', '}', '!', '\\']) => Err(bad("only '*', '?' and '**' are understood")),
            name => Ok(folded(name).chars().collect()),
        });
        let parts: Vec<Vec<char>> = parts.collect::<Result<_, _>>()?;
        if parts.iter().all(|part| part[..] == ['*', '*']) {
            return Err(bad("it would be everything"));
        }
        if parts.len() > MOST_PARTS {
            return Err(bad("it has more than 32 parts"));
        }
        Ok(Self([vec!['*', '*']].into_iter().chain(parts).collect()))
    }

    /// A pattern of rules, which holds from the workspace on.
    pub(super) fn of_rule(pattern: &PathPattern) -> Self {
        Self(pattern.folded())
    }

    /// One path. A star in its name stands for more, which is on the safe side.
    pub(super) fn of_path(path: &WorkspacePath) -> Self {
        Self(in_parts(path.as_str().split('/')))
    }

    /// Whether it is a pattern of this path.
    pub(super) fn is(&self, parts: &[Vec<char>]) -> bool {
        // Nearly all patterns end in a name, and nearly all paths in another one.
        let ends_alike = match (self.0.last(), parts.last()) {
            (Some(name), Some(part)) => name[..] == ['*', '*'] || is_like(name, part),
            (None, _) | (_, None) => true,
        };
        ends_alike && walk(&self.0, parts, is_like, Reach::Itself)
    }

    /// The same for an exception, which holds for what is named so and for nothing that might be.
    pub(super) fn excepts(&self, parts: &[Vec<char>]) -> bool {
        walk(&self.0, parts, glob, Reach::Itself)
    }

    /// What it is a pattern of in a directory at this path, as paths from there on.
    pub(super) fn below(&self, parts: &[Vec<char>]) -> Vec<String> {
        let Some(last) = parts.last() else { return Vec::new() };
        let is_above = |at: &usize| {
            let above = &self.0[..*at];
            above.last().is_some_and(|name| name[..] != ['*', '*'] && is_like(name, last)) && walk(above, parts, is_like, Reach::Itself)
        };
        let text = |at: usize| self.0[at..].iter().map(|part| part.iter().collect()).collect::<Vec<String>>().join("/");
        (1..self.0.len()).filter(is_above).map(text).collect()
    }

    /// Whether it is a pattern of this path or of something above it.
    pub(super) fn holds(&self, parts: &[Vec<char>]) -> bool {
        walk(&self.0, parts, is_like, Reach::AndBelow)
    }

    /// As a POSIX extended regular expression. Characters that some file systems ignore are not in it.
    pub(super) fn expression(&self) -> String {
        let mut text = String::new();
        for (index, part) in self.0.iter().enumerate() {
            let is_last = index + 1 == self.0.len();
            match (part[..] == ['*', '*'], is_last) {
                (true, false) => text.push_str("(.*/)?"),
                (true, true) => text.push_str(".*"),
                (false, _) => {
                    part.iter().for_each(|c| text.push_str(&one_character(*c)));
                    text.push_str(if is_last { "" } else { "/" });
                }
            }
        }
        text
    }

    /// Its last name that tells something, which some part of every path has that it holds: `.git/modules/*` is told by
    /// `modules`, since a star is like every name. `None` if it has no name.
    pub(super) fn name(&self) -> Option<String> {
        let mut names = self.0.iter().rev().filter(|part| part[..] != ['*', '*']);
        let tells = |name: &&Vec<char>| name.iter().any(|c| !matches!(c, '*' | '?'));
        let last = names.next()?;
        let name = if tells(&last) { last } else { names.find(tells).unwrap_or(last) };
        Some(name.iter().collect())
    }
}

fn one_character(c: char) -> String {
    match c {
        '*' => "[^/]*".to_owned(),
        '?' => "[^/]".to_owned(),
        '^' | '\\' => format!("\\{c}"),
        c if c.is_alphabetic() => format!("[{c}{}]", c.to_uppercase()),
        c if c.is_numeric() || matches!(c, '-' | '_') => c.to_string(),
        c => format!("[{c}]"),
    }
}

fn is_like(name: &[char], part: &[char]) -> bool {
    glob(name, part) || is_short_form(name, part)
}

/// Whether a part is the short form that Windows' file systems give to a long name: six letters, `~`, and a number.
/// `GIT~1` is `.git` there.
fn is_short_form(name: &[char], part: &[char]) -> bool {
    let Some(tilde) = part.iter().position(|c| *c == '~') else { return false };
    if !part.get(tilde + 1).is_some_and(char::is_ascii_digit) {
        return false;
    }
    let from = name.iter().position(|c| *c != '.').unwrap_or(name.len());
    let name = &name[from..];
    let until = name.iter().rposition(|c| *c == '.').unwrap_or(name.len());
    let until = name.iter().position(|c| matches!(c, '*' | '?')).map_or(until, |star| star.min(until));
    let stem: Vec<char> = name[..until].iter().copied().filter(|c| !matches!(c, '.' | ' ')).take(6).collect();
    !stem.is_empty() && stem == part[..tilde]
}

/// A path as patterns see it.
pub(super) fn in_parts<'a>(parts: impl Iterator<Item = &'a str>) -> Vec<Vec<char>> {
    parts.filter(|part| !part.is_empty()).map(|part| folded(part).chars().collect()).collect()
}
