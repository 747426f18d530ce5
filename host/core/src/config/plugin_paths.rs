//! The paths of the lock file and of the added plugins.

use std::path::{Path, PathBuf};

/// The paths of the lock file and of the added plugins, next to the configuration file that names
/// the other plugins.
#[derive(Clone, Debug)]
pub struct PluginPaths {
    lock_file: PathBuf,
}

impl PluginPaths {
    /// Returns the paths for a configuration file.
    pub fn next_to(configuration: &Path) -> Self {
        Self { lock_file: configuration.with_file_name("cofferdam.lock") }
    }

    /// Returns the path of the lock file, which records the accepted plugins.
    pub fn lock_file(&self) -> &Path {
        &self.lock_file
    }

    /// Returns the directory for added plugins.
    pub fn plugin_dir(&self) -> PathBuf {
        self.lock_file.with_file_name("plugins")
    }
}
