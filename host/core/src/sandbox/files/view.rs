//! The files that a guest sees: the workspace with the staged changes of the call laid over it.

use std::collections::BTreeMap;
use std::sync::Arc;

use cap_std::fs::{Dir, Metadata};
use wasmtime_wasi::p2::bindings::filesystem::types::ErrorCode;

use super::change::special_file_denied;
use super::file_refusal::FileRefusal;
use super::guard::FileAccess;
use crate::policy::{Denial, FileGrant};
use crate::sandbox::rooted_fs::{self, FileKind};
use crate::sandbox::stage::{Overlay, StagedState};
use crate::sandbox::workspace::Workspace;

/// The number of links that one path may follow, as on Linux.
const MAX_LINKS: usize = 40;
/// The longest name and the longest path, as `NAME_MAX` and `PATH_MAX` on Linux.
const MAX_NAME_LEN: usize = 255;
const MAX_PATH_LEN: usize = 4096;

/// The workspace files as one call sees them.
pub(in crate::sandbox) struct WorkspaceFilesView {
    pub(super) workspace: Arc<Workspace>,
    /// The staged changes; `None` without the permission to write.
    pub(super) overlay: Option<Overlay>,
}

/// A name in a directory with its kind, or why the kind is unknown.
pub(super) type NamedEntry = Result<(String, FileKind), FileRefusal>;

/// The file, directory or link at a path.
#[derive(Debug)]
pub(super) enum PathNode {
    /// A file or directory of the workspace. Its kind is never [`FileKind::Link`].
    Existing(FileKind, Metadata),
    /// A staged file or directory.
    Staged(FileKind, Metadata),
    /// A symbolic link, in the workspace or staged.
    Link(String),
}

/// The target of a path.
#[derive(Debug)]
pub(super) struct ResolvedPath {
    /// The path without links, except for its last component.
    pub(super) path: String,
    /// The target; `None` if it does not exist in an existing directory.
    pub(super) node: Option<PathNode>,
    /// Whether the path says that its target is a directory, such as by a trailing slash.
    pub(super) must_be_directory: bool,
}

impl PathNode {
    pub(super) fn kind(&self) -> FileKind {
        match self {
            Self::Existing(kind, _) | Self::Staged(kind, _) => *kind,
            Self::Link(_) => FileKind::Link,
        }
    }
}

impl WorkspaceFilesView {
    pub(in crate::sandbox) fn new(workspace: Arc<Workspace>, overlay: Option<Overlay>) -> Self {
        Self { workspace, overlay }
    }

    pub(super) fn root(&self) -> &Dir {
        self.workspace.dir()
    }

    /// Returns the denial that a tool with this permission would get for opening a path, if that is
    /// known in advance.
    pub(in crate::sandbox) fn find_denial(&self, path: &str, grant: FileGrant) -> Option<Denial> {
        let place = match self.resolve("", path, true) {
            Ok(ResolvedPath { node: Some(node), path: place, .. })
                if node.kind() == FileKind::Directory =>
            {
                return self.read_denial(&place);
            }
            Ok(ResolvedPath { node: Some(node), path: place, .. })
                if node.kind() == FileKind::Special =>
            {
                return match special_file_denied(&place) {
                    FileRefusal::Denied(_, denial) => Some(denial),
                    FileRefusal::Code(_) | FileRefusal::Io(_) => None,
                };
            }
            Ok(ResolvedPath { path: place, .. }) => place,
            Err(FileRefusal::Denied(_, denial)) => return Some(denial),
            // Its parents are not there either. Whatever else it is, the tool meets it too and can
            // say more about it.
            Err(FileRefusal::Code(_) | FileRefusal::Io(_)) => path.to_owned(),
        };
        match grant {
            FileGrant::None => None,
            FileGrant::Read => self.read_denial(&place),
            FileGrant::ReadWrite => {
                self.workspace.guard().check_change(&place, FileAccess::Change).err()
            }
        }
    }

    /// Returns the path that a path resolves to, if it exists.
    pub(in crate::sandbox) fn resolve_existing(
        &self,
        path: &str,
    ) -> Result<Option<String>, FileRefusal> {
        let found = self.resolve("", path, true)?;
        Ok(found.node.map(|_| found.path))
    }

    fn read_denial(&self, place: &str) -> Option<Denial> {
        self.workspace.guard().check_read(place).err()
    }

    /// Resolves a path relative to a directory, following links. Follows a link at the end only if
    /// `follow` is set.
    pub(super) fn resolve(
        &self,
        from: &str,
        path: &str,
        follow: bool,
    ) -> Result<ResolvedPath, FileRefusal> {
        if path.is_empty() {
            return Err(ErrorCode::NoEntry.into());
        }
        if path.len() > MAX_PATH_LEN || path.split('/').any(|part| part.len() > MAX_NAME_LEN) {
            return Err(ErrorCode::NameTooLong.into());
        }
        if path.contains('\0') {
            return Err(ErrorCode::Invalid.into());
        }
        if path.starts_with('/') {
            return Err(FileRefusal::outside_workspace(path));
        }
        let as_directory = matches!(path.rsplit('/').next(), Some("" | "." | ".."));
        self.resolve_plain(from, path, as_directory)
            .map_or_else(|| self.resolve_by_components(from, path, follow, as_directory), Ok)
    }

    /// Resolves a path without links to an existing target. Returns `None` for all other paths.
    /// This is the common case.
    fn resolve_plain(&self, from: &str, path: &str, as_directory: bool) -> Option<ResolvedPath> {
        if self.overlay.as_ref().is_some_and(|stage| !stage.is_empty()) {
            return None;
        }
        let mut place = from.to_owned();
        for part in path.split('/') {
            match part {
                "" | "." => {}
                ".." => return None,
                name => place = rooted_fs::join(&place, name),
            }
        }
        let metadata = rooted_fs::symlink_metadata(self.root(), &place).ok()?;
        match FileKind::from_metadata(&metadata) {
            FileKind::Link => None,
            FileKind::File | FileKind::Special if as_directory => None,
            kind @ (FileKind::File | FileKind::Special | FileKind::Directory) => {
                Some(ResolvedPath {
                    path: place,
                    node: Some(PathNode::Existing(kind, metadata)),
                    must_be_directory: as_directory,
                })
            }
        }
    }

    fn resolve_by_components(
        &self,
        from: &str,
        path: &str,
        follow: bool,
        as_directory: bool,
    ) -> Result<ResolvedPath, FileRefusal> {
        let mut place = from.to_owned();
        let mut node = self.node(&place)?;
        let mut links = 0;
        let mut ahead: Vec<String> = reversed_components(path);
        while let Some(part) = ahead.pop() {
            // Whatever comes next is in here.
            match node.as_ref().map(PathNode::kind) {
                Some(FileKind::Directory) => {}
                Some(FileKind::File | FileKind::Special | FileKind::Link) => {
                    return Err(ErrorCode::NotDirectory.into());
                }
                None => return Err(ErrorCode::NoEntry.into()),
            }
            if part == ".." {
                if place.is_empty() {
                    return Err(if links > 0 {
                        FileRefusal::link_outside_workspace(path)
                    } else {
                        FileRefusal::outside_workspace(path)
                    });
                }
                place = rooted_fs::split(&place).0.to_owned();
                node = self.node(&place)?;
                continue;
            }
            let next = rooted_fs::join(&place, &part);
            let found = self.node(&next)?;
            let Some(PathNode::Link(target)) = &found else {
                (place, node) = (next, found);
                continue;
            };
            if ahead.is_empty() && !follow && !as_directory {
                return Ok(ResolvedPath {
                    path: next,
                    node: found,
                    must_be_directory: as_directory,
                });
            }
            links += 1;
            if links > MAX_LINKS {
                return Err(ErrorCode::Loop.into());
            }
            let onward = match target.strip_prefix('/') {
                None => target.clone(),
                // An absolute link into the workspace stays in it.
                Some(_) => {
                    let inside = std::path::Path::new(target)
                        .strip_prefix(self.workspace.root())
                        .map_err(|_| FileRefusal::link_outside_workspace(path))?;
                    place = String::new();
                    inside.to_string_lossy().into_owned()
                }
            };
            node = self.node(&place)?;
            ahead.extend(reversed_components(&onward));
        }
        if as_directory && node.as_ref().is_some_and(|node| node.kind() != FileKind::Directory) {
            return Err(ErrorCode::NotDirectory.into());
        }
        Ok(ResolvedPath { path: place, node, must_be_directory: as_directory })
    }

    /// Returns the file, directory or link at a path.
    pub(super) fn node(&self, place: &str) -> Result<Option<PathNode>, FileRefusal> {
        if let Some(stage) = &self.overlay {
            match stage.get(place) {
                Some(StagedState::Removed) => return Ok(None),
                Some(StagedState::Link(target)) => return Ok(Some(PathNode::Link(target.clone()))),
                Some(StagedState::File(file)) => {
                    return Ok(Some(PathNode::Staged(FileKind::File, stage.metadata(&file.data)?)));
                }
                Some(StagedState::Directory { data, .. }) => {
                    return Ok(Some(PathNode::Staged(FileKind::Directory, stage.metadata(data)?)));
                }
                None if stage.is_shadowed(place) => return Ok(None),
                None => {}
            }
        }
        let Some(metadata) = rooted_fs::find_metadata(self.root(), place)? else { return Ok(None) };
        Ok(Some(match FileKind::from_metadata(&metadata) {
            FileKind::Link => PathNode::Link(rooted_fs::read_link(self.root(), place)?),
            kind => PathNode::Existing(kind, metadata),
        }))
    }

    /// Returns the metadata of a link that exists in the workspace.
    pub(super) fn workspace_link_metadata(&self, place: &str) -> Option<Metadata> {
        let is_aside = self.overlay.as_ref().is_some_and(|stage| stage.get(place).is_some());
        if is_aside {
            None
        } else {
            rooted_fs::symlink_metadata(self.root(), place).ok().filter(Metadata::is_symlink)
        }
    }

    /// Returns the names in a directory, sorted.
    pub(super) fn list(&self, place: &str) -> Result<Vec<NamedEntry>, FileRefusal> {
        let mut names = BTreeMap::new();
        let mut errors = Vec::new();
        let there = self
            .overlay
            .as_ref()
            .is_none_or(|stage| stage.get(place).is_none() && !stage.is_shadowed(place));
        if there {
            for entry in rooted_fs::list(self.root(), place)? {
                match entry {
                    Ok((name, kind)) => {
                        names.insert(name, kind);
                    }
                    Err(foreign) => errors.push(Err(FileRefusal::Io(foreign.into()))),
                }
            }
        }
        for (name, aside) in self.overlay.iter().flat_map(|stage| stage.children(place)) {
            let kind = match aside {
                StagedState::Removed => {
                    names.remove(name);
                    continue;
                }
                StagedState::File(_) => FileKind::File,
                StagedState::Directory { .. } => FileKind::Directory,
                StagedState::Link(_) => FileKind::Link,
            };
            names.insert(name.to_owned(), kind);
        }
        Ok(names.into_iter().map(Ok).chain(errors).collect())
    }
}

/// Returns the components of a path, the last one first.
fn reversed_components(path: &str) -> Vec<String> {
    path.split('/').rev().filter(|part| !matches!(*part, "" | ".")).map(str::to_owned).collect()
}
