//! The errors of the audit log, as the user sees them.

use std::io;
use std::path::{Path, PathBuf};

/// An error that makes the audit log unusable.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AuditError {
    /// The log file or its directory cannot be used.
    #[error("cannot use the audit log {}: {source}", path.display())]
    Io {
        /// The file or directory that failed.
        path: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
    /// Another user could read or write the directory of the logs.
    #[error("the directory of the audit log {} {reason}\nhint: make it private (`chmod 700`), or \
        remove it", path.display())]
    NotPrivate {
        /// The directory of the logs.
        path: PathBuf,
        /// How the directory is accessible to other users.
        reason: &'static str,
    },
}

impl AuditError {
    /// Returns a function for `map_err` that adds the path to an I/O error.
    pub(super) fn io(path: &Path) -> impl FnOnce(io::Error) -> Self + use<> {
        let path = path.to_owned();
        move |source| Self::Io { path, source }
    }
}
