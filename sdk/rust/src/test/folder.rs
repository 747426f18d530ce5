//! A temporary folder, and being in it.
#![expect(clippy::expect_used, reason = "a test without a folder cannot go on")]

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

/// A folder that goes away with this.
#[derive(Debug)]
pub(super) struct Folder(PathBuf);

/// While this lives, the folder is the working directory.
#[derive(Debug)]
pub(super) struct Inside {
    before: PathBuf,
}

impl Folder {
    pub(super) fn new() -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let name = format!(
            "cofferdam-test-{}-{}",
            std::process::id(),
            NUMBER.fetch_add(1, Ordering::Relaxed)
        );
        let path = env::temp_dir().join(name);
        fs::create_dir(&path).expect("a temporary folder can be made");
        Self(path)
    }

    pub(super) fn path(&self) -> &Path {
        &self.0
    }

    pub(super) fn write(&self, path: &str, contents: &[u8]) {
        let path = self.0.join(path);
        fs::create_dir_all(path.parent().unwrap_or(&self.0)).expect("the directories can be made");
        fs::write(path, contents).expect("the file can be written");
    }

    pub(super) fn enter(&self) -> Inside {
        let before = env::current_dir().expect("there is a working directory");
        env::set_current_dir(&self.0).expect("the folder is there");
        Inside { before }
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // A test is not failed by what it leaves in a temporary folder.
        let _ = fs::remove_dir_all(&self.0);
    }
}

impl Drop for Inside {
    fn drop(&mut self) {
        let _ = env::set_current_dir(&self.before);
    }
}
