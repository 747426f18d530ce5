//! Going through a workspace, from the outside in.

mod named;
mod record;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ffi::{OsStr, OsString};
use std::fs::{self, FileType, Permissions, ReadDir};
use std::io;
use std::os::unix::fs::{DirEntryExt as _, FileTypeExt as _, MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use record::is_itself;

use super::super::settings::Format;
use super::growth::{Crowd, MOST_IN_FOLDER};
use super::{GoesOn, Identity, Snapshot};
use crate::policy::{Names, Protected, ProtectedPaths};
use crate::sandbox::git::{self, NamedPaths};

/// Entries of a workspace.
pub(in crate::sandbox::confine) const MOST_ENTRIES: usize = if cfg!(test) { 20_000 } else { 1_000_000 };
/// Entries of new folders that are looked at after a command: with more of them some have to go, so that looking further is in
/// vain.
const MOST_AFTER: usize = 2 * MOST_ENTRIES;
/// Entries of one folder that are kept in memory to be looked at.
const MOST_LISTED: usize = MOST_ENTRIES / 4;
/// Protected paths that are found after a command, beside those that were there before.
const MOST_FOUND: usize = if cfg!(test) { 2_000 } else { 100_000 };
/// Sockets that are remembered: more than a sandbox can mask.
const MOST_SOCKETS: usize = 10_000;
/// Settings of cargo that are remembered.
const MOST_PACKAGE_SETTINGS: usize = 1_000;
/// Whether somebody still waits, and whether there is time left, is asked so often.
const ASKED_EVERY: usize = 4096;
/// The longest path of a folder that is looked into, in bytes: with a name below it, and in another root, it is still a path
/// to the kernel.
const LONGEST_PATH: usize = 3500;
/// Folders of packages, which are installed and removed as a whole and hold what their authors published: what is in them
/// is nobody's secret, and nobody opens them in an editor. Repositories in them are looked after all the same.
const PACKAGES: &[&str] = &["node_modules", "site-packages", ".venv", "venv"];

/// A folder that is to be looked through.
#[derive(Clone, Debug, Default)]
pub(super) struct Folder {
    path: PathBuf,
    inode: u64,
    inherited: Option<Protected>,
    /// In a repository, or in what is to git a repository: the path as if that were named `.git`.
    as_git: Option<PathBuf>,
    /// The same for the repository around that one: of a worktree's folder both say what is protected.
    as_outer_git: Option<PathBuf>,
    /// In what a repository stores.
    in_store: bool,
    in_packages: bool,
    /// A name on the way here is one that protected paths have.
    telling: bool,
    own: bool,
    /// The new folder that this is in.
    new_in: Option<usize>,
    /// The innermost folder around this that was there before and was moved, or this itself.
    moved: Option<PathBuf>,
}

/// What of a folder is to be looked at.
type Entries = Vec<(OsString, FileType, u64)>;

pub(super) struct Walk<'a> {
    root: &'a Path,
    protected: &'a ProtectedPaths,
    names: Names,
    keeping: bool,
    before: Option<&'a Snapshot>,
    /// Where pinned folders were, by the numbers of their inodes.
    pinned: BTreeMap<u64, (&'a Path, Identity)>,
    goes_on: GoesOn<'a>,
    until: Option<Instant>,
    is_given_up: bool,
    in_new_folders: usize,
    bytes: u64,
    /// What was protected before is looked at first, and then what else was there: no crowd of new files keeps the eye from it.
    folders: VecDeque<Folder>,
    new_folders: VecDeque<Folder>,
    /// What was found to be led to.
    led_to: BTreeSet<(PathBuf, Protected)>,
    all: Snapshot,
}

impl<'a> Walk<'a> {
    pub(super) fn new(
        root: &'a Path,
        protected: &'a ProtectedPaths,
        keeping: bool,
        before: Option<&'a Snapshot>,
        goes_on: GoesOn<'a>,
    ) -> Self {
        let is_looked_into = |folder: &&Folder| keeping || folder.inherited != Some(Protected::Hidden);
        let known = before.into_iter().flat_map(|before| &before.folders).filter(is_looked_into).cloned();
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
            until: None,
            is_given_up: false,
            in_new_folders: 0,
            bytes: 0,
            folders: known.collect(),
            new_folders: VecDeque::new(),
            led_to: BTreeSet::new(),
            all: Snapshot { begun: Some(SystemTime::now()), ..Snapshot::default() },
        }
    }

    /// With the settings that name what git runs, for a look before a command.
    pub(super) fn with_settings(mut self, git: NamedPaths) -> Self {
        self.all.git = git;
        self
    }

    /// Looks through the workspace, after a command until then.
    pub(super) fn run(mut self, until: Option<Instant>) -> Result<Snapshot, String> {
        self.until = until;
        let inode = fs::symlink_metadata(self.root).map_or(0, |metadata| metadata.ino());
        self.folders.push_back(Folder { inode, ..Folder::default() });
        let walked = self.walk();
        self.end(walked)
    }

    /// Looks at what was protected before, and at nothing else.
    pub(super) fn run_known(mut self, until: Instant) -> Result<Snapshot, String> {
        self.until = Some(until);
        let known = std::mem::take(&mut self.folders);
        let looked = known.into_iter().try_for_each(|folder| {
            let listed = is_itself(self.root, &folder.path).then(|| self.list(&folder)).flatten();
            listed.map_or(Ok(()), |entries| self.folder(folder, entries))
        });
        self.look_for_the_others();
        self.end(looked)
    }

    fn end(mut self, walked: Result<(), String>) -> Result<Snapshot, String> {
        for folder in &self.new_folders {
            if let Some(new) = folder.new_in.and_then(|at| self.all.growth.folders.get_mut(at)) {
                new.waiting += 1;
            }
        }
        match walked {
            Ok(()) => Ok(self.all),
            Err(problem) => {
                self.all.close_again(self.root, &Snapshot::default());
                Err(problem)
            }
        }
    }

    fn walk(&mut self) -> Result<(), String> {
        let mut seen = BTreeSet::new();
        while let Some(folder) = self.folders.pop_front() {
            let is_known = folder.telling || folder.as_git.is_some();
            // Not through links, which the command may have put in the way.
            if is_known && (!seen.insert(folder.path.clone()) || !is_itself(self.root, &folder.path)) {
                continue;
            }
            if let Some(entries) = self.list(&folder) {
                self.folder(folder, entries)?;
            }
            if self.before.is_none() && self.all.growth.total > MOST_ENTRIES {
                self.all.growth.is_cut = true;
                break;
            }
            if self.is_given_up {
                return Err("nobody waits for it any more".to_owned());
            }
            if self.is_late() || self.is_full() {
                self.all.growth.is_cut |= !self.folders.is_empty();
                break;
            }
        }
        self.look_for_the_others();
        while !self.is_late()
            && !self.is_full()
            && self.in_new_folders <= MOST_AFTER
            && let Some(folder) = self.new_folders.pop_front()
        {
            let is_known = folder.telling || folder.as_git.is_some();
            if is_known && !is_itself(self.root, &folder.path) {
                continue;
            }
            if let Some(entries) = self.list(&folder) {
                self.folder(folder, entries)?;
            }
        }
        Ok(())
    }

    fn is_late(&self) -> bool {
        self.until.is_some_and(|until| Instant::now() > until)
    }

    /// Whether there are more protected paths after a command than are looked after at once.
    fn is_full(&self) -> bool {
        self.before.is_some_and(|before| self.all.entries.len() > before.entries.len() + MOST_FOUND)
    }

    /// Whether nobody waits any more.
    fn give_up(&mut self) -> bool {
        self.is_given_up |= !(self.goes_on)();
        self.is_given_up
    }

    /// What of a folder is to be looked at; `None` if it is not there. One that this user may not list is opened for it:
    /// programs that know the names in it still open them.
    fn list(&mut self, folder: &Folder) -> Option<Entries> {
        let whole = self.root.join(&folder.path);
        let listed = match fs::read_dir(&whole) {
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => self.open_up(&folder.path).and_then(|()| fs::read_dir(&whole)),
            listed => listed,
        };
        match listed {
            Ok(entries) => Some(self.pick(folder, entries)),
            Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => None,
            Err(_) => {
                self.all.closed.push(folder.path.clone());
                None
            }
        }
    }

    /// Counts what is in a folder, and picks what may matter: most files do not, and there can be millions.
    fn pick(&mut self, folder: &Folder, entries: ReadDir) -> Entries {
        let mut picked = Vec::new();
        // One that was protected before is put back as a whole if there is too much new in it.
        let is_known = self.before.is_some_and(|before| folder.inherited.is_some() && before.entries.contains_key(&folder.path));
        let (mut count, mut new, mut is_cut) = (0_usize, 0, false);
        let is_first = self.before.is_none();
        let is_settings =
            |name: &OsStr| is_first && !folder.in_packages && name.to_str().is_some_and(|name| Format::is_looked_for(&folder.path, name));
        for entry in entries.flatten() {
            let (name, inode) = (entry.file_name(), entry.ino());
            let Ok(kind) = entry.file_type() else { continue };
            count += 1;
            match self.before {
                None => self.all.inventory.add(folder.inode, &name),
                Some(before) => new += usize::from(folder.new_in.is_none() && !before.inventory.has(folder.inode, &name)),
            }
            if is_known && new > MOST_IN_FOLDER {
                picked.clear();
                break;
            }
            if kind.is_socket() && self.before.is_none() && self.all.sockets.len() < MOST_SOCKETS {
                self.all.sockets.push(folder.path.join(&name));
            }
            if is_settings(&name) && self.all.package_settings.len() < MOST_PACKAGE_SETTINGS {
                self.all.package_settings.push(folder.path.join(&name));
            }
            if kind.is_dir() || kind.is_symlink() || folder.telling || folder.inherited.is_some() || self.may_matter(&name, inode) {
                picked.push((name, kind, inode));
            }
            let is_over = if self.before.is_some() { picked.len() >= MOST_LISTED } else { count > MOST_ENTRIES };
            let is_asked = (self.all.growth.total + count).is_multiple_of(ASKED_EVERY);
            if is_over || is_asked && (self.is_late() || self.give_up()) {
                is_cut = true;
                break;
            }
        }
        self.all.growth.total += count;
        if let Some(inner) = folder.new_in.and_then(|at| self.all.growth.folders.get_mut(at)) {
            inner.entries += count;
            self.in_new_folders += count;
            inner.too_much |= is_cut;
        } else if self.before.is_some() && (new > 0 || is_cut) {
            self.all.growth.crowds.push(Crowd { folder: folder.path.clone(), inode: folder.inode, names: new, is_cut });
            self.all.growth.is_cut |= is_cut;
        }
        picked
    }

    fn may_matter(&self, name: &OsStr, inode: u64) -> bool {
        let name = name.to_string_lossy();
        self.names.may_be(&name) || git::PARTS.iter().any(|part| git::is_named(&name, part)) || self.pinned.contains_key(&inode)
    }

    fn open_up(&mut self, folder: &Path) -> io::Result<()> {
        let whole = self.root.join(folder);
        let mode = fs::symlink_metadata(&whole)?.permissions().mode() & 0o7777;
        fs::set_permissions(&whole, Permissions::from_mode(mode | 0o700))?;
        self.all.opened.push((folder.to_owned(), mode));
        Ok(())
    }

    fn folder(&mut self, mut folder: Folder, entries: Entries) -> Result<(), String> {
        let names = || entries.iter().filter_map(|(name, ..)| name.to_str());
        let is_repository = git::is_repository(entries.iter().filter_map(|(name, kind, _)| Some((name.to_str()?, kind.is_dir()))));
        if is_repository && folder.as_git.as_deref() != Some(Path::new(".git")) && !self.leave_alone(&folder, &entries) {
            folder.as_outer_git = folder.as_git.replace(".git".into());
            self.all.repositories.insert(folder.inode);
            self.found_repository(&folder);
        }
        // `.git` itself, a submodule's or a worktree's, and not the folders that hold these.
        let is_git = folder.as_git.as_deref() == Some(Path::new(".git")) || folder.as_git.is_some() && names().any(|name| name == "HEAD");
        self.look_for_named(&folder, &entries, is_repository, is_git)?;
        for (name, kind, inode) in entries {
            self.look_for_moved(&folder.path.join(&name), kind, inode);
            self.entry(&folder, &name, kind, inode, is_git)?;
        }
        Ok(())
    }

    /// Whether a folder that was there before came to look like a repository while what git would run in it was there all
    /// the time: then that is somebody's source, and it is the new parts that go.
    fn leave_alone(&mut self, folder: &Folder, entries: &Entries) -> bool {
        let Some(begun) = self.before.and_then(|before| before.begun) else { return false };
        let is_known = self.before.is_some_and(|before| before.repositories.contains(&folder.inode));
        // Renamed, written or made: each changes this time, and nobody can set it.
        let is_touched = |name: &OsString| {
            let metadata = fs::symlink_metadata(self.root.join(&folder.path).join(name));
            metadata.is_ok_and(|metadata| u64::try_from(metadata.ctime()).is_ok_and(|at| UNIX_EPOCH + Duration::from_secs(at + 1) >= begun))
        };
        let named = |names: &'static [&'static str]| {
            entries
                .iter()
                .map(|(name, ..)| name)
                .filter(move |name| names.iter().any(|known| git::is_named(&name.to_string_lossy(), known)))
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

    fn entry(&mut self, folder: &Folder, file_name: &OsString, kind: FileType, inode: u64, is_git: bool) -> Result<(), String> {
        let name = file_name.to_string_lossy();
        let path = folder.path.join(file_name);
        let is_dot_git = git::is_named(&name, ".git");
        let inner = |around: &Option<PathBuf>| around.as_ref().map(|outer| outer.join(file_name));
        let (as_git, as_outer_git) =
            if is_dot_git { (Some(".git".into()), inner(&folder.as_git)) } else { (inner(&folder.as_git), inner(&folder.as_outer_git)) };
        let as_git_paths = || [&as_git, &as_outer_git].into_iter().flatten();
        let telling = folder.telling || self.names.may_be(&name);
        let rule = if telling { self.rule(folder, &path, as_git_paths()) } else { None };
        // As a file or as a link, `.git` says where hooks are.
        let itself = rule.map(|(how, _)| if how == Protected::Pinned && !kind.is_dir() { Protected::ReadOnly } else { how });
        let own = folder.own || rule.is_some_and(|(_, own)| own);
        let how = itself.max(folder.inherited);
        self.all.holds_own |= own;
        if let Some(how) = how {
            let inherited = folder.inherited == Some(how);
            let runs = how == Protected::Hidden && as_git_paths().chain([&path]).any(|path| self.is_read_only(path));
            self.take(&path, how, inherited, runs, own)?;
            self.follow(&path, kind, how);
        } else if kind.is_symlink() {
            self.link(folder, &path, as_git_paths().chain([&path]))?;
        }
        if kind.is_dir() && self.is_looked_into(&path, inode, how) && !own {
            let inherited = how.filter(|how| *how != Protected::Pinned);
            let in_packages = folder.in_packages || PACKAGES.contains(&name.as_ref());
            let is_store = is_git && itself.is_none() && git::STORES.iter().any(|store| git::is_named(&name, store));
            // The names in a store are numbers and those of branches, and most are not asked about.
            let telling = if is_store { self.names.may_be(&name) } else { telling };
            let in_store = folder.in_store && !is_dot_git || is_store;
            let new_in = self.new_folder(folder, &path, inode);
            let moved = self.moved_folder(folder, &path, inode);
            let inner = Folder { path, inode, inherited, as_git, as_outer_git, in_store, in_packages, telling, own, new_in, moved };
            self.later(inner, how.is_some());
        }
        Ok(())
    }

    /// Whether there is something to look for in a folder that is protected so.
    fn is_looked_into(&self, path: &Path, inode: u64, how: Option<Protected>) -> bool {
        let was_there = self.before.is_none_or(|before| before.entries.contains_key(path));
        match how {
            // Nobody saw what is in it, nor could change it.
            Some(Protected::Hidden) => self.keeping || !was_there,
            // A new one is taken away with all that is in it, but for that of a new repository, or of a folder that was renamed.
            Some(Protected::ReadOnly) => {
                was_there || path.ends_with("hooks") || self.before.is_some_and(|before| before.by_inode.contains_key(&inode))
            }
            Some(Protected::Pinned) | None => true,
        }
    }
}
