//! Protected paths of the workspace, whatever the permissions. Tools and commands cannot change
//! these paths, and cannot read the hidden ones among them. They are files that the user's programs
//! run automatically, files with secrets, and the files of Cofferdam itself.
//!
//! The same list applies to tools (when they open files) and to commands (in the sandbox of the
//! operating system). Patterns match at any depth, component by component: `*` and `?` match within
//! a component, and `**` matches any number of components. Names are compared without case and
//! without the characters that some file systems ignore, so `.GIT/Hooks` is `.git/hooks`.
//! Everything below a match has the same protection. A hidden pattern also matches the copies that
//! editors keep beside a file, such as `.env~`.

mod approval_paths;
mod copies;
mod lists;
mod names;
mod pattern;

use std::sync::LazyLock;

use serde::{Deserialize, Serialize};

use super::layer::{ProtectionRules, SourceLocated};
use super::{PathPattern, TrustLevel, WorkspacePath};
pub use approval_paths::{ApprovalPath, ApprovalPaths};
pub use lists::{BuiltInList, ListedPathEntry};
use lists::{HIDDEN, HIDDEN_EXCEPTIONS, PINNED, PROTECTED};
pub use names::ProtectedPathNames;
use pattern::{AuthoredPattern, ProtectedPattern, fold_parts};
pub use pattern::{PatternAuthor, ProtectedPatternError};

/// The protection of a path, the strictest last.
///
/// This enum is closed: every sandbox has to enforce each protection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum PathProtection {
    /// A directory that directly contains protected paths. It can be created and used. It cannot be
    /// renamed, removed, or replaced by a file or a link. Otherwise
    /// `mv .git away; mkdir -p .git/hooks` would create a new one.
    Pinned,
    /// The path can be read. It cannot be created, changed or removed.
    ReadOnly,
    /// The path is invisible. It cannot be read, created, changed or removed.
    Hidden,
}

/// The protected paths of a workspace. The default is the built-in lists.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ProtectedPaths {
    pinned: Vec<AuthoredPattern>,
    read_only: Vec<AuthoredPattern>,
    hidden: Vec<AuthoredPattern>,
    /// Exceptions from `hidden`: paths that can be read.
    shown: Vec<AuthoredPattern>,
    /// Patterns of `read_only` that do not apply.
    writable: Vec<AuthoredPattern>,
    /// Hidden paths without exceptions.
    unread: Vec<AuthoredPattern>,
    /// Links and directories on the way to protected paths that are reached through links.
    on_the_way: Vec<AuthoredPattern>,
}

/// The built-in lists, which each start needs several times.
static BUILT_IN_PATHS: LazyLock<ProtectedPaths> = LazyLock::new(ProtectedPaths::parse_built_in);

impl Default for ProtectedPaths {
    fn default() -> Self {
        BUILT_IN_PATHS.clone()
    }
}

impl ProtectedPaths {
    fn parse_built_in() -> Self {
        // All patterns of the built-in lists parse, which a test checks.
        let parsed = |text: &str| {
            ProtectedPattern::parse(text)
                .ok()
                .map(|pattern| AuthoredPattern { pattern, author: PatternAuthor::BuiltIn })
        };
        let known = |listed: &[ListedPathEntry]| {
            listed.iter().filter_map(|listed| parsed(listed.pattern)).collect()
        };
        Self {
            pinned: PINNED.iter().filter_map(|text| parsed(text)).collect(),
            read_only: known(PROTECTED),
            hidden: known(HIDDEN),
            shown: known(HIDDEN_EXCEPTIONS),
            writable: Vec::new(),
            unread: Vec::new(),
            on_the_way: Vec::new(),
        }
    }
}

impl ProtectedPaths {
    /// Checks that a text is a valid pattern.
    ///
    /// # Errors
    ///
    /// Returns an error if the text is not a pattern.
    pub(super) fn check_pattern(text: &str) -> Result<(), ProtectedPatternError> {
        ProtectedPattern::parse(text).map(drop)
    }

    /// Returns whether a text is a pattern of a built-in list that restricts changes. Only such a
    /// pattern can be listed under `writable`.
    pub(super) fn restricts_changes(text: &str) -> bool {
        let lists = [BuiltInList::Protected, BuiltInList::Instructions, BuiltInList::RunsCode];
        let mut listed =
            lists.into_iter().flat_map(BuiltInList::entries).map(|entry| entry.pattern);
        ProtectedPattern::parse(text).is_ok_and(|pattern| {
            listed.any(|known| ProtectedPattern::parse(known).as_ref() == Ok(&pattern))
        })
    }

    /// Adds the rules of a policy file. An untrusted project cannot add exceptions. The patterns
    /// were validated when the file was parsed.
    #[must_use]
    pub(super) fn with_rules(mut self, protecting: &ProtectionRules, voice: TrustLevel) -> Self {
        let entry = |placed: &SourceLocated| {
            let pattern = ProtectedPattern::parse(&placed.text).ok()?;
            Some(AuthoredPattern { pattern, author: PatternAuthor::File(voice, placed.clone()) })
        };
        self.hidden.extend(protecting.hidden.iter().filter_map(entry));
        self.read_only.extend(protecting.read_only.iter().filter_map(entry));
        if voice != TrustLevel::Stranger {
            self.shown.extend(protecting.shown.iter().filter_map(entry));
            self.writable.extend(protecting.writable.iter().filter_map(entry));
        }
        self
    }

    /// Adds a path that a rule of a policy file hides.
    #[must_use]
    pub(super) fn with_hidden_pattern(
        mut self,
        pattern: &PathPattern,
        voice: TrustLevel,
        written: SourceLocated,
    ) -> Self {
        self.unread.push(AuthoredPattern {
            pattern: ProtectedPattern::from_rule(pattern),
            author: PatternAuthor::File(voice, written),
        });
        self
    }

    /// Adds a file or directory of Cofferdam itself. It is hidden, and the directories above it are
    /// pinned. The workspace itself cannot be added.
    #[must_use]
    pub fn with_own_path(mut self, path: &WorkspacePath) -> Self {
        let own = |path: &WorkspacePath| AuthoredPattern {
            pattern: ProtectedPattern::from_path(path),
            author: PatternAuthor::Program,
        };
        self.unread.extend((!path.as_str().is_empty()).then(|| own(path)));
        let above = path.as_str().match_indices('/').map(|(end, _)| &path.as_str()[..end]);
        self.pinned.extend(
            above
                .filter_map(|above| WorkspacePath::parse(above, None).ok())
                .map(|above| own(&above)),
        );
        self
    }

    /// Adds a path with this protection, because a link at a protected path leads there.
    #[must_use]
    pub fn with_path(mut self, path: &WorkspacePath, how: PathProtection) -> Self {
        let list = match how {
            PathProtection::Pinned => &mut self.pinned,
            PathProtection::ReadOnly => &mut self.read_only,
            PathProtection::Hidden => &mut self.unread,
        };
        list.push(AuthoredPattern {
            pattern: ProtectedPattern::from_path(path),
            author: PatternAuthor::BuiltIn,
        });
        self
    }

    /// Adds a link or a directory on the way to a protected path that is reached through a link.
    /// Replacing it would change the target.
    #[must_use]
    pub fn and_on_the_way(mut self, path: &WorkspacePath) -> Self {
        self.on_the_way.push(AuthoredPattern {
            pattern: ProtectedPattern::from_path(path),
            author: PatternAuthor::BuiltIn,
        });
        self
    }

    /// Returns whether a path is on the way to a protected path that is reached through a link.
    pub fn is_on_the_way<'a>(&self, parts: impl Iterator<Item = &'a str>) -> bool {
        let parts = fold_parts(parts);
        self.on_the_way.iter().any(|entry| entry.pattern.matches(&parts))
    }

    /// Returns the names of these paths, for a quick check of single names.
    pub fn names(&self) -> ProtectedPathNames {
        let all = [&self.pinned, &self.read_only, &self.hidden, &self.unread, &self.on_the_way];
        ProtectedPathNames::from_patterns(all.into_iter().flatten().map(|entry| &entry.pattern))
    }

    /// Returns the strictest protection of a path; `None` if it has none.
    pub fn protection(&self, path: &WorkspacePath) -> Option<PathProtection> {
        self.protection_of_parts(path.as_str().split('/'))
    }

    /// Returns the strictest protection of a path, given by its components. A component can contain
    /// characters that a [`WorkspacePath`] cannot.
    pub fn protection_of_parts<'a>(
        &self,
        parts: impl Iterator<Item = &'a str>,
    ) -> Option<PathProtection> {
        self.find(parts).map(|(how, _)| how)
    }

    /// Returns the strictest protection of a path and the author of the pattern.
    pub fn find<'a>(
        &self,
        parts: impl Iterator<Item = &'a str>,
    ) -> Option<(PathProtection, &PatternAuthor)> {
        let parts = fold_parts(parts);
        let leads = || self.on_the_way.iter().find(|entry| entry.pattern.matches(&parts));
        self.find_matching(&parts, ProtectedPattern::covers)
            .or_else(|| Some((PathProtection::Pinned, &leads()?.author)))
    }

    /// Returns the protection of exactly this path, ignoring the protection of its parents. Callers
    /// use it to walk through directories one by one.
    pub fn find_exact<'a>(
        &self,
        parts: impl Iterator<Item = &'a str>,
    ) -> Option<(PathProtection, &PatternAuthor)> {
        let parts = fold_parts(parts);
        self.find_matching(&parts, ProtectedPattern::matches)
    }

    fn find_matching(
        &self,
        parts: &[Vec<char>],
        applies: impl Fn(&ProtectedPattern, &[Vec<char>]) -> bool,
    ) -> Option<(PathProtection, &PatternAuthor)> {
        let originals = originals_of_parts(parts);
        let is_hidden = |entry: &&AuthoredPattern, parts: &[Vec<char>]| {
            applies(&entry.pattern, parts) && !self.is_shown(entry, parts)
        };
        let hidden = self.hidden.iter().filter(|entry| {
            is_hidden(entry, parts)
                || originals.iter().any(|original| is_hidden(entry, original))
                    && !self.is_shown(entry, parts)
        });
        let applies = |entry: &&AuthoredPattern| applies(&entry.pattern, parts);
        let unread = self.unread.iter().filter(applies);
        let read_only =
            self.read_only.iter().filter(applies).filter(|entry| !self.is_writable(entry));
        let pinned = self.pinned.iter().filter(|entry| entry.pattern.matches(parts));
        let by = |how| move |author| (how, author);
        highest_ranked(unread.chain(hidden))
            .map(by(PathProtection::Hidden))
            .or_else(|| highest_ranked(read_only).map(by(PathProtection::ReadOnly)))
            .or_else(|| highest_ranked(pinned).map(by(PathProtection::Pinned)))
    }

    /// Returns whether a read-only pattern covers a path, so that it cannot be created either.
    /// Hidden and pinned paths do not count.
    pub fn is_read_only<'a>(&self, parts: impl Iterator<Item = &'a str>) -> bool {
        let parts = fold_parts(parts);
        self.read_only.iter().any(|entry| entry.pattern.covers(&parts) && !self.is_writable(entry))
    }

    /// Returns the [`PathProtection::ReadOnly`] paths below a directory, relative to it. A pattern
    /// with a star results in the directory that contains the matches. An empty path stands for
    /// everything below.
    pub fn read_only_below<'a>(&self, parts: impl Iterator<Item = &'a str>) -> Vec<String> {
        let parts = fold_parts(parts);
        let read_only = self.read_only.iter().filter(|entry| !self.is_writable(entry));
        read_only.filter_map(|entry| entry.pattern.rest_below(&parts)).collect()
    }

    /// Returns the [`PathProtection::ReadOnly`] patterns as POSIX extended regular expressions of
    /// paths relative to the workspace. They do not match paths below a match.
    pub fn read_only_regexes(&self) -> Vec<String> {
        self.read_only
            .iter()
            .filter(|entry| !self.is_writable(entry))
            .map(|entry| entry.pattern.to_regex())
            .collect()
    }

    fn is_shown(&self, entry: &AuthoredPattern, parts: &[Vec<char>]) -> bool {
        self.shown.iter().any(|shown| {
            shown.author.can_override(&entry.author) && shown.pattern.matches_literally(parts)
        })
    }

    fn is_writable(&self, entry: &AuthoredPattern) -> bool {
        self.writable.iter().any(|writable| {
            writable.author.can_override(&entry.author) && writable.pattern == entry.pattern
        })
    }
}

/// Returns the paths that this path may be a copy of.
fn originals_of_parts(parts: &[Vec<char>]) -> Vec<Vec<Vec<char>>> {
    let mut found = Vec::new();
    // The directories above can be copies as well.
    let mut all_original = parts.to_owned();
    for (at, part) in parts.iter().enumerate() {
        let name: String = part.iter().collect();
        for original in copies::originals_of(&name) {
            let mut path = parts.to_owned();
            path[at] = original.chars().collect();
            all_original[at].clone_from(&path[at]);
            found.push(path);
        }
    }
    if found.len() > 1 {
        found.push(all_original);
    }
    found
}

fn highest_ranked<'a>(
    entries: impl Iterator<Item = &'a AuthoredPattern>,
) -> Option<&'a PatternAuthor> {
    entries.map(|entry| &entry.author).min_by_key(|author| author.rank())
}

/// Normalizes a name like the most lenient file systems do. The result has:
///
/// - no distinction of case;
/// - no invisible characters, which HFS+ ignores, and ext4 with case folding too;
/// - no stream name (NTFS);
/// - no dots and spaces at the end (FAT).
pub fn fold_name(name: &str) -> String {
    let stream = name.find(':').filter(|at| *at > 0).unwrap_or(name.len());
    let whole = &name[..stream];
    let trimmed = whole.trim_end_matches(['.', ' ']);
    // 'ſ' and the Kelvin sign fold to letters that `to_lowercase` alone does not return.
    let seen =
        (if trimmed.is_empty() { whole } else { trimmed }).chars().filter(|c| !is_ignorable(*c));
    seen.flat_map(char::to_uppercase).flat_map(char::to_lowercase).collect()
}

/// Returns whether a character has Unicode's property `Default_Ignorable_Code_Point`.
fn is_ignorable(c: char) -> bool {
    matches!(c,
        '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}'..='\u{1160}' | '\u{17b4}'..='\u{17b5}'
        | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}'
        | '\u{ffa0}' | '\u{fff0}'..='\u{fff8}' | '\u{1bca0}'..='\u{1bca3}'
        | '\u{1d173}'..='\u{1d17a}'
        | '\u{e0000}'..='\u{e0fff}')
}

#[cfg(test)]
mod list_tests;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod walk_tests;
