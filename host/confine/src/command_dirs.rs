//! The private directories of one command.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;

use super::remove::remove_tree;
use super::snapshot::SavedPath;

/// Private directories and files of one command, removed on drop.
pub(super) struct PrivateDirs {
    directory: tempfile::TempDir,
    pub(super) temporary: PathBuf,
    pub(super) empty_file: PathBuf,
    pub(super) empty_directory: PathBuf,
    /// The directory for copies of settings, created on demand.
    pub(super) settings: PathBuf,
}

impl PrivateDirs {
    pub(super) fn create(parent: &SavedPath) -> std::io::Result<Self> {
        let parent = parent.path().ok_or(std::io::ErrorKind::InvalidData)?;
        let folder = tempfile::Builder::new()
            .prefix("cofferdam-")
            .permissions(Permissions::from_mode(0o700))
            .tempdir_in(parent)?;
        // Sandbox rules need a path without links, such as that of macOS's `/tmp`.
        let path = folder.path().canonicalize()?;
        let [temporary, empty_file, empty_folder, settings] =
            ["tmp", "file", "folder", "settings"].map(|name| path.join(name));
        let private = Self {
            directory: folder,
            temporary,
            empty_file,
            empty_directory: empty_folder,
            settings,
        };
        std::fs::create_dir(&private.temporary)?;
        std::fs::create_dir(&private.empty_directory)?;
        std::fs::write(&private.empty_file, "")?;
        for path in [&private.empty_file, &private.empty_directory] {
            std::fs::set_permissions(path, Permissions::from_mode(0o000))?;
        }
        Ok(private)
    }
}

impl Drop for PrivateDirs {
    fn drop(&mut self) {
        // The command may have left directories that nobody can enter, or that are deeper than any
        // path. The rest is removed with the directory itself.
        let Ok(opened) = std::fs::File::open(self.directory.path()) else { return };
        for name in ["tmp", "folder"] {
            let _ = remove_tree(&opened, name, &mut || true);
        }
    }
}
