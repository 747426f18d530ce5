//! Where git finds what it runs, other than in `.git/hooks` and `.git/config`: any folder with the
//! shape of a repository is one to whoever is in it, and settings name folders of hooks and further
//! settings.

mod budget;
mod named;
mod programs;
mod reading;
mod settings;
mod trace;
mod user;
mod words;

use std::fs;
use std::path::{Path, PathBuf};

use crate::policy::fold_name;
use crate::sandbox::links::LinkFollower;
pub(in crate::sandbox) use named::GitNamedPaths;
pub(in crate::sandbox) use settings::{GitSetting, parse_settings};
pub(in crate::sandbox) use trace::below;
use trace::{trace_below, ways_along};
pub(in crate::sandbox) use user::UserSettings;

/// Hooks that are looked at.
const MAX_HOOKS: usize = 1000;

/// What makes a folder a repository.
pub(in crate::sandbox) const REPOSITORY_MARKERS: &[&str] =
    &["HEAD", "commondir", "objects", "refs"];
/// What git obeys in one.
pub(in crate::sandbox) const CONTROL_ENTRIES: &[&str] = &["config", "config.worktree", "hooks"];
/// Folders of a repository that hold what it stores. What lies in them is named by commits and
/// branches.
pub(in crate::sandbox) const DATA_DIRECTORIES: &[&str] = &["objects", "refs", "logs", "lfs"];

/// Whether a name is this one to any file system.
pub(in crate::sandbox) fn is_same_name(name: &str, known: &str) -> bool {
    name.eq_ignore_ascii_case(known)
        || (!name.is_ascii() || name.contains(':') || name.ends_with(['.', ' ']))
            && fold_name(name) == known.to_ascii_lowercase()
}

/// Whether a folder with these names, of which some are folders, has the shape of a repository:
/// with what it stores, or with a pointer to that. git asks only whether `objects` and `refs` can
/// be entered, and so it is enough that they are there: links and executable files pass, and what a
/// link leads to can be made later. `HEAD` is a file or a link.
pub(in crate::sandbox) fn is_repository<'a>(
    entries: impl Iterator<Item = (&'a str, bool)>,
) -> bool {
    let mut found = [false; 4];
    for (name, is_folder) in entries {
        if let Some(at) = REPOSITORY_MARKERS.iter().position(|part| is_same_name(name, part)) {
            found[at] |= at >= 2 || !is_folder;
        }
    }
    let [head, pointer, objects, refs] = found;
    head && (pointer || objects && refs)
}

/// Where the links lead that a repository has in place of what git obeys in it, from the workspace
/// on, and the links on the way there.
pub(in crate::sandbox) fn control_link_targets(root: &Path, repository: &Path) -> Vec<PathBuf> {
    let hooks = fs::read_dir(root.join(repository).join("hooks"))
        .into_iter()
        .flatten()
        .flatten()
        .take(MAX_HOOKS);
    let paths = CONTROL_ENTRIES
        .iter()
        .map(|name| repository.join(name))
        .chain(hooks.map(|entry| repository.join("hooks").join(entry.file_name())));
    // In place of a directory a link decides what the paths below are.
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
        // Folders end in a slash.
        let is = |names: &[&str]| {
            is_repository(
                names.iter().map(|name| (name.trim_end_matches('/'), name.ends_with('/'))),
            )
        };
        for names in [
            &["config", "HEAD", "refs/", "objects/"][..],
            &["head", "REFS/", "Objects/"],
            &["HEAD", "commondir"],
            // Links, or files that can be executed.
            &["HEAD", "refs", "objects"],
            &["HEAD", "refs/", "objects"],
            // `ſ` is an `s` to file systems that know no case.
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
