//! The steps of a walk: everything below a directory, in order, each directory opened below the workspace without following a link.

use std::cell::OnceCell;
use std::path::PathBuf;

use cap_std::fs::{Dir, Metadata};

use super::Problems;
use super::options::{self, GIT, Plan};
use super::rules::Rules;
use crate::sandbox::below::{self, Kind};

/// Something that a walk came across.
#[derive(Debug)]
pub(super) struct Found {
    /// Its place.
    pub(super) path: String,
    pub(super) kind: Kind,
}

/// A walk on its way.
pub(super) struct Tree<'a> {
    plan: &'a Plan,
    problems: &'a Problems,
    /// `None` if they are not to be followed.
    rules: Option<Rules>,
    /// The directories that it is in, each with the names that are still to come.
    levels: Vec<Level>,
    /// Where it begins, or a directory that was handed out and is entered next.
    ahead: Option<String>,
    /// A walk may begin at a file.
    only: Option<Found>,
}

struct Level {
    place: String,
    names: std::vec::IntoIter<(String, Kind)>,
}

impl<'a> Tree<'a> {
    pub(super) fn new(plan: &'a Plan, problems: &'a Problems) -> Self {
        let rules = plan.respect_ignore.then(|| Rules::above(&plan.workspace, &plan.place, problems));
        let mut tree = Self { plan, problems, rules, levels: Vec::new(), ahead: None, only: None };
        match below::look(plan.workspace.dir(), &plan.place).map(|metadata| Kind::of(&metadata)) {
            Ok(Kind::Directory) if plan.max_depth == 0 => {}
            Ok(Kind::Directory) => tree.ahead = Some(plan.place.clone()),
            Ok(kind) => tree.only = Some(Found { path: plan.place.clone(), kind }),
            Err(error) => tree.note(&plan.place, &error),
        }
        tree
    }

    fn note(&self, place: &str, error: &std::io::Error) {
        let place = if place.is_empty() { "." } else { place };
        self.problems.add(|| format!("{place}: {error}"));
    }

    fn enter(&mut self, place: String) {
        let listed = match below::list(self.plan.workspace.dir(), &place) {
            Ok(listed) => listed,
            Err(error) => return self.note(&place, &error),
        };
        let mut names = Vec::with_capacity(listed.len());
        for name in listed {
            match name {
                Ok(name) => names.push(name),
                Err(foreign) => self.problems.add(|| if place.is_empty() { foreign.to_string() } else { format!("{place}: {foreign}") }),
            }
        }
        names.sort_unstable_by(|one, other| one.0.cmp(&other.0));
        if let Some(rules) = &mut self.rules {
            let holds = |name: &str| names.binary_search_by(|(there, _)| there.as_str().cmp(name)).is_ok();
            rules.enter(&self.plan.workspace, &place, &holds, self.problems);
        }
        self.levels.push(Level { place, names: names.into_iter() });
    }

    /// Whether a glob, a rule or a dot at its beginning keeps the walk from visiting something.
    fn is_left_out(&self, place: &str, name: &str, kind: Kind) -> bool {
        let is_directory = kind == Kind::Directory;
        let path: OnceCell<PathBuf> = OnceCell::new();
        let path = || path.get_or_init(|| options::path(&self.plan.workspace, place));
        if !self.plan.globs.is_empty() {
            let by_globs = self.plan.globs.matched(path(), is_directory);
            if !by_globs.is_none() {
                return by_globs.is_ignore();
            }
        }
        let by_rules = self.rules.as_ref().map_or(ignore::Match::None, |rules| rules.of(path(), is_directory));
        by_rules.is_ignore() || (by_rules.is_none() && !self.plan.hidden && name.starts_with('.'))
    }
}

impl Iterator for Tree<'_> {
    type Item = Found;

    fn next(&mut self) -> Option<Found> {
        if let Some(only) = self.only.take() {
            return Some(only);
        }
        loop {
            if self.plan.stop.is_over() {
                return None;
            }
            if let Some(place) = self.ahead.take() {
                self.enter(place);
            }
            let level = self.levels.last_mut()?;
            let Some((name, kind)) = level.names.next() else {
                self.levels.pop();
                if let Some(rules) = &mut self.rules {
                    rules.leave();
                }
                continue;
            };
            let path = below::join(&level.place, &name);
            if name == GIT || self.is_left_out(&path, &name, kind) {
                continue;
            }
            if kind == Kind::Directory && self.levels.len() < self.plan.max_depth {
                self.ahead = Some(path.clone());
            }
            return Some(Found { path, kind });
        }
    }
}

/// Looks at places one after the other. Most lie in the directory of the one before, which is kept open.
#[derive(Default)]
pub(super) struct Looks {
    directory: Option<(String, Dir)>,
}

impl Looks {
    pub(super) fn at(&mut self, root: &Dir, place: &str) -> std::io::Result<Metadata> {
        let (parent, name) = below::split(place);
        match &self.directory {
            Some((there, directory)) if there == parent => directory.symlink_metadata(name),
            Some(_) | None => {
                let (_, directory) = self.directory.insert((parent.to_owned(), below::directory(root, parent)?));
                directory.symlink_metadata(name)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;
    use std::path::Path;
    use std::sync::Arc;

    use super::*;
    use crate::sandbox::bindings::cofferdam::plugin::workspace::WalkOptions;
    use crate::sandbox::workspace::Workspace;

    fn folder(files: &[(&str, &str)]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().expect("a folder");
        for (path, text) in files {
            let path = folder.path().join(path);
            std::fs::create_dir_all(path.parent().expect("it lies in the folder")).expect("folders");
            std::fs::write(path, text).expect("it is written");
        }
        folder
    }

    fn plan(folder: &Path, root: &str) -> Plan {
        let workspace = Arc::new(Workspace::open(folder).expect("it opens"));
        let options = WalkOptions {
            root: root.into(),
            globs: Vec::new(),
            hidden: false,
            respect_ignore: true,
            max_depth: None,
            required: Vec::new(),
            required_ignore_case: false,
        };
        Plan::new(&workspace, options).expect("it is a walk")
    }

    /// What is visited, and what was wrong.
    fn walked(folder: &Path, root: &str) -> (Vec<String>, Vec<String>) {
        let (plan, problems) = (plan(folder, root), Problems::default());
        let visited = Tree::new(&plan, &problems).map(|found| found.path).collect();
        (visited, problems.lines())
    }

    const FILES: [(&str, &str); 8] = [
        (".gitignore", "\u{feff}# rules\n*.log\n/target/\r\n!keep.log\n"),
        (".git/info/exclude", "private\n"),
        ("a.log", ""),
        ("keep.log", ""),
        ("private", ""),
        ("sub/.ignore", "!a.log\nb\n"),
        ("sub/a.log", ""),
        ("sub/b", ""),
    ];

    #[test]
    fn r121_nearer_rules_outdo_others_and_hold_below_their_directory() {
        let folder = folder(&FILES);
        assert_eq!(walked(folder.path(), ""), (["keep.log", "sub", "sub/a.log"].map(str::to_owned).to_vec(), Vec::new()));
        assert_eq!(walked(folder.path(), "sub").0, ["sub/a.log"]);
        // Outside of a repository git's rules mean nothing.
        std::fs::remove_dir_all(folder.path().join(".git")).expect("it is removed");
        assert_eq!(walked(folder.path(), "").0, ["a.log", "keep.log", "private", "sub", "sub/a.log"]);
    }

    #[test]
    fn r123_rules_are_read_from_files_of_the_workspace_and_nothing_else() {
        let outside = folder(&[("secret", "[SECRET\nseen\n")]);
        let there = outside.path().join("secret");
        for (name, target) in [(".ignore", Path::new("/dev/zero")), (".gitignore", &there), (".ignore", Path::new(".env"))] {
            let folder = folder(&[(".git/HEAD", ""), (".env", "[SECRET\nseen\n"), ("seen", "")]);
            symlink(target, folder.path().join(name)).expect("a link");
            let (visited, problems) = walked(folder.path(), "");
            assert_eq!(visited, ["seen"], "{name}");
            assert_eq!(problems, [format!("{name}: it is no file, so that its rules are not followed")]);
        }
        // A directory that is a link leads nowhere, even if it was none when it was listed.
        let folder = folder(&[("d/file", "")]);
        let (plan, problems) = (plan(folder.path(), ""), Problems::default());
        let mut tree = Tree::new(&plan, &problems);
        assert_eq!(tree.next().map(|found| found.path).as_deref(), Some("d"));
        std::fs::rename(folder.path().join("d"), folder.path().join("e")).expect("it moves");
        symlink(outside.path(), folder.path().join("d")).expect("a link");
        assert!(tree.next().is_none());
        assert!(problems.lines().len() == 1 && problems.lines()[0].starts_with("d: "), "{:?}", problems.lines());
    }

    #[test]
    fn a_walk_does_not_wait_for_rules_and_takes_no_more_than_a_file_of_them() {
        let folder = folder(&[(".git/HEAD", ""), ("big/.gitignore", &"x\n".repeat(200_000)), ("many/.ignore", &"x\n".repeat(30_000))]);
        let made = std::process::Command::new("mkfifo").arg(folder.path().join(".gitignore")).status();
        assert!(made.expect("it starts").success());
        let (visited, problems) = walked(folder.path(), "");
        assert_eq!(visited, ["big", "many"]);
        insta::assert_snapshot!(problems.join("\n"), @r"
        .gitignore: it is no file, so that its rules are not followed
        big/.gitignore: it has more than 256 KiB, so that its rules are not followed
        many/.ignore: with it there would be more than 20000 rules, so that its rules are not followed
        ");
    }

    #[test]
    fn no_word_of_a_rule_is_repeated() {
        let folder = folder(&[(".ignore", "fine\nTOKEN={[z-a]\n"), ("fine", ""), ("seen", "")]);
        assert_eq!(walked(folder.path(), ""), (vec!["seen".into()], vec![".ignore: line 2 is no rule".into()]));
    }

    #[test]
    fn r098_a_rule_that_nests_without_end_is_no_rule_and_the_others_are() {
        for braces in [3_000, 30_000] {
            let folder = folder(&[(".ignore", &format!("fine\n{}\n", "{".repeat(braces))), ("fine", ""), ("seen", "")]);
            assert_eq!(walked(folder.path(), ""), (vec!["seen".into()], vec![".ignore: line 2 is no rule".into()]));
        }
    }

    #[test]
    fn r101_a_walk_that_nobody_waits_for_takes_no_further_step() {
        let folder = folder(&[("a", ""), ("b", "")]);
        let (plan, problems) = (plan(folder.path(), ""), Problems::default());
        let mut tree = Tree::new(&plan, &problems);
        assert!(tree.next().is_some());
        plan.stop.end();
        assert!(tree.next().is_none());
    }
}
