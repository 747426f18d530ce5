//! Paths whose changes always need approval: instructions for agents, and files that programs run.

use std::sync::LazyLock;

use serde::Serialize;

use super::lists::BuiltInList;
use super::names::ProtectedPathNames;
use super::pattern::{ProtectedPattern, fold_parts};
use crate::WorkspacePath;
use crate::layer::SourceLocated;

/// The maximum number of known links. The search through a workspace stops there.
const MAX_ALIASES: usize = 4096;

/// The paths whose changes always need approval. The default is the built-in lists.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ApprovalPaths {
    /// Patterns of the built-in lists that a policy file exempts.
    exempted: Vec<ProtectedPattern>,
    /// The targets of links, each with its link.
    aliases: Vec<(Vec<String>, Vec<String>)>,
}

/// The reason why changes of a path always need approval.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct ApprovalPath {
    /// The path that the list contains. For the target of a link, this is the path through the
    /// link.
    pub path: String,
    /// The list that contains the path.
    pub list: BuiltInList,
    /// The pattern of the list.
    pub pattern: &'static str,
    /// The reason in the list.
    pub reason: &'static str,
}

struct ApprovalPathEntry {
    list: BuiltInList,
    pattern: ProtectedPattern,
    /// Patterns of the directories in the pattern. A link in place of one changes the listed path.
    parents: Vec<ProtectedPattern>,
    text: &'static str,
    reason: &'static str,
}

struct BuiltInPatterns {
    entries: Vec<ApprovalPathEntry>,
    names: ProtectedPathNames,
    /// The literal components of all patterns. A link with such a name may give another directory a
    /// listed path.
    literal_parts: std::collections::BTreeSet<String>,
}

static BUILT_IN: LazyLock<BuiltInPatterns> = LazyLock::new(|| {
    let all = BuiltInList::NEEDS_APPROVAL
        .into_iter()
        .flat_map(|list| list.entries().iter().map(move |entry| (list, entry)));
    // All patterns of the built-in lists parse, which a test checks.
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
    /// Returns the reason why changes of a path always need approval; `None` if they do not.
    pub fn find(&self, path: &WorkspacePath) -> Option<ApprovalPath> {
        self.find_where(path, |entry| !self.exempted.contains(&entry.pattern))
    }

    /// Returns the entry of a built-in list for a path, even if a policy file exempts it.
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

    /// Returns the reason why creating a link at a path needs approval. A link in place of a
    /// directory changes the listed paths below it, and the targets of links that lead through it.
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

    /// Forgets all known links before a new search.
    pub(crate) fn clear_aliases(&mut self) {
        self.aliases.clear();
    }

    fn entries(&self) -> impl Iterator<Item = &'static ApprovalPathEntry> {
        BUILT_IN.entries.iter().filter(|entry| !self.exempted.contains(&entry.pattern))
    }

    /// Returns whether a file or directory name can be part of a listed path. This quick check
    /// avoids the slow match for most paths.
    pub fn may_match(name: &str) -> bool {
        BUILT_IN.names.may_match(name)
    }

    /// Returns whether a link of this name can give its target a listed path.
    pub fn may_match_link(name: &str) -> bool {
        BUILT_IN.names.may_match(name) || BUILT_IN.literal_parts.contains(&super::fold_name(name))
    }

    /// Exempts patterns from the lists, as a policy file requests.
    pub(crate) fn exempt(&mut self, patterns: &[SourceLocated]) {
        self.exempted.extend(
            patterns.iter().filter_map(|placed| ProtectedPattern::parse(&placed.text).ok()),
        );
    }

    /// Records that the target of a link is also known by the path of the link, because a change to
    /// one changes the other.
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
    /// Returns the reason, as the end of a sentence that begins with the verdict.
    pub fn describe(&self) -> String {
        format!(
            "{} is on the built-in list of files that {}: {}",
            self.path,
            self.list.describe(),
            self.reason
        )
    }
}

#[cfg(test)]
#[path = "approval_tests.rs"]
mod tests;
