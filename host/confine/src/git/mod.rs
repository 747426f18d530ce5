//! The places other than `.git/hooks` and `.git/config` from which git runs code.
//!
//! git treats any directory with the shape of a repository as one. Settings can name directories of
//! hooks and further settings files.

mod budget;
mod error;
mod named;
mod programs;
mod reading;
mod settings;
mod trace;
mod user;
mod words;

use std::fs;
use std::path::{Path, PathBuf};

use crate::links::LinkFollower;
use cofferdam_policy::fold_name;
pub use error::GitSettingsError;
pub use named::GitNamedPaths;
pub(crate) use settings::{GitSetting, parse_settings};
pub(crate) use trace::below;
use trace::{trace_below, ways_along};
pub use user::UserSettings;
pub(crate) use user::expanded;

/// The maximum number of hooks that are examined.
const MAX_HOOKS: usize = 1000;

/// The entries that make a directory a repository.
pub const REPOSITORY_MARKERS: &[&str] = &["HEAD", "commondir", "objects", "refs"];
/// The entries of a repository that control what git runs.
pub const CONTROL_ENTRIES: &[&str] = &["config", "config.worktree", "hooks"];
/// The directories of a repository that hold its data. Commits and branches determine the names in
/// them.
pub const DATA_DIRECTORIES: &[&str] = &["objects", "refs", "logs", "lfs"];

/// Returns whether any file system treats the two names as the same.
pub fn is_same_name(name: &str, known: &str) -> bool {
    name.eq_ignore_ascii_case(known)
        || (!name.is_ascii() || name.contains(':') || name.ends_with(['.', ' ']))
            && fold_name(name) == known.to_ascii_lowercase()
}

/// Returns whether a directory with these entries (name, is a directory) has the shape of a
/// repository: it has a store, or a pointer to one.
///
/// git only checks that `objects` and `refs` can be entered, so their presence is enough here.
/// Links and executable files pass that check, and the target of a link can be created later.
/// `HEAD` is a file or a link.
pub fn is_repository<'a>(entries: impl Iterator<Item = (&'a str, bool)>) -> bool {
    let mut found = [false; 4];
    for (name, is_folder) in entries {
        if let Some(at) = REPOSITORY_MARKERS.iter().position(|part| is_same_name(name, part)) {
            found[at] |= at >= 2 || !is_folder;
        }
    }
    let [head, pointer, objects, refs] = found;
    head && (pointer || objects && refs)
}

/// Returns the targets, relative to the workspace, of links that replace control entries of a
/// repository, together with the links on the way there.
pub fn control_link_targets(root: &Path, repository: &Path) -> Vec<PathBuf> {
    let hooks = fs::read_dir(root.join(repository).join("hooks"))
        .into_iter()
        .flatten()
        .flatten()
        .take(MAX_HOOKS);
    let paths = CONTROL_ENTRIES
        .iter()
        .map(|name| repository.join(name))
        .chain(hooks.map(|entry| repository.join("hooks").join(entry.file_name())));
    // If a directory is replaced by a link, the link decides what the paths below it mean.
    let obeyed = paths.chain([repository.join("info/attributes")]);
    // Many hooks can be links to the same chain of links.
    let mut follower = LinkFollower::default();
    let ways = |path: PathBuf| {
        let chain = trace_below(&mut follower, root, &path);
        ways_along(root, &root.join(&path), &chain).into_iter().filter(move |way| *way != path)
    };
    obeyed.flat_map(ways).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_is_a_repository_to_whoever_git_takes_it_for_one() {
        // Names of directories end in a slash.
        let is = |names: &[&str]| {
            is_repository(
                names.iter().map(|name| (name.trim_end_matches('/'), name.ends_with('/'))),
            )
        };
        for names in [
            &["config", "HEAD", "refs/", "objects/"][..],
            &["head", "REFS/", "Objects/"],
            &["HEAD", "commondir"],
            // Links, or executable files.
            &["HEAD", "refs", "objects"],
            &["HEAD", "refs/", "objects"],
            // `ſ` equals `s` on case-insensitive file systems.
            &["HEAD", "ref\u{17f}", "object\u{17f}"],
            &["HEAD", "refs.", "objects "],
        ] {
            assert!(is(names), "{names:?}");
        }
        for names in [
            &["HEAD", "refs/"][..],
            &["refs/", "objects/"],
            &["head/", "refs/", "objects/"],
            &["HEAD", "commondir/"],
        ] {
            assert!(!is(names), "{names:?}");
        }
    }

    #[test]
    fn links_in_a_repository_are_followed_to_what_git_obeys() {
        let folder = tempfile::tempdir().expect("a folder");
        let root = folder.path().canonicalize().expect("it is there");
        fs::create_dir_all(root.join(".git")).expect("it is made");
        let link =
            |to: &str, at: &str| std::os::unix::fs::symlink(to, root.join(at)).expect("it is made");
        fs::create_dir(root.join("h")).expect("it is made");
        link("../h", ".git/hooks");
        link("../gc", ".git/config");
        link("/etc", ".git/config.worktree");
        assert_eq!(
            control_link_targets(&root, Path::new(".git")),
            [Path::new("gc"), Path::new("h")]
        );
        fs::remove_file(root.join(".git/hooks")).expect("it is removed");
        fs::create_dir(root.join(".git/hooks")).expect("it is made");
        link("../../h/pc", ".git/hooks/pre-commit");
        assert_eq!(
            control_link_targets(&root, Path::new(".git")),
            [Path::new("gc"), Path::new("h/pc")]
        );
        link("../e", ".git/info");
        assert_eq!(
            control_link_targets(&root, Path::new(".git")),
            ["gc", "h/pc", ".git/info", "e/attributes"].map(Path::new)
        );
    }
}
