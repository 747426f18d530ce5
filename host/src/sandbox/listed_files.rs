//! The files of a workspace that are on the built-in lists of instructions and of files that run
//! code, as they are now. Two looks tell what changed between them.
//!
//! A look is bounded in entries, files and bytes, and goes from the outside in, so that what it
//! misses lies deep.

use std::collections::{BTreeMap, VecDeque};
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use cap_std::fs::MetadataExt as _;

use super::digest::ComponentDigest;
use super::files::WorkspaceFilesView;
use super::git;
use super::links;
use super::rooted_fs::{self, FileKind};
use super::workspace::Workspace;
use crate::policy::{ApprovalPaths, BuiltInList, PathProtection, WorkspacePath};
use crate::terminal_escape;

/// Entries of directories that one look visits.
const MAX_ENTRIES: usize = 200_000;
/// Listed files that one look remembers.
const MAX_FILES: usize = 4096;
/// Bytes of one file that are compared; a larger one is compared by its size and times.
const MAX_HASHED_FILE_SIZE: u64 = 1 << 20;
/// Bytes of all files that are compared.
const MAX_HASHED_BYTES: u64 = 64 << 20;
/// Places that links lead to.
const MAX_LINKS: usize = 4096;
/// Characters of a path that are shown.
const MAX_SHOWN_PATH_LEN: usize = 200;
/// Directories of packages, which hold what their authors published.
const PACKAGE_DIRECTORIES: &[&str] = &["node_modules", "site-packages", ".venv", "venv"];

/// Directories in which git keeps what it runs on with. Nothing else that it keeps is listed.
const UNFINISHED: &[&str] = &["rebase-apply", "rebase-merge", "sequencer"];

/// The listed files that one look found.
#[derive(Clone, Debug, Default)]
pub struct ListedFiles {
    files: BTreeMap<String, ListedFile>,
    aliases: Vec<(WorkspacePath, WorkspacePath)>,
    protected_targets: Vec<(WorkspacePath, PathProtection)>,
    on_the_way: Vec<WorkspacePath>,
    is_truncated: bool,
    not_analysed: Option<String>,
}

/// Repositories and worktrees that are remembered.
const MOST_REPOSITORIES: usize = 4096;

/// A listed file as it was at the time of the look.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListedFile {
    /// The list that it is on.
    pub list: BuiltInList,
    /// What it holds: the same text means the same content.
    pub version: String,
}

/// A listed file that is not what it was.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListedChange {
    /// Its path, from the workspace on.
    pub path: String,
    /// The list that it is on.
    pub list: BuiltInList,
    /// What it holds now; `None` if it is gone.
    pub version: Option<String>,
    /// Whether it was there before.
    pub existed: bool,
}

impl ListedFiles {
    /// The files by their paths.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &ListedFile)> {
        self.files.iter().map(|(path, file)| (path.as_str(), file))
    }

    /// Where links lead that give a listed path to something: the real path, and the link.
    pub fn aliases(&self) -> impl Iterator<Item = (&WorkspacePath, &WorkspacePath)> {
        self.aliases.iter().map(|(real, link)| (real, link))
    }

    /// Where links lead that are protected themselves: what is there is obeyed as if it were in
    /// their place.
    pub fn protected_targets(&self) -> impl Iterator<Item = (&WorkspacePath, PathProtection)> {
        self.protected_targets.iter().map(|(path, how)| (path, *how))
    }

    /// The links and directories that lead there.
    pub fn on_the_way(&self) -> impl Iterator<Item = &WorkspacePath> {
        self.on_the_way.iter()
    }

    /// Whether the workspace has more entries or listed files than one look takes.
    pub fn is_truncated(&self) -> bool {
        self.is_truncated
    }

    /// Why the settings of a repository are not analysed, if they exceed a limit. Its files are
    /// protected from tools then.
    pub fn not_analysed(&self) -> Option<&str> {
        self.not_analysed.as_deref()
    }

    /// What changed since an earlier look. A file that the second look may have missed does not
    /// count as gone.
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
    /// The change in words, for whoever has to review it.
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
    /// Looks for the listed files.
    pub fn scan_listed_files(self: &Arc<Self>) -> ListedFiles {
        let mut look = ListedFilesScan {
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
            look.pending.pop_front().or_else(|| look.pending_links.pop_front())
        {
            if look.found.is_truncated {
                break;
            }
            look.visit_directory(&directory);
        }
        let named = self.named_by_git(&look.repositories);
        // git may run any file of a repository whose settings are not analysed.
        let whole = named.not_analysed.iter().flat_map(|top| self.entries_of_repository(top));
        let named_or_whole: Vec<PathBuf> = named.paths.iter().cloned().chain(whole).collect();
        let paths = named_or_whole
            .iter()
            .filter_map(|path| WorkspacePath::parse(path.to_str()?, None).ok());
        look.found.protected_targets.extend(paths.map(|path| (path, PathProtection::ReadOnly)));
        look.found.not_analysed = named.problem;
        look.found
    }

    /// The directory of a repository; of the workspace itself the entries, since it cannot be
    /// protected as a whole.
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

    /// A look, if links may lead elsewhere than at the last one that this made.
    pub async fn look_for_new_links(self: &Arc<Self>) -> Option<ListedFiles> {
        if self.take_new_links() { Some(self.scan_listed_files_async().await) } else { None }
    }

    /// The same, off the threads that serve everybody.
    pub(super) async fn scan_listed_files_async(self: &Arc<Self>) -> ListedFiles {
        let workspace = Arc::clone(self);
        // A look that fails has seen nothing, and says that it is not complete.
        let failed = ListedFiles { is_truncated: true, ..ListedFiles::default() };
        tokio::task::spawn_blocking(move || workspace.scan_listed_files()).await.unwrap_or(failed)
    }
}

/// A directory to look into.
#[derive(Default)]
struct ListedDirectory {
    /// Where it really is.
    real_path: String,
    /// Its path, which has a link in it where a link led here.
    path: String,
    /// A part of its path can be part of a listed one.
    may_match: bool,
    through_link: bool,
}

struct ListedFilesScan<'a> {
    workspace: &'a Arc<Workspace>,
    view: WorkspaceFilesView,
    asked_paths: ApprovalPaths,
    found: ListedFiles,
    pending: VecDeque<ListedDirectory>,
    /// After all others, so that links cannot hide what lies in plain sight.
    pending_links: VecDeque<ListedDirectory>,
    /// Directories that are repositories, or that have an entry `.git`.
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
            // Nearly all entries are such.
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
            // What git obeys can be links.
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

    /// What a file holds, as far as a tool could know.
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

    /// Knows what a path leads to as protected, and so the way there.
    fn protect(
        &mut self,
        real: &str,
        how: PathProtection,
        but_first: usize,
    ) -> (Vec<WorkspacePath>, Option<WorkspacePath>) {
        let (links, end) = self.chain(real, but_first);
        self.found
            .on_the_way
            .extend(links.iter().chain(&end).flat_map(directories_of).chain(links.iter().cloned()));
        self.found.protected_targets.extend(end.iter().map(|end| (end.clone(), how)));
        (links, end)
    }

    /// Knows where a link leads, also over further links, as far as that is in the workspace.
    fn follow_link(&mut self, real: &str, path: &str, protection: Option<PathProtection>) {
        let Ok(link) = WorkspacePath::parse(path, None) else { return };
        if self.found.aliases.len() >= MAX_LINKS {
            self.found.is_truncated = true;
            return;
        }
        let (on_the_way, end) = match protection {
            Some(how) => self.protect(real, how, 1),
            None => self.chain(real, 1),
        };
        self.found
            .aliases
            .extend(on_the_way.into_iter().chain(end).map(|path| (path, link.clone())));
        let Ok(Some(place)) = self.view.resolve_existing(real) else { return };
        // A link to something above itself shows nothing that is not seen anyway.
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

/// The directories that a path lies in, below the workspace.
fn directories_of(path: &WorkspacePath) -> impl Iterator<Item = WorkspacePath> {
    path.as_str()
        .match_indices('/')
        .filter_map(|(end, _)| WorkspacePath::parse(&path.as_str()[..end], None).ok())
}

#[cfg(test)]
mod tests;
