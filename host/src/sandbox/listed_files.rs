//! The files of a workspace that are on the built-in lists of instructions and of files that run code, as they are now.
//! Two looks tell what changed between them.
//!
//! A look is bounded in entries, files and bytes, and goes from the outside in, so that what it misses lies deep.

use std::collections::{BTreeMap, VecDeque};
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use cap_std::fs::MetadataExt as _;

use super::below::{self, Kind};
use super::digest::Digest;
use super::files::View;
use super::git;
use super::links;
use super::workspace::Workspace;
use crate::policy::{AskedPaths, BuiltInList, Protected, WorkspacePath};
use crate::shown;

/// Entries of directories that one look visits.
const MOST_ENTRIES: usize = 200_000;
/// Listed files that one look remembers.
const MOST_FILES: usize = 4096;
/// Bytes of one file that are compared; a larger one is compared by its size and times.
const MOST_OF_FILE: u64 = 1 << 20;
/// Bytes of all files that are compared.
const MOST_BYTES: u64 = 64 << 20;
/// Places that links lead to.
const MOST_LINKS: usize = 4096;
/// Characters of a path that are shown.
const LONGEST_NAME: usize = 200;
/// Directories of packages, which hold what their authors published.
const PACKAGES: &[&str] = &["node_modules", "site-packages", ".venv", "venv"];

/// Directories in which git keeps what it runs on with. Nothing else that it keeps is listed.
const UNFINISHED: &[&str] = &["rebase-apply", "rebase-merge", "sequencer"];

/// The listed files that one look found.
#[derive(Clone, Debug, Default)]
pub struct ListedFiles {
    files: BTreeMap<String, ListedFile>,
    aliases: Vec<(WorkspacePath, WorkspacePath)>,
    behind_protected: Vec<(WorkspacePath, Protected)>,
    on_the_way: Vec<WorkspacePath>,
    is_cut: bool,
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
    pub was_there: bool,
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

    /// Where links lead that are protected themselves: what is there is obeyed as if it were in their place.
    pub fn behind_protected(&self) -> impl Iterator<Item = (&WorkspacePath, Protected)> {
        self.behind_protected.iter().map(|(path, how)| (path, *how))
    }

    /// The links and directories that lead there.
    pub fn on_the_way(&self) -> impl Iterator<Item = &WorkspacePath> {
        self.on_the_way.iter()
    }

    /// Whether the workspace has more entries or listed files than one look takes.
    pub fn is_cut(&self) -> bool {
        self.is_cut
    }

    /// Why the settings of a repository are not analysed, if they exceed a limit. Its files are protected from tools then.
    pub fn not_analysed(&self) -> Option<&str> {
        self.not_analysed.as_deref()
    }

    /// What changed since an earlier look. A file that the second look may have missed does not count as gone.
    pub fn changes_since(&self, before: &Self) -> Vec<ListedChange> {
        let mut changes = Vec::new();
        for (path, file) in &self.files {
            let had = before.files.get(path);
            if had.is_none_or(|had| had.version != file.version) && (had.is_some() || !before.is_cut) {
                let version = Some(file.version.clone());
                changes.push(ListedChange { path: path.clone(), list: file.list, version, was_there: had.is_some() });
            }
        }
        let gone = before.files.iter().filter(|(path, _)| !self.is_cut && !self.files.contains_key(*path));
        changes.extend(gone.map(|(path, had)| ListedChange { path: path.clone(), list: had.list, version: None, was_there: true }));
        changes
    }
}

impl ListedChange {
    /// The change in words, for whoever has to review it.
    pub fn describe(&self) -> String {
        let done = match (self.was_there, &self.version) {
            (_, None) => "removed",
            (true, Some(_)) => "changed",
            (false, Some(_)) => "created",
        };
        format!("{done} {}, one of the files that {}", shown::name(&self.path, LONGEST_NAME), self.list.does())
    }
}

impl Workspace {
    /// Looks for the listed files.
    pub fn listed_files(self: &Arc<Self>) -> ListedFiles {
        let mut look = Look {
            workspace: self,
            view: View::new(Arc::clone(self), None),
            asked: AskedPaths::default(),
            found: ListedFiles::default(),
            directories: VecDeque::from([Directory::default()]),
            through_links: VecDeque::new(),
            repositories: Vec::new(),
            entries: 0,
            bytes: 0,
        };
        while let Some(directory) = look.directories.pop_front().or_else(|| look.through_links.pop_front()) {
            if look.found.is_cut {
                break;
            }
            look.enter(&directory);
        }
        let named = self.named_by_git(&look.repositories);
        // git may run any file of a repository whose settings are not analysed.
        let whole = named.not_analysed.iter().flat_map(|top| self.entries_of_repository(top));
        let named_or_whole: Vec<PathBuf> = named.paths.iter().cloned().chain(whole).collect();
        let paths = named_or_whole.iter().filter_map(|path| WorkspacePath::parse(path.to_str()?, None).ok());
        look.found.behind_protected.extend(paths.map(|path| (path, Protected::ReadOnly)));
        look.found.not_analysed = named.problem;
        look.found
    }

    /// The directory of a repository; of the workspace itself the entries, since it cannot be protected as a whole.
    fn entries_of_repository(&self, top: &Path) -> Vec<PathBuf> {
        if !top.as_os_str().is_empty() {
            return vec![top.to_owned()];
        }
        let names = below::list(self.dir(), "").into_iter().flatten().flatten();
        names.map(|(name, _)| PathBuf::from(name)).filter(|name| !git::is_named(&name.to_string_lossy(), ".git")).collect()
    }

    /// A look, if links may lead elsewhere than at the last one that this made.
    pub async fn look_for_new_links(self: &Arc<Self>) -> Option<ListedFiles> {
        if self.take_new_links() { Some(self.look_for_listed_files().await) } else { None }
    }

    /// The same, off the threads that serve everybody.
    pub(super) async fn look_for_listed_files(self: &Arc<Self>) -> ListedFiles {
        let workspace = Arc::clone(self);
        // A look that fails has seen nothing, and says that it is not complete.
        let failed = ListedFiles { is_cut: true, ..ListedFiles::default() };
        tokio::task::spawn_blocking(move || workspace.listed_files()).await.unwrap_or(failed)
    }
}

/// A directory to look into.
#[derive(Default)]
struct Directory {
    /// Where it really is.
    real: String,
    /// Its path, which has a link in it where a link led here.
    path: String,
    /// A part of its path can be part of a listed one.
    may_be: bool,
    through_link: bool,
}

struct Look<'a> {
    workspace: &'a Arc<Workspace>,
    view: View,
    asked: AskedPaths,
    found: ListedFiles,
    directories: VecDeque<Directory>,
    /// After all others, so that links cannot hide what lies in plain sight.
    through_links: VecDeque<Directory>,
    /// Directories that are repositories, or that have an entry `.git`.
    repositories: Vec<PathBuf>,
    entries: usize,
    bytes: u64,
}

impl Look<'_> {
    fn enter(&mut self, directory: &Directory) {
        let Ok(names) = below::list(self.workspace.dir(), &directory.real) else { return };
        let names: Vec<_> = names.into_iter().flatten().collect();
        let is_repository = names.iter().any(|(name, _)| git::is_named(name, ".git"))
            || git::is_repository(names.iter().map(|(name, kind)| (name.as_str(), *kind == Kind::Directory)));
        if is_repository && !directory.through_link && self.repositories.len() < MOST_REPOSITORIES {
            self.repositories.push(PathBuf::from(&directory.real));
        }
        for (name, kind) in names {
            self.entries += 1;
            if self.entries > MOST_ENTRIES || self.found.files.len() >= MOST_FILES {
                self.found.is_cut = true;
                return;
            }
            let may_be = directory.may_be || AskedPaths::may_be(&name);
            // Nearly all entries are such.
            if kind == Kind::File && !may_be {
                continue;
            }
            let (real, path) = (below::join(&directory.real, &name), below::join(&directory.path, &name));
            if kind != Kind::Directory && may_be {
                self.take(&real, &path, kind);
            }
            if kind == Kind::Link && !directory.through_link {
                let protection = self.workspace.guard().protection(&path);
                for rest in self.workspace.guard().paths().read_only_below(path.split('/')) {
                    self.protect(&below::join(&real, &rest), Protected::ReadOnly, 0);
                }
                if protection.is_some() || may_be || AskedPaths::may_name_link(&name) {
                    self.follow(&real, &path, protection);
                }
            }
            if kind == Kind::Directory {
                self.descend(&name, Directory { real, path, may_be, through_link: directory.through_link });
            }
        }
    }

    fn descend(&mut self, name: &str, inner: Directory) {
        let is_own = self.workspace.guard().reading(&inner.real).is_err();
        if is_own || PACKAGES.contains(&name) {
            return;
        }
        if name.eq_ignore_ascii_case(".git") {
            // What git obeys can be links.
            for rest in self.workspace.guard().paths().read_only_below(inner.path.split('/')) {
                let obeyed = below::join(&inner.real, &rest);
                if !self.chain(&obeyed, 0).0.is_empty() {
                    self.protect(&obeyed, Protected::ReadOnly, 0);
                }
            }
            for name in UNFINISHED {
                let (real, path) = (below::join(&inner.real, name), below::join(&inner.path, name));
                self.directories.push_back(Directory { real, path, ..inner });
            }
        } else if inner.through_link {
            self.through_links.push_back(inner);
        } else {
            self.directories.push_back(inner);
        }
    }

    fn take(&mut self, real: &str, path: &str, kind: Kind) {
        let listed = WorkspacePath::parse(path, None).ok().and_then(|path| self.asked.find(&path));
        if let Some(listed) = listed {
            let version = match kind {
                Kind::File => self.version(real),
                Kind::Link => {
                    let to = below::read_link(self.workspace.dir(), real).unwrap_or_default();
                    let target = self.view.place(real).ok().flatten().map(|place| self.version(&place));
                    format!("link to {to}, {}", target.unwrap_or_default())
                }
                Kind::Directory | Kind::Special => "no file".to_owned(),
            };
            self.found.files.insert(path.to_owned(), ListedFile { list: listed.list, version });
        }
    }

    /// What a file holds, as far as a tool could know.
    fn version(&mut self, place: &str) -> String {
        if self.workspace.guard().reading(place).is_err() {
            return "hidden".to_owned();
        }
        let Ok((file, metadata)) = below::open(self.workspace.dir(), place) else { return "no file".to_owned() };
        let by_time = || format!("{} bytes of {}.{:09}", metadata.len(), metadata.ctime(), metadata.ctime_nsec());
        self.bytes = self.bytes.saturating_add(metadata.len().min(MOST_OF_FILE));
        if metadata.len() > MOST_OF_FILE || self.bytes > MOST_BYTES {
            return by_time();
        }
        let mut content = Vec::new();
        match file.take(MOST_OF_FILE).read_to_end(&mut content) {
            Ok(_) => format!("sha256:{}", Digest::of(&content)),
            Err(_) => by_time(),
        }
    }

    fn read_link(&self, place: &Path) -> Option<PathBuf> {
        match place.strip_prefix(self.workspace.root()) {
            Ok(inside) => below::read_link(self.workspace.dir(), inside.to_str()?).ok().map(PathBuf::from),
            Err(_) => std::fs::read_link(place).ok(),
        }
    }

    /// The links on the way from a path, but for the first ones, and where it leads.
    fn chain(&mut self, real: &str, but_first: usize) -> (Vec<WorkspacePath>, Option<WorkspacePath>) {
        let chain = links::follow(self.workspace.root(), Path::new(real), |place| self.read_link(place));
        self.entries = self.entries.saturating_add(chain.parts);
        let inside = |whole: &Path| WorkspacePath::parse(whole.strip_prefix(self.workspace.root()).ok()?.to_str()?, None).ok();
        let end = chain.end.as_deref().and_then(inside).filter(|end| !end.as_str().is_empty());
        (chain.links.iter().skip(but_first).filter_map(|link| inside(link)).collect(), end)
    }

    /// Knows what a path leads to as protected, and so the way there.
    fn protect(&mut self, real: &str, how: Protected, but_first: usize) -> (Vec<WorkspacePath>, Option<WorkspacePath>) {
        let (links, end) = self.chain(real, but_first);
        self.found.on_the_way.extend(links.iter().chain(&end).flat_map(directories_of).chain(links.iter().cloned()));
        self.found.behind_protected.extend(end.iter().map(|end| (end.clone(), how)));
        (links, end)
    }

    /// Knows where a link leads, also over further links, as far as that is in the workspace.
    fn follow(&mut self, real: &str, path: &str, protection: Option<Protected>) {
        let Ok(link) = WorkspacePath::parse(path, None) else { return };
        if self.found.aliases.len() >= MOST_LINKS {
            self.found.is_cut = true;
            return;
        }
        let (on_the_way, end) = match protection {
            Some(how) => self.protect(real, how, 1),
            None => self.chain(real, 1),
        };
        self.found.aliases.extend(on_the_way.into_iter().chain(end).map(|path| (path, link.clone())));
        let Ok(Some(place)) = self.view.place(real) else { return };
        // A link to something above itself shows nothing that is not seen anyway.
        let leads_up = place.is_empty() || real.starts_with(&format!("{place}/"));
        if !leads_up && below::look(self.workspace.dir(), &place).is_ok_and(|metadata| Kind::of(&metadata) == Kind::Directory) {
            self.through_links.push_back(Directory { real: place, path: path.to_owned(), may_be: true, through_link: true });
        }
    }
}

/// The directories that a path lies in, below the workspace.
fn directories_of(path: &WorkspacePath) -> impl Iterator<Item = WorkspacePath> {
    path.as_str().match_indices('/').filter_map(|(end, _)| WorkspacePath::parse(&path.as_str()[..end], None).ok())
}

#[cfg(test)]
mod tests;
