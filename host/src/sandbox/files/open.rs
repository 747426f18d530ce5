//! Opening: to where a path leads, and only if that may be read, or written aside.

use wasmtime_wasi::filesystem::{Dir, File};
use wasmtime_wasi::p2::bindings::filesystem::types::{DescriptorFlags, ErrorCode, OpenFlags};
use wasmtime_wasi::{FsPerms, OpenMode};

use super::Files;
use super::change::special;
use super::guard::{Doing, Guard};
use super::problem::Problem;
use super::view::{Found, Node, View};
use crate::sandbox::below::{self, Kind};
use crate::sandbox::stage::Aside;
use crate::sandbox::version::Version;

/// What `open-at` comes to.
pub(super) enum Opened {
    Directory(String, Dir),
    /// What the call has written already.
    Aside(File),
    /// A file of the workspace that was copied aside just now.
    Copied(String, File),
    /// A file of the workspace.
    There(String, File),
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
        // A link is something too, wherever it leads.
        let is_new = oflags.contains(OpenFlags::CREATE | OpenFlags::EXCLUSIVE);
        let Found { place, node, as_directory } = view.find(from, path, follow && !is_new)?;
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
            Kind::Link => Err(ErrorCode::Loop.into()),
            Kind::Special => Err(special(&place)),
            Kind::Directory if writes => Err(ErrorCode::IsDirectory.into()),
            Kind::Directory => {
                let is_mutable = flags.contains(DescriptorFlags::MUTATE_DIRECTORY) && view.stage.is_some();
                let opened = directory(view.open_directory(&place)?, is_mutable);
                Ok(Opened::Directory(place, opened))
            }
            Kind::File if oflags.contains(OpenFlags::DIRECTORY) => Err(ErrorCode::NotDirectory.into()),
            Kind::File if writes => self.open_for_writing(place, &node, flags, oflags.contains(OpenFlags::TRUNCATE)),
            Kind::File => self.open_for_reading(place, &node, flags),
        }
    }

    fn create(&mut self, place: String, flags: DescriptorFlags) -> Result<Opened, Problem> {
        let view = self.writable()?;
        view.judge(&place, Doing::Changing)?;
        view.parent_is_writable(&place)?;
        let (stage, root) = view.aside()?;
        stage.create(root, &place)?;
        let file = view.open_aside(&place, flags, true)?;
        self.touched.written(&place);
        Ok(Opened::Aside(file))
    }

    fn open_for_writing(&mut self, place: String, node: &Node, flags: DescriptorFlags, truncate: bool) -> Result<Opened, Problem> {
        let view = self.writable()?;
        view.judge(&place, Doing::Changing)?;
        let is_there = match node {
            Node::There(_, metadata) => {
                Guard::linked(&place, metadata)?;
                below::may_write(view.root(), &place)?;
                let (stage, root) = view.aside()?;
                stage.copy(root, &place, !truncate)?;
                true
            }
            Node::Aside(..) | Node::Link(_) => false,
        };
        let file = view.open_aside(&place, flags, true)?;
        if truncate {
            file.file.set_len(0)?;
        }
        self.touched.written(&place);
        Ok(if is_there { Opened::Copied(place, file) } else { Opened::Aside(file) })
    }

    fn open_for_reading(&mut self, place: String, node: &Node, flags: DescriptorFlags) -> Result<Opened, Problem> {
        let view = self.view.as_mut().ok_or(ErrorCode::BadDescriptor)?;
        view.workspace.guard().reading(&place)?;
        if let Node::Aside(..) = node {
            return Ok(Opened::Aside(view.open_aside(&place, flags, false)?));
        }
        // What a call bases its changes on is what has to be there when they are made.
        if let Some(stage) = &mut view.stage {
            stage.meet(view.workspace.dir(), &place)?;
        }
        let (file, metadata) = below::open(view.root(), &place)?;
        self.touched.read(&place, Version::of(&metadata));
        Ok(Opened::There(place, File::new(file, FsPerms::ReadOnly, OpenMode::READ, true)))
    }

    /// What is aside at a place, for whoever has it open to read it.
    pub(super) fn open_copy(&self, place: &str) -> Result<File, Problem> {
        self.view.as_ref().ok_or(ErrorCode::BadDescriptor)?.open_aside(place, DescriptorFlags::READ, false)
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
            Some(Aside::Directory { data, .. }) => Ok(cap_std::fs::Dir::open_ambient_dir(data, cap_std::ambient_authority())?),
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
