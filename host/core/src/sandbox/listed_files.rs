//! Scans the workspace for the files on the built-in lists of instruction files and of files that
//! run code. Comparing two scans finds the changes between them.
//!
//! A scan is limited in entries, files and bytes. It is breadth-first, so what it misses is deep in
//! the tree.

use std::collections::{BTreeMap, VecDeque};
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use cap_std::fs::MetadataExt as _;

use super::files::WorkspaceFilesView;
use super::rooted_fs::{self, FileKind};
use super::workspace::Workspace;
use crate::policy::ComponentDigest;
use crate::policy::{ApprovalPaths, BuiltInList, PathProtection, WorkspacePath};
use crate::terminal_escape;
use cofferdam_confine::git;
use cofferdam_confine::links;

/// The number of directory entries that one scan visits.
const MAX_ENTRIES: usize = 200_000;
/// The number of listed files that one scan remembers.
const MAX_FILES: usize = 4096;
/// The largest file that is compared by content, in bytes. Larger ones are compared by size and
/// times.
const MAX_HASHED_FILE_SIZE: u64 = 1 << 20;
/// The bytes of all files that are compared by content.
const MAX_HASHED_BYTES: u64 = 64 << 20;
/// The number of link targets that one scan remembers.
const MAX_LINKS: usize = 4096;
/// The number of characters of a path that are shown.
const MAX_SHOWN_PATH_LEN: usize = 200;
/// Directories of third-party packages, which are not scanned.
pub(super) const PACKAGE_DIRECTORIES: &[&str] = &["node_modules", "site-packages", ".venv", "venv"];

/// Directories of an unfinished git operation. No other entry of `.git` is listed.
pub(super) const UNFINISHED: &[&str] = &["rebase-apply", "rebase-merge", "sequencer"];

/// The listed files that one scan found.
#[derive(Clone, Debug, Default)]
pub struct ListedFiles {
    files: BTreeMap<String, ListedFile>,
    aliases: Vec<(WorkspacePath, WorkspacePath)>,
    protected_targets: Vec<(WorkspacePath, PathProtection)>,
    on_the_way: Vec<WorkspacePath>,
    /// The directories that are repositories or have an entry `.git`.
    repositories: Vec<PathBuf>,
    is_truncated: bool,
    not_analysed: Option<String>,
}

/// The number of repositories and worktrees that are remembered.
const MOST_REPOSITORIES: usize = 4096;

/// A listed file at the time of the scan.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ListedFile {
    /// The list that the file is on.
    pub list: BuiltInList,
    /// The version of the file. Equal texts mean equal content.
    pub version: String,
}

/// A change of a listed file between two scans.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ListedChange {
    /// The path of the file, relative to the workspace.
    pub path: String,
    /// The list that the file is on.
    pub list: BuiltInList,
    /// The version now; `None` if the file is gone.
    pub version: Option<String>,
    /// Whether the file existed before.
    pub existed: bool,
}

impl ListedFiles {
    /// Returns the files with their paths.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &ListedFile)> {
        self.files.iter().map(|(path, file)| (path.as_str(), file))
    }

    /// Returns the targets of links that give them a listed path: the real path, and the link.
    pub fn aliases(&self) -> impl Iterator<Item = (&WorkspacePath, &WorkspacePath)> {
        self.aliases.iter().map(|(real, link)| (real, link))
    }

    /// Returns the targets of protected links. Programs obey the targets as if they were at the
    /// link's path.
    pub fn protected_targets(&self) -> impl Iterator<Item = (&WorkspacePath, PathProtection)> {
        self.protected_targets.iter().map(|(path, protection)| (path, *protection))
    }

    /// Returns the links and directories on the way to these targets.
    pub fn on_the_way(&self) -> impl Iterator<Item = &WorkspacePath> {
        self.on_the_way.iter()
    }

    /// Returns the directories of repositories, and the settings files of cargo, which can include
    /// other settings.
    pub(crate) fn settings_roots(&self) -> (Vec<PathBuf>, Vec<PathBuf>) {
        let is_of_cargo =
            |path: &&Path| path.ends_with(".cargo/config") || path.ends_with(".cargo/config.toml");
        let files = self.files.keys().map(Path::new).filter(is_of_cargo);
        (self.repositories.clone(), files.map(Path::to_owned).collect())
    }

    /// Returns whether the workspace exceeds a limit of the scan.
    pub fn is_truncated(&self) -> bool {
        self.is_truncated
    }

    /// Returns why the settings of a repository are not analysed, if they exceed a limit. Its files
    /// are then protected from tools.
    pub fn not_analysed(&self) -> Option<&str> {
        self.not_analysed.as_deref()
    }

    /// Returns the changes since an earlier scan. If the second scan may have missed a file, the
    /// file does not count as removed.
    pub fn changes_since(&self, before: &Self) -> Vec<ListedChange> {
        let mut changes = Vec::new();
        for (path, file) in &self.files {
            let had = before.files.get(path);
            if had.is_none_or(|had| had.version != file.version)
                && (had.is_some() || !before.is_truncated)
            {
                let version = Some(file.version.clone());
                changes.push(ListedChange {
                    path: path.clone(),
                    list: file.list,
                    version,
                    existed: had.is_some(),
                });
            }
        }
        let gone = before
            .files
            .iter()
            .filter(|(path, _)| !self.is_truncated && !self.files.contains_key(*path));
        changes.extend(gone.map(|(path, had)| ListedChange {
            path: path.clone(),
            list: had.list,
            version: None,
            existed: true,
        }));
        changes
    }
}

impl ListedChange {
    /// Describes the change for the person who reviews it.
    pub fn describe(&self) -> String {
        let done = match (self.existed, &self.version) {
            (_, None) => "removed",
            (true, Some(_)) => "changed",
            (false, Some(_)) => "created",
        };
        format!(
            "{done} {}, one of the files that {}",
            terminal_escape::escape_name(&self.path, MAX_SHOWN_PATH_LEN),
            self.list.describe()
        )
    }
}

impl Workspace {
    /// Scans the workspace for listed files. Blocks the thread.
    pub fn scan_listed_files(self: &Arc<Self>) -> ListedFiles {
        let mut scan = ListedFilesScan {
            workspace: self,
            view: WorkspaceFilesView::new(Arc::clone(self), None),
            asked_paths: ApprovalPaths::default(),
            found: ListedFiles::default(),
            pending: VecDeque::from([ListedDirectory::default()]),
            pending_links: VecDeque::new(),
            repositories: Vec::new(),
            entries: 0,
            bytes: 0,
        };
        while let Some(directory) =
            scan.pending.pop_front().or_else(|| scan.pending_links.pop_front())
        {
            if scan.found.is_truncated {
                break;
            }
            scan.visit_directory(&directory);
        }
        let named = self.named_by_git(&scan.repositories);
        // git may run any file of a repository whose settings are not analysed.
        let whole = named.not_analysed.iter().flat_map(|top| self.entries_of_repository(top));
        let named_or_whole: Vec<PathBuf> = named.paths.iter().cloned().chain(whole).collect();
        let paths = named_or_whole
            .iter()
            .filter_map(|path| WorkspacePath::parse(path.to_str()?, None).ok());
        scan.found.protected_targets.extend(paths.map(|path| (path, PathProtection::ReadOnly)));
        scan.found.not_analysed = named.problem;
        scan.found.repositories = scan.repositories;
        let (repositories, files) = scan.found.settings_roots();
        self.set_settings_roots(repositories, files);
        scan.found
    }

    /// Returns the directory of a repository. For the workspace itself returns its entries, because
    /// it cannot be protected as a whole.
    fn entries_of_repository(&self, top: &Path) -> Vec<PathBuf> {
        if !top.as_os_str().is_empty() {
            return vec![top.to_owned()];
        }
        let names = rooted_fs::list(self.dir(), "").into_iter().flatten().flatten();
        names
            .map(|(name, _)| PathBuf::from(name))
            .filter(|name| !git::is_same_name(&name.to_string_lossy(), ".git"))
            .collect()
    }

    /// Scans the workspace if links may have changed since the last scan by this function.
    pub async fn look_for_new_links(self: &Arc<Self>) -> Option<ListedFiles> {
        if self.take_new_links() { Some(self.scan_listed_files_async().await) } else { None }
    }

    /// Scans the workspace on a blocking thread.
    pub(super) async fn scan_listed_files_async(self: &Arc<Self>) -> ListedFiles {
        let workspace = Arc::clone(self);
        // A scan that fails has seen nothing and counts as truncated.
        let failed = ListedFiles { is_truncated: true, ..ListedFiles::default() };
        tokio::task::spawn_blocking(move || workspace.scan_listed_files()).await.unwrap_or(failed)
    }
}

/// A directory that is still to be scanned.
#[derive(Default)]
struct ListedDirectory {
    /// The real path of the directory.
    real_path: String,
    /// The path by which the scan reached the directory, which may contain a link.
    path: String,
    /// Whether a component of the path can be part of a listed path.
    may_match: bool,
    through_link: bool,
}

struct ListedFilesScan<'a> {
    workspace: &'a Arc<Workspace>,
    view: WorkspaceFilesView,
    asked_paths: ApprovalPaths,
    found: ListedFiles,
    pending: VecDeque<ListedDirectory>,
    /// Scanned after all others, so that links cannot crowd out ordinary directories.
    pending_links: VecDeque<ListedDirectory>,
    /// Directories that are repositories or have an entry `.git`.
    repositories: Vec<PathBuf>,
    entries: usize,
    bytes: u64,
}

impl ListedFilesScan<'_> {
    fn visit_directory(&mut self, directory: &ListedDirectory) {
        let Ok(names) = rooted_fs::list(self.workspace.dir(), &directory.real_path) else { return };
        let names: Vec<_> = names.into_iter().flatten().collect();
        let is_repository = names.iter().any(|(name, _)| git::is_same_name(name, ".git"))
            || git::is_repository(
                names.iter().map(|(name, kind)| (name.as_str(), *kind == FileKind::Directory)),
            );
        if is_repository && !directory.through_link && self.repositories.len() < MOST_REPOSITORIES {
            self.repositories.push(PathBuf::from(&directory.real_path));
        }
        for (name, kind) in names {
            self.entries += 1;
            if self.entries > MAX_ENTRIES || self.found.files.len() >= MAX_FILES {
                self.found.is_truncated = true;
                return;
            }
            let may_be = directory.may_match || ApprovalPaths::may_match(&name);
            // Nearly all entries take this path.
            if kind == FileKind::File && !may_be {
                continue;
            }
            let (real, path) = (
                rooted_fs::join(&directory.real_path, &name),
                rooted_fs::join(&directory.path, &name),
            );
            let may_lead = kind == FileKind::Link && ApprovalPaths::may_match_link(&name);
            if kind != FileKind::Directory && (may_be || may_lead) {
                self.record_file(&real, &path, kind);
            }
            if kind == FileKind::Link && !directory.through_link {
                let protection = self.workspace.guard().protection(&path);
                for rest in self.workspace.guard().paths().read_only_below(path.split('/')) {
                    self.protect(&rooted_fs::join(&real, &rest), PathProtection::ReadOnly, 0);
                }
                if protection.is_some()
                    || may_be
                    || ApprovalPaths::may_match_link(&name)
                    || self.leads_to_packages(&real)
                {
                    self.follow_link(&real, &path, protection);
                }
            }
            if kind == FileKind::Directory {
                self.enqueue(
                    &name,
                    ListedDirectory {
                        real_path: real,
                        path,
                        may_match: may_be,
                        through_link: directory.through_link,
                    },
                );
            }
        }
    }

    fn enqueue(&mut self, name: &str, inner: ListedDirectory) {
        let is_own = self.workspace.guard().check_read(&inner.real_path).is_err();
        if is_own || PACKAGE_DIRECTORIES.contains(&name) {
            return;
        }
        if name.eq_ignore_ascii_case(".git") {
            // The files that git obeys can be links.
            for rest in self.workspace.guard().paths().read_only_below(inner.path.split('/')) {
                let obeyed = rooted_fs::join(&inner.real_path, &rest);
                if !self.chain(&obeyed, 0).0.is_empty() {
                    self.protect(&obeyed, PathProtection::ReadOnly, 0);
                }
            }
            for name in UNFINISHED {
                let (real, path) =
                    (rooted_fs::join(&inner.real_path, name), rooted_fs::join(&inner.path, name));
                self.pending.push_back(ListedDirectory { real_path: real, path, ..inner });
            }
        } else if inner.through_link {
            self.pending_links.push_back(inner);
        } else {
            self.pending.push_back(inner);
        }
    }

    fn record_file(&mut self, real: &str, path: &str, kind: FileKind) {
        let listed = WorkspacePath::parse(path, None).ok().and_then(|path| {
            // In place of a directory, a link decides what the listed paths below are.
            let leads_outside = || kind == FileKind::Link && self.leads_outside(real);
            self.asked_paths
                .find(&path)
                .or_else(|| leads_outside().then(|| self.asked_paths.find_link(&path)).flatten())
        });
        if let Some(listed) = listed {
            let version = match kind {
                FileKind::File => self.file_version(real),
                FileKind::Link => {
                    let to = rooted_fs::read_link(self.workspace.dir(), real).unwrap_or_default();
                    let target = self
                        .view
                        .resolve_existing(real)
                        .ok()
                        .flatten()
                        .map(|place| self.file_version(&place));
                    format!("link to {to}, {}", target.unwrap_or_default())
                }
                FileKind::Directory | FileKind::Special => "no file".to_owned(),
            };
            self.found.files.insert(path.to_owned(), ListedFile { list: listed.list, version });
        }
    }

    /// Returns the version of a file, as far as a tool may know it.
    fn file_version(&mut self, place: &str) -> String {
        if self.workspace.guard().check_read(place).is_err() {
            return "hidden".to_owned();
        }
        let Ok((file, metadata)) = rooted_fs::open(self.workspace.dir(), place) else {
            return "no file".to_owned();
        };
        let by_time = || {
            format!("{} bytes of {}.{:09}", metadata.len(), metadata.ctime(), metadata.ctime_nsec())
        };
        self.bytes = self.bytes.saturating_add(metadata.len().min(MAX_HASHED_FILE_SIZE));
        if metadata.len() > MAX_HASHED_FILE_SIZE || self.bytes > MAX_HASHED_BYTES {
            return by_time();
        }
        let mut content = Vec::new();
        match file.take(MAX_HASHED_FILE_SIZE).read_to_end(&mut content) {
            Ok(_) => format!("sha256:{}", ComponentDigest::compute(&content)),
            Err(_) => by_time(),
        }
    }

    fn read_link(&self, place: &Path) -> Option<PathBuf> {
        match place.strip_prefix(self.workspace.root()) {
            Ok(inside) => {
                rooted_fs::read_link(self.workspace.dir(), inside.to_str()?).ok().map(PathBuf::from)
            }
            Err(_) => std::fs::read_link(place).ok(),
        }
    }

    /// Whether a link leads out of the workspace.
    fn leads_outside(&self, real: &str) -> bool {
        let root = self.workspace.root();
        links::follow(root, Path::new(real), |place| self.read_link(place))
            .end
            .is_some_and(|end| !end.starts_with(root))
    }

    /// Whether a link names a directory of packages, which it makes a directory of the project.
    fn leads_to_packages(&self, real: &str) -> bool {
        let target = rooted_fs::read_link(self.workspace.dir(), real).unwrap_or_default();
        target.split('/').any(|part| PACKAGE_DIRECTORIES.contains(&part))
    }

    /// The links on the way from a path, but for the first ones, and where it leads.
    fn chain(
        &mut self,
        real: &str,
        but_first: usize,
    ) -> (Vec<WorkspacePath>, Option<WorkspacePath>) {
        let chain =
            links::follow(self.workspace.root(), Path::new(real), |place| self.read_link(place));
        self.entries = self.entries.saturating_add(chain.parts);
        let inside = |whole: &Path| {
            WorkspacePath::parse(whole.strip_prefix(self.workspace.root()).ok()?.to_str()?, None)
                .ok()
        };
        let end = chain.end.as_deref().and_then(inside).filter(|end| !end.as_str().is_empty());
        (chain.links.iter().skip(but_first).filter_map(|link| inside(link)).collect(), end)
    }

    /// Records that the target of a path is protected, and with it the links and directories on the
    /// way.
    fn protect(
        &mut self,
        real: &str,
        protection: PathProtection,
        skipped: usize,
    ) -> (Vec<WorkspacePath>, Option<WorkspacePath>) {
        let (links, end) = self.chain(real, skipped);
        self.found
            .on_the_way
            .extend(links.iter().chain(&end).flat_map(directories_of).chain(links.iter().cloned()));
        self.found.protected_targets.extend(end.iter().map(|end| (end.clone(), protection)));
        (links, end)
    }

    /// Records the target of a link, also through further links, as far as it is in the workspace.
    fn follow_link(&mut self, real: &str, path: &str, protection: Option<PathProtection>) {
        let Ok(link) = WorkspacePath::parse(path, None) else { return };
        if self.found.aliases.len() >= MAX_LINKS {
            self.found.is_truncated = true;
            return;
        }
        let (on_the_way, end) = match protection {
            Some(protection) => self.protect(real, protection, 1),
            None => self.chain(real, 1),
        };
        self.found
            .aliases
            .extend(on_the_way.into_iter().chain(end).map(|path| (path, link.clone())));
        let Ok(Some(place)) = self.view.resolve_existing(real) else { return };
        // A link to a directory above itself leads to nothing new.
        let leads_up = place.is_empty() || real.starts_with(&format!("{place}/"));
        if !leads_up
            && rooted_fs::symlink_metadata(self.workspace.dir(), &place)
                .is_ok_and(|metadata| FileKind::from_metadata(&metadata) == FileKind::Directory)
        {
            self.pending_links.push_back(ListedDirectory {
                real_path: place,
                path: path.to_owned(),
                may_match: true,
                through_link: true,
            });
        }
    }
}

/// Returns the parent directories of a path, below the workspace.
fn directories_of(path: &WorkspacePath) -> impl Iterator<Item = WorkspacePath> {
    path.as_str()
        .match_indices('/')
        .filter_map(|(end, _)| WorkspacePath::parse(&path.as_str()[..end], None).ok())
}

#[cfg(test)]
mod tests;
