//! Where git finds what it runs, other than in `.git/hooks` and `.git/config`: any folder with the shape of a repository is
//! one to whoever is in it, and settings name folders of hooks and further settings.

mod settings;

use std::fs;
use std::path::{Component, Path, PathBuf};

use crate::policy::folded;
pub(in crate::sandbox) use settings::{Setting, parse_settings};

/// More settings than this nobody writes by hand.
const LARGEST: u64 = 1 << 20;

/// Hooks that are looked at.
const MOST_HOOKS: usize = 1000;

/// What makes a folder a repository.
pub(in crate::sandbox) const PARTS: &[&str] = &["HEAD", "commondir", "objects", "refs"];
/// What git obeys in one.
pub(in crate::sandbox) const RUN: &[&str] = &["config", "config.worktree", "hooks"];
/// Folders of a repository that hold what it stores. What lies in them is named by commits and branches.
pub(in crate::sandbox) const STORES: &[&str] = &["objects", "refs", "logs", "lfs"];

/// Whether a name is this one to any file system.
pub(in crate::sandbox) fn is_named(name: &str, known: &str) -> bool {
    name.eq_ignore_ascii_case(known)
        || (!name.is_ascii() || name.contains(':') || name.ends_with(['.', ' '])) && folded(name) == known.to_ascii_lowercase()
}

/// Whether a folder with these names, of which some are folders, has the shape of a repository: with what it stores, or with
/// a pointer to that. git asks only whether `objects` and `refs` can be entered, and so it is enough that they are there:
/// links and executable files pass, and what a link leads to can be made later. `HEAD` is a file or a link.
pub(in crate::sandbox) fn is_repository<'a>(entries: impl Iterator<Item = (&'a str, bool)>) -> bool {
    let mut found = [false; 4];
    for (name, is_folder) in entries {
        if let Some(at) = PARTS.iter().position(|part| is_named(name, part)) {
            found[at] |= at >= 2 || !is_folder;
        }
    }
    let [head, pointer, objects, refs] = found;
    head && (pointer || objects && refs)
}

/// The paths, from the workspace on, that the settings of a repository name: folders of hooks, and further settings.
/// `repository` is where the settings lie.
pub(in crate::sandbox) fn named_in(root: &Path, settings: &Path, repository: &Path) -> Vec<PathBuf> {
    let is_small = fs::symlink_metadata(settings).is_ok_and(|metadata| metadata.is_file() && metadata.len() <= LARGEST);
    let text = if is_small { fs::read(settings).unwrap_or_default() } else { Vec::new() };
    // Of a repository in `.git` the folder of hooks is named from its worktree on, as that is where git runs them.
    let is_dot_git = repository.file_name().is_some_and(|name| name.eq_ignore_ascii_case(".git"));
    let mut worktree = if is_dot_git { repository.parent().unwrap_or(repository) } else { repository }.to_owned();
    let mut hooks = Vec::new();
    let mut named = Vec::new();
    // What git cannot read, it does not obey.
    for Setting { section, key, value, .. } in parse_settings(&String::from_utf8_lossy(&text)).unwrap_or_default() {
        let Some(value) = value else { continue };
        match (section.as_str(), key.as_str()) {
            ("core", "worktree") => worktree = repository.join(value),
            ("core", "hookspath") => hooks.push(value),
            ("include" | "includeif", "path") => named.push(repository.join(value)),
            _ => {}
        }
    }
    named.extend(hooks.iter().map(|hooks| worktree.join(hooks)));
    let mut paths: Vec<PathBuf> = named.into_iter().filter_map(|path| below(root, &path)).collect();
    let real: Vec<PathBuf> = paths.iter().filter_map(|path| resolved(root, path)).filter(|real| !paths.contains(real)).collect();
    paths.extend(real);
    paths
}

/// Where the links lead that a repository has in place of what git obeys in it, from the workspace on.
pub(in crate::sandbox) fn links_in(root: &Path, repository: &Path) -> Vec<PathBuf> {
    let hooks = fs::read_dir(root.join(repository).join("hooks")).into_iter().flatten().flatten().take(MOST_HOOKS);
    let paths = RUN.iter().map(|name| repository.join(name)).chain(hooks.map(|entry| repository.join("hooks").join(entry.file_name())));
    let links = paths.filter(|path| fs::symlink_metadata(root.join(path)).is_ok_and(|metadata| metadata.is_symlink()));
    links.filter_map(|path| resolved(root, &path)).collect()
}

/// Where a path leads if every link in it is followed, from the workspace on; what is not there yet stays as it is named.
fn resolved(root: &Path, path: &Path) -> Option<PathBuf> {
    let whole = root.join(path);
    let mut at = whole.clone();
    // A link that leads nowhere yet has a target all the same.
    if let Ok(target) = fs::read_link(&whole) {
        at = whole.parent()?.join(target);
    }
    let (real, rest) = at.ancestors().find_map(|above| Some((above.canonicalize().ok()?, at.strip_prefix(above).ok()?)))?;
    real.starts_with(root).then(|| below(root, &real.join(rest))).flatten()
}

/// A path as it is from the workspace on, if it is in there, and not the workspace itself.
pub(in crate::sandbox) fn below(root: &Path, path: &Path) -> Option<PathBuf> {
    let path = if path.is_absolute() { path.strip_prefix(root).ok()? } else { path };
    let mut clean = PathBuf::new();
    for component in path.components() {
        match component {
            Component::Normal(name) => clean.push(name),
            Component::ParentDir => drop(clean.pop().then_some(())?),
            Component::CurDir => {}
            Component::RootDir | Component::Prefix(_) => return None,
        }
    }
    (!clean.as_os_str().is_empty()).then_some(clean)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_is_a_repository_to_whoever_git_takes_it_for_one() {
        // Folders end in a slash.
        let is = |names: &[&str]| is_repository(names.iter().map(|name| (name.trim_end_matches('/'), name.ends_with('/'))));
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
        for names in [&["HEAD", "refs/"][..], &["refs/", "objects/"], &["head/", "refs/", "objects/"], &["HEAD", "commondir/"]] {
            assert!(!is(names), "{names:?}");
        }
    }

    #[test]
    fn settings_name_what_git_runs() {
        let folder = tempfile::tempdir().expect("a folder");
        let root = folder.path().canonicalize().expect("it is there");
        let named = |text: &str, repository: &str| {
            let settings = root.join("settings");
            fs::write(&settings, text).expect("it is written");
            named_in(&root, &settings, Path::new(repository)).iter().map(|path| path.display().to_string()).collect::<Vec<_>>()
        };
        assert_eq!(named("[core]\n\thooksPath = .husky/_\n", ".git"), [".husky/_"]);
        assert_eq!(named("[core]\n\thooksPath = .husky/_ # managed\n", ".git"), [".husky/_"]);
        assert_eq!(named("[core]\nworktree = ../../../sub\nhooksPath = .hooks", ".git/modules/sub"), ["sub/.hooks"]);
        assert_eq!(named("[core] HOOKSPATH=\"../hooks\"", "a/b/.git"), ["a/hooks"]);
        assert_eq!(named("[core]\nhooksPath = hooks", "bare"), ["bare/hooks"]);
        assert_eq!(named("[include]\n path = ../shared.cfg\n[includeIf \"gitdir:x\"]\npath=more", ".git"), ["shared.cfg", ".git/more"]);
        assert_eq!(named(&format!("[core]\nhooksPath = {}/x", root.display()), ".git"), ["x"]);
        for elsewhere in ["[core]\nhooksPath = /etc/hooks", "[core]\nhooksPath = ../..", "[core]\nhooksPath = .", "[user]\npath = x"] {
            assert_eq!(named(elsewhere, ".git"), Vec::<String>::new(), "{elsewhere}");
        }
    }

    #[test]
    fn links_in_a_repository_are_followed_to_what_git_obeys() {
        let folder = tempfile::tempdir().expect("a folder");
        let root = folder.path().canonicalize().expect("it is there");
        fs::create_dir_all(root.join(".git")).expect("it is made");
        let link = |to: &str, at: &str| std::os::unix::fs::symlink(to, root.join(at)).expect("it is made");
        fs::create_dir(root.join("h")).expect("it is made");
        link("../h", ".git/hooks");
        link("../gc", ".git/config");
        link("/etc", ".git/config.worktree");
        assert_eq!(links_in(&root, Path::new(".git")), [Path::new("gc"), Path::new("h")]);
        fs::remove_file(root.join(".git/hooks")).expect("it is removed");
        fs::create_dir(root.join(".git/hooks")).expect("it is made");
        link("../../h/pc", ".git/hooks/pre-commit");
        assert_eq!(links_in(&root, Path::new(".git")), [Path::new("gc"), Path::new("h/pc")]);
    }
}
