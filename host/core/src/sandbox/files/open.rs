//! Opens files and directories: resolves the path and checks that the target may be read or staged.

use wasmtime_wasi::filesystem::{Dir, File};
use wasmtime_wasi::p2::bindings::filesystem::types::{DescriptorFlags, ErrorCode, OpenFlags};
use wasmtime_wasi::{FsPerms, OpenMode};

use super::CallFiles;
use super::change::special_file_denied;
use super::file_refusal::FileRefusal;
use super::guard::{FileAccess, PathAccessGuard};
use super::settings;
use super::view::{PathNode, ResolvedPath, WorkspaceFilesView};
use crate::sandbox::file_version::FileVersion;
use crate::sandbox::rooted_fs::{self, FileKind};
use crate::sandbox::stage::StagedState;

/// The result of `open-at`.
pub(super) enum FileOpenResult {
    Directory(String, Dir),
    /// A file that the call has already staged.
    Staged(File),
    /// A file of the workspace that was just copied for writing, with its path.
    Copied(String, File),
    /// A file of the workspace, with its path.
    Existing(String, File),
}

impl CallFiles {
    /// Opens the target of a path.
    pub(super) fn open(
        &mut self,
        from: &str,
        path: &str,
        follow: bool,
        oflags: OpenFlags,
        flags: DescriptorFlags,
    ) -> Result<FileOpenResult, FileRefusal> {
        let unsupported = DescriptorFlags::FILE_INTEGRITY_SYNC
            | DescriptorFlags::DATA_INTEGRITY_SYNC
            | DescriptorFlags::REQUESTED_WRITE_SYNC;
        if flags.intersects(unsupported) {
            return Err(ErrorCode::Unsupported.into());
        }
        let changes =
            oflags.intersects(OpenFlags::CREATE | OpenFlags::EXCLUSIVE | OpenFlags::TRUNCATE);
        if oflags.contains(OpenFlags::DIRECTORY) && changes {
            return Err(ErrorCode::Invalid.into());
        }
        let writes = flags.contains(DescriptorFlags::WRITE) || changes;
        let view = if writes {
            self.writable()?
        } else {
            self.view.as_mut().ok_or(ErrorCode::BadDescriptor)?
        };
        // A link is something too, wherever it leads.
        let is_new = oflags.contains(OpenFlags::CREATE | OpenFlags::EXCLUSIVE);
        let ResolvedPath { path: place, node, must_be_directory: as_directory } =
            view.resolve(from, path, follow && !is_new)?;
        let Some(node) = node else {
            return match oflags.contains(OpenFlags::CREATE) {
                true if as_directory => Err(ErrorCode::IsDirectory.into()),
                true => self.create(place, flags),
                false => Err(ErrorCode::NoEntry.into()),
            };
        };
        if is_new {
            return Err(ErrorCode::Exist.into());
        }
        match node.kind() {
            FileKind::Link => Err(ErrorCode::Loop.into()),
            FileKind::Special => Err(special_file_denied(&place)),
            FileKind::Directory if writes => Err(ErrorCode::IsDirectory.into()),
            FileKind::Directory => {
                let is_mutable =
                    flags.contains(DescriptorFlags::MUTATE_DIRECTORY) && view.overlay.is_some();
                let opened = directory_descriptor(view.open_directory(&place)?, is_mutable);
                Ok(FileOpenResult::Directory(place, opened))
            }
            FileKind::File if oflags.contains(OpenFlags::DIRECTORY) => {
                Err(ErrorCode::NotDirectory.into())
            }
            FileKind::File if writes => {
                self.open_for_writing(place, &node, flags, oflags.contains(OpenFlags::TRUNCATE))
            }
            FileKind::File => self.open_for_reading(place, &node, flags),
        }
    }

    fn create(
        &mut self,
        place: String,
        flags: DescriptorFlags,
    ) -> Result<FileOpenResult, FileRefusal> {
        let view = self.writable()?;
        view.check_change(&place, FileAccess::Change)?;
        view.check_parent_writable(&place)?;
        let (stage, root) = view.overlay_mut()?;
        stage.create(root, &place)?;
        let file = view.open_staged(&place, flags, true)?;
        self.touched.record_written(&place);
        Ok(FileOpenResult::Staged(file))
    }

    fn open_for_writing(
        &mut self,
        place: String,
        node: &PathNode,
        flags: DescriptorFlags,
        truncate: bool,
    ) -> Result<FileOpenResult, FileRefusal> {
        let view = self.writable()?;
        view.check_change(&place, FileAccess::Change)?;
        let is_there = match node {
            PathNode::Existing(_, metadata) => {
                PathAccessGuard::check_hard_links(&place, metadata)?;
                settings::check_change(&view.workspace, &place)?;
                rooted_fs::check_writable(view.root(), &place)?;
                let (stage, root) = view.overlay_mut()?;
                stage.copy(root, &place, !truncate)?;
                true
            }
            PathNode::Staged(..) | PathNode::Link(_) => false,
        };
        let file = view.open_staged(&place, flags, true)?;
        if truncate {
            file.file.set_len(0)?;
        }
        self.touched.record_written(&place);
        Ok(if is_there {
            FileOpenResult::Copied(place, file)
        } else {
            FileOpenResult::Staged(file)
        })
    }

    fn open_for_reading(
        &mut self,
        place: String,
        node: &PathNode,
        flags: DescriptorFlags,
    ) -> Result<FileOpenResult, FileRefusal> {
        let view = self.view.as_mut().ok_or(ErrorCode::BadDescriptor)?;
        view.workspace.guard().check_read(&place)?;
        if let PathNode::Staged(..) = node {
            return Ok(FileOpenResult::Staged(view.open_staged(&place, flags, false)?));
        }
        // What a call bases its changes on is what has to be there when they are made.
        if let Some(stage) = &mut view.overlay {
            stage.record_original(view.workspace.dir(), &place)?;
        }
        let (file, metadata) = rooted_fs::open(view.root(), &place)?;
        let (file, note) = settings::without_secrets(&view.workspace, &place, file)?;
        note.iter().for_each(|note| self.refusals.add(note));
        self.touched.record_read(&place, FileVersion::from_metadata(&metadata));
        Ok(FileOpenResult::Existing(
            place,
            File::new(file, FsPerms::ReadOnly, OpenMode::READ, true),
        ))
    }

    /// Opens the staged copy of a path for reading, for the handles that are already open.
    pub(super) fn open_copy(&self, place: &str) -> Result<File, FileRefusal> {
        self.view.as_ref().ok_or(ErrorCode::BadDescriptor)?.open_staged(
            place,
            DescriptorFlags::READ,
            false,
        )
    }

    pub(super) fn stat(
        &self,
        from: &str,
        path: &str,
        follow: bool,
    ) -> Result<(String, PathNode), FileRefusal> {
        let view = self.view.as_ref().ok_or(ErrorCode::BadDescriptor)?;
        let found = view.resolve(from, path, follow)?;
        match found.node {
            Some(node) => Ok((found.path, node)),
            None => Err(ErrorCode::NoEntry.into()),
        }
    }
}

impl WorkspaceFilesView {
    fn open_staged(
        &self,
        place: &str,
        flags: DescriptorFlags,
        writes: bool,
    ) -> Result<File, FileRefusal> {
        let Some(StagedState::File(file)) =
            self.overlay.as_ref().and_then(|stage| stage.get(place))
        else {
            return Err(ErrorCode::NoEntry.into());
        };
        let reads =
            flags.contains(DescriptorFlags::READ) || !flags.contains(DescriptorFlags::WRITE);
        let opened = std::fs::File::options().read(reads).write(writes).open(&file.data)?;
        let (mut mode, mut perms) = (OpenMode::empty(), FsPerms::ReadOnly);
        mode.set(OpenMode::READ, reads);
        if writes {
            mode |= OpenMode::WRITE;
            perms = FsPerms::ReadWrite;
        }
        Ok(File::new(opened, perms, mode, true))
    }

    fn open_directory(&self, place: &str) -> Result<cap_std::fs::Dir, FileRefusal> {
        match self.overlay.as_ref().and_then(|stage| stage.get(place)) {
            Some(StagedState::Directory { data, .. }) => {
                Ok(cap_std::fs::Dir::open_ambient_dir(data, cap_std::ambient_authority())?)
            }
            Some(StagedState::Removed | StagedState::File(_) | StagedState::Link(_)) => {
                Err(ErrorCode::NoEntry.into())
            }
            None => Ok(rooted_fs::open_dir(self.root(), place)?),
        }
    }
}

pub(super) fn directory_descriptor(opened: cap_std::fs::Dir, mutable: bool) -> Dir {
    let mode = if mutable { OpenMode::READ | OpenMode::WRITE } else { OpenMode::READ };
    let perms = if mutable { FsPerms::ReadWrite } else { FsPerms::ReadOnly };
    Dir::new(opened.into_std_file(), perms, mode, true)
}
