//! The steps of a walk: everything below a directory, in order, each directory opened below the
//! workspace without following a link.

use std::cell::OnceCell;
use std::path::PathBuf;

use cap_std::fs::{Dir, Metadata};

use super::WalkProblems;
use super::options::{self, GIT_DIR, WalkPlan};
use super::rules::IgnoreRules;
use crate::sandbox::rooted_fs::{self, FileKind};

/// Something that a walk came across.
#[derive(Debug)]
pub(super) struct TreeWalkEntry {
    /// Its place.
    pub(super) path: String,
    pub(super) kind: FileKind,
}

/// A walk on its way.
pub(super) struct TreeWalk<'a> {
    plan: &'a WalkPlan,
    problems: &'a WalkProblems,
    /// `None` if they are not to be followed.
    rules: Option<IgnoreRules>,
    /// The directories that it is in, each with the names that are still to come.
    levels: Vec<TreeWalkLevel>,
    /// Where it begins, or a directory that was handed out and is entered next.
    pending: Option<String>,
    /// A walk may begin at a file.
    single_entry: Option<TreeWalkEntry>,
}

struct TreeWalkLevel {
    path: String,
    names: std::vec::IntoIter<(String, FileKind)>,
}

impl<'a> TreeWalk<'a> {
    pub(super) fn new(plan: &'a WalkPlan, problems: &'a WalkProblems) -> Self {
        let rules = plan
            .respect_ignore
            .then(|| IgnoreRules::from_parents(&plan.workspace, &plan.root, problems));
        let mut tree =
            Self { plan, problems, rules, levels: Vec::new(), pending: None, single_entry: None };
        match rooted_fs::symlink_metadata(plan.workspace.dir(), &plan.root)
            .map(|metadata| FileKind::from_metadata(&metadata))
        {
            Ok(FileKind::Directory) if plan.max_depth == 0 => {}
            Ok(FileKind::Directory) => tree.pending = Some(plan.root.clone()),
            Ok(kind) => tree.single_entry = Some(TreeWalkEntry { path: plan.root.clone(), kind }),
            Err(error) => tree.report_error(&plan.root, &error),
        }
        tree
    }

    fn report_error(&self, place: &str, error: &std::io::Error) {
        let place = if place.is_empty() { "." } else { place };
        self.problems.add(|| format!("{place}: {error}"));
    }

    fn enter(&mut self, place: String) {
        let listed = match rooted_fs::list(self.plan.workspace.dir(), &place) {
            Ok(listed) => listed,
            Err(error) => return self.report_error(&place, &error),
        };
        let mut names = Vec::with_capacity(listed.len());
        for name in listed {
            match name {
                Ok(name) => names.push(name),
                Err(foreign) => self.problems.add(|| {
                    if place.is_empty() {
                        foreign.to_string()
                    } else {
                        format!("{place}: {foreign}")
                    }
                }),
            }
        }
        names.sort_unstable_by(|one, other| one.0.cmp(&other.0));
        if let Some(rules) = &mut self.rules {
            let holds =
                |name: &str| names.binary_search_by(|(there, _)| there.as_str().cmp(name)).is_ok();
            rules.enter(&self.plan.workspace, &place, &holds, self.problems);
        }
        self.levels.push(TreeWalkLevel { path: place, names: names.into_iter() });
    }

    /// Whether a glob, a rule or a dot at its beginning keeps the walk from visiting something.
    fn is_excluded(&self, place: &str, name: &str, kind: FileKind) -> bool {
        let is_directory = kind == FileKind::Directory;
        let path: OnceCell<PathBuf> = OnceCell::new();
        let path = || path.get_or_init(|| options::absolute_path(&self.plan.workspace, place));
        if !self.plan.globs.is_empty() {
            let by_globs = self.plan.globs.matched(path(), is_directory);
            if !by_globs.is_none() {
                return by_globs.is_ignore();
            }
        }
        let by_rules = self
            .rules
            .as_ref()
            .map_or(ignore::Match::None, |rules| rules.matched(path(), is_directory));
        by_rules.is_ignore()
            || (by_rules.is_none() && !self.plan.include_hidden && name.starts_with('.'))
    }
}

impl Iterator for TreeWalk<'_> {
    type Item = TreeWalkEntry;

    fn next(&mut self) -> Option<TreeWalkEntry> {
        if let Some(only) = self.single_entry.take() {
            return Some(only);
        }
        loop {
            if self.plan.stop.is_stopped() {
                return None;
            }
            if let Some(place) = self.pending.take() {
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
            let path = rooted_fs::join(&level.path, &name);
            if name == GIT_DIR || self.is_excluded(&path, &name, kind) {
                continue;
            }
            if kind == FileKind::Directory && self.levels.len() < self.plan.max_depth {
                self.pending = Some(path.clone());
            }
            return Some(TreeWalkEntry { path, kind });
        }
    }
}

/// Looks at places one after the other. Most lie in the directory of the one before, which is kept
/// open.
#[derive(Default)]
pub(super) struct PathLookups {
    directory: Option<(String, Dir)>,
}

impl PathLookups {
    pub(super) fn metadata(&mut self, root: &Dir, place: &str) -> std::io::Result<Metadata> {
        let (parent, name) = rooted_fs::split(place);
        match &self.directory {
            Some((there, directory)) if there == parent => directory.symlink_metadata(name),
            Some(_) | None => {
                let (_, directory) =
                    self.directory.insert((parent.to_owned(), rooted_fs::open_dir(root, parent)?));
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
            std::fs::create_dir_all(path.parent().expect("it lies in the folder"))
                .expect("folders");
            std::fs::write(path, text).expect("it is written");
        }
        folder
    }

    fn plan(folder: &Path, root: &str) -> WalkPlan {
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
        WalkPlan::new(&workspace, options).expect("it is a walk")
    }

    /// What is visited, and what was wrong.
    fn walked(folder: &Path, root: &str) -> (Vec<String>, Vec<String>) {
        let (plan, problems) = (plan(folder, root), WalkProblems::default());
        let visited = TreeWalk::new(&plan, &problems).map(|found| found.path).collect();
        (visited, problems.sorted_lines())
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
        assert_eq!(
            walked(folder.path(), ""),
            (["keep.log", "sub", "sub/a.log"].map(str::to_owned).to_vec(), Vec::new())
        );
        assert_eq!(walked(folder.path(), "sub").0, ["sub/a.log"]);
        // Outside of a repository git's rules mean nothing.
        std::fs::remove_dir_all(folder.path().join(".git")).expect("it is removed");
        assert_eq!(
            walked(folder.path(), "").0,
            ["a.log", "keep.log", "private", "sub", "sub/a.log"]
        );
    }

    #[test]
    fn r123_rules_are_read_from_files_of_the_workspace_and_nothing_else() {
        let outside = folder(&[("secret", "[SECRET\nseen\n")]);
        let there = outside.path().join("secret");
        for (name, target) in [
            (".ignore", Path::new("/dev/zero")),
            (".gitignore", &there),
            (".ignore", Path::new(".env")),
        ] {
            let folder = folder(&[(".git/HEAD", ""), (".env", "[SECRET\nseen\n"), ("seen", "")]);
            symlink(target, folder.path().join(name)).expect("a link");
            let (visited, problems) = walked(folder.path(), "");
            assert_eq!(visited, ["seen"], "{name}");
            assert_eq!(
                problems,
                [format!("{name}: it is no file, so that its rules are not followed")]
            );
        }
        // A directory that is a link leads nowhere, even if it was none when it was listed.
        let folder = folder(&[("d/file", "")]);
        let (plan, problems) = (plan(folder.path(), ""), WalkProblems::default());
        let mut tree = TreeWalk::new(&plan, &problems);
        assert_eq!(tree.next().map(|found| found.path).as_deref(), Some("d"));
        std::fs::rename(folder.path().join("d"), folder.path().join("e")).expect("it moves");
        symlink(outside.path(), folder.path().join("d")).expect("a link");
        assert!(tree.next().is_none());
        assert!(
            problems.sorted_lines().len() == 1 && problems.sorted_lines()[0].starts_with("d: "),
            "{:?}",
            problems.sorted_lines()
        );
    }

    #[test]
    fn a_walk_does_not_wait_for_rules_and_takes_no_more_than_a_file_of_them() {
        let folder = folder(&[
            (".git/HEAD", ""),
            ("big/.gitignore", &"x\n".repeat(200_000)),
            ("many/.ignore", &"x\n".repeat(30_000)),
        ]);
        let made =
            std::process::Command::new("mkfifo").arg(folder.path().join(".gitignore")).status();
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
        assert_eq!(
            walked(folder.path(), ""),
            (vec!["seen".into()], vec![".ignore: line 2 is no rule".into()])
        );
    }

    #[test]
    fn r098_a_rule_that_nests_without_end_is_no_rule_and_the_others_are() {
        for braces in [3_000, 30_000] {
            let folder = folder(&[
                (".ignore", &format!("fine\n{}\n", "{".repeat(braces))),
                ("fine", ""),
                ("seen", ""),
            ]);
            assert_eq!(
                walked(folder.path(), ""),
                (vec!["seen".into()], vec![".ignore: line 2 is no rule".into()])
            );
        }
    }

    #[test]
    fn r101_a_walk_that_nobody_waits_for_takes_no_further_step() {
        let folder = folder(&[("a", ""), ("b", "")]);
        let (plan, problems) = (plan(folder.path(), ""), WalkProblems::default());
        let mut tree = TreeWalk::new(&plan, &problems);
        assert!(tree.next().is_some());
        plan.stop.stop();
        assert!(tree.next().is_none());
    }
}
