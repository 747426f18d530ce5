//! The files of a workspace that are on the built-in lists of instructions and of files that run code, as they are now.
//! Two looks tell what changed between them.
//!
//! A look is bounded in entries, files and bytes, and goes from the outside in, so that what it misses lies deep.

use std::collections::{BTreeMap, VecDeque};
use std::io::Read as _;
use std::path::PathBuf;
use std::sync::Arc;

use cap_std::fs::MetadataExt as _;

use super::below::{self, Kind};
use super::digest::Digest;
use super::files::View;
use super::git;
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
/// Links that lead to links that lead to links.
const MOST_HOPS: usize = 8;
/// Characters of a path that are shown.
const LONGEST_NAME: usize = 200;
/// Directories of packages, which hold what their authors published.
const PACKAGES: &[&str] = &["node_modules", "site-packages", ".venv", "venv"];

/// The listed files that one look found.
#[derive(Clone, Debug, Default)]
pub struct ListedFiles {
    files: BTreeMap<String, ListedFile>,
    aliases: Vec<(WorkspacePath, WorkspacePath)>,
    behind_protected: Vec<(WorkspacePath, Protected)>,
    is_cut: bool,
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

    /// Whether the workspace has more entries or listed files than one look takes.
    pub fn is_cut(&self) -> bool {
        self.is_cut
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
        let named = named.iter().filter_map(|path| WorkspacePath::parse(path.to_str()?, None).ok());
        look.found.behind_protected.extend(named.map(|path| (path, Protected::ReadOnly)));
        look.found
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
            // Of what git keeps, only the plan of a rebase is listed.
            let rebase = |path: &str| below::join(path, "rebase-merge");
            self.directories.push_back(Directory { real: rebase(&inner.real), path: rebase(&inner.path), ..inner });
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

    /// Knows where a link leads, also over further links, as far as that is in the workspace.
    fn follow(&mut self, real: &str, path: &str, protection: Option<Protected>) {
        let Ok(link) = WorkspacePath::parse(path, None) else { return };
        if self.found.aliases.len() >= MOST_LINKS {
            self.found.is_cut = true;
            return;
        }
        let protect = |found: &mut ListedFiles, path: &WorkspacePath| {
            let how = protection.filter(|_| !path.as_str().is_empty());
            found.behind_protected.extend(how.map(|how| (path.clone(), how)));
        };
        let mut hop = real.to_owned();
        for _ in 0..MOST_HOPS {
            let Ok(to) = below::read_link(self.workspace.dir(), &hop) else { break };
            let Ok(next) = WorkspacePath::parse(&below::join(below::split(&hop).0, &to), None) else { break };
            hop = next.as_str().to_owned();
            protect(&mut self.found, &next);
            self.found.aliases.push((next, link.clone()));
        }
        let Ok(Some(place)) = self.view.place(real) else { return };
        if let Ok(target) = WorkspacePath::parse(&place, None) {
            protect(&mut self.found, &target);
            self.found.aliases.push((target, link));
        }
        // A link to something above itself shows nothing that is not seen anyway.
        let leads_up = place.is_empty() || real.starts_with(&format!("{place}/"));
        if !leads_up && below::look(self.workspace.dir(), &place).is_ok_and(|metadata| Kind::of(&metadata) == Kind::Directory) {
            self.through_links.push_back(Directory { real: place, path: path.to_owned(), may_be: true, through_link: true });
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    fn folder(files: &[(&str, &str)]) -> (tempfile::TempDir, Arc<Workspace>) {
        let folder = tempfile::tempdir().expect("a directory");
        for (path, text) in files {
            let path = folder.path().join(path);
            fs::create_dir_all(path.parent().expect("it has one")).expect("directories");
            fs::write(path, text).expect("it is written");
        }
        let workspace = Arc::new(Workspace::open(folder.path()).expect("it opens"));
        (folder, workspace)
    }

    fn paths(found: &ListedFiles) -> Vec<&str> {
        found.iter().map(|(path, _)| path).collect()
    }

    #[test]
    fn listed_files_are_found_at_any_depth_and_nothing_else() {
        let (_folder, workspace) = folder(&[
            ("AGENTS.md", "a"),
            ("a/b/c/CLAUDE.md", "b"),
            (".github/workflows/ci.yml", "c"),
            (".git/rebase-merge/git-rebase-todo", "exec x"),
            (".git/AGENTS.md", "d"),
            ("node_modules/x/AGENTS.md", "e"),
            ("src/agents.rs", "f"),
            ("Makefile", "g"),
        ]);
        let found = workspace.listed_files();
        assert_eq!(paths(&found), [".git/rebase-merge/git-rebase-todo", ".github/workflows/ci.yml", "AGENTS.md", "a/b/c/CLAUDE.md"]);
        assert!(!found.is_cut());
    }

    #[test]
    fn changes_are_told_by_content_and_by_no_other_sign() {
        let (folder, workspace) = folder(&[("AGENTS.md", "a"), ("CLAUDE.md", "b"), ("GEMINI.md", "c")]);
        let before = workspace.listed_files();
        let at = |name: &str| folder.path().join(name);
        fs::write(at("AGENTS.md"), "a").expect("the same again");
        assert_eq!(workspace.listed_files().changes_since(&before), []);
        fs::write(at("AGENTS.md"), "other").expect("it is written");
        fs::remove_file(at("CLAUDE.md")).expect("it is removed");
        fs::write(at("QWEN.md"), "new").expect("it is written");
        let changes = workspace.listed_files().changes_since(&before);
        let told: Vec<_> = changes.iter().map(|change| (change.path.as_str(), change.was_there, change.version.is_some())).collect();
        assert_eq!(told, [("AGENTS.md", true, true), ("QWEN.md", false, true), ("CLAUDE.md", true, false)]);
    }

    #[test]
    fn what_links_lead_to_is_known_by_the_name_of_the_link() {
        let (folder, workspace) = folder(&[("docs/guide.md", "a"), ("ci/workflows/x.yml", "b"), ("plain/y", "c")]);
        symlink("docs/middle", folder.path().join("AGENTS.md")).expect("a link");
        symlink("guide.md", folder.path().join("docs/middle")).expect("a link");
        symlink("ci", folder.path().join(".github")).expect("a link");
        symlink("/etc/passwd", folder.path().join("CLAUDE.md")).expect("a link");
        symlink(".", folder.path().join("GEMINI.md")).expect("a link");
        let found = workspace.listed_files();
        let mut policy = crate::policy::Policy::default();
        found.aliases().for_each(|(real, link)| policy.add_alias(real, link));
        let of = |path: &str| policy.asked().find(&workspace.parse(path).expect("a path")).map(|listed| listed.path);
        assert_eq!(of("docs/guide.md").as_deref(), Some("AGENTS.md"));
        assert_eq!(of("docs/middle").as_deref(), Some("AGENTS.md"));
        assert_eq!(of("ci/workflows/x.yml").as_deref(), Some(".github/workflows/x.yml"));
        assert_eq!((of("ci/other.yml"), of("plain/y")), (None, None));
        let before = found;
        fs::write(folder.path().join("docs/guide.md"), "other").expect("it is written");
        let changes = workspace.listed_files().changes_since(&before);
        assert_eq!(changes.iter().map(|change| change.path.as_str()).collect::<Vec<_>>(), ["AGENTS.md"]);
    }

    #[test]
    fn what_a_protected_link_leads_to_is_protected_like_it() {
        let (folder, workspace) = folder(&[("editor/tasks.json", "a"), ("keys", "b")]);
        symlink("editor", folder.path().join(".vscode")).expect("a link");
        symlink("keys", folder.path().join(".env")).expect("a link");
        let found = workspace.listed_files();
        let paths =
            found.behind_protected().fold(crate::policy::ProtectedPaths::default(), |paths, (path, how)| paths.and_place(path, how));
        let of = |path: &str| paths.of(&workspace.parse(path).expect("a path"));
        assert_eq!((of("editor/tasks.json"), of("keys"), of("other")), (Some(Protected::ReadOnly), Some(Protected::Hidden), None));
    }

    #[test]
    fn a_crowd_of_files_ends_the_look_and_is_told() {
        let (folder, workspace) = folder(&[("AGENTS.md", "a")]);
        fs::create_dir_all(folder.path().join("x/.clinerules")).expect("directories");
        for number in 0..=MOST_FILES {
            fs::write(folder.path().join(format!("x/.clinerules/{number}")), "").expect("it is written");
        }
        let found = workspace.listed_files();
        assert!(found.is_cut() && paths(&found).contains(&"AGENTS.md"), "what lies on top comes first");
    }
}
