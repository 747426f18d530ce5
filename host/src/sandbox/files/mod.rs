//! `wasi:filesystem` for guests, between them and wasmtime's own.
//!
//! A guest's path is first followed to the place it leads to (through the links, and through what the call has written
//! aside), and it is the place that is judged: hidden and protected paths are refused whatever way leads to them. Only
//! then is something opened, below the workspace and without following any link. What was opened is wasmtime's to read and
//! to write: a file of the workspace only ever for reading, and for writing a copy in the [`Stage`].
//!
//! | operation | |
//! |---|---|
//! | read, list, stat, read a link | what is there, with the call's own changes laid over it |
//! | create, write, truncate, delete, rename, make and remove directories, make symbolic links | written aside |
//! | hard links, setting times | refused: they cannot be written aside |
//! | FIFOs, sockets, devices | refused before they are opened |
//!
//! Names of hidden files can be seen, their contents cannot be read: a tool that meets one then hears why.

mod change;
mod descriptors;
mod guard;
mod listing;
mod metered;
mod open;
mod problem;
mod refusals;
mod stat;
mod touched;
mod view;

use std::collections::HashMap;
use std::sync::Arc;

use wasmtime_wasi::p2::FsError;
use wasmtime_wasi::p2::bindings::filesystem::types::ErrorCode;

use super::stage::Stage;
use super::workspace::Workspace;
use crate::policy::{Code, Denial, FileGrant};

#[cfg(test)]
pub(super) use guard::Doing;
pub(super) use guard::Guard;
pub(super) use problem::Problem;
pub(super) use refusals::Refusals;
pub use touched::Touched;
pub(super) use view::View;

/// Bytes of names in directories that a guest is about to read, all together. They are the host's, and outside of the guest's memory.
const MOST_LISTED: usize = 64 << 20;

/// Files and directories that a guest may have open at a time: each is one of the process, which has about a thousand for all that
/// goes on in it. It is what most guests can have by themselves.
const MOST_OPEN: usize = 128;

/// The files of one call.
#[derive(Default)]
pub(super) struct Files {
    /// `None` without a grant.
    view: Option<View>,
    /// Places of the directories that the guest has opened, by their handles.
    directories: HashMap<u32, String>,
    /// Places of the files of the workspace that the guest has opened, where it may write: as long as it has not.
    there: HashMap<u32, String>,
    /// How many handles it has to files and directories.
    open: usize,
    /// Bytes of names that wait in listings.
    listed: usize,
    refusals: Refusals,
    touched: Touched,
}

/// What is left of them when the call is over.
#[derive(Default)]
pub(super) struct Used {
    /// With what was written aside.
    pub(super) view: Option<View>,
    pub(super) denials: Vec<Denial>,
    pub(super) touched: Touched,
}

impl Files {
    pub(super) fn granted(workspace: &Arc<Workspace>, grant: FileGrant) -> Self {
        let stage = match grant {
            FileGrant::None => return Self::default(),
            FileGrant::Read => None,
            FileGrant::ReadWrite => Some(Stage::default()),
        };
        Self { view: Some(View::new(Arc::clone(workspace), stage)), ..Self::default() }
    }

    pub(super) fn over(self) -> Used {
        Used { view: self.view, denials: self.refusals.told(), touched: self.touched }
    }

    /// For what is touched and refused by other ways.
    pub(super) fn notes(&mut self) -> (&mut Touched, Refusals) {
        (&mut self.touched, self.refusals.clone())
    }

    /// Makes room for a listing.
    fn list(&mut self, bytes: usize) -> Result<(), Problem> {
        if self.listed.saturating_add(bytes) > MOST_LISTED {
            let reason = "this call has more directories open to be listed than the host has room for.".to_owned();
            return Err(Problem::Denied(ErrorCode::InsufficientMemory, Denial::new(Code::TooMuch, reason, "List one after the other.")));
        }
        self.listed += bytes;
        Ok(())
    }

    fn has_room_to_open(&self) -> Result<(), Problem> {
        if self.open < MOST_OPEN {
            return Ok(());
        }
        let reason = format!("this call has {MOST_OPEN} files and directories open, and no more handles to them are lent.");
        Err(Problem::Denied(ErrorCode::InsufficientMemory, Denial::new(Code::TooMuch, reason, "Close some before others are opened.")))
    }

    /// Takes bytes from the call's budget.
    fn take(&mut self, bytes: u64) -> Result<(), Problem> {
        let view = self.writable()?;
        Ok(view.aside()?.0.budget().take(bytes)?)
    }

    /// What the guest is told of a refusal; the reason is kept for the model.
    fn refused(&mut self, problem: Problem) -> FsError {
        let code = problem.code();
        if let Problem::Denied(_, denial) = problem {
            self.refusals.add(&denial);
        }
        code.into()
    }
}
