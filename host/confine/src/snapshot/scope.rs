//! The part of a workspace that a command with a private view can have changed.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeSet, HashMap};
use std::ffi::CString;
use std::io;
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, FileType, Mode, OFlags, Stat, openat, statat};
use rustix::io::Errno;

use crate::view::is_opaque;

/// The layer of a command, which shows what the command cannot have changed.
///
/// Before overlayfs changes an entry, it copies each directory above it to the layer. So below a
/// directory that is not in the layer, everything is as it was before the command, and a search
/// after the command can leave it out. No process of the command runs meanwhile.
#[derive(Debug)]
pub(crate) struct LayerScope {
    upper: OwnedFd,
    lower: OwnedFd,
    /// The directories that the command wrote directly, which the layer does not show.
    direct: Vec<PathBuf>,
    /// Whether a search leaves out nothing.
    covers_all: Cell<bool>,
    /// The paths that leave the layer when it is unmounted. Nobody searches them.
    left_out: RefCell<BTreeSet<PathBuf>>,
    /// What the layer has at these paths.
    known: RefCell<HashMap<PathBuf, LayerPath>>,
}

/// What the layer has at a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LayerPath {
    /// Nothing, so that the workspace below shows.
    Absent,
    /// A directory through which the directory below shows.
    Merged,
    /// Another entry, which hides the workspace below.
    Covering,
}

impl LayerScope {
    /// Opens the upper directory of a layer. `lower` is the workspace below, and `direct` are the
    /// directories that the command wrote directly.
    ///
    /// # Errors
    /// The directory cannot be opened.
    #[allow(dead_code, reason = "only systems with overlays open one")]
    pub(crate) fn open(upper: &Path, lower: OwnedFd, direct: Vec<PathBuf>) -> io::Result<Self> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let upper = openat(rustix::fs::CWD, upper, flags, Mode::empty())?;
        let (covers_all, left_out, known) =
            (Cell::new(false), RefCell::default(), RefCell::default());
        Ok(Self { upper, lower, direct, covers_all, left_out, known })
    }

    /// Returns whether an entry of a directory that the command can have changed is in the layer.
    /// If not, nothing at or below it has changed.
    pub(super) fn contains(&self, path: &Path) -> bool {
        if self.covers_all.get() || self.meets_direct(path) {
            return true;
        }
        // An error is no proof that nothing has changed.
        !matches!(stat_in(&self.upper, path), Err(Errno::NOENT))
    }

    /// Returns whether nothing at or below a path has changed.
    pub(super) fn is_unchanged(&self, path: &Path) -> bool {
        if self.covers_all.get() || self.meets_direct(path) {
            return false;
        }
        let mut above: Vec<&Path> = path.ancestors().collect();
        above.reverse();
        for part in above.into_iter().filter(|part| !part.as_os_str().is_empty()) {
            match self.find(part) {
                LayerPath::Absent => return true,
                LayerPath::Merged => {}
                LayerPath::Covering => return false,
            }
        }
        false
    }

    /// Makes later searches leave out a path, which will not be committed.
    pub(crate) fn leave_out(&self, path: &Path) {
        self.left_out.borrow_mut().insert(path.to_owned());
    }

    /// Returns whether a path will not be committed.
    pub(super) fn is_left_out(&self, path: &Path) -> bool {
        self.left_out.borrow().contains(path)
    }

    /// Makes later searches leave out nothing else.
    pub(crate) fn cover_all(&self) {
        self.covers_all.set(true);
    }

    /// Returns whether a search leaves out nothing.
    pub(super) fn covers_all(&self) -> bool {
        self.covers_all.get()
    }

    /// Returns whether a path is in a directory that the command wrote directly, or above one.
    fn meets_direct(&self, path: &Path) -> bool {
        self.direct.iter().any(|direct| path.starts_with(direct) || direct.starts_with(path))
    }

    /// Returns the permissions that a directory had before the command, or `None` if it is another
    /// one.
    pub(super) fn mode_before(&self, path: &Path, inode: u64) -> Option<u32> {
        let found = stat_in(&self.lower, path).ok()?;
        // A copied directory keeps its number if both layers are on one file system.
        let is_top = path.as_os_str().is_empty();
        let is_same = is_directory(&found) && (is_top || found.st_ino == inode);
        is_same.then_some(found.st_mode & 0o7777)
    }

    /// Returns the inode of the workspace itself. The top of an overlay has another number.
    pub(super) fn top_inode(&self) -> Option<u64> {
        stat_in(&self.lower, Path::new("")).ok().map(|found| found.st_ino)
    }

    /// Returns what the layer has at a path whose parent shows the directory below.
    fn find(&self, path: &Path) -> LayerPath {
        if let Some(known) = self.known.borrow().get(path) {
            return *known;
        }
        let found = match stat_in(&self.upper, path) {
            Err(Errno::NOENT) => LayerPath::Absent,
            Ok(found) if is_directory(&found) && !self.is_opaque(path) => LayerPath::Merged,
            Ok(_) | Err(_) => LayerPath::Covering,
        };
        self.known.borrow_mut().insert(path.to_owned(), found);
        found
    }

    fn is_opaque(&self, path: &Path) -> bool {
        let name = CString::new(path.as_os_str().as_bytes());
        name.is_ok_and(|name| is_opaque(self.upper.as_fd(), &name).unwrap_or(true))
    }
}

fn stat_in(directory: &OwnedFd, path: &Path) -> Result<Stat, Errno> {
    let path = if path.as_os_str().is_empty() { Path::new(".") } else { path };
    statat(directory, path, AtFlags::SYMLINK_NOFOLLOW)
}

fn is_directory(found: &Stat) -> bool {
    FileType::from_raw_mode(found.st_mode) == FileType::Directory
}

#[cfg(target_os = "linux")]
#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::MetadataExt as _;

    use rustix::fs::{CWD, XattrFlags, mknodat, setxattr};

    use super::*;

    #[test]
    fn only_what_the_layer_shows_can_have_changed() {
        let [lower, upper] = [(); 2].map(|()| tempfile::tempdir().expect("a directory"));
        for path in ["a/kept", "a/merged/kept", "gone/inner", "new/inner", "other/inner"] {
            fs::create_dir_all(lower.path().join(path)).expect("it is made");
        }
        let layer = |path: &str| upper.path().join(path);
        fs::create_dir_all(layer("a/merged")).expect("it is made");
        fs::create_dir_all(layer("new/added")).expect("it is made");
        fs::write(layer("a/merged/file"), "").expect("it is written");
        fs::write(layer("other"), "").expect("it is written");
        setxattr(layer("new"), "user.overlay.opaque", b"y", XattrFlags::empty())
            .expect("the file system has attributes");
        mknodat(CWD, layer("gone"), FileType::CharacterDevice, Mode::empty(), 0)
            .expect("a whiteout");
        let open = openat(CWD, lower.path(), OFlags::PATH, Mode::empty()).expect("it opens");
        let scope = LayerScope::open(upper.path(), open, vec!["elsewhere/direct".into()]);
        let scope = scope.expect("it opens");
        for path in ["a/kept", "a/kept/below", "a/merged/kept", "elsewhere/deep"] {
            assert!(scope.is_unchanged(Path::new(path)), "{path}");
            assert!(!scope.contains(Path::new(path)), "{path}");
        }
        for path in ["", "a", "a/merged", "a/merged/file", "gone", "gone/inner", "new", "new/inner"]
        {
            assert!(!scope.is_unchanged(Path::new(path)), "{path}");
        }
        for path in ["other", "other/inner"] {
            assert!(!scope.is_unchanged(Path::new(path)), "{path}");
        }
        // The layer does not show what was written directly.
        for path in ["elsewhere", "elsewhere/direct", "elsewhere/direct/a"] {
            assert!(!scope.is_unchanged(Path::new(path)), "{path}");
            assert!(scope.contains(Path::new(path)), "{path}");
        }
        let inode = |path: &str| fs::metadata(lower.path().join(path)).expect("it is there").ino();
        let mode = fs::metadata(lower.path().join("a")).expect("it is there").mode() & 0o7777;
        assert_eq!(scope.mode_before(Path::new("a"), inode("a")), Some(mode));
        assert_eq!(scope.mode_before(Path::new("a"), inode("new")), None);
        assert_eq!(scope.mode_before(Path::new("missing"), 1), None);
        assert!(scope.mode_before(Path::new(""), 1).is_some());
        assert_eq!(scope.top_inode(), Some(inode("")));
    }
}
