//! Walks the tree below a directory, in sorted order. Opens each directory below the workspace
//! without following links.

use std::cell::OnceCell;
use std::path::PathBuf;

use cap_std::fs::{Dir, Metadata};

use super::WalkProblems;
use super::options::{self, GIT_DIR, WalkPlan};
use super::rules::IgnoreRules;
use crate::sandbox::rooted_fs::{self, FileKind};

/// An entry that a walk found.
#[derive(Debug)]
pub(super) struct TreeWalkEntry {
    /// The path of the entry.
    pub(super) path: String,
    pub(super) kind: FileKind,
}

/// A walk in progress.
pub(super) struct TreeWalk<'a> {
    plan: &'a WalkPlan,
    problems: &'a WalkProblems,
    /// The ignore rules; `None` if the walk ignores them.
    rules: Option<IgnoreRules>,
    /// The open directories, each with the names still to visit.
    levels: Vec<TreeWalkLevel>,
    /// The directory to enter next: the root, or a directory that was just returned.
    pending: Option<String>,
    /// The only entry of a walk that begins at a file.
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

    /// Returns whether a glob, an ignore rule or a leading dot excludes a path.
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

/// Reads the metadata of paths. Keeps the last directory open, because most paths are in the same
/// directory as the previous one.
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
    use crate::sandbox::test_environment::open_workspace;
    use crate::sandbox::walk::WalkOptions;

    fn directory_with(files: &[(&str, &str)]) -> tempfile::TempDir {
        let directory = tempfile::tempdir().expect("create a temporary directory");
        for (path, text) in files {
            let path = directory.path().join(path);
            std::fs::create_dir_all(path.parent().expect("it has a parent"))
                .expect("create the directory");
            std::fs::write(path, text).expect("write the file");
        }
        directory
    }

    fn plan(directory: &Path, root: &str) -> WalkPlan {
        let workspace = Arc::new(open_workspace(directory));
        WalkPlan::new(&workspace, WalkOptions::everything_below(root)).expect("it is a walk")
    }

    /// Walks a directory and returns the visited paths and the problems.
    fn walked(directory: &Path, root: &str) -> (Vec<String>, Vec<String>) {
        let (plan, problems) = (plan(directory, root), WalkProblems::default());
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
    fn r121_the_nearest_rule_wins_and_applies_below_its_directory() {
        let directory = directory_with(&FILES);
        assert_eq!(
            walked(directory.path(), ""),
            (["keep.log", "sub", "sub/a.log"].map(str::to_owned).to_vec(), Vec::new())
        );
        assert_eq!(walked(directory.path(), "sub").0, ["sub/a.log"]);
        // Outside of a repository git's rules do not apply.
        std::fs::remove_dir_all(directory.path().join(".git")).expect("remove the directory");
        assert_eq!(
            walked(directory.path(), "").0,
            ["a.log", "keep.log", "private", "sub", "sub/a.log"]
        );
    }

    #[test]
    fn r123_rules_are_read_only_from_files_of_the_workspace() {
        let outside = directory_with(&[("secret", "[SECRET\nseen\n")]);
        let there = outside.path().join("secret");
        for (name, target) in [
            (".ignore", Path::new("/dev/zero")),
            (".gitignore", &there),
            (".ignore", Path::new(".env")),
        ] {
            let directory =
                directory_with(&[(".git/HEAD", ""), (".env", "[SECRET\nseen\n"), ("seen", "")]);
            symlink(target, directory.path().join(name)).expect("create the link");
            let (visited, problems) = walked(directory.path(), "");
            assert_eq!(visited, ["seen"], "{name}");
            assert_eq!(problems, [format!("{name}: not a regular file; its rules are ignored")]);
        }
        // A directory that became a link after it was listed is not followed.
        let directory = directory_with(&[("d/file", "")]);
        let (plan, problems) = (plan(directory.path(), ""), WalkProblems::default());
        let mut tree = TreeWalk::new(&plan, &problems);
        assert_eq!(tree.next().map(|found| found.path).as_deref(), Some("d"));
        std::fs::rename(directory.path().join("d"), directory.path().join("e"))
            .expect("rename the file");
        symlink(outside.path(), directory.path().join("d")).expect("create the link");
        assert!(tree.next().is_none());
        assert!(
            problems.sorted_lines().len() == 1 && problems.sorted_lines()[0].starts_with("d: "),
            "{:?}",
            problems.sorted_lines()
        );
    }

    #[test]
    fn rule_files_never_block_and_are_limited_in_size() {
        let directory = directory_with(&[
            (".git/HEAD", ""),
            ("big/.gitignore", &"x\n".repeat(200_000)),
            ("many/.ignore", &"x\n".repeat(30_000)),
        ]);
        let status =
            std::process::Command::new("mkfifo").arg(directory.path().join(".gitignore")).status();
        assert!(status.expect("it starts").success());
        let (visited, problems) = walked(directory.path(), "");
        assert_eq!(visited, ["big", "many"]);
        let suffix = "; its rules are ignored";
        let reasons: Vec<_> = problems.iter().map(|line| line.strip_suffix(suffix)).collect();
        let expected = [
            ".gitignore: not a regular file",
            "big/.gitignore: larger than 256 KiB",
            "many/.ignore: the limit of 20000 rules would be exceeded",
        ];
        assert_eq!(reasons, expected.map(Some));
    }

    #[test]
    fn problems_never_quote_a_rule() {
        let directory =
            directory_with(&[(".ignore", "fine\nTOKEN={[z-a]\n"), ("fine", ""), ("seen", "")]);
        assert_eq!(
            walked(directory.path(), ""),
            (vec!["seen".into()], vec![".ignore: line 2 is not a valid rule".into()])
        );
    }

    #[test]
    fn r098_a_deeply_nested_rule_is_skipped_and_the_others_apply() {
        for braces in [3_000, 30_000] {
            let directory = directory_with(&[
                (".ignore", &format!("fine\n{}\n", "{".repeat(braces))),
                ("fine", ""),
                ("seen", ""),
            ]);
            assert_eq!(
                walked(directory.path(), ""),
                (vec!["seen".into()], vec![".ignore: line 2 is not a valid rule".into()])
            );
        }
    }

    #[test]
    fn r101_a_stopped_walk_takes_no_further_step() {
        let directory = directory_with(&[("a", ""), ("b", "")]);
        let (plan, problems) = (plan(directory.path(), ""), WalkProblems::default());
        let mut tree = TreeWalk::new(&plan, &problems);
        assert!(tree.next().is_some());
        plan.stop.stop();
        assert!(tree.next().is_none());
    }
}
