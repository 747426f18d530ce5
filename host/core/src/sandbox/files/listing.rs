//! Directory listings that a guest reads entry by entry.
//!
//! The type of the guest's handle says that it is Wasmtime's iterator, which only Wasmtime can
//! create. The table entry behind it is a [`DirectoryListing`].

use wasmtime::component::{Resource, ResourceTable};
use wasmtime_wasi::p2::bindings::filesystem::types::{DirectoryEntry, HostDirectoryEntryStream};
use wasmtime_wasi::p2::{FsResult, ReaddirIterator};

use super::view::NamedEntry;
use super::{FilesystemView, stat};

/// The names of a directory that the guest has not read yet.
pub(super) struct DirectoryListing {
    names: std::vec::IntoIter<NamedEntry>,
    /// The host memory that the listing takes until it is dropped, in bytes.
    bytes: usize,
}

impl DirectoryListing {
    pub(super) fn new(names: Vec<NamedEntry>) -> Self {
        let each = |name: &NamedEntry| name.as_ref().map_or(0, |(name, _)| name.capacity());
        let bytes =
            names.iter().map(each).sum::<usize>() + names.capacity() * size_of::<NamedEntry>();
        Self { names: names.into_iter(), bytes }
    }

    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }
}

/// Adds a listing to the table and returns its handle.
pub(super) fn push(
    table: &mut ResourceTable,
    listing: DirectoryListing,
) -> FsResult<Resource<ReaddirIterator>> {
    let listing = table.push(listing)?;
    Ok(Resource::new_own(listing.rep()))
}

impl HostDirectoryEntryStream for FilesystemView<'_> {
    async fn read_directory_entry(
        &mut self,
        stream: Resource<ReaddirIterator>,
    ) -> FsResult<Option<DirectoryEntry>> {
        let listing =
            self.table.get_mut(&Resource::<DirectoryListing>::new_borrow(stream.rep()))?;
        match listing.names.next() {
            None => Ok(None),
            Some(Ok((name, kind))) => {
                Ok(Some(DirectoryEntry { type_: stat::descriptor_type(kind), name }))
            }
            Some(Err(problem)) => Err(self.files.record_refusal(problem)),
        }
    }

    fn drop(&mut self, stream: Resource<ReaddirIterator>) -> wasmtime::Result<()> {
        let listing = self.table.delete(Resource::<DirectoryListing>::new_own(stream.rep()))?;
        self.files.listing_bytes -= listing.bytes;
        Ok(())
    }
}
