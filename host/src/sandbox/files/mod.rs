//! `wasi:filesystem` for guests, between them and wasmtime's own.
//!
//! A guest's path is first followed to the place it leads to (through the links, and through what
//! the call has written aside), and it is the place that is judged: hidden and protected paths are
//! refused whatever way leads to them. Only then is something opened, below the workspace and
//! without following any link. What was opened is wasmtime's to read and to write: a file of the
//! workspace only ever for reading, and for writing a copy in the [`Overlay`].
//!
//! | operation | |
//! |---|---|
//! | read, list, stat, read a link | what is there, with the call's own changes laid over it |
//! | create, write, truncate, delete, rename, make and remove directories, make symbolic links | written aside |
//! | hard links, setting times | refused: they cannot be written aside |
//! | FIFOs, sockets, devices | refused before they are opened |
//!
//! Names of hidden files can be seen, their contents cannot be read: a tool that meets one then
//! hears why.

mod change;
mod descriptors;
mod file_refusal;
mod guard;
mod listing;
mod metered_stream;
mod open;
mod refusal_log;
mod settings;
mod stat;
mod touched_paths;
mod view;

use std::collections::HashMap;
use std::sync::Arc;

use wasmtime_wasi::p2::FsError;
use wasmtime_wasi::p2::bindings::filesystem::types::ErrorCode;

use super::stage::Overlay;
use super::workspace::Workspace;
use crate::policy::{Denial, DenialCode, FileGrant};

pub(super) use file_refusal::FileRefusal;
#[cfg(test)]
pub(super) use guard::FileAccess;
pub(super) use guard::PathAccessGuard;
pub(super) use refusal_log::FileRefusalLog;
pub(super) use settings::without_secrets;
pub use touched_paths::TouchedPaths;
pub(super) use view::WorkspaceFilesView;

/// Bytes of names in directories that a guest is about to read, all together. They are the host's,
/// and outside of the guest's memory.
const MAX_LISTING_BYTES: usize = 64 << 20;

/// Files and directories that a guest may have open at a time: each is one of the process, which
/// has about a thousand for all that goes on in it. It is what most guests can have by themselves.
const MAX_OPEN_DESCRIPTORS: usize = 128;

/// The files of one call.
#[derive(Default)]
pub(super) struct CallFiles {
    /// `None` without a grant.
    view: Option<WorkspaceFilesView>,
    /// Places of the directories that the guest has opened, by their handles.
    open_directories: HashMap<u32, String>,
    /// Places of the files of the workspace that the guest has opened, where it may write: as long
    /// as it has not.
    open_originals: HashMap<u32, String>,
    /// How many handles it has to files and directories.
    open_count: usize,
    /// Bytes of names that wait in listings.
    listing_bytes: usize,
    refusals: FileRefusalLog,
    touched: TouchedPaths,
}

/// What is left of them when the call is over.
#[derive(Default)]
pub(super) struct FilesReport {
    /// With what was written aside.
    pub(super) view: Option<WorkspaceFilesView>,
    pub(super) denials: Vec<Denial>,
    pub(super) touched: TouchedPaths,
}

impl CallFiles {
    pub(super) fn with_grant(workspace: &Arc<Workspace>, grant: FileGrant) -> Self {
        let stage = match grant {
            FileGrant::None => return Self::default(),
            FileGrant::Read => None,
            FileGrant::ReadWrite => Some(Overlay::default()),
        };
        Self {
            view: Some(WorkspaceFilesView::new(Arc::clone(workspace), stage)),
            ..Self::default()
        }
    }

    pub(super) fn finish(self) -> FilesReport {
        FilesReport { view: self.view, denials: self.refusals.denials(), touched: self.touched }
    }

    /// For what is touched and refused by other ways.
    pub(super) fn activity_logs(&mut self) -> (&mut TouchedPaths, FileRefusalLog) {
        (&mut self.touched, self.refusals.clone())
    }

    /// Makes room for a listing.
    fn reserve_listing(&mut self, bytes: usize) -> Result<(), FileRefusal> {
        if self.listing_bytes.saturating_add(bytes) > MAX_LISTING_BYTES {
            let reason =
                "this call has more directories open to be listed than the host has room for."
                    .to_owned();
            return Err(FileRefusal::Denied(
                ErrorCode::InsufficientMemory,
                Denial::new(DenialCode::TooMuch, reason, "List one after the other."),
            ));
        }
        self.listing_bytes += bytes;
        Ok(())
    }

    fn check_open_limit(&self) -> Result<(), FileRefusal> {
        if self.open_count < MAX_OPEN_DESCRIPTORS {
            return Ok(());
        }
        let reason = format!(
            "this call has {MAX_OPEN_DESCRIPTORS} files and directories open, and no more handles \
                to them are lent."
        );
        Err(FileRefusal::Denied(
            ErrorCode::InsufficientMemory,
            Denial::new(DenialCode::TooMuch, reason, "Close some before others are opened."),
        ))
    }

    /// Takes bytes from the call's budget.
    fn consume_budget(&mut self, bytes: u64) -> Result<(), FileRefusal> {
        let view = self.writable()?;
        Ok(view.overlay_mut()?.0.budget().consume(bytes)?)
    }

    /// What the guest is told of a refusal; the reason is kept for the model.
    fn record_refusal(&mut self, problem: FileRefusal) -> FsError {
        let code = problem.code();
        if let FileRefusal::Denied(_, denial) = problem {
            self.refusals.add(&denial);
        }
        code.into()
    }
}
