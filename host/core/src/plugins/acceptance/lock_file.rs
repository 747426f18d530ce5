//! The lock file, which is next to the configuration file that names the plugins.

use std::fs::{DirBuilder, File};
use std::io::{self, Write as _};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use super::AcceptedPlugins;
use crate::config::{self, PluginPaths, TrustedFileError};
use crate::own_file;

/// A lock file, which records the accepted plugins.
#[derive(Clone, Debug)]
pub struct PluginLockFile(PluginPaths);

/// The reason why the lock file, and so every plugin in it, cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("{}: {problem}", path.display())]
pub struct LockFileError {
    path: PathBuf,
    problem: String,
}

/// A guard that prevents other processes from changing the lock file until it is dropped.
#[derive(Debug)]
pub struct PluginLockGuard(#[expect(dead_code, reason = "the lock is held, never read")] File);

impl PluginLockFile {
    /// Returns the lock file for a configuration file.
    pub fn next_to(configuration: &Path) -> Self {
        Self(PluginPaths::next_to(configuration))
    }

    /// Returns the path of the lock file.
    pub fn path(&self) -> &Path {
        self.0.lock_file()
    }

    /// Returns the directory for added plugins, next to the lock file.
    pub fn plugin_dir(&self) -> PathBuf {
        self.0.plugin_dir()
    }

    /// Reads the lock file; a missing file contains no accepted plugin.
    ///
    /// # Errors
    /// The file cannot be read, is invalid, or can be written by other users.
    pub fn read(&self) -> Result<AcceptedPlugins, LockFileError> {
        match config::read_own_file(self.path(), "lock file")? {
            Some(text) => AcceptedPlugins::parse(&text).map_err(|error| self.error(&error)),
            None => Ok(AcceptedPlugins::new()),
        }
    }

    /// Waits until no other process is changing the lock file.
    ///
    /// # Errors
    /// The directory or the guard file cannot be created.
    pub fn acquire(&self) -> Result<PluginLockGuard, LockFileError> {
        let open = || {
            // A user who can write to this directory could replace the lock file.
            DirBuilder::new().recursive(true).mode(0o700).create(self.dir())?;
            // Not the lock file itself: each change puts another file in its place.
            let file = own_file::open_lock(&self.path().with_file_name(".cofferdam.lock.guard"))?;
            file.lock()?;
            Ok(PluginLockGuard(file))
        };
        open().map_err(|error: io::Error| self.error(&error))
    }

    /// Reads the current lock file, changes it and writes it back.
    ///
    /// It may have changed since the user was asked.
    ///
    /// # Errors
    /// The file cannot be read or written.
    pub fn update(&self, change: impl FnOnce(&mut AcceptedPlugins)) -> Result<(), LockFileError> {
        let guard = self.acquire()?;
        let mut lock = self.read()?;
        change(&mut lock);
        self.write(&guard, &lock)
    }

    /// Replaces the lock file atomically.
    ///
    /// # Errors
    /// The new file cannot be written.
    pub fn write(&self, _: &PluginLockGuard, lock: &AcceptedPlugins) -> Result<(), LockFileError> {
        let text = lock.to_toml().map_err(|error| self.error(&error))?;
        if text.len() as u64 > config::MAX_OWN_FILE_LEN {
            let problem = format!(
                "it would have {} bytes; the maximum is {}",
                text.len(),
                config::MAX_OWN_FILE_LEN
            );
            return Err(self.error(&problem));
        }
        let write = || {
            let mut file = tempfile::NamedTempFile::new_in(self.dir())?;
            file.write_all(text.as_bytes())?;
            file.as_file().sync_all()?;
            file.persist(self.path()).map(drop).map_err(|error| error.error)
        };
        write().map_err(|error| self.error(&error))
    }

    fn dir(&self) -> &Path {
        // The parent of a bare file name is empty and means the current directory.
        self.path()
            .parent()
            .filter(|directory| !directory.as_os_str().is_empty())
            .unwrap_or(Path::new("."))
    }

    fn error(&self, problem: &dyn std::fmt::Display) -> LockFileError {
        LockFileError { path: self.path().to_owned(), problem: problem.to_string() }
    }
}

impl From<TrustedFileError> for LockFileError {
    fn from(TrustedFileError { path, problem }: TrustedFileError) -> Self {
        Self { path, problem }
    }
}
