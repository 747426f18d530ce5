//! The recording of entries during a walk.

use std::fs::{self, FileType};
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use super::super::growth::NewDirectory;
use super::super::{
    FileIdentity, FoundEntry, KeptContent, MAX_KEPT_BYTES, ProtectionError, as_place,
};
use super::{MAX_PATH_LEN, ProtectionWalk, WalkDirectory};
use crate::git;
use crate::links::{self, LinkChain};
use cofferdam_policy::{PathProtection, PatternAuthor};

impl ProtectionWalk<'_> {
    pub(super) fn enqueue(&mut self, folder: WalkDirectory, is_protected: bool) {
        if self.scope.is_some_and(|scope| scope.is_left_out(&folder.path)) {
            return;
        }
        if self.root.as_os_str().len() + folder.path.as_os_str().len() > MAX_PATH_LEN {
            let new = folder
                .new_directory
                .and_then(|at| self.snapshot.growth.new_directories.get_mut(at));
            match (folder.moved, new) {
                (Some(moved), _) => {
                    self.snapshot.too_deep.insert(moved);
                }
                (None, Some(new)) => new.is_incomplete = true,
                // Nobody could restore its protected paths, nor hide its secrets.
                (None, None) if self.before.is_none() => self.too_long = Some(folder.path),
                (None, None) => self.snapshot.unreadable.push(folder.path),
            }
            return;
        }
        if is_protected {
            self.snapshot.directories.push(folder.clone());
        }
        if self.scope.is_some_and(|scope| !scope.contains(&folder.path)) {
            return;
        }
        if folder.new_directory.is_some() {
            self.pending_new.push_back(folder)
        } else {
            self.pending.push_back(folder)
        }
    }

    /// Returns the protection of a path by its own name, and whether it is one of this program's
    /// files.
    pub(super) fn find_rule<'b>(
        &self,
        folder: &WalkDirectory,
        path: &Path,
        as_git: impl Iterator<Item = &'b PathBuf>,
    ) -> Option<(PathProtection, bool)> {
        if folder.inherited == Some(PathProtection::Hidden) {
            return None;
        }
        let find = |path: &Path| {
            self.protected.find_exact(lossy_components(path).iter().map(String::as_str))
        };
        let by_name = find(path)
            .filter(|(_, author)| !folder.in_packages || **author != PatternAuthor::BuiltIn);
        let found = as_git.filter_map(|path| find(path)).chain(by_name);
        // A branch may have the name of a key file.
        let found = found.filter_map(|found| match found {
            (PathProtection::Hidden, PatternAuthor::BuiltIn) if folder.in_git_data => self
                .is_read_only(path)
                .then_some((PathProtection::ReadOnly, &PatternAuthor::BuiltIn)),
            found => Some(found),
        });
        let rule = found.max_by_key(|(how, _)| *how);
        // The directories around this program's files do not count as its own.
        rule.map(|(how, author)| {
            (how, *author == PatternAuthor::Program && how == PathProtection::Hidden)
        })
    }

    pub(super) fn is_read_only(&self, path: &Path) -> bool {
        self.protected.is_read_only(lossy_components(path).iter().map(String::as_str))
    }

    /// Records a directory that has the shape of a repository but is not named `.git`.
    pub(super) fn record_repository(&mut self, folder: &WalkDirectory) {
        if folder.path.as_os_str().is_empty() || self.snapshot.entries.contains_key(&folder.path) {
            return;
        }
        if let Ok(metadata) = fs::symlink_metadata(self.root.join(&folder.path)) {
            let mut found =
                FoundEntry::read(&self.root.join(&folder.path), &metadata, self.keep_content, None);
            found.mode = self.mode_without_look(&folder.path).unwrap_or(found.mode);
            self.snapshot.insert(
                folder.path.clone(),
                found.into_entry(PathProtection::Pinned, false, false, false),
            );
            self.snapshot.directories.push(folder.clone());
        }
    }

    pub(super) fn record_entry(
        &mut self,
        path: &Path,
        how: PathProtection,
        inherited: bool,
        runs: bool,
        own: bool,
    ) -> Result<(), ProtectionError> {
        let whole = self.root.join(path);
        let Ok(metadata) = fs::symlink_metadata(&whole) else { return Ok(()) };
        let had = self
            .before
            .map(|before| before.entries.get(path).or_else(|| before.find_by_metadata(&metadata)));
        let was_kept = had.flatten().is_some_and(|had| matches!(had.content, KeptContent::File(_)));
        let keeping =
            (self.keep_content || was_kept || metadata.is_file() && metadata.nlink() > 1) && !own;
        if keeping && self.before.is_none() && metadata.is_file() {
            self.kept_bytes += metadata.len();
            if self.kept_bytes > MAX_KEPT_BYTES {
                return Err(ProtectionError::TooMuchContent);
            }
        }
        let mut found = FoundEntry::read(&whole, &metadata, keeping, had);
        found.mode = self.mode_without_look(path).unwrap_or(found.mode);
        self.snapshot.insert(path.to_owned(), found.into_entry(how, inherited, runs, own));
        Ok(())
    }

    /// Returns the final permissions of a directory that is open during this walk only.
    fn mode_without_look(&self, path: &Path) -> Option<u32> {
        let opened = || self.snapshot.original_modes.iter().find(|(opened, _)| opened == path);
        self.opened.and_then(|all| all.final_mode(path)).or_else(|| opened().map(|(_, mode)| *mode))
    }

    /// Gives the target of a protected link the same protection, whether it exists or not.
    pub(super) fn follow_link(&mut self, path: &Path, kind: FileType, how: PathProtection) {
        if kind.is_symlink() && how != PathProtection::Pinned {
            self.lead(path, how, 1);
        }
    }

    /// Records an unprotected link in a directory of git, to protected paths, or in place of a
    /// directory with protected paths.
    ///
    /// The link is restored but not mounted, so its other targets stay writable. git writes files
    /// such as `COMMIT_EDITMSG` and `logs/HEAD` through links, with content that a command chose.
    pub(super) fn link<'b>(
        &mut self,
        folder: &WalkDirectory,
        path: &Path,
        names: impl Iterator<Item = &'b PathBuf>,
    ) -> Result<(), ProtectionError> {
        let names = names.filter(|_| !folder.in_packages && !folder.in_git_data);
        let below: Vec<String> = names
            .flat_map(|name| {
                self.protected.read_only_below(lossy_components(name).iter().map(String::as_str))
            })
            .collect();
        if below.is_empty() && !self.is_on_the_way(path) && folder.git_path.is_none() {
            return Ok(());
        }
        self.record_entry(path, PathProtection::ReadOnly, true, false, false)?;
        below.iter().for_each(|rest| self.lead(&path.join(rest), PathProtection::ReadOnly, 0));
        Ok(())
    }

    /// Records the target of a path and the links on the way there, except the first `but_first`
    /// ones.
    fn lead(&mut self, path: &Path, how: PathProtection, but_first: usize) {
        // After a command, the targets from before it are protected.
        if self.before.is_some() {
            return;
        }
        let LinkChain { links, end, .. } =
            links::follow(self.root, path, |link| fs::read_link(link).ok());
        for link in links.iter().skip(but_first).filter_map(|link| git::below(self.root, link)) {
            if !self.is_on_the_way(&link)
                && let Some(path) = as_place(&link)
            {
                self.snapshot.on_the_way.push(path);
            }
        }
        if let Some(end) =
            end.filter(|_| !links.is_empty()).and_then(|end| git::below(self.root, &end))
        {
            self.add_target(&end, how);
        }
    }

    pub(super) fn is_on_the_way(&self, path: &Path) -> bool {
        self.protected.is_on_the_way(lossy_components(path).iter().map(String::as_str))
    }

    /// Returns the index of the new directory that contains this one, or is this one.
    pub(super) fn new_folder(
        &mut self,
        around: &WalkDirectory,
        path: &Path,
        inode: u64,
    ) -> Option<usize> {
        match self.before {
            None => {
                self.snapshot.inventory.add_directory(
                    inode,
                    around.inode,
                    path.file_name().unwrap_or_default(),
                );
                None
            }
            Some(before)
                if around.new_directory.is_none()
                    && !before.inventory.contains_directory(inode) =>
            {
                self.snapshot.growth.new_directories.push(NewDirectory {
                    path: path.to_owned(),
                    entries: 1,
                    pending: 0,
                    is_incomplete: false,
                });
                Some(self.snapshot.growth.new_directories.len() - 1)
            }
            Some(_) => around.new_directory,
        }
    }

    /// Returns the innermost moved directory that contains this one, or is this one.
    pub(super) fn moved_folder(
        &self,
        around: &WalkDirectory,
        path: &Path,
        inode: u64,
    ) -> Option<PathBuf> {
        let before = self.before?;
        let has_moved =
            before.inventory.has_moved(inode, around.inode, path.file_name().unwrap_or_default());
        if has_moved { Some(path.to_owned()) } else { around.moved.clone() }
    }

    /// Protects a path that settings name or that a link leads to.
    pub(super) fn add_target(&mut self, path: &Path, how: PathProtection) {
        let known =
            self.protected.protection_of_parts(lossy_components(path).iter().map(String::as_str))
                >= Some(how);
        if !known
            && self.led_to.insert((path.to_owned(), how))
            && let Some(path) = as_place(path)
        {
            self.snapshot.targets.push((path, how));
        }
    }

    pub(super) fn record_if_moved(&mut self, path: &Path, kind: FileType, inode: u64) {
        if let Some((was, identity)) = self.pinned.get(&inode)
            && kind.is_dir()
            && *was != path
            && identity.created.is_some()
            && fs::symlink_metadata(self.root.join(path))
                .is_ok_and(|metadata| FileIdentity::from_metadata(&metadata) == *identity)
        {
            self.snapshot.moved.push(((*was).to_owned(), path.to_owned()));
        }
    }

    /// Looks up the previous entries that the walk did not visit.
    pub(super) fn record_unvisited(&mut self) {
        let Some(before) = self.before else { return };
        // A link in place of such a directory exposes the command's files under the path that
        // settings name.
        for above in before.target_parents.iter().filter(|above| self.root.join(above).is_symlink())
        {
            // New content is never stored.
            let _ = self.record_entry(above, PathProtection::ReadOnly, false, false, false);
        }
        for (path, had) in &before.entries {
            if self.snapshot.entries.contains_key(path) {
                continue;
            }
            // A file with several names can have been written through a name outside the layer.
            if !had.has_hard_links() && self.scope.is_some_and(|scope| scope.is_unchanged(path)) {
                self.snapshot.insert(path.clone(), had.clone());
                continue;
            }
            if !is_canonical(self.root, path.parent().unwrap_or(Path::new(""))) {
                continue;
            }
            let whole = self.root.join(path);
            if let Ok(metadata) = fs::symlink_metadata(&whole) {
                let mut found = FoundEntry::read(
                    &whole,
                    &metadata,
                    (self.keep_content || matches!(had.content, KeptContent::File(_)))
                        && !had.is_program_file,
                    Some(Some(had)),
                );
                found.mode = self.mode_without_look(path).unwrap_or(found.mode);
                self.snapshot.insert(
                    path.clone(),
                    found.into_entry(
                        had.protection,
                        had.inherited,
                        had.runs_code,
                        had.is_program_file,
                    ),
                );
            }
        }
    }
}

/// Returns whether a path of the workspace goes through no link.
pub(super) fn is_canonical(root: &Path, path: &Path) -> bool {
    let whole = root.join(path);
    match whole.canonicalize() {
        Ok(real) => real == whole,
        // The directory cannot be entered, so each component is checked for links.
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            path.ancestors().filter(|above| !above.as_os_str().is_empty()).all(|above| {
                fs::symlink_metadata(root.join(above)).is_ok_and(|metadata| !metadata.is_symlink())
            })
        }
        Err(_) => false,
    }
}

pub(super) fn lossy_components(path: &Path) -> Vec<String> {
    path.iter().map(|part| String::from_utf8_lossy(part.as_bytes()).into_owned()).collect()
}
