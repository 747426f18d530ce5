//! The directory of staged contents: private to the user, and removed with the overlay or by a
//! later process.

use std::fs::{File, Permissions};
use std::io;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::Path;
use std::sync::Once;
use std::time::Duration;

const PREFIX: &str = "cofferdam-stage-";
/// The age after which an unused directory is removed. A newer one may be about to be locked.
const MIN_STALE_AGE: Duration = Duration::from_secs(60);

/// A directory that is removed when the value is dropped.
#[derive(Debug)]
pub(super) struct StageDirectory {
    directory: tempfile::TempDir,
    /// The lock that marks the directory as used. The system releases it when the process ends,
    /// even after a crash.
    _lock: File,
}

impl StageDirectory {
    /// Creates a directory in `parent`. The first call of a process also removes the directories
    /// that crashed processes left there.
    pub(super) fn new(parent: &Path) -> io::Result<Self> {
        static SWEPT: Once = Once::new();
        SWEPT.call_once(|| remove_stale(parent, MIN_STALE_AGE));
        Self::create_in(parent)
    }

    fn create_in(parent: &Path) -> io::Result<Self> {
        let private = Permissions::from_mode(0o700);
        let directory =
            tempfile::Builder::new().prefix(PREFIX).permissions(private).tempdir_in(parent)?;
        let lock = File::open(directory.path())?;
        // If a directory cannot be locked, no process can lock it and remove it as stale.
        let _ = lock.try_lock();
        Ok(Self { directory, _lock: lock })
    }

    pub(super) fn path(&self) -> &Path {
        self.directory.path()
    }
}

/// Removes the directories of this user that are unused and older than `age`.
fn remove_stale(parent: &Path, age: Duration) {
    let user = rustix::process::geteuid().as_raw();
    for entry in std::fs::read_dir(parent).into_iter().flatten().flatten() {
        if !entry.file_name().to_string_lossy().starts_with(PREFIX) {
            continue;
        }
        let path = entry.path();
        let Ok(metadata) = path.symlink_metadata() else { continue };
        let is_old = metadata
            .modified()
            .is_ok_and(|time| time.elapsed().is_ok_and(|elapsed| elapsed >= age));
        let is_mine = metadata.is_dir() && metadata.uid() == user;
        if is_mine
            && is_old
            && File::open(&path).is_ok_and(|directory| directory.try_lock().is_ok())
        {
            // If this fails, the next process tries again.
            let _ = std::fs::remove_dir_all(path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_directory_is_private() {
        let parent = tempfile::tempdir().expect("create a temporary directory");
        let directory = StageDirectory::create_in(parent.path()).expect("it is made");
        assert_eq!(directory.path().metadata().expect("read the metadata").mode() & 0o777, 0o700);
    }

    #[test]
    fn only_stale_directories_are_removed() {
        let parent = tempfile::tempdir().expect("create a temporary directory");
        let used = StageDirectory::create_in(parent.path()).expect("it is made");
        let StageDirectory { directory, _lock: lock } =
            StageDirectory::create_in(parent.path()).expect("it is made");
        let left = directory.keep();
        std::fs::write(left.join("1"), "secret").expect("write the file");
        let other = parent.path().join("cofferdam-other");
        std::fs::create_dir(&other).expect("create the directory");
        remove_stale(parent.path(), Duration::ZERO);
        assert!(left.exists(), "it is still locked");
        drop(lock);
        remove_stale(parent.path(), MIN_STALE_AGE);
        assert!(left.exists(), "it may be about to be locked");
        remove_stale(parent.path(), Duration::ZERO);
        assert!(!left.exists() && used.path().exists() && other.exists());
    }
}
