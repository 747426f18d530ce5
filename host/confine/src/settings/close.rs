//! Access to directories with closed files.
//!
//! Landlock grants access to whole directories. A directory with a closed file is therefore opened
//! as a list of its other entries.

use std::fs;
use std::path::{Path, PathBuf};

use super::super::protocol::CommandPaths;
use crate::path_resolver::PathResolver;

/// The maximum number of entries per directory that are opened one by one. The others cannot be
/// read.
const MOST_BESIDE: usize = 5_000;

/// Removes the files and all their parent directories from the readable paths. Their names stay
/// visible.
pub(super) fn close(places: &mut CommandPaths, files: &[PathBuf], resolver: &PathResolver) {
    let closed: Vec<PathBuf> =
        files.iter().filter_map(|path| resolver.canonicalize(path).ok()).collect();
    for place in std::mem::take(&mut places.read) {
        let Ok(real) = resolver.canonicalize(&place) else { continue };
        if closed.contains(&real) {
            continue;
        }
        if closed.iter().any(|file| file.starts_with(&real)) {
            open_around(&real, &closed, &mut places.read);
            places.list.push(real);
        } else {
            places.read.push(place);
        }
    }
}

/// Adds the entries of a directory except the closed ones. Links are skipped: their targets need
/// access of their own.
fn open_around(folder: &Path, closed: &[PathBuf], open: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten().take(MOST_BESIDE) {
        let (path, Ok(kind)) = (entry.path(), entry.file_type()) else { continue };
        if kind.is_symlink() || closed.contains(&path) {
            continue;
        }
        if kind.is_dir() && closed.iter().any(|file| file.starts_with(&path)) {
            open_around(&path, closed, open);
        } else {
            open.push(path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_is_opened_around_what_is_closed() {
        let temp = tempfile::tempdir().expect("a folder");
        let root = temp.path().canonicalize().expect("it is there");
        for path in ["a/config", "a/HEAD", "a/m/x/config", "a/m/x/HEAD", "a/m/y/config", "b/f", "c"]
        {
            fs::create_dir_all(root.join(path).parent().expect("a parent")).expect("it is made");
            fs::write(root.join(path), "").expect("it is written");
        }
        std::os::unix::fs::symlink("a", root.join("to-a")).expect("a link");
        std::os::unix::fs::symlink("config", root.join("a/to-config")).expect("a link");
        let whole = |paths: &[&str]| paths.iter().map(|path| root.join(path)).collect::<Vec<_>>();
        let mut places =
            CommandPaths { read: whole(&["to-a", "b", "c"]), ..CommandPaths::default() };
        close(&mut places, &whole(&["a/config", "a/m/x/config", "c"]), &PathResolver::default());
        places.read.sort();
        assert_eq!(places.read, whole(&["a/HEAD", "a/m/x/HEAD", "a/m/y", "b"]));
        assert_eq!(places.list, whole(&["a"]));
    }
}
