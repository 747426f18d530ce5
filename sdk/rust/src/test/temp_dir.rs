//! Temporary directories as working directories.
#![expect(clippy::expect_used, reason = "a test cannot continue without a directory")]

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

/// A temporary directory. Dropping it deletes the directory.
#[derive(Debug)]
pub(super) struct TempDir(PathBuf);

/// While this exists, the directory is the working directory.
#[derive(Debug)]
pub(super) struct WorkingDirGuard {
    before: PathBuf,
}

impl TempDir {
    pub(super) fn new() -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let name = format!(
            "cofferdam-test-{}-{}",
            std::process::id(),
            NUMBER.fetch_add(1, Ordering::Relaxed)
        );
        let path = env::temp_dir().join(name);
        fs::create_dir(&path).expect("a temporary directory can be created");
        Self(path)
    }

    pub(super) fn path(&self) -> &Path {
        &self.0
    }

    pub(super) fn write(&self, path: &str, contents: &[u8]) {
        let path = self.0.join(path);
        fs::create_dir_all(path.parent().unwrap_or(&self.0))
            .expect("the directories can be created");
        fs::write(path, contents).expect("the file can be written");
    }

    pub(super) fn enter(&self) -> WorkingDirGuard {
        let before = env::current_dir().expect("there is a working directory");
        env::set_current_dir(&self.0).expect("the directory exists");
        WorkingDirGuard { before }
    }
}

impl Drop for TempDir {
    fn drop(&mut self) {
        // A leftover directory does not fail the test.
        let _ = fs::remove_dir_all(&self.0);
    }
}

impl Drop for WorkingDirGuard {
    fn drop(&mut self) {
        let _ = env::set_current_dir(&self.before);
    }
}
