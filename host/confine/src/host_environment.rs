//! The environment of the host process, as values. Nothing in this package reads it from the
//! process, so that the caller decides what commands and git settings depend on.

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::path::{Path, PathBuf};

/// The home directory, the temporary directory and the environment variables of the user who runs
/// the host.
#[derive(Clone, PartialEq, Eq)]
pub struct HostEnvironment {
    /// The home directory of the user, if there is one.
    pub home: Option<PathBuf>,
    /// The directory for temporary files and directories.
    pub temp_dir: PathBuf,
    /// The names and values of the environment variables. If a name occurs twice, the first value
    /// counts.
    pub variables: Vec<(OsString, OsString)>,
}

impl HostEnvironment {
    /// Returns the value of an environment variable.
    pub fn variable(&self, name: &str) -> Option<OsString> {
        self.variables.iter().find(|(known, _)| known == OsStr::new(name)).map(|(_, v)| v.clone())
    }

    /// Returns the home directory if commands can have one at its path.
    ///
    /// It must be an absolute path other than `/`, and UTF-8, because the request to the supervisor
    /// is JSON.
    pub(crate) fn command_home(&self) -> Option<&Path> {
        self.home
            .as_deref()
            .filter(|home| home.is_absolute() && home.parent().is_some() && home.to_str().is_some())
    }
}

impl Default for HostEnvironment {
    /// Returns an environment without a home directory and without variables.
    fn default() -> Self {
        Self { home: None, temp_dir: PathBuf::from("/tmp"), variables: Vec::new() }
    }
}

impl fmt::Debug for HostEnvironment {
    /// Omits the values of the variables, which may be keys.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<_> = self.variables.iter().map(|(name, _)| name).collect();
        f.debug_struct("HostEnvironment")
            .field("home", &self.home)
            .field("temp_dir", &self.temp_dir)
            .field("variables", &names)
            .finish()
    }
}
