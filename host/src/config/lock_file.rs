//! Where the lock file is: beside the configuration that names the plugins.

use std::fs::{DirBuilder, File};
use std::io::{self, Write as _};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use super::trusted_file::{self, TrustedFileError};
use crate::own_file;
use crate::tools::AcceptedPlugins;

/// The lock file beside a configuration.
#[derive(Clone, Debug)]
pub struct PluginLockFile(PathBuf);

/// The lock file cannot be used, and so no plugin of it is.
#[derive(Debug, thiserror::Error)]
#[error("{}: {problem}", path.display())]
pub struct LockFileError {
    path: PathBuf,
    problem: String,
}

/// Keeps other processes from changing the lock file, for as long as this lives.
#[derive(Debug)]
pub struct PluginLockGuard(#[expect(dead_code, reason = "it is held, not read")] File);

impl PluginLockFile {
    /// Beside this configuration file.
    pub fn next_to(configuration: &Path) -> Self {
        Self(configuration.with_file_name("cofferdam.lock"))
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// The folder beside it, for plugins that were added.
    pub fn plugin_dir(&self) -> PathBuf {
        self.0.with_file_name("plugins")
    }

    /// Reads it; one that is not there has accepted nothing.
    pub fn read(&self) -> Result<AcceptedPlugins, LockFileError> {
        match trusted_file::read_own_file(&self.0, "lock file")? {
            Some(text) => AcceptedPlugins::parse(&text).map_err(|error| self.error(&error)),
            None => Ok(AcceptedPlugins::new()),
        }
    }

    /// Waits until nobody else changes it.
    pub fn acquire(&self) -> Result<PluginLockGuard, LockFileError> {
        let open = || {
            // Whoever could write in it could put another lock there.
            DirBuilder::new().recursive(true).mode(0o700).create(self.dir())?;
            // Not the lock file itself: each change puts another file in its place.
            let file = own_file::open_lock(&self.0.with_file_name(".cofferdam.lock.guard"))?;
            file.lock()?;
            Ok(PluginLockGuard(file))
        };
        open().map_err(|error: io::Error| self.error(&error))
    }

    /// Changes it as it is now, whatever it was when somebody was asked.
    pub fn update(&self, change: impl FnOnce(&mut AcceptedPlugins)) -> Result<(), LockFileError> {
        let guard = self.acquire()?;
        let mut lock = self.read()?;
        change(&mut lock);
        self.write(&guard, &lock)
    }

    /// Writes it, whole or not at all.
    pub fn write(&self, _: &PluginLockGuard, lock: &AcceptedPlugins) -> Result<(), LockFileError> {
        let text = lock.to_toml().map_err(|error| self.error(&error))?;
        let write = || {
            let mut file = tempfile::NamedTempFile::new_in(self.dir())?;
            file.write_all(text.as_bytes())?;
            file.as_file().sync_all()?;
            file.persist(&self.0).map(drop).map_err(|error| error.error)
        };
        write().map_err(|error| self.error(&error))
    }

    fn dir(&self) -> &Path {
        // That of a bare file name is empty, and means the current one.
        self.0.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
    }

    fn error(&self, problem: &dyn std::fmt::Display) -> LockFileError {
        LockFileError { path: self.0.clone(), problem: problem.to_string() }
    }
}

impl From<TrustedFileError> for LockFileError {
    fn from(TrustedFileError { path, problem }: TrustedFileError) -> Self {
        Self { path, problem }
    }
}
