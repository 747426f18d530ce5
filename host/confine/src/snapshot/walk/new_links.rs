//! The check of links in the workspace.
//!
//! A new link must not lead to paths outside where commands or this program store files. A link to
//! a directory of packages makes its contents part of the project, so they are searched.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use super::record::lossy_components;
use super::{MAX_ENTRIES, PACKAGE_DIRECTORIES, ProtectionWalk, WalkDirectory};
use crate::git;
use cofferdam_policy::{PathProtection, PatternAuthor};

/// The reasons why a new link is rejected.
const OUTSIDE: &str = "is a new link to a path outside the workspace that commands or Cofferdam \
    can write";
const THROUGH_PROC: &str = "is a new link into `/proc` whose target depends on the process that \
    follows it";
const PACKAGES: &str = "is a new link to a package directory with files that other programs run";

impl ProtectionWalk<'_> {
    /// Checks the target of the link with this name in the directory.
    pub(super) fn check_link(
        &mut self,
        folder: &WalkDirectory,
        path: &Path,
        name: &std::ffi::OsStr,
    ) {
        let Ok(target) = fs::read_link(self.root.join(path)) else { return };
        let is_new = match self.before {
            None => {
                self.snapshot.inventory.add_link(folder.inode, name, &target);
                false
            }
            // In a moved directory, the same link may lead elsewhere.
            Some(before) => {
                folder.moved.is_some()
                    || !before.inventory.contains_link(folder.inode, name, &target)
            }
        };
        let is_package = folder.in_packages || is_package_name(name);
        if !is_new && is_package {
            return;
        }
        let chain = self.follower.follow_below(self.root, path, &|link| fs::read_link(link).ok());
        let end = chain.end;
        if is_new {
            let rejected = if chain.links.iter().chain(&end).any(|link| is_of_process(link)) {
                Some(THROUGH_PROC)
            } else {
                end.as_deref()
                    .filter(|end| self.is_closed_to_links(end, is_package))
                    .map(|_| OUTSIDE)
            };
            if let Some(why) = rejected {
                self.snapshot.rejected_links.insert(path.to_owned(), why);
                return;
            }
        }
        let Some(inner) = end.as_deref().and_then(|end| git::below(self.root, end)) else { return };
        if is_package || !inner.iter().any(is_package_name) {
            return;
        }
        if is_new {
            if self.holds_protected(&inner) {
                self.snapshot.rejected_links.insert(path.to_owned(), PACKAGES);
            }
        } else {
            self.look_at_linked_packages(inner);
        }
    }

    /// Returns whether a place outside the workspace is one that commands or this program write.
    ///
    /// Links of packages may lead to places that commands write, because package managers create
    /// links to their stores.
    fn is_closed_to_links(&self, place: &Path, is_package: bool) -> bool {
        let Some(before) = self.before else { return false };
        let stores = before.written_outside.iter().filter(|_| !is_package);
        !place.starts_with(self.root)
            && stores.chain(&before.program_places).any(|closed| place.starts_with(closed))
    }

    /// Returns whether a directory of packages, the target of a new link, holds files that other
    /// programs would use in a project.
    fn holds_protected(&mut self, target: &Path) -> bool {
        let mut seen = BTreeSet::new();
        let mut ahead = vec![target.to_owned()];
        while let Some(path) = ahead.pop() {
            if !seen.insert(path.clone()) {
                continue;
            }
            let entries = match fs::read_dir(self.root.join(&path)) {
                Ok(entries) => entries,
                Err(error) if error.kind() == std::io::ErrorKind::PermissionDenied => return true,
                Err(_) => continue,
            };
            for entry in entries.flatten() {
                self.linked_entries += 1;
                if self.linked_entries > MAX_ENTRIES || self.is_past_deadline() {
                    return true;
                }
                let (name, inner) = (entry.file_name(), path.join(entry.file_name()));
                if self.names.may_match(&name.to_string_lossy())
                    && matches!(
                        self.rule_in_project(&inner),
                        Some((PathProtection::ReadOnly, _) | (PathProtection::Hidden, true))
                    )
                {
                    return true;
                }
                let Ok(kind) = entry.file_type() else { continue };
                if kind.is_symlink() {
                    let whole = self.root.join(&inner);
                    let Ok(real) = whole.canonicalize() else { continue };
                    if self.is_closed_to_links(&real, false) {
                        return true;
                    }
                    let real = git::below(self.root, &real).filter(|_| real.is_dir());
                    ahead.extend(real.filter(|real| real.iter().any(is_package_name)));
                } else if kind.is_dir() && !is_package_name(&name) {
                    ahead.push(inner);
                }
            }
        }
        false
    }

    /// Remembers a directory of packages to which an old link leads, and searches it.
    fn look_at_linked_packages(&mut self, target: PathBuf) {
        if self.before.is_none() {
            self.snapshot.linked_packages.insert(target.clone());
        }
        self.look_at_packages(target);
    }

    /// Searches a directory of packages like a directory of the project, because an old link leads
    /// there.
    pub(super) fn look_at_packages(&mut self, target: PathBuf) {
        let mut ahead = vec![target];
        while let Some(path) = ahead.pop() {
            if !self.linked.insert(path.clone())
                || self.scope.is_some_and(|scope| scope.is_unchanged(&path))
            {
                continue;
            }
            for entry in fs::read_dir(self.root.join(&path)).into_iter().flatten().flatten() {
                self.linked_entries += 1;
                if self.linked_entries > MAX_ENTRIES || self.is_past_deadline() {
                    self.snapshot.growth.is_truncated = true;
                    return;
                }
                let (name, inner) = (entry.file_name(), path.join(entry.file_name()));
                let Ok(kind) = entry.file_type() else { continue };
                let rule = if self.names.may_match(&name.to_string_lossy()) {
                    self.rule_in_project(&inner)
                } else {
                    None
                };
                match rule {
                    Some((how @ (PathProtection::ReadOnly | PathProtection::Hidden), runs))
                        if how == PathProtection::ReadOnly || runs =>
                    {
                        let _ = self.record_entry(&inner, how, false, runs, false);
                        if let (true, Ok(metadata)) = (kind.is_dir(), entry.metadata()) {
                            let folder = WalkDirectory {
                                path: inner,
                                inode: metadata.ino(),
                                inherited: Some(how),
                                may_match: true,
                                ..WalkDirectory::default()
                            };
                            self.enqueue(folder, true);
                        }
                    }
                    _ if kind.is_dir() && !is_package_name(&name) => ahead.push(inner),
                    _ if kind.is_symlink() => {
                        let read_link = |link: &Path| fs::read_link(link).ok();
                        let end = self.follower.follow_below(self.root, &inner, &read_link).end;
                        let end = end.and_then(|end| git::below(self.root, &end));
                        let Some(end) = end.filter(|end| end.iter().any(is_package_name)) else {
                            continue;
                        };
                        // The command may create what does not exist yet.
                        if self.before.is_none() {
                            self.snapshot.linked_packages.insert(end.clone());
                        }
                        ahead.push(end);
                    }
                    _ => {}
                }
            }
        }
    }

    /// Returns the protection that a path in a directory of packages would have elsewhere, and
    /// whether programs run it.
    fn rule_in_project(&self, path: &Path) -> Option<(PathProtection, bool)> {
        let parts = lossy_components(path);
        let (how, author) = self.protected.find_exact(parts.iter().map(String::as_str))?;
        let runs = how == PathProtection::Hidden && self.is_read_only(path);
        (*author != PatternAuthor::Program).then_some((how, runs))
    }
}

fn is_package_name(name: &(impl AsRef<std::ffi::OsStr> + ?Sized)) -> bool {
    let name = name.as_ref();
    PACKAGE_DIRECTORIES.iter().any(|known| name == std::ffi::OsStr::new(known))
}

/// Returns whether a path leads to the working directory or root of the process that follows it.
fn is_of_process(path: &Path) -> bool {
    path.starts_with("/proc") && (path.ends_with("cwd") || path.ends_with("root"))
}
