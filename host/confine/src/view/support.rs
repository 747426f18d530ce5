//! Whether commands can get a private view of a workspace.

use std::path::{Path, PathBuf};

use crate::os;
use cofferdam_policy::SandboxLevel;
use cofferdam_policy::terminal_escape::escape_line;

/// The maximum length of a path in a reason, in characters.
const MAX_SHOWN_PATH_LEN: usize = 200;

/// The reason why commands write a workspace directly instead of through a private view.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ViewUnavailable {
    /// Commands run at a lower level.
    #[error("it needs the sandbox level `full`, and commands run at the level `{0}`")]
    Level(SandboxLevel),
    /// There is no directory for the changes of commands.
    #[error("this host has no directory for the changes of commands")]
    NoDirectory,
    /// The sandbox has no mount namespace that this program creates itself.
    #[error("it needs user namespaces that Cofferdam creates itself")]
    Namespaces,
    /// The self-test with a private view failed.
    #[error("the self-test failed: {0}")]
    SelfTest(String),
    /// The changes cannot be renamed into the workspace.
    #[error(
        "the workspace is not on the file system of `{}`",
        escape_line(&.directory.display().to_string(), MAX_SHOWN_PATH_LEN)
    )]
    OtherFileSystem {
        /// The directory for the changes of commands.
        directory: PathBuf,
    },
    /// Something is mounted in the workspace, which an overlay would not show.
    #[error(
        "another file system is mounted at `{}`",
        escape_line(&.0.display().to_string(), MAX_SHOWN_PATH_LEN)
    )]
    MountBelow(PathBuf),
    /// The directory for the changes of commands is in the workspace, which an overlay cannot show.
    #[error("the directory for the changes of commands is in the workspace")]
    InsideWorkspace,
    /// The operating system reported an error.
    #[error("{0}")]
    Io(String),
}

/// Checks that changes in `layers` can be renamed into a workspace, and that an overlay shows all
/// of it.
///
/// # Errors
/// The reason why commands have to write this workspace directly.
pub fn check_workspace(workspace: &Path, layers: &Path) -> Result<(), ViewUnavailable> {
    // The directory may not exist yet.
    let real = layers.ancestors().find_map(|above| above.canonicalize().ok());
    if real.is_some_and(|real| real.starts_with(workspace)) {
        return Err(ViewUnavailable::InsideWorkspace);
    }
    os::check_private_view(workspace, layers)
}
