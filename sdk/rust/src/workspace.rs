//! The fast road for tools that look at many files: the host walks, and hands over entries or whole
//! files in large batches. Needs [`Capability::ReadFiles`](crate::Capability::ReadFiles) or
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

pub use crate::bindings::cofferdam::plugin::workspace::{
    Batch, Entry, EntryKind, FilePiece, WalkOptions, WorkspaceError,
};
pub use files::{File, Files};

use crate::ToolError;
use crate::lent::workspace as host;

/// How many entries cross into the plugin at once: each crossing costs more than an entry does.
const ENTRIES: u32 = 1024;

/// A walk through the workspace in the order of paths. Dropping it ends it; at most 16 are open in
/// a call.
#[derive(Debug)]
pub struct Walk {
    id: u32,
}

impl Walk {
    /// Starts a walk.
    pub fn open(options: &WalkOptions) -> Result<Self, WorkspaceError> {
        Ok(Self { id: host::open_walk(options)? })
    }

    /// Everything that is left of the walk, directories and links included.
    pub fn entries(&mut self) -> impl Iterator<Item = Result<Entry, WorkspaceError>> + '_ {
        let mut batch = Vec::new().into_iter();
        let mut ended = false;
        std::iter::from_fn(move || {
            if batch.len() == 0 && !ended {
                match host::next_entries(self.id, ENTRIES) {
                    Ok(next) => batch = next.into_iter(),
                    Err(error) => {
                        ended = true;
                        return Some(Err(error));
                    }
                }
                ended = batch.len() == 0;
            }
            batch.next().map(Ok)
        })
    }

    /// The files that are left of the walk, with their contents, about `max_bytes` (64 KiB to 2
    /// MiB) in memory at once.
    pub fn files(
        &mut self,
        max_bytes: u32,
    ) -> Files<impl FnMut() -> Result<Batch, WorkspaceError> + '_> {
        Files::new(move || host::next_files(self.id, max_bytes))
    }

    /// What could not be read so far: a line each, at most 100.
    pub fn problems(&self) -> Result<Vec<String>, WorkspaceError> {
        host::walk_problems(self.id)
    }
}

impl Drop for Walk {
    fn drop(&mut self) {
        host::close_walk(self.id);
    }
}

/// The whole workspace but for what is hidden or ignored.
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
            WorkspaceError::InvalidWalk(message) | WorkspaceError::Failed(message) => {
                Self::Failed(message)
            }
        }
    }
}
