//! The directory with the changes of one command.

use std::collections::BTreeSet;
use std::fs::{self, File, Permissions};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, chown};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tempfile::TempDir;

use super::LayerChange;
use crate::own_file;
use crate::protocol::SupervisedView;
use crate::remove_directory;

const PREFIX: &str = "layer-";
/// The age after which an unused layer is removed. A newer one may be about to be locked.
const MIN_STALE_AGE: Duration = Duration::from_secs(60);

/// The changes of a command that has ended, or the copies of them at a checkpoint. Dropping this
/// discards them.
#[derive(Debug)]
#[non_exhaustive]
pub struct CommandChanges {
    /// The layer with the new entries.
    pub layer: CommandLayer,
    /// The changed paths, sorted.
    pub changes: Vec<LayerChange>,
}

/// A directory with the changes of one command, on the file system of its workspace.
///
/// It is removed when the value is dropped, or by a later process if this one is killed.
#[derive(Debug)]
pub struct CommandLayer {
    /// `None` after the directory was removed.
    directory: Option<TempDir>,
    /// The lock that marks the layer as used. The system releases it when the process ends.
    _lock: File,
    /// The link to the supervisor, which ends the overlay when the link closes. Then the kernel
    /// writes all changes of the file system to the disk, which would slow the commit down.
    _overlay: Option<OwnedFd>,
    created: (i64, i64),
}

/// The view of the workspace that a command gets.
pub(crate) enum PlannedView {
    /// The workspace itself.
    Direct,
    /// The workspace itself, which the command cannot change.
    ReadOnly,
    /// A private view, whose changes this layer receives.
    Layer(CommandLayer),
}

impl PlannedView {
    /// Returns the view as the supervisor gets it.
    pub(crate) fn to_request(&self) -> SupervisedView {
        match self {
            Self::Direct => SupervisedView::Direct,
            Self::ReadOnly => SupervisedView::ReadOnly,
            Self::Layer(layer) => SupervisedView::Layer(layer.path().to_owned()),
        }
    }

    pub(crate) fn into_layer(self) -> Option<CommandLayer> {
        match self {
            Self::Direct | Self::ReadOnly => None,
            Self::Layer(layer) => Some(layer),
        }
    }
}

/// The directories of a layer.
pub(crate) struct LayerPaths {
    /// The upper layer of the overlay.
    pub(crate) upper: PathBuf,
    /// The directory in which overlayfs prepares changes.
    pub(crate) work: PathBuf,
    /// The new entries, each with its number as the name.
    pub(crate) entries: PathBuf,
}

impl LayerPaths {
    pub(crate) fn of(layer: &Path) -> Self {
        let [upper, work, entries] = ["upper", "work", "entries"].map(|name| layer.join(name));
        Self { upper, work, entries }
    }
}

impl CommandLayer {
    /// Creates an empty layer for a workspace. The first call of a process also removes the layers
    /// that killed processes left there.
    ///
    /// # Errors
    /// The directory cannot be created.
    pub(crate) fn create(parent: &Path, workspace: &Path) -> io::Result<Self> {
        // The self-test has a directory of its own.
        static SWEPT: Mutex<BTreeSet<PathBuf>> = Mutex::new(BTreeSet::new());
        own_file::create_dir_io(parent)?;
        if SWEPT.lock().unwrap_or_else(PoisonError::into_inner).insert(parent.to_owned()) {
            remove_stale(parent, MIN_STALE_AGE);
        }
        let (directory, lock) = create_locked(parent)?;
        let paths = LayerPaths::of(directory.path());
        for path in [&paths.work, &paths.entries, &paths.upper] {
            fs::create_dir(path)?;
        }
        // The top of an overlay has the permissions of its upper layer.
        let top = fs::metadata(workspace)?;
        let upper = fs::metadata(&paths.upper)?;
        if (top.uid(), top.gid()) != (upper.uid(), upper.gid()) {
            let given = chown(&paths.upper, Some(top.uid()), Some(top.gid()));
            // Only a member of the group can give a directory to it. The group of the workspace
            // itself does not change.
            let is_other_group = top.uid() == upper.uid();
            match given {
                Err(error) if is_other_group && error.kind() == io::ErrorKind::PermissionDenied => {
                }
                given => given?,
            }
        }
        fs::set_permissions(&paths.upper, Permissions::from_mode(top.mode() & 0o7777))?;
        // The clock of the file system, with which later changes of the workspace are compared.
        let now = fs::metadata(&paths.upper)?;
        let created = (now.ctime(), now.ctime_nsec());
        Ok(Self { directory: Some(directory), _lock: lock, _overlay: None, created })
    }

    /// Creates a layer next to this one for copies of its new entries, which a checkpoint commits.
    ///
    /// # Errors
    /// The directory cannot be created.
    pub(crate) fn create_for_checkpoint(&self) -> io::Result<Self> {
        let parent = self.path().parent().ok_or(io::ErrorKind::NotFound)?;
        let (directory, lock) = create_locked(parent)?;
        fs::create_dir(LayerPaths::of(directory.path()).entries)?;
        let created = self.created;
        Ok(Self { directory: Some(directory), _lock: lock, _overlay: None, created })
    }

    /// Keeps the overlay of this layer, which nothing uses any more, as long as the layer.
    pub(crate) fn hold_overlay(&mut self, link: OwnedFd) {
        self._overlay = Some(link);
    }

    /// Returns the directory, for temporary files that are removed with it.
    pub fn path(&self) -> &Path {
        self.directory.as_ref().map_or(Path::new(""), TempDir::path)
    }

    /// Returns the path of the new entry with this number. It is on the same mount as the
    /// workspace, so that one rename commits it.
    pub fn entry(&self, number: usize) -> PathBuf {
        LayerPaths::of(self.path()).entries.join(number.to_string())
    }

    /// Keeps the directory, because a user may need its contents.
    pub fn keep(mut self) {
        if let Some(directory) = self.directory.take() {
            let _ = directory.keep();
        }
    }

    /// Returns when the layer was created, as a change time of its file system (seconds and
    /// nanoseconds since 1970).
    ///
    /// An entry of the workspace whose status changed later was changed by somebody else.
    pub fn created(&self) -> (i64, i64) {
        self.created
    }
}

/// Creates the directory of a layer, with the lock that marks it as used.
fn create_locked(parent: &Path) -> io::Result<(TempDir, File)> {
    let directory = tempfile::Builder::new()
        .prefix(PREFIX)
        .permissions(Permissions::from_mode(0o700))
        .tempdir_in(parent)?;
    let lock = File::open(directory.path())?;
    // A directory that cannot be locked is not removed as stale, either.
    let _ = lock.try_lock();
    Ok((directory, lock))
}

impl Drop for CommandLayer {
    fn drop(&mut self) {
        if let Some(directory) = self.directory.take() {
            // The command may have left directories that nobody can enter.
            remove_layer(&directory.keep());
        }
    }
}

/// Removes a layer. If this fails, the next process tries again.
fn remove_layer(path: &Path) {
    let _ = remove_directory(path);
}

/// Removes the layers of this user that are unused and older than `age`.
fn remove_stale(parent: &Path, age: Duration) {
    let user = rustix::process::geteuid().as_raw();
    for entry in fs::read_dir(parent).into_iter().flatten().flatten() {
        if !entry.file_name().to_string_lossy().starts_with(PREFIX) {
            continue;
        }
        let path = entry.path();
        let Ok(metadata) = path.symlink_metadata() else { continue };
        let is_old = metadata
            .modified()
            .is_ok_and(|time| time.elapsed().is_ok_and(|elapsed| elapsed >= age));
        let is_unused = metadata.is_dir()
            && metadata.uid() == user
            && File::open(&path).is_ok_and(|directory| directory.try_lock().is_ok());
        if is_old && is_unused {
            remove_layer(&path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_layer_has_the_permissions_of_the_workspace_and_is_removed_with_its_value() {
        let [parent, workspace] = [(); 2].map(|()| tempfile::tempdir().expect("a directory"));
        fs::set_permissions(workspace.path(), Permissions::from_mode(0o751)).expect("set");
        let layer = CommandLayer::create(parent.path(), workspace.path()).expect("created");
        let paths = LayerPaths::of(layer.path());
        assert_eq!(paths.upper.metadata().expect("it exists").mode() & 0o7777, 0o751);
        assert_eq!(layer.path().metadata().expect("it exists").mode() & 0o7777, 0o700);
        // What nobody can enter.
        let closed = paths.upper.join("closed");
        fs::create_dir_all(closed.join("inner")).expect("created");
        fs::set_permissions(&closed, Permissions::from_mode(0o000)).expect("set");
        drop(layer);
        assert_eq!(fs::read_dir(parent.path()).expect("it exists").count(), 0);
    }

    #[test]
    fn a_layer_that_is_kept_stays_with_its_entries() {
        let parent = tempfile::tempdir().expect("a directory");
        let layer = CommandLayer::create(parent.path(), parent.path()).expect("created");
        let entry = layer.entry(3);
        fs::write(&entry, "old content").expect("written");
        layer.keep();
        assert_eq!(fs::read_to_string(entry).expect("it is kept"), "old content");
    }

    #[test]
    fn only_stale_layers_are_removed() {
        let parent = tempfile::tempdir().expect("a directory");
        let create = || CommandLayer::create(parent.path(), parent.path()).expect("created");
        let used = create();
        let mut left = create();
        let path = left.directory.take().expect("it exists").keep();
        remove_stale(parent.path(), Duration::ZERO);
        assert!(path.exists(), "it is locked");
        drop(left);
        remove_stale(parent.path(), MIN_STALE_AGE);
        assert!(path.exists(), "it may be about to be locked");
        remove_stale(parent.path(), Duration::ZERO);
        assert!(!path.exists() && used.path().exists());
    }

    #[test]
    fn stale_layers_are_removed_from_each_directory() {
        for _ in 0..2 {
            let parent = tempfile::tempdir().expect("a directory");
            let stale = parent.path().join("layer-stale");
            fs::create_dir_all(stale.join("upper")).expect("it is made");
            let long_ago = std::time::SystemTime::now() - 2 * MIN_STALE_AGE;
            File::open(&stale).and_then(|stale| stale.set_modified(long_ago)).expect("it is set");
            let layer = CommandLayer::create(parent.path(), parent.path()).expect("created");
            assert!(!stale.exists() && layer.path().exists());
        }
    }
}
