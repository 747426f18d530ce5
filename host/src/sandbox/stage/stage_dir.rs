//! Where what a call writes waits: a folder that is this user's alone, and goes with whoever made
//! it, if need be later.

use std::fs::{File, Permissions};
use std::io;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::Path;
use std::sync::Once;
use std::time::Duration;

const PREFIX: &str = "cofferdam-stage-";
/// A folder that was touched since then may be one that is about to be locked.
const MIN_STALE_AGE: Duration = Duration::from_secs(60);

/// A folder, removed with this.
#[derive(Debug)]
pub(super) struct StageDirectory {
    directory: tempfile::TempDir,
    /// Says that it is in use. The system takes that back when the process ends, also if it does so
    /// without a word.
    _lock: File,
}

impl StageDirectory {
    /// A new one. The first of a process removes those that others have left behind.
    pub(super) fn new() -> io::Result<Self> {
        static SWEPT: Once = Once::new();
        let parent = std::env::temp_dir();
        SWEPT.call_once(|| remove_stale(&parent, MIN_STALE_AGE));
        Self::create_in(&parent)
    }

    fn create_in(parent: &Path) -> io::Result<Self> {
        let private = Permissions::from_mode(0o700);
        let folder =
            tempfile::Builder::new().prefix(PREFIX).permissions(private).tempdir_in(parent)?;
        let lock = File::open(folder.path())?;
        // Where a folder cannot be locked, nobody can take it for one that is left behind.
        let _ = lock.try_lock();
        Ok(Self { directory: folder, _lock: lock })
    }

    pub(super) fn path(&self) -> &Path {
        self.directory.path()
    }
}

/// Removes the folders of this user that nobody uses and that are older than this.
fn remove_stale(parent: &Path, age: Duration) {
    let me = rustix::process::geteuid().as_raw();
    for entry in std::fs::read_dir(parent).into_iter().flatten().flatten() {
        if !entry.file_name().to_string_lossy().starts_with(PREFIX) {
            continue;
        }
        let path = entry.path();
        let Ok(metadata) = path.symlink_metadata() else { continue };
        let is_old = metadata
            .modified()
            .is_ok_and(|time| time.elapsed().is_ok_and(|elapsed| elapsed >= age));
        let is_mine = metadata.is_dir() && metadata.uid() == me;
        if is_mine && is_old && File::open(&path).is_ok_and(|folder| folder.try_lock().is_ok()) {
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
        let folder = StageDirectory::create_in(parent.path()).expect("it is made");
        assert_eq!(folder.path().metadata().expect("it is there").mode() & 0o777, 0o700);
    }

    #[test]
    fn what_a_process_left_behind_is_removed_and_nothing_else() {
        let parent = tempfile::tempdir().expect("a folder");
        let used = StageDirectory::create_in(parent.path()).expect("it is made");
        let StageDirectory { directory: folder, _lock: lock } =
            StageDirectory::create_in(parent.path()).expect("it is made");
        let left = folder.keep();
        std::fs::write(left.join("1"), "secret").expect("it is written");
        let other = parent.path().join("cofferdam-other");
        std::fs::create_dir(&other).expect("it is made");
        remove_stale(parent.path(), Duration::ZERO);
        assert!(left.exists(), "it is still locked");
        drop(lock);
        remove_stale(parent.path(), MIN_STALE_AGE);
        assert!(left.exists(), "it may be about to be locked");
        remove_stale(parent.path(), Duration::ZERO);
        assert!(!left.exists() && used.path().exists() && other.exists());
    }
}
