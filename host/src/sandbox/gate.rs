//! The way out of the enclosure: everything that a guest would do to the outside world is put to whoever decides.

use std::sync::Arc;

use futures_util::future::BoxFuture;

use crate::policy::{Denial, Effect, Permit};

/// Decides on an effect of the running call, asking the user if need be. It may take as long as a person takes.
pub type Gate = Arc<dyn Fn(Effect) -> BoxFuture<'static, Ruling> + Send + Sync>;

/// What was decided.
#[derive(Debug)]
pub enum Ruling {
    /// Do it.
    Permitted(Permit),
    /// Do not; the guest is told why.
    Denied(Denial),
}

/// Takes a line of progress, already shortened.
pub type ProgressSink = Arc<dyn Fn(&str) + Send + Sync>;
