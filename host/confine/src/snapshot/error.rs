//! The errors of finding the protected paths of a workspace, and of restoring them.

use std::io;

use super::{MAX_ENTRIES, MAX_KEPT_BYTES};
use crate::git::GitSettingsError;

/// The reason why protected paths cannot be found or restored.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ProtectionError {
    #[error("cannot open the workspace: {0}")]
    OpenWorkspace(#[source] io::Error),
    #[error(
        "the workspace has more than {MAX_ENTRIES} files and directories, too many to search for \
            protected paths\nhint: choose a directory in it as the workspace (`-C DIRECTORY`)"
    )]
    TooManyEntries,
    #[error(
        "the protected files of the workspace have more than {} MiB, more than this sandbox can \
            back up\nhint: allow user namespaces; the sandbox `full` needs no backup",
        MAX_KEPT_BYTES >> 20
    )]
    TooMuchContent,
    #[error("{0}")]
    NotRestored(String),
    #[error(
        "the path {0} is too long to be searched for protected paths\nhint: remove this directory, \
            move it up, or choose another workspace"
    )]
    PathTooLong(String),
    #[error(transparent)]
    GitSettings(#[from] GitSettingsError),
    #[error("the host no longer waits for the command")]
    Cancelled,
    #[error("its record is damaged")]
    DamagedRecord,
}
