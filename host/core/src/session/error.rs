//! Errors of sessions, written for the user.

use std::io;
use std::path::{Path, PathBuf};

use super::SessionId;
use super::record::FORMAT_VERSION;

/// The reason why a session cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SessionError {
    /// The session file or its directory cannot be used.
    #[error("cannot use `{}`: {source}", path.display())]
    Io {
        /// The path that the operation failed on.
        path: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
    /// Other users could read or write the session directory.
    #[error(
        "the directory `{}` {reason}\nhint: restrict it to yourself with `chmod 700`, or remove it",
        path.display()
    )]
    NotPrivate {
        /// The directory of the sessions.
        path: PathBuf,
        /// The reason why it is not private, as the end of a sentence.
        reason: &'static str,
    },
    /// Other users could have written the session: its model, its address and its conversation.
    #[error("cannot load the session `{}`: it {problem}\nhint: delete it, or restrict it to \
        yourself with `chmod 600` if you trust its content", path.display())]
    NotTrusted {
        /// The path of the session file.
        path: PathBuf,
        /// The reason why it is not trusted, as the end of a sentence.
        problem: &'static str,
    },
    /// Another process has the session open.
    #[error(
        "session {0} is in use by another process\nhint: wait for it to end, or start a new \
        session"
    )]
    InUse(SessionId),
    /// The session was deleted after it was found and before it was opened.
    #[error("session {0} was deleted")]
    Deleted(SessionId),
    /// The project has no session that could be continued.
    #[error("this project has no session yet\nhint: run without --continue to start one")]
    NoSessions,
    /// No session has an ID with this prefix.
    #[error(
        "no session has an ID that begins with `{0}`\nhint: `cofferdam sessions list` lists the \
            sessions of this project, `--all` those of all projects"
    )]
    NotFound(String),
    /// Several sessions have an ID with this prefix.
    #[error(
        "`{prefix}` is ambiguous: it matches {}",
        candidates.iter().map(SessionId::as_str).collect::<Vec<_>>().join(", ")
    )]
    Ambiguous {
        /// The prefix that the user gave.
        prefix: String,
        /// The IDs that begin with it.
        candidates: Vec<SessionId>,
    },
    /// The session has a newer format than this version supports.
    #[error(
        "cannot load `{}`: it was written by a newer version of cofferdam (format {version}; this \
            version supports up to {FORMAT_VERSION})\nhint: update cofferdam to resume this \
            session",
        path.display()
    )]
    NewerVersion {
        /// The path of the session file.
        path: PathBuf,
        /// The format version of the file.
        version: u32,
    },
    /// The session file is larger than the limit.
    #[error(
        "cannot load `{}`: its size of {} MiB exceeds the limit of {} MiB",
        path.display(),
        size >> 20,
        most >> 20
    )]
    TooLong {
        /// The path of the session file.
        path: PathBuf,
        /// The size of the file, in bytes.
        size: u64,
        /// The size limit, in bytes.
        most: u64,
    },
    /// The session file names another workspace than the one whose sessions it is among.
    #[error(
        "cannot load `{}`: it is a session of another directory\nhint: delete the session with \
            `cofferdam sessions delete`, or start a new one",
        path.display()
    )]
    OtherWorkspace {
        /// The path of the session file.
        path: PathBuf,
    },
    /// A line of the session file is damaged.
    #[error("cannot load `{}`: line {line} is damaged: {reason}", path.display())]
    Damaged {
        /// The path of the session file.
        path: PathBuf,
        /// The number of the line, from 1.
        line: usize,
        /// The reason why the line cannot be read.
        reason: String,
    },
}

impl SessionError {
    /// Returns a function for `map_err` that adds the path to an I/O error.
    pub(super) fn io(path: &Path) -> impl FnOnce(io::Error) -> Self + use<> {
        let path = path.to_owned();
        move |source| Self::Io { path, source }
    }
}
