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
pub(super) struct Listing(std::vec::IntoIter<Named>);

/// Hands out a listing.
pub(super) fn push(table: &mut ResourceTable, names: Vec<Named>) -> FsResult<Resource<ReaddirIterator>> {
    let listing = table.push(Listing(names.into_iter()))?;
    Ok(Resource::new_own(listing.rep()))
}

impl HostDirectoryEntryStream for State {
    async fn read_directory_entry(&mut self, stream: Resource<ReaddirIterator>) -> FsResult<Option<DirectoryEntry>> {
        let listing = self.table.get_mut(&Resource::<Listing>::new_borrow(stream.rep()))?;
        match listing.0.next() {
            None => Ok(None),
            Some(Ok((name, kind))) => Ok(Some(DirectoryEntry { type_: stat::kind(kind), name })),
            Some(Err(problem)) => Err(self.files.refused(problem)),
        }
    }

    fn drop(&mut self, stream: Resource<ReaddirIterator>) -> wasmtime::Result<()> {
        self.table.delete(Resource::<Listing>::new_own(stream.rep()))?;
        Ok(())
    }
}
