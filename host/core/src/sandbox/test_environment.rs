//! The environment of the tests of this package, from that of their process.

use std::path::Path;

use super::{HostEnvironment, Workspace};

/// Opens a workspace with the environment of this process.
pub(crate) fn open_workspace(path: &Path) -> Workspace {
    let environment = HostEnvironment {
        home: std::env::home_dir(),
        temp_dir: std::env::temp_dir(),
        variables: std::env::vars_os().collect(),
    };
    Workspace::open(path, &environment).expect("it opens")
}
