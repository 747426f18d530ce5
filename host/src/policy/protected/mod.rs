//! What nobody changes or reads below the workspace, whatever was granted: files that programs of
//! the user's run by themselves, files that hold keys, and this program's own.
//!
//! This is the one list, for tools (at their files) and for commands (in the sandbox of the
//! operating system) alike. Patterns hold at any depth, part by part: `*` and `?` stay within a
//! part, `**` is any number of whole parts. Letters are compared without case, and without the
//! characters that some file systems ignore, so that `.GIT/Hooks` is `.git/hooks`. What lies below
//! a match is protected like the match itself.

mod approval_paths;
mod lists;
mod names;
mod pattern;

use serde::{Deserialize, Serialize};

use super::layer::{ProtectionRules, SourceLocated};
use super::{PathPattern, TrustLevel, WorkspacePath};
pub use approval_paths::{ApprovalPath, ApprovalPaths};
pub use lists::{BuiltInList, ListedPathEntry};
use lists::{HIDDEN, HIDDEN_EXCEPTIONS, PINNED, PROTECTED};
pub use names::ProtectedPathNames;
use pattern::{AuthoredPattern, ProtectedPattern, fold_parts};
pub use pattern::{PatternAuthor, ProtectedPatternError};

/// How a path is protected, the strictest last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum PathProtection {
    /// A directory that has protected paths right below: it may be made and used, and is neither
    /// renamed, nor removed, nor anything but a directory. `mv .git away; mkdir -p .git/hooks`
    /// would else come by a new one.
    Pinned,
    /// It can be read, and is neither made, changed nor removed.
    ReadOnly,
    /// It is not there for anyone: neither read, nor made, changed or removed.
    Hidden,
}

/// Says of each path whether it is protected. The default is the built-in list.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ProtectedPaths {
    pinned: Vec<AuthoredPattern>,
    read_only: Vec<AuthoredPattern>,
    hidden: Vec<AuthoredPattern>,
    /// What is there to be read although a pattern of `hidden` holds it.
    shown: Vec<AuthoredPattern>,
    /// What is no pattern of `read_only` after all.
    writable: Vec<AuthoredPattern>,
    /// What is hidden, and what no exception shows.
    unread: Vec<AuthoredPattern>,
    /// Links and directories that lead to protected paths behind links.
    on_the_way: Vec<AuthoredPattern>,
}

impl Default for ProtectedPaths {
    fn default() -> Self {
        // The patterns of the list all parse, as a test shows.
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
    /// Whether a text is a pattern, which holds at any depth.
    pub(super) fn check_pattern(text: &str) -> Result<(), ProtectedPatternError> {
        ProtectedPattern::parse(text).map(drop)
    }

    /// Whether a text is a pattern of a built-in list that restricts changes, so that `writable`
    /// can take it off.
    pub(super) fn restricts_changes(text: &str) -> bool {
        let lists = [BuiltInList::Protected, BuiltInList::Instructions, BuiltInList::RunsCode];
        let mut listed =
            lists.into_iter().flat_map(BuiltInList::entries).map(|entry| entry.pattern);
        ProtectedPattern::parse(text).is_ok_and(|pattern| {
            listed.any(|known| ProtectedPattern::parse(known).as_ref() == Ok(&pattern))
        })
    }

    /// With what a policy file says, of a level or of a stranger. A stranger shows nothing, and
    /// takes nothing off the built-in list. The patterns were understood when the file was read.
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

    /// With a path that nobody reads, by a rule of a policy file.
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

    /// With a file or folder of this program's own: it is hidden, and what it lies in stays where
    /// it is. The workspace itself cannot be one.
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

    /// With one more path that is protected like this, since what the list protects leads there.
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

    /// With a link or a directory that leads to a protected path behind a link: another one in its
    /// place would lead elsewhere.
    #[must_use]
    pub fn and_on_the_way(mut self, path: &WorkspacePath) -> Self {
        self.on_the_way.push(AuthoredPattern {
            pattern: ProtectedPattern::from_path(path),
            author: PatternAuthor::BuiltIn,
        });
        self
    }

    /// Whether a path leads to a protected one behind a link.
    pub fn is_on_the_way<'a>(&self, parts: impl Iterator<Item = &'a str>) -> bool {
        let parts = fold_parts(parts);
        self.on_the_way.iter().any(|entry| entry.pattern.matches(&parts))
    }

    /// The names by which these paths are told.
    pub fn names(&self) -> ProtectedPathNames {
        let all = [&self.pinned, &self.read_only, &self.hidden, &self.unread, &self.on_the_way];
        ProtectedPathNames::from_patterns(all.into_iter().flatten().map(|entry| &entry.pattern))
    }

    /// Whether and how a path is protected; the strictest of all that applies.
    pub fn protection(&self, path: &WorkspacePath) -> Option<PathProtection> {
        self.protection_of_parts(path.as_str().split('/'))
    }

    /// The same for a path in parts, which need be no path that a model could write.
    pub fn protection_of_parts<'a>(
        &self,
        parts: impl Iterator<Item = &'a str>,
    ) -> Option<PathProtection> {
        self.find(parts).map(|(how, _)| how)
    }

    /// The same, and by whose word.
    pub fn find<'a>(
        &self,
        parts: impl Iterator<Item = &'a str>,
    ) -> Option<(PathProtection, &PatternAuthor)> {
        let parts = fold_parts(parts);
        let leads = || self.on_the_way.iter().find(|entry| entry.pattern.matches(&parts));
        self.find_matching(&parts, |pattern| pattern.covers(&parts))
            .or_else(|| Some((PathProtection::Pinned, &leads()?.author)))
    }

    /// The same of this very path, apart from what it lies in and from what it leads to: for
    /// whoever goes from folder to folder and knows of each.
    pub fn find_exact<'a>(
        &self,
        parts: impl Iterator<Item = &'a str>,
    ) -> Option<(PathProtection, &PatternAuthor)> {
        let parts = fold_parts(parts);
        self.find_matching(&parts, |pattern| pattern.matches(&parts))
    }

    fn find_matching(
        &self,
        parts: &[Vec<char>],
        applies: impl Fn(&ProtectedPattern) -> bool,
    ) -> Option<(PathProtection, &PatternAuthor)> {
        let applies = |entry: &&AuthoredPattern| applies(&entry.pattern);
        let hidden =
            self.hidden.iter().filter(applies).filter(|entry| !self.is_shown(entry, parts));
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

    /// Whether it may not be made either, apart from what it holds.
    pub fn is_read_only<'a>(&self, parts: impl Iterator<Item = &'a str>) -> bool {
        let parts = fold_parts(parts);
        self.read_only.iter().any(|entry| entry.pattern.covers(&parts) && !self.is_writable(entry))
    }

    /// What is [`PathProtection::ReadOnly`] below a path, from that path on, by patterns that hold
    /// no more than what lies below it. A pattern with a star stands for the directory around it,
    /// and an empty path for all that lies below.
    pub fn read_only_below<'a>(&self, parts: impl Iterator<Item = &'a str>) -> Vec<String> {
        let parts = fold_parts(parts);
        let read_only = self.read_only.iter().filter(|entry| !self.is_writable(entry));
        read_only.filter_map(|entry| entry.pattern.rest_below(&parts)).collect()
    }

    /// What is [`PathProtection::ReadOnly`], as regular expressions of paths from the workspace on,
    /// without what lies below.
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

fn highest_ranked<'a>(
    entries: impl Iterator<Item = &'a AuthoredPattern>,
) -> Option<&'a PatternAuthor> {
    entries.map(|entry| &entry.author).min_by_key(|author| author.rank())
}

/// As the most forgiving file systems compare names: without case, without the characters that are
/// not seen (HFS+, and ext4 where it folds case, ignore them), without a stream (NTFS) and without
/// dots and spaces at the end (FAT).
pub(crate) fn fold_name(name: &str) -> String {
    let stream = name.find(':').filter(|at| *at > 0).unwrap_or(name.len());
    let whole = &name[..stream];
    let trimmed = whole.trim_end_matches(['.', ' ']);
    // 'ſ' and the Kelvin sign fold to letters that `to_lowercase` alone does not give.
    let seen =
        (if trimmed.is_empty() { whole } else { trimmed }).chars().filter(|c| !is_ignorable(*c));
    seen.flat_map(char::to_uppercase).flat_map(char::to_lowercase).collect()
}

/// Unicode's `Default_Ignorable_Code_Point`.
fn is_ignorable(c: char) -> bool {
    matches!(c,
        '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}'..='\u{1160}' | '\u{17b4}'..='\u{17b5}' | '\u{180b}'..='\u{180f}'
        | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{fe00}'..='\u{fe0f}'
        | '\u{feff}' | '\u{ffa0}' | '\u{fff0}'..='\u{fff8}' | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}'
        | '\u{e0000}'..='\u{e0fff}')
}

#[cfg(test)]
mod list_tests;
#[cfg(test)]
mod tests;
