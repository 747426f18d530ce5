//! The functions of `wasi:filesystem/types`. The host implements those that take a path; Wasmtime
//! implements those that take an open file.

use cap_std::fs::Metadata;
use wasmtime::component::Resource;
use wasmtime_wasi::FsPerms;
use wasmtime_wasi::filesystem::{Descriptor, File, WasiFilesystemView as _};
use wasmtime_wasi::p2::bindings::filesystem::preopens;
use wasmtime_wasi::p2::bindings::filesystem::types::{
    self, Advice, DescriptorFlags, DescriptorStat, DescriptorType, ErrorCode, Filesize,
    HostDescriptor, MetadataHashValue, NewTimestamp, OpenFlags, PathFlags,
};
use wasmtime_wasi::p2::{DynInputStream, DynOutputStream, FsError, FsResult, ReaddirIterator};

use super::change::writes_denied;
use super::file_refusal::FileRefusal;
use super::listing::DirectoryListing;
use super::metered_stream::MeteredStream;
use super::open::{FileOpenResult, directory_descriptor};
use super::view::PathNode;
use super::{FilesystemView, listing, stat};
use crate::sandbox::rooted_fs;
use crate::sandbox::stage::MAX_FILE_SIZE;

type DescriptorHandle = Resource<Descriptor>;

impl preopens::Host for FilesystemView<'_> {
    fn get_directories(&mut self) -> wasmtime::Result<Vec<(DescriptorHandle, String)>> {
        let Some(view) = &self.files.view else { return Ok(Vec::new()) };
        let root = rooted_fs::open_dir(view.root(), "")?;
        let is_mutable = view.overlay.is_some();
        let fd = self
            .push_descriptor(Descriptor::Dir(directory_descriptor(root, is_mutable)))
            .map_err(wasmtime::Error::from)?;
        self.files.open_directories.insert(fd.rep(), String::new());
        Ok(vec![(fd, "/".to_owned())])
    }
}

impl types::Host for FilesystemView<'_> {
    fn convert_error_code(&mut self, error: FsError) -> wasmtime::Result<ErrorCode> {
        error.downcast()
    }

    fn filesystem_error_code(
        &mut self,
        error: Resource<wasmtime::Error>,
    ) -> wasmtime::Result<Option<ErrorCode>> {
        types::Host::filesystem_error_code(&mut self.filesystem(), error)
    }
}

impl FilesystemView<'_> {
    /// Returns the workspace path of an open directory.
    fn directory_path(&self, fd: &DescriptorHandle) -> FsResult<String> {
        match self.table.get(fd)? {
            Descriptor::Dir(_) => self
                .files
                .open_directories
                .get(&fd.rep())
                .cloned()
                .ok_or_else(|| ErrorCode::BadDescriptor.into()),
            Descriptor::File(_) => Err(ErrorCode::NotDirectory.into()),
        }
    }

    fn metadata(&self, fd: &DescriptorHandle) -> FsResult<Metadata> {
        let file = match self.table.get(fd)? {
            Descriptor::File(file) => &file.file,
            Descriptor::Dir(directory) => &directory.dir,
        };
        Ok(Metadata::from_file(file)?)
    }

    /// Returns an open file that may be written, which is always a staged one.
    fn writable_file(&self, fd: &DescriptorHandle) -> FsResult<&File> {
        match self.table.get(fd)? {
            Descriptor::File(file) if file.perms == FsPerms::ReadWrite => Ok(file),
            Descriptor::File(_) => Err(ErrorCode::NotPermitted.into()),
            Descriptor::Dir(_) => Err(ErrorCode::BadDescriptor.into()),
        }
    }

    /// Adds an open file or directory to the guest's handles.
    fn push_descriptor(&mut self, opened: Descriptor) -> FsResult<DescriptorHandle> {
        let room = self.files.check_open_limit();
        self.map_refusal(room)?;
        let fd = self.table.push(opened)?;
        self.files.open_count += 1;
        Ok(fd)
    }

    /// Switches all handles of a file to its staged copy. For the guest both are the same file.
    fn switch_to_copy(&mut self, place: &str) -> FsResult<()> {
        let opened: Vec<u32> = self
            .files
            .open_originals
            .extract_if(|_, there| there == place)
            .map(|(rep, _)| rep)
            .collect();
        for rep in opened {
            let copy = self.files.open_copy(place);
            let copy = self.map_refusal(copy)?;
            *self.table.get_mut(&DescriptorHandle::new_borrow(rep))? = Descriptor::File(copy);
        }
        Ok(())
    }

    fn map_refusal<T>(&mut self, done: Result<T, FileRefusal>) -> FsResult<T> {
        done.map_err(|problem| self.files.record_refusal(problem))
    }

    /// Limits a stream that begins at this offset.
    fn meter_stream(
        &mut self,
        stream: FsResult<Resource<DynOutputStream>>,
        offset: u64,
    ) -> FsResult<Resource<DynOutputStream>> {
        let inner = self.table.delete(stream?)?;
        let Some(stage) = self.files.view.as_ref().and_then(|view| view.overlay.as_ref()) else {
            return Err(ErrorCode::NotPermitted.into());
        };
        let metered: DynOutputStream = Box::new(MeteredStream::new(inner, stage.budget(), offset));
        Ok(self.table.push(metered)?)
    }
}

fn follows_symlinks(flags: PathFlags) -> bool {
    flags.contains(PathFlags::SYMLINK_FOLLOW)
}

impl HostDescriptor for FilesystemView<'_> {
    async fn open_at(
        &mut self,
        fd: DescriptorHandle,
        path_flags: PathFlags,
        path: String,
        oflags: OpenFlags,
        flags: DescriptorFlags,
    ) -> FsResult<DescriptorHandle> {
        let from = self.directory_path(&fd)?;
        let opened = self.files.open(&from, &path, follows_symlinks(path_flags), oflags, flags);
        match self.map_refusal(opened)? {
            FileOpenResult::Staged(file) => self.push_descriptor(Descriptor::File(file)),
            FileOpenResult::Copied(place, file) => {
                self.switch_to_copy(&place)?;
                self.push_descriptor(Descriptor::File(file))
            }
            FileOpenResult::Existing(place, file) => {
                let fd = self.push_descriptor(Descriptor::File(file))?;
                self.files.open_originals.insert(fd.rep(), place);
                Ok(fd)
            }
            FileOpenResult::Directory(place, directory) => {
                let fd = self.push_descriptor(Descriptor::Dir(directory))?;
                self.files.open_directories.insert(fd.rep(), place);
                Ok(fd)
            }
        }
    }

    fn drop(&mut self, fd: DescriptorHandle) -> wasmtime::Result<()> {
        self.files.open_directories.remove(&fd.rep());
        self.files.open_originals.remove(&fd.rep());
        self.table.delete(fd)?;
        self.files.open_count -= 1;
        Ok(())
    }

    async fn stat_at(
        &mut self,
        fd: DescriptorHandle,
        path_flags: PathFlags,
        path: String,
    ) -> FsResult<DescriptorStat> {
        let from = self.directory_path(&fd)?;
        let found = self.files.stat(&from, &path, follows_symlinks(path_flags));
        let (place, node) = self.map_refusal(found)?;
        Ok(match &node {
            PathNode::Existing(_, metadata) | PathNode::Staged(_, metadata) => {
                stat::descriptor_stat(metadata)
            }
            PathNode::Link(target) => {
                match self.files.view.as_ref().and_then(|view| view.workspace_link_metadata(&place))
                {
                    Some(metadata) => stat::descriptor_stat(&metadata),
                    None => stat::link_stat(target),
                }
            }
        })
    }

    async fn metadata_hash_at(
        &mut self,
        fd: DescriptorHandle,
        path_flags: PathFlags,
        path: String,
    ) -> FsResult<MetadataHashValue> {
        let from = self.directory_path(&fd)?;
        let found = self.files.stat(&from, &path, follows_symlinks(path_flags));
        let (place, node) = self.map_refusal(found)?;
        Ok(match &node {
            PathNode::Existing(_, metadata) | PathNode::Staged(_, metadata) => {
                stat::metadata_hash(metadata)
            }
            PathNode::Link(_) => stat::identity_hash(&place),
        })
    }

    async fn readlink_at(&mut self, fd: DescriptorHandle, path: String) -> FsResult<String> {
        let from = self.directory_path(&fd)?;
        let found = self.files.stat(&from, &path, false);
        match self.map_refusal(found)?.1 {
            // Where an absolute link leads is none of the guest's business.
            PathNode::Link(target) if target.starts_with('/') => {
                self.map_refusal(Err(FileRefusal::link_outside_workspace(&path)))
            }
            PathNode::Link(target) => Ok(target),
            PathNode::Existing(..) | PathNode::Staged(..) => Err(ErrorCode::Invalid.into()),
        }
    }

    async fn read_directory(
        &mut self,
        fd: DescriptorHandle,
    ) -> FsResult<Resource<ReaddirIterator>> {
        let place = self.directory_path(&fd)?;
        let Some(view) = &self.files.view else { return Err(ErrorCode::BadDescriptor.into()) };
        let names = view.list(&place);
        let listing = DirectoryListing::new(self.map_refusal(names)?);
        let room = self.files.reserve_listing(listing.bytes());
        self.map_refusal(room)?;
        listing::push(self.table, listing)
    }

    async fn create_directory_at(&mut self, fd: DescriptorHandle, path: String) -> FsResult<()> {
        let from = self.directory_path(&fd)?;
        let done = self.files.create_directory(&from, &path);
        self.map_refusal(done)
    }

    async fn unlink_file_at(&mut self, fd: DescriptorHandle, path: String) -> FsResult<()> {
        let from = self.directory_path(&fd)?;
        let done = self.files.unlink(&from, &path);
        self.map_refusal(done)
    }

    async fn remove_directory_at(&mut self, fd: DescriptorHandle, path: String) -> FsResult<()> {
        let from = self.directory_path(&fd)?;
        let done = self.files.remove_directory(&from, &path);
        self.map_refusal(done)
    }

    async fn rename_at(
        &mut self,
        fd: DescriptorHandle,
        old_path: String,
        new_fd: DescriptorHandle,
        new_path: String,
    ) -> FsResult<()> {
        let (from, to) = (self.directory_path(&fd)?, self.directory_path(&new_fd)?);
        let done = self.files.rename(&from, &old_path, &to, &new_path);
        self.map_refusal(done)
    }

    async fn symlink_at(
        &mut self,
        fd: DescriptorHandle,
        target: String,
        path: String,
    ) -> FsResult<()> {
        let from = self.directory_path(&fd)?;
        let done = self.files.symlink(&from, &target, &path);
        self.map_refusal(done)
    }

    async fn link_at(
        &mut self,
        _: DescriptorHandle,
        _: PathFlags,
        _: String,
        _: DescriptorHandle,
        _: String,
    ) -> FsResult<()> {
        self.reject_unsupported()
    }

    async fn set_times(
        &mut self,
        _: DescriptorHandle,
        _: NewTimestamp,
        _: NewTimestamp,
    ) -> FsResult<()> {
        self.reject_unsupported()
    }

    async fn set_times_at(
        &mut self,
        _: DescriptorHandle,
        _: PathFlags,
        _: String,
        _: NewTimestamp,
        _: NewTimestamp,
    ) -> FsResult<()> {
        self.reject_unsupported()
    }

    async fn write(
        &mut self,
        fd: DescriptorHandle,
        buffer: Vec<u8>,
        offset: Filesize,
    ) -> FsResult<Filesize> {
        self.writable_file(&fd)?;
        if offset.saturating_add(buffer.len() as u64) > MAX_FILE_SIZE {
            return Err(ErrorCode::FileTooLarge.into());
        }
        let taken = self.files.consume_budget(buffer.len() as u64);
        self.map_refusal(taken)?;
        HostDescriptor::write(&mut self.filesystem(), fd, buffer, offset).await
    }

    async fn set_size(&mut self, fd: DescriptorHandle, size: Filesize) -> FsResult<()> {
        self.writable_file(&fd)?;
        if size > MAX_FILE_SIZE {
            return Err(ErrorCode::FileTooLarge.into());
        }
        HostDescriptor::set_size(&mut self.filesystem(), fd, size).await
    }

    fn write_via_stream(
        &mut self,
        fd: DescriptorHandle,
        offset: Filesize,
    ) -> FsResult<Resource<DynOutputStream>> {
        self.writable_file(&fd)?;
        if offset > MAX_FILE_SIZE {
            return Err(ErrorCode::FileTooLarge.into());
        }
        let stream = HostDescriptor::write_via_stream(&mut self.filesystem(), fd, offset);
        self.meter_stream(stream, offset)
    }

    fn append_via_stream(&mut self, fd: DescriptorHandle) -> FsResult<Resource<DynOutputStream>> {
        self.writable_file(&fd)?;
        let end = self.metadata(&fd)?.len();
        let stream = HostDescriptor::append_via_stream(&mut self.filesystem(), fd);
        self.meter_stream(stream, end)
    }

    fn read_via_stream(
        &mut self,
        fd: DescriptorHandle,
        offset: Filesize,
    ) -> FsResult<Resource<DynInputStream>> {
        HostDescriptor::read_via_stream(&mut self.filesystem(), fd, offset)
    }

    async fn read(
        &mut self,
        fd: DescriptorHandle,
        length: Filesize,
        offset: Filesize,
    ) -> FsResult<(Vec<u8>, bool)> {
        HostDescriptor::read(&mut self.filesystem(), fd, length, offset).await
    }

    async fn advise(
        &mut self,
        fd: DescriptorHandle,
        offset: Filesize,
        length: Filesize,
        advice: Advice,
    ) -> FsResult<()> {
        HostDescriptor::advise(&mut self.filesystem(), fd, offset, length, advice).await
    }

    // What is written aside is made durable when it is committed.
    async fn sync_data(&mut self, fd: DescriptorHandle) -> FsResult<()> {
        self.table.get(&fd)?;
        Ok(())
    }

    async fn sync(&mut self, fd: DescriptorHandle) -> FsResult<()> {
        self.table.get(&fd)?;
        Ok(())
    }

    async fn get_flags(&mut self, fd: DescriptorHandle) -> FsResult<DescriptorFlags> {
        HostDescriptor::get_flags(&mut self.filesystem(), fd).await
    }

    async fn get_type(&mut self, fd: DescriptorHandle) -> FsResult<DescriptorType> {
        HostDescriptor::get_type(&mut self.filesystem(), fd).await
    }

    async fn stat(&mut self, fd: DescriptorHandle) -> FsResult<DescriptorStat> {
        Ok(stat::descriptor_stat(&self.metadata(&fd)?))
    }

    async fn metadata_hash(&mut self, fd: DescriptorHandle) -> FsResult<MetadataHashValue> {
        Ok(stat::metadata_hash(&self.metadata(&fd)?))
    }

    async fn is_same_object(
        &mut self,
        a: DescriptorHandle,
        b: DescriptorHandle,
    ) -> wasmtime::Result<bool> {
        HostDescriptor::is_same_object(&mut self.filesystem(), a, b).await
    }
}

impl FilesystemView<'_> {
    /// Refuses an operation that staging does not support.
    fn reject_unsupported(&mut self) -> FsResult<()> {
        let writes = self.files.writable().map(drop);
        match writes {
            Ok(()) => Err(ErrorCode::Unsupported.into()),
            Err(_) => self.map_refusal(Err(writes_denied())),
        }
    }
}
