//! Directories that become a repository of git by new entries in them, or already are one.
//!
//! git runs programs that the settings of a repository name, also if the repository is an ordinary
//! directory. Each of its entries alone is harmless, so they have to be looked at where they come
//! together.

use std::collections::BTreeMap;
use std::io;

use cap_std::fs::Dir;

use crate::sandbox::rooted_fs;
use cofferdam_confine::git;

/// The entries of a repository from which, or from below which, git reads settings and hooks.
const CONTROL_PARTS: &[&[&str]] = &[git::CONTROL_ENTRIES, &["info", "modules", "worktrees"]];

/// The names that are parts of a repository if their directory is one, by directory.
pub(super) type RepositoryParts<'a> = BTreeMap<&'a str, Vec<&'a str>>;

/// Returns the parts of repositories among new or changed paths: markers, and entries at or below
/// which git reads settings. Later changes below markers are data.
pub(super) fn find_parts<'a>(paths: impl Iterator<Item = &'a str>) -> RepositoryParts<'a> {
    let mut parts = RepositoryParts::new();
    for path in paths {
        let mut rest = path;
        // Inside `.git`, the rules for protected paths apply whatever else is there.
        while !rest.is_empty() && !has_dot_git(rest) {
            let (above, name) = rooted_fs::split(rest);
            let is_new = rest.len() == path.len();
            if is_control_part(name) || is_new && is_marker(name) {
                parts.entry(above).or_default().push(name);
            }
            rest = above;
        }
    }
    parts
}

/// Returns whether a path has a name by which its directory, or one above it, can become a
/// repository of git, or from which git reads settings of one.
///
/// A write to such a path is denied, whatever the rules say, if it makes a repository or changes
/// what git runs in one. That depends on the other files there.
pub fn may_be_repository_part(path: &str) -> bool {
    !find_parts(std::iter::once(path)).is_empty()
}

/// Returns whether a directory has the shape of a repository together with these new names.
///
/// # Errors
/// The directory cannot be read.
pub(super) fn has_repository_shape(directory: &Dir, names: &[&str]) -> io::Result<bool> {
    let mut all: Vec<(String, bool)> =
        names.iter().map(|name| ((*name).to_owned(), false)).collect();
    for entry in directory.entries()? {
        let entry = entry?;
        let is_directory = entry.file_type().is_ok_and(|kind| kind.is_dir());
        all.push((entry.file_name().to_string_lossy().into_owned(), is_directory));
    }
    Ok(git::is_repository(all.iter().map(|(name, is_directory)| (&**name, *is_directory))))
}

/// Returns whether git reads settings or hooks from an entry of this name, or from below it.
pub(super) fn is_control_part(name: &str) -> bool {
    CONTROL_PARTS.iter().copied().flatten().any(|part| git::is_same_name(name, part))
}

fn is_marker(name: &str) -> bool {
    git::REPOSITORY_MARKERS.iter().any(|part| git::is_same_name(name, part))
}

fn has_dot_git(path: &str) -> bool {
    path.split('/').any(|part| git::is_same_name(part, ".git"))
}
