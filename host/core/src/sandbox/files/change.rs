//! The file operations that change something: checked, then staged.

use wasmtime_wasi::p2::bindings::filesystem::types::ErrorCode;

use super::CallFiles;
use super::file_refusal::FileRefusal;
use super::guard::{FileAccess, PathAccessGuard};
use super::settings;
use super::view::{PathNode, ResolvedPath, WorkspaceFilesView};
use crate::policy::{Denial, DenialCode};
use crate::sandbox::rooted_fs::{self, FileKind};
use crate::sandbox::stage::{Overlay, StageError, Staged};

/// The number of files and directories that can move with one directory. Each of them is staged.
const MAX_MOVED: usize = 500;

type ChangeResult = Result<(), FileRefusal>;

impl CallFiles {
    pub(super) fn create_directory(&mut self, from: &str, path: &str) -> ChangeResult {
        let view = self.writable()?;
        let found = view.resolve(from, path, false)?;
        if found.node.is_some() {
            return Err(ErrorCode::Exist.into());
        }
        view.check_change(&found.path, FileAccess::CreateDirectory)?;
        view.check_parent_writable(&found.path)?;
        let (stage, root) = view.overlay_mut()?;
        stage.create_directory(root, &found.path)?;
        self.touched.record_written(&found.path);
        Ok(())
    }

    pub(super) fn unlink(&mut self, from: &str, path: &str) -> ChangeResult {
        let view = self.writable()?;
        let ResolvedPath { path: place, node, must_be_directory: as_directory } =
            view.resolve(from, path, false)?;
        match node.as_ref().map(PathNode::kind) {
            None => return Err(ErrorCode::NoEntry.into()),
            Some(FileKind::Directory) => return Err(ErrorCode::IsDirectory.into()),
            Some(_) if as_directory => return Err(ErrorCode::NotDirectory.into()),
            Some(FileKind::Special) => return Err(special_file_denied(&place)),
            Some(FileKind::File | FileKind::Link) => {}
        }
        view.check_change(&place, FileAccess::Change)?;
        if let Some(PathNode::Existing(FileKind::File, _)) = &node {
            settings::check_change(&view.workspace, &place)?;
        }
        view.check_parent_writable(&place)?;
        let (stage, root) = view.overlay_mut()?;
        stage.remove(root, &place)?;
        self.touched.record_written(&place);
        Ok(())
    }

    pub(super) fn remove_directory(&mut self, from: &str, path: &str) -> ChangeResult {
        let view = self.writable()?;
        let ResolvedPath { path: place, node, .. } = view.resolve(from, path, false)?;
        match node.as_ref().map(PathNode::kind) {
            None => return Err(ErrorCode::NoEntry.into()),
            Some(FileKind::File | FileKind::Link | FileKind::Special) => {
                return Err(ErrorCode::NotDirectory.into());
            }
            Some(FileKind::Directory) => {}
        }
        view.check_not_root(&place)?;
        view.check_change(&place, FileAccess::Change)?;
        view.check_parent_writable(&place)?;
        if !view.list(&place)?.is_empty() {
            return Err(ErrorCode::NotEmpty.into());
        }
        let (stage, root) = view.overlay_mut()?;
        stage.remove(root, &place)?;
        self.touched.record_written(&place);
        Ok(())
    }

    pub(super) fn symlink(&mut self, from: &str, target: &str, path: &str) -> ChangeResult {
        let view = self.writable()?;
        let found = view.resolve(from, path, false)?;
        if found.node.is_some() {
            return Err(ErrorCode::Exist.into());
        }
        if found.must_be_directory
            || target.is_empty()
            || target.contains('\0')
            || target.len() > 4096
        {
            return Err(ErrorCode::Invalid.into());
        }
        if is_outside_workspace(rooted_fs::split(&found.path).0, target)
            || has_inner_parent_dir(target)
        {
            return Err(FileRefusal::outside_workspace(target));
        }
        view.check_change(&found.path, FileAccess::MakeLink)?;
        view.check_parent_writable(&found.path)?;
        let (stage, root) = view.overlay_mut()?;
        stage.link(root, &found.path, target.to_owned())?;
        self.touched.record_written(&found.path);
        Ok(())
    }

    pub(super) fn rename(&mut self, from: &str, old: &str, to: &str, new: &str) -> ChangeResult {
        let view = self.writable()?;
        let old = view.resolve(from, old, false)?;
        let new = view.resolve(to, new, false)?;
        let Some(moved) = &old.node else { return Err(ErrorCode::NoEntry.into()) };
        view.check_not_root(&old.path)?;
        view.check_not_root(&new.path)?;
        if old.path == new.path {
            return Ok(());
        }
        match (moved.kind(), new.node.as_ref().map(PathNode::kind)) {
            (FileKind::Special, _) => return Err(special_file_denied(&old.path)),
            (_, Some(FileKind::Special)) => return Err(special_file_denied(&new.path)),
            (FileKind::Directory, Some(FileKind::File | FileKind::Link)) => {
                return Err(ErrorCode::NotDirectory.into());
            }
            (FileKind::File | FileKind::Link, Some(FileKind::Directory)) => {
                return Err(ErrorCode::IsDirectory.into());
            }
            (FileKind::File | FileKind::Link, None) if new.must_be_directory => {
                return Err(ErrorCode::NotDirectory.into());
            }
            (FileKind::Directory, _)
                if format!("{}/", new.path).starts_with(&format!("{}/", old.path)) =>
            {
                return Err(ErrorCode::Invalid.into());
            }
            (FileKind::Directory, Some(FileKind::Directory))
                if !view.list(&new.path)?.is_empty() =>
            {
                return Err(ErrorCode::NotEmpty.into());
            }
            (FileKind::Directory | FileKind::File | FileKind::Link, None | Some(_)) => {}
        }
        if let Some(PathNode::Existing(FileKind::File, _)) = &new.node {
            settings::check_change(&view.workspace, &new.path)?;
        }
        view.check_parent_writable(&old.path)?;
        view.check_parent_writable(&new.path)?;
        // All of it is judged before any of it moves.
        let moves = view.plan_moves(&old.path, &new.path, moved.kind())?;
        for one in &moves {
            self.touched.record_written(&one.old);
            self.touched.record_written(&one.new);
        }
        let view = self.writable()?;
        let (stage, root) = view.overlay_mut()?;
        stage.check_move_limits(
            root,
            moves.iter().map(|one| (one.old.as_str(), one.new.as_str(), one.kind)),
        )?;
        for PendingMove { old, new, kind } in &moves {
            if *kind == FileKind::Directory {
                stage.move_directory(root, old, new)?
            } else {
                stage.rename(root, old, new)?
            }
        }
        for PendingMove { old, .. } in
            moves.iter().rev().filter(|one| one.kind == FileKind::Directory)
        {
            stage.remove(root, old)?;
        }
        Ok(())
    }

    pub(super) fn writable(&mut self) -> Result<&mut WorkspaceFilesView, FileRefusal> {
        match &mut self.view {
            Some(view) if view.overlay.is_some() => Ok(view),
            Some(_) | None => Err(writes_denied()),
        }
    }
}

/// One file or directory that moves.
struct PendingMove {
    old: String,
    new: String,
    kind: FileKind,
}

impl WorkspaceFilesView {
    /// Returns the overlay and the workspace directory below it.
    pub(super) fn overlay_mut(&mut self) -> Result<(&mut Overlay, &cap_std::fs::Dir), FileRefusal> {
        let Self { workspace, overlay: stage } = self;
        Ok((stage.as_mut().ok_or_else(writes_denied)?, workspace.dir()))
    }

    pub(super) fn check_change(&self, place: &str, doing: FileAccess) -> ChangeResult {
        Ok(self.workspace.guard().check_change(place, doing)?)
    }

    /// Checks that names can be created and removed in the parent directory of a path. Otherwise
    /// the system would report the error only at the commit.
    pub(super) fn check_parent_writable(&self, place: &str) -> ChangeResult {
        let parent = rooted_fs::split(place).0;
        match self.node(parent)? {
            Some(PathNode::Existing(..)) => Ok(rooted_fs::check_writable(self.root(), parent)?),
            Some(PathNode::Staged(..) | PathNode::Link(_)) | None => Ok(()),
        }
    }

    fn check_not_root(&self, place: &str) -> ChangeResult {
        if place.is_empty() { Err(ErrorCode::Busy.into()) } else { Ok(()) }
    }

    /// Returns everything that moves with a path, directories before their entries, and checks each
    /// under both names. A file that may not be read may not move either, because it could be read
    /// under its new name.
    fn plan_moves(
        &self,
        old: &str,
        new: &str,
        kind: FileKind,
    ) -> Result<Vec<PendingMove>, FileRefusal> {
        let mut moves = Vec::new();
        let mut ahead = vec![(String::new(), kind)];
        while let Some((rest, kind)) = ahead.pop() {
            let (old, new) = (format!("{old}{rest}"), format!("{new}{rest}"));
            if moves.len() == MAX_MOVED {
                let reason = format!(
                    "one operation would move more than {MAX_MOVED} files and directories, such as \
                        `{old}`."
                );
                return Err(FileRefusal::Denied(
                    ErrorCode::Quota,
                    Denial::new(DenialCode::TooMuch, reason, "Move them in several calls."),
                ));
            }
            self.check_change(&old, FileAccess::Change)?;
            match kind {
                FileKind::Special => return Err(special_file_denied(&old)),
                FileKind::Directory => {
                    self.check_change(&new, FileAccess::CreateDirectory)?;
                    for entry in self.list(&old)? {
                        let (name, kind) = entry?;
                        ahead.push((format!("{rest}/{name}"), kind));
                    }
                }
                FileKind::File | FileKind::Link => {
                    self.check_change(
                        &new,
                        if kind == FileKind::Link {
                            FileAccess::MakeLink
                        } else {
                            FileAccess::Change
                        },
                    )?;
                    self.workspace.guard().check_read(&old)?;
                    if let Some(PathNode::Link(target)) = self.node(&old)?
                        && is_outside_workspace(rooted_fs::split(&new).0, &target)
                    {
                        return Err(FileRefusal::link_outside_workspace(&new));
                    }
                    if let Some(PathNode::Existing(FileKind::File, metadata)) = self.node(&old)? {
                        PathAccessGuard::check_hard_links(&old, &metadata)?;
                        settings::check_change(&self.workspace, &old)?;
                    }
                }
            }
            moves.push(PendingMove { old, new, kind });
        }
        Ok(moves)
    }
}

/// Returns whether the text of a link in a directory leads out of the workspace.
fn is_outside_workspace(directory: &str, target: &str) -> bool {
    let mut depth = directory.split('/').filter(|part| !part.is_empty()).count();
    if target.starts_with('/') {
        return true;
    }
    for part in target.split('/') {
        match part {
            "" | "." => {}
            ".." => match depth.checked_sub(1) {
                Some(up) => depth = up,
                None => return true,
            },
            _ => depth += 1,
        }
    }
    false
}

/// Returns whether a link target has a `..` after another component. The target of such a link
/// depends on the components before it, which may change later.
fn has_inner_parent_dir(target: &str) -> bool {
    let parts = target.split('/').filter(|part| !matches!(*part, "" | "."));
    parts.skip_while(|part| *part == "..").any(|part| part == "..")
}

impl WorkspaceFilesView {
    /// Compares the staged changes with the workspace. Returns `None` if nothing changes.
    pub(in crate::sandbox) fn finish(
        self,
        is_over: &dyn Fn() -> bool,
    ) -> Result<Option<Staged>, StageError> {
        if let Some(place) = self.find_escaping_link() {
            return Err(StageError::LinkOutsideWorkspace(place.to_owned()));
        }
        let Self { workspace, overlay: stage } = self;
        let Some(stage) = stage.filter(|stage| !stage.is_empty()) else { return Ok(None) };
        Ok(Some(stage.finish(&workspace, is_over)?).filter(|staged| !staged.changes().is_empty()))
    }

    /// Returns a staged link that leads out of the workspace, by its text or through other links.
    fn find_escaping_link(&self) -> Option<&str> {
        let links = self.overlay.iter().flat_map(Overlay::links);
        let leads_out = |place: &str, target: &str| {
            is_outside_workspace(rooted_fs::split(place).0, target)
                || matches!(
                    self.resolve("", place, true),
                    Err(FileRefusal::Denied(_, denial))
                        if denial.code == DenialCode::OutsideWorkspace
                )
        };
        links.filter(|(place, target)| leads_out(place, target)).map(|(place, _)| place).next()
    }
}

pub(super) fn special_file_denied(place: &str) -> FileRefusal {
    let reason = format!(
        "`{place}` is a FIFO, a socket or a device; tools can use only files and directories."
    );
    FileRefusal::Denied(
        ErrorCode::NotPermitted,
        Denial::without_remedy(DenialCode::SpecialFile, reason),
    )
}

pub(super) fn writes_denied() -> FileRefusal {
    let denial = crate::sandbox::call_state::not_granted("change files", "write-files");
    FileRefusal::Denied(ErrorCode::NotPermitted, denial)
}
