//! The environment of this process, which it reads once and passes on as a value.

use std::path::PathBuf;

use cofferdam::sandbox::HostEnvironment;

/// Reads the home directory, the temporary directory and the variables of this process.
pub fn host_environment() -> HostEnvironment {
    HostEnvironment {
        home: home_directory(),
        temp_dir: std::env::temp_dir(),
        variables: std::env::vars_os().collect(),
    }
}

/// Returns the home directory that the variable `HOME` names.
///
/// The user database may name another one. Whoever removes the variable wants no files there.
pub(crate) fn home_directory() -> Option<PathBuf> {
    std::env::var_os("HOME").filter(|home| !home.is_empty()).map(PathBuf::from)
}
