//! What `git init` leaves in a repository: a folder for hooks with samples that nothing runs, and settings that run nothing.
//! A new repository keeps these, so that making one is no riddle; whatever else stands where they do is taken away.

use std::io::Read as _;
use std::path::Path;

use cap_std::fs::Dir;

/// Settings of `git init` are a few lines.
const LARGEST_SETTINGS: u64 = 4 << 10;
/// What `git init` writes under `[core]`. Each says how files are kept and is yes, no or a version.
const KEYS: &[&str] =
    &["repositoryformatversion", "filemode", "bare", "logallrefupdates", "ignorecase", "precomposeunicode", "symlinks", "sharedrepository"];
const VALUES: &[&str] = &["true", "false", "0", "1"];

/// Whether a new entry of the workspace is such a one.
pub(super) fn is_of_git_init(workspace: &Dir, path: &Path) -> bool {
    let mut parts = path.iter().rev().map(|part| part.to_str().unwrap_or_default());
    let Ok(kind) = workspace.symlink_metadata(path).map(|metadata| metadata.file_type()) else { return false };
    match [parts.next(), parts.next(), parts.next()].map(Option::unwrap_or_default) {
        ["hooks", ".git", _] => kind.is_dir(),
        [name, "hooks", ".git"] => kind.is_file() && name.ends_with(".sample"),
        ["config", ".git", _] => kind.is_file() && settings(workspace, path).is_some_and(|text| runs_nothing(&text)),
        _ => false,
    }
}

fn settings(workspace: &Dir, path: &Path) -> Option<String> {
    let mut text = String::new();
    workspace.open(path).ok()?.take(LARGEST_SETTINGS + 1).read_to_string(&mut text).ok()?;
    (u64::try_from(text.len()).ok()? <= LARGEST_SETTINGS).then_some(text)
}

fn runs_nothing(text: &str) -> bool {
    text.lines().map(str::trim).filter(|line| !line.is_empty()).all(|line| {
        line == "[core]" || line.split_once('=').is_some_and(|(key, value)| KEYS.contains(&key.trim()) && VALUES.contains(&value.trim()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_git_init_writes_is_kept_and_anything_more_is_not() {
        assert!(runs_nothing("[core]\n\trepositoryformatversion = 0\n\tfilemode = true\n\tbare = false\n\tlogallrefupdates = true\n"));
        for more in [
            "[core]\n\tfsmonitor = evil",
            "[core] fsmonitor = evil",
            "[core]\n\tbare = false # \\\n\thooksPath = x",
            "[core \"x\"]\n",
            "[include]\n\tpath = evil",
            "[core]\nbare = false \\\nfsmonitor=x",
            "[alias]\nst = !evil",
        ] {
            assert!(!runs_nothing(more), "{more}");
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
        let workspace = Dir::open_ambient_dir(folder.path(), cap_std::ambient_authority()).expect("it opens");
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
            assert_eq!(is_of_git_init(&workspace, Path::new(path)), expected, "{path}");
        }
    }
}
