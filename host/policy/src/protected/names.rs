//! A quick check of single names, which avoids the slow match for most files of a directory walk.

use std::collections::HashSet;

use super::pattern::ProtectedPattern;

/// The names that occur in patterns of protected paths.
#[derive(Clone, Debug, Default)]
pub struct ProtectedPathNames {
    exact: HashSet<String>,
    /// Prefix and suffix of each name with `*` or `?`.
    affixes: Vec<(String, String)>,
    /// The names of directories above protected paths.
    above: HashSet<String>,
    /// Whether a pattern has no name, so that every path may be protected.
    matches_all: bool,
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
                    names.affixes.push((name[..first].to_owned(), name[last + 1..].to_owned()))
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
        let name = name.to_ascii_lowercase();
        self.exact.contains(&name)
            || self
                .affixes
                .iter()
                .any(|(first, last)| name.starts_with(first) && name.ends_with(last))
    }
}
