//! The paths of a workspace that settings of git name for git to run, for each repository and each worktree.

use std::collections::BTreeSet;
use std::fs;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use super::programs::HOOKS;
use super::reading::{NamedPath, PathKind, References, SettingsReader};
use super::trace::{below, trace, ways_to};
use super::user::UserSettings;

/// Bytes of a file that points to a repository.
const LONGEST_POINTER: u64 = 1 << 20;
/// Names in `.git` that git itself writes, although words of an alias may name them.
const WRITTEN_BY_GIT: &[&str] =
    &["COMMIT_EDITMSG", "MERGE_MSG", "SQUASH_MSG", "TAG_EDITMSG", "index", "logs", "objects", "packed-refs", "refs"];

/// Finds the paths that settings of git name.
#[derive(Clone, Debug, Default)]
pub(in crate::sandbox) struct NamedPaths {
    root: PathBuf,
    reader: SettingsReader,
    /// What settings of the user and of the system name.
    of_user: References,
}

impl NamedPaths {
    /// For a workspace with this root, which has no links in it.
    ///
    /// # Errors
    /// Settings of the user cannot be read.
    pub(in crate::sandbox) fn new(root: &Path, user: &UserSettings) -> Result<Self, String> {
        let mut reader = SettingsReader::new(user.home.clone());
        let of_user = reader.read(&user.files, true)?;
        Ok(Self { root: root.to_owned(), reader, of_user })
    }

    /// The paths that the settings of one repository name, and those of the user there. `top` is a directory with an entry
    /// `.git`, and `dot_git` that entry; of a bare repository both are the repository.
    ///
    /// # Errors
    /// Settings of the repository cannot be read.
    pub(in crate::sandbox) fn of_repository(&mut self, top: &Path, dot_git: &Path) -> Result<BTreeSet<PathBuf>, String> {
        let (top, dot_git) = (self.root.join(top), self.root.join(dot_git));
        let mut paths = BTreeSet::new();
        let Some((own, common)) = locate(&dot_git) else { return Ok(paths) };
        let references = self.reader.read(&[common.join("config"), own.join("config"), own.join("config.worktree")], false)?;
        // git runs hooks in the top directory of a worktree, or in the repository.
        let mut bases = vec![top, own.clone(), common];
        bases.extend(references.worktrees.iter().map(|worktree| own.join(worktree)));
        for references in [&references, &self.of_user] {
            self.add(references, &bases, &mut paths);
        }
        Ok(paths)
    }

    /// The paths that settings outside of the workspace name: those of the user, and those of repositories around it.
    ///
    /// # Errors
    /// Settings of such a repository cannot be read.
    pub(in crate::sandbox) fn outside_paths(&mut self) -> Result<BTreeSet<PathBuf>, String> {
        let mut paths = BTreeSet::new();
        self.add(&self.of_user, &[], &mut paths);
        let above: Vec<PathBuf> = self.root.ancestors().skip(1).map(Path::to_owned).collect();
        for top in above.iter().filter(|top| fs::symlink_metadata(top.join(".git")).is_ok()) {
            paths.extend(self.of_repository(top, &top.join(".git"))?);
        }
        Ok(paths)
    }

    /// The paths that settings of the user name in every repository, below the top directory of a new one.
    pub(in crate::sandbox) fn of_user_in(&self, top: &Path) -> Vec<PathBuf> {
        let mut paths = BTreeSet::new();
        let relative = self.of_user.named.iter().filter(|named| named.path.is_relative()).cloned().collect();
        let references = References { named: relative, ..References::default() };
        self.add(&references, &[self.root.join(top)], &mut paths);
        paths.into_iter().collect()
    }

    fn add(&self, references: &References, bases: &[PathBuf], paths: &mut BTreeSet<PathBuf>) {
        for included in &references.includes {
            paths.extend(ways_to(&self.root, included));
        }
        for NamedPath { path, kind } in &references.named {
            // A name without a directory is looked for in `PATH`, unless it is a file at the top.
            let is_name = path.components().count() == 1;
            if path.is_absolute() {
                self.add_one(path, *kind, is_name, paths);
            } else {
                bases.iter().for_each(|base| self.add_one(&base.join(path), *kind, is_name, paths));
            }
        }
    }

    fn add_one(&self, path: &Path, kind: PathKind, is_name: bool, paths: &mut BTreeSet<PathBuf>) {
        match kind {
            // Of the workspace itself only the hooks can be protected.
            PathKind::Directory if trace(path).end.as_deref() == Some(&self.root) => {
                HOOKS.iter().for_each(|hook| paths.extend(ways_to(&self.root, &path.join(hook))));
            }
            PathKind::Directory | PathKind::File => paths.extend(ways_to(&self.root, path)),
            PathKind::Word => {
                let is_there = fs::symlink_metadata(path).is_ok();
                let is_file = if is_there { !path.is_dir() } else { !is_name };
                if is_file && !below(&self.root, path).is_some_and(|path| is_written_by_git(&path)) {
                    paths.extend(ways_to(&self.root, path));
                }
            }
        }
    }
}

fn is_written_by_git(path: &Path) -> bool {
    let mut parts = path.iter().skip_while(|part| !part.eq_ignore_ascii_case(".git")).skip(1);
    let name = parts.next().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    WRITTEN_BY_GIT.contains(&name.as_str()) || name.ends_with("HEAD") || name.ends_with(".lock")
}

/// The repository that an entry `.git` stands for, and the one that it shares settings and hooks with.
fn locate(dot_git: &Path) -> Option<(PathBuf, PathBuf)> {
    let metadata = fs::metadata(dot_git).ok()?;
    let own = if metadata.is_dir() {
        dot_git.to_owned()
    } else {
        let text = pointer(dot_git)?;
        let target = dot_git.parent()?.join(text.strip_prefix("gitdir:")?.trim());
        target.canonicalize().unwrap_or(target)
    };
    let common = match pointer(&own.join("commondir")) {
        Some(common) => own.join(common.trim()),
        None => own.clone(),
    };
    Some((own, common))
}

fn pointer(path: &Path) -> Option<String> {
    let is_file = fs::metadata(path).is_ok_and(|metadata| metadata.is_file() && metadata.len() <= LONGEST_POINTER);
    let mut text = String::new();
    if is_file {
        fs::File::open(path).ok()?.take(LONGEST_POINTER).read_to_string(&mut text).ok()?;
    }
    is_file.then_some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Place {
        _folder: tempfile::TempDir,
        root: PathBuf,
    }

    impl Place {
        fn new() -> Self {
            let folder = tempfile::tempdir().expect("a directory");
            let root = folder.path().canonicalize().expect("it is there").join("ws");
            fs::create_dir(&root).expect("it is made");
            Self { _folder: folder, root }
        }

        fn write(&self, path: &str, text: &str) -> &Self {
            let path = self.root.join(path);
            fs::create_dir_all(path.parent().expect("a parent")).expect("it is made");
            fs::write(path, text).expect("it is written");
            self
        }

        fn named(&self, user: &UserSettings, top: &str, dot_git: &str) -> Vec<String> {
            let mut named = NamedPaths::new(&self.root, user).expect("they are read");
            let paths = named.of_repository(Path::new(top), Path::new(dot_git)).expect("they are read");
            paths.iter().map(|path| path.display().to_string()).collect()
        }
    }

    #[test]
    fn settings_name_what_git_runs() {
        for (repository, top, text, expected) in [
            (".git", "", "[core]\n\thooksPath = .husky/_ # managed\n", &[".git/.husky/_", ".husky/_"][..]),
            (
                ".git/modules/sub",
                ".git/modules/sub",
                "[core]\nworktree = ../../../sub\nhooksPath = .hooks",
                &[".git/modules/sub/.hooks", "sub/.hooks"],
            ),
            ("a/b/.git", "a/b", "[core] HOOKSPATH=\"../hooks\"", &["a/b/hooks", "a/hooks"]),
            ("bare", "bare", "[core]\nhooksPath = hooks", &["bare/hooks"]),
            (".git", "", "[include]\n path = ../shared.cfg\n[includeIf \"gitdir:x\"]\npath=more", &[".git/more", "shared.cfg"]),
            (".git", "", "[core]\nhooksPath = /etc/hooks", &[]),
            (".git", "", "[core]\nhooksPath = ../../..", &[]),
            (".git", "", "[user]\nname = x", &[]),
            (".git", "", "[alias]\nx = !npm run lint", &[]),
            (".git", "", "[alias]\nx = !./there ./missing dir/ there", &[".git/missing", ".git/there", "missing", "there"]),
            (".git", "", "[alias]\nx = !rm -f .git/index.lock; run .git/index", &[]),
            (".git", "", "[core]\nfsmonitor = true", &[]),
        ] {
            let place = Place::new();
            place.write(&format!("{repository}/config"), text).write("there", "").write("dir/x", "");
            assert_eq!(place.named(&UserSettings::default(), top, repository), expected, "{text}");
        }
        let place = Place::new();
        place.write(".git/config", "[core]\nhooksPath = .");
        let named = place.named(&UserSettings::default(), "", ".git");
        assert!(named.iter().any(|path| path == "pre-commit") && !named.iter().any(String::is_empty), "{named:?}");
    }

    #[test]
    fn a_worktree_has_the_settings_of_its_repository_and_of_the_user() {
        let place = Place::new();
        place.write("../outer/config", "[core]\nhooksPath = tools/hooks\n[include]\npath = ../ws/shared");
        place.write("../outer/worktrees/w/commondir", "../..\n").write("../outer/worktrees/w/config.worktree", "[core]\npager = ./pager");
        place.write("wt/.git", "gitdir: ../../outer/worktrees/w\n").write("../user", "[core]\nsshCommand = tools/ssh");
        let user = UserSettings { files: vec![place.root.join("../user")], home: None };
        assert_eq!(place.named(&user, "wt", "wt/.git"), ["shared", "wt/pager", "wt/tools/hooks", "wt/tools/ssh"]);
    }

    #[test]
    fn a_repository_around_the_workspace_names_paths_in_it() {
        let place = Place::new();
        place.write("../.git/config", "[core]\nhooksPath = ws/hooks");
        let mut named = NamedPaths::new(&place.root, &UserSettings::default()).expect("they are read");
        assert_eq!(named.outside_paths().expect("they are read"), BTreeSet::from(["hooks".into()]));
    }
}
