//! What can be wrong with the audit log, for the person at the terminal.

use std::io;
use std::path::{Path, PathBuf};

/// The log cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum AuditError {
    /// The file or its folder.
    #[error("cannot use the audit log {}: {source}", path.display())]
    Io {
        /// Which.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// Somebody else could read or write it.
    #[error("the folder of the audit log {} {reason}; make it yours alone (`chmod 700`), or \
        remove it", path.display())]
    NotPrivate {
        /// The folder.
        path: PathBuf,
        /// In which way.
        reason: &'static str,
    },
}

impl AuditError {
    /// For `map_err`.
    pub(super) fn io(path: &Path) -> impl FnOnce(io::Error) -> Self + use<> {
        let path = path.to_owned();
        move |source| Self::Io { path, source }
    }
}
