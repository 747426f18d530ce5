//! A reader for settings files with everything that they include, and the paths that they name.

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::fs::{self, OpenOptions};
use std::io::{self, Read as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::OFlags;

use super::budget::ReadingBudget;
use super::error::{GitLimit, GitSettingsError, GitSettingsProblem};
use super::programs::{SettingValueKind, kind_of};
use super::settings::{GitSetting, parse_within};
use super::user::{UserSettings, expanded};
use super::words::paths_in;

/// The maximum size of one settings file, in bytes.
pub(super) const LARGEST: u64 = 16 << 20;
/// The maximum depth of includes, which is git's own limit.
const MOST_LEVELS: usize = 10;
/// The maximum number of files read for one repository.
pub(super) const MOST_FILES: usize = 1000;
/// The maximum number of paths that the settings of one repository name.
pub(super) const MOST_PATHS: usize = 5000;
/// The maximum memory for the settings of one file, in bytes.
pub(super) const MOST_PARSED: usize = 64 << 20;

/// A path that a setting names.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct GitNamedPath {
    /// The path, absolute or relative to the top directory of each worktree.
    pub(super) path: PathBuf,
    pub(super) kind: NamedPathKind,
}

/// The kind of path that a setting names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum NamedPathKind {
    Directory,
    File,
    /// A word of a command line, which may not be a path.
    Word,
}

/// The files and directories that the settings of a repository name.
#[derive(Clone, Debug, Default)]
pub(super) struct NamedReferences {
    /// Absolute paths of included files, whether they exist or not.
    pub(super) includes: BTreeSet<PathBuf>,
    /// The values of the setting `core.worktree`.
    pub(super) worktrees: BTreeSet<PathBuf>,
    pub(super) named: BTreeSet<GitNamedPath>,
}

/// The contribution of one setting.
#[derive(Clone, Debug)]
enum SettingEffect {
    /// The path of another settings file.
    Include(PathBuf),
    Worktree(PathBuf),
    Named(GitNamedPath),
}

/// A reader of settings files with limits. It analyzes files with the same content once.
#[derive(Clone, Debug, Default)]
pub(super) struct SettingsReader {
    home: Option<PathBuf>,
    known: HashMap<Vec<u8>, Arc<[SettingEffect]>>,
    budget: ReadingBudget,
}

impl SettingsReader {
    pub(super) fn new(home: Option<PathBuf>) -> Self {
        Self { home, ..Self::default() }
    }

    /// Returns the budget of the current scan.
    pub(super) fn budget(&mut self) -> &mut ReadingBudget {
        &mut self.budget
    }

    /// Returns the names in these files and in the files that they include.
    ///
    /// A file that git rejects contributes nothing, because git does not run then.
    /// `tolerates_closed` means that git skips a file that the user cannot read.
    ///
    /// # Errors
    /// A file that git would read cannot be read here, or a limit is exceeded. The paths that it
    /// names cannot be protected then.
    pub(super) fn read(
        &mut self,
        files: &[PathBuf],
        tolerates_closed: bool,
    ) -> Result<NamedReferences, GitSettingsError> {
        let mut references = NamedReferences::default();
        let mut seen = BTreeSet::new();
        let mut ahead: VecDeque<(PathBuf, usize)> =
            files.iter().map(|file| (file.clone(), 0)).collect();
        while let Some((file, level)) = ahead.pop_front() {
            let chain = self
                .budget
                .trace(&file, Path::new(""))
                .map_err(|limit| GitSettingsError::new(&file, limit))?;
            // The links form a cycle, or there are more than git follows.
            let Some(real) = chain.end else { continue };
            if !seen.insert(real.clone()) {
                continue;
            }
            if seen.len() > MOST_FILES {
                let limit = self.budget.exceeded(GitLimit::IncludedFiles);
                return Err(GitSettingsError::new(&file, limit));
            }
            let Some(contributions) = self.contributions_of(&file, &real, tolerates_closed)? else {
                continue;
            };
            for contribution in contributions.iter() {
                match contribution {
                    // Conditions can change at any time, so each conditional include counts.
                    SettingEffect::Include(path) => {
                        let Some(included) = file.parent().map(|parent| parent.join(path)) else {
                            continue;
                        };
                        references.includes.insert(included.clone());
                        if level < MOST_LEVELS {
                            ahead.push_back((included, level + 1));
                        }
                    }
                    SettingEffect::Worktree(path) => {
                        references.worktrees.insert(path.clone());
                    }
                    SettingEffect::Named(named) => {
                        references.named.insert(named.clone());
                    }
                }
                if references.named.len() + references.includes.len() + references.worktrees.len()
                    > MOST_PATHS
                {
                    let limit = self.budget.exceeded(GitLimit::NamedPaths);
                    return Err(GitSettingsError::new(&file, limit));
                }
            }
        }
        Ok(references)
    }

    /// Returns the names in the files of the user and in the settings that environment variables
    /// hold.
    ///
    /// # Errors
    /// The same as for [`Self::read`].
    pub(super) fn read_user(
        &mut self,
        user: &UserSettings,
    ) -> Result<NamedReferences, GitSettingsError> {
        let mut contributions = Vec::new();
        for (name, value) in &user.variables {
            let Some((section, key)) = name.rsplit_once('.') else { continue };
            let section = section.split_once('.').map_or(section, |(section, _)| section);
            let setting = GitSetting {
                section: section.to_ascii_lowercase(),
                subsection: None,
                key: key.to_ascii_lowercase(),
                value: Some(value.clone()),
            };
            add_contributions(&setting, self.home.as_deref(), &mut contributions);
        }
        let include = |effect: &SettingEffect| match effect {
            SettingEffect::Include(path) => path.is_absolute().then(|| path.clone()),
            SettingEffect::Worktree(_) | SettingEffect::Named(_) => None,
        };
        let included: Vec<_> = contributions.iter().filter_map(include).collect();
        let files: Vec<_> = user.files.iter().chain(&included).cloned().collect();
        let mut references = self.read(&files, true)?;
        references.includes.extend(user.obeyed_files().chain(included));
        references.named.extend(contributions.into_iter().filter_map(|effect| match effect {
            SettingEffect::Named(named) => Some(named),
            SettingEffect::Include(_) | SettingEffect::Worktree(_) => None,
        }));
        Ok(references)
    }

    /// Returns the contributions of one file, whose path without links is `real`.
    fn contributions_of(
        &mut self,
        file: &Path,
        real: &Path,
        tolerates_closed: bool,
    ) -> Result<Option<Arc<[SettingEffect]>>, GitSettingsError> {
        let failed = |problem: GitSettingsProblem| GitSettingsError::new(file, problem);
        let bytes = match read(real) {
            Ok(None) => return Ok(None),
            Ok(Some(bytes)) => bytes,
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied && tolerates_closed => {
                return Ok(None);
            }
            Err(error) if error.kind() == io::ErrorKind::FileTooLarge => {
                return Err(failed(self.budget.exceeded(GitLimit::FileBytes).into()));
            }
            Err(error) => return Err(failed(error.into())),
        };
        self.budget.take_bytes(bytes.len() as u64).map_err(|limit| failed(limit.into()))?;
        if let Some(known) = self.known.get(&bytes) {
            return Ok(Some(Arc::clone(known)));
        }
        let contributions: Arc<[_]> = self
            .analyse(&String::from_utf8_lossy(&bytes))
            .map_err(|limit| failed(limit.into()))?
            .into();
        self.known.insert(bytes, Arc::clone(&contributions));
        Ok(Some(contributions))
    }

    fn analyse(&mut self, text: &str) -> Result<Vec<SettingEffect>, GitLimit> {
        let Ok(settings) = parse_within(text, MOST_PARSED) else {
            return Err(self.budget.exceeded(GitLimit::ParsedBytes));
        };
        let mut contributions = Vec::new();
        for setting in settings.unwrap_or_default() {
            let before = contributions.len();
            let is_naming = add_contributions(&setting, self.home.as_deref(), &mut contributions);
            self.budget.take_words(usize::from(is_naming) + contributions.len() - before)?;
        }
        Ok(contributions)
    }
}

/// Adds the names in one setting. Returns whether the setting names paths.
fn add_contributions(
    setting: &GitSetting,
    home: Option<&Path>,
    contributions: &mut Vec<SettingEffect>,
) -> bool {
    let GitSetting { section, key, value, .. } = setting;
    let Some(value) = value.as_deref().filter(|value| !value.is_empty()) else { return false };
    let path = || expanded(value, home);
    match (section.as_str(), key.as_str()) {
        ("include" | "includeif", "path") => contributions.push(SettingEffect::Include(path())),
        ("core", "worktree") => contributions.push(SettingEffect::Worktree(path())),
        _ => {
            let Some(kind) = kind_of(section, key) else { return false };
            let mut add = |path: PathBuf, kind| {
                contributions.push(SettingEffect::Named(GitNamedPath { path, kind }))
            };
            let mut add_line = |line: &str| {
                let words = paths_in(line);
                words.iter().for_each(|word| add(expanded(word, home), NamedPathKind::Word));
            };
            match kind {
                SettingValueKind::Directory => add(path(), NamedPathKind::Directory),
                SettingValueKind::File => add(path(), NamedPathKind::File),
                SettingValueKind::CommandLine => {
                    add_line(value.trim_start_matches('!'));
                    // git may also take the whole value as a path.
                    add(path(), NamedPathKind::Word);
                }
                SettingValueKind::Alias => match value.strip_prefix('!') {
                    Some(line) => add_line(line),
                    None => add_line(&format!("git {value}")),
                },
                SettingValueKind::Address => {
                    add_line(value.split_once("::").map_or("", |(_, line)| line))
                }
            }
        }
    }
    true
}

fn is_missing(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
        || error.raw_os_error() == Some(rustix::io::Errno::LOOP.raw_os_error())
}

/// Returns the content of a settings file, or `None` if the path does not exist or git rejects it.
fn read(file: &Path) -> io::Result<Option<Vec<u8>>> {
    let metadata = match fs::metadata(file) {
        Err(error) if is_missing(&error) => return Ok(None),
        metadata => metadata?,
    };
    if metadata.is_dir() {
        return Ok(None);
    }
    if !metadata.is_file() {
        if file.canonicalize().is_ok_and(|real| real == Path::new("/dev/null")) {
            return Ok(None);
        }
        return Err(io::Error::other("it is not a regular file"));
    }
    // A FIFO that replaced the file since the check must not block.
    let flags = i32::try_from(OFlags::NONBLOCK.bits()).unwrap_or_default();
    let opened = OpenOptions::new().read(true).custom_flags(flags).open(file)?;
    let mut bytes = Vec::new();
    opened.take(LARGEST + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > LARGEST {
        return Err(io::ErrorKind::FileTooLarge.into());
    }
    Ok(Some(bytes))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    fn folder() -> (tempfile::TempDir, PathBuf) {
        let folder = tempfile::tempdir().expect("a directory");
        let root = folder.path().canonicalize().expect("it is there");
        (folder, root)
    }

    #[test]
    fn includes_are_followed_as_far_as_git_does() {
        let (_folder, root) = folder();
        for level in 0..15 {
            let text = format!(
                "[include]\npath = c{}\n[includeIf \"gitdir:x\"]\npath=c0\n[core]\nhooksPath = \
                    h{level}\n",
                level + 1
            );
            fs::write(root.join(format!("c{level}")), text).expect("it is written");
        }
        let references =
            SettingsReader::default().read(&[root.join("c0")], false).expect("it is read");
        assert_eq!(references.named.len(), MOST_LEVELS + 1);
        assert!(references.includes.contains(&root.join("c11")));
    }

    #[test]
    fn what_cannot_be_read_is_an_error_and_what_git_refuses_names_nothing() {
        let (_folder, root) = folder();
        let file = root.join("config");
        let read = || SettingsReader::default().read(std::slice::from_ref(&file), false);
        let is_empty = || read().is_ok_and(|references| references.named.is_empty());
        assert!(is_empty());
        for target in ["missing", "config", "/dev/null", "/"] {
            symlink(target, &file).expect("a link");
            assert!(is_empty(), "{target}");
            fs::remove_file(&file).expect("it is removed");
        }
        fs::write(&file, "[core]\nhooksPath = x\n[broken").expect("it is written");
        assert!(is_empty());
        let large = |length: usize| "#".repeat(length) + "\n[core]\nhooksPath = x\n";
        fs::write(&file, large(15 << 20)).expect("it is written");
        assert_eq!(read().expect("it is read").named.len(), 1);
        fs::write(&file, large(16 << 20)).expect("it is written");
        let problem = read().expect_err("it is too large").to_string();
        assert!(
            problem.contains("larger than 16 MiB\n")
                && problem.contains("\nhint: repair or remove"),
            "{problem}"
        );
        fs::remove_file(&file).expect("it is removed");
        let _socket = std::os::unix::net::UnixListener::bind(&file).expect("it is bound");
        assert!(read().is_err_and(|problem| problem.to_string().contains("not a regular file")));
    }

    #[test]
    fn values_name_paths_in_the_way_of_their_setting() {
        let (_folder, root) = folder();
        let file = root.join("config");
        let named = |text: &str| {
            fs::write(&file, text).expect("it is written");
            let references = SettingsReader::new(Some("/home/u".into()))
                .read(std::slice::from_ref(&file), false)
                .expect("it is read");
            references
                .named
                .iter()
                .map(|named| format!("{:?} {}", named.kind, named.path.display()))
                .collect::<Vec<_>>()
        };
        for (text, expected) in [
            ("[core]\nhooksPath = ~/h", &["Directory /home/u/h"][..]),
            ("[core]\nattributesFile = a b", &["File a b"]),
            ("[filter \"x\"]\nclean = ./a %f", &["Word ./a", "Word ./a %f"]),
            ("[diff]\nexternal = ~/d", &["Word /home/u/d"]),
            ("[alias]\nx = !./a", &["Word ./a"]),
            ("[alias]\nx = bisect run ./a", &["Word ./a", "Word bisect", "Word git", "Word run"]),
            ("[alias]\nx = log src/a", &["Word git"]),
            ("[remote \"o\"]\nurl = ext::./a %S", &["Word ./a"]),
            ("[remote \"o\"]\nurl = ../other.git", &[]),
            ("[submodule \"s\"]\nupdate = !./a", &["Word ./a", "Word !./a"]),
            ("[core]\nfsmonitor\n[core]\npager = \"\"", &[]),
            ("[user]\nname = ./a", &[]),
        ] {
            assert_eq!(named(text), expected, "{text}");
        }
    }
}
