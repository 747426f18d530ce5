//! Repositories that come about because the changes of two commands come together.
//!
//! The parts of a repository from which git runs code are restored in the view of each command. Two
//! commands at the same time, or a command and a tool, can each create a harmless part of one, so
//! the directory has to be looked at once more where the parts come together.

use std::collections::BTreeMap;

use cap_std::fs::Dir;
use rustix::fs::fstat;

use super::entry::EntryStatus;
use super::{MoveAction, MovePlan};
use crate::sandbox::rooted_fs;
use crate::sandbox::stage::commit::CommitError;
use cofferdam_confine::git;

/// The entries that make a directory a repository. Later changes below them are data.
const MARKERS: &[&[&str]] = &[git::REPOSITORY_MARKERS];
/// The entries of a repository from which, or from below which, git reads settings and hooks.
const CONTROL_PARTS: &[&[&str]] = &[git::CONTROL_ENTRIES, &["info", "modules", "worktrees"]];

/// Checks that no directory that somebody else has changed since the command began is a repository
/// together with the new entries of a plan in it.
///
/// # Errors
/// There is such a directory, or it cannot be read.
pub(super) fn check_merged_repositories(root: &Dir, plan: &MovePlan) -> Result<(), CommitError> {
    let mut parts: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    let new = plan.moves.iter().filter(|planned| match planned.action {
        MoveAction::Create { .. } | MoveAction::Replace { .. } => true,
        MoveAction::Remove | MoveAction::SetMode { .. } => false,
    });
    for planned in new {
        let mut rest = planned.path.as_str();
        // Inside `.git`, the rules for protected paths apply whatever else is there.
        while !rest.is_empty() && !has_dot_git(rest) {
            let (above, name) = rooted_fs::split(rest);
            let is_new = rest.len() == planned.path.len();
            if is_one_of(name, CONTROL_PARTS) || is_new && is_one_of(name, MARKERS) {
                parts.entry(above).or_default().push(name);
            }
            rest = above;
        }
    }
    for (directory, names) in parts {
        let at = |source| CommitError::Io { path: directory.to_owned(), source };
        let opened = rooted_fs::open_dir(root, directory).map_err(at)?;
        let status = fstat(&opened).map_err(|error| at(error.into()))?;
        if EntryStatus::from_stat(&status).ctime <= plan.since {
            continue;
        }
        let mut all: Vec<(String, bool)> =
            names.iter().map(|name| ((*name).to_owned(), false)).collect();
        for entry in opened.entries().map_err(at)? {
            let entry = entry.map_err(at)?;
            let is_directory = entry.file_type().is_ok_and(|kind| kind.is_dir());
            all.push((entry.file_name().to_string_lossy().into_owned(), is_directory));
        }
        if git::is_repository(all.iter().map(|(name, is_directory)| (&**name, *is_directory))) {
            let name = names.first().copied().unwrap_or_default();
            let separator = if directory.is_empty() { "" } else { "/" };
            return Err(CommitError::Changed(format!("{directory}{separator}{name}")));
        }
    }
    Ok(())
}

fn is_one_of(name: &str, known: &[&[&str]]) -> bool {
    known.iter().copied().flatten().any(|part| git::is_same_name(name, part))
}

fn has_dot_git(path: &str) -> bool {
    path.split('/').any(|part| git::is_same_name(part, ".git"))
}
