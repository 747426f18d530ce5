//! Paths whose change always needs approval: files that agents obey or that programs run.

use std::sync::LazyLock;

use serde::Serialize;

use super::lists::BuiltInList;
use super::names::ProtectedPathNames;
use super::pattern::{ProtectedPattern, fold_parts};
use crate::policy::WorkspacePath;
use crate::policy::layer::SourceLocated;

/// Links that are known. A workspace with more of them is not looked through any further.
const MAX_ALIASES: usize = 4096;

/// Says of each path whether changing it always needs approval. The default is the built-in lists.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ApprovalPaths {
    /// Patterns of the built-in lists that a policy file takes off them.
    exempted: Vec<ProtectedPattern>,
    /// Where links lead, and the links.
    aliases: Vec<(Vec<String>, Vec<String>)>,
}

/// Why changing a path always needs approval.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ApprovalPath {
    /// The path, as the list knows it: the name of a link for what that link leads to.
    pub path: String,
    /// The list.
    pub list: BuiltInList,
    /// The pattern of the list.
    pub pattern: &'static str,
    /// What is done with the file.
    pub reason: &'static str,
}

struct ApprovalPathEntry {
    list: BuiltInList,
    pattern: ProtectedPattern,
    /// The directories of the pattern: a link in place of one decides what the listed path is.
    parents: Vec<ProtectedPattern>,
    text: &'static str,
    reason: &'static str,
}

struct BuiltInPatterns {
    entries: Vec<ApprovalPathEntry>,
    names: ProtectedPathNames,
    /// The literal parts of all patterns: a link with such a name may give another directory a
    /// listed path.
    literal_parts: std::collections::BTreeSet<String>,
}

static BUILT_IN: LazyLock<BuiltInPatterns> = LazyLock::new(|| {
    let all = BuiltInList::NEEDS_APPROVAL
        .into_iter()
        .flat_map(|list| list.entries().iter().map(move |entry| (list, entry)));
    // The patterns of the lists all parse, as a test shows.
    let entries: Vec<ApprovalPathEntry> = all
        .filter_map(|(list, entry)| {
            let pattern = ProtectedPattern::parse(entry.pattern).ok()?;
            let above = entry
                .pattern
                .match_indices('/')
                .filter_map(|(end, _)| ProtectedPattern::parse(&entry.pattern[..end]).ok())
                .collect();
            Some(ApprovalPathEntry {
                list,
                pattern,
                parents: above,
                text: entry.pattern,
                reason: entry.reason,
            })
        })
        .collect();
    let names = ProtectedPathNames::from_patterns(entries.iter().map(|entry| &entry.pattern));
    let parts =
        entries.iter().flat_map(|entry| entry.text.split('/')).map(super::fold_name).collect();
    BuiltInPatterns { entries, names, literal_parts: parts }
});

impl ApprovalPaths {
    /// Whether changing a path always needs approval, and why.
    pub fn find(&self, path: &WorkspacePath) -> Option<ApprovalPath> {
        self.find_where(path, |entry| !self.exempted.contains(&entry.pattern))
    }

    /// The entry of a list for a path, also one that a policy file took off.
    pub fn find_built_in(&self, path: &WorkspacePath) -> Option<ApprovalPath> {
        self.find_where(path, |_| true)
    }

    fn find_where(
        &self,
        path: &WorkspacePath,
        counts: impl Fn(&ApprovalPathEntry) -> bool,
    ) -> Option<ApprovalPath> {
        let parts: Vec<&str> = path.as_str().split('/').filter(|part| !part.is_empty()).collect();
        find_parts(&parts, &counts).or_else(|| {
            let known_as = self.aliases.iter().filter_map(|(real, link)| {
                let below = parts.get(real.len()..)?;
                let leads_here = real
                    .iter()
                    .zip(&parts)
                    .all(|(real, part)| super::fold_name(real) == super::fold_name(part));
                leads_here.then(|| {
                    link.iter().map(String::as_str).chain(below.iter().copied()).collect::<Vec<_>>()
                })
            });
            known_as.into_iter().find_map(|parts| find_parts(&parts, &counts))
        })
    }

    /// The same for making a link there: in place of a directory it decides what the listed paths
    /// below are, and where the links lead that go through it.
    pub fn find_link(&self, path: &WorkspacePath) -> Option<ApprovalPath> {
        self.find(path).or_else(|| {
            let parts: Vec<&str> =
                path.as_str().split('/').filter(|part| !part.is_empty()).collect();
            let leads_through = |real: &[String]| {
                real.len() >= parts.len()
                    && real
                        .iter()
                        .zip(&parts)
                        .all(|(real, part)| super::fold_name(real) == super::fold_name(part))
            };
            let through = self.aliases.iter().filter(|(real, _)| leads_through(real));
            let links =
                through.map(|(_, link)| link.iter().map(String::as_str).collect::<Vec<_>>());
            std::iter::once(parts.clone())
                .chain(links)
                .find_map(|parts| self.find_at_or_above(&parts))
        })
    }

    fn find_at_or_above(&self, parts: &[&str]) -> Option<ApprovalPath> {
        let folded = fold_parts(parts.iter().copied());
        let above = || {
            self.entries().find(|entry| entry.parents.iter().any(|above| above.matches(&folded)))
        };
        find_parts(parts, &|entry| !self.exempted.contains(&entry.pattern))
            .or_else(|| Some(above()?.to_asked_path(parts.join("/"))))
    }

    /// Forgets all links, to know them anew.
    pub(in crate::policy) fn clear_aliases(&mut self) {
        self.aliases.clear();
    }

    fn entries(&self) -> impl Iterator<Item = &'static ApprovalPathEntry> {
        BUILT_IN.entries.iter().filter(|entry| !self.exempted.contains(&entry.pattern))
    }

    /// Whether a name, of a file or a directory, can be part of a listed path. A quick look, which
    /// spares most paths the slow one.
    pub fn may_match(name: &str) -> bool {
        BUILT_IN.names.may_match(name)
    }

    /// Whether a link of this name can give what it leads to a listed path.
    pub fn may_match_link(name: &str) -> bool {
        BUILT_IN.names.may_match(name) || BUILT_IN.literal_parts.contains(&super::fold_name(name))
    }

    /// Takes patterns off the lists, by the word of a policy file.
    pub(in crate::policy) fn exempt(&mut self, patterns: &[SourceLocated]) {
        self.exempted.extend(
            patterns.iter().filter_map(|placed| ProtectedPattern::parse(&placed.text).ok()),
        );
    }

    /// Knows what a link leads to as well by the name of the link: whoever changes the one changes
    /// the other.
    pub fn add_alias(&mut self, real: &WorkspacePath, link: &WorkspacePath) {
        let parts = |path: &WorkspacePath| {
            path.as_str().split('/').filter(|part| !part.is_empty()).map(str::to_owned).collect()
        };
        if self.aliases.len() < MAX_ALIASES && !real.as_str().is_empty() {
            self.aliases.push((parts(real), parts(link)));
        }
    }
}

fn find_parts(
    parts: &[&str],
    counts: &impl Fn(&ApprovalPathEntry) -> bool,
) -> Option<ApprovalPath> {
    if !parts.iter().any(|part| BUILT_IN.names.may_match(part)) {
        return None;
    }
    let folded = fold_parts(parts.iter().copied());
    let entry = BUILT_IN
        .entries
        .iter()
        .filter(|entry| counts(entry))
        .find(|entry| entry.pattern.covers(&folded))?;
    Some(entry.to_asked_path(parts.join("/")))
}

impl ApprovalPathEntry {
    fn to_asked_path(&self, path: String) -> ApprovalPath {
        ApprovalPath { path, list: self.list, pattern: self.text, reason: self.reason }
    }
}

impl ApprovalPath {
    /// The reason, as the end of a sentence that begins with the verdict.
    pub fn describe(&self) -> String {
        format!(
            "{} is on the built-in list of files that {}: {}",
            self.path,
            self.list.describe(),
            self.reason
        )
    }
}
