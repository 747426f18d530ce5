//! The folder of added plugins. A file is named after its plugin and its content, and never changed.

use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use crate::config::{LockFile, LockGuard, LockProblem};
use crate::sandbox::{Digest, Plugin};
use crate::tools::{Added, Lock};

/// The lock file, and the folder beside it.
#[derive(Clone, Debug)]
pub struct Shelf {
    file: LockFile,
    folder: PathBuf,
}

/// A plugin could not be put there or taken away.
#[derive(Debug, thiserror::Error)]
pub enum ShelfError {
    /// The lock file cannot be used.
    #[error(transparent)]
    Lock(#[from] LockProblem),
    /// The system refused.
    #[error("{0}: {1}")]
    Io(PathBuf, io::Error),
    /// The name is taken.
    #[error("{name} is added already: it is kept in {}, and came from {source_text}. `cofferdam plugin update {name}` fetches it \
        again; to have both, give this one another name with --name", file.display())]
    Taken {
        /// The name of both.
        name: String,
        /// Of the one that is there.
        file: PathBuf,
        /// Where that came from.
        source_text: String,
    },
    /// There is none of that name.
    #[error("no plugin was added as {name}{}", if .added.is_empty() { "; none was added at all".to_owned() } else { format!("; there are: {}", .added.join(", ")) })]
    Unknown {
        /// Which.
        name: String,
        /// Those that were.
        added: Vec<String>,
    },
    /// Somebody else was faster.
    #[error("{0} was changed by another process meanwhile, and stays as that has left it; look with `cofferdam plugin list`")]
    Meanwhile(String),
}

/// A temporary file is named so until it is complete.
const UNFINISHED: &str = ".new-";

impl Shelf {
    /// That of a lock file.
    pub fn of(file: LockFile) -> Self {
        Self { folder: file.added_plugins(), file }
    }

    /// The lock as it is now.
    pub fn lock(&self) -> Result<Lock, LockProblem> {
        self.file.read()
    }

    /// Where the lock file is.
    pub fn lock_path(&self) -> &Path {
        self.file.path()
    }

    /// Where an added plugin is kept.
    pub fn path(&self, added: &Added) -> PathBuf {
        self.folder.join(&added.file)
    }

    /// Where a plugin of this content would be kept.
    pub fn place_for(&self, name: &str, digest: &Digest) -> PathBuf {
        self.folder.join(file_name(name, digest))
    }

    /// An added plugin, by name.
    pub fn find(&self, name: &str) -> Result<Added, ShelfError> {
        let lock = self.lock()?;
        let known = || lock.added().map(|(name, _)| name.to_owned()).collect();
        lock.find_added(name).cloned().ok_or_else(|| ShelfError::Unknown { name: name.to_owned(), added: known() })
    }

    /// Nothing was added under this name.
    pub fn is_free(&self, name: &str) -> Result<(), ShelfError> {
        match self.lock()?.find_added(name) {
            None => Ok(()),
            Some(added) => Err(self.taken(name, added)),
        }
    }

    /// Adds a plugin and accepts it as it is.
    pub fn add(&self, name: &str, source: String, plugin: &Plugin) -> Result<PathBuf, ShelfError> {
        self.place(name, None, source, plugin)
    }

    /// Puts another content in the place of what was added; accepts it as it is.
    pub fn replace(&self, name: &str, before: &Added, plugin: &Plugin) -> Result<PathBuf, ShelfError> {
        self.place(name, Some(before), before.source.clone(), plugin)
    }

    /// Takes a plugin away: first what it was accepted as, then its file.
    pub fn remove(&self, name: &str) -> Result<(Added, PathBuf), ShelfError> {
        let guard = self.file.guard()?;
        let added = self.find(name)?;
        let (path, mut lock) = (self.path(&added), self.lock()?);
        lock.forget(name, &path);
        self.file.write(&guard, &lock)?;
        self.tidy(&guard, &lock);
        Ok((added, path))
    }

    fn place(&self, name: &str, before: Option<&Added>, source: String, plugin: &Plugin) -> Result<PathBuf, ShelfError> {
        let guard = self.file.guard()?;
        let mut lock = self.lock()?;
        match (before, lock.find_added(name)) {
            (None, None) => {}
            (Some(before), Some(now)) if before == now => {}
            (None, Some(added)) => return Err(self.taken(name, added)),
            (Some(_), _) => return Err(ShelfError::Meanwhile(name.to_owned())),
        }
        let file = file_name(name, plugin.digest());
        let path = self.folder.join(&file);
        self.write(&path, plugin.component()).map_err(|error| ShelfError::Io(path.clone(), error))?;
        if let Some(before) = before {
            lock.forget(name, &self.path(before));
        }
        lock.add(name, Added { source, file }, &path, plugin);
        // From here on it is the new one that is meant.
        self.file.write(&guard, &lock)?;
        self.tidy(&guard, &lock);
        Ok(path)
    }

    fn write(&self, path: &Path, component: &[u8]) -> io::Result<()> {
        fs::create_dir_all(&self.folder)?;
        let mut file = tempfile::Builder::new().prefix(UNFINISHED).tempfile_in(&self.folder)?;
        file.write_all(component)?;
        file.as_file().sync_all()?;
        file.persist(path).map_err(|error| error.error)?;
        fs::File::open(&self.folder)?.sync_all()
    }

    /// Removes what the lock does not name: what was replaced, and what a crash has left. What cannot be removed stays for the
    /// next time: nothing uses it, and what was asked for is done.
    fn tidy(&self, _: &LockGuard, lock: &Lock) {
        for entry in fs::read_dir(&self.folder).into_iter().flatten().flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            let is_named = lock.added().any(|(_, added)| added.file == name);
            if !is_named && is_of_a_shelf(&name) && entry.file_type().is_ok_and(|kind| kind.is_file()) {
                drop(fs::remove_file(entry.path()));
            }
        }
    }

    fn taken(&self, name: &str, added: &Added) -> ShelfError {
        ShelfError::Taken { name: name.to_owned(), file: self.path(added), source_text: added.source.clone() }
    }
}

fn file_name(name: &str, digest: &Digest) -> String {
    format!("{name}-{}.wasm", digest.short())
}

/// Whether a file has a name that only this room gives. What else somebody has put there is theirs.
fn is_of_a_shelf(name: &str) -> bool {
    let is_digest = |text: &str| text.len() == 12 && text.bytes().all(|b| b.is_ascii_hexdigit());
    let kept = name.strip_suffix(".wasm").and_then(|stem| stem.rsplit_once('-')).is_some_and(|(_, digest)| is_digest(digest));
    kept || name.starts_with(UNFINISHED)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_this_room_has_named_is_tidied_up() {
        let digest = Digest::of(b"x");
        assert!(is_of_a_shelf(&file_name("word_count", &digest)) && is_of_a_shelf(".new-Ab3"));
        for name in ["word_count.wasm", "mine-0123456789.wasm", "notes.txt", "a-0123456789ab.txt", ".hidden"] {
            assert!(!is_of_a_shelf(name), "{name}");
        }
    }

    #[test]
    fn what_cannot_be_tidied_up_keeps_nobody_from_anything() {
        let temp = tempfile::tempdir().expect("a folder");
        let file = LockFile::beside(&temp.path().join("config.toml"));
        let shelf = Shelf::of(file.clone());
        fs::create_dir_all(file.added_plugins().join("x-0123456789ab.wasm")).expect("it can be made");
        fs::write(file.added_plugins().join("y-0123456789ab.wasm"), "old").expect("writable");
        let guard = file.guard().expect("nobody holds it");
        shelf.tidy(&guard, &Lock::new());
        let left: Vec<_> = fs::read_dir(file.added_plugins()).expect("readable").flatten().map(|entry| entry.file_name()).collect();
        assert_eq!(left, ["x-0123456789ab.wasm"]);
    }
}
