//! The names of a directory on their way to a guest.
//!
//! The handle that a guest holds says that it is wasmtime's iterator, which nobody but wasmtime can make; in the table
//! behind it is a [`Listing`].

use wasmtime::component::{Resource, ResourceTable};
use wasmtime_wasi::p2::bindings::filesystem::types::{DirectoryEntry, HostDirectoryEntryStream};
use wasmtime_wasi::p2::{FsResult, ReaddirIterator};

use super::stat;
use super::view::Named;
use crate::sandbox::state::State;

/// Names that have not been taken yet.
pub(super) struct Listing {
    names: std::vec::IntoIter<Named>,
    /// What they take of the host's memory until the listing is dropped.
    bytes: usize,
}

impl Listing {
    pub(super) fn new(names: Vec<Named>) -> Self {
        let each = |name: &Named| name.as_ref().map_or(0, |(name, _)| name.capacity());
        let bytes = names.iter().map(each).sum::<usize>() + names.capacity() * size_of::<Named>();
        Self { names: names.into_iter(), bytes }
    }

    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }
}

/// Hands out a listing.
pub(super) fn push(table: &mut ResourceTable, listing: Listing) -> FsResult<Resource<ReaddirIterator>> {
    let listing = table.push(listing)?;
    Ok(Resource::new_own(listing.rep()))
}

impl HostDirectoryEntryStream for State {
    async fn read_directory_entry(&mut self, stream: Resource<ReaddirIterator>) -> FsResult<Option<DirectoryEntry>> {
        let listing = self.table.get_mut(&Resource::<Listing>::new_borrow(stream.rep()))?;
        match listing.names.next() {
            None => Ok(None),
            Some(Ok((name, kind))) => Ok(Some(DirectoryEntry { type_: stat::kind(kind), name })),
            Some(Err(problem)) => Err(self.files.refused(problem)),
        }
    }

    fn drop(&mut self, stream: Resource<ReaddirIterator>) -> wasmtime::Result<()> {
        let listing = self.table.delete(Resource::<Listing>::new_own(stream.rep()))?;
        self.files.listed -= listing.bytes;
        Ok(())
    }
}
