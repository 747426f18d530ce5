//! The rules of `.ignore`, `.gitignore` and `.git/info/exclude`.
//!
//! These files are written by the authors of the project, so they are read like any other file of
//! it: below the workspace, without following links, without blocking, and up to a size limit. No
//! part of a line is quoted in messages, because reading the file was not approved. The `ignore`
//! crate, which ripgrep uses, interprets the rules.
//!
//! The rule of the nearest directory wins. The precedence is `.ignore`, `.gitignore`,
//! `.git/info/exclude`, and the user's global rules. Git's rules apply in repositories, up to the
//! directory with `.git`. If `.git` is a file, it names a directory elsewhere, whose rules are not
//! read.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::Path;

use cap_std::fs::Dir;
use ignore::Match;
use ignore::gitignore::{Gitignore, GitignoreBuilder};

use super::WalkProblems;
use super::options::is_safe_glob;
use crate::sandbox::rooted_fs::{self, join};
use crate::sandbox::workspace::Workspace;

/// The largest file of rules, in bytes. The longest in use have a few thousand lines.
const MAX_FILE_SIZE: u64 = 256 << 10;
/// The number of rules in force at one path. Each takes about a kilobyte of host memory.
const MAX_RULES: usize = 20_000;

const IGNORE: &str = ".ignore";
const GIT_IGNORE: &str = ".gitignore";
const GIT_EXCLUDE: &str = ".git/info/exclude";
/// The entries that mark the root of a repository.
const REPOSITORY_DIRECTORIES: [&str; 2] = [".git", ".jj"];

/// The rules in force at one path of a walk.
pub(super) struct IgnoreRules {
    /// The rules of each directory, from the outermost one inward.
    levels: Vec<DirectoryRules>,
    global: Gitignore,
    /// The number of rules of all levels.
    count: usize,
}

/// The rules of one directory; `None` for a file without rules.
#[derive(Default)]
struct DirectoryRules {
    ignore: Option<Gitignore>,
    git_ignore: Option<Gitignore>,
    exclude: Option<Gitignore>,
    is_repository: bool,
}

/// A directory whose rules are read.
struct RuleSource<'a> {
    /// The open directory in which `rel_path` is opened.
    root: &'a Dir,
    rel_path: &'a str,
    /// The directory as a prefix of the paths that are matched.
    path: &'a Path,
    /// The guard and the problem list; `None` outside of the workspace, where problems are not
    /// reported.
    reporting: Option<(&'a Workspace, &'a WalkProblems)>,
}

impl IgnoreRules {
    /// Reads the rules of all directories above a path.
    pub(super) fn from_parents(
        workspace: &Workspace,
        place: &str,
        problems: &WalkProblems,
    ) -> Self {
        let (global, _) = GitignoreBuilder::new(workspace.root()).build_global();
        let mut rules = Self { levels: Vec::new(), global, count: 0 };
        let mut outside: Vec<&Path> = workspace.root().ancestors().skip(1).collect();
        outside.reverse();
        for path in outside {
            if let Ok(root) = Dir::open_ambient_dir(path, cap_std::ambient_authority()) {
                rules.push_level(
                    &RuleSource { root: &root, rel_path: "", path, reporting: None },
                    &|_| true,
                );
            }
        }
        for (end, _) in place.match_indices('/').chain([(place.len(), "")]) {
            let above = rooted_fs::split(&place[..end]).0;
            if !place.is_empty() {
                rules.enter(workspace, above, &|_| true, problems);
            }
        }
        rules
    }

    /// Adds the rules of a directory. `holds` returns whether the directory has an entry of this
    /// name.
    pub(super) fn enter(
        &mut self,
        workspace: &Workspace,
        place: &str,
        holds: &dyn Fn(&str) -> bool,
        problems: &WalkProblems,
    ) {
        let path = super::options::absolute_path(workspace, place);
        self.push_level(
            &RuleSource {
                root: workspace.dir(),
                rel_path: place,
                path: &path,
                reporting: Some((workspace, problems)),
            },
            holds,
        );
    }

    /// Removes the rules of the directory that was entered last.
    pub(super) fn leave(&mut self) {
        if let Some(level) = self.levels.pop() {
            let rules = [&level.ignore, &level.git_ignore, &level.exclude].into_iter().flatten();
            self.count -= rules.map(Gitignore::len).sum::<usize>();
        }
    }

    /// Matches a path against the rules in force.
    pub(super) fn matched(&self, path: &Path, is_directory: bool) -> Match<()> {
        let ask = |rules: &Option<Gitignore>| {
            rules
                .as_ref()
                .map_or(Match::None, |rules| rules.matched(path, is_directory).map(|_| ()))
        };
        let is_in_repository = self.levels.iter().any(|level| level.is_repository);
        let (mut ignore, mut git_ignore, mut exclude) = (Match::None, Match::None, Match::None);
        let mut is_same_repository = is_in_repository;
        for level in self.levels.iter().rev() {
            ignore = ignore.or(ask(&level.ignore));
            if is_same_repository {
                git_ignore = git_ignore.or(ask(&level.git_ignore));
                exclude = exclude.or(ask(&level.exclude));
            }
            is_same_repository &= !level.is_repository;
        }
        let global = if is_in_repository {
            self.global.matched(path, is_directory).map(|_| ())
        } else {
            Match::None
        };
        ignore.or(git_ignore).or(exclude).or(global)
    }

    fn push_level(&mut self, source: &RuleSource<'_>, holds: &dyn Fn(&str) -> bool) {
        let is_there = |name: &&str| {
            holds(name)
                && rooted_fs::symlink_metadata(source.root, &join(source.rel_path, name)).is_ok()
        };
        let mut read = |name: &str, if_there: &str| {
            if holds(if_there) { self.read_rules(source, name) } else { None }
        };
        let level = DirectoryRules {
            ignore: read(IGNORE, IGNORE),
            git_ignore: read(GIT_IGNORE, GIT_IGNORE),
            exclude: read(GIT_EXCLUDE, REPOSITORY_DIRECTORIES[0]),
            is_repository: REPOSITORY_DIRECTORIES.iter().any(is_there),
        };
        self.levels.push(level);
    }

    fn read_rules(&mut self, source: &RuleSource<'_>, name: &str) -> Option<Gitignore> {
        let place = join(source.rel_path, name);
        let problem =
            |what: &str| source.report(|| format!("{place}: {what}; its rules are ignored"));
        if let Some((workspace, problems)) = source.reporting
            && let Err(denial) = workspace.guard().check_read(&place)
        {
            problems.add_denial(&denial);
            return None;
        }
        let text = match rooted_fs::open(source.root, &place) {
            Ok((file, metadata)) if metadata.len() <= MAX_FILE_SIZE => read_content(file),
            Ok(_) => {
                problem(&format!("larger than {} KiB", MAX_FILE_SIZE >> 10));
                return None;
            }
            Err(error) => Err(error),
        };
        let text = match text {
            Ok(text) => text,
            // `.git` is a file or a link, or the file does not exist.
            Err(_) if name == GIT_EXCLUDE => return None,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return None,
            Err(error) if error.kind() == io::ErrorKind::InvalidInput => {
                problem("not a regular file");
                return None;
            }
            Err(error) => {
                problem(&error.to_string());
                return None;
            }
        };
        let mut builder = GitignoreBuilder::new(source.path);
        for (number, line) in lines(&text).enumerate() {
            let Some(line) = line else {
                problem(&format!("line {} is not UTF-8", number + 1));
                return None;
            };
            if !is_safe_glob(line) || builder.add_line(None, line).is_err() {
                // The parser's message would quote a part of the line.
                source.report(|| format!("{place}: line {} is not a valid rule", number + 1));
            }
        }
        let Ok(rules) = builder.build() else {
            problem("the rules cannot be compiled together");
            return None;
        };
        if self.count + rules.len() > MAX_RULES {
            problem(&format!("the limit of {MAX_RULES} rules would be exceeded"));
            return None;
        }
        self.count += rules.len();
        (!rules.is_empty()).then_some(rules)
    }
}

impl RuleSource<'_> {
    fn report(&self, problem: impl FnOnce() -> String) {
        if let Some((_, problems)) = self.reporting {
            problems.add(problem);
        }
    }
}

fn read_content(file: File) -> io::Result<Vec<u8>> {
    let mut text = Vec::new();
    file.take(MAX_FILE_SIZE).read_to_end(&mut text)?;
    Ok(text)
}

/// Returns the lines without line ends and without a byte order mark; `None` for a line that is not
/// UTF-8.
fn lines(text: &[u8]) -> impl Iterator<Item = Option<&str>> {
    let text = text.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(text);
    let text = text.strip_suffix(b"\n").unwrap_or(text);
    text.split(|byte| *byte == b'\n')
        .map(|line| std::str::from_utf8(line.strip_suffix(b"\r").unwrap_or(line)).ok())
}
