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
mod stat;
mod touched;
mod view;

use std::collections::HashMap;
use std::sync::Arc;

use wasmtime_wasi::p2::FsError;

use super::stage::Stage;
use super::workspace::Workspace;
use crate::policy::{Denial, FileGrant};

pub(super) use guard::Guard;
pub(super) use problem::Problem;
pub use touched::Touched;
pub(super) use view::View;

/// So many refusals are remembered: a model reads no more.
const MOST_DENIALS: usize = 5;

/// The files of one call.
#[derive(Default)]
pub(super) struct Files {
    /// `None` without a grant.
    view: Option<View>,
    /// Places of the directories that the guest has opened, by their handles.
    directories: HashMap<u32, String>,
    denials: Vec<Denial>,
    touched: Touched,
}

/// What is left of them when the call is over.
#[derive(Default)]
pub(super) struct Used {
    pub(super) stage: Option<Stage>,
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
        Used { stage: self.view.and_then(View::into_stage), denials: self.denials, touched: self.touched }
    }

    /// For what is touched by other ways.
    pub(super) fn touched(&mut self) -> &mut Touched {
        &mut self.touched
    }

    /// Takes bytes from the call's budget.
    fn take(&mut self, bytes: u64) -> Result<(), Problem> {
        let view = self.writable()?;
        Ok(view.aside()?.0.budget().take(bytes)?)
    }

    /// What the guest is told of a refusal; the reason is kept for the model.
    fn refused(&mut self, problem: Problem) -> FsError {
        let code = problem.code();
        if let Problem::Denied(_, denial) = problem
            && self.denials.len() < MOST_DENIALS
            && !self.denials.contains(&denial)
        {
            self.denials.push(denial);
        }
        code.into()
    }
}
