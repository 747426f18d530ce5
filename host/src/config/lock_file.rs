//! Where the lock file is: beside the configuration that names the plugins.

use std::fs::{DirBuilder, File};
use std::io::{self, Write as _};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use super::believed::{self, FileProblem};
use crate::tools::Lock;

/// The lock file beside a configuration.
#[derive(Clone, Debug)]
pub struct LockFile(PathBuf);

/// The lock file cannot be used, and so no plugin of it is.
#[derive(Debug, thiserror::Error)]
#[error("{}: {problem}", path.display())]
pub struct LockProblem {
    path: PathBuf,
    problem: String,
}

/// Keeps other processes from changing the lock file, for as long as this lives.
#[derive(Debug)]
pub struct LockGuard(#[expect(dead_code, reason = "it is held, not read")] File);

impl LockFile {
    /// Beside this configuration file.
    pub fn beside(configuration: &Path) -> Self {
        Self(configuration.with_file_name("cofferdam.lock"))
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// The folder beside it, for plugins that were added.
    pub fn added_plugins(&self) -> PathBuf {
        self.0.with_file_name("plugins")
    }

    /// Reads it; one that is not there has accepted nothing.
    pub fn read(&self) -> Result<Lock, LockProblem> {
        match believed::mine(&self.0, "lock file")? {
            Some(text) => Lock::parse(&text).map_err(|error| self.problem(&error)),
            None => Ok(Lock::new()),
        }
    }

    /// Waits until nobody else changes it.
    pub fn guard(&self) -> Result<LockGuard, LockProblem> {
        let open = || {
            // Whoever could write in it could put another lock there.
            DirBuilder::new().recursive(true).mode(0o700).create(self.folder())?;
            // Not the lock file itself: each change puts another file in its place.
            let file = File::options().write(true).create(true).truncate(false).open(self.0.with_file_name(".cofferdam.lock.guard"))?;
            file.lock()?;
            Ok(LockGuard(file))
        };
        open().map_err(|error: io::Error| self.problem(&error))
    }

    /// Changes it as it is now, whatever it was when somebody was asked.
    pub fn change(&self, change: impl FnOnce(&mut Lock)) -> Result<(), LockProblem> {
        let guard = self.guard()?;
        let mut lock = self.read()?;
        change(&mut lock);
        self.write(&guard, &lock)
    }

    /// Writes it, whole or not at all.
    pub fn write(&self, _: &LockGuard, lock: &Lock) -> Result<(), LockProblem> {
        let text = lock.text().map_err(|error| self.problem(&error))?;
        let write = || {
            let mut file = tempfile::NamedTempFile::new_in(self.folder())?;
            file.write_all(text.as_bytes())?;
            file.as_file().sync_all()?;
            file.persist(&self.0).map(drop).map_err(|error| error.error)
        };
        write().map_err(|error| self.problem(&error))
    }

    fn folder(&self) -> &Path {
        // That of a bare file name is empty, and means the current one.
        self.0.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
    }

    fn problem(&self, problem: &dyn std::fmt::Display) -> LockProblem {
        LockProblem { path: self.0.clone(), problem: problem.to_string() }
    }
}

impl From<FileProblem> for LockProblem {
    fn from(FileProblem { path, problem }: FileProblem) -> Self {
        Self { path, problem }
    }
}
