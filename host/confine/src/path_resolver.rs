//! Resolution of many paths with few system calls.
//!
//! The paths that commands see share most of their directories. A resolver asks the system once
//! about each entry on the way. It gives each path the same result as `Path::canonicalize` and
//! `Path::exists` would at that moment.
//!
//! A resolver must live for the preparation of one command only. All its answers then describe
//! nearly the same moment, as those of separate system calls do: between a check and the mount that
//! follows, an entry can be exchanged with or without a resolver. The mounts themselves are always
//! made anew.

use std::cell::RefCell;
use std::collections::{HashMap, VecDeque};
use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Component, Path, PathBuf};

use rustix::io::Errno;

/// The number of links on one path, as for the kernel.
const MAX_LINKS: usize = 40;

/// Resolves the links in paths, and remembers each entry that it has seen.
#[derive(Debug, Default)]
pub(crate) struct PathResolver {
    /// The entries by their path, in which no directory is a link.
    entries: RefCell<HashMap<PathBuf, KnownEntry>>,
}

/// What an entry of the file system is.
#[derive(Clone, Debug)]
enum KnownEntry {
    Link(PathBuf),
    /// A file or directory.
    Plain,
    /// It does not exist, or cannot be reached.
    Unreachable(i32),
}

impl PathResolver {
    /// Returns the absolute path without links, like `Path::canonicalize`.
    ///
    /// # Errors
    /// The path does not exist, or cannot be reached.
    pub(crate) fn canonicalize(&self, path: &Path) -> io::Result<PathBuf> {
        self.resolve(path, &mut 0)
    }

    /// Resolves a path, and counts the links.
    fn resolve(&self, path: &Path, links: &mut usize) -> io::Result<PathBuf> {
        // The components of a relative path, and of one that ends with a separator, do not say all
        // that the system asks about.
        if !path.is_absolute() || has_end(path) {
            return path.canonicalize();
        }
        let (mut current, mut rest) = (PathBuf::from("/"), names(path));
        while let Some(name) = rest.pop_front() {
            if name == ".." {
                if !fs::metadata(&current)?.is_dir() {
                    return Err(Errno::NOTDIR.into());
                }
                current.pop();
                continue;
            }
            let next = current.join(name);
            match self.entry(&next) {
                KnownEntry::Plain => current = next,
                KnownEntry::Unreachable(error) => return Err(io::Error::from_raw_os_error(error)),
                KnownEntry::Link(target) => {
                    *links += 1;
                    if *links > MAX_LINKS || has_end(&target) {
                        return path.canonicalize();
                    }
                    if target.is_absolute() {
                        current = PathBuf::from("/");
                    }
                    let mut all = names(&target);
                    all.append(&mut rest);
                    rest = all;
                }
            }
        }
        Ok(current)
    }

    /// Returns the absolute path without links, or the path as it is if that does not exist.
    pub(crate) fn real(&self, path: &Path) -> PathBuf {
        self.canonicalize(path).unwrap_or_else(|_| path.to_owned())
    }

    /// Returns whether a path exists, like `Path::exists`.
    pub(crate) fn exists(&self, path: &Path) -> bool {
        let mut links = 0;
        match self.resolve(path, &mut links) {
            Ok(_) => true,
            // Some links of `/proc` lead to a file although their text does not.
            Err(_) => links > 0 && path.exists(),
        }
    }

    /// Returns the target of a link as written, like `Path::read_link`. The directories of the path
    /// must not be links.
    ///
    /// # Errors
    /// The path is no link, or does not exist.
    pub(crate) fn read_link(&self, path: &Path) -> io::Result<PathBuf> {
        match self.entry(path) {
            KnownEntry::Link(target) => Ok(target),
            KnownEntry::Plain => Err(Errno::INVAL.into()),
            KnownEntry::Unreachable(error) => Err(io::Error::from_raw_os_error(error)),
        }
    }

    fn entry(&self, path: &Path) -> KnownEntry {
        if let Some(known) = self.entries.borrow().get(path) {
            return known.clone();
        }
        let entry = match fs::read_link(path) {
            Ok(target) => KnownEntry::Link(target),
            Err(error) => match error.raw_os_error() {
                // It is there, but no link.
                Some(code) if code == Errno::INVAL.raw_os_error() => KnownEntry::Plain,
                code => KnownEntry::Unreachable(code.unwrap_or(Errno::IO.raw_os_error())),
            },
        };
        self.entries.borrow_mut().insert(path.to_owned(), entry.clone());
        entry
    }
}

/// Returns whether a path ends with a separator, or with the directory itself.
fn has_end(path: &Path) -> bool {
    let text = path.as_os_str().as_bytes();
    text.len() > 1 && (text.ends_with(b"/") || text.ends_with(b"/."))
}

/// Returns the names of a path, with `..` as such.
pub(crate) fn names(path: &Path) -> VecDeque<OsString> {
    let names = path.components().filter_map(|part| match part {
        Component::Normal(name) => Some(name.to_owned()),
        Component::ParentDir => Some("..".into()),
        Component::RootDir | Component::CurDir | Component::Prefix(_) => None,
    });
    names.collect()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn the_results_are_those_of_the_system() {
        let home = tempfile::tempdir().expect("a directory");
        let home = home.path();
        fs::create_dir_all(home.join("a/b")).expect("it is made");
        fs::write(home.join("a/file"), "").expect("it is written");
        for (target, name) in [
            ("a", "to-a"),
            ("../a/b", "a/to-b"),
            ("a/file", "to-file"),
            ("a/file/", "to-file-as-directory"),
            ("a/", "to-a-as-directory"),
            ("missing", "dangling"),
            ("self", "self"),
            ("to-a/to-b/../..", "up"),
            ("/proc/self/fd", "fd"),
        ] {
            symlink(target, home.join(name)).expect("a link");
        }
        symlink(home.join("to-a"), home.join("absolute")).expect("a link");
        let resolver = PathResolver::default();
        for path in [
            "a",
            "a/",
            "a/.",
            "a/b/..",
            "a/file",
            "a/file/",
            "a/file/.",
            "a/file/..",
            "a/file/x",
            "a//b",
            "a/./b",
            "to-a",
            "to-a/",
            "to-a/b",
            "a/to-b",
            "a/to-b/..",
            "to-a/to-b/.",
            "to-file",
            "to-file/",
            "to-file/..",
            "to-file-as-directory",
            "to-a-as-directory",
            "to-a-as-directory/b",
            "missing",
            "missing/..",
            "missing/x",
            "dangling",
            "dangling/x",
            "self",
            "self/x",
            "up",
            "up/a/b",
            "fd",
            "absolute/b",
            "absolute/missing",
            "",
        ] {
            let path = home.join(path);
            // The second answer comes from what the resolver knows.
            for _ in 0..2 {
                let same = |result: io::Result<PathBuf>| result.map_err(|error| error.kind());
                assert_eq!(
                    same(resolver.canonicalize(&path)),
                    same(path.canonicalize()),
                    "{}",
                    path.display()
                );
                assert_eq!(resolver.exists(&path), path.exists(), "{}", path.display());
            }
        }
        for path in ["/", "/proc/self/fd/0", "relative", ".", ""].map(Path::new) {
            assert_eq!(resolver.canonicalize(path).ok(), path.canonicalize().ok(), "{path:?}");
            assert_eq!(resolver.exists(path), path.exists(), "{path:?}");
        }
        let link = home.canonicalize().expect("it is there").join("to-a");
        assert_eq!(resolver.read_link(&link).ok(), link.read_link().ok());
        assert!(resolver.read_link(home).is_err());
    }
}
