//! Where what a call writes waits: a folder that is this user's alone, and goes with whoever made it, if need be later.

use std::fs::{File, Permissions};
use std::io;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::Path;
use std::sync::Once;

const PREFIX: &str = "cofferdam-stage-";
/// A file in it that is locked for as long as the folder is in use, also if the process ends without a word.
const LOCK: &str = "lock";

/// A folder, removed with this.
#[derive(Debug)]
pub(super) struct Folder {
    folder: tempfile::TempDir,
    _lock: File,
}

impl Folder {
    /// A new one. The first of a process removes those that others have left behind.
    pub(super) fn new() -> io::Result<Self> {
        static SWEPT: Once = Once::new();
        let parent = std::env::temp_dir();
        SWEPT.call_once(|| sweep(&parent));
        Self::below(&parent)
    }

    fn below(parent: &Path) -> io::Result<Self> {
        let private = Permissions::from_mode(0o700);
        let folder = tempfile::Builder::new().prefix(PREFIX).permissions(private).tempdir_in(parent)?;
        let new = folder.path().join("lock.new");
        let lock = File::create_new(&new)?;
        // Under this name it is locked from the first moment; where nothing can be locked, nobody may take the folder for a leftover.
        if lock.try_lock().is_ok() {
            std::fs::rename(new, folder.path().join(LOCK))?;
        }
        Ok(Self { folder, _lock: lock })
    }

    pub(super) fn path(&self) -> &Path {
        self.folder.path()
    }
}

/// Removes the folders of this user that nobody uses.
fn sweep(parent: &Path) {
    let me = rustix::process::geteuid().as_raw();
    for entry in std::fs::read_dir(parent).into_iter().flatten().flatten() {
        if !entry.file_name().to_string_lossy().starts_with(PREFIX) {
            continue;
        }
        let path = entry.path();
        let is_mine = path.symlink_metadata().is_ok_and(|metadata| metadata.is_dir() && metadata.uid() == me);
        if is_mine && File::open(path.join(LOCK)).is_ok_and(|lock| lock.try_lock().is_ok()) {
            // Whoever starts next tries again.
            let _ = std::fs::remove_dir_all(path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_this_users_alone() {
        let parent = tempfile::tempdir().expect("a folder");
        let folder = Folder::below(parent.path()).expect("it is made");
        assert_eq!(folder.path().metadata().expect("it is there").mode() & 0o777, 0o700);
    }

    #[test]
    fn what_a_process_left_behind_is_removed_and_nothing_else() {
        let parent = tempfile::tempdir().expect("a folder");
        let used = Folder::below(parent.path()).expect("it is made");
        let Folder { folder, _lock } = Folder::below(parent.path()).expect("it is made");
        let left = folder.keep();
        std::fs::write(left.join("1"), "secret").expect("it is written");
        let other = parent.path().join(format!("{PREFIX}other"));
        std::fs::create_dir(&other).expect("it is made");
        sweep(parent.path());
        assert!(left.exists(), "it is still locked");
        drop(_lock);
        sweep(parent.path());
        assert!(!left.exists() && used.path().exists() && other.exists());
    }
}
