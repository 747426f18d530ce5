//! A quick check of single names, which avoids the slow match for most files of a directory walk.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashSet};

use super::copies::originals_of;
use super::pattern::ProtectedPattern;

/// The names that occur in patterns of protected paths.
#[derive(Clone, Debug, Default)]
pub struct ProtectedPathNames {
    exact: HashSet<String>,
    affixes: NameAffixes,
    /// The names of directories above protected paths.
    above: HashSet<String>,
    /// Whether a pattern has no name, so that every path may be protected.
    matches_all: bool,
}

/// The prefix and the suffix of each name with `*` or `?`. Most names are compared with none of
/// them.
#[derive(Clone, Debug, Default)]
struct NameAffixes {
    /// The prefixes by their first byte, each with its suffix, which may be empty.
    by_first: BTreeMap<u8, Vec<(String, String)>>,
    /// The suffixes without a prefix, by their last byte.
    by_last: BTreeMap<u8, Vec<String>>,
}

impl NameAffixes {
    /// Adds a prefix and a suffix. Returns `false` if both are empty.
    fn add(&mut self, prefix: &str, suffix: &str) -> bool {
        match (prefix.as_bytes().first(), suffix.as_bytes().last()) {
            (Some(first), _) => {
                let pair = (prefix.to_owned(), suffix.to_owned());
                self.by_first.entry(*first).or_default().push(pair);
            }
            (None, Some(last)) => {
                self.by_last.entry(*last).or_default().push(suffix.to_owned());
            }
            (None, None) => return false,
        }
        true
    }

    fn match_any(&self, name: &str) -> bool {
        let with_first = name.as_bytes().first().and_then(|first| self.by_first.get(first));
        let with_last = name.as_bytes().last().and_then(|last| self.by_last.get(last));
        with_first.is_some_and(|pairs| {
            pairs.iter().any(|(first, last)| name.starts_with(first) && name.ends_with(last))
        }) || with_last.is_some_and(|suffixes| suffixes.iter().any(|last| name.ends_with(last)))
    }
}

impl ProtectedPathNames {
    pub(super) fn from_patterns<'a>(patterns: impl Iterator<Item = &'a ProtectedPattern>) -> Self {
        let mut names = Self::default();
        for pattern in patterns {
            names.above.extend(pattern.names_above());
            let Some(name) = pattern.distinctive_name() else {
                names.matches_all = true;
                continue;
            };
            match (name.find(['*', '?']), name.rfind(['*', '?'])) {
                (Some(first), Some(last)) => {
                    names.matches_all |= !names.affixes.add(&name[..first], &name[last + 1..]);
                }
                _ => {
                    names.exact.insert(name);
                }
            }
        }
        names
    }

    /// Returns whether protected paths may exist below a directory of this name.
    pub fn may_be_above(&self, name: &str) -> bool {
        !name.is_ascii()
            || name.contains(['~', ':', '*', '?'])
            || name.ends_with(['.', ' '])
            || self.above.contains(&name.to_ascii_lowercase())
    }

    /// Returns whether a path with this component may be protected. A path is unprotected if this
    /// is `false` for all its components.
    pub fn may_match(&self, name: &str) -> bool {
        // Some file systems ignore certain non-ASCII characters or have short forms of names, so
        // such a name can equal any other name.
        if self.matches_all
            || !name.is_ascii()
            || name.contains(['~', ':'])
            || name.ends_with(['.', ' '])
        {
            return true;
        }
        let name = if name.bytes().any(|byte| byte.is_ascii_uppercase()) {
            Cow::Owned(name.to_ascii_lowercase())
        } else {
            Cow::Borrowed(name)
        };
        let is_listed = |name: &str| self.exact.contains(name) || self.affixes.match_any(name);
        is_listed(&name) || originals_of(&name).into_iter().any(is_listed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_with_wildcards_are_compared_by_prefix_and_suffix() {
        let patterns = ["*.pem", "id_*", "a*z", "?b", "hooks/*"];
        let patterns: Vec<_> =
            patterns.iter().map(|text| ProtectedPattern::parse(text).expect("a pattern")).collect();
        let names = ProtectedPathNames::from_patterns(patterns.iter());
        for (name, expected) in [
            ("x.pem", true),
            ("X.PEM", true),
            ("pem", false),
            ("id_rsa", true),
            ("idx", false),
            ("abcz", true),
            ("abc", false),
            ("xb", true),
            ("#id_x#", true),
            (".x.pem.swp", true),
            ("x.pem.bak", true),
            ("#x#", false),
            ("hooks", true),
            ("hook", false),
        ] {
            assert_eq!(names.may_match(name), expected, "{name}");
        }
        let all = [ProtectedPattern::parse("**/*").expect("a pattern")];
        assert!(ProtectedPathNames::from_patterns(all.iter()).may_match("anything"));
    }
}
