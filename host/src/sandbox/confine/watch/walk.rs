//! Going through a workspace, from the outside in.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ffi::OsString;
use std::fs::{self, FileType, Permissions};
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{DirEntryExt as _, MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use super::{Found, GoesOn, Identity, Kept, MOST_KEPT, Snapshot};
use crate::policy::{Author, Names, Protected, ProtectedPaths, WorkspacePath};
use crate::sandbox::git;

/// Entries that are looked at.
pub(super) const MOST_ENTRIES: usize = 1_000_000;
/// What a command made on top is looked at for as long again.
const MOST_AFTER: usize = 2 * MOST_ENTRIES;
/// Whether somebody still waits is asked so often.
const ASKED_EVERY: usize = 4096;
/// Folders of a repository that only hold what it stores.
const STORES: &[&str] = &["objects", "refs", "logs", "lfs"];
/// Folders of packages, which are installed and removed as a whole and hold what their authors published: what is in them
/// is nobody's secret, and nobody opens them in an editor. Repositories in them are looked after all the same.
const PACKAGES: &[&str] = &["node_modules", "site-packages", ".venv", "venv"];

/// A folder that is to be looked through.
#[derive(Clone, Debug, Default)]
pub(super) struct Folder {
    path: PathBuf,
    inherited: Option<Protected>,
    /// In a repository, or in what is to git a repository: the path as if that were named `.git`.
    as_git: Option<PathBuf>,
    in_packages: bool,
    /// A name on the way here is one that protected paths have.
    telling: bool,
    own: bool,
}

pub(super) struct Walk<'a> {
    root: &'a Path,
    protected: &'a ProtectedPaths,
    names: Names,
    keeping: bool,
    before: Option<&'a Snapshot>,
    /// Where pinned folders were, by the numbers of their inodes.
    pinned: BTreeMap<u64, (&'a Path, Identity)>,
    goes_on: GoesOn<'a>,
    looked_at: usize,
    bytes: u64,
    folders: VecDeque<Folder>,
    all: Snapshot,
}

impl<'a> Walk<'a> {
    /// What was protected before is looked at first: no crowd of new files keeps the eye from it.
    pub(super) fn new(
        root: &'a Path,
        protected: &'a ProtectedPaths,
        keeping: bool,
        before: Option<&'a Snapshot>,
        goes_on: GoesOn<'a>,
    ) -> Self {
        let is_looked_into = |folder: &&Folder| keeping || folder.inherited != Some(Protected::Hidden);
        let known = before.into_iter().flat_map(|before| &before.folders).filter(is_looked_into).cloned();
        let folders = known.chain([Folder::default()]).collect();
        let entries = before.into_iter().flat_map(|before| &before.entries);
        let pinned = entries.filter(|(_, entry)| entry.how == Protected::Pinned);
        let pinned = pinned.map(|(path, entry)| (entry.identity.inode, (path.as_path(), entry.identity)));
        Self {
            root,
            protected,
            names: protected.names(),
            keeping,
            before,
            pinned: pinned.collect(),
            goes_on,
            looked_at: 0,
            bytes: 0,
            folders,
            all: Snapshot { begun: Some(SystemTime::now()), ..Snapshot::default() },
        }
    }

    pub(super) fn run(mut self) -> Result<Snapshot, String> {
        match self.walk() {
            Ok(()) => Ok(self.all),
            Err(problem) => {
                self.all.close_again(self.root, &Snapshot::default());
                Err(problem)
            }
        }
    }

    fn walk(&mut self) -> Result<(), String> {
        let mut seen = BTreeSet::new();
        let most = if self.before.is_some() { MOST_AFTER } else { MOST_ENTRIES };
        while let Some(folder) = self.folders.pop_front() {
            let is_known = folder.telling || folder.as_git.is_some();
            // Not through links, which the command may have put in the way.
            if is_known && (!seen.insert(folder.path.clone()) || !is_itself(self.root, &folder.path)) {
                continue;
            }
            let entries = self.list(&folder.path);
            if self.looked_at + entries.len() > most {
                self.all.cut = true;
                break;
            }
            if (self.looked_at + entries.len()) / ASKED_EVERY > self.looked_at / ASKED_EVERY && !(self.goes_on)() {
                return Err("nobody waits for it any more".to_owned());
            }
            self.looked_at += entries.len();
            self.folder(folder, entries)?;
        }
        self.look_for_the_others();
        Ok(())
    }

    /// What is in a folder. One that this user may not list is opened for it: programs that know the names in it still
    /// open them.
    fn list(&mut self, folder: &Path) -> Vec<(OsString, FileType, u64)> {
        let whole = self.root.join(folder);
        let listed = match fs::read_dir(&whole) {
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => self.open_up(folder).and_then(|()| fs::read_dir(&whole)),
            listed => listed,
        };
        match listed {
            Ok(entries) => entries.flatten().filter_map(|entry| Some((entry.file_name(), entry.file_type().ok()?, entry.ino()))).collect(),
            Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => Vec::new(),
            Err(_) => {
                self.all.closed.push(folder.to_owned());
                Vec::new()
            }
        }
    }

    fn open_up(&mut self, folder: &Path) -> io::Result<()> {
        let whole = self.root.join(folder);
        let mode = fs::symlink_metadata(&whole)?.permissions().mode() & 0o7777;
        fs::set_permissions(&whole, Permissions::from_mode(mode | 0o700))?;
        self.all.opened.push((folder.to_owned(), mode));
        Ok(())
    }

    fn folder(&mut self, mut folder: Folder, entries: Vec<(OsString, FileType, u64)>) -> Result<(), String> {
        let names = || entries.iter().filter_map(|(name, ..)| name.to_str());
        let is_repository = git::is_repository(entries.iter().filter_map(|(name, kind, _)| Some((name.to_str()?, kind.is_dir()))));
        if is_repository && folder.as_git.is_none() {
            if self.leave_alone(&folder, &entries) {
                return Ok(());
            }
            folder.as_git = Some(".git".into());
            self.found_repository(&folder);
        }
        // `.git` itself, a submodule's or a worktree's, and not the folders that hold these.
        let is_git = folder.as_git.as_deref() == Some(Path::new(".git")) || folder.as_git.is_some() && names().any(|name| name == "HEAD");
        for (name, kind, inode) in entries {
            self.look_for_moved(&folder.path.join(&name), kind, inode);
            self.entry(&folder, &name, kind, is_git)?;
        }
        Ok(())
    }

    /// Whether a folder that was there before came to look like a repository while what git would run in it was there all
    /// the time: then that is somebody's source, and it is the new parts that go.
    fn leave_alone(&mut self, folder: &Folder, entries: &[(OsString, FileType, u64)]) -> bool {
        let Some(begun) = self.before.and_then(|before| before.begun) else { return false };
        let is_known = self.before.is_some_and(|before| before.entries.contains_key(&folder.path));
        // Renamed, written or made: each changes this time, and nobody can set it.
        let is_touched = |name: &OsString| {
            let metadata = fs::symlink_metadata(self.root.join(&folder.path).join(name));
            metadata.is_ok_and(|metadata| u64::try_from(metadata.ctime()).is_ok_and(|at| UNIX_EPOCH + Duration::from_secs(at + 1) >= begun))
        };
        let named = |names: &'static [&'static str]| {
            entries.iter().map(|(name, ..)| name).filter(move |name| names.iter().any(|known| name.eq_ignore_ascii_case(known)))
        };
        let parts: Vec<OsString> = named(git::PARTS).filter(|name| is_touched(name)).cloned().collect();
        if is_known || parts.is_empty() || !named(git::RUN).any(|name| !is_touched(name)) {
            return false;
        }
        for name in parts {
            // It is new, so that it cannot be put back, and is taken away.
            let _ = self.take(&folder.path.join(name), Protected::ReadOnly, false, false, false);
        }
        true
    }

    fn entry(&mut self, folder: &Folder, file_name: &OsString, kind: FileType, is_git: bool) -> Result<(), String> {
        let name = file_name.to_string_lossy();
        let path = folder.path.join(file_name);
        let as_git = match &folder.as_git {
            Some(outer) => Some(outer.join(file_name)),
            None => name.eq_ignore_ascii_case(".git").then(|| ".git".into()),
        };
        let telling = folder.telling || self.names.may_be(&name);
        let rule = (telling || as_git.is_some()).then(|| self.rule(folder, &path, as_git.as_deref())).flatten();
        // As a file or as a link, `.git` says where hooks are.
        let itself = rule.map(|(how, _)| if how == Protected::Pinned && !kind.is_dir() { Protected::ReadOnly } else { how });
        let own = folder.own || rule.is_some_and(|(_, own)| own);
        let how = itself.max(folder.inherited);
        self.all.holds_own |= own;
        if let Some(how) = how {
            let inherited = folder.inherited == Some(how);
            let runs = how == Protected::Hidden && self.protected.is_read_only(texts(&path).iter().map(String::as_str));
            self.take(&path, how, inherited, runs, own)?;
            self.follow(&path, kind, how);
        }
        if is_git && kind.is_file() && (name.eq_ignore_ascii_case("config") || name.eq_ignore_ascii_case("config.worktree")) {
            let named = git::named_in(self.root, &self.root.join(&path), &folder.path);
            named.iter().for_each(|named| self.leads_to(named, Protected::ReadOnly));
        }
        let store = is_git && itself.is_none() && STORES.contains(&name.as_ref());
        let unseen = how == Some(Protected::Hidden) && !self.keeping;
        if kind.is_dir() && !store && !unseen && !own {
            let inherited = how.filter(|how| *how != Protected::Pinned);
            let in_packages = folder.in_packages || PACKAGES.contains(&name.as_ref());
            let inner = Folder { path, inherited, as_git, in_packages, telling, own };
            if how.is_some() {
                self.all.folders.push(inner.clone());
            }
            self.folders.push_back(inner);
        }
        Ok(())
    }

    /// How a path is protected by itself, and whether since it is this program's own.
    fn rule(&self, folder: &Folder, path: &Path, as_git: Option<&Path>) -> Option<(Protected, bool)> {
        if folder.inherited == Some(Protected::Hidden) {
            return None;
        }
        let find = |path: &Path| self.protected.find_itself(texts(path).iter().map(String::as_str));
        let by_name = find(path).filter(|(_, author)| !folder.in_packages || **author != Author::BuiltIn);
        let by_git = as_git.and_then(find);
        let rule = [by_name, by_git].into_iter().flatten().max_by_key(|(how, _)| *how);
        // What its files lie in is not its own.
        rule.map(|(how, author)| (how, *author == Author::Program && how == Protected::Hidden))
    }

    /// A folder turned out to be a repository that is not named `.git`.
    fn found_repository(&mut self, folder: &Folder) {
        if folder.path.as_os_str().is_empty() || self.all.entries.contains_key(&folder.path) {
            return;
        }
        if let Ok(metadata) = fs::symlink_metadata(self.root.join(&folder.path)) {
            let found = Found::of(&self.root.join(&folder.path), &metadata, self.keeping, None);
            self.all.insert(folder.path.clone(), found.into_entry(Protected::Pinned, false, false, false));
            self.all.folders.push(folder.clone());
        }
    }

    fn take(&mut self, path: &Path, how: Protected, inherited: bool, runs: bool, own: bool) -> Result<(), String> {
        let whole = self.root.join(path);
        let Ok(metadata) = fs::symlink_metadata(&whole) else { return Ok(()) };
        let had = self.before.map(|before| before.entries.get(path).or_else(|| before.same_file(&metadata)));
        let was_kept = had.flatten().is_some_and(|had| matches!(had.kept, Kept::File(_)));
        let keeping = (self.keeping || was_kept || metadata.is_file() && metadata.nlink() > 1) && !own;
        if keeping && self.before.is_none() && metadata.is_file() {
            self.bytes += metadata.len();
            if self.bytes > MOST_KEPT {
                return Err(format!(
                    "the protected files of the workspace have more than {} MiB, which is more than can be kept to be put back. \
                     In the sandbox `full` (install bubblewrap) they need not be.",
                    MOST_KEPT >> 20
                ));
            }
        }
        let mut found = Found::of(&whole, &metadata, keeping, had);
        if let Some((_, mode)) = self.all.opened.iter().find(|(opened, _)| opened == path) {
            found.mode = *mode;
        }
        self.all.insert(path.to_owned(), found.into_entry(how, inherited, runs, own));
        Ok(())
    }

    /// What a protected link leads to is protected like it.
    fn follow(&mut self, path: &Path, kind: FileType, how: Protected) {
        if kind.is_symlink()
            && how != Protected::Pinned
            && let Ok(target) = self.root.join(path).canonicalize()
            && let Some(target) = target.is_absolute().then(|| git::below(self.root, &target)).flatten()
        {
            self.leads_to(&target, how);
        }
    }

    fn leads_to(&mut self, path: &Path, how: Protected) {
        let texts = texts(path);
        let known = self.protected.of_parts(texts.iter().map(String::as_str)) >= Some(how);
        if !known && let Ok(path) = WorkspacePath::parse(&texts.join("/"), None) {
            self.all.leads_to.push((path, how));
        }
    }

    fn look_for_moved(&mut self, path: &Path, kind: FileType, inode: u64) {
        if let Some((was, identity)) = self.pinned.get(&inode)
            && kind.is_dir()
            && *was != path
            && identity.born.is_some()
            && fs::symlink_metadata(self.root.join(path)).is_ok_and(|metadata| Identity::of(&metadata) == *identity)
        {
            self.all.moved.push(((*was).to_owned(), path.to_owned()));
        }
    }

    /// What was there before and was not come by is looked up by its path.
    fn look_for_the_others(&mut self) {
        let Some(before) = self.before else { return };
        for (path, had) in &before.entries {
            let outer = path.parent().unwrap_or(Path::new(""));
            if self.all.entries.contains_key(path) || !is_itself(self.root, outer) {
                continue;
            }
            let whole = self.root.join(path);
            if let Ok(metadata) = fs::symlink_metadata(&whole) {
                let found = Found::of(&whole, &metadata, self.keeping && !had.own, Some(Some(had)));
                self.all.insert(path.clone(), found.into_entry(had.how, had.inherited, had.runs, had.own));
            }
        }
    }
}

/// Whether a path of the workspace goes through no link.
fn is_itself(root: &Path, path: &Path) -> bool {
    let whole = root.join(path);
    match whole.canonicalize() {
        Ok(real) => real == whole,
        // In a folder that cannot be entered: then no part of it may be a link.
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => path
            .ancestors()
            .filter(|above| !above.as_os_str().is_empty())
            .all(|above| fs::symlink_metadata(root.join(above)).is_ok_and(|metadata| !metadata.is_symlink())),
        Err(_) => false,
    }
}

fn texts(path: &Path) -> Vec<String> {
    path.iter().map(|part| String::from_utf8_lossy(part.as_bytes()).into_owned()).collect()
}
