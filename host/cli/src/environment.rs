//! The environment of this process, which it reads once and passes on as a value.

use cofferdam::sandbox::HostEnvironment;

/// Reads the home directory, the temporary directory and the variables of this process.
pub fn host_environment() -> HostEnvironment {
    HostEnvironment {
        home: std::env::home_dir(),
        temp_dir: std::env::temp_dir(),
        variables: std::env::vars_os().collect(),
    }
}
