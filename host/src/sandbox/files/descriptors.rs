//! The functions of `wasi:filesystem/types`. What takes a path is done here; what takes an open file is wasmtime's.

use cap_std::fs::Metadata;
use wasmtime::component::Resource;
use wasmtime_wasi::FsPerms;
use wasmtime_wasi::filesystem::{Descriptor, File, WasiFilesystemView as _};
use wasmtime_wasi::p2::bindings::filesystem::preopens;
use wasmtime_wasi::p2::bindings::filesystem::types::{
    self, Advice, DescriptorFlags, DescriptorStat, DescriptorType, ErrorCode, Filesize, HostDescriptor, MetadataHashValue, NewTimestamp,
    OpenFlags, PathFlags,
};
use wasmtime_wasi::p2::{DynInputStream, DynOutputStream, FsError, FsResult, ReaddirIterator};

use super::change::read_only;
use super::listing::Listing;
use super::metered::Metered;
use super::open::{Opened, directory};
use super::problem::Problem;
use super::view::Node;
use super::{listing, stat};
use crate::sandbox::below;
use crate::sandbox::stage::LARGEST_FILE;
use crate::sandbox::state::State;

type Fd = Resource<Descriptor>;

impl preopens::Host for State {
    fn get_directories(&mut self) -> wasmtime::Result<Vec<(Fd, String)>> {
        let Some(view) = &self.files.view else { return Ok(Vec::new()) };
        let root = below::directory(view.root(), "")?;
        let is_mutable = view.stage.is_some();
        let fd = self.hand_out(Descriptor::Dir(directory(root, is_mutable))).map_err(wasmtime::Error::from)?;
        self.files.directories.insert(fd.rep(), String::new());
        Ok(vec![(fd, "/".to_owned())])
    }
}

impl types::Host for State {
    fn convert_error_code(&mut self, error: FsError) -> wasmtime::Result<ErrorCode> {
        error.downcast()
    }

    fn filesystem_error_code(&mut self, error: Resource<wasmtime::Error>) -> wasmtime::Result<Option<ErrorCode>> {
        types::Host::filesystem_error_code(&mut self.filesystem(), error)
    }
}

impl State {
    /// The place of an open directory.
    fn place(&self, fd: &Fd) -> FsResult<String> {
        match self.table.get(fd)? {
            Descriptor::Dir(_) => self.files.directories.get(&fd.rep()).cloned().ok_or_else(|| ErrorCode::BadDescriptor.into()),
            Descriptor::File(_) => Err(ErrorCode::NotDirectory.into()),
        }
    }

    fn metadata(&self, fd: &Fd) -> FsResult<Metadata> {
        let file = match self.table.get(fd)? {
            Descriptor::File(file) => &file.file,
            Descriptor::Dir(directory) => &directory.dir,
        };
        Ok(Metadata::from_file(file)?)
    }

    /// An open file that may be written, which is always one aside.
    fn written(&self, fd: &Fd) -> FsResult<&File> {
        match self.table.get(fd)? {
            Descriptor::File(file) if file.perms == FsPerms::ReadWrite => Ok(file),
            Descriptor::File(_) => Err(ErrorCode::NotPermitted.into()),
            Descriptor::Dir(_) => Err(ErrorCode::BadDescriptor.into()),
        }
    }

    /// Gives the guest something that was opened.
    fn hand_out(&mut self, opened: Descriptor) -> FsResult<Fd> {
        let room = self.files.has_room_to_open();
        self.done(room)?;
        let fd = self.table.push(opened)?;
        self.files.open += 1;
        Ok(fd)
    }

    /// Whoever has this file open sees from now on what is written to its copy: to a guest both are one file.
    fn read_the_copy(&mut self, place: &str) -> FsResult<()> {
        let opened: Vec<u32> = self.files.there.extract_if(|_, there| there == place).map(|(rep, _)| rep).collect();
        for rep in opened {
            let copy = self.files.open_copy(place);
            let copy = self.done(copy)?;
            *self.table.get_mut(&Fd::new_borrow(rep))? = Descriptor::File(copy);
        }
        Ok(())
    }

    fn done<T>(&mut self, done: Result<T, Problem>) -> FsResult<T> {
        done.map_err(|problem| self.files.refused(problem))
    }

    /// Puts a limit on a stream that begins at this offset.
    fn metered(&mut self, stream: FsResult<Resource<DynOutputStream>>, offset: u64) -> FsResult<Resource<DynOutputStream>> {
        let inner = self.table.delete(stream?)?;
        let Some(stage) = self.files.view.as_ref().and_then(|view| view.stage.as_ref()) else { return Err(ErrorCode::NotPermitted.into()) };
        let metered: DynOutputStream = Box::new(Metered::new(inner, stage.budget(), offset));
        Ok(self.table.push(metered)?)
    }
}

fn follows(flags: PathFlags) -> bool {
    flags.contains(PathFlags::SYMLINK_FOLLOW)
}

impl HostDescriptor for State {
    async fn open_at(&mut self, fd: Fd, path_flags: PathFlags, path: String, oflags: OpenFlags, flags: DescriptorFlags) -> FsResult<Fd> {
        let from = self.place(&fd)?;
        let opened = self.files.open(&from, &path, follows(path_flags), oflags, flags);
        match self.done(opened)? {
            Opened::Aside(file) => self.hand_out(Descriptor::File(file)),
            Opened::Copied(place, file) => {
                self.read_the_copy(&place)?;
                self.hand_out(Descriptor::File(file))
            }
            Opened::There(place, file) => {
                let fd = self.hand_out(Descriptor::File(file))?;
                self.files.there.insert(fd.rep(), place);
                Ok(fd)
            }
            Opened::Directory(place, directory) => {
                let fd = self.hand_out(Descriptor::Dir(directory))?;
                self.files.directories.insert(fd.rep(), place);
                Ok(fd)
            }
        }
    }

    fn drop(&mut self, fd: Fd) -> wasmtime::Result<()> {
        self.files.directories.remove(&fd.rep());
        self.files.there.remove(&fd.rep());
        self.table.delete(fd)?;
        self.files.open -= 1;
        Ok(())
    }

    async fn stat_at(&mut self, fd: Fd, path_flags: PathFlags, path: String) -> FsResult<DescriptorStat> {
        let from = self.place(&fd)?;
        let found = self.files.stat(&from, &path, follows(path_flags));
        let (place, node) = self.done(found)?;
        Ok(match &node {
            Node::There(_, metadata) | Node::Aside(_, metadata) => stat::of(metadata),
            Node::Link(target) => match self.files.view.as_ref().and_then(|view| view.link_there(&place)) {
                Some(metadata) => stat::of(&metadata),
                None => stat::of_link(target),
            },
        })
    }

    async fn metadata_hash_at(&mut self, fd: Fd, path_flags: PathFlags, path: String) -> FsResult<MetadataHashValue> {
        let from = self.place(&fd)?;
        let found = self.files.stat(&from, &path, follows(path_flags));
        let (place, node) = self.done(found)?;
        Ok(match &node {
            Node::There(_, metadata) | Node::Aside(_, metadata) => stat::hash(metadata),
            Node::Link(_) => stat::hash_of(&place),
        })
    }

    async fn readlink_at(&mut self, fd: Fd, path: String) -> FsResult<String> {
        let from = self.place(&fd)?;
        let found = self.files.stat(&from, &path, false);
        match self.done(found)?.1 {
            // Where an absolute link leads is none of the guest's business.
            Node::Link(target) if target.starts_with('/') => self.done(Err(Problem::link_leads_out(&path))),
            Node::Link(target) => Ok(target),
            Node::There(..) | Node::Aside(..) => Err(ErrorCode::Invalid.into()),
        }
    }

    async fn read_directory(&mut self, fd: Fd) -> FsResult<Resource<ReaddirIterator>> {
        let place = self.place(&fd)?;
        let Some(view) = &self.files.view else { return Err(ErrorCode::BadDescriptor.into()) };
        let names = view.list(&place);
        let listing = Listing::new(self.done(names)?);
        let room = self.files.list(listing.bytes());
        self.done(room)?;
        listing::push(&mut self.table, listing)
    }

    async fn create_directory_at(&mut self, fd: Fd, path: String) -> FsResult<()> {
        let from = self.place(&fd)?;
        let done = self.files.create_directory(&from, &path);
        self.done(done)
    }

    async fn unlink_file_at(&mut self, fd: Fd, path: String) -> FsResult<()> {
        let from = self.place(&fd)?;
        let done = self.files.unlink(&from, &path);
        self.done(done)
    }

    async fn remove_directory_at(&mut self, fd: Fd, path: String) -> FsResult<()> {
        let from = self.place(&fd)?;
        let done = self.files.remove_directory(&from, &path);
        self.done(done)
    }

    async fn rename_at(&mut self, fd: Fd, old_path: String, new_fd: Fd, new_path: String) -> FsResult<()> {
        let (from, to) = (self.place(&fd)?, self.place(&new_fd)?);
        let done = self.files.rename(&from, &old_path, &to, &new_path);
        self.done(done)
    }

    async fn symlink_at(&mut self, fd: Fd, target: String, path: String) -> FsResult<()> {
        let from = self.place(&fd)?;
        let done = self.files.symlink(&from, &target, &path);
        self.done(done)
    }

    async fn link_at(&mut self, _: Fd, _: PathFlags, _: String, _: Fd, _: String) -> FsResult<()> {
        self.not_aside()
    }

    async fn set_times(&mut self, _: Fd, _: NewTimestamp, _: NewTimestamp) -> FsResult<()> {
        self.not_aside()
    }

    async fn set_times_at(&mut self, _: Fd, _: PathFlags, _: String, _: NewTimestamp, _: NewTimestamp) -> FsResult<()> {
        self.not_aside()
    }

    async fn write(&mut self, fd: Fd, buffer: Vec<u8>, offset: Filesize) -> FsResult<Filesize> {
        self.written(&fd)?;
        if offset.saturating_add(buffer.len() as u64) > LARGEST_FILE {
            return Err(ErrorCode::FileTooLarge.into());
        }
        let taken = self.files.take(buffer.len() as u64);
        self.done(taken)?;
        HostDescriptor::write(&mut self.filesystem(), fd, buffer, offset).await
    }

    async fn set_size(&mut self, fd: Fd, size: Filesize) -> FsResult<()> {
        self.written(&fd)?;
        if size > LARGEST_FILE {
            return Err(ErrorCode::FileTooLarge.into());
        }
        HostDescriptor::set_size(&mut self.filesystem(), fd, size).await
    }

    fn write_via_stream(&mut self, fd: Fd, offset: Filesize) -> FsResult<Resource<DynOutputStream>> {
        self.written(&fd)?;
        if offset > LARGEST_FILE {
            return Err(ErrorCode::FileTooLarge.into());
        }
        let stream = HostDescriptor::write_via_stream(&mut self.filesystem(), fd, offset);
        self.metered(stream, offset)
    }

    fn append_via_stream(&mut self, fd: Fd) -> FsResult<Resource<DynOutputStream>> {
        self.written(&fd)?;
        let end = self.metadata(&fd)?.len();
        let stream = HostDescriptor::append_via_stream(&mut self.filesystem(), fd);
        self.metered(stream, end)
    }

    fn read_via_stream(&mut self, fd: Fd, offset: Filesize) -> FsResult<Resource<DynInputStream>> {
        HostDescriptor::read_via_stream(&mut self.filesystem(), fd, offset)
    }

    async fn read(&mut self, fd: Fd, length: Filesize, offset: Filesize) -> FsResult<(Vec<u8>, bool)> {
        HostDescriptor::read(&mut self.filesystem(), fd, length, offset).await
    }

    async fn advise(&mut self, fd: Fd, offset: Filesize, length: Filesize, advice: Advice) -> FsResult<()> {
        HostDescriptor::advise(&mut self.filesystem(), fd, offset, length, advice).await
    }

    // What is written aside is made durable when it is committed.
    async fn sync_data(&mut self, fd: Fd) -> FsResult<()> {
        self.table.get(&fd)?;
        Ok(())
    }

    async fn sync(&mut self, fd: Fd) -> FsResult<()> {
        self.table.get(&fd)?;
        Ok(())
    }

    async fn get_flags(&mut self, fd: Fd) -> FsResult<DescriptorFlags> {
        HostDescriptor::get_flags(&mut self.filesystem(), fd).await
    }

    async fn get_type(&mut self, fd: Fd) -> FsResult<DescriptorType> {
        HostDescriptor::get_type(&mut self.filesystem(), fd).await
    }

    async fn stat(&mut self, fd: Fd) -> FsResult<DescriptorStat> {
        Ok(stat::of(&self.metadata(&fd)?))
    }

    async fn metadata_hash(&mut self, fd: Fd) -> FsResult<MetadataHashValue> {
        Ok(stat::hash(&self.metadata(&fd)?))
    }

    async fn is_same_object(&mut self, a: Fd, b: Fd) -> wasmtime::Result<bool> {
        HostDescriptor::is_same_object(&mut self.filesystem(), a, b).await
    }
}

impl State {
    /// For operations that a stage does not know.
    fn not_aside(&mut self) -> FsResult<()> {
        let writes = self.files.writable().map(drop);
        match writes {
            Ok(()) => Err(ErrorCode::Unsupported.into()),
            Err(_) => self.done(Err(read_only())),
        }
    }
}
