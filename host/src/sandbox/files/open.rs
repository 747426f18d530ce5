//! Opening: to where a path leads, and only if that may be read, or written aside.

use wasmtime_wasi::filesystem::{Dir, File};
use wasmtime_wasi::p2::bindings::filesystem::types::{DescriptorFlags, ErrorCode, OpenFlags};
use wasmtime_wasi::{FsPerms, OpenMode};

use super::Files;
use super::change::special;
use super::guard::{Doing, Guard};
use super::problem::Problem;
use super::view::{Node, View};
use crate::sandbox::below::{self, Kind};
use crate::sandbox::stage::Aside;
use crate::sandbox::version::Version;

/// What `open-at` comes to.
pub(super) enum Opened {
    Directory(String, Dir),
    File(File),
}

impl Files {
    /// Opens what a path leads to.
    pub(super) fn open(
        &mut self,
        from: &str,
        path: &str,
        follow: bool,
        oflags: OpenFlags,
        flags: DescriptorFlags,
    ) -> Result<Opened, Problem> {
        let unsupported =
            DescriptorFlags::FILE_INTEGRITY_SYNC | DescriptorFlags::DATA_INTEGRITY_SYNC | DescriptorFlags::REQUESTED_WRITE_SYNC;
        if flags.intersects(unsupported) {
            return Err(ErrorCode::Unsupported.into());
        }
        let changes = oflags.intersects(OpenFlags::CREATE | OpenFlags::EXCLUSIVE | OpenFlags::TRUNCATE);
        if oflags.contains(OpenFlags::DIRECTORY) && changes {
            return Err(ErrorCode::Invalid.into());
        }
        let writes = flags.contains(DescriptorFlags::WRITE) || changes;
        let view = if writes { self.writable()? } else { self.view.as_mut().ok_or(ErrorCode::BadDescriptor)? };
        let found = view.find(from, path, follow)?;
        let place = found.place;
        let Some(node) = found.node else {
            if !oflags.contains(OpenFlags::CREATE) {
                return Err(ErrorCode::NoEntry.into());
            }
            if found.as_directory {
                return Err(ErrorCode::IsDirectory.into());
            }
            view.judge(&place, Doing::Changing)?;
            view.parent_is_writable(&place)?;
            let (stage, root) = view.aside()?;
            stage.create(root, &place)?;
            let file = view.open_aside(&place, flags, true)?;
            self.touched.written(&place);
            return Ok(Opened::File(file));
        };
        if oflags.contains(OpenFlags::CREATE | OpenFlags::EXCLUSIVE) {
            return Err(ErrorCode::Exist.into());
        }
        match node.kind() {
            Kind::Link => Err(ErrorCode::Loop.into()),
            Kind::Special => Err(special(&place)),
            Kind::Directory if writes => Err(ErrorCode::IsDirectory.into()),
            Kind::Directory => {
                let mutable = flags.contains(DescriptorFlags::MUTATE_DIRECTORY) && view.stage.is_some();
                let opened = directory(view.open_directory(&place)?, mutable);
                Ok(Opened::Directory(place, opened))
            }
            Kind::File if oflags.contains(OpenFlags::DIRECTORY) => Err(ErrorCode::NotDirectory.into()),
            Kind::File if writes => {
                view.judge(&place, Doing::Changing)?;
                let truncate = oflags.contains(OpenFlags::TRUNCATE);
                if let Node::There(_, metadata) = &node {
                    Guard::linked(&place, metadata)?;
                    below::may_write(view.root(), &place)?;
                    let (stage, root) = view.aside()?;
                    stage.copy(root, &place, !truncate)?;
                }
                let file = view.open_aside(&place, flags, true)?;
                if truncate {
                    file.file.set_len(0)?;
                }
                self.touched.written(&place);
                Ok(Opened::File(file))
            }
            Kind::File => {
                view.workspace.guard().reading(&place)?;
                let file = match &node {
                    Node::Aside(..) => view.open_aside(&place, flags, false)?,
                    Node::There(..) | Node::Link(_) => {
                        // What a call bases its changes on is what has to be there when they are made.
                        if let Some(stage) = &mut view.stage {
                            stage.meet(view.workspace.dir(), &place)?;
                        }
                        let (file, metadata) = below::open(view.root(), &place)?;
                        self.touched.read(&place, Version::of(&metadata));
                        File::new(file, FsPerms::ReadOnly, OpenMode::READ, true)
                    }
                };
                Ok(Opened::File(file))
            }
        }
    }

    pub(super) fn stat(&self, from: &str, path: &str, follow: bool) -> Result<(String, Node), Problem> {
        let view = self.view.as_ref().ok_or(ErrorCode::BadDescriptor)?;
        let found = view.find(from, path, follow)?;
        match found.node {
            Some(node) => Ok((found.place, node)),
            None => Err(ErrorCode::NoEntry.into()),
        }
    }
}

impl View {
    fn open_aside(&self, place: &str, flags: DescriptorFlags, writes: bool) -> Result<File, Problem> {
        let Some(Aside::File(file)) = self.stage.as_ref().and_then(|stage| stage.at(place)) else {
            return Err(ErrorCode::NoEntry.into());
        };
        let reads = flags.contains(DescriptorFlags::READ) || !flags.contains(DescriptorFlags::WRITE);
        let opened = std::fs::File::options().read(reads).write(writes).open(&file.data)?;
        let (mut mode, mut perms) = (OpenMode::empty(), FsPerms::ReadOnly);
        mode.set(OpenMode::READ, reads);
        if writes {
            mode |= OpenMode::WRITE;
            perms = FsPerms::ReadWrite;
        }
        Ok(File::new(opened, perms, mode, true))
    }

    fn open_directory(&self, place: &str) -> Result<cap_std::fs::Dir, Problem> {
        match self.stage.as_ref().and_then(|stage| stage.at(place)) {
            Some(Aside::Directory(data)) => Ok(cap_std::fs::Dir::open_ambient_dir(data, cap_std::ambient_authority())?),
            Some(Aside::Gone | Aside::File(_) | Aside::Link(_)) => Err(ErrorCode::NoEntry.into()),
            None => Ok(below::directory(self.root(), place)?),
        }
    }
}

pub(super) fn directory(opened: cap_std::fs::Dir, mutable: bool) -> Dir {
    let mode = if mutable { OpenMode::READ | OpenMode::WRITE } else { OpenMode::READ };
    let perms = if mutable { FsPerms::ReadWrite } else { FsPerms::ReadOnly };
    Dir::new(opened.into_std_file(), perms, mode, true)
}
