//! A quick look at one name, which spares most paths the slow one: a walk asks about every file.

use std::collections::HashSet;

use super::pattern::ProtectedPattern;

/// The names by which protected paths are told.
#[derive(Clone, Debug, Default)]
pub struct ProtectedPathNames {
    exact: HashSet<String>,
    /// What a name with `*` or `?` begins and ends with.
    affixes: Vec<(String, String)>,
    /// Names of directories above protected paths.
    above: HashSet<String>,
    /// A pattern has no name: every path may be protected.
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
                _ => drop(names.exact.insert(name)),
            }
        }
        names
    }

    /// Whether there may be protected paths below a directory of this name.
    pub fn may_be_above(&self, name: &str) -> bool {
        !name.is_ascii()
            || name.contains(['~', ':', '*', '?'])
            || name.ends_with(['.', ' '])
            || self.above.contains(&name.to_ascii_lowercase())
    }

    /// Whether a path that has this part may be protected. If it is so of no part, the path is not.
    pub fn may_match(&self, name: &str) -> bool {
        // Some file systems ignore letters that are not ASCII and know names by short forms, so
        // that such a name may be like any other.
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
