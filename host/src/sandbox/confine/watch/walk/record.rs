//! What a walk records of the entries that it comes across.

use std::fs::{self, FileType};
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use super::super::growth::NewFolder;
use super::super::{Found, Identity, Kept, MOST_KEPT, as_place};
use super::{Folder, LONGEST_PATH, Walk};
use crate::policy::{Author, Protected};
use crate::sandbox::git;
use crate::sandbox::links::{self, LinkChain};

impl Walk<'_> {
    pub(super) fn later(&mut self, folder: Folder, is_protected: bool) {
        if self.root.as_os_str().len() + folder.path.as_os_str().len() > LONGEST_PATH {
            let new = folder.new_in.and_then(|at| self.all.growth.folders.get_mut(at));
            match (folder.moved, new) {
                (Some(moved), _) => drop(self.all.too_deep.insert(moved)),
                (None, Some(new)) => new.too_much = true,
                (None, None) => self.all.closed.push(folder.path),
            }
            return;
        }
        if is_protected {
            self.all.folders.push(folder.clone());
        }
        if folder.new_in.is_some() { self.new_folders.push_back(folder) } else { self.folders.push_back(folder) }
    }

    /// How a path is protected by itself, and whether since it is this program's own.
    pub(super) fn rule<'b>(&self, folder: &Folder, path: &Path, as_git: impl Iterator<Item = &'b PathBuf>) -> Option<(Protected, bool)> {
        if folder.inherited == Some(Protected::Hidden) {
            return None;
        }
        let find = |path: &Path| self.protected.find_itself(texts(path).iter().map(String::as_str));
        let by_name = find(path).filter(|(_, author)| !folder.in_packages || **author != Author::BuiltIn);
        let found = as_git.filter_map(|path| find(path)).chain(by_name);
        // A branch may have the name of a key.
        let found = found.filter_map(|found| match found {
            (Protected::Hidden, Author::BuiltIn) if folder.in_store => {
                self.is_read_only(path).then_some((Protected::ReadOnly, &Author::BuiltIn))
            }
            found => Some(found),
        });
        let rule = found.max_by_key(|(how, _)| *how);
        // What its files lie in is not its own.
        rule.map(|(how, author)| (how, *author == Author::Program && how == Protected::Hidden))
    }

    pub(super) fn is_read_only(&self, path: &Path) -> bool {
        self.protected.is_read_only(texts(path).iter().map(String::as_str))
    }

    /// A folder turned out to be a repository that is not named `.git`.
    pub(super) fn found_repository(&mut self, folder: &Folder) {
        if folder.path.as_os_str().is_empty() || self.all.entries.contains_key(&folder.path) {
            return;
        }
        if let Ok(metadata) = fs::symlink_metadata(self.root.join(&folder.path)) {
            let found = Found::of(&self.root.join(&folder.path), &metadata, self.keeping, None);
            self.all.insert(folder.path.clone(), found.into_entry(Protected::Pinned, false, false, false));
            self.all.folders.push(folder.clone());
        }
    }

    pub(super) fn take(&mut self, path: &Path, how: Protected, inherited: bool, runs: bool, own: bool) -> Result<(), String> {
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

    /// What a protected link leads to is protected like it, whether it is there yet or not.
    pub(super) fn follow(&mut self, path: &Path, kind: FileType, how: Protected) {
        if kind.is_symlink() && how != Protected::Pinned {
            self.lead(path, how, 1);
        }
    }

    /// A link that is not protected itself, and is in a directory of git's, leads to protected paths, or is in place of a
    /// directory that holds some. It is put back, and not mounted: what else it leads to can be written. git writes files such
    /// as `COMMIT_EDITMSG` and `logs/HEAD` through links, with what a command has chosen.
    pub(super) fn link<'b>(&mut self, folder: &Folder, path: &Path, names: impl Iterator<Item = &'b PathBuf>) -> Result<(), String> {
        let names = names.filter(|_| !folder.in_packages && !folder.in_store);
        let below: Vec<String> = names.flat_map(|name| self.protected.read_only_below(texts(name).iter().map(String::as_str))).collect();
        if below.is_empty() && !self.is_on_the_way(path) && folder.as_git.is_none() {
            return Ok(());
        }
        self.take(path, Protected::ReadOnly, true, false, false)?;
        below.iter().for_each(|rest| self.lead(&path.join(rest), Protected::ReadOnly, 0));
        Ok(())
    }

    /// Remembers where a path leads, and the links on the way there but for the first ones.
    fn lead(&mut self, path: &Path, how: Protected, but_first: usize) {
        // After a command it is protected by what was found before.
        if self.before.is_some() {
            return;
        }
        let LinkChain { links, end, .. } = links::follow(self.root, path, |link| fs::read_link(link).ok());
        for link in links.iter().skip(but_first).filter_map(|link| git::below(self.root, link)) {
            if !self.is_on_the_way(&link)
                && let Some(path) = as_place(&link)
            {
                self.all.on_the_way.push(path);
            }
        }
        if let Some(end) = end.filter(|_| !links.is_empty()).and_then(|end| git::below(self.root, &end)) {
            self.leads_to(&end, how);
        }
    }

    pub(super) fn is_on_the_way(&self, path: &Path) -> bool {
        self.protected.is_on_the_way(texts(path).iter().map(String::as_str))
    }

    /// The new folder that one is in, or is itself.
    pub(super) fn new_folder(&mut self, around: &Folder, path: &Path, inode: u64) -> Option<usize> {
        match self.before {
            None => {
                self.all.inventory.add_folder(inode, around.inode, path.file_name().unwrap_or_default());
                None
            }
            Some(before) if around.new_in.is_none() && !before.inventory.has_folder(inode) => {
                self.all.growth.folders.push(NewFolder { path: path.to_owned(), entries: 1, waiting: 0, too_much: false });
                Some(self.all.growth.folders.len() - 1)
            }
            Some(_) => around.new_in,
        }
    }

    /// The innermost folder that was moved and that one is in, or is itself.
    pub(super) fn moved_folder(&self, around: &Folder, path: &Path, inode: u64) -> Option<PathBuf> {
        let before = self.before?;
        let has_moved = before.inventory.has_moved(inode, around.inode, path.file_name().unwrap_or_default());
        if has_moved { Some(path.to_owned()) } else { around.moved.clone() }
    }

    /// Protects a path that settings name or that a link leads to.
    pub(super) fn leads_to(&mut self, path: &Path, how: Protected) {
        let known = self.protected.of_parts(texts(path).iter().map(String::as_str)) >= Some(how);
        if !known
            && self.led_to.insert((path.to_owned(), how))
            && let Some(path) = as_place(path)
        {
            self.all.leads_to.push((path, how));
        }
    }

    pub(super) fn look_for_moved(&mut self, path: &Path, kind: FileType, inode: u64) {
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
    pub(super) fn look_for_the_others(&mut self) {
        let Some(before) = self.before else { return };
        // A link in the way gives what the command made another name: that which settings have.
        for above in before.above_named.iter().filter(|above| self.root.join(above).is_symlink()) {
            // Nothing is kept of what is new.
            let _ = self.take(above, Protected::ReadOnly, false, false, false);
        }
        for (path, had) in &before.entries {
            let outer = path.parent().unwrap_or(Path::new(""));
            if self.all.entries.contains_key(path) || !is_itself(self.root, outer) {
                continue;
            }
            let whole = self.root.join(path);
            if let Ok(metadata) = fs::symlink_metadata(&whole) {
                let found = Found::of(&whole, &metadata, (self.keeping || matches!(had.kept, Kept::File(_))) && !had.own, Some(Some(had)));
                self.all.insert(path.clone(), found.into_entry(had.how, had.inherited, had.runs, had.own));
            }
        }
    }
}

/// Whether a path of the workspace goes through no link.
pub(super) fn is_itself(root: &Path, path: &Path) -> bool {
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

pub(super) fn texts(path: &Path) -> Vec<String> {
    path.iter().map(|part| String::from_utf8_lossy(part.as_bytes()).into_owned()).collect()
}
