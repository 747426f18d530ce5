//! Where the lock file is: beside the configuration that names the plugins.

use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

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

impl LockFile {
    /// Beside this configuration file.
    pub fn beside(configuration: &Path) -> Self {
        Self(configuration.with_file_name("cofferdam.lock"))
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// Reads it; one that is not there has accepted nothing.
    pub fn read(&self) -> Result<Lock, LockProblem> {
        match std::fs::read_to_string(&self.0) {
            Ok(text) => Lock::parse(&text).map_err(|error| self.problem(&error)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Lock::new()),
            Err(error) => Err(self.problem(&error)),
        }
    }

    /// Writes it, whole or not at all.
    pub fn write(&self, lock: &Lock) -> Result<(), LockProblem> {
        let text = lock.text().map_err(|error| self.problem(&error))?;
        let folder = self.0.parent().unwrap_or(Path::new("."));
        let write = || {
            std::fs::create_dir_all(folder)?;
            let mut file = tempfile::NamedTempFile::new_in(folder)?;
            file.write_all(text.as_bytes())?;
            file.as_file().sync_all()?;
            file.persist(&self.0).map(drop).map_err(|error| error.error)
        };
        write().map_err(|error| self.problem(&error))
    }

    fn problem(&self, problem: &dyn std::fmt::Display) -> LockProblem {
        LockProblem { path: self.0.clone(), problem: problem.to_string() }
    }
}
