//! `wasi:filesystem` for guests, between them and Wasmtime's implementation.
//!
//! The host first resolves a guest's path to its target, through symbolic links and through the
//! staged changes of the call. It checks the target, so hidden and protected paths are refused
//! whatever path leads to them. Only then does it open the target, below the workspace and without
//! following links. Wasmtime then reads and writes the open file. A file of the workspace is only
//! ever opened for reading; writes go to a copy in the [`Overlay`].
//!
//! - Read, list, stat, and read a link: the workspace with the call's own changes laid over it.
//! - Create, write, truncate, delete, rename, make and remove directories, and make symbolic links:
//!   staged.
//! - Hard links and setting times: refused, because they cannot be staged.
//! - FIFOs, sockets, devices: refused before they are opened.
//!
//! The names of hidden files are visible; their contents cannot be read. A tool that reads one gets
//! the reason of the denial.

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

use wasmtime::component::{HasData, ResourceTable};
use wasmtime_wasi::p2::FsError;
use wasmtime_wasi::p2::bindings::filesystem::types::ErrorCode;
use wasmtime_wasi::{WasiCtx, WasiCtxView, WasiView};

use super::call_state::CallState;
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

/// The bytes of all names in the listings that a guest is reading. They are in the host's memory,
/// not in the guest's.
const MAX_LISTING_BYTES: usize = 64 << 20;

/// The number of files and directories that a guest may have open at once. Each takes one file
/// descriptor of the process, which has about a thousand in all. Most guests have this limit
/// themselves.
const MAX_OPEN_DESCRIPTORS: usize = 128;

/// The file state of one call.
#[derive(Default)]
pub(super) struct CallFiles {
    /// `None` without a file permission.
    view: Option<WorkspaceFilesView>,
    /// The paths of the directories that the guest has open, by handle.
    open_directories: HashMap<u32, String>,
    /// The paths of the workspace files that the guest has open and may write, but has not written
    /// yet.
    open_originals: HashMap<u32, String>,
    /// The number of open handles to files and directories.
    open_count: usize,
    /// The bytes of names in open listings.
    listing_bytes: usize,
    refusals: FileRefusalLog,
    touched: TouchedPaths,
}

/// The part of the state of a call that `wasi:filesystem` sees.
pub(super) struct FilesystemView<'a> {
    files: &'a mut CallFiles,
    wasi: &'a mut WasiCtx,
    table: &'a mut ResourceTable,
}

/// Names [`FilesystemView`] to the linker.
pub(super) struct HasFilesystemView;

impl HasData for HasFilesystemView {
    type Data<'a> = FilesystemView<'a>;
}

impl FilesystemView<'_> {
    pub(super) fn of(state: &mut CallState) -> FilesystemView<'_> {
        FilesystemView { files: &mut state.files, wasi: &mut state.wasi, table: &mut state.table }
    }
}

impl WasiView for FilesystemView<'_> {
    fn ctx(&mut self) -> WasiCtxView<'_> {
        WasiCtxView { ctx: self.wasi, table: self.table }
    }
}

/// The file state that remains after the call.
#[derive(Default)]
pub(super) struct FilesReport {
    /// The view with the staged changes.
    pub(super) view: Option<WorkspaceFilesView>,
    pub(super) denials: Vec<Denial>,
    pub(super) touched: TouchedPaths,
}

impl CallFiles {
    pub(super) fn with_grant(workspace: &Arc<Workspace>, grant: FileGrant) -> Self {
        let stage = match grant {
            FileGrant::None => return Self::default(),
            FileGrant::Read => None,
            FileGrant::ReadWrite => Some(Overlay::new(workspace.temp_dir())),
        };
        workspace.refresh_included_settings();
        Self {
            view: Some(WorkspaceFilesView::new(Arc::clone(workspace), stage)),
            ..Self::default()
        }
    }

    pub(super) fn finish(self) -> FilesReport {
        FilesReport { view: self.view, denials: self.refusals.denials(), touched: self.touched }
    }

    /// Returns the logs of touched paths and of refusals, for the other interfaces that access
    /// files.
    pub(super) fn activity_logs(&mut self) -> (&mut TouchedPaths, FileRefusalLog) {
        (&mut self.touched, self.refusals.clone())
    }

    /// Reserves host memory for a listing.
    fn reserve_listing(&mut self, bytes: usize) -> Result<(), FileRefusal> {
        if self.listing_bytes.saturating_add(bytes) > MAX_LISTING_BYTES {
            let reason = "this call lists too many directories at the same time.".to_owned();
            return Err(FileRefusal::Denied(
                ErrorCode::InsufficientMemory,
                Denial::new(DenialCode::TooMuch, reason, "List them one after the other."),
            ));
        }
        self.listing_bytes += bytes;
        Ok(())
    }

    fn check_open_limit(&self) -> Result<(), FileRefusal> {
        if self.open_count < MAX_OPEN_DESCRIPTORS {
            return Ok(());
        }
        let reason =
            format!("one call can have at most {MAX_OPEN_DESCRIPTORS} files and directories open.");
        Err(FileRefusal::Denied(
            ErrorCode::InsufficientMemory,
            Denial::new(DenialCode::TooMuch, reason, "Close some before you open others."),
        ))
    }

    /// Takes bytes from the write budget of the call.
    fn consume_budget(&mut self, bytes: u64) -> Result<(), FileRefusal> {
        let view = self.writable()?;
        Ok(view.overlay_mut()?.0.budget().consume(bytes)?)
    }

    /// Records the reason of a refusal for the model and returns the error code for the guest.
    fn record_refusal(&mut self, problem: FileRefusal) -> FsError {
        let code = problem.code();
        if let FileRefusal::Denied(_, denial) = problem {
            self.refusals.add(&denial);
        }
        code.into()
    }
}
