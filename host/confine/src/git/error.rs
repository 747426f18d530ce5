//! The errors of reading git settings.

use std::io;
use std::path::{Path, PathBuf};

use cofferdam_policy::terminal_escape::escape_line;

use super::budget::{MOST_BYTES, MOST_STEPS, MOST_WORDS};
use super::reading::{LARGEST, MOST_FILES, MOST_PARSED, MOST_PATHS};

/// The maximum length of a path in an error, in characters.
const MAX_SHOWN_PATH_LEN: usize = 200;

/// A git settings file that cannot be used, so that the files that it names cannot be protected.
#[derive(Debug, thiserror::Error)]
#[error(
    "cannot protect the files that the git configuration refers to: {}: {source}\nhint: repair or \
        remove `{}`, or choose a workspace without it (`-C DIRECTORY`)",
    shown(.file),
    shown(.file)
)]
#[non_exhaustive]
pub struct GitSettingsError {
    /// The settings file, or the entry `.git` that leads to it.
    pub file: PathBuf,
    source: GitSettingsProblem,
}

impl GitSettingsError {
    pub(super) fn new(file: &Path, problem: impl Into<GitSettingsProblem>) -> Self {
        Self { file: file.to_owned(), source: problem.into() }
    }
}

fn shown(file: &Path) -> String {
    escape_line(&file.display().to_string(), MAX_SHOWN_PATH_LEN)
}

/// The reason why a settings file cannot be used.
#[derive(Debug, thiserror::Error)]
pub(super) enum GitSettingsProblem {
    #[error(transparent)]
    Limit(#[from] GitLimit),
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// A limit of the analysis that the settings exceed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum GitLimit {
    #[error("it is larger than {} MiB", LARGEST >> 20)]
    FileBytes,
    #[error("parsing it needs more than {} MiB of memory", MOST_PARSED >> 20)]
    ParsedBytes,
    #[error("it is one of more than {MOST_FILES} files that include each other")]
    IncludedFiles,
    #[error("it and the files that it includes contain more than {MOST_PATHS} paths")]
    NamedPaths,
    #[error("a path to this file, or a path in it, has too many components or symbolic links")]
    PathComponents,
    #[error("all git configuration files together have more than {} MiB", MOST_BYTES >> 20)]
    TotalBytes,
    #[error(
        "all git configuration files together contain more than {MOST_WORDS} programs and paths"
    )]
    TotalWords,
    #[error(
        "all git configuration files together contain paths with more than {MOST_STEPS} components"
    )]
    TotalSteps,
}
