//! Compiled components and declarations, kept between runs.
//!
//! A compiled component is machine code: loading one is as good as running it. So the folder belongs to the user alone
//! (mode 0700), holds only what this program put there, and is named after everything that compiling depends on. A folder
//! that somebody else could have written to is not used.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use crate::private::{self, NotPrivate};

/// A folder of this user's.
#[derive(Clone, Debug)]
pub struct Cache {
    folder: PathBuf,
}

/// The folder cannot be trusted or made.
#[derive(Debug, thiserror::Error)]
pub enum CacheProblem {
    /// It cannot be made or looked at.
    #[error("cannot use the cache folder {0}: {1}")]
    Io(PathBuf, std::io::Error),
    /// Somebody else could have put code there.
    #[error("the cache folder {0} {1}; make it yours alone (`chmod 700`), or remove it")]
    NotPrivate(PathBuf, &'static str),
}

impl Cache {
    /// Opens a folder, which is made with mode 0700 if it is not there.
    pub fn open(folder: &Path) -> Result<Self, CacheProblem> {
        private::folder(folder).map_err(|problem| match problem {
            NotPrivate::Io(error) => CacheProblem::Io(folder.to_owned(), error),
            NotPrivate::Is(problem) => CacheProblem::NotPrivate(folder.to_owned(), problem),
        })?;
        Ok(Self { folder: folder.to_owned() })
    }

    /// Where it is.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    pub(super) fn read(&self, name: &str) -> Option<Vec<u8>> {
        fs::read(self.path(name)).ok()
    }

    /// Puts a file in its place at once or not at all: another process may be reading, or writing the same.
    pub(super) fn write(&self, name: &str, bytes: &[u8]) -> std::io::Result<()> {
        let mut file = tempfile::Builder::new().prefix(".new-").tempfile_in(&self.folder)?;
        file.write_all(bytes)?;
        file.persist(self.path(name)).map(drop).map_err(|error| error.error)
    }

    /// How many files it holds and how many bytes they have.
    pub fn size(&self) -> (usize, u64) {
        let files = fs::read_dir(&self.folder).into_iter().flatten().flatten();
        files.filter_map(|file| file.metadata().ok()).fold((0, 0), |(count, bytes), m| (count + 1, bytes + m.len()))
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};

    use super::*;

    #[test]
    fn a_folder_that_others_can_write_to_is_not_used() {
        let parent = tempfile::tempdir().expect("a folder");
        let folder = parent.path().join("cache");
        let cache = Cache::open(&folder).expect("it is made");
        assert_eq!(fs::metadata(cache.folder()).expect("it is there").mode() & 0o777, 0o700);
        fs::set_permissions(&folder, fs::Permissions::from_mode(0o777)).expect("it is ours");
        assert!(Cache::open(&folder).unwrap_err().to_string().contains("open to others"));
    }

    #[test]
    fn a_link_in_place_of_the_folder_is_not_followed() {
        let parent = tempfile::tempdir().expect("a folder");
        let link = parent.path().join("cache");
        fs::create_dir(parent.path().join("elsewhere")).expect("it is made");
        std::os::unix::fs::symlink(parent.path().join("elsewhere"), &link).expect("it is made");
        assert!(matches!(Cache::open(&link), Err(CacheProblem::NotPrivate(..))));
    }
}
