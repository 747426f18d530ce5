//! Recognition of the files that `git init` and `git clone` create in a new repository.
//!
//! These are a hooks directory with samples that nothing runs, and settings that run nothing. They
//! are kept so that creating a repository works. Other files in their place are moved away.

use std::io::Read as _;
use std::path::Path;

use cap_std::fs::Dir;

use crate::git;

/// The maximum size of the settings of a new repository, in bytes.
const MAX_SETTINGS_SIZE: u64 = 4 << 10;
/// The keys that git writes under `[core]`. Each describes file storage, and its value is a boolean
/// or a version.
const CORE_KEYS: &[&str] = &[
    "repositoryformatversion",
    "filemode",
    "bare",
    "logallrefupdates",
    "ignorecase",
    "precomposeunicode",
    "symlinks",
    "sharedrepository",
];
const CORE_VALUES: &[&str] = &["true", "false", "0", "1"];
/// The prefixes of addresses from which git fetches without starting a program that the settings
/// name.
const URL_PREFIXES: &[&str] =
    &["https://", "http://", "ssh://", "git://", "file://", "git@", "/", "./", "../"];

/// Returns whether a new entry of the workspace belongs to a new, unmodified repository.
pub(super) fn is_new_repository_entry(workspace: &Dir, path: &Path) -> bool {
    let mut parts = path.iter().rev().map(|part| part.to_str().unwrap_or_default());
    let Ok(kind) = workspace.symlink_metadata(path).map(|metadata| metadata.file_type()) else {
        return false;
    };
    let repository = |levels| {
        path.ancestors().nth(levels).is_some_and(|folder| is_repository(workspace, folder))
    };
    match [parts.next(), parts.next()].map(Option::unwrap_or_default) {
        ["hooks", _] => kind.is_dir() && repository(1),
        [name, "hooks"] => kind.is_file() && name.ends_with(".sample") && repository(2),
        ["config", _] => {
            kind.is_file()
                && repository(1)
                && read_settings(workspace, path).is_some_and(|text| is_inert(&text))
        }
        _ => false,
    }
}

/// Returns whether a directory is a repository, by its name or by its shape.
fn is_repository(workspace: &Dir, folder: &Path) -> bool {
    let entries = workspace.read_dir(folder).into_iter().flatten().flatten();
    let entries: Vec<_> = entries
        .map(|entry| (entry.file_name(), entry.file_type().is_ok_and(|kind| kind.is_dir())))
        .collect();
    folder.file_name().is_some_and(|name| name == ".git")
        || git::is_repository(
            entries.iter().filter_map(|(name, is_folder)| Some((name.to_str()?, *is_folder))),
        )
}

fn read_settings(workspace: &Dir, path: &Path) -> Option<String> {
    let mut text = String::new();
    workspace.open(path).ok()?.take(MAX_SETTINGS_SIZE + 1).read_to_string(&mut text).ok()?;
    (u64::try_from(text.len()).ok()? <= MAX_SETTINGS_SIZE).then_some(text)
}

fn is_inert(text: &str) -> bool {
    let mut section = "";
    text.lines().map(str::trim).filter(|line| !line.is_empty()).all(|line| {
        if line.starts_with('[') {
            let named =
                |kind: &str| line.strip_prefix(kind)?.strip_prefix(" \"")?.strip_suffix("\"]");
            section = match (named("[remote"), named("[branch")) {
                _ if line == "[core]" => "core",
                (Some(name), _) if is_plain(name) => "remote",
                (_, Some(name)) if is_plain(name) => "branch",
                _ => return false,
            };
            return true;
        }
        let Some((key, value)) = line.split_once('=') else { return false };
        match (section, key.trim(), value.trim()) {
            ("core", key, value) => CORE_KEYS.contains(&key) && CORE_VALUES.contains(&value),
            ("remote", "url", value) => {
                URL_PREFIXES.iter().any(|start| value.starts_with(start)) && is_plain(value)
            }
            ("remote", "fetch", value) | ("branch", "remote" | "merge", value) => {
                is_plain(value) && !value.contains("::")
            }
            _ => false,
        }
    })
}

/// Returns whether a value contains nothing that git or a shell would interpret, such as `ext::…`,
/// which starts a program.
fn is_plain(value: &str) -> bool {
    !value.contains("::") && value.chars().all(|c| c.is_alphanumeric() || "/.:_-+*@~".contains(c))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_git_init_writes_is_kept_and_anything_more_is_not() {
        assert!(is_inert(
            "[core]\n\trepositoryformatversion = 0\n\tfilemode = true\n\tbare = \
                false\n\tlogallrefupdates = true\n"
        ));
        let clone = "[core]\n\tbare = false\n[remote \"origin\"]\n\turl = /srv/a.git\n\tfetch = \
            +refs/heads/*:refs/remotes/origin/*\n\
            [branch \"main\"]\n\tremote = origin\n\tmerge = refs/heads/main\n";
        assert!(is_inert(clone));
        for more in [
            "[core]\n\tfsmonitor = evil",
            "[core] fsmonitor = evil",
            "[core]\n\tbare = false # \\\n\thooksPath = x",
            "[core \"x\"]\n",
            "[include]\n\tpath = evil",
            "[core]\nbare = false \\\nfsmonitor=x",
            "[alias]\nst = !evil",
            "[remote \"origin\"]\n\turl = ext::sh -c evil",
            "[remote \"origin\"]\n\turl = /x\n\tuploadpack = evil",
            "[remote \"origin\"]\n\turl = https://x/;evil",
            "[core]\n\turl = /x",
            "[branch \"main\"]\n\tdescription = x",
        ] {
            assert!(!is_inert(more), "{more}");
        }
    }

    #[test]
    fn only_plain_files_and_folders_at_their_places_are() {
        let folder = tempfile::tempdir().expect("a folder");
        let at = |path: &str| folder.path().join(path);
        std::fs::create_dir_all(at("a/.git/hooks")).expect("it is made");
        std::fs::create_dir_all(at("b/.git")).expect("it is made");
        std::fs::write(at("a/.git/hooks/pre-commit.sample"), "").expect("it is written");
        std::fs::write(at("a/.git/hooks/pre-commit"), "").expect("it is written");
        std::fs::write(at("a/.git/config"), "[core]\n\tbare = false\n").expect("it is written");
        std::os::unix::fs::symlink("../../a/.git/hooks", at("b/.git/hooks")).expect("it is made");
        std::os::unix::fs::symlink("../../a/.git/config", at("b/.git/config")).expect("it is made");
        let workspace =
            Dir::open_ambient_dir(folder.path(), cap_std::ambient_authority()).expect("it opens");
        let table = [
            ("a/.git/hooks", true),
            ("a/.git/hooks/pre-commit.sample", true),
            ("a/.git/config", true),
            ("a/.git/hooks/pre-commit", false),
            ("b/.git/hooks", false),
            ("b/.git/config", false),
            ("a/.git", false),
        ];
        for (path, expected) in table {
            assert_eq!(is_new_repository_entry(&workspace, Path::new(path)), expected, "{path}");
        }
    }
}
