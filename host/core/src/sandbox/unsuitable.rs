//! Directories that cannot be a workspace, because other programs run or obey the files in them.
//! The patterns of protected paths are relative to the workspace, so nothing in such a directory
//! would be protected.

use std::fs;
use std::path::{Path, PathBuf};

use super::workspace::Workspace;
use crate::policy::{PathProtection, ProtectedPaths};
use cofferdam_confine::git::{self, GitNamedPaths, UserSettings};

/// The directories of a repository that never contain a project.
const OF_REPOSITORY: &[&str] =
    &["branches", "hooks", "info", "lfs", "logs", "modules", "objects", "refs", "worktrees"];

impl Workspace {
    /// Returns the protected directory that the workspace is, or is in.
    pub fn protected_directory(&self) -> Option<PathBuf> {
        listed(self.root())
            .or_else(|| of_repository(self.root()))
            .or_else(|| named_by_settings(self.root()))
    }
}

/// Returns a directory of the path that is on the built-in list.
fn listed(root: &Path) -> Option<PathBuf> {
    let paths = ProtectedPaths::default();
    // Some programs keep worktrees of a project in their own directories. A directory with its own
    // repository is such a project.
    let is_project = fs::symlink_metadata(root.join(".git")).is_ok();
    let mut above: Vec<&Path> =
        root.ancestors().filter(|above| above.file_name().is_some()).collect();
    above.reverse();
    let is_protected = |above: &&Path| {
        let parts: Vec<_> = above.iter().skip(1).map(|part| part.to_string_lossy()).collect();
        match paths.find_exact(parts.iter().map(AsRef::as_ref)) {
            Some((PathProtection::Pinned | PathProtection::Hidden, _)) => true,
            Some((PathProtection::ReadOnly, _)) => {
                !is_project || parts.iter().any(|part| git::is_same_name(part, ".git"))
            }
            None => false,
        }
    };
    above.into_iter().find(is_protected).map(Path::to_owned)
}

/// Returns a directory of the path that belongs to a repository, judged by the entries of its
/// parent.
fn of_repository(root: &Path) -> Option<PathBuf> {
    let has = |above: &Path, name: &str| fs::symlink_metadata(above.join(name)).is_ok();
    root.ancestors().find_map(|inner| {
        let (above, name) = (inner.parent()?, inner.file_name()?.to_string_lossy());
        let is_part = OF_REPOSITORY.iter().any(|part| git::is_same_name(&name, part));
        let is_repository = || {
            has(above, "HEAD")
                && (has(above, "commondir") || has(above, "objects") && has(above, "refs"))
        };
        (is_part && is_repository()).then(|| inner.to_owned())
    })
}

/// Returns a directory of hooks that the settings of an enclosing repository name.
fn named_by_settings(root: &Path) -> Option<PathBuf> {
    root.ancestors().skip(1).find_map(|above| {
        fs::symlink_metadata(above.join(".git")).ok()?;
        let mut settings = GitNamedPaths::new(above, &UserSettings::default()).ok()?;
        let named = settings.of_repository(Path::new(""), Path::new(".git")).ok()?;
        named.into_iter().map(|path| above.join(path)).find(|path| root.starts_with(path))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sandbox::test_environment::open_workspace;

    #[test]
    fn a_directory_that_controls_other_programs_cannot_be_a_workspace() {
        let directory = tempfile::tempdir().expect("create a temporary directory");
        let root = directory.path().canonicalize().expect("it exists");
        let make = |path: &str| fs::create_dir_all(root.join(path)).expect("create the directory");
        for path in [
            "repo/.git/hooks",
            "repo/.git/objects/x",
            "repo/src",
            "repo/.vscode/x",
            "repo/.husky/_",
            "repo/.claude/worktrees/w",
        ] {
            make(path);
        }
        for path in
            ["bare/objects", "bare/refs", "bare/hooks/x", "bare/main", "hooks/info", ".ssh/x"]
        {
            make(path);
        }
        fs::write(root.join("bare/HEAD"), "ref: refs/heads/main\n").expect("write the file");
        fs::write(root.join("repo/.git/config"), "[core]\n\thooksPath = .husky/_\n")
            .expect("write the file");
        fs::write(root.join("repo/.claude/worktrees/w/.git"), "gitdir: x\n")
            .expect("write the file");
        std::os::unix::fs::symlink("repo/.git", root.join("link")).expect("create the link");
        let table = [
            ("repo", None),
            ("repo/src", None),
            ("repo/.husky", None),
            ("repo/.claude/worktrees/w", None),
            ("bare", None),
            ("bare/main", None),
            ("hooks/info", None),
            ("repo/.git", Some("repo/.git")),
            ("link", Some("repo/.git")),
            ("repo/.git/hooks", Some("repo/.git")),
            ("repo/.git/objects/x", Some("repo/.git")),
            ("repo/.vscode/x", Some("repo/.vscode")),
            ("repo/.claude/worktrees", Some("repo/.claude")),
            ("repo/.husky/_", Some("repo/.husky/_")),
            ("bare/hooks/x", Some("bare/hooks")),
            (".ssh/x", Some(".ssh")),
        ];
        for (path, expected) in table {
            let workspace = open_workspace(&root.join(path));
            assert_eq!(
                workspace.protected_directory(),
                expected.map(|path| root.join(path)),
                "{path}"
            );
        }
    }
}
