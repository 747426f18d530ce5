//! The workspace paths that git settings name and that git then runs or reads, for each repository
//! and worktree.

use std::collections::BTreeSet;
use std::fs;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use super::error::{GitLimit, GitSettingsError};
use super::programs::HOOKS;
use super::reading::{GitNamedPath, NamedPathKind, NamedReferences, SettingsReader};
use super::trace::{below, ways_along};
use super::user::UserSettings;
use super::{MAX_HOOKS, control_link_targets};

/// The maximum size of a file that points to a repository, in bytes.
const LONGEST_POINTER: u64 = 1 << 20;
/// Names in `.git` that git itself writes, although words of an alias may name them.
const WRITTEN_BY_GIT: &[&str] = &[
    "COMMIT_EDITMSG",
    "MERGE_MSG",
    "SQUASH_MSG",
    "TAG_EDITMSG",
    "index",
    "logs",
    "objects",
    "packed-refs",
    "refs",
];

/// Finds the paths that git settings name.
#[derive(Clone, Debug, Default)]
pub struct GitNamedPaths {
    root: PathBuf,
    reader: SettingsReader,
    /// The paths that settings of the user and of the system name.
    of_user: NamedReferences,
}

impl GitNamedPaths {
    /// Creates a finder for a workspace whose root path contains no links.
    ///
    /// # Errors
    /// The settings of the user cannot be read.
    pub fn new(root: &Path, user: &UserSettings) -> Result<Self, GitSettingsError> {
        let mut reader = SettingsReader::new(user.home.clone());
        let of_user = reader.read_user(user)?;
        reader.budget().renew();
        Ok(Self { root: root.to_owned(), reader, of_user })
    }

    /// Starts another scan with a new budget. Results that depend only on file contents stay
    /// cached.
    pub fn begin_look(&mut self) {
        self.reader.budget().renew();
    }

    /// Returns whether a limit caused an error since the last call. If so, git may run files that
    /// are unknown here.
    pub fn take_exceeded(&mut self) -> bool {
        self.reader.budget().take_exceeded()
    }

    /// Returns the paths that the settings of one repository, and those of the user, name there.
    ///
    /// `top` is a directory with an entry `.git`, and `dot_git` is that entry. For a bare
    /// repository, both are the repository.
    ///
    /// # Errors
    /// The settings of the repository cannot be read, or all repositories together exceed a limit.
    pub fn of_repository(
        &mut self,
        top: &Path,
        dot_git: &Path,
    ) -> Result<BTreeSet<PathBuf>, GitSettingsError> {
        let (top, dot_git) = (self.root.join(top), self.root.join(dot_git));
        let mut paths = BTreeSet::new();
        let located =
            self.locate(&dot_git).map_err(|limit| GitSettingsError::new(&dot_git, limit))?;
        let Some((own, common)) = located else { return Ok(paths) };
        let config = common.join("config");
        let references = self
            .reader
            .read(&[config.clone(), own.join("config"), own.join("config.worktree")], false)?;
        // The walk of the workspace covers the repositories inside it.
        for repository in BTreeSet::from([&own, &common]) {
            if !repository.starts_with(&self.root) {
                paths.extend(control_link_targets(&self.root, repository));
            }
        }
        // git runs hooks in the top directory of a worktree, or in the repository.
        let mut bases = BTreeSet::from([top, own.clone(), common]);
        bases.extend(references.worktrees.iter().map(|worktree| own.join(worktree)));
        let of_user = std::mem::take(&mut self.of_user);
        let added = [&references, &of_user]
            .into_iter()
            .try_for_each(|references| self.add(references, &bases, &mut paths));
        self.of_user = of_user;
        added.map_err(|limit| GitSettingsError::new(&config, limit))?;
        Ok(paths)
    }

    /// Returns the settings files of the repository in a directory, whether they exist or not.
    pub(crate) fn settings_files(top: &Path) -> Vec<PathBuf> {
        let dot_git = top.join(".git");
        let is_bare = fs::symlink_metadata(&dot_git).is_err();
        let mut finder = Self { root: top.to_owned(), ..Self::default() };
        match finder.locate(if is_bare { top } else { &dot_git }) {
            Ok(Some((own, common))) => {
                vec![common.join("config"), own.join("config"), own.join("config.worktree")]
            }
            Ok(None) | Err(_) => Vec::new(),
        }
    }

    /// Returns the paths that settings outside the workspace name: those of the user and of
    /// enclosing repositories.
    ///
    /// # Errors
    /// The settings of such a repository cannot be read.
    pub fn outside_paths(&mut self) -> Result<BTreeSet<PathBuf>, GitSettingsError> {
        let mut paths = self.of_user_below(&BTreeSet::new())?;
        let above: Vec<PathBuf> = self.root.ancestors().skip(1).map(Path::to_owned).collect();
        for top in above.iter().filter(|top| fs::symlink_metadata(top.join(".git")).is_ok()) {
            paths.extend(self.of_repository(top, &top.join(".git"))?);
        }
        Ok(paths)
    }

    /// Returns the paths that settings of the user name below the top directory of a new
    /// repository.
    pub fn of_user_in(&self, top: &Path) -> Vec<PathBuf> {
        let bases = BTreeSet::from([self.root.join(top)]);
        // Uses a separate scan. After a command nothing can be refused, so a path that cannot be
        // followed is protected itself.
        let mut look = Self { root: self.root.clone(), ..Self::default() };
        let mut paths = BTreeSet::new();
        for named in self.of_user.named.iter().filter(|named| named.path.is_relative()) {
            let one = NamedReferences {
                named: BTreeSet::from([named.clone()]),
                ..NamedReferences::default()
            };
            if look.add(&one, &bases, &mut paths).is_err() {
                paths.extend(
                    bases.iter().filter_map(|base| below(&self.root, &base.join(&named.path))),
                );
            }
        }
        paths.into_iter().collect()
    }

    fn of_user_below(
        &mut self,
        bases: &BTreeSet<PathBuf>,
    ) -> Result<BTreeSet<PathBuf>, GitSettingsError> {
        let mut paths = BTreeSet::new();
        let of_user = std::mem::take(&mut self.of_user);
        let added = self.add(&of_user, bases, &mut paths);
        self.of_user = of_user;
        added
            .map(|()| paths)
            .map_err(|limit| GitSettingsError::new(Path::new("~/.gitconfig"), limit))
    }

    fn add(
        &mut self,
        references: &NamedReferences,
        bases: &BTreeSet<PathBuf>,
        paths: &mut BTreeSet<PathBuf>,
    ) -> Result<(), GitLimit> {
        for included in &references.includes {
            self.add_ways(included, Path::new(""), paths)?;
        }
        for GitNamedPath { path, kind } in &references.named {
            // A name without a directory is looked up in `PATH`, unless it is a file at the top.
            let is_name = path.components().count() == 1;
            if path.is_absolute() {
                self.add_one(Path::new("/"), path, *kind, is_name, paths)?;
            } else {
                bases
                    .iter()
                    .try_for_each(|base| self.add_one(base, path, *kind, is_name, paths))?;
            }
        }
        Ok(())
    }

    fn add_ways(
        &mut self,
        base: &Path,
        path: &Path,
        paths: &mut BTreeSet<PathBuf>,
    ) -> Result<(), GitLimit> {
        let chain = self.reader.budget().trace(base, path)?;
        paths.extend(ways_along(&self.root, &base.join(path), &chain));
        Ok(())
    }

    fn add_one(
        &mut self,
        base: &Path,
        path: &Path,
        kind: NamedPathKind,
        is_name: bool,
        paths: &mut BTreeSet<PathBuf>,
    ) -> Result<(), GitLimit> {
        let chain = self.reader.budget().trace(base, path)?;
        let end = chain.end.as_deref();
        let whole = base.join(path);
        match kind {
            // If the directory is the workspace itself, only the hooks can be protected.
            NamedPathKind::Directory if end == Some(&self.root) => {
                HOOKS.iter().try_for_each(|hook| self.add_ways(base, &path.join(hook), paths))?;
            }
            NamedPathKind::Directory | NamedPathKind::File => {
                paths.extend(ways_along(&self.root, &whole, &chain));
                // A link in a directory outside may lead into the workspace.
                let outside = end
                    .filter(|end| kind == NamedPathKind::Directory && !end.starts_with(&self.root));
                outside.map_or(Ok(()), |end| self.add_links_in(end, paths))?;
            }
            NamedPathKind::Word => {
                // The end of the chain contains no links to follow.
                let there = end.and_then(|end| fs::symlink_metadata(end).ok());
                let is_link =
                    || chain.links.iter().any(|link| link.file_name() == path.file_name());
                let is_file =
                    there.map_or_else(|| !is_name || is_link(), |metadata| !metadata.is_dir());
                if is_file
                    && !below(&self.root, &whole).is_some_and(|path| is_written_by_git(&path))
                {
                    paths.extend(ways_along(&self.root, &whole, &chain));
                }
            }
        }
        Ok(())
    }

    /// Adds the targets of links in a directory of hooks.
    fn add_links_in(
        &mut self,
        directory: &Path,
        paths: &mut BTreeSet<PathBuf>,
    ) -> Result<(), GitLimit> {
        let entries = fs::read_dir(directory).into_iter().flatten().flatten().take(MAX_HOOKS);
        let links = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_symlink()));
        for link in links {
            self.add_ways(directory, Path::new(&link.file_name()), paths)?;
        }
        Ok(())
    }

    /// Returns the repository that an entry `.git` stands for, and the repository whose settings
    /// and hooks it shares.
    fn locate(&mut self, dot_git: &Path) -> Result<Option<(PathBuf, PathBuf)>, GitLimit> {
        let Some(real) = self.real(dot_git)? else { return Ok(None) };
        let Ok(metadata) = fs::metadata(&real) else { return Ok(None) };
        let own = if metadata.is_dir() {
            dot_git.to_owned()
        } else {
            let text = self.pointer(&real)?;
            let target = text.as_deref().and_then(|text| text.strip_prefix("gitdir:"));
            let (Some(target), Some(parent)) = (target, dot_git.parent()) else { return Ok(None) };
            let target = parent.join(target.trim());
            self.real(&target)?.unwrap_or(target)
        };
        let common = match self.real(&own.join("commondir"))? {
            Some(real) => self.pointer(&real)?,
            None => None,
        };
        let common = common.map_or_else(|| own.clone(), |common| own.join(common.trim()));
        Ok(Some((own, common)))
    }

    fn real(&mut self, path: &Path) -> Result<Option<PathBuf>, GitLimit> {
        self.reader.budget().trace(path, Path::new("")).map(|chain| chain.end)
    }

    /// Reads a file that points to a repository. Its path contains no links.
    fn pointer(&mut self, path: &Path) -> Result<Option<String>, GitLimit> {
        let Some(text) = pointer(path) else { return Ok(None) };
        self.reader.budget().take_bytes(text.len() as u64)?;
        Ok(Some(text))
    }
}

fn is_written_by_git(path: &Path) -> bool {
    let mut parts = path.iter().skip_while(|part| !part.eq_ignore_ascii_case(".git")).skip(1);
    let name = parts.next().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    WRITTEN_BY_GIT.contains(&name.as_str()) || name.ends_with("HEAD") || name.ends_with(".lock")
}

fn pointer(path: &Path) -> Option<String> {
    let is_file = fs::metadata(path)
        .is_ok_and(|metadata| metadata.is_file() && metadata.len() <= LONGEST_POINTER);
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
            let mut named = GitNamedPaths::new(&self.root, user).expect("they are read");
            let paths =
                named.of_repository(Path::new(top), Path::new(dot_git)).expect("they are read");
            paths.iter().map(|path| path.display().to_string()).collect()
        }
    }

    #[test]
    fn settings_name_what_git_runs() {
        for (repository, top, text, expected) in [
            (
                ".git",
                "",
                "[core]\n\thooksPath = .husky/_ # managed\n",
                &[".git/.husky/_", ".husky/_"][..],
            ),
            (
                ".git/modules/sub",
                ".git/modules/sub",
                "[core]\nworktree = ../../../sub\nhooksPath = .hooks",
                &[".git/modules/sub/.hooks", "sub/.hooks"],
            ),
            ("a/b/.git", "a/b", "[core] HOOKSPATH=\"../hooks\"", &["a/b/hooks", "a/hooks"]),
            ("bare", "bare", "[core]\nhooksPath = hooks", &["bare/hooks"]),
            (
                ".git",
                "",
                "[include]\n path = ../shared.cfg\n[includeIf \"gitdir:x\"]\npath=more",
                &[".git/more", "shared.cfg"],
            ),
            (".git", "", "[core]\nhooksPath = /etc/hooks", &[]),
            (".git", "", "[core]\nhooksPath = ../../..", &[]),
            (".git", "", "[user]\nname = x", &[]),
            (".git", "", "[alias]\nx = !npm run lint", &[]),
            (
                ".git",
                "",
                "[alias]\nx = !./there ./missing dir/ there",
                &[".git/missing", ".git/there", "missing", "there"],
            ),
            (".git", "", "[alias]\nx = !rm -f .git/index.lock; run .git/index", &[]),
            (".git", "", "[core]\nfsmonitor = true", &[]),
        ] {
            let place = Place::new();
            place
                .write(&format!("{repository}/config"), text)
                .write("there", "")
                .write("dir/x", "");
            assert_eq!(place.named(&UserSettings::default(), top, repository), expected, "{text}");
        }
        let place = Place::new();
        place.write(".git/config", "[core]\nhooksPath = .");
        let named = place.named(&UserSettings::default(), "", ".git");
        assert!(
            named.iter().any(|path| path == "pre-commit") && !named.iter().any(String::is_empty),
            "{named:?}"
        );
    }

    #[test]
    fn a_worktree_has_the_settings_of_its_repository_and_of_the_user() {
        let place = Place::new();
        place.write(
            "../outer/config",
            "[core]\nhooksPath = tools/hooks\n[include]\npath = ../ws/shared",
        );
        place
            .write("../outer/worktrees/w/commondir", "../..\n")
            .write("../outer/worktrees/w/config.worktree", "[core]\npager = ./pager");
        place
            .write("wt/.git", "gitdir: ../../outer/worktrees/w\n")
            .write("../user", "[core]\nsshCommand = tools/ssh");
        let user =
            UserSettings { files: vec![place.root.join("../user")], ..UserSettings::default() };
        assert_eq!(
            place.named(&user, "wt", "wt/.git"),
            ["shared", "wt/pager", "wt/tools/hooks", "wt/tools/ssh"]
        );
    }

    #[test]
    fn links_outside_lead_to_settings_and_hooks_in_the_workspace() {
        let place = Place::new();
        place.write("gitconfig", "").write("gh/pc", "").write("hk/pc", "").write("../gh/x", "");
        place.write("git/config", "").write("../.git/config", "").write("../.git/hooks/x", "");
        place.write("../xdg/x", "");
        let link = |to: &str, at: &str| {
            std::os::unix::fs::symlink(place.root.join(to), place.root.join(at)).expect("a link")
        };
        link("gitconfig", "../.gitconfig");
        link("gh/pc", "../gh/pre-commit");
        link("hk/pc", "../.git/hooks/pre-commit");
        link("git", "../xdg/git");
        let hooks = place.root.join("../gh").display().to_string();
        let include = place.root.join("inc").display().to_string();
        let user = UserSettings {
            files: vec![place.root.join("../.gitconfig"), place.root.join("../xdg/git/config")],
            variables: vec![
                ("core.hooksPath".to_owned(), hooks),
                ("include.path".to_owned(), include),
            ],
            home: None,
        };
        let mut named = GitNamedPaths::new(&place.root, &user).expect("they are read");
        let expected = ["gh/pc", "git/attributes", "git/config", "gitconfig", "hk/pc", "inc"];
        assert_eq!(
            named.outside_paths().expect("they are read"),
            expected.iter().map(PathBuf::from).collect()
        );
    }

    #[test]
    fn a_repository_around_the_workspace_names_paths_in_it() {
        let place = Place::new();
        place.write("../.git/config", "[core]\nhooksPath = ws/hooks");
        let mut named =
            GitNamedPaths::new(&place.root, &UserSettings::default()).expect("they are read");
        assert_eq!(named.outside_paths().expect("they are read"), BTreeSet::from(["hooks".into()]));
    }

    #[test]
    fn a_crowd_of_settings_ends_the_look_and_the_same_settings_count_once() {
        let place = Place::new();
        let aliases = |from: usize| {
            (from..from + 2000).map(|n| format!("a{n} = !a{n}/b\n")).collect::<String>()
        };
        let mut named =
            GitNamedPaths::new(&place.root, &UserSettings::default()).expect("they are read");
        for n in 0..20 {
            place.write(&format!("same{n}/config"), &format!("[alias]\n{}", aliases(0)));
            let top = PathBuf::from(format!("same{n}"));
            assert!(!named.of_repository(&top, &top).expect("it is read").is_empty());
        }
        let mut of_another = |n: usize| {
            let top = PathBuf::from(format!("other{n}"));
            place.write(&format!("other{n}/config"), &format!("[alias]\n{}", aliases(1 + n)));
            named.of_repository(&top, &top)
        };
        let problem = (0..20).find_map(|n| of_another(n).err()).expect("they are too many");
        let problem = problem.to_string();
        assert!(
            problem.contains("/other4/config`") && problem.contains("more than 20000 programs"),
            "{problem}"
        );
        assert!(of_another(30).is_err());
        assert!(named.take_exceeded());
        named.begin_look();
        assert!(named.of_repository(Path::new("same0"), Path::new("same0")).is_ok());
        place
            .write("large/config", &"#".repeat(9 << 20))
            .write("large2/config", &"#".repeat(8 << 20));
        assert!(named.of_repository(Path::new("large"), Path::new("large")).is_ok());
        let problem = named
            .of_repository(Path::new("large2"), Path::new("large2"))
            .expect_err("they are too large");
        let problem = problem.to_string();
        assert!(problem.contains("together have more than 16 MiB"), "{problem}");
    }

    #[test]
    fn a_crowd_of_components_ends_the_look() {
        let place = Place::new();
        let words: String =
            (0..4000).map(|n| format!("a{n} = !{}x{n}\n", "d/../".repeat(100))).collect();
        place.write("r/config", &format!("[alias]\n{words}"));
        let mut named =
            GitNamedPaths::new(&place.root, &UserSettings::default()).expect("they are read");
        let problem =
            named.of_repository(Path::new("r"), Path::new("r")).expect_err("they are too many");
        let problem = problem.to_string();
        assert!(
            problem.contains("more than 500000 components") && problem.contains("/r/config`"),
            "{problem}"
        );
        place.write("s/config", &format!("[alias]\na = !{}x\n", "d/../".repeat(3000)));
        named.begin_look();
        let problem =
            named.of_repository(Path::new("s"), Path::new("s")).expect_err("it is too long");
        let problem = problem.to_string();
        assert!(problem.contains("too many components or symbolic links"), "{problem}");
    }
}
