//! Fast access to many files: the host walks the workspace and returns entries or whole files in
//! large batches. Needs [`Capability::ReadFiles`](crate::Capability::ReadFiles) or
//! [`Capability::WriteFiles`](crate::Capability::WriteFiles).
//!
//! ```no_run
//! use cofferdam_sdk::ToolError;
//! use cofferdam_sdk::workspace::{Walk, WalkOptions};
//!
//! # fn main() -> Result<(), ToolError> {
//! let options = WalkOptions { globs: vec!["*.rs".into()], ..WalkOptions::default() };
//! let mut walk = Walk::open(&options)?;
//! for entry in walk.entries() {
//!     let _path = entry?.path;
//! }
//! # Ok(())
//! # }
//! ```

mod files;

use std::time::{Duration, SystemTime};

pub use crate::bindings::cofferdam::plugin::workspace::{
    Batch, EntryKind, FilePiece, WalkOptions, WorkspaceError,
};
pub use files::{File, Files};

use crate::ToolError;
use crate::bindings::cofferdam::plugin::workspace as wit;
use crate::imports::workspace as host;

/// The number of entries per batch. A call of the host costs more than an entry.
const BATCH_ENTRIES: u32 = 1024;

/// A walk through the workspace in the order of paths. A call can have 16 open walks; dropping a
/// walk closes it.
#[derive(Debug)]
pub struct Walk {
    handle: host::Walk,
}

/// An entry of the workspace.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    /// The path relative to the workspace, with `/` between its parts. U+FFFD replaces bytes that
    /// are not UTF-8.
    pub path: String,
    /// The kind of the entry.
    pub kind: EntryKind,
    /// The size of a file in bytes; 0 for any other entry.
    pub size: u64,
    /// The time of the last change, if it is known and after 1970.
    pub modified: Option<SystemTime>,
}

impl Walk {
    /// Begins a walk.
    pub fn open(options: &WalkOptions) -> Result<Self, WorkspaceError> {
        Ok(Self { handle: host::open_walk(options)? })
    }

    /// Returns the rest of the entries, including directories and links.
    pub fn entries(&mut self) -> impl Iterator<Item = Result<Entry, WorkspaceError>> + '_ {
        let mut batch = Vec::new().into_iter();
        let mut ended = false;
        std::iter::from_fn(move || {
            if batch.len() == 0 && !ended {
                match self.handle.next_entries(BATCH_ENTRIES) {
                    Ok(next) => batch = next.into_iter(),
                    Err(error) => {
                        ended = true;
                        return Some(Err(error));
                    }
                }
                ended = batch.len() == 0;
            }
            batch.next().map(|entry| Ok(entry.into()))
        })
    }

    /// Returns the rest of the files with their contents. About `max_bytes` (64 KiB to 2 MiB) are
    /// in memory at a time.
    pub fn files(
        &mut self,
        max_bytes: u32,
    ) -> Files<impl FnMut() -> Result<Batch, WorkspaceError> + '_> {
        Files::new(move || self.handle.next_files(max_bytes))
    }

    /// Returns a line for each path that could not be read so far, at most 100.
    pub fn problems(&self) -> Vec<String> {
        self.handle.problems()
    }
}

impl From<wit::Entry> for Entry {
    fn from(entry: wit::Entry) -> Self {
        let modified = entry.modified.and_then(|time| {
            SystemTime::UNIX_EPOCH.checked_add(Duration::new(time.seconds, time.nanoseconds))
        });
        Self { path: entry.path, kind: entry.kind, size: entry.size, modified }
    }
}

/// The whole workspace without hidden and ignored files.
impl Default for WalkOptions {
    fn default() -> Self {
        Self {
            root: String::new(),
            globs: Vec::new(),
            hidden: false,
            respect_ignore: true,
            max_depth: None,
            required: Vec::new(),
            required_ignore_case: false,
        }
    }
}

impl From<WorkspaceError> for ToolError {
    fn from(error: WorkspaceError) -> Self {
        match error {
            WorkspaceError::NotFound(message) => Self::NotFound(message),
            WorkspaceError::InvalidGlob(message) => Self::invalid_input("", message),
            WorkspaceError::Denied(denial) => Self::Denied(denial),
            WorkspaceError::InvalidOption(message) | WorkspaceError::Failed(message) => {
                Self::Failed(message)
            }
        }
    }
}
