//! What can be wrong with a session, for the person at the terminal.

use std::io;
use std::path::{Path, PathBuf};

use super::SessionId;
use super::record::FORMAT_VERSION;

/// A session cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum SessionError {
    /// The file or its folder.
    #[error("cannot use {}: {source}", path.display())]
    Io {
        /// Which.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// Somebody else could read or write it.
    #[error("the folder {} {reason}; make it yours alone (`chmod 700`), or remove it", path.display())]
    NotPrivate {
        /// The folder.
        path: PathBuf,
        /// In which way.
        reason: &'static str,
    },
    /// Somebody else could have written the session: its model, its address and what was said.
    #[error("the session {} {problem}, so nothing was loaded\nhint: delete it, or make it yours \
        alone (`chmod 600`) if you know what is in it", path.display())]
    NotTrusted {
        /// The file.
        path: PathBuf,
        /// How others could have written it.
        problem: &'static str,
    },
    /// Two processes never write one session.
    #[error("session {0} is in use by another process; wait for it to end, or begin a new session")]
    InUse(SessionId),
    /// It was deleted between being found and being opened.
    #[error("session {0} is gone")]
    Deleted(SessionId),
    /// Nothing to continue.
    #[error("there is no session of this project yet: run without --continue to begin one")]
    NoSessions,
    /// No session is meant.
    #[error(
        "no session begins with '{0}'; `cofferdam sessions list` shows those of this project, \
            `--all` those of all projects"
    )]
    NotFound(String),
    /// Several sessions could be meant.
    #[error("'{prefix}' could be any of {}", candidates.iter().map(SessionId::as_str).collect::<Vec<_>>().join(", "))]
    Ambiguous {
        /// What was given.
        prefix: String,
        /// What it could mean.
        candidates: Vec<SessionId>,
    },
    /// This program is too old for it.
    #[error(
        "{} was written by a newer version of cofferdam (format {version}, this one knows up to \
            {FORMAT_VERSION}): update to go on with it",
        path.display()
    )]
    NewerVersion {
        /// The file.
        path: PathBuf,
        /// Its version.
        version: u32,
    },
    /// It is longer than any that was written.
    #[error("{} has {} MiB, more than the {} MiB that are read, so nothing was loaded", path.display(), size >> 20, most >> 20)]
    TooLong {
        /// The file.
        path: PathBuf,
        /// Its size in bytes.
        size: u64,
        /// The most that is read, in bytes.
        most: u64,
    },
    /// A line in it cannot be what was written.
    #[error("line {line} of {} is damaged, so nothing was loaded: {reason}", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// Counted from 1.
        line: usize,
        /// What is wrong with it.
        reason: String,
    },
}

impl SessionError {
    /// For `map_err`.
    pub(super) fn io(path: &Path) -> impl FnOnce(io::Error) -> Self + use<> {
        let path = path.to_owned();
        move |source| Self::Io { path, source }
    }
}
