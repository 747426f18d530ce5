//! Putting a file in another's place, so that nobody ever sees half of it.

use std::collections::hash_map::RandomState;
use std::fs::{self, File, OpenOptions};
use std::hash::{BuildHasher, Hasher};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// The host takes at most 4 MiB at once.
const CHUNK: usize = 1 << 20;
/// Names are random; to meet one that is taken twice means that something else is wrong.
const ATTEMPTS: usize = 4;

/// Gives a file a new content: all of it, or on an error nothing. A call that the host ends in the
/// middle may leave its temporary file behind, never a damaged one.
pub(crate) fn replace(path: &Path, content: &[u8]) -> io::Result<()> {
    let (temporary, mut file) = create_beside(path)?;
    let written = content.chunks(CHUNK).try_for_each(|chunk| file.write_all(chunk));
    drop(file);
    let replaced = written.and_then(|()| fs::rename(&temporary, path));
    if replaced.is_err() {
        // The first error is the one to tell.
        let _ = fs::remove_file(&temporary);
    }
    replaced
}

/// In the same directory, because only within a file system is renaming a single step.
fn create_beside(path: &Path) -> io::Result<(PathBuf, File)> {
    let mut last = io::Error::from(io::ErrorKind::AlreadyExists);
    for _ in 0..ATTEMPTS {
        let temporary = path.with_file_name(format!(
            ".cofferdam-{:016x}.tmp",
            RandomState::new().build_hasher().finish()
        ));
        match OpenOptions::new().write(true).create_new(true).open(&temporary) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => last = error,
            opened => return opened.map(|file| (temporary, file)),
        }
    }
    Err(last)
}

#[cfg(test)]
mod tests {
    use super::*;

    type Outcome = Result<(), Box<dyn std::error::Error>>;

    fn names(directory: &Path) -> io::Result<Vec<String>> {
        fs::read_dir(directory)?
            .map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned()))
            .collect()
    }

    #[test]
    fn r118_the_old_file_is_replaced_as_a_whole() -> Outcome {
        let directory = tempfile::tempdir()?;
        let path = directory.path().join("file");
        fs::write(&path, "old")?;
        let mut reader = File::open(&path)?;
        let content = vec![b'x'; CHUNK + 1];
        replace(&path, &content)?;
        assert_eq!(fs::read(&path)?, content);
        assert_eq!(names(directory.path())?, ["file"]);
        // Whoever has opened it before still reads the old one.
        assert_eq!(io::read_to_string(&mut reader)?, "old");
        Ok(())
    }

    #[test]
    fn r118_a_failure_leaves_nothing_behind() -> Outcome {
        let directory = tempfile::tempdir()?;
        // A directory that is not empty cannot be replaced by a file.
        fs::create_dir_all(directory.path().join("taken/x"))?;
        assert!(replace(&directory.path().join("taken"), b"new").is_err());
        assert_eq!(names(directory.path())?, ["taken"]);
        Ok(())
    }
}
